//! N1: a correct, level-triggered operator; a negative control.
//!
//! It keeps the ConfigMaps `NAME-0` to `NAME-(count - 1)`, deletes surplus ones, and says so. Everything is worked out anew
//! from what exists each time. **Fault.** All that keep to the API's contract: kills after each write, lost answers,
//! refused requests, watches that end or fall silent, children changed and deleted by others. **Right verdict.** Pass.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    ResourceExt,
    api::{DeleteParams, ListParams, Preconditions},
};

use crate::{
    child::{self, Owner},
    control::{Control, Reconcile},
    error::{Error, Result},
    operator::Operator,
    sample::Sample,
    status,
};

/// What N1 does, for others to build upon.
pub(super) struct N1 {
    operator: Operator,
}

/// Runs the specimen until the process ends.
pub(super) async fn run(operator: Operator) {
    Control::new(&operator).watching::<ConfigMap>().run(N1::new(operator)).await;
}

impl Reconcile for N1 {
    async fn reconcile(&self, sample: &Sample) -> Result<()> {
        for number in 0..sample.spec.count {
            child::keep(&self.operator, &numbered(sample, number)).await?;
        }
        self.delete_surplus(sample).await?;
        status::done(&self.operator, sample).await
    }
}

impl N1 {
    /// N1 for one namespace.
    pub(super) fn new(operator: Operator) -> Self {
        Self { operator }
    }

    async fn delete_surplus(&self, sample: &Sample) -> Result<()> {
        let wanted: Vec<_> = (0..sample.spec.count).map(|number| numbered(sample, number).name_any()).collect();
        let api = self.operator.api::<ConfigMap>();
        let list = ListParams::default().labels(&child::selector(sample));
        let children = api.list(&list).await.map_err(Error::request("list ConfigMaps"))?;
        for surplus in children.items.iter().filter(|child| !wanted.contains(&child.name_any())) {
            // Only the very object that was listed: one made anew under its name is somebody else's business.
            let listed = DeleteParams::default()
                .preconditions(Preconditions { uid: surplus.uid(), resource_version: surplus.resource_version() });
            let name = surplus.name_any();
            let deleted = api.delete(&name, &listed).await.map(drop);
            child::gone_is_done(deleted.map_err(Error::request(format!("delete ConfigMap {name}"))))?;
        }
        Ok(())
    }
}

fn numbered(sample: &Sample, number: i32) -> ConfigMap {
    child::config_map(sample, &number.to_string(), Owner::Sample)
}
