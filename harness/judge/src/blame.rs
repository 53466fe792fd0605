//! Which fault or step plausibly caused a finding.
//!
//! The last fault that fired before the violating moment on something related; else the only fault that fired; else the
//! last step that stopped, restarted or disturbed the operator or its children. Faults whose violations fail the run go
//! before others: a violation is one of robustness only if nothing legal explains it.

use crate::{
    case::{Case, FaultLife, Firing},
    draft::About,
    wording,
};
use spiritlevel_model::{Uid, Verb, fault::At};
use std::{collections::BTreeSet, fmt::Write as _};

/// The cause of a finding, as far as it can be told.
pub(crate) struct Blame<'c, 'a> {
    /// The fault.
    pub(crate) fault: Option<&'c FaultLife<'a>>,
    /// The step.
    pub(crate) step: Option<String>,
    /// The step in a line.
    pub(crate) step_line: Option<String>,
    seq: u64,
}

/// Operations that disturb the operator or its children.
const DISTURBING: [&str; 11] = [
    "stopOperator",
    "restartOperator",
    "drift",
    "killPod",
    "duplicateReconcile",
    "restartApiserver",
    "freezeEtcd",
    "restore",
    "load",
    "revoke",
    "webhook",
];

// === impl Case ===

impl<'a> Case<'a> {
    /// Who is to blame.
    pub(crate) fn blame<'c>(&'c self, about: &About) -> Blame<'c, 'a> {
        let fault = if about.step.is_some() { None } else { self.blamed_fault(about) };
        let before = |operation: &str| DISTURBING.contains(&operation);
        let last = self.steps.iter().rev().find(|s| s.seq < about.seq && before(s.operation));
        let deletes =
            |s: &&crate::case::StepLife<'_>| Some(&s.called) == about.step.as_ref() && s.operation == "delete";
        let named = self.steps.iter().rev().find(deletes);
        let step = if fault.is_some() { None } else { named.or(last) };
        Blame {
            fault,
            step: about.step.clone().or_else(|| step.map(|s| s.called.clone())),
            step_line: about.step_line.clone().or_else(|| {
                step.map(|s| match about.step {
                    Some(_) => {
                        format!("{} deleted the subject at {} while no operator ran", s.called, wording::at(s.at_ms))
                    }
                    None => s.line(),
                })
            }),
            seq: about.seq,
        }
    }

    fn blamed_fault(&self, about: &About) -> Option<&FaultLife<'a>> {
        let fired = |f: &&FaultLife<'a>| !f.is_mark() && f.firings.iter().any(|x| x.seq < about.seq);
        let all: Vec<&FaultLife<'a>> = self.faults.iter().filter(fired).collect();
        let related = self.related(about);
        let explaining: Vec<&FaultLife<'a>> = all
            .iter()
            .copied()
            .filter(|f| f.firings.iter().any(|x| x.seq < about.seq && self.is_related(f, x, &related)))
            .collect();
        let last = |f: &&&FaultLife<'a>| f.firings.iter().rev().find(|x| x.seq < about.seq).map(|x| x.seq);
        let gating = explaining.iter().filter(|f| f.gates(self.plan)).max_by_key(last);
        let any = explaining.iter().max_by_key(last);
        match (gating.or(any), all.as_slice()) {
            (Some(fault), _) => Some(fault),
            (None, [only]) => Some(only),
            _ => None,
        }
    }

    /// The objects of the finding, their subjects and all that belongs to those.
    fn related(&self, about: &About) -> BTreeSet<Uid> {
        let subjects: BTreeSet<&Uid> = about.objects.iter().filter_map(|o| self.tie(o)).map(|t| &t.subject).collect();
        let belongs = |uid: &&Uid| self.tie(uid).is_some_and(|t| subjects.contains(&t.subject));
        let below = self.objects.keys().filter(belongs);
        below.chain(&about.objects).cloned().collect()
    }

    fn is_related(&self, fault: &FaultLife<'a>, firing: &Firing, related: &BTreeSet<Uid>) -> bool {
        let Some(x) = firing.request.and_then(|id| self.exchanges.get(&id)) else { return true };
        let info = &x.request.info;
        let lives = || related.iter().filter_map(|uid| self.objects.get(uid));
        if fault.is_ambient() || related.is_empty() {
            return true;
        }
        let of_resource = |l: &&crate::case::Life| info.resource.as_ref() == Some(&l.resource);
        match (&info.name, info.verb) {
            (None, _) | (_, Verb::List | Verb::Watch) => {
                info.resource.is_none() || self.subject_resource() == info.resource || lives().any(|l| of_resource(&l))
            }
            // An object that was never made has no version: its name tells.
            (Some(name), _) => lives()
                .any(|l| (of_resource(&l) && &l.object.name == name) || crate::case::is_token(&l.object.name, name)),
        }
    }
}

// === impl Blame ===

impl Blame<'_, '_> {
    /// `crash fired once, at +2.33 s on request 41, after the write was committed (always legal)`.
    pub(crate) fn fault_line(&self, case: &Case<'_>) -> Option<String> {
        let fault = self.fault?;
        let before: Vec<&Firing> = fault.firings.iter().filter(|f| f.seq < self.seq).collect();
        let first = before.first()?;
        let write = |f: &&Firing| {
            f.request.and_then(|id| case.exchanges.get(&id)).is_some_and(|x| x.request.info.verb.is_write())
        };
        let what = if write(first) { "write" } else { "request" };
        let mut line = format!("{} fired {}", fault.declared.name, wording::times(before.len()));
        line.push_str(if before.len() == 1 { ", at " } else { ", first at " });
        line.push_str(&wording::at(first.at_ms));
        if let Some(request) = first.request {
            let _ = write!(line, " on request {request}");
        }
        match first.at {
            Some(At::BeforeSend) if !fault.declared.action.acts_on_streams() => {
                let _ = write!(line, ", before the {what} was sent");
            }
            Some(At::AfterCommit) => {
                let _ = write!(line, ", after the {what} was committed");
            }
            Some(At::AfterReply) => line.push_str(", after the reply was delivered"),
            _ => {}
        }
        Some(format!("{line} ({})", fault.legality()))
    }
}
