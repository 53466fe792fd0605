//! S26: it counts its reconciles in the status.
//!
//! **Bug.** Each look at a Sample adds one to `status.reconciles`, as operators do that note when they last looked. Its
//! own report is no reason to look again: an event with a generation and annotations that are known is passed over, so at
//! rest nothing is written. But every new process, every list and every touch is a look, and each look is a write: for all
//! Samples at once after a restart, whether anything is to be done or not. **Seen in** sops-operator#405, grafana-operator
//! PR#2752, muster#1285. **Fault.** None: a restart at rest, or an event that tells nothing new. **Right verdict.** Fail
//! `quiet`: the Sample, `status.reconciles`, after that step. **Fixed.** Only what differs is written.

use std::collections::BTreeMap;

use kube::{
    ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::json;
use tokio::sync::mpsc;

use super::Build;
use crate::{
    child::{self, Owner},
    control::Reconcile,
    error::{Error, Result},
    informer::{self, PAUSE, Queue, Seen, Task},
    operator::Operator,
    sample::Sample,
    status,
};

struct S26 {
    operator: Operator,
    build: Build,
}

/// Runs the specimen until the process ends.
pub(super) async fn run(operator: Operator, build: Build) {
    let (queue, tasks) = mpsc::unbounded_channel();
    tokio::join!(
        informer::follow_children(&operator, &queue),
        follow_samples(&operator, &queue),
        informer::work(&operator, tasks, S26 { operator: operator.clone(), build }),
    );
}

impl Reconcile for S26 {
    async fn reconcile(&self, sample: &Sample) -> Result<()> {
        child::keep(&self.operator, &child::config_map(sample, "settings", Owner::Sample)).await?;
        status::done(&self.operator, sample).await?;
        match self.build {
            Build::Bug => self.count(sample).await,
            Build::Fixed => Ok(()),
        }
    }
}

impl S26 {
    async fn count(&self, sample: &Sample) -> Result<()> {
        let (name, so_far) = (sample.name_any(), sample.status.as_ref().and_then(|status| status.reconciles));
        let patch = Patch::Merge(json!({"status": {"reconciles": so_far.unwrap_or(0) + 1}}));
        let tried = format!("count a look at Sample {name}");
        let samples = self.operator.samples();
        samples.patch_status(&name, &PatchParams::default(), &patch).await.map_err(Error::request(tried))?;
        Ok(())
    }
}

/// A list shows every Sample anew; of the events that follow, only those with another generation, other annotations, or a
/// deletion are news. A report of the status is none of them.
async fn follow_samples(operator: &Operator, queue: &Queue) {
    loop {
        let mut known = BTreeMap::new();
        let end = informer::list_and_watch(&operator.samples(), None, |seen| {
            let (Seen::Present(sample) | Seen::Deleted(sample)) = seen;
            let what = (sample.metadata.generation, sample.annotations().clone(), sample.is_being_deleted());
            if known.insert(sample.uid(), what.clone()) != Some(what) {
                informer::put(queue, Task::Look(sample.name_any()));
            }
        })
        .await;
        tracing::info!(%end, "the watch of Samples ended; listing again");
        tokio::time::sleep(PAUSE).await;
    }
}
