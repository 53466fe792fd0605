//! A finding while it is written: what is wrong, and about what, so that blame can be laid.

use crate::{
    case::{Case, FaultLife, StepLife},
    wording,
};
use spiritlevel_model::{
    ObjectRef, RequestId, Uid,
    fault::Legality,
    finding::{Detail, Finding, FindingClass},
};
use std::collections::BTreeSet;

/// A finding under construction.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    finding: Finding,
    about: About,
}

/// What a finding is about, for the search of its cause.
#[derive(Clone, Debug, Default)]
pub(crate) struct About {
    /// Place of the violating moment: what comes later explains nothing.
    pub(crate) seq: u64,
    /// The objects concerned; what belongs to the same subjects is related.
    pub(crate) objects: BTreeSet<Uid>,
    /// The step that is known to be the cause.
    pub(crate) step: Option<String>,
    /// What that step did, where it did not delete the subject.
    pub(crate) step_line: Option<String>,
    /// The step that found it, whatever the cause.
    pub(crate) found_in: Option<String>,
}

// === impl Draft ===

impl Draft {
    /// A violation at the moment (`seq`, `at_ms`).
    pub(crate) fn new(invariant: &str, message: String, cause: String, (seq, at_ms): (u64, f64)) -> Self {
        let finding = Finding {
            invariant: invariant.into(),
            class: FindingClass::Violation,
            object: None,
            message,
            details: Vec::new(),
            cause,
            fault: None,
            step: None,
            legality: None,
            request: None,
            at_ms,
        };
        Self { finding, about: About { seq, ..About::default() } }
    }

    /// Names the object.
    pub(crate) fn object(mut self, object: &ObjectRef) -> Self {
        self.about.objects.extend(object.uid.clone());
        self.finding.object = Some(object.clone());
        self
    }

    /// Another object that the finding is about.
    pub(crate) fn about(mut self, uid: &Uid) -> Self {
        self.about.objects.insert(uid.clone());
        self
    }

    /// The request that did it.
    pub(crate) fn request(mut self, request: Option<RequestId>) -> Self {
        self.finding.request = request;
        self
    }

    /// Counts otherwise than as a violation.
    pub(crate) fn class(mut self, class: FindingClass) -> Self {
        self.finding.class = class;
        self
    }

    /// A further line.
    pub(crate) fn detail(mut self, key: &str, text: impl Into<String>) -> Self {
        self.finding.details.push(Detail { key: key.into(), text: text.into() });
        self
    }

    /// A further line, where there is one.
    pub(crate) fn maybe(self, key: &str, text: Option<String>) -> Self {
        match text {
            Some(text) => self.detail(key, text),
            None => self,
        }
    }

    /// The step is known to be the cause.
    pub(crate) fn step(mut self, step: Option<String>) -> Self {
        self.about.step = step;
        self
    }

    /// This very operation is known to be the cause; others may have the same name.
    pub(crate) fn caused_by(mut self, step: &StepLife<'_>) -> Self {
        self.about.step_line = Some(step.line());
        self.step(Some(step.called.clone()))
    }

    /// The step that found it; a fault may still be to blame.
    pub(crate) fn found_in(mut self, step: &str) -> Self {
        self.about.found_in = Some(step.into());
        self
    }

    /// Lays the blame and is done.
    pub(crate) fn finish(mut self, case: &Case<'_>) -> Finding {
        let blame = case.blame(&self.about);
        if let Some(line) = blame.fault_line(case) {
            self = self.detail("fault", line);
        }
        if let (Some(line), None) = (&blame.step_line, &self.about.found_in) {
            self = self.detail("step", line.clone());
        }
        let restore = case.illegal_restore(self.about.seq).filter(|_| self.finding.class == FindingClass::Violation);
        if let Some(epoch) = restore {
            self = self.detail("restore", wording::restore(epoch));
        }
        let (mut finding, found_in) = (self.finding, self.about.found_in);
        finding.fault = blame.fault.map(|f| f.declared.name.clone());
        finding.legality = blame.fault.map(FaultLife::legality);
        finding.step = found_in.or(blame.step);
        if restore.is_some() {
            finding.class = FindingClass::Robustness;
            finding.legality = Some(Legality::Never);
        }
        if finding.class == FindingClass::Violation && blame.fault.is_some_and(|f| !f.gates(case.plan)) {
            finding.class = FindingClass::Robustness;
        }
        finding
    }
}
