//! Control planes: where the operator under test meets a real Kubernetes API.
//!
//! Serves the spine's step *Plan → History*: the runner asks a [`Cluster`] for an API server with garbage collection
//! proven, and gets clients, tokens and the kinds to watch.
//!
//! No fake API server is a target, ever. The provider [`local`] runs upstream etcd, kube-apiserver and
//! kube-controller-manager as plain processes of an ordinary user.

pub mod assets;
mod canary;
pub mod clean;
mod client;
mod cluster;
pub mod containers;
pub mod crds;
pub mod discovery;
mod endpoint;
mod error;
mod identity;
pub mod kubeconfig;
pub mod kubelet_stub;
pub mod local;
mod pki;
mod process;
mod progress;
mod run_directory;
mod sample;

pub use canary::{CollectionProof, Unproven};
pub use client::connect;
pub use cluster::Cluster;
pub use containers::{ContainerCluster, Nodes};
pub use discovery::Kind;
pub use endpoint::Endpoint;
pub use error::Error;
pub use identity::Identity;
pub use local::{Component, Exit, LocalCluster, LocalOptions, StartTimes};
pub use pki::ServingCertificate;
pub use progress::{Progress, Quiet};
pub use run_directory::RunDirectory;
