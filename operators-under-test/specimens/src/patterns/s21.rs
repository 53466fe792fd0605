//! S21: a 404 in the clean-up is an error.
//!
//! **Bug.** The Secret `NAME-token` has no ownerReference; a finalizer lets the operator delete it before its Sample is
//! gone. When somebody else was quicker, the DELETE is answered 404; that counts as a failure, so the finalizer stays for
//! ever. **Seen in** kubeflow/trainer#366, percona-server-mongodb-operator PR#2533. **Fault.** Delete the Secret, then the
//! Sample (while the operator is down, or it would make the Secret anew). **Right verdict.** Fail `deletes`: the Sample is
//! Terminating beyond T, the finalizer, and the same 404 again and again. **Fixed.** What is gone need not be deleted.

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

struct S21 {
    operator: Operator,
    build: Build,
}

/// Runs the specimen until the process ends.
pub(super) async fn run(operator: Operator, build: Build) {
    Control::new(&operator).watching::<Secret>().run(S21 { operator, build }).await;
}

impl Reconcile for S21 {
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
        match self.build {
            Build::Bug => deleted?,
            Build::Fixed => child::gone_is_done(deleted)?,
        }
        finalizer::release(&self.operator, sample).await
    }
}
