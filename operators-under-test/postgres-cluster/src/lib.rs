//! The reference operator: one PostgreSQL cluster per `PostgresCluster`, level-triggered throughout.
//!
//! Read in this order: [`crd`] (what is wanted), [`children`] (what it is made of), [`observed`] (what is there),
//! [`plan`] (the next step), [`reconcile`] (the thin edge that takes it). `README.md` tells why each rule is there.

pub mod backoff;
pub mod caches;
pub mod children;
pub mod cli;
pub mod controller;
pub mod crd;
pub mod drift;
pub mod error;
pub mod lease;
pub mod observed;
pub mod ownership;
pub mod password;
pub mod perform;
pub mod plan;
pub mod primary;
pub mod quantity;
pub mod reconcile;
pub mod status;
