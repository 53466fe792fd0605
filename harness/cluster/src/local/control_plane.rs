//! The three processes as one: started in order, watched, stopped in the reverse order.

use std::{
    path::{Path, PathBuf},
    sync::{Mutex as StdMutex, atomic::AtomicU32},
    time::{Duration, Instant},
};

use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::{Api, Client};
use nix::sys::signal::Signal;
use tokio::sync::Mutex;

use super::{
    LocalOptions,
    api_server::ApiServerStart,
    controller_manager::{self, ControllerManagerFiles},
    etcd::{Etcd, EtcdStart},
};
use crate::{
    Cluster, CollectionProof, Component, Endpoint, Error, Exit, Identity, Kind, Nodes, Progress, RunDirectory,
    assets::{self, Binaries, Sources},
    canary, clean, connect,
    identity::Tokens,
    kubeconfig,
    pki::Pki,
    process::{Deadline, Process},
};

/// The first address of `--service-cluster-ip-range`: the Service `default/kubernetes`.
const API_SERVICE_IP: &str = "10.0.0.1";
/// Long enough for a clean end, short enough not to matter: nothing that they would still write is kept.
pub(super) const GRACE: Duration = Duration::from_secs(3);
/// They hold no state, and what they were writing they will write again.
pub(super) const CONTROLLERS_GRACE: Duration = Duration::from_millis(200);

/// How long each phase of the start took; a phase that has not happened yet is zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StartTimes {
    /// From nothing to a healthy etcd.
    pub etcd: Duration,
    /// From then to a ready API server.
    pub api_server: Duration,
    /// From the call of `start_controllers` to the first object that a controller made.
    pub controllers: Duration,
    /// From the call of `prove_collection` to its proof.
    pub collection: Duration,
}

impl StartTimes {
    /// All phases together.
    pub fn total(&self) -> Duration {
        self.etcd + self.api_server + self.controllers + self.collection
    }
}

/// A running local control plane. Dropping it kills its processes; [`Cluster::stop`] also waits for their end.
pub struct LocalCluster {
    // Declared before the directory: the processes go first.
    pub(super) controller_manager: Mutex<Option<Process>>,
    api_server: Mutex<Option<Process>>,
    pub(super) etcd: Mutex<Option<Process>>,
    pub(super) etcd_start: EtcdStart,
    /// How often it was restored: each has a data folder of its own.
    pub(super) restores: AtomicU32,
    pub(super) sources: Sources,
    pub(super) api_server_start: ApiServerStart,
    controllers: ControllerManagerFiles,
    endpoint: Endpoint,
    tokens: Tokens,
    times: StdMutex<StartTimes>,
    pub(super) start_timeout: Duration,
    pub(super) directory: RunDirectory,
}

// === impl LocalCluster ===

impl LocalCluster {
    /// Starts etcd and the API server; controllers come with [`Cluster::start_controllers`].
    pub async fn start(options: LocalOptions, progress: &dyn Progress) -> Result<Self, Error> {
        match clean::sweep() {
            Ok(removed) => removed.iter().for_each(|line| progress.say(&format!("removed {line}"))),
            // What others left behind is no reason not to start.
            Err(error) => tracing::warn!(%error, "leftovers stay"),
        }
        let binaries = assets::obtain(&options.sources, progress).await?;
        let directory = RunDirectory::create("control-plane")?;
        let pki = Pki::generate(API_SERVICE_IP)?;
        let tokens = Tokens::random()?;
        let files = Files::write(&directory, &pki, &tokens)?;

        progress.say(&format!("starting etcd and kube-apiserver {}", assets::KUBERNETES_VERSION));
        let mut phase = Instant::now();
        let deadline = || Deadline::after(options.start_timeout);
        let etcd_start = EtcdStart {
            program: binaries.etcd.clone(),
            directory: directory.path().to_owned(),
            ca_pem: pki.ca_cert.clone(),
        };
        let etcd = Etcd::start(&etcd_start, deadline()).await?;
        let etcd_took = phase.elapsed();
        phase = Instant::now();
        let admin_token = tokens.get(Identity::Admin);
        let api_server_start =
            files.for_api_server(&binaries, directory.path(), etcd.url, options.api_server_args, &pki, admin_token);
        let ((api_server, endpoint), help) =
            tokio::try_join!(api_server_start.start(deadline()), assets::help(&binaries.kube_controller_manager),)?;
        let times = StartTimes { etcd: etcd_took, api_server: phase.elapsed(), ..StartTimes::default() };

        Ok(Self {
            controller_manager: Mutex::new(None),
            controllers: files.for_controller_manager(
                &binaries,
                directory.path(),
                &pki.ca_cert,
                options.controllers.names(&help),
            ),
            api_server: Mutex::new(Some(api_server)),
            api_server_start,
            etcd: Mutex::new(Some(etcd.process)),
            etcd_start,
            restores: AtomicU32::new(0),
            sources: options.sources,
            endpoint,
            tokens,
            times: StdMutex::new(times),
            start_timeout: options.start_timeout,
            directory,
        })
    }

