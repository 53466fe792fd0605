//! `spiritlevel replay`.

use super::run::perform;
use crate::{
    Error, Exit,
    args::{Playing, Replay},
    invocation::Planned,
    recorded,
    stop::Stop,
    stretch::stretch,
};
use serde_json::json;
use spiritlevel_model::plan::Plan;
use std::path::Path;

/// Runs a recorded plan again.
pub(super) async fn replay(args: Replay, stop: &Stop) -> Result<Exit, Error> {
    let recorded = recorded::plan(&args.plan)?;
    if !Path::new(&recorded.suite_dir).join(spiritlevel_runner::project::SUITE_FILE).is_file() {
        return Err(Error::usage(
            format!("the plan's suite is not here: there is no {}/spiritlevel.yaml", recorded.suite_dir),
            "paths in a plan are relative to the folder in which `spiritlevel run` was started; change to it",
        ));
    }
    let mut planned = Vec::new();
    for repetition in 0..args.repeat {
        let mut plan = elsewhere(&recorded, repetition)?;
        stretch(&mut plan, args.timeout_scale);
        planned.push(Planned { plan, file: None });
    }
    let playing = Playing {
        jobs: 4,
        fail_fast: false,
        timeout_scale: args.timeout_scale,
        deadline: None,
        report_dir: args.report_dir,
        output: args.output,
        verbose: true,
    };
    perform(planned, &playing, false, stop).await
}

/// The same plan in other namespaces: the recorded ones may still be there, on a cluster that outlives its runs.
fn elsewhere(recorded: &Plan, repetition: u32) -> Result<Plan, Error> {
    let old = &recorded.namespace;
    let stem = old.rsplit_once('-').map_or(old.as_str(), |(stem, _)| stem);
    let new = format!("{stem}-{:06x}", (u64::from(std::process::id()) * 64 + u64::from(repetition)) & 0x00ff_ffff);
    // The name has been put in wherever the scenario says `($namespace)`; its suffix makes it unmistakable.
    let text = json!(recorded).to_string().replace(old.as_str(), &new);
    let mut plan: Plan = serde_json::from_str(&text)
        .map_err(|e| Error::Malformed { path: "plan.yaml".into(), message: e.to_string() })?;
    plan.repetition = repetition;
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use super::elsewhere;
    use crate::recorded::tests::orphan;
    use serde_json::json;

    #[test]
    fn a_plan_is_the_same_but_for_its_namespaces() {
        let recorded = orphan();
        let (first, second) = (elsewhere(&recorded, 0).expect("a plan"), elsewhere(&recorded, 1).expect("a plan"));
        assert!(first.namespace != recorded.namespace && first.namespace != second.namespace);
        assert_eq!(first.operator_namespace, format!("{}-system", first.namespace));
        assert!(first.process.command.contains(&first.namespace), "{:?}", first.process.command);
        let back = json!(first).to_string().replace(&first.namespace, &recorded.namespace);
        assert_eq!(back, json!(recorded).to_string());
    }
}
