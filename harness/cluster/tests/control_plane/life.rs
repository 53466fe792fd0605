//! Start, use, end, in order and out of order.

use std::{
    ffi::OsStr,
    fs,
    path::Path,
    pin::pin,
    process::ExitCode,
    time::{Duration, Instant},
};

use futures::TryStreamExt;
use k8s_openapi::api::{
    authentication::v1::TokenRequest,
    core::v1::{ConfigMap, ServiceAccount},
};
use kube::{
    Api,
    api::{DeleteParams, ListParams, PostParams, WatchEvent, WatchParams},
};
use libtest_mimic::{Failed, Trial};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use spiritlevel_cluster::{
    Cluster, Component, Error, Identity, LocalCluster, LocalOptions, RunDirectory, clean, connect,
};

use crate::{
    start, start_with_controllers,
    support::{Outcome, ensure, trial},
};

/// Names the file to which a harness that is to be killed writes its children's process numbers.
pub(crate) const HOLD: &str = "SPIRITLEVEL_TEST_HOLD";

const COMPONENTS: [Component; 3] = [Component::Etcd, Component::ApiServer, Component::ControllerManager];

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("life/a_config_map_makes_the_round_trip_and_stop_leaves_nothing", round_trip),
        trial("life/two_control_planes_stand_side_by_side", side_by_side),
        trial("life/a_killed_child_is_reported_with_its_log", killed_child),
        trial("life/an_operators_own_token_has_only_its_own_rights", own_token),
        trial("life/a_restarted_api_server_keeps_its_address_and_objects", restarted_api_server),
        trial("life/a_restored_etcd_has_what_the_snapshot_had", restored_etcd),
        trial("life/a_frozen_etcd_holds_writes_back", frozen_etcd),
        trial("life/a_start_that_cannot_succeed_ends_at_once_with_the_log", refused_start),
        trial("life/a_killed_harness_leaves_no_process_and_a_directory_to_sweep", killed_harness),
    ]
}

async fn round_trip() -> Outcome {
    let cluster = start_with_controllers().await?;
    let client = cluster.client(Identity::User)?;
    ensure(client.apiserver_version().await?.git_version == "v1.36.3", client.apiserver_version().await?)?;

    let config_maps: Api<ConfigMap> = Api::namespaced(client, "default");
    let mut config_map = named("level");
    config_map.data = Some([("bubble".to_owned(), "centred".to_owned())].into());
    config_maps.create(&PostParams::default(), &config_map).await?;
    let read = config_maps.get("level").await?;
    ensure(read.data == config_map.data, &read)?;
    ensure(read.metadata.managed_fields.is_some_and(|fields| !fields.is_empty()), "no managed fields")?;
    config_maps.delete("level", &DeleteParams::default()).await?;

    let stranger = connect(cluster.endpoint(), "no-token-of-ours")?;
    let refused = stranger.apiserver_version().await;
    ensure(matches!(&refused, Err(kube::Error::Api(status)) if status.code == 401), refused)?;

    let pids = process_ids(&cluster).await;
    ensure(pids.len() == 3 && pids.iter().all(|pid| is_alive(*pid)), &pids)?;
    ensure(cluster.alive().is_none(), cluster.alive())?;
    let directory = cluster.directory().path().to_owned();
    cluster.stop().await?;
    ensure(pids.iter().all(|pid| !is_alive(*pid)), &pids)?;
    let late = cluster.start_controllers(cluster.endpoint()).await.err();
    ensure(matches!(late, Some(Error::Stopped)), late)?;
    ensure(cluster.alive().is_none(), cluster.alive())?;
    drop(cluster);
    ensure(!directory.exists(), directory)
}

async fn side_by_side() -> Outcome {
    let (one, other) = tokio::try_join!(start(LocalOptions::default()), start(LocalOptions::default()))?;
    ensure(one.endpoint().url != other.endpoint().url, one.endpoint())?;
    for cluster in [&one, &other] {
        cluster.client(Identity::Witness)?.apiserver_version().await?;
    }
    // Neither tokens nor certificates of one mean anything to the other.
    let foreign_token = connect(other.endpoint(), one.token(Identity::Admin))?;
    ensure(foreign_token.apiserver_version().await.is_err(), "a foreign token was accepted")?;
    let mut foreign_ca = other.endpoint().clone();
    foreign_ca.ca_pem.clone_from(&one.endpoint().ca_pem);
    let foreign_ca = connect(&foreign_ca, other.token(Identity::Admin))?;
    ensure(foreign_ca.apiserver_version().await.is_err(), "a foreign certificate was accepted")?;

    one.stop().await?;
    other.client(Identity::Witness)?.apiserver_version().await?;
    other.stop().await?;
    Ok(())
}

