//! Children started through the supervisor, by a program that is its own supervisor.

use libtest_mimic::{Arguments, Failed, Trial};
use spiritlevel_supervise::{Error, Spawn};
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, future::Future, path::PathBuf};

/// Two processes in the group, and one that has left the program's parenthood but not its group.
const FAMILY: &str = "sleep 301 & (sleep 302 &) ; echo family; exec sleep 303";

fn main() -> ExitCode {
    if let Some(code) = spiritlevel_supervise::intercept() {
        return code;
    }
    if env::args().nth(1).as_deref() == Some("__harness") {
        return on_runtime(doomed_harness()).map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS);
    }
    let trials = vec![
        trial("nothing_outlives_an_aborted_harness", nothing_outlives_an_aborted_harness),
        trial("nothing_outlives_supervisor_and_harness", nothing_outlives_supervisor_and_harness),
        trial("dropping_the_child_kills_its_group", dropping_the_child_kills_its_group),
        trial("exit_codes_are_passed_on", exit_codes_are_passed_on),
        trial("stop_is_gentle_first", stop_is_gentle_first),
        trial("stop_kills_who_does_not_listen", stop_kills_who_does_not_listen),
        trial("refusals_are_errors", refusals_are_errors),
        trial("environment_folder_and_log", environment_folder_and_log),
        trial("output_goes_where_it_is_told", output_goes_where_it_is_told),
        trial("own_process_group", own_process_group),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

type Outcome = Result<(), Failed>;

fn trial<F: Future<Output = Outcome> + 'static>(name: &str, run: fn() -> F) -> Trial {
    Trial::test(name, move || on_runtime(run()))
}

fn on_runtime<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(future)
}

/// Says the number of the child's group, then waits to be killed or aborts.
async fn doomed_harness() -> Outcome {
    let log = PathBuf::from(env::args().nth(2).ok_or("a log file")?);
    let child = Spawn::new("sh").args(["-c", FAMILY]).log(&log).spawn()?;
    until("the family runs", || group(child.id()).len() == 3)?;
    println!("{}", child.id());
    if env::args().nth(3).as_deref() == Some("abort") {
        std::process::abort();
    }
    std::future::pending().await
}

fn start_harness(end: &str) -> Result<(std::process::Child, u32, tempfile::TempDir), Failed> {
    let dir = tempfile::tempdir()?;
    let mut harness = Command::new(env::current_exe()?);
    let mut harness = harness.arg("__harness").arg(dir.path().join("log")).arg(end).stdout(Stdio::piped()).spawn()?;
    let mut line = String::new();
    BufReader::new(harness.stdout.take().expect("piped")).read_line(&mut line)?;
    Ok((harness, line.trim().parse()?, dir))
}

async fn nothing_outlives_an_aborted_harness() -> Outcome {
    let (mut harness, pid, _dir) = start_harness("abort")?;
    harness.wait()?;
    until("the group is gone", || group(pid).is_empty())
}

async fn nothing_outlives_supervisor_and_harness() -> Outcome {
    let (mut harness, pid, _dir) = start_harness("wait")?;
    let supervisor = stat(pid).ok_or("the program runs")?.1;
    for pid in [supervisor, harness.id()] {
        Command::new("kill").args(["-KILL", &pid.to_string()]).status()?;
    }
    harness.wait()?;
    until("the program is gone", || !group(pid).contains(&pid))?;
    // Its children are beyond reach once both guards are dead; do not leave them to the machine.
    for orphan in group(pid) {
        Command::new("kill").args(["-KILL", &orphan.to_string()]).status()?;
    }
    Ok(())
}

async fn dropping_the_child_kills_its_group() -> Outcome {
    let child = Spawn::new("sh").args(["-c", FAMILY]).spawn()?;
    let pid = child.id();
    until("the family runs", || group(pid).len() == 3)?;
    drop(child);
    until("the group is gone", || group(pid).is_empty())
}

async fn exit_codes_are_passed_on() -> Outcome {
    for (script, code) in [("exit 0", 0), ("exit 7", 7), ("kill -KILL $$", 137)] {
        let mut child = Spawn::new("sh").args(["-c", script]).spawn()?;
        assert_eq!(child.wait().await?.code(), Some(code), "{script}");
        assert_eq!(child.try_wait()?.and_then(|status| status.code()), Some(code), "{script}, asked again");
    }
    Ok(())
}

