//! `spiritlevel clean`.

use crate::{Error, Exit, voice::say};
use spiritlevel_cluster::containers::Kept;

/// Removes what killed runs left behind, and what was kept.
pub(super) async fn clean() -> Result<Exit, Error> {
    // Containers first: whether their owner lives shows from its directory.
    let containers = spiritlevel_cluster::containers::sweep(Kept::Goes, &|line: &str| say(&format!("{line}\n")))
        .await
        .map_err(Error::Cluster)?;
    let removed = spiritlevel_cluster::clean::sweep().map_err(Error::Cluster)?;
    for line in &removed {
        say(&format!("removed {line}\n"));
    }
    if removed.is_empty() && containers == 0 {
        say("nothing was left behind\n");
    }
    Ok(Exit::Pass)
}
