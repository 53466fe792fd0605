//! What the operator finds around it.

use super::fixture::{Fixture, PATIENCE};
use crate::Outcome;
use spiritlevel_operator::{Access, Bind, Error, Exit, Isolation, Network, Observer, probe, stop_listening};
use std::fs;
use std::sync::Arc;

fn without_namespaces() -> Isolation {
    Isolation::Host { why: "for a test".into() }
}

pub(crate) async fn the_operator_finds_a_pod_around_it() -> Outcome {
    let fixture = Fixture::new()?;
    let told = fixture.hear(&["tell"]).await?;
    let dir = fixture.dir.path().display();
    let root = nix::unistd::geteuid().is_root();
    let mut expected = vec![
        "token=token-1".to_owned(),
        "ca.crt=PEM".into(),
        "namespace=shop".into(),
        "read-only=true".into(),
        "KUBERNETES_SERVICE_HOST=127.0.0.1".into(),
        "KUBERNETES_SERVICE_PORT=6443".into(),
        "KUBECONFIG=unset".into(),
        format!("HOME={dir}/home"),
        "HTTPS_PROXY=unset".into(),
        "COLOUR=blue".into(),
        "pid=1".into(),
        "proc=1".into(),
        format!("dir={dir}"),
        "host=operator-0".into(),
        "hosts=127.0.0.1 localhost kubernetes.default.svc".into(),
        "pod=Err(ConnectionRefused)".into(),
        "outside=true".into(),
        "low-port=true".into(),
    ];
    if !root {
        expected.push("capabilities=0000000000000000".into());
    }
    for line in expected {
        assert!(told.contains(&line), "{line} is missing in {told:#?}");
    }
    assert!(!fs::exists("/run/secrets/kubernetes.io")?, "the host sees nothing of it");
    Ok(())
}

pub(crate) async fn a_new_token_is_seen() -> Outcome {
    let fixture = Fixture::new()?;
    let script = "cat /var/run/secrets/kubernetes.io/serviceaccount/token; echo; \
                  until grep -q token-2 /var/run/secrets/kubernetes.io/serviceaccount/token; do sleep 0.01; done; echo new";
    let mut launch = fixture.launch(&[]);
    launch.command = vec!["sh".into(), "-c".into(), script.into()];
    let (process, mut lines) = fixture.start_as(launch).await?;
    assert_eq!(lines.next().await?, "token-1");
    fixture.account.set_token("token-2")?;
    assert_eq!(lines.next().await?, "new");
    assert!(process.wait().await.is_success());
    Ok(())
}

pub(crate) async fn output_is_kept_line_by_line() -> Outcome {
    let fixture = Fixture::new()?;
    for _ in 0..2 {
        let redact = Arc::new(|line: &str| line.replace("secret", "[redacted]"));
        let observer = Observer { redact: Some(redact), ..Observer::default() };
        let process = fixture.sandbox.start(fixture.launch(&["speak", "a secret word\r"]), observer).await?;
        assert!(tokio::time::timeout(PATIENCE, process.wait()).await?.is_success());
    }
    let log = fs::read_to_string(fixture.dir.path().join("log"))?;
    let mut lines: Vec<(&str, &str)> = log.lines().map(|line| line.split_once(' ').expect("a time")).collect();
    assert!(lines.iter().all(|(at, _)| at.len() == 24 && at.parse::<jiff::Timestamp>().is_ok()), "{log}");
    lines.sort_by_key(|(_, line)| line.to_owned());
    let lines: Vec<&str> = lines.into_iter().map(|(_, line)| line).collect();
    let each = ["err aside", "out a [redacted] word", "out no end of line"];
    assert_eq!(lines, each.iter().flat_map(|line| [*line, *line]).collect::<Vec<_>>());
    Ok(())
}

pub(crate) async fn what_cannot_start_is_an_error() -> Outcome {
    let fixture = Fixture::new()?;
    let plain = fixture.dir.path().join("plain");
    fs::write(&plain, "no program")?;
    for (command, hint) in [("./missing", "was it built?"), ("./plain", "chmod +x"), ("no-such-name", "not on PATH")] {
        let mut launch = fixture.launch(&[]);
        launch.command = vec![command.into()];
        let error = fixture.sandbox.start(launch, Observer::default()).await.map(|_| ()).expect_err(command);
        assert!(matches!(&error, Error::Program { .. }), "{error:?}");
        assert!(error.to_string().contains(hint) && error.to_string().contains(command), "{error}");
    }
    let mut launch = fixture.launch(&["tell"]);
    launch.dir = fixture.dir.path().join("missing");
    let error = fixture.sandbox.start(launch, Observer::default()).await.map(|_| ());
    assert!(matches!(error, Err(Error::Directory { .. })), "{error:?}");
    assert!(fixture.hear(&["tell"]).await?.contains(&"pid=1".to_owned()), "the sandbox still works");
    Ok(())
}

pub(crate) async fn in_cluster_needs_namespaces() -> Outcome {
    let fixture = Fixture::with(|spec| spec.isolation = without_namespaces())?;
    let error = fixture.sandbox.start(fixture.launch(&["tell"]), Observer::default()).await.map(|_| ());
    let error = error.expect_err("there is nothing to be mounted in");
    assert!(matches!(error, Error::InClusterNeedsNamespaces { .. }), "{error:?}");
    assert!(error.to_string().ends_with("for a test"), "{error}");
    Ok(())
}

pub(crate) async fn the_host_network_works_without_namespaces() -> Outcome {
    let one = Fixture::with(|spec| spec.isolation = without_namespaces())?;
    let two = Fixture::with(|spec| spec.isolation = without_namespaces())?;
    assert_ne!(one.sandbox.address().port(), two.sandbox.address().port());
    assert_eq!(one.sandbox.network(), Network::Host);
    for _ in 0..2 {
        let listener = one.sandbox.bind()?;
        assert_eq!(listener.local_addr()?, one.sandbox.address());
        std::net::TcpStream::connect(one.sandbox.address())?;
        stop_listening(&listener)?;
    }
    assert!(std::net::TcpStream::connect(one.sandbox.address()).is_err(), "nobody listens any more");
    let mut launch = one.launch(&["tell"]);
    launch.access = Access::Kubeconfig(one.dir.path().join("kubeconfig"));
    let (process, mut lines) = one.start_as(launch).await?;
    assert_eq!(process.wait().await, Exit::Code(0));
    let told = lines.rest();
    let kubeconfig = format!("KUBECONFIG={}", one.dir.path().join("kubeconfig").display());
    assert!(told.contains(&kubeconfig) && told.contains(&"KUBERNETES_SERVICE_HOST=unset".into()), "{told:#?}");
    Ok(())
}

pub(crate) async fn the_host_network_keeps_in_cluster_access() -> Outcome {
    let fixture = Fixture::with(|spec| spec.network = Network::Host)?;
    let told = fixture.hear(&["tell"]).await?;
    let port = format!("KUBERNETES_SERVICE_PORT={}", fixture.sandbox.address().port());
    for line in ["token=token-1", "pid=1", "host=operator-0", &port] {
        assert!(told.iter().any(|told| told == line), "{line} is missing in {told:#?}");
    }
    Ok(())
}

pub(crate) async fn this_machine_isolates() -> Outcome {
    assert_eq!(probe().await?, Isolation::Full);
    Ok(())
}
