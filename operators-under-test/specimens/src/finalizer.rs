//! The finalizer: a Sample stays until its clean-up is done.

use kube::{
    ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::json;

use crate::{
    error::{Error, Result},
    operator::Operator,
    sample::Sample,
};

const FINALIZER: &str = "specimens.example.com/clean-up";

/// Adds the finalizer if it is missing. To be done before the first child is made.
pub(crate) async fn hold(operator: &Operator, sample: &Sample) -> Result<()> {
    if is_held(sample) {
        return Ok(());
    }
    let mut finalizers = sample.finalizers().to_vec();
    finalizers.push(FINALIZER.to_owned());
    set(operator, sample, &finalizers).await
}

/// Removes the finalizer. To be done after the last child is gone.
pub(crate) async fn release(operator: &Operator, sample: &Sample) -> Result<()> {
    if !is_held(sample) {
        return Ok(());
    }
    let others: Vec<_> = sample.finalizers().iter().filter(|finalizer| *finalizer != FINALIZER).cloned().collect();
    set(operator, sample, &others).await
}

/// Whether the clean-up is still to be done.
pub(crate) fn is_held(sample: &Sample) -> bool {
    sample.finalizers().iter().any(|finalizer| finalizer == FINALIZER)
}

async fn set(operator: &Operator, sample: &Sample, finalizers: &[String]) -> Result<()> {
    let name = sample.name_any();
    // With the version that was read: otherwise somebody else's finalizer could get lost.
    let patch = json!({"metadata": {"resourceVersion": sample.resource_version(), "finalizers": finalizers}});
    let tried = format!("set the finalizers of Sample {name}");
    operator
        .samples()
        .patch(&name, &PatchParams::default(), &Patch::Merge(patch))
        .await
        .map_err(Error::request(tried))?;
    Ok(())
}
