//! N10: server-side apply without force, and a second look after a conflict; a negative control.
//!
//! It keeps one ConfigMap by unforced apply. Where another manager holds a field with another value the API server answers
//! 409 and names the field; the operator then looks again, later and later, instead of taking the field by force. **Fault.**
//! `conflict`: somebody takes the field right before the apply, and gives it back. **Right verdict.** Pass.

use k8s_openapi::api::core::v1::ConfigMap;

use crate::{
    child::{self, Owner},
    control::{Control, Reconcile},
    error::Result,
    operator::Operator,
    sample::Sample,
    status,
};

struct N10 {
    operator: Operator,
}

/// Runs the specimen until the process ends.
pub(super) async fn run(operator: Operator) {
    Control::new(&operator).watching::<ConfigMap>().run(N10 { operator }).await;
}

impl Reconcile for N10 {
    async fn reconcile(&self, sample: &Sample) -> Result<()> {
        child::apply(&self.operator, &child::config_map(sample, "settings", Owner::Sample)).await?;
        status::done(&self.operator, sample).await
    }
}
