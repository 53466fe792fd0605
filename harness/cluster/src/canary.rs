//! Proof that the built-in controllers do their work, before anybody is blamed for orphans.
//!
//! **Per kind, as the dependent**: the garbage collector learns of a new kind only every 30 s, so a ConfigMap that is
//! collected at once says nothing about a custom resource.

use std::time::{Duration, Instant};

use futures::future::join_all;
use k8s_openapi::{
    api::{
        core::v1::{ConfigMap, Namespace},
        rbac::v1::ClusterRole,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, DynamicObject, PostParams},
};
use serde_json::{Value, json};

use crate::{Error, Kind, process::Deadline, sample::minimal_object};

const INTERVAL: Duration = Duration::from_millis(20);
/// Longer than the 30 s after which the collector asks for kinds by itself.
const COLLECTION_TIMEOUT: Duration = Duration::from_secs(60);

/// What was proven.
#[derive(Debug, Clone)]
pub struct CollectionProof {
    /// From the first request to the last collected object.
    pub took: Duration,
    /// Kinds of which an object was collected.
    pub proven: Vec<Kind>,
    /// Kinds of which no object could be made. When the controllers were started after these kinds were installed, the
    /// proof of another kind covers them: the collector waits for all its watches before it begins.
    pub unproven: Vec<Unproven>,
    /// The namespace that was used; its deletion goes on.
    pub namespace: String,
}

/// A kind of which no object could be made.
#[derive(Debug, Clone)]
pub struct Unproven {
    /// Which one.
    pub kind: Kind,
    /// The API server's objection.
    pub reason: String,
}

/// Creates an owner and a dependent of each kind, deletes the owners and waits until the dependents are gone.
pub(crate) async fn prove(client: &Client, kinds: &[Kind], timeout: Duration) -> Result<CollectionProof, Error> {
    let started = Instant::now();
    let namespace = create_namespace(client).await?;
    let config_map = Kind {
        group: String::new(),
        version: "v1".to_owned(),
        kind: "ConfigMap".to_owned(),
        plural: "configmaps".to_owned(),
        namespaced: true,
        verbs: Vec::new(),
    };
    let canary = Canary { client, namespace: &namespace, timeout: timeout.min(COLLECTION_TIMEOUT) };
    let others = kinds.iter().filter(|kind| kind.plural != config_map.plural || !kind.group.is_empty());
    let tried = join_all(std::iter::once(&config_map).chain(others).map(|kind| canary.fly(kind))).await;
    let took = started.elapsed();

    delete_namespace(client, &namespace).await?;
    let mut proof = CollectionProof { took, proven: Vec::new(), unproven: Vec::new(), namespace };
    for outcome in tried {
        match outcome? {
            Outcome::Collected(kind) => proof.proven.push(kind),
            Outcome::NotMade(unproven) => proof.unproven.push(unproven),
        }
    }
    Ok(proof)
}

