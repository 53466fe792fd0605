//! Docker, as far as a cluster of containers needs it.

use std::{collections::HashMap, time::Duration};

use futures::StreamExt;
use testcontainers::{
    bollard::{
        self,
        container::LogOutput,
        exec::{CreateExecOptions, StartExecResults},
        models::{NetworkConnectRequest, NetworkDisconnectRequest},
        query_parameters::{
            CreateImageOptionsBuilder, InspectContainerOptions, KillContainerOptionsBuilder,
            ListContainersOptionsBuilder, ListNetworksOptionsBuilder, LogsOptionsBuilder,
            RemoveContainerOptionsBuilder, StartContainerOptions, StopContainerOptionsBuilder, WaitContainerOptions,
        },
    },
    core::client::docker_client_instance,
};
use tokio::io::AsyncWriteExt;

use crate::{Error, Progress};

/// Lines of a container's log in messages.
const TAIL: &str = "25";

/// The daemon that `DOCKER_HOST` or the usual socket leads to.
#[derive(Clone, Debug)]
pub(crate) struct Docker {
    api: bollard::Docker,
}

impl Docker {
    /// Fails with what to do where no daemon answers.
    pub(crate) async fn connect() -> Result<Self, Error> {
        let unreachable = |e: &dyn std::error::Error| Error::NoDocker { reason: causes(e) };
        let api = docker_client_instance().await.map_err(|e| unreachable(&e))?;
        api.ping().await.map_err(|e| unreachable(&e))?;
        Ok(Self { api })
    }

    /// Whether an image is there already.
    pub(crate) async fn has_image(&self, image: &str) -> Result<bool, Error> {
        match self.api.inspect_image(image).await {
            Ok(_) => Ok(true),
            Err(e) if is_missing(&e) => Ok(false),
            Err(e) => Err(failed(format!("look for the image {image}"), &e)),
        }
    }

    /// What the daemon calls itself.
    pub(crate) async fn version(&self) -> Result<String, Error> {
        let version = self.api.version().await.map_err(|e| failed("ask for Docker's version", &e))?;
        Ok(version.version.unwrap_or_default())
    }

    /// Gets an image from its registry, unless it is there.
    pub(crate) async fn obtain(&self, image: &str, progress: &dyn Progress) -> Result<(), Error> {
        if self.has_image(image).await? {
            return Ok(());
        }
        progress.say(&format!("pulling {image}"));
        let options = CreateImageOptionsBuilder::default().from_image(image).build();
        let mut layers = self.api.create_image(Some(options), None, None);
        while let Some(layer) = layers.next().await {
            if let Err(e) = layer {
                return Err(Error::NoImage { image: image.to_owned(), reason: causes(&e) });
            }
        }
        Ok(())
    }

    /// Runs a program in a container; its output, or an error with it.
    pub(crate) async fn exec(&self, container: &str, argv: &[&str]) -> Result<String, Error> {
        self.exec_with(container, argv, futures::stream::empty()).await
    }

    /// The same, with something on its standard input.
    async fn exec_with(
        &self,
        container: &str,
        argv: &[&str],
        mut stdin: impl futures::Stream<Item = Result<bytes::Bytes, bollard::errors::Error>> + Unpin,
    ) -> Result<String, Error> {
        let doing = || format!("run `{}` in {container}", argv.join(" "));
        let options = CreateExecOptions {
            attach_stdin: Some(true),
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            cmd: Some(argv.iter().map(|a| (*a).to_owned()).collect()),
            ..CreateExecOptions::default()
        };
        let exec = self.api.create_exec(container, options).await.map_err(|e| failed(doing(), &e))?;
        let started = self.api.start_exec(&exec.id, None).await.map_err(|e| failed(doing(), &e))?;
        let mut said = String::new();
        if let StartExecResults::Attached { mut output, mut input } = started {
            let feed = async {
                while let Some(chunk) = stdin.next().await {
                    let chunk = chunk.map_err(|e| failed(doing(), &e))?;
                    if input.write_all(&chunk).await.is_err() {
                        // It has ended; its exit code says why.
                        break;
                    }
                }
                let _ = input.shutdown().await;
                Ok::<_, Error>(())
            };
            let read = async {
                while let Some(Ok(part)) = output.next().await {
                    if let LogOutput::StdOut { message }
                    | LogOutput::StdErr { message }
                    | LogOutput::Console { message } = part
                    {
                        said.push_str(&String::from_utf8_lossy(&message));
                    }
                }
            };
            let (fed, ()) = tokio::join!(feed, read);
            fed?;
        }
        let ended = self.api.inspect_exec(&exec.id).await.map_err(|e| failed(doing(), &e))?;
        match ended.exit_code {
            Some(0) => Ok(said),
            code => Err(Error::InContainer {
                command: argv.join(" "),
                container: container.to_owned(),
                status: code.map_or_else(|| "an unknown status".to_owned(), |c| format!("exit code {c}")),
                output: said.trim_end().to_owned(),
            }),
        }
    }