async fn killed_child() -> Outcome {
    let cluster = start(LocalOptions::default()).await?;
    ensure(cluster.alive().is_none(), cluster.alive())?;
    let pid = cluster.process_id(Component::ApiServer).await.ok_or("no API server")?;
    kill(Pid::from_raw(pid.cast_signed()), Signal::SIGKILL)?;
    let exit = eventually("the end is noticed", Duration::from_secs(5), async || cluster.alive()).await?;
    ensure(exit.component == Component::ApiServer && exit.status == "signal SIGKILL", &exit)?;
    ensure(exit.log_tail.lines().count() > 3, &exit)?;
    // Whatever fails because of it is put down to it.
    let error = cluster.prove_collection(&[]).await.err().ok_or("collection was proven without an API server")?;
    ensure(matches!(&error, Error::Ended(cause) if *cause == exit), error)?;
    cluster.stop().await?;
    Ok(())
}

async fn own_token() -> Outcome {
    let cluster = start_with_controllers().await?;
    let accounts: Api<ServiceAccount> = Api::namespaced(cluster.client(Identity::Harness)?, "default");
    let request = accounts.create_token_request("default", &PostParams::default(), &TokenRequest::default()).await?;
    let token = request.status.and_then(|status| status.token).ok_or("no token")?;
    let operator = connect(cluster.endpoint(), &token)?;
    operator.apiserver_version().await?;
    let config_maps: Api<ConfigMap> = Api::namespaced(operator, "default");
    let refused = config_maps.list(&ListParams::default()).await;
    ensure(matches!(&refused, Err(kube::Error::Api(status)) if status.code == 403), refused)?;
    cluster.stop().await?;
    Ok(())
}

async fn restarted_api_server() -> Outcome {
    let cluster = start_with_controllers().await?;
    let config_maps: Api<ConfigMap> = Api::namespaced(cluster.client(Identity::User)?, "default");
    config_maps.create(&PostParams::default(), &named("kept")).await?;
    let before = cluster.process_id(Component::ApiServer).await;
    cluster.restart_api_server().await?;
    ensure(cluster.process_id(Component::ApiServer).await != before, before)?;
    ensure(config_maps.get_opt("kept").await?.is_some(), "the object is gone")?;
    ensure(cluster.alive().is_none(), cluster.alive())?;
    // The controllers have found it again.
    cluster.prove_collection(&[]).await?;
    cluster.stop().await?;
    Ok(())
}

async fn restored_etcd() -> Outcome {
    let cluster = start_with_controllers().await?;
    let say = |text: &str| eprintln!("{text}");
    let config_maps: Api<ConfigMap> = Api::namespaced(cluster.client(Identity::User)?, "default");
    let revision = async || -> Result<u64, Failed> {
        let list = config_maps.list(&ListParams::default().limit(1)).await?;
        Ok(list.metadata.resource_version.ok_or("a list without a version")?.parse()?)
    };
    config_maps.create(&PostParams::default(), &named("kept")).await?;
    let (path, at) = (cluster.directory().path().join("snapshot.db"), revision().await?);
    cluster.snapshot(&path).await?;
    config_maps.delete("kept", &DeleteParams::default()).await?;
    config_maps.create(&PostParams::default(), &named("late")).await?;
    let before = revision().await?;

    for bump in [Some(1_000_000), None] {
        cluster.restore(&path, bump, &say).await?;
        cluster.resume_controllers().await?;
        let late = config_maps.get_opt("late").await?;
        ensure(config_maps.get_opt("kept").await?.is_some() && late.is_none(), (bump, late))?;
        let now = revision().await?;
        match bump {
            Some(by) => ensure(now >= at + by, (at, before, now))?,
            None => ensure(now < at + 1_000_000, (at, before, now))?,
        }
        if bump.is_some() {
            let mut watch = pin!(config_maps.watch(&WatchParams::default(), &before.to_string()).await?);
            let told = watch.try_next().await;
            let expired = |code: u16| code == 410;
            let is_expired = match &told {
                Ok(Some(WatchEvent::Error(status))) => expired(status.code),
                Err(kube::Error::Api(status)) => expired(status.code),
                _ => false,
            };
            ensure(is_expired, format!("{told:?}"))?;
        }
    }
    Ok(cluster.stop().await?)
}

