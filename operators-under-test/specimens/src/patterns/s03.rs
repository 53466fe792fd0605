//! S03: an illegal ownerReference.
//!
//! **Bug.** The ownerReference of the ConfigMap `NAME-settings` has the right uid, but says that its owner is a ConfigMap.
//! The API server does not look; the garbage collector finds no such owner and collects the ConfigMap at once, the operator
//! makes it anew, and so on. **Seen in** kubernetes#72192; other illegal owners in crossplane#895 and
//! contrail-operator PR#277. **Fault.** None. **Right verdict.** Fail `legalOwners`: the ConfigMap, before the collector
//! acts. **Fixed.** The reference says `Sample`.

use std::time::Duration;

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

/// Keeps the loop of the bug build at ten turns a second.
const DEBOUNCE: Duration = Duration::from_millis(100);

struct S03 {
    operator: Operator,
    build: Build,
}

/// Runs the specimen until the process ends.
pub(super) async fn run(operator: Operator, build: Build) {
    Control::new(&operator).watching::<ConfigMap>().debounced(DEBOUNCE).run(S03 { operator, build }).await;
}

impl Reconcile for S03 {
    async fn reconcile(&self, sample: &Sample) -> Result<()> {
        let mut declared = child::config_map(sample, "settings", Owner::Sample);
        if self.build == Build::Bug {
            for owner in declared.metadata.owner_references.iter_mut().flatten() {
                (owner.api_version, owner.kind) = ("v1".to_owned(), "ConfigMap".to_owned());
            }
        }
        child::keep(&self.operator, &declared).await?;
        status::done(&self.operator, sample).await
    }
}
