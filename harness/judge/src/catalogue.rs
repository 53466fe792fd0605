//! The invariants there are.

/// An invariant as `spiritlevel invariants` lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Invariant {
    /// As in scenarios and findings.
    pub name: &'static str,
    /// Its short code.
    pub code: &'static str,
    /// What must hold.
    pub meaning: &'static str,
    /// Whether it is judged when nothing is said; `false` for those that are planned, or need an expression.
    pub on_by_default: bool,
    /// Whether this version judges it.
    pub available: bool,
}

/// All of them, those of this version first.
pub fn all() -> &'static [Invariant] {
    &ALL
}

const fn on(name: &'static str, code: &'static str, meaning: &'static str) -> Invariant {
    Invariant { name, code, meaning, on_by_default: true, available: true }
}

const fn own(name: &'static str, code: &'static str, meaning: &'static str) -> Invariant {
    Invariant { name, code, meaning, on_by_default: false, available: true }
}

const fn planned(name: &'static str, code: &'static str, meaning: &'static str) -> Invariant {
    Invariant { name, code, meaning, on_by_default: false, available: false }
}

static ALL: [Invariant; 16] = [
    on("converges", "CONV", "after heal every subject gets ready for its current generation, within T"),
    on(
        "quiet",
        "QUIET",
        "at rest the operator writes nothing, and a restart or an event that tells nothing new is no reason to",
    ),
    on("heals", "HEAL", "a child that somebody else deletes or changes comes back"),
    on("noOrphans", "ORPH", "after a subject is gone nothing stays that belonged to it"),
    on(
        "legalOwners",
        "REF",
        "every ownerReference that the operator writes resolves, by uid, name, kind and namespace",
    ),
    on("deletes", "FIN", "the deletion of a subject ends"),
    on("processHealth", "PROC", "the operator neither crashes nor sits alive and idle"),
    own("always", "ALWAYS", "the author's CEL holds for every object version"),
    own("never", "NEVER", "the author's CEL holds for no object version"),
    own("eventually", "EVENTUALLY", "the author's CEL holds at the end"),
    planned("noLiveLoss", "LIVE", "no live or retained object is deleted or replaced, checked on every write"),
    planned("unique", "UNIQ", "there is at most one child per role"),
    planned("truthfulStatus", "STAT", "the status never claims what is not so"),
    planned(
        "singleWriter",
        "ONE",
        "no replica writes after another one has the lease; no two writers fight over a field",
    ),
    planned("foreign", "FOREIGN", "objects of others keep their content and uid"),
    planned("sameEnd", "END", "the final objects equal those of two fault-free runs"),
];

#[cfg(test)]
mod tests {
    use super::all;
    use std::collections::BTreeSet;

    #[test]
    fn names_and_codes_are_unique_and_what_is_on_is_available() {
        let names: BTreeSet<&str> = all().iter().flat_map(|i| [i.name, i.code]).collect();
        assert_eq!(names.len(), all().len() * 2);
        assert!(all().iter().all(|i| i.available || !i.on_by_default));
    }
}