async fn frozen_etcd() -> Outcome {
    let cluster = start(LocalOptions::default()).await?;
    let config_maps: Api<ConfigMap> = Api::namespaced(cluster.client(Identity::User)?, "default");
    config_maps.create(&PostParams::default(), &named("before")).await?;
    cluster.freeze(Component::Etcd).await?;
    let (parameters, during) = (PostParams::default(), named("during"));
    let mut write = pin!(config_maps.create(&parameters, &during));
    let early = tokio::time::timeout(Duration::from_millis(500), &mut write).await;
    ensure(early.is_err(), early)?;
    cluster.thaw(Component::Etcd).await?;
    write.await?;
    cluster.stop().await?;
    Ok(())
}

fn named(name: &str) -> ConfigMap {
    let mut config_map = ConfigMap::default();
    config_map.metadata.name = Some(name.to_owned());
    config_map
}

async fn refused_start() -> Outcome {
    let options = LocalOptions { api_server_args: vec!["--no-such-flag".to_owned()], ..LocalOptions::default() };
    let error = LocalCluster::start(options, &spiritlevel_cluster::Quiet).await.err().ok_or("it started")?;
    let Error::Ended(exit) = &error else { return Err(format!("another error: {error}").into()) };
    ensure(exit.component == Component::ApiServer && exit.log_tail.contains("no-such-flag"), exit)
}

async fn killed_harness() -> Outcome {
    let place = tempfile::tempdir()?;
    let file = place.path().join("children");
    let mut harness =
        tokio::process::Command::new(std::env::current_exe()?).env(HOLD, &file).kill_on_drop(true).spawn()?;
    let children = eventually("the harness is up", Duration::from_secs(120), async || {
        let text = fs::read_to_string(&file).ok()?;
        text.ends_with("end\n").then(|| text.lines().map(str::to_owned).collect::<Vec<_>>())
    })
    .await?;
    let [directory, pids @ .., _end] = children.as_slice() else { return Err("nothing was written".into()) };
    let pids: Vec<u32> = pids.iter().map(|pid| pid.parse()).collect::<Result<_, _>>()?;
    ensure(pids.len() == 3 && pids.iter().all(|pid| is_alive(*pid)), &pids)?;

    harness.start_kill()?;
    harness.wait().await?;
    eventually("the processes are gone", Duration::from_secs(2), async || {
        pids.iter().all(|pid| !is_alive(*pid)).then_some(())
    })
    .await?;
    // Another test's start may have swept it in between, which is as good.
    let alive = RunDirectory::create("test")?;
    clean::sweep()?;
    ensure(!Path::new(directory).exists() && alive.path().exists(), directory)
}

/// The harness that gets killed.
pub(crate) fn hold(file: &OsStr) -> ExitCode {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime starts on any working machine");
    let held: Result<(), Failed> = runtime.block_on(async {
        let cluster = start_with_controllers().await?;
        let mut lines = vec![cluster.directory().path().display().to_string()];
        lines.extend(process_ids(&cluster).await.iter().map(u32::to_string));
        lines.push("end\n".to_owned());
        fs::write(file, lines.join("\n"))?;
        std::future::pending().await
    });
    eprintln!("{held:?}");
    ExitCode::FAILURE
}

async fn process_ids(cluster: &LocalCluster) -> Vec<u32> {
    let mut pids = Vec::new();
    for component in COMPONENTS {
        pids.extend(cluster.process_id(component).await);
    }
    pids
}

fn is_alive(pid: u32) -> bool {
    kill(Pid::from_raw(pid.cast_signed()), None).is_ok()
}

/// Waits for something that has to happen soon.
async fn eventually<T>(what: &str, within: Duration, mut poll: impl AsyncFnMut() -> Option<T>) -> Result<T, Failed> {
    let started = Instant::now();
    loop {
        if let Some(value) = poll().await {
            return Ok(value);
        }
        if started.elapsed() > within {
            return Err(format!("not within {within:?}: {what}").into());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