/// Waits until the proof's namespace is gone and returns how long the wait was.
pub(crate) async fn prove_namespace_deletion(
    client: &Client,
    proof: &CollectionProof,
    timeout: Duration,
) -> Result<Duration, Error> {
    let deadline = Deadline::after(timeout);
    let namespaces: Api<Namespace> = Api::all(client.clone());
    loop {
        let found = namespaces.get_opt(&proof.namespace).await;
        let found = found.map_err(|source| Error::kube(format!("read the namespace {}", proof.namespace), source))?;
        let Some(namespace) = found else { return Ok(deadline.elapsed()) };
        if deadline.is_over() {
            let status = serde_json::to_string(&namespace.status).unwrap_or_default();
            let what = format!("the namespace {} to be gone", proof.namespace);
            return Err(Error::Timeout { what, after: deadline.limit(), log_tail: status });
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

enum Outcome {
    Collected(Kind),
    NotMade(Unproven),
}

struct Canary<'a> {
    client: &'a Client,
    namespace: &'a str,
    timeout: Duration,
}

// === impl Canary ===

impl Canary<'_> {
    async fn fly(&self, kind: &Kind) -> Result<Outcome, Error> {
        let body = self.sample(kind).await?;
        let name = format!("canary-{}", kind.plural);
        let owner = self.create_owner(kind, &name).await?;
        let dependents = self.dependents(kind);
        let dependent = dependent(kind, &name, body, &owner);
        if let Err(source) = dependents.create(&PostParams::default(), &dependent).await {
            owner.delete(self).await?;
            return match source {
                // A webhook that does not answer is a 500.
                kube::Error::Api(status) if kind.kind != "ConfigMap" => {
                    Ok(Outcome::NotMade(Unproven { kind: kind.clone(), reason: status.message.clone() }))
                }
                source => Err(Error::kube(format!("create a canary {}", kind.kind), source)),
            };
        }
        owner.delete(self).await?;
        self.wait_collected(kind, &dependents, &name).await?;
        Ok(Outcome::Collected(kind.clone()))
    }

    /// What to create beside the metadata.
    async fn sample(&self, kind: &Kind) -> Result<Value, Error> {
        if kind.group.is_empty() {
            return Ok(json!({}));
        }
        let crds: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        let name = format!("{}.{}", kind.plural, kind.group);
        let crd = crds.get_opt(&name).await.map_err(|source| Error::kube(format!("read the CRD {name}"), source))?;
        // Built in.
        let Some(crd) = crd else { return Ok(json!({})) };
        let version = crd.spec.versions.into_iter().find(|version| version.name == kind.version);
        let schema = version.and_then(|version| version.schema?.open_api_v3_schema);
        let schema = serde_json::to_value(schema).unwrap_or_default();
        Ok(Value::Object(minimal_object(&schema)))
    }

    /// A cluster-scoped dependent needs a cluster-scoped owner: with another it is never collected.
    async fn create_owner(&self, kind: &Kind, name: &str) -> Result<Owner, Error> {
        let failed = |source| Error::kube("create a canary's owner", source);
        if kind.namespaced {
            let mut owner = ConfigMap::default();
            owner.metadata.name = Some(format!("{name}-owner"));
            let created = self.config_maps().create(&PostParams::default(), &owner).await.map_err(failed)?;
            Ok(Owner::ConfigMap { name: created.name_any(), uid: created.uid().unwrap_or_default() })
        } else {
            let mut owner = ClusterRole::default();
            owner.metadata.name = Some(format!("{}-{name}-owner", self.namespace));
            let created = self.cluster_roles().create(&PostParams::default(), &owner).await.map_err(failed)?;
            Ok(Owner::ClusterRole { name: created.name_any(), uid: created.uid().unwrap_or_default() })
        }
    }

    async fn wait_collected(&self, kind: &Kind, dependents: &Api<DynamicObject>, name: &str) -> Result<(), Error> {
        let deadline = Deadline::after(self.timeout);
        loop {
            let found = dependents.get_metadata_opt(name).await;
            let found = found.map_err(|source| Error::kube(format!("read a canary {}", kind.kind), source))?;
            if found.is_none() {
                return Ok(());
            }
            if deadline.is_over() {
                return Err(Error::NotCollected { kind: kind.kind.clone(), after: deadline.limit() });
            }
            tokio::time::sleep(INTERVAL).await;
        }
    }

    fn dependents(&self, kind: &Kind) -> Api<DynamicObject> {
        let resource = kind.api_resource();
        if kind.namespaced {
            Api::namespaced_with(self.client.clone(), self.namespace, &resource)
        } else {
            Api::all_with(self.client.clone(), &resource)
        }
    }

    fn config_maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), self.namespace)
    }

    fn cluster_roles(&self) -> Api<ClusterRole> {
        Api::all(self.client.clone())
    }
}

/// What the dependent hangs on.
enum Owner {
    ConfigMap { name: String, uid: String },
    ClusterRole { name: String, uid: String },
}

// === impl Owner ===

impl Owner {
    fn reference(&self) -> Value {
        match self {
            Self::ConfigMap { name, uid } => json!({"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid}),
            Self::ClusterRole { name, uid } => {
                json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "name": name, "uid": uid})
            }
        }
    }

    async fn delete(&self, canary: &Canary<'_>) -> Result<(), Error> {
        let background = DeleteParams::background();
        let deleted = match self {
            Self::ConfigMap { name, .. } => canary.config_maps().delete(name, &background).await.map(drop),
            Self::ClusterRole { name, .. } => canary.cluster_roles().delete(name, &background).await.map(drop),
        };
        deleted.map_err(|source| Error::kube("delete a canary's owner", source))
    }
}

fn dependent(kind: &Kind, name: &str, body: Value, owner: &Owner) -> DynamicObject {
    let mut object = DynamicObject::new(name, &kind.api_resource()).data(body);
    let reference = serde_json::from_value(owner.reference()).expect("all four required fields are given");
    object.metadata.owner_references = Some(vec![reference]);
    object
}

async fn create_namespace(client: &Client) -> Result<String, Error> {
    let mut namespace = Namespace::default();
    namespace.metadata.generate_name = Some("spiritlevel-canary-".to_owned());
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let created = namespaces.create(&PostParams::default(), &namespace).await;
    Ok(created.map_err(|source| Error::kube("create the canaries' namespace", source))?.name_any())
}

async fn delete_namespace(client: &Client, name: &str) -> Result<(), Error> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let deleted = namespaces.delete(name, &DeleteParams::default()).await;
    deleted.map(drop).map_err(|source| Error::kube("delete the canaries' namespace", source))
}