async fn stop_is_gentle_first() -> Outcome {
    let dir = tempfile::tempdir()?;
    let script = "trap 'echo thanks; exit 3' TERM; echo ready; while :; do sleep 0.01; done";
    let mut child = Spawn::new("sh").args(["-c", script]).log(dir.path().join("log")).spawn()?;
    until("it listens", || child.log_tail(1) == "ready")?;
    assert_eq!(child.stop(Duration::from_secs(20)).await?.code(), Some(3));
    assert_eq!(child.log_tail(1), "thanks");
    Ok(())
}

async fn stop_kills_who_does_not_listen() -> Outcome {
    let dir = tempfile::tempdir()?;
    let script = "trap '' TERM; echo ready; while :; do sleep 0.01; done";
    let mut child = Spawn::new("sh").args(["-c", script]).log(dir.path().join("log")).spawn()?;
    until("it listens", || child.log_tail(1) == "ready")?;
    assert_eq!(child.stop(Duration::from_millis(50)).await?.code(), Some(137));
    assert!(group(child.id()).is_empty());
    Ok(())
}

async fn refusals_are_errors() -> Outcome {
    let dir = tempfile::tempdir()?;
    let plain = dir.path().join("plain");
    fs::write(&plain, "not a program")?;
    for (program, expected) in [(dir.path().join("missing"), ErrorKind::NotFound), (plain, ErrorKind::PermissionDenied)]
    {
        let refused = Spawn::new(program).spawn();
        assert!(matches!(&refused, Err(Error::Start { source, .. }) if source.kind() == expected), "{refused:?}");
    }
    let nowhere = Spawn::new("true").current_dir(dir.path().join("missing")).spawn();
    assert!(matches!(nowhere, Err(Error::Directory { .. })), "{nowhere:?}");
    Ok(())
}

async fn environment_folder_and_log() -> Outcome {
    let dir = tempfile::tempdir()?;
    let log = dir.path().join("deep/log");
    let script = r#"echo "$COLOUR ${HOME-none}"; pwd; echo oops >&2; readlink /proc/self/fd/0"#;
    for _ in 0..2 {
        let child = Spawn::new("/bin/sh").args(["-c", script]).current_dir(dir.path()).log(&log);
        let path = env::var_os("PATH").unwrap_or_default();
        let mut child = child.env_clear().env("COLOUR", "blue").env("PATH", path).spawn()?;
        child.wait().await?;
        let told = format!("blue none\n{}\noops\n/dev/null", dir.path().canonicalize()?.display());
        assert_eq!(child.log_tail(4), told);
    }
    assert_eq!(fs::read_to_string(&log)?.lines().count(), 8, "both runs are in the log");
    Ok(())
}

async fn output_goes_where_it_is_told() -> Outcome {
    let (mut reader, writer) = std::io::pipe()?;
    let mut child = Spawn::new("sh").args(["-c", "echo one; echo two >&2"]).output(writer).spawn()?;
    let mut said = String::new();
    reader.read_to_string(&mut said)?;
    assert_eq!((said.as_str(), child.wait().await?.code()), ("one\ntwo\n", Some(0)));
    Ok(())
}

async fn own_process_group() -> Outcome {
    let child = Spawn::new("sleep").arg("300").spawn()?;
    assert_eq!(group(child.id()), [child.id()]);
    let (_, supervisor) = stat(child.id()).ok_or("it runs")?;
    assert_eq!(group(supervisor), [supervisor], "Ctrl-C must not reach the supervisor either");
    Ok(())
}

fn until(what: &str, done: impl Fn() -> bool) -> Outcome {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !done() {
        if Instant::now() > deadline {
            return Err(format!("not within 10 s: {what}").into());
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

/// The process group and the parent of a process that still runs.
fn stat(pid: u32) -> Option<(u32, u32)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    (fields[0] != "Z").then_some((fields[2].parse().ok()?, fields[1].parse().ok()?))
}

/// The running processes of a group, in order.
fn group(of: u32) -> Vec<u32> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut pids: Vec<u32> = pids.filter(|pid| stat(*pid).is_some_and(|(group, _)| group == of)).collect();
    pids.sort_unstable();
    pids
}
