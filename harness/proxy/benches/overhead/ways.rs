//! The ways to the API server that are compared: direct, through toxiproxy without a toxic, through the proxy.

use crate::support::{ApiServer, Client};
use futures::future::BoxFuture;
use http::Version;
use spiritlevel_model::{
    Actor,
    fault::{Exchange, Firing, Frame, FrameFate, RuleSet, Stream, Until},
    history::Event,
};
use spiritlevel_proxy::{Director, HostPort, Proxy, Upstream};
use std::{
    io::{BufRead, BufReader, Read},
    net::{TcpListener, TcpStream},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// The version that is compared with, built by Go through its module cache.
const TOXIPROXY: &str = "github.com/Shopify/toxiproxy/v2/cmd/server@v2.12.0";

/// One way, and the process on it.
pub(crate) struct Way {
    pub(crate) name: &'static str,
    pub(crate) client: Client,
    pub(crate) process: Option<Arc<Process>>,
}

/// A process that ends with its last user.
pub(crate) struct Process(Mutex<Child>, u32);

/// All of them; toxiproxy only where Go can build it.
pub(crate) fn ways(server: &ApiServer) -> Vec<Way> {
    let direct = Client::new(&server.url(), &server.ca_pem, Version::HTTP_11);
    let mut all = vec![Way { name: "direct", client: direct, process: None }];
    match toxiproxy(server) {
        Ok((url, process)) => {
            let client = Client::new(&url, &server.ca_pem, Version::HTTP_11);
            all.push(Way { name: "toxiproxy", client, process: Some(process.into()) });
        }
        Err(why) => eprintln!("without toxiproxy: {why}"),
    }
    let (url, ca_pem, process) = proxy(server);
    let process = Arc::new(process);
    for (name, version) in [("proxy, HTTP/1.1", Version::HTTP_11), ("proxy, HTTP/2", Version::HTTP_2)] {
        all.push(Way { name, client: Client::new(&url, &ca_pem, version), process: Some(process.clone()) });
    }
    all
}

/// The proxy in a process of its own: its URL and its certificate.
pub(crate) fn proxy(server: &ApiServer) -> (String, String, Process) {
    let program = std::env::current_exe().expect("this program has a path");
    let mut child = Command::new(program)
        .args(["--serve", &server.url()])
        .env("CA", &server.ca_pem)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("this program starts again");
    let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    let url = lines.next().expect("the URL comes first").expect("the pipe is open");
    let pem: Vec<String> = lines.map_while(Result::ok).take_while(|l| l != "END").collect();
    let pid = child.id();
    (url, pem.join("\n") + "\n", Process(child.into(), pid))
}

fn toxiproxy(server: &ApiServer) -> Result<(String, Process), String> {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("toxiproxy");
    let program = folder.join("server");
    if !program.exists() {
        let built = Command::new("go").args(["install", TOXIPROXY]).env("GOBIN", &folder).env("GOFLAGS", "").status();
        let built = built.map_err(|e| format!("go: {e}"))?;
        if !built.success() {
            return Err(format!("go install: {built}"));
        }
    }
    let free = || TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).map_err(|e| e.to_string());
    let (listen, api) = (free()?, free()?);
    let upstream = server.url().replace("https://", "");
    let config = folder.join("config.json");
    let content =
        serde_json::json!([{"name": "a", "listen": listen.to_string(), "upstream": upstream, "enabled": true}]);
    std::fs::write(&config, content.to_string()).map_err(|e| e.to_string())?;
    let child = Command::new(program)
        .args(["-host", "127.0.0.1", "-port", &api.port().to_string(), "-config"])
        .arg(config)
        .env("LOG_LEVEL", "error")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|e| e.to_string())?;
    let pid = child.id();
    let process = Process(child.into(), pid);
    let deadline = Instant::now() + Duration::from_secs(20);
    while TcpStream::connect(listen).is_err() {
        if Instant::now() > deadline {
            return Err("it does not listen".into());
        }
        std::thread::yield_now();
    }
    Ok((format!("https://{listen}"), process))
}

// === impl Process ===

impl Process {
    /// Time on a processor, of all its threads that are still there.
    pub(crate) fn cpu(&self) -> Duration {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.1)).into_iter().flatten().flatten();
        let nanos = threads.filter_map(|t| {
            let text = std::fs::read_to_string(t.path().join("schedstat")).ok()?;
            text.split(' ').next()?.parse::<u64>().ok()
        });
        Duration::from_nanos(nanos.sum())
    }

    /// The most memory that it ever had, in MB.
    pub(crate) fn peak_memory(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.1)).unwrap_or_default();
        let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
        let kilobytes = line.and_then(|l| l.trim().split(' ').next()?.parse::<f64>().ok());
        kilobytes.unwrap_or_default() / 1024.0
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Ok(child) = self.0.get_mut() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

// === the proxy's process ===

/// Rules that look at everything and never fire, and a history that is counted.
struct Onlooker {
    rules: Mutex<RuleSet>,
    events: AtomicU64,
}

/// Serves until the standard input ends.
pub(crate) fn serve(url: String) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime starts on any working machine");
    let _inside = runtime.enter();
    let ca_pem = std::env::var("CA").expect("the parent gives it");
    let proxy = Proxy::new(Upstream { url, ca_pem }).expect("the parent's certificate is one");
    let director = Arc::new(Onlooker { rules: rules().into(), events: AtomicU64::new(0) });
    let listener = proxy.listen(Actor::operator(0), Arc::new(HostPort::new()), director).expect("a port is free");
    println!("{}\n{}END", listener.url(), proxy.ca_pem());
    let _ = std::io::stdin().read(&mut [0]);
}

fn rules() -> RuleSet {
    let faults = serde_json::json!([
        {"name": "a", "match": {"verb": "create", "resource": "pods", "name": "pg-*", "nth": 2}, "do": {"crash": {}}},
        {"name": "b", "match": {"resource": "*.db.example.com", "labels": {"a": "b"}}, "do": {"reject": {"status": 500}}},
        {"name": "c", "match": {"verb": "watch", "resource": "pods", "name": "other-*"}, "do": {"withholdEvents": {}}},
    ]);
    let faults: Vec<_> = serde_json::from_value(faults).expect("these are faults");
    let mut rules = RuleSet::new(&faults).expect("they have no expressions");
    for fault in &faults {
        rules.arm(&fault.name);
    }
    rules
}

impl Director for Onlooker {
    fn on_request(&self, x: &Exchange<'_>) -> Option<Firing> {
        self.rules.lock().expect("no rule panics").on_request(x).0
    }

    fn on_frame(&self, s: &Stream, f: &Frame<'_>) -> FrameFate {
        self.rules.lock().expect("no rule panics").on_frame(s, f).0
    }

    fn on_stream_end(&self, _: &Stream) {}

    fn perform<'a>(&'a self, _: &'a Firing, _: &'a Exchange<'a>) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }

    fn released<'a>(&'a self, _: &'a str, _: &'a Until) -> BoxFuture<'a, String> {
        Box::pin(std::future::ready(String::new()))
    }

    fn healed<'a>(&'a self, _: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }

    fn actor(&self, listener: &Actor, _: Option<&str>) -> Actor {
        listener.clone()
    }

    fn record(&self, _: Event) {
        self.events.fetch_add(1, Ordering::Relaxed);
    }
}
