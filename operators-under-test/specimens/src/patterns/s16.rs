//! S16: a kind of children that is not watched.
//!
//! **Bug.** The Sample has a ConfigMap and a Secret as children; only ConfigMaps are watched. When somebody deletes the
//! Secret, nobody notices until something else happens, and `Ready` stays True. **Seen in** toolhive#6343,
//! zalando/postgres-operator#1299. **Fault.** Delete the Secret. **Right verdict.** Fail `heals`: the Secret does not come
//! back. **Fixed.** Secrets are watched as well.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};

use super::Build;
use crate::{
    child::{self, Owner},
    control::{Control, Reconcile},
    error::Result,
    operator::Operator,
    sample::Sample,
    status,
};

struct S16 {
    operator: Operator,
}

/// Runs the specimen until the process ends.
pub(super) async fn run(operator: Operator, build: Build) {
    let control = Control::new(&operator).watching::<ConfigMap>();
    let control = match build {
        Build::Bug => control,
        Build::Fixed => control.watching::<Secret>(),
    };
    control.run(S16 { operator }).await;
}

impl Reconcile for S16 {
    async fn reconcile(&self, sample: &Sample) -> Result<()> {
        child::keep(&self.operator, &child::config_map(sample, "settings", Owner::Sample)).await?;
        child::keep(&self.operator, &child::secret(sample, "token", Owner::Sample)).await?;
        status::done(&self.operator, sample).await
    }
}
