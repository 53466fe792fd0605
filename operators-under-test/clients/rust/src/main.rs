//! The Sample operator on kube-rs: its controller says *which* Sample to look at, fresh reads say *what* there is.

mod children;
mod error;
mod sample;
mod status;

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use clap::Parser;
use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, ResourceExt,
    api::ListParams,
    runtime::{
        Controller,
        controller::{self, Action},
        reflector::ObjectRef,
        watcher,
    },
};

use crate::{error::Error, sample::Sample};

/// Serves the Samples of one namespace.
#[derive(Debug, Parser)]
struct Arguments {
    /// The namespace that is served.
    #[arg(long, required_unless_present = "print_crd", default_value = "")]
    namespace: String,
    /// Prints the CustomResourceDefinition and ends.
    #[arg(long)]
    print_crd: bool,
    /// Lists are streamed by the watch (`sendInitialEvents`).
    #[arg(long)]
    streaming_lists: bool,
}

struct State {
    samples: Api<Sample>,
    config_maps: Api<ConfigMap>,
    /// How often each Sample has failed in a row.
    failures: Mutex<HashMap<String, u32>>,
}

#[tokio::main]
async fn main() -> Result<(), kube::Error> {
    let arguments = Arguments::parse();
    if arguments.print_crd {
        print!("{}", sample::definition());
        return Ok(());
    }
    tracing_subscriber::fmt().with_ansi(false).with_writer(std::io::stderr).init();
    let client = Client::try_default().await?;
    let namespace = arguments.namespace;
    let samples = Api::<Sample>::namespaced(client.clone(), &namespace);
    let config_maps = Api::<ConfigMap>::namespaced(client, &namespace);
    let watching = watcher::Config::default();
    let watching = if arguments.streaming_lists { watching.streaming_lists() } else { watching };
    let state = State { samples: samples.clone(), config_maps: config_maps.clone(), failures: Mutex::default() };
    Controller::new(samples, watching.clone())
        .watches(config_maps, watching, move |child: ConfigMap| {
            children::parts(&child.name_any()).map(|(sample, _)| ObjectRef::new(sample).within(&namespace))
        })
        .shutdown_on_signal()
        .run(reconcile, try_again, Arc::new(state))
        .for_each(|result| async {
            match result {
                // Told where it is decided when to try again.
                Ok(_) | Err(controller::Error::ReconcilerFailed(..)) => {}
                Err(controller::Error::QueueError(error)) => tracing::warn!("failed to watch: {error}; will try again"),
                Err(error) => tracing::warn!("not reconciled: {error}"),
            }
        })
        .await;
    Ok(())
}

/// Brings the world to what a Sample asks for.
async fn reconcile(seen: Arc<Sample>, state: Arc<State>) -> Result<Action, Error> {
    let name = seen.name_any();
    let read = state.samples.get_opt(&name).await.map_err(Error::request(format!("read Sample {name}")))?;
    // Children go with their owner, by garbage collection.
    if let Some(sample) = read.filter(|sample| sample.metadata.deletion_timestamp.is_none()) {
        let list = state.config_maps.list(&ListParams::default()).await.map_err(Error::request("list ConfigMaps"))?;
        let found: BTreeMap<usize, &ConfigMap> = list
            .items
            .iter()
            .filter_map(|child| {
                let (of, number) = children::parts(child.metadata.name.as_deref()?)?;
                (of == name).then_some((number, child))
            })
            .collect();
        let count = usize::try_from(sample.spec.count).unwrap_or_default();
        for number in 0..count {
            children::keep(&state.config_maps, &sample, number, found.get(&number).copied()).await?;
        }
        for (_, surplus) in found.range(count..) {
            if children::is_controlled_by(surplus, &sample) {
                children::delete(&state.config_maps, surplus).await?;
            }
        }
        status::report(&state.samples, &sample).await?;
    }
    state.failures.lock().unwrap_or_else(PoisonError::into_inner).remove(&name);
    Ok(Action::await_change())
}

fn try_again(sample: Arc<Sample>, error: &Error, state: Arc<State>) -> Action {
    let name = sample.name_any();
    let mut failures = state.failures.lock().unwrap_or_else(PoisonError::into_inner);
    let before = failures.entry(name.clone()).or_default();
    let wait = Duration::from_millis(100 << (*before).min(6));
    *before += 1;
    tracing::warn!(sample = name, ?wait, error = error as &dyn std::error::Error, "will try again");
    Action::requeue(wait)
}
