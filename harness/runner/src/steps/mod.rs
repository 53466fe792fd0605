//! Playing a scenario's steps: each operation begins, is done or fails, and the history says which.

mod assertion;
mod awaits;
mod gather;
mod manifests;
mod nodes;
mod operator;
mod play;
mod pods;
mod programs;

pub(crate) use play::{Failure, Play};
