//! S10: work in two phases, the phase only in memory.
//!
//! **Bug.** After the ConfigMap `NAME-step1` the operator notes in memory that `NAME-step2` is due. Killed in between, the
//! next process finds the first ConfigMap, has no note, and never makes the second. **Seen in** casskop#370,
//! strimzi-kafka-operator#1010, percona-server-mongodb-operator#2154. **Fault.** Kill the operator after its k-th write,
//! for every k. **Right verdict.** Fail `converges` for exactly one k: 1, after the POST of `NAME-step1`. **Fixed.** What is
//! due is read off what exists.

use std::{
    collections::BTreeSet,
    sync::{Mutex, MutexGuard, PoisonError},
};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;

use super::Build;
use crate::{
    child::{self, Owner},
    control::{Control, Reconcile},
    error::Result,
    operator::Operator,
    sample::{Phase, Sample},
    status::{self, Ready},
};

struct S10 {
    operator: Operator,
    build: Build,
    /// The uids of the Samples whose second step is due; lost with the process.
    second_is_due: Mutex<BTreeSet<String>>,
}

/// Runs the specimen until the process ends.
pub(super) async fn run(operator: Operator, build: Build) {
    let s10 = S10 { operator: operator.clone(), build, second_is_due: Mutex::default() };
    Control::new(&operator).watching::<ConfigMap>().run(s10).await;
}

impl Reconcile for S10 {
    async fn reconcile(&self, sample: &Sample) -> Result<()> {
        let uid = sample.uid().unwrap_or_default();
        let first = child::config_map(sample, "step1", Owner::Sample);
        let second = child::config_map(sample, "step2", Owner::Sample);

        if !self.exists(&first).await? {
            self.notes().insert(uid.clone());
        }
        child::keep(&self.operator, &first).await?;

        let is_due = match self.build {
            Build::Bug => self.notes().contains(&uid),
            Build::Fixed => true,
        };
        if is_due || self.exists(&second).await? {
            child::keep(&self.operator, &second).await?;
            self.notes().remove(&uid);
            return status::done(&self.operator, sample).await;
        }
        let waiting = Ready::No("Waiting", "the second step is not done");
        status::report(&self.operator, sample, Phase::FirstMade, waiting).await
    }
}

impl S10 {
    async fn exists(&self, child: &ConfigMap) -> Result<bool> {
        Ok(child::read::<ConfigMap>(&self.operator, &child.name_any()).await?.is_some())
    }

    fn notes(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.second_is_due.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
