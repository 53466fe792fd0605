//! `script` and `command`: programs on this machine, with the run's namespace and a kubeconfig of the user's.

use super::play::{Failure, Play};
use serde_json::json;
use spiritlevel_model::operation::{Command, Operation, Script};
use std::{process::Stdio, time::Duration};

impl Play<'_> {
    pub(super) async fn script(&self, script: &Script, operation: &Operation, limit: Duration) -> Result<(), Failure> {
        let mut program = tokio::process::Command::new("sh");
        program.args(["-e", "-c", &script.content]).envs(&script.env);
        self.program(program, script.check.as_ref(), operation, limit).await
    }

    pub(super) async fn command(
        &self,
        command: &Command,
        operation: &Operation,
        limit: Duration,
    ) -> Result<(), Failure> {
        let mut program = tokio::process::Command::new(&command.entrypoint);
        program.args(&command.args).envs(&command.env);
        self.program(program, command.check.as_ref(), operation, limit).await
    }

    async fn program(
        &self,
        mut program: tokio::process::Command,
        check: Option<&serde_json::Value>,
        operation: &Operation,
        limit: Duration,
    ) -> Result<(), Failure> {
        program
            .current_dir(&self.scenario_dir)
            .env("NAMESPACE", self.namespace())
            .env("KUBECONFIG", self.around.lane.user_kubeconfig(&self.around.private, self.namespace())?)
            .stdin(Stdio::null())
            .kill_on_drop(true);
        let shown = program.as_std().get_program().to_string_lossy().into_owned();
        let output = tokio::time::timeout(limit, program.output()).await;
        let output =
            output.map_err(|_| Failure::Broken(format!("{shown} was not done within {} s", limit.as_secs())))?;
        let output = output.map_err(|e| Failure::Broken(format!("{shown} could not be started: {e}")))?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        let answer = json!({"stdout": stdout, "stderr": stderr, "exitCode": output.status.code()});
        self.outputs(operation, &answer)?;
        match check {
            Some(check) => {
                let mut known = self.bindings();
                for key in ["stdout", "stderr", "exitCode"] {
                    known.insert(key.into(), answer[key].clone());
                }
                Self::check(check, &answer, &known)
            }
            None if output.status.success() => Ok(()),
            None => Err(Failure::Broken(format!("{shown} ended with {}: {stderr}", output.status))),
        }
    }
}
