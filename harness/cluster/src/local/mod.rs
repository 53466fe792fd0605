//! The provider `local`: upstream etcd, kube-apiserver and kube-controller-manager as plain processes of an ordinary
//! user, without containers.

mod api_server;
mod control_plane;
mod controller_manager;
mod etcd;
mod options;
pub(crate) mod ports;
mod snapshot;

pub use crate::process::{Component, Exit};
pub use control_plane::{LocalCluster, StartTimes};
pub use options::{Controllers, LocalOptions};
