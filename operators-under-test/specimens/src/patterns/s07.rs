//! S07: a deterministic name, and "already exists" is fatal.
//!
//! **Bug.** The ConfigMaps `NAME-one` and `NAME-two` are made in this order, and `status.phase` says how far that has
//! come. When the answer to the first POST is lost, the retry is answered 409 `AlreadyExists`; that counts as a failure,
//! so the same POST is sent for ever and the second ConfigMap is never made. **Seen in** cloudnative-pg#10562,
//! cert-manager#7912. **Fault.** Commit the first POST, lose the answer once. **Right verdict.** Fail `converges`: not
//! ready within T, and still sending the same failing POST. **Fixed.** 409 for an object of our own means that it is made.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;

use super::Build;
use crate::{
    child::{self, Owner},
    control::{Control, Reconcile},
    error::{Error, Result},
    operator::Operator,
    sample::{Phase, Sample},
    status::{self, Ready},
};

struct S07 {
    operator: Operator,
    build: Build,
}

/// Runs the specimen until the process ends.
pub(super) async fn run(operator: Operator, build: Build) {
    Control::new(&operator).watching::<ConfigMap>().run(S07 { operator, build }).await;
}

impl Reconcile for S07 {
    async fn reconcile(&self, sample: &Sample) -> Result<()> {
        let first = child::config_map(sample, "one", Owner::Sample);
        let second = child::config_map(sample, "two", Owner::Sample);
        match sample.phase() {
            Phase::Pending => {
                self.make(sample, &first).await?;
                let waiting = Ready::No("Waiting", "the second ConfigMap is still to be made");
                status::report(&self.operator, sample, Phase::FirstMade, waiting).await
            }
            Phase::FirstMade => {
                self.make(sample, &second).await?;
                status::done(&self.operator, sample).await
            }
            Phase::Done => {
                child::keep(&self.operator, &first).await?;
                child::keep(&self.operator, &second).await?;
                status::done(&self.operator, sample).await
            }
        }
    }
}

impl S07 {
    async fn make(&self, sample: &Sample, child: &ConfigMap) -> Result<()> {
        match child::create(&self.operator, child).await {
            Err(error) if error.status() == Some(409) && self.build == Build::Fixed => {
                let found = child::read::<ConfigMap>(&self.operator, &child.name_any()).await?;
                let ours = found.iter().flat_map(ResourceExt::owner_references);
                if ours.map(|owner| &owner.uid).any(|uid| Some(uid) == sample.metadata.uid.as_ref()) {
                    return Ok(());
                }
                Err(Error::Foreign { kind: "ConfigMap".to_owned(), name: child.name_any() })
            }
            made => made,
        }
    }
}
