//! The kubelet stub: scheduler, kubelet and volume provisioner of a control plane without nodes.
//!
//! Serves the spine's step *Plan → History* on the provider `local`: workloads become Ready, complete, restart and stop
//! as a plan's kubelet rules say, by writes to objects only. No container ever runs.
//!
//! One stub serves many runs, each in its own namespaces with its own [`KubeletRules`]. A pure core (`world`, `pod`,
//! `volume`) says what is next for each object, from what the watches delivered; a thin edge (`driver`) does it.
//! **Every write changes something**: each is attributed to the stub in a run's history, so there are no heartbeats, no
//! repeated statuses and no events. What a real node does and the stub does not: mounts are not checked (a missing
//! ConfigMap or Secret stops no pod), probes are not run, affinity and resources are ignored.

mod action;
mod addresses;
mod cache;
mod conditions;
mod container;
mod driver;
mod node;
mod perform;
mod pod;
mod quantity;
mod rules;
mod status;
mod stub;
mod volume;
mod watch;
mod world;

pub use node::{NAME as NODE, PROVISIONER, STORAGE_CLASS};
pub use rules::{Completion, KubeletRules, PodMatch, PodPhase, PodState};
pub use stub::KubeletStub;
