//! A sandbox with all that belongs to it.

use libtest_mimic::Failed;
use spiritlevel_operator::{
    Access, Isolation, Launch, Line, Network, Observer, Process, Sandbox, SandboxSpec, ServiceAccountDir,
};
use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// How long anything may take on an overloaded machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Fixture {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) account: ServiceAccountDir,
    pub(crate) sandbox: Sandbox,
}

impl Fixture {
    pub(crate) fn new() -> Result<Self, Failed> {
        Self::with(|_| {})
    }

    pub(crate) fn with(change: impl FnOnce(&mut SandboxSpec)) -> Result<Self, Failed> {
        let dir = tempfile::tempdir()?;
        let account = ServiceAccountDir::create(dir.path().join("account"), "token-1", "PEM", "shop")?;
        fs::write(dir.path().join("hosts"), "127.0.0.1 localhost kubernetes.default.svc\n")?;
        let mut spec = SandboxSpec {
            isolation: Isolation::Full,
            network: Network::Isolated,
            hostname: Some("operator-0".into()),
            service_account: Some(account.path().into()),
            hosts: Some(dir.path().join("hosts")),
            port: 6443,
        };
        change(&mut spec);
        Ok(Self { sandbox: Sandbox::create(spec)?, dir, account })
    }

    pub(crate) fn launch(&self, args: &[&str]) -> Launch {
        let this = std::env::current_exe().expect("this test").to_string_lossy().into_owned();
        let args = args.iter().map(|arg| (*arg).to_owned());
        Launch {
            command: [this, "__operator".to_owned()].into_iter().chain(args).collect(),
            env: BTreeMap::from([("COLOUR".into(), "blue".into())]),
            dir: self.dir.path().into(),
            home: self.dir.path().join("home"),
            log: self.dir.path().join("log"),
            access: Access::InCluster,
        }
    }

    pub(crate) async fn start(&self, args: &[&str]) -> Result<(Process, Lines), Failed> {
        self.start_as(self.launch(args)).await
    }

    pub(crate) async fn start_as(&self, launch: Launch) -> Result<(Process, Lines), Failed> {
        let (sender, lines) = unbounded_channel();
        let line = Arc::new(move |line: &Line| drop(sender.send(line.clone())));
        let observer = Observer { line: Some(line), ..Observer::default() };
        Ok((self.sandbox.start(launch, observer).await?, Lines(lines)))
    }

    /// What the operator says until it ends.
    pub(crate) async fn hear(&self, args: &[&str]) -> Result<Vec<String>, Failed> {
        let (process, mut lines) = self.start(args).await?;
        tokio::time::timeout(PATIENCE, process.wait()).await?;
        Ok(lines.rest())
    }
}

pub(crate) struct Lines(UnboundedReceiver<Line>);

impl Lines {
    pub(crate) async fn next(&mut self) -> Result<String, Failed> {
        let line = tokio::time::timeout(PATIENCE, self.0.recv()).await?;
        Ok(line.ok_or("no more output")?.text)
    }

    pub(crate) fn rest(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.0.try_recv().ok()).map(|line| line.text).collect()
    }
}
