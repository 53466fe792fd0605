//! What every provider of a control plane can do.

use std::time::Duration;

use futures::future::BoxFuture;
use kube::Client;

use crate::{CollectionProof, Endpoint, Error, Exit, Identity, Kind, LocalCluster, Nodes};

/// A real Kubernetes API server and what belongs to it. Everything takes `&self`, so that runs can share one.
pub trait Cluster: Send + Sync {
    /// `local`, `k3s` or `kind`.
    fn provider(&self) -> &'static str;

    /// What the API server calls itself, such as `v1.36.3`.
    fn version(&self) -> &str;

    /// The processes, where they are processes of this machine.
    fn local(&self) -> Option<&LocalCluster> {
        None
    }

    /// How what was kept is found and removed, where something is.
    fn kept(&self) -> Option<String>;

    /// The nodes, where kubelets and pods are real.
    fn nodes(&self) -> Option<&Nodes>;

    /// The API server itself, not a proxy.
    fn endpoint(&self) -> &Endpoint;

    /// The bearer token of `identity`.
    fn token(&self, identity: Identity) -> &str;

    /// A client of `identity`, straight to the API server, that never retries on its own.
    fn client(&self, identity: Identity) -> Result<Client, Error>;

    /// Starts the built-in controllers, which reach the API server through `via` (a proxy's listener), and waits until
    /// the first of their work is seen.
    fn start_controllers<'a>(&'a self, via: &'a Endpoint) -> BoxFuture<'a, Result<(), Error>>;

    /// Restarts the controllers. Needed after installing CRDs: the garbage collector asks only every 30 s which kinds
    /// there are (`garbagecollector.go`, `Sync`).
    fn restart_controllers(&self) -> BoxFuture<'_, Result<(), Error>>;

    /// Proves that the garbage collector collects, with one dependent of each of `kinds` and a ConfigMap.
    fn prove_collection<'a>(&'a self, kinds: &'a [Kind]) -> BoxFuture<'a, Result<CollectionProof, Error>>;

    /// Waits until the namespace that a proof of collection used is gone, which proves the namespace controller. It
    /// takes more than 5 s in Kubernetes, so it is done beside other work.
    fn prove_namespace_deletion<'a>(&'a self, proof: &'a CollectionProof) -> BoxFuture<'a, Result<Duration, Error>>;

    /// A process of the control plane that has ended although nobody asked it to.
    fn alive(&self) -> Option<Exit>;

    /// Ends everything and removes what is on disk.
    fn stop(&self) -> BoxFuture<'_, Result<(), Error>>;
}
