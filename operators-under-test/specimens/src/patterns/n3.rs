//! N3: heart-beats and Events are no hot loop; a negative control.
//!
//! N1, and every 2 s it renews a Lease and tells the same Event about every Sample once more, each a new version of an
//! object. **Seen in** argo-cd#985, where a leader's lock was taken for work. **Fault.** None. **Right verdict.** Pass:
//! `quiet` does not count Leases and Events, and `noOrphans` does not count what is left of them.

use std::time::Duration;

use k8s_openapi::{
    api::{
        coordination::v1::{Lease, LeaseSpec},
        core::v1::ConfigMap,
    },
    apimachinery::pkg::apis::meta::v1::MicroTime,
    jiff::Timestamp,
};
use kube::{
    Resource,
    api::{ListParams, ObjectMeta, Patch, PatchParams},
    runtime::events::{Event, EventType, Recorder, Reporter},
};

use super::n1::N1;
use crate::{
    control::Control,
    error::{Error, Result},
    operator::Operator,
};

const NAME: &str = "specimen-n3";
const BEAT: Duration = Duration::from_secs(2);

/// Runs the specimen until the process ends.
pub(super) async fn run(operator: Operator) {
    let control = Control::new(&operator).watching::<ConfigMap>();
    tokio::join!(control.run(N1::new(operator.clone())), heart(&operator));
}

async fn heart(operator: &Operator) {
    let reporter = Reporter { controller: NAME.to_owned(), instance: None };
    let recorder = Recorder::new(operator.client(), reporter);
    let mut beat = tokio::time::interval(BEAT);
    loop {
        beat.tick().await;
        if let Err(error) = renew(operator).await {
            tracing::warn!("failed to {}", error.chain());
        }
        if let Err(error) = tell(operator, &recorder).await {
            tracing::warn!("failed to {}", error.chain());
        }
    }
}

async fn renew(operator: &Operator) -> Result<()> {
    let lease = Lease {
        metadata: ObjectMeta { name: Some(NAME.to_owned()), ..ObjectMeta::default() },
        spec: Some(LeaseSpec {
            holder_identity: Some(NAME.to_owned()),
            lease_duration_seconds: Some(15),
            renew_time: Some(MicroTime(Timestamp::now())),
            ..LeaseSpec::default()
        }),
    };
    let apply = PatchParams::apply(NAME).force();
    operator
        .api::<Lease>()
        .patch(NAME, &apply, &Patch::Apply(&lease))
        .await
        .map_err(Error::request(format!("renew Lease {NAME}")))?;
    Ok(())
}

async fn tell(operator: &Operator, recorder: &Recorder) -> Result<()> {
    let samples = operator.samples().list(&ListParams::default()).await.map_err(Error::request("list Samples"))?;
    for sample in samples.items.iter().filter(|sample| !sample.is_being_deleted()) {
        let event = Event {
            type_: EventType::Normal,
            reason: "StillThere".to_owned(),
            note: Some("the operator's heart beats".to_owned()),
            action: "Beat".to_owned(),
            secondary: None,
        };
        recorder.publish(&event, &sample.object_ref(&())).await.map_err(Error::request("tell an Event"))?;
    }
    Ok(())
}
