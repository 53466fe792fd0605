//! What every specimen knows: a client and the namespace it serves.

use k8s_openapi::NamespaceResourceScope;
use kube::{Api, Client, Config, Resource};

use crate::{
    error::{Error, Result},
    sample::Sample,
};

/// A client and the namespace it is used in.
#[derive(Clone)]
pub(crate) struct Operator {
    client: Client,
    namespace: String,
}

// === impl Operator ===

impl Operator {
    /// Connects with the service account of the pod, else with a kubeconfig.
    pub(crate) async fn connect(namespace: String) -> Result<Self> {
        let mut config = match Config::incluster() {
            Ok(config) => config,
            Err(_) => Config::infer().await.map_err(Error::Config)?,
        };
        // How an error is met is what a specimen is about: nothing is tried again out of its sight.
        config.default_retry = false;
        Ok(Self { client: Client::try_from(config).map_err(Error::Client)?, namespace })
    }

    /// The objects of kind `K` in the namespace.
    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// The Samples in the namespace.
    pub(crate) fn samples(&self) -> Api<Sample> {
        self.api()
    }

    /// The client itself.
    pub(crate) fn client(&self) -> Client {
        self.client.clone()
    }

    /// The namespace served.
    pub(crate) fn namespace(&self) -> &str {
        &self.namespace
    }
}
