//! The history of one run while it grows: numbered, timed, redacted, written down, and folded into what the run needs live.

use crate::{Error, redact::Redactor};
use spiritlevel_model::{
    Actor, Meta, RequestId, StreamId,
    attribution::Ledger,
    history::{Event, KindInfo, Record, Version},
    world::{World, is_heartbeat},
};
use std::{
    collections::BTreeMap,
    fs::File,
    io::{BufWriter, Write},
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{sync::watch, time::Instant};

/// A history larger than this is cut, and the run inconclusive.
const MAX_BYTES: u64 = 256 * 1024 * 1024;

/// Appends records and wakes whoever waits for something to happen.
pub struct Recorder {
    inner: Mutex<Live>,
    changed: watch::Sender<u64>,
    started: Instant,
    redactor: Redactor,
}

/// What is known of the run at this moment.
pub struct Live {
    /// All records; times count from the recorder's start until the first step.
    pub records: Vec<Record>,
    /// Exchanges joined with versions.
    pub ledger: Ledger,
    /// The objects, secrets in plain text: for live assertions only.
    pub world: World,
    /// When each actor last got a watch event, in milliseconds.
    pub(crate) last_frame_ms: BTreeMap<Actor, f64>,
    /// The revision of the latest version of each object, to wait for the witness.
    pub(crate) seen: BTreeMap<String, u64>,
    /// When the last version other than a heartbeat came.
    pub(crate) last_change_ms: f64,
    /// When a phase, a step, a fault or a process last changed: what follows from it may not have come yet.
    pub(crate) last_cause_ms: f64,
    /// Whether the history was cut.
    pub(crate) overflow: bool,
    zero_ms: Option<f64>,
    requests: BTreeMap<RequestId, RequestId>,
    streams: BTreeMap<StreamId, StreamId>,
    watchers: BTreeMap<StreamId, Actor>,
    file: Option<BufWriter<File>>,
    written: usize,
    bytes: u64,
    broken: Option<std::io::Error>,
}

impl Recorder {
    /// A history written to `path`, with secrets redacted under a key of its own.
    pub fn create(path: &Path, kinds: Vec<KindInfo>) -> Result<Self, Error> {
        let file = File::create(path).map_err(|source| Error::file("create", path, source))?;
        Ok(Self {
            inner: Mutex::new(Live {
                records: Vec::new(),
                ledger: Ledger::default(),
                world: World::new(kinds),
                last_frame_ms: BTreeMap::new(),
                seen: BTreeMap::new(),
                last_change_ms: 0.0,
                last_cause_ms: 0.0,
                overflow: false,
                zero_ms: None,
                requests: BTreeMap::new(),
                streams: BTreeMap::new(),
                watchers: BTreeMap::new(),
                file: Some(BufWriter::new(file)),
                written: 0,
                bytes: 0,
                broken: None,
            }),
            changed: watch::Sender::new(0),
            started: Instant::now(),
            redactor: Redactor::new(),
        })
    }

    /// Milliseconds since the recorder started.
    pub(crate) fn now_ms(&self) -> f64 {
        self.started.elapsed().as_secs_f64() * 1000.0
    }

    /// Takes secrets out of a line of the operator's output.
    pub(crate) fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// From now on times count from here; what came before gets negative ones.
    pub(crate) fn first_step(&self) {
        let now = self.now_ms();
        self.live().zero_ms.get_or_insert(now);
    }

    /// Appends. Returns the record's place.
    pub fn record(&self, event: Event) -> u64 {
        let mut live = self.live();
        // Taken under the lock, so that times never run backwards.
        let at_ms = (self.now_ms() * 1000.0).round() / 1000.0;
        let event = live.renumber(event);
        if let Event::Kinds(kinds) = &event {
            live.world.set_kinds(kinds.clone());
        }
        if let Event::Version(version) = &event {
            live.see(version, at_ms);
        }
        if let Event::Epoch(_) = &event {
            live.world.begin_epoch();
            live.seen.clear();
        }
        if matches!(event, Event::Phase(_) | Event::Process(_) | Event::Step(_) | Event::Fault(_)) {
            live.last_cause_ms = at_ms;
        }
        if let Event::Frame(frame) = &event
            && let Some(actor) = live.watchers.get(&frame.stream).cloned()
        {
            live.last_frame_ms.insert(actor, at_ms);
        }
        let seq = live.records.len() as u64;
        let record = Record { seq, at_ms, event: self.redactor.event(event) };
        live.ledger.record(&record);
        live.records.push(record);
        live.write();
        drop(live);
        self.changed.send_replace(seq + 1);
        seq
    }

    /// What is known now. Hold it briefly and never across an await.
    pub fn live(&self) -> MutexGuard<'_, Live> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns as soon as `look` finds something, looking again after every record; `None` when `limit` is over first.
    pub async fn wait_for<T>(&self, limit: Duration, mut look: impl FnMut(&Live) -> Option<T>) -> Option<T> {
        let mut changes = self.changed.subscribe();
        let deadline = Instant::now() + limit;
        loop {
            if let Some(found) = look(&self.live()) {
                return Some(found);
            }
            tokio::select! {
                changed = changes.changed() => changed.ok()?,
                () = tokio::time::sleep_until(deadline) => return look(&self.live()),
            }
        }
    }

    /// Wakes on every record.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Ends the file and returns the records with their final times.
    pub(crate) fn finish(&self) -> Result<Vec<Record>, Error> {
        let mut live = self.live();
        let now = self.now_ms();
        live.zero_ms.get_or_insert(now);
        live.write();
        if let Some(mut file) = live.file.take() {
            file.flush().map_err(|source| Error::File { action: "write", path: "history.jsonl".into(), source })?;
        }
        if let Some(source) = live.broken.take() {
            return Err(Error::File { action: "write", path: "history.jsonl".into(), source });
        }
        let zero = live.zero_ms.unwrap_or(0.0);
        Ok(live.records.iter().map(|r| shifted(r, zero)).collect())
    }
}

fn shifted(record: &Record, zero: f64) -> Record {
    let at_ms = ((record.at_ms - zero) * 1000.0).round() / 1000.0;
    Record { seq: record.seq, at_ms, event: record.event.clone() }
}

impl Live {
    fn see(&mut self, version: &Version, at_ms: f64) {
        // Other runs on the control plane make namespaces and roles all the time.
        let shared = matches!(version.resource.group.as_str(), "rbac.authorization.k8s.io" | "apiextensions.k8s.io");
        let others = version.object.namespace().is_none() && (shared || version.resource.resource == "namespaces");
        if !others && !is_heartbeat(&version.resource, &version.object) {
            self.last_change_ms = at_ms;
        }
        if let Some(uid) = version.object.uid() {
            let seen = self.seen.entry(uid.0).or_default();
            *seen = (*seen).max(version.revision.0);
        }
        self.world.apply(version);
    }

    /// The proxy counts over all runs that share it; a history counts its own from 1.
    fn renumber(&mut self, mut event: Event) -> Event {
        use spiritlevel_model::history::FaultEvent;
        match &mut event {
            Event::Request(r) => {
                let next = RequestId(self.requests.len() as u64 + 1);
                r.id = *self.requests.entry(r.id).or_insert(next);
            }
            Event::Answer(a) => a.id = self.known(a.id),
            Event::Reply(r) => r.id = self.known(r.id),
            Event::StreamOpened(s) => {
                let next = StreamId(self.streams.len() as u64 + 1);
                s.stream = *self.streams.entry(s.stream).or_insert(next);
                s.request = self.known(s.request);
                self.watchers.insert(s.stream, s.actor.clone());
            }
            Event::Frame(f) => f.stream = self.streams.get(&f.stream).copied().unwrap_or(f.stream),
            Event::StreamClosed(s) => s.stream = self.streams.get(&s.stream).copied().unwrap_or(s.stream),
            Event::Fault(f) => match &mut f.what {
                FaultEvent::Matched { request, .. } => *request = self.known(*request),
                FaultEvent::Fired { request: Some(request), .. }
                | FaultEvent::Released { request: Some(request), .. } => {
                    *request = self.known(*request);
                }
                _ => {}
            },
            _ => {}
        }
        event
    }

    fn known(&mut self, id: RequestId) -> RequestId {
        let next = RequestId(self.requests.len() as u64 + 1);
        // A rule may speak of a request before the proxy has recorded it.
        *self.requests.entry(id).or_insert(next)
    }

    /// Writes what has its final time.
    fn write(&mut self) {
        let (Some(zero), Some(file)) = (self.zero_ms, &mut self.file) else { return };
        for record in &self.records[self.written..] {
            if self.bytes > MAX_BYTES {
                self.overflow = true;
                break;
            }
            let mut line = match serde_json::to_vec(&shifted(record, zero)) {
                Ok(line) => line,
                Err(e) => {
                    self.broken.get_or_insert(std::io::Error::other(e));
                    break;
                }
            };
            line.push(b'\n');
            self.bytes += line.len() as u64;
            if let Err(e) = file.write_all(&line) {
                self.broken.get_or_insert(e);
            }
        }
        self.written = self.records.len();
    }
}
