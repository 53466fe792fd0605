//! S20: the finalizer goes although a deletion failed.
//!
//! **Bug.** The Secret `NAME-token` has no ownerReference; a finalizer lets the operator delete it before its Sample is
//! gone. When that DELETE fails, the clean-up logs it, goes on, and removes the finalizer: nothing is left that knows of
//! the Secret. **Seen in** KubeUser#54, OT-CONTAINER-KIT/redis-operator#312. **Fault.** 500 or 403 on the DELETE of the
//! Secret. **Right verdict.** Fail `noOrphans`: the Secret, and that the finalizer went after a failed DELETE. **Fixed.**
//! The finalizer stays until the DELETE succeeded; 404 counts as success.

use k8s_openapi::api::core::v1::Secret;

use super::Build;
use crate::{
    child::{self, Owner},
    control::{Control, Reconcile},
    error::Result,
    finalizer,
    operator::Operator,
    sample::Sample,
    status,
};

const SUFFIX: &str = "token";

struct S20 {
    operator: Operator,
    build: Build,
}

/// Runs the specimen until the process ends.
pub(super) async fn run(operator: Operator, build: Build) {
    Control::new(&operator).watching::<Secret>().run(S20 { operator, build }).await;
}

impl Reconcile for S20 {
    async fn reconcile(&self, sample: &Sample) -> Result<()> {
        finalizer::hold(&self.operator, sample).await?;
        child::keep(&self.operator, &child::secret(sample, SUFFIX, Owner::Nobody)).await?;
        status::done(&self.operator, sample).await
    }

    async fn clean_up(&self, sample: &Sample) -> Result<()> {
        if !finalizer::is_held(sample) {
            return Ok(());
        }
        let deleted = child::delete::<Secret>(&self.operator, &sample.child(SUFFIX)).await;
        match (child::gone_is_done(deleted), self.build) {
            (Err(error), Build::Fixed) => return Err(error),
            (Err(error), Build::Bug) => tracing::warn!("failed to {}; going on", error.chain()),
            (Ok(()), _) => {}
        }
        finalizer::release(&self.operator, sample).await
    }
}
