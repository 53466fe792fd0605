//! S01: a child without an ownerReference, and no finalizer.
//!
//! **Bug.** The ConfigMap `NAME-settings` is made without an ownerReference, and nobody deletes it: it outlives its
//! Sample. **Seen in** zalando/postgres-operator#498 and #793, mariadb-operator#1818. **Fault.** None: delete the Sample.
//! **Right verdict.** Fail `noOrphans`: names the ConfigMap, "no ownerReference". **Fixed.** An ownerReference; the garbage
//! collector does the rest.

use k8s_openapi::api::core::v1::ConfigMap;

use super::Build;
use crate::{
    child::{self, Owner},
    control::{Control, Reconcile},
    error::Result,
    operator::Operator,
    sample::Sample,
    status,
};

struct S01 {
    operator: Operator,
    build: Build,
}

/// Runs the specimen until the process ends.
pub(super) async fn run(operator: Operator, build: Build) {
    Control::new(&operator).watching::<ConfigMap>().run(S01 { operator, build }).await;
}

impl Reconcile for S01 {
    async fn reconcile(&self, sample: &Sample) -> Result<()> {
        let owner = match self.build {
            Build::Bug => Owner::Nobody,
            Build::Fixed => Owner::Sample,
        };
        child::keep(&self.operator, &child::config_map(sample, "settings", owner)).await?;
        status::done(&self.operator, sample).await
    }
}
