//! What the operator says about a Sample; written only when it differs from what is there.

use k8s_openapi::jiff::{Timestamp, Unit};
use kube::{Api, ResourceExt, api::PostParams};

use crate::{
    error::Error,
    sample::{Condition, Sample, SampleStatus},
};

/// Says that everything is there.
pub(crate) async fn report(api: &Api<Sample>, sample: &Sample) -> Result<(), Error> {
    let now = Timestamp::now();
    let status = next(sample, now.round(Unit::Second).unwrap_or(now));
    if sample.status.as_ref() == Some(&status) {
        return Ok(());
    }
    let name = sample.name_any();
    let mut changed = sample.clone();
    changed.status = Some(status);
    let put = api.replace_status(&name, &PostParams::default(), &changed).await;
    put.map(drop).map_err(Error::request(format!("report the status of Sample {name}")))
}

/// The status to be; the transition time moves only with the condition's `status`.
fn next(sample: &Sample, now: Timestamp) -> SampleStatus {
    let old = sample.status.iter().flat_map(|status| &status.conditions).find(|old| old.type_ == "Ready");
    let since = old.filter(|old| old.status == "True").map(|old| old.last_transition_time.clone());
    let ready = Condition {
        type_: "Ready".to_owned(),
        status: "True".to_owned(),
        reason: "Complete".to_owned(),
        message: "all children are there".to_owned(),
        observed_generation: sample.metadata.generation,
        last_transition_time: since.unwrap_or_else(|| now.to_string()),
    };
    SampleStatus { observed_generation: sample.metadata.generation, ready: sample.spec.count, conditions: vec![ready] }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::SampleSpec;

    #[test]
    fn a_status_that_says_it_already_is_not_changed() {
        let mut sample = Sample::new("a", SampleSpec { text: "x".to_owned(), count: 2 });
        sample.metadata.generation = Some(1);
        let first = next(&sample, Timestamp::UNIX_EPOCH);
        sample.status = Some(first.clone());
        assert_eq!(next(&sample, Timestamp::MAX), first);
        sample.metadata.generation = Some(2);
        assert_eq!(next(&sample, Timestamp::MAX).observed_generation, Some(2));
    }
}
