//! `spiritlevel clean`.

use crate::{Error, Exit, voice::say};

/// Removes what killed runs left behind.
pub(super) fn clean() -> Result<Exit, Error> {
    let removed = spiritlevel_cluster::clean::sweep().map_err(Error::Cluster)?;
    for line in &removed {
        say(&format!("removed {line}\n"));
    }
    if removed.is_empty() {
        say("nothing was left behind\n");
    }
    Ok(Exit::Pass)
}
