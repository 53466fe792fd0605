//! The loop: news in, decisions, writes out, timers.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use k8s_openapi::jiff::Timestamp;
use kube::Client;
use tokio::{
    sync::{Notify, Semaphore, mpsc, watch},
    task::JoinSet,
    time::Instant,
};

use super::{
    action::{Action, Write},
    perform::{self, Answer},
    watch::backoff,
    world::{Key, News, Now, World},
};

/// Requests under way at once: enough for many runs, few enough not to crowd out the operators' own requests.
const PARALLEL_WRITES: usize = 32;

/// What the loop and the handle share.
#[derive(Debug)]
pub(super) struct Shared {
    world: Mutex<World>,
    began: Instant,
    /// Rules have changed.
    pub(super) nudge: Notify,
    /// Counts changes of what `busy` may say.
    pub(super) ticks: watch::Sender<u64>,
    /// Counts demands for a fresh listing.
    pub(super) epoch: watch::Sender<u64>,
}

struct Driver {
    shared: Arc<Shared>,
    client: Client,
    writes: JoinSet<Done>,
    permits: Arc<Semaphore>,
    dirty: BTreeSet<Key>,
    in_flight: BTreeSet<Key>,
    timers: BTreeMap<Key, Instant>,
    failures: BTreeMap<Key, u32>,
}

/// A write that was answered, or not.
struct Done {
    key: Key,
    /// Uid and version decided about.
    about: Option<(String, String)>,
    answer: kube::Result<Answer>,
    outcome: Outcome,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// The status of the object itself.
    Reported,
    /// Something else.
    Written,
    Refused,
}

// === impl Shared ===

impl Shared {
    pub(super) fn new() -> Self {
        Self {
            world: Mutex::default(),
            began: Instant::now(),
            nudge: Notify::new(),
            ticks: watch::Sender::new(0),
            epoch: watch::Sender::new(0),
        }
    }

    /// The world; a panic elsewhere does not take it away, since every change of it is complete in itself.
    pub(super) fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn now(&self) -> Now {
        Now { elapsed: self.began.elapsed(), wall: Timestamp::now() }
    }

    fn tick(&self) {
        self.ticks.send_modify(|count| *count += 1);
    }
}

/// Runs until the news end.
pub(super) async fn drive(shared: Arc<Shared>, client: Client, mut news: mpsc::Receiver<News>) {
    let mut driver = Driver {
        shared,
        client,
        writes: JoinSet::new(),
        permits: Arc::new(Semaphore::new(PARALLEL_WRITES)),
        dirty: BTreeSet::new(),
        in_flight: BTreeSet::new(),
        timers: BTreeMap::new(),
        failures: BTreeMap::new(),
    };
    loop {
        driver.decide();
        driver.shared.tick();
        let due = driver.timers.values().min().copied();
        let timer = async {
            match due {
                Some(due) => tokio::time::sleep_until(due).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            heard = news.recv() => match heard {
                Some(heard) => driver.hear(heard),
                None => return,
            },
            Some(done) = driver.writes.join_next() => match done {
                Ok(done) => driver.finish(done),
                Err(error) => tracing::error!(%error, "a write of the kubelet stub ended without an answer"),
            },
            () = driver.shared.nudge.notified() => {
                let keys = driver.shared.world().keys();
                driver.dirty.extend(keys);
            }
            () = timer => {
                let now = Instant::now();
                let (due, rest) = std::mem::take(&mut driver.timers).into_iter().partition(|(_, due)| *due <= now);
                driver.timers = rest;
                let due: BTreeMap<Key, Instant> = due;
                driver.dirty.extend(due.into_keys());
            }
        }
        while let Ok(heard) = news.try_recv() {
            driver.hear(heard);
        }
    }
}

// === impl Driver ===

impl Driver {
    fn hear(&mut self, news: News) {
        let keys = self.shared.world().hear(news, self.shared.now());
        self.dirty.extend(keys);
    }

    fn decide(&mut self) {
        let shared = Arc::clone(&self.shared);
        let mut world = shared.world();
        if !world.is_synced() {
            return;
        }
        let now = shared.now();
        let mut later = BTreeSet::new();
        while let Some(key) = self.dirty.pop_first() {
            if self.in_flight.contains(&key) {
                later.insert(key);
                continue;
            }
            // After a failure nothing is tried before its time, whatever is heard.
            if self.failures.contains_key(&key) && self.timers.contains_key(&key) {
                continue;
            }
            match world.next(&key, now) {
                Action::Rest | Action::Await(_) => {
                    self.timers.remove(&key);
                    self.failures.remove(&key);
                }
                Action::Wait(left, _) => self.wake(key, left),
                Action::Write(write) => {
                    self.timers.remove(&key);
                    let about = world.identity(&key);
                    self.send(key, about, write);
                }
            }
        }
        self.dirty = later;
    }

    /// Timers round up: woken early, the same decision would only be made again.
    fn wake(&mut self, key: Key, after: Duration) {
        self.timers.insert(key, Instant::now() + after + Duration::from_millis(1));
    }

    fn send(&mut self, key: Key, about: Option<(String, String)>, write: Write) {
        tracing::debug!(%key, purpose = write.purpose(), "kubelet stub writes");
        self.in_flight.insert(key.clone());
        let (client, permits) = (self.client.clone(), Arc::clone(&self.permits));
        self.writes.spawn(async move {
            let _permit = permits.acquire_owned().await;
            let outcome = match write {
                Write::PodStatus { .. } | Write::ClaimStatus { .. } => Outcome::Reported,
                _ => Outcome::Written,
            };
            match perform::write(&client, &key, write).await {
                Ok(answer) => Done { key, about, answer: Ok(answer), outcome },
                Err(error) => {
                    if is_race(&error) {
                        tracing::debug!(%key, %error, "reads again what has changed in the meantime");
                    } else {
                        tracing::warn!(%key, %error, "a write of the kubelet stub failed, trying again");
                    }
                    let answer = perform::read(&client, &key).await;
                    Done { key, about, answer, outcome: Outcome::Refused }
                }
            }
        });
    }

    fn finish(&mut self, done: Done) {
        let Done { key, about, answer, outcome } = done;
        self.in_flight.remove(&key);
        self.dirty.insert(key.clone());
        match answer {
            Ok(Answer::Now(news)) => {
                self.hear(news);
                let mut world = self.shared.world();
                // A report that changed nothing would be sent for ever.
                if let Some((_, version)) = about
                    && outcome == Outcome::Reported
                    && world.identity(&key).is_some_and(|(_, now)| now == version)
                {
                    tracing::warn!(%key, "the API server keeps nothing of what the kubelet stub reports");
                    world.settle(key.clone(), version);
                }
            }
            Ok(Answer::Gone) => {
                if let Some((uid, _)) = about {
                    self.shared.world().bury(&key, &uid);
                }
            }
            Err(error) => tracing::debug!(%key, %error, "the API server cannot be read"),
        }
        match outcome {
            Outcome::Reported | Outcome::Written => {
                self.failures.remove(&key);
            }
            Outcome::Refused => {
                let failures = self.failures.entry(key.clone()).or_default();
                *failures += 1;
                let after = backoff(*failures);
                self.wake(key, after);
            }
        }
    }
}

/// Whether a write failed only because the object has moved on.
fn is_race(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if matches!(status.code, 404 | 409))
}
