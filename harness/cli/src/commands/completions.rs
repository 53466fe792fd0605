//! `spiritlevel completions`.

use crate::{Exit, args::CommandLine, voice::say};
use clap::CommandFactory;
use clap_complete::{Shell, generate};

/// Prints completions for a shell.
pub(super) fn completions(shell: Shell) -> Exit {
    let mut script = Vec::new();
    generate(shell, &mut CommandLine::command(), "spiritlevel", &mut script);
    say(&String::from_utf8_lossy(&script));
    Exit::Pass
}
