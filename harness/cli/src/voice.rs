//! Standard output and standard error of commands. Nobody may be listening (`| head`, a closed terminal), and that is no
//! failure: `print!` would panic.

use std::io::{self, Write};

/// To standard output: what was asked for.
pub(crate) fn say(text: &str) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// To standard error: all that is only for the moment.
pub(crate) fn aside(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}
