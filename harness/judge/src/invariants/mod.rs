//! One file per invariant, each a function from a case to findings.

pub(crate) mod converges;
pub(crate) mod deletes;
pub(crate) mod heals;
pub(crate) mod legal_owners;
pub(crate) mod no_orphans;
pub(crate) mod process_health;
pub(crate) mod properties;
pub(crate) mod quiet;
pub(crate) mod steps;