    /// How long each phase took so far.
    pub fn times(&self) -> StartTimes {
        *self.times.lock().expect("nobody panics while holding the times")
    }

    /// The log file of a process of the control plane.
    pub fn log(&self, component: Component) -> PathBuf {
        self.directory.path().join(format!("{component}.log"))
    }

    /// The private directory, for further files that should go when the control plane goes.
    pub fn directory(&self) -> &RunDirectory {
        &self.directory
    }

    /// The process number of a component that runs.
    pub async fn process_id(&self, component: Component) -> Option<u32> {
        self.slot(component)?.lock().await.as_ref().map(Process::id)
    }

    /// Stops the API server and starts it again with the same address, keys and store. Its watches end, and watches from
    /// a resourceVersion of before may be answered 410.
    pub async fn restart_api_server(&self) -> Result<(), Error> {
        self.stop_api_server().await?;
        self.start_api_server().await
    }

    /// Stops the API server, until [`Self::start_api_server`].
    pub async fn stop_api_server(&self) -> Result<(), Error> {
        let Some(mut running) = self.api_server.lock().await.take() else { return Err(Error::Stopped) };
        running.stop(GRACE).await
    }

    /// Starts the stopped API server again, where it was.
    pub async fn start_api_server(&self) -> Result<(), Error> {
        let mut slot = self.api_server.lock().await;
        let restarted = self.api_server_start.restart(&self.endpoint, Deadline::after(self.start_timeout)).await;
        *slot = Some(restarted.map_err(|error| self.root_cause(error))?);
        Ok(())
    }

    /// Stops the clock of a process (`SIGSTOP`): a frozen etcd makes writes slow, then 504.
    pub async fn freeze(&self, component: Component) -> Result<(), Error> {
        self.slot(component).ok_or(Error::Stopped)?.lock().await.as_ref().ok_or(Error::Stopped)?.signal(Signal::SIGSTOP)
    }

    /// Lets a frozen process go on.
    pub async fn thaw(&self, component: Component) -> Result<(), Error> {
        self.slot(component).ok_or(Error::Stopped)?.lock().await.as_ref().ok_or(Error::Stopped)?.signal(Signal::SIGCONT)
    }

    /// A node is no process of ours.
    fn slot(&self, component: Component) -> Option<&Mutex<Option<Process>>> {
        Some(match component {
            Component::Etcd => &self.etcd,
            Component::ApiServer => &self.api_server,
            Component::ControllerManager => &self.controller_manager,
            Component::Node => return None,
        })
    }

    fn note(&self, set: impl FnOnce(&mut StartTimes)) {
        set(&mut self.times.lock().expect("nobody panics while holding the times"));
    }

    async fn launch_controllers(&self, via: &Endpoint) -> Result<(), Error> {
        let started = Instant::now();
        let mut slot = self.controller_manager.lock().await;
        if self.api_server.lock().await.is_none() {
            return Err(Error::Stopped);
        }
        if let Some(mut running) = slot.take() {
            running.stop(CONTROLLERS_GRACE).await?;
        }
        let token = self.tokens.get(Identity::ControllerManager);
        self.directory.write(KUBECONFIG, &kubeconfig::render(via, token, "default"))?;
        self.run_controllers(&mut slot).await?;
        self.note(|times| times.controllers = started.elapsed());
        Ok(())
    }

    async fn relaunch_controllers(&self) -> Result<(), Error> {
        let mut slot = self.controller_manager.lock().await;
        let Some(mut running) = slot.take() else { return Err(Error::NoControllers) };
        running.stop(CONTROLLERS_GRACE).await?;
        self.run_controllers(&mut slot).await
    }

    pub(super) async fn run_controllers(&self, slot: &mut Option<Process>) -> Result<(), Error> {
        let process = self.ready_controllers().await.map_err(|error| self.root_cause(error))?;
        *slot = Some(process);
        Ok(())
    }

    async fn ready_controllers(&self) -> Result<Process, Error> {
        let deadline = Deadline::after(self.start_timeout);
        let mut process = controller_manager::start(&self.controllers, deadline).await?;
        let client = self.client(Identity::Harness)?;
        let accounts: Api<ServiceAccount> = Api::namespaced(client, "default");
        // Admission lets no pod in before the account is there.
        let what = "the ServiceAccount default/default";
        process.ready(what, Duration::from_millis(25), deadline, || default_exists(&accounts)).await?;
        Ok(process)
    }

    /// A process that ended explains whatever failed because of it.
    pub(super) fn root_cause(&self, error: Error) -> Error {
        self.alive().map_or(error, Error::Ended)
    }

