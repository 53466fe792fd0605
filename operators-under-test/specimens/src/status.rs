//! What an operator says about a Sample; written only when it differs from what is there.

use k8s_openapi::jiff::{Timestamp, Unit};
use kube::{
    ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::json;

use crate::{
    error::{Error, Result},
    operator::Operator,
    sample::{Condition, Phase, Sample, SampleStatus},
};

/// Whether a Sample is as it should be.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ready {
    /// Everything that the current generation asks for is there.
    Yes,
    /// Something is missing: the reason as one word, and the message for people.
    No(&'static str, &'static str),
}

/// Says that everything is there.
pub(crate) async fn done(operator: &Operator, sample: &Sample) -> Result<()> {
    report(operator, sample, Phase::Done, Ready::Yes).await
}

/// Says how far the work has come for the generation that was read.
pub(crate) async fn report(operator: &Operator, sample: &Sample, phase: Phase, ready: Ready) -> Result<()> {
    let now = Timestamp::now().round(Unit::Second).unwrap_or_else(|_| Timestamp::now()).to_string();
    let status = next(sample, phase, ready, now);
    if sample.status.as_ref() == Some(&status) {
        return Ok(());
    }
    let name = sample.name_any();
    let patch = Patch::Merge(json!({"status": status}));
    let tried = format!("report the status of Sample {name}");
    operator.samples().patch_status(&name, &PatchParams::default(), &patch).await.map_err(Error::request(tried))?;
    Ok(())
}

/// The status to be; the transition time moves only with the condition's `status`.
fn next(sample: &Sample, phase: Phase, ready: Ready, now: String) -> SampleStatus {
    let (status, reason, message) = match ready {
        Ready::Yes => ("True", "Done", "all children are there"),
        Ready::No(reason, message) => ("False", reason, message),
    };
    let old = sample.status.iter().flat_map(|status| &status.conditions).find(|old| old.type_ == "Ready");
    let last_transition_time = match old {
        Some(old) if old.status == status => old.last_transition_time.clone(),
        _ => now,
    };
    let condition = Condition {
        type_: "Ready".to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        observed_generation: sample.metadata.generation,
        last_transition_time,
    };
    SampleStatus {
        observed_generation: sample.metadata.generation,
        phase,
        conditions: vec![condition],
        reconciles: sample.status.as_ref().and_then(|status| status.reconciles),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::SampleSpec;

    #[test]
    fn the_transition_time_moves_with_the_condition_only() {
        let mut sample = Sample::new("a", SampleSpec { text: "x".into(), count: 1 });
        sample.metadata.generation = Some(1);
        let at = |sample: &Sample, ready, now: &str| next(sample, Phase::Done, ready, now.to_owned());

        sample.status = Some(at(&sample, Ready::Yes, "t1"));
        assert_eq!(at(&sample, Ready::Yes, "t2"), at(&sample, Ready::Yes, "t3"), "nothing changed");
        let failed = at(&sample, Ready::No("Missing", "a child is missing"), "t2");
        assert_eq!(
            (failed.conditions[0].status.as_str(), failed.conditions[0].last_transition_time.as_str()),
            ("False", "t2")
        );
        sample.metadata.generation = Some(2);
        assert_eq!(at(&sample, Ready::Yes, "t2").observed_generation, Some(2));
    }
}
