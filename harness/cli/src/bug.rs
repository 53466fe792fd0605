//! A panic is a bug of ours: told as such, everything torn down, exit code 70.

use crate::voice::aside;
use std::{
    panic,
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};
use tokio_util::sync::CancellationToken;

static SEEN: AtomicBool = AtomicBool::new(false);
static STOP: OnceLock<CancellationToken> = OnceLock::new();

/// From now on a panic in any thread cancels `stop`, and [`seen`] remembers it: a panic in a task is lost otherwise.
pub(crate) fn watch(stop: CancellationToken) {
    let _ = STOP.set(stop);
    panic::set_hook(Box::new(|info| {
        let text = info.payload_as_str().unwrap_or("of an unknown kind");
        let place =
            info.location().map_or_else(String::new, |l| format!(" at {}:{}:{}", l.file(), l.line(), l.column()));
        let first = !SEEN.swap(true, Ordering::SeqCst);
        aside(&format!("\nspiritlevel {} has a bug{place}: {text}\n", env!("CARGO_PKG_VERSION")));
        if first {
            aside(&format!(
                "please report it at {}/issues with the command line, these lines and, if there is one, the run's folder in \
                 the reports; everything that was started is being ended\n",
                env!("CARGO_PKG_REPOSITORY")
            ));
        }
        if let Some(stop) = STOP.get() {
            stop.cancel();
        }
    }));
}

/// Whether there was one.
pub(crate) fn seen() -> bool {
    SEEN.load(Ordering::SeqCst)
}

#[cfg(test)]
mod tests {
    use super::{CancellationToken, seen, watch};

    #[test]
    fn a_panic_in_any_thread_is_remembered_and_stops_everything() {
        let stop = CancellationToken::new();
        watch(stop.clone());
        assert!(!seen() && !stop.is_cancelled());
        let ended = std::thread::spawn(|| panic!("provoked by a test")).join();
        drop(std::panic::take_hook());
        assert!(ended.is_err() && seen() && stop.is_cancelled());
    }
}
