//! S02: clean-up only in the handler of the DELETED event.
//!
//! **Bug.** The ConfigMap `NAME-settings` has no ownerReference on purpose, and is deleted when the watch says that its
//! Sample was deleted. While the operator is down, or between two watches, nobody hears that. **Seen in**
//! zalando/postgres-operator#2678, java-operator-sdk PR#902. **Fault.** Stop the operator, delete the Sample, start it
//! again; or withhold the event until the watch has to be listed anew. **Right verdict.** Fail `noOrphans`: names the
//! ConfigMap and that the operator was down. **Fixed.** A finalizer: the Sample stays until the ConfigMap is gone.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use tokio::sync::mpsc;

use super::Build;
use crate::{
    child::{self, Owner},
    control::Reconcile,
    error::Result,
    finalizer,
    informer::{self, PAUSE, Queue, Seen, Task},
    operator::Operator,
    sample::Sample,
    status,
};

const SUFFIX: &str = "settings";

struct S02 {
    operator: Operator,
    build: Build,
}

/// Runs the specimen until the process ends.
pub(super) async fn run(operator: Operator, build: Build) {
    let (queue, tasks) = mpsc::unbounded_channel();
    tokio::join!(
        follow_samples(&operator, &queue),
        informer::follow_children(&operator, &queue),
        informer::work(&operator, tasks, S02 { operator: operator.clone(), build }),
    );
}

impl Reconcile for S02 {
    async fn reconcile(&self, sample: &Sample) -> Result<()> {
        if self.build == Build::Fixed {
            finalizer::hold(&self.operator, sample).await?;
        }
        child::keep(&self.operator, &child::config_map(sample, SUFFIX, Owner::Nobody)).await?;
        status::done(&self.operator, sample).await
    }

    async fn clean_up(&self, sample: &Sample) -> Result<()> {
        if finalizer::is_held(sample) {
            self.delete_child(&sample.name_any()).await?;
        }
        finalizer::release(&self.operator, sample).await
    }

    async fn vanished(&self, name: &str) -> Result<()> {
        match self.build {
            Build::Bug => self.delete_child(name).await,
            Build::Fixed => Ok(()),
        }
    }
}

impl S02 {
    async fn delete_child(&self, sample: &str) -> Result<()> {
        child::gone_is_done(child::delete::<ConfigMap>(&self.operator, &format!("{sample}-{SUFFIX}")).await)
    }
}

async fn follow_samples(operator: &Operator, queue: &Queue) {
    loop {
        let end = informer::list_and_watch(&operator.samples(), None, |seen| {
            informer::put(
                queue,
                match seen {
                    Seen::Present(sample) => Task::Look(sample.name_any()),
                    Seen::Deleted(sample) => Task::Vanished(sample.name_any()),
                },
            );
        })
        .await;
        tracing::info!(%end, "the watch of Samples ended; listing again");
        tokio::time::sleep(PAUSE).await;
    }
}
