//! S14: a home-made watch loop that ends for good.
//!
//! **Bug.** The operator watches two kinds, each with a loop of its own. The one for ConfigMaps lists again however its
//! watch ends. The one for Samples does so after a broken connection only: when the watch expires (410) or is closed in
//! good order it is over, and so is its loop. The process lives on and looks healthy. **Seen in**
//! strimzi-kafka-operator#8060, dotnet-operator-sdk#585. **Fault.** End the watch of Samples, with an `ERROR` event 410 or
//! cleanly; then edit the Sample. **Right verdict.** Fail `converges`: generation 2 is not observed; no watch of Samples is
//! open. **Fixed.** Lists again however the watch ends.

use kube::ResourceExt;
use tokio::sync::mpsc;

use super::Build;
use crate::{
    child::{self, Owner},
    control::Reconcile,
    error::Result,
    informer::{self, End, PAUSE, Queue, Seen, Task},
    operator::Operator,
    sample::Sample,
    status,
};

struct S14 {
    operator: Operator,
}

/// Runs the specimen until the process ends.
pub(super) async fn run(operator: Operator, build: Build) {
    let (queue, tasks) = mpsc::unbounded_channel();
    tokio::join!(
        informer::follow_children(&operator, &queue),
        follow_samples(&operator, &queue, build),
        informer::work(&operator, tasks, S14 { operator: operator.clone() }),
    );
}

impl Reconcile for S14 {
    async fn reconcile(&self, sample: &Sample) -> Result<()> {
        child::keep(&self.operator, &child::config_map(sample, "settings", Owner::Sample)).await?;
        status::done(&self.operator, sample).await
    }
}

async fn follow_samples(operator: &Operator, queue: &Queue, build: Build) {
    loop {
        let end = informer::list_and_watch(&operator.samples(), None, |seen| {
            let (Seen::Present(sample) | Seen::Deleted(sample)) = seen;
            informer::put(queue, Task::Look(sample.name_any()));
        })
        .await;
        match (end, build) {
            (End::Closed | End::Expired, Build::Bug) => return,
            (end, _) => tracing::info!(%end, "the watch of Samples ended; listing again"),
        }
        tokio::time::sleep(PAUSE).await;
    }
}
