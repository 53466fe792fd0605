//! Playing a scenario's steps: each operation begins, is done or fails, and the history says which.

mod assertion;
mod awaits;
mod control_plane;
mod gather;
mod load;
mod manifests;
mod nodes;
mod operator;
mod permissions;
mod play;
mod pods;
mod programs;
mod snapshot;
mod undo;
mod webhook;

pub(crate) use play::{Failure, Play};
pub(crate) use undo::{Undo, undo_all};
