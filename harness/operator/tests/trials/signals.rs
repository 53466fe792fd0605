//! Signals reach all of the operator, and have worked when they return.

use super::fixture::{Fixture, PATIENCE};
use crate::Outcome;
use spiritlevel_operator::{Exit, Process, Signal};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub(crate) async fn stop_and_continue_reach_everyone() -> Outcome {
    let fixture = Fixture::new()?;
    let (process, mut lines) = fixture.start(&["family"]).await?;
    assert_eq!(lines.next().await?, "family");
    let family = Family::of(&process)?;
    family.until(|family| family.ticks().len() == 6 && family.ticks().iter().all(|ticks| *ticks > 0))?;

    assert_eq!(process.signal(Signal::SIGSTOP).await?, 6);
    let stopped = family.ticks();
    // Something must get the chance to run, or the trial says nothing.
    let (busy, started) = (Instant::now(), Instant::now());
    while busy.elapsed() < Duration::from_millis(100) {
        std::hint::black_box(started);
    }
    assert_eq!(family.ticks(), stopped, "nobody ran");

    assert_eq!(process.signal(Signal::SIGCONT).await?, 6);
    family.until(|family| family.ticks().iter().zip(&stopped).all(|(now, then)| now > then))?;

    assert_eq!(process.signal(Signal::SIGSTOP).await?, 6);
    process.signal(Signal::SIGKILL).await?;
    assert_eq!(process.exit(), Some(Exit::Signal(9)), "a stopped one can be killed");
    Ok(())
}

pub(crate) async fn kill_returns_when_all_are_dead() -> Outcome {
    let fixture = Fixture::new()?;
    for _ in 0..5 {
        let (process, mut lines) = fixture.start(&["family"]).await?;
        assert_eq!(lines.next().await?, "family");
        let family = Family::of(&process)?;
        assert!(!family.ticks().is_empty());
        process.signal(Signal::SIGKILL).await?;
        assert_eq!((family.ticks().len(), process.exit()), (0, Some(Exit::Signal(9))));
        assert_eq!(process.signal(Signal::SIGKILL).await?, 0, "and can be repeated");
        assert_eq!(tokio::time::timeout(PATIENCE, process.wait()).await?, Exit::Signal(9));
    }
    Ok(())
}

pub(crate) async fn stop_is_gentle_first() -> Outcome {
    let fixture = Fixture::new()?;
    for (trap, exit) in [("trap 'exit 3' TERM", Exit::Code(3)), ("trap '' TERM", Exit::Signal(9))] {
        let mut launch = fixture.launch(&[]);
        launch.command = vec!["sh".into(), "-c".into(), format!("{trap}; echo ready; while :; do sleep 0.01; done")];
        let (process, mut lines) = fixture.start_as(launch).await?;
        assert_eq!(lines.next().await?, "ready");
        process.signal(Signal::SIGSTOP).await?;
        let grace = if exit == Exit::Code(3) { PATIENCE } else { Duration::from_millis(50) };
        assert_eq!(process.stop(grace).await?, exit, "{trap}");
    }
    Ok(())
}

/// The processes of one PID namespace, as the host sees them.
struct Family {
    namespace: PathBuf,
    /// Keeps the kernel from giving its number to the sandbox of another trial.
    _held: fs::File,
}

impl Family {
    fn of(process: &Process) -> std::io::Result<Self> {
        let link = format!("/proc/{}/ns/pid", process.pid());
        Ok(Self { namespace: fs::read_link(&link)?, _held: fs::File::open(&link)? })
    }

    /// CPU ticks of each, in the order of their numbers. Zombies are none of it.
    fn ticks(&self) -> Vec<u64> {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.path());
        let member = |process: &PathBuf| fs::read_link(process.join("ns/pid")).is_ok_and(|ns| ns == self.namespace);
        let mut members: Vec<_> = entries.filter(member).collect();
        members.sort();
        members.iter().filter_map(|process| ticks(process)).collect()
    }

    fn until(&self, done: impl Fn(&Self) -> bool) -> Outcome {
        let deadline = Instant::now() + PATIENCE;
        while !done(self) {
            if Instant::now() > deadline {
                return Err(format!("not within {PATIENCE:?}: {:?}", self.ticks()).into());
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }
}

fn ticks(process: &Path) -> Option<u64> {
    let stat = fs::read_to_string(process.join("stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    (fields[0] != "Z").then_some(fields[11].parse::<u64>().ok()? + fields[12].parse::<u64>().ok()?)
}