    async fn prove(&self, kinds: &[Kind]) -> Result<CollectionProof, Error> {
        let proof = canary::prove(&self.client(Identity::Harness)?, kinds, self.start_timeout).await;
        let proof = proof.map_err(|error| self.root_cause(error))?;
        self.note(|times| times.collection = proof.took);
        Ok(proof)
    }

    async fn end(&self) -> Result<(), Error> {
        for slot in [&self.controller_manager, &self.api_server, &self.etcd] {
            if let Some(mut process) = slot.lock().await.take() {
                process.stop(GRACE).await?;
            }
        }
        Ok(())
    }
}

impl Cluster for LocalCluster {
    fn provider(&self) -> &'static str {
        "local"
    }

    fn version(&self) -> &str {
        assets::KUBERNETES_VERSION
    }

    fn local(&self) -> Option<&LocalCluster> {
        Some(self)
    }

    fn kept(&self) -> Option<String> {
        None
    }

    fn nodes(&self) -> Option<&Nodes> {
        None
    }

    fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    fn token(&self, identity: Identity) -> &str {
        self.tokens.get(identity)
    }

    fn client(&self, identity: Identity) -> Result<Client, Error> {
        connect(&self.endpoint, self.token(identity))
    }

    fn start_controllers<'a>(&'a self, via: &'a Endpoint) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(self.launch_controllers(via))
    }

    fn restart_controllers(&self) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(self.relaunch_controllers())
    }

    fn prove_collection<'a>(&'a self, kinds: &'a [Kind]) -> BoxFuture<'a, Result<CollectionProof, Error>> {
        Box::pin(self.prove(kinds))
    }

    fn prove_namespace_deletion<'a>(&'a self, proof: &'a CollectionProof) -> BoxFuture<'a, Result<Duration, Error>> {
        Box::pin(async {
            let client = self.client(Identity::Harness)?;
            let gone = canary::prove_namespace_deletion(&client, proof, self.start_timeout).await;
            gone.map_err(|error| self.root_cause(error))
        })
    }

    fn alive(&self) -> Option<Exit> {
        [&self.etcd, &self.api_server, &self.controller_manager].into_iter().find_map(|slot| {
            // A locked slot belongs to somebody who starts or stops that process, and reports its end himself.
            slot.try_lock().ok()?.as_mut()?.exit()
        })
    }

    fn stop(&self) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(self.end())
    }
}

async fn default_exists(accounts: &Api<ServiceAccount>) -> bool {
    accounts.get_opt("default").await.is_ok_and(|account| account.is_some())
}

const KUBECONFIG: &str = "controller-manager.kubeconfig";

/// Certificates, keys and tokens on disk.
struct Files {
    ca_cert: PathBuf,
    server_cert: PathBuf,
    server_key: PathBuf,
    service_account_key: PathBuf,
    service_account_public_key: PathBuf,
    tokens: PathBuf,
}

impl Files {
    fn write(directory: &RunDirectory, pki: &Pki, tokens: &Tokens) -> Result<Self, Error> {
        Ok(Self {
            ca_cert: directory.write("ca.crt", &pki.ca_cert)?,
            server_cert: directory.write("server.crt", &pki.server_cert)?,
            server_key: directory.write("server.key", &pki.server_key)?,
            service_account_key: directory.write("service-account.key", &pki.service_account_key)?,
            service_account_public_key: directory.write("service-account.pub", &pki.service_account_public_key)?,
            tokens: directory.write("tokens.csv", &tokens.to_csv())?,
        })
    }

    fn for_api_server(
        &self,
        binaries: &Binaries,
        directory: &Path,
        etcd_url: String,
        extra: Vec<String>,
        pki: &Pki,
        admin_token: &str,
    ) -> ApiServerStart {
        ApiServerStart {
            program: binaries.kube_apiserver.clone(),
            log: directory.join("kube-apiserver.log"),
            etcd_url,
            ca_cert: self.ca_cert.clone(),
            server_cert: self.server_cert.clone(),
            server_key: self.server_key.clone(),
            service_account_key: self.service_account_key.clone(),
            service_account_public_key: self.service_account_public_key.clone(),
            tokens: self.tokens.clone(),
            extra,
            ca_pem: pki.ca_cert.clone(),
            admin_token: admin_token.to_owned(),
        }
    }

    fn for_controller_manager(
        &self,
        binaries: &Binaries,
        directory: &Path,
        ca_pem: &str,
        controllers: Vec<&'static str>,
    ) -> ControllerManagerFiles {
        ControllerManagerFiles {
            program: binaries.kube_controller_manager.clone(),
            log: directory.join("kube-controller-manager.log"),
            kubeconfig: directory.join(KUBECONFIG),
            ca_cert: self.ca_cert.clone(),
            server_cert: self.server_cert.clone(),
            server_key: self.server_key.clone(),
            service_account_key: self.service_account_key.clone(),
            controllers,
            ca_pem: ca_pem.to_owned(),
        }
    }
}
