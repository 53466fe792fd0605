//! S17: a comparison with an object without its defaults.
//!
//! **Bug.** The Service `NAME-port` is compared with its declaration field by field. The API server has filled in
//! `spec.type`, `spec.ports[0].protocol` and others, so the two always differ and the Service is written each time it is
//! looked at; each write is an event, and each event a look. As operators do who want consumers to notice a change, each
//! write flips an annotation between `blue` and `green`, so every one of them is a new version. **Seen in**
//! prometheus-operator#5067, OT-CONTAINER-KIT/redis-operator#1321, cloudnative-pg#3623. **Fault.** None. **Right
//! verdict.** Fail `quiet`: the Service, and the path `metadata.annotations["specimens.example.com/colour"]` that flips.
//! **Fixed.** Only declared fields are compared.

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use kube::ResourceExt;
use serde_json::json;

use super::Build;
use crate::{
    child::{self, Owner},
    control::{Control, Reconcile},
    error::Result,
    operator::Operator,
    sample::Sample,
    status,
};

const COLOUR: &str = "specimens.example.com/colour";
/// Keeps the loop of the bug build at ten turns a second.
const DEBOUNCE: Duration = Duration::from_millis(100);

struct S17 {
    operator: Operator,
    build: Build,
}

/// Runs the specimen until the process ends.
pub(super) async fn run(operator: Operator, build: Build) {
    Control::new(&operator).watching::<Service>().debounced(DEBOUNCE).run(S17 { operator, build }).await;
}

impl Reconcile for S17 {
    async fn reconcile(&self, sample: &Sample) -> Result<()> {
        let declared = service(sample);
        match child::read::<Service>(&self.operator, &declared.name_any()).await? {
            None => child::create(&self.operator, &declared).await?,
            Some(live) if self.is_current(&live, &declared)? => {}
            Some(live) => {
                let mut fields = serde_json::to_value(&declared)?;
                fields["metadata"]["annotations"] = json!({ COLOUR: other_colour(&live) });
                child::change(&self.operator, &live, fields).await?;
            }
        }
        status::done(&self.operator, sample).await
    }
}

impl S17 {
    fn is_current(&self, live: &Service, declared: &Service) -> Result<bool> {
        Ok(match self.build {
            Build::Bug => live.spec == declared.spec,
            Build::Fixed => child::covers(&serde_json::to_value(&live.spec)?, &serde_json::to_value(&declared.spec)?),
        })
    }
}

/// A headless Service without a selector: nothing else comes of it.
fn service(sample: &Sample) -> Service {
    let port = ServicePort { name: Some("sample".to_owned()), port: 80, ..ServicePort::default() };
    Service {
        metadata: kube::api::ObjectMeta {
            annotations: Some(BTreeMap::from([(COLOUR.to_owned(), "blue".to_owned())])),
            ..child::metadata(sample, "port", Owner::Sample)
        },
        spec: Some(ServiceSpec {
            cluster_ip: Some("None".to_owned()),
            ports: Some(vec![port]),
            ..ServiceSpec::default()
        }),
        ..Service::default()
    }
}

fn other_colour(live: &Service) -> &'static str {
    match live.annotations().get(COLOUR).map(String::as_str) {
        Some("blue") => "green",
        _ => "blue",
    }
}
