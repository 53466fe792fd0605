//! Beginnings and ends.

use super::fixture::{Fixture, PATIENCE};
use crate::Outcome;
use spiritlevel_operator::{Event, Exit, Isolation, Observer};
use std::io::{BufRead, BufReader};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs};
use tokio::sync::mpsc::unbounded_channel;

/// The bar for a killed harness.
const SOON: Duration = Duration::from_secs(2);
/// Marks the processes of one trial.
const MARK: &str = "SPIRITLEVEL_TEST_MARK";

pub(crate) async fn ends_are_told() -> Outcome {
    let fixture = Fixture::new()?;
    let mut kill = fixture.launch(&[]);
    // A signal that it sends itself cannot end process 1, hence a child's end.
    kill.command = vec!["sh".into(), "-c".into(), "sh -c 'kill -KILL $$'; exit $?".into()];
    for (launch, exit) in [(fixture.launch(&["exit", "0"]), 0), (fixture.launch(&["exit", "7"]), 7), (kill, 137)] {
        let (events, mut heard) = unbounded_channel();
        let observer = Observer { events: Some(events), ..Observer::default() };
        let process = fixture.sandbox.start(launch, observer).await?;
        assert_eq!(tokio::time::timeout(PATIENCE, process.wait()).await?, Exit::Code(exit));
        assert_eq!(heard.recv().await, Some(Event::Started { pid: process.pid() }));
        assert_eq!(heard.recv().await, Some(Event::Exited(Exit::Code(exit))));
        assert_eq!(process.exit(), Some(Exit::Code(exit)));
    }
    Ok(())
}

pub(crate) async fn dropping_kills_everything() -> Outcome {
    for full in [true, false] {
        let mark = format!("drop-{full}-{}", std::process::id());
        let (fixture, process) = family(full, &mark).await?;
        drop(process);
        // Who has left the group is only held by a PID namespace.
        until(PATIENCE, || marked(&mark).len() == if full { 0 } else { 3 })?;
        drop(fixture);
        kill_rest(&mark)?;
    }
    Ok(())
}

pub(crate) async fn nothing_outlives_a_killed_harness() -> Outcome {
    let mark = format!("harness-{}", std::process::id());
    let mut harness = Command::new(env::current_exe()?);
    let mut harness = harness.args(["__harness", &mark]).stdout(Stdio::piped()).spawn()?;
    let mut line = String::new();
    BufReader::new(harness.stdout.take().expect("piped")).read_line(&mut line)?;
    assert_eq!(line.trim(), "ready");
    assert!(!marked(&mark).is_empty());
    let sandboxes = children(harness.id());
    assert_eq!(sandboxes.len(), 1, "the resident process");
    harness.kill()?;
    harness.wait()?;
    until(SOON, || marked(&mark).is_empty() && !sandboxes.iter().any(|pid| running(*pid)))
}

pub(crate) async fn doomed_harness(args: &[String]) -> ExitCode {
    match family(true, &args[0]).await {
        Ok(_kept) => {
            println!("ready");
            std::future::pending().await
        }
        Err(error) => {
            eprintln!("{}", error.message().unwrap_or_default());
            ExitCode::FAILURE
        }
    }
}

pub(crate) async fn nothing_outlives_a_killed_sandbox() -> Outcome {
    let mark = format!("sandbox-{}", std::process::id());
    let (fixture, process) = family(true, &mark).await?;
    Command::new("kill").args(["-KILL", &fixture.sandbox.pid().to_string()]).status()?;
    let exit = tokio::time::timeout(SOON, process.wait()).await?;
    assert_eq!(exit, Exit::Signal(9));
    until(SOON, || marked(&mark).is_empty())?;
    let gone = fixture.sandbox.start(fixture.launch(&["tell"]), Observer::default()).await.map(|_| ());
    let gone = gone.expect_err("nobody is there to start it").to_string();
    assert!(gone.contains("was it killed"), "{gone}");
    Ok(())
}

pub(crate) async fn nothing_outlives_a_killed_launcher() -> Outcome {
    let mark = format!("launcher-{}", std::process::id());
    let (fixture, process) = family(true, &mark).await?;
    let launcher = stat(process.pid().cast_unsigned(), PARENT).ok_or("it runs")?;
    Command::new("kill").args(["-KILL", &launcher.to_string()]).status()?;
    assert_eq!(tokio::time::timeout(SOON, process.wait()).await?, Exit::Signal(9));
    until(SOON, || marked(&mark).is_empty())?;
    assert_eq!(fixture.hear(&["exit", "0"]).await?, [""; 0], "the sandbox still works");
    Ok(())
}

async fn family(full: bool, mark: &str) -> Result<(Fixture, spiritlevel_operator::Process), libtest_mimic::Failed> {
    let fixture = Fixture::with(|spec| {
        if !full {
            spec.isolation = Isolation::Host { why: "for a test".into() };
        }
    })?;
    let mut launch = fixture.launch(&["family"]);
    launch.env.insert(MARK.into(), mark.into());
    if !full {
        launch.access = spiritlevel_operator::Access::Kubeconfig("kubeconfig".into());
    }
    let (process, mut lines) = fixture.start_as(launch).await?;
    assert_eq!(lines.next().await?, "family");
    // Three stay in the group, three leave it.
    let group = process.pid().cast_unsigned();
    let stay = || marked(mark).into_iter().filter(|pid| stat(*pid, GROUP) == Some(group)).count();
    until(PATIENCE, || (marked(mark).len(), stay()) == (6, 3))?;
    Ok((fixture, process))
}

fn until(patience: Duration, done: impl Fn() -> bool) -> Outcome {
    let deadline = Instant::now() + patience;
    while !done() {
        if Instant::now() > deadline {
            return Err(format!("not within {patience:?}").into());
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

fn processes() -> impl Iterator<Item = u32> {
    fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The processes with this mark in their environment. Zombies have none, nor has one amid its `exec`.
fn marked(mark: &str) -> Vec<u32> {
    let needle = format!("{MARK}={mark}\0");
    let has = |pid: &u32| {
        fs::read(format!("/proc/{pid}/environ"))
            .is_ok_and(|environ| environ.windows(needle.len()).any(|window| window == needle.as_bytes()))
    };
    processes().filter(has).collect()
}

fn kill_rest(mark: &str) -> Outcome {
    for pid in marked(mark) {
        Command::new("kill").args(["-KILL", &pid.to_string()]).status()?;
    }
    Ok(())
}

fn running(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

fn children(of: u32) -> Vec<u32> {
    processes().filter(|pid| stat(*pid, PARENT) == Some(of)).collect()
}

/// Places in `/proc/N/stat` behind the name.
const PARENT: usize = 1;
const GROUP: usize = 2;

fn stat(of: u32, place: usize) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{of}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(place)?.parse().ok()
}