    /// Copies an image of this machine into a node's containerd.
    pub(crate) async fn import_image(&self, container: &str, image: &str) -> Result<(), Error> {
        if !self.has_image(image).await? {
            return Err(Error::NoImage {
                image: image.to_owned(),
                reason: "this machine's Docker has none".to_owned(),
            });
        }
        let import = ["ctr", "--namespace", "k8s.io", "images", "import", "--digests", "-"];
        self.exec_with(container, &import, Box::pin(self.api.export_image(image))).await.map(drop)
    }

    pub(crate) async fn start(&self, container: &str) -> Result<(), Error> {
        let started = self.api.start_container(container, None::<StartContainerOptions>).await;
        started.map_err(|e| failed(format!("start {container}"), &e))
    }

    /// SIGTERM (or what the image says), and SIGKILL after `grace`.
    pub(crate) async fn stop(&self, container: &str, grace: Duration) -> Result<(), Error> {
        let seconds = i32::try_from(grace.as_secs()).unwrap_or(i32::MAX);
        let options = StopContainerOptionsBuilder::default().t(seconds).build();
        self.api.stop_container(container, Some(options)).await.map_err(|e| failed(format!("stop {container}"), &e))
    }

    pub(crate) async fn kill(&self, container: &str) -> Result<(), Error> {
        let options = KillContainerOptionsBuilder::default().signal("SIGKILL").build();
        self.api.kill_container(container, Some(options)).await.map_err(|e| failed(format!("kill {container}"), &e))
    }

    pub(crate) async fn pause(&self, container: &str) -> Result<(), Error> {
        self.api.pause_container(container).await.map_err(|e| failed(format!("pause {container}"), &e))
    }

    pub(crate) async fn unpause(&self, container: &str) -> Result<(), Error> {
        self.api.unpause_container(container).await.map_err(|e| failed(format!("unpause {container}"), &e))
    }

    pub(crate) async fn disconnect(&self, container: &str, network: &str) -> Result<(), Error> {
        let request = NetworkDisconnectRequest { container: container.to_owned(), force: Some(false) };
        let done = self.api.disconnect_network(network, request).await;
        done.map_err(|e| failed(format!("take {container} off the network {network}"), &e))
    }

    pub(crate) async fn connect_to(&self, container: &str, network: &str) -> Result<(), Error> {
        let request = NetworkConnectRequest { container: container.to_owned(), ..NetworkConnectRequest::default() };
        let done = self.api.connect_network(network, request).await;
        done.map_err(|e| failed(format!("put {container} on the network {network}"), &e))
    }

    /// The gateway of a container's network: this machine, as containers and pods reach it.
    pub(crate) async fn gateway(&self, container: &str) -> Result<(String, String), Error> {
        let found = self.inspect(container).await?;
        let networks = found.network_settings.and_then(|n| n.networks).unwrap_or_default();
        let gateway = networks.into_iter().find_map(|(name, n)| Some((name, n.gateway.filter(|g| !g.is_empty())?)));
        gateway.ok_or_else(|| Error::Docker {
            action: format!("find the network of {container}"),
            reason: "it has no gateway".to_owned(),
        })
    }

