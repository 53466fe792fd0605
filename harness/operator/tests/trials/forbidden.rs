//! A machine that forbids namespaces, made from a user namespace that allows no further ones.

use crate::Outcome;
use spiritlevel_operator::{Isolation, probe};
use std::env;
use std::process::{Command, ExitCode};

pub(crate) async fn the_reason_is_told() -> Outcome {
    let script = "echo 0 > /proc/sys/user/max_user_namespaces && \
                  exec setpriv --bounding-set=-all --inh-caps=-all -- \"$0\" __probe";
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "sh", "-c", script]).arg(env::current_exe()?);
    let output = command.output()?;
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    for part in ["isolate the operator: unshare", "user.max_user_namespaces above 0", "(os error 28)"] {
        assert!(out.contains(part), "{part:?} is missing in: {out}{err}");
    }
    Ok(())
}

/// What a probe finds, for the trial to read.
pub(crate) async fn tell_probe() -> ExitCode {
    match probe().await {
        Ok(Isolation::Host { why }) => println!("{why}"),
        other => println!("unexpected: {other:?}"),
    }
    ExitCode::SUCCESS
}