    /// `None` while it runs; how it ended otherwise.
    pub(crate) async fn ended(&self, container: &str) -> Result<Option<String>, Error> {
        let state = self.inspect(container).await?.state.unwrap_or_default();
        if state.running.unwrap_or(false) || state.restarting.unwrap_or(false) {
            return Ok(None);
        }
        let oom = if state.oom_killed.unwrap_or(false) { ", out of memory" } else { "" };
        Ok(Some(format!("exit code {}{oom}", state.exit_code.unwrap_or_default())))
    }

    /// Returns when it has ended.
    pub(crate) async fn wait(&self, container: &str) {
        let mut waiting = self.api.wait_container(container, None::<WaitContainerOptions>);
        while waiting.next().await.is_some() {}
    }

    async fn inspect(&self, container: &str) -> Result<bollard::models::ContainerInspectResponse, Error> {
        let found = self.api.inspect_container(container, None::<InspectContainerOptions>).await;
        found.map_err(|e| failed(format!("look at {container}"), &e))
    }

    /// The end of a container's log.
    pub(crate) async fn log_tail(&self, container: &str) -> String {
        let options = LogsOptionsBuilder::default().stdout(true).stderr(true).tail(TAIL).build();
        let mut logs = self.api.logs(container, Some(options));
        let mut text = String::new();
        while let Some(Ok(part)) = logs.next().await {
            text.push_str(&part.to_string());
        }
        text.trim_end().to_owned()
    }

    /// Names of containers and networks that begin with `prefix`.
    pub(crate) async fn named(&self, prefix: &str) -> Result<(Vec<String>, Vec<String>), Error> {
        let filters = || HashMap::from([("name".to_owned(), vec![prefix.to_owned()])]);
        let options = ListContainersOptionsBuilder::default().all(true).filters(&filters()).build();
        let listed = self.api.list_containers(Some(options)).await.map_err(|e| failed("list containers", &e))?;
        let names = listed.into_iter().flat_map(|c| c.names.unwrap_or_default());
        // The daemon's filter means "contains", and its names begin with a slash.
        let containers = names.filter_map(|n| n.strip_prefix('/').filter(|n| n.starts_with(prefix)).map(str::to_owned));
        let options = ListNetworksOptionsBuilder::default().filters(&filters()).build();
        let listed = self.api.list_networks(Some(options)).await.map_err(|e| failed("list networks", &e))?;
        let networks = listed.into_iter().filter_map(|n| n.name.filter(|n| n.starts_with(prefix)));
        Ok((containers.collect(), networks.collect()))
    }

    /// Removes a container with its volumes, whatever it does.
    pub(crate) async fn remove(&self, container: &str) -> Result<(), Error> {
        let options = RemoveContainerOptionsBuilder::default().force(true).v(true).build();
        match self.api.remove_container(container, Some(options)).await {
            Err(e) if !is_missing(&e) => Err(failed(format!("remove {container}"), &e)),
            _ => Ok(()),
        }
    }

    /// Removes a network.
    pub(crate) async fn remove_network(&self, network: &str) -> Result<(), Error> {
        match self.api.remove_network(network).await {
            Err(e) if !is_missing(&e) => Err(failed(format!("remove the network {network}"), &e)),
            _ => Ok(()),
        }
    }
}

fn is_missing(error: &bollard::errors::Error) -> bool {
    matches!(error, bollard::errors::Error::DockerResponseServerError { status_code: 404, .. })
}

/// Whether another program has the port that a container was to be reached at.
pub(super) fn is_port_taken(reason: &str) -> bool {
    reason.contains("port is already allocated") || reason.contains("address already in use")
}

fn failed(action: impl Into<String>, error: &dyn std::error::Error) -> Error {
    Error::docker(action, causes(error))
}

/// An error with its causes, in one line; libraries like to repeat a cause in the text above it.
pub(super) fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        next = cause.source();
    }
    text
}
