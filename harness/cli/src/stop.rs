//! Ctrl-C, SIGTERM and the deadline: three ways to end early.

use crate::{Exit, voice::aside};
use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Why everything ends early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Ctrl-C.
    Interrupt,
    /// SIGTERM.
    Terminate,
    /// `--deadline`.
    Deadline(Duration),
}

/// Ends everything early, for one reason.
#[derive(Clone, Default)]
pub(crate) struct Stop {
    pub(crate) token: CancellationToken,
    cause: Arc<OnceLock<Cause>>,
}

// === impl Stop ===

impl Stop {
    /// The first reason counts.
    pub(crate) fn now(&self, cause: Cause) {
        let _ = self.cause.set(cause);
        self.token.cancel();
    }

    /// Why, if it was.
    pub(crate) fn cause(&self) -> Option<Cause> {
        self.cause.get().copied()
    }

    /// Waits for signals; the second one ends the process at once. Children end with it, however it ends.
    pub(crate) async fn on_signals(self) {
        let (Ok(mut interrupt), Ok(mut terminate)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
        else {
            return;
        };
        loop {
            let cause = tokio::select! {
                _ = interrupt.recv() => Cause::Interrupt,
                _ = terminate.recv() => Cause::Terminate,
            };
            if matches!(self.cause(), Some(Cause::Interrupt | Cause::Terminate)) {
                std::process::exit(i32::from(cause.exit() as u8));
            }
            aside("\nending everything that was started; once more to end at once\n");
            self.now(cause);
        }
    }

    /// Waits for the deadline.
    pub(crate) async fn at(self, deadline: Duration) {
        tokio::time::sleep(deadline).await;
        self.now(Cause::Deadline(deadline));
    }
}

// === impl Cause ===

impl Cause {
    /// What the process ends with.
    pub(crate) fn exit(self) -> Exit {
        match self {
            Self::Interrupt => Exit::Interrupted,
            Self::Terminate => Exit::Terminated,
            Self::Deadline(_) => Exit::Inconclusive,
        }
    }
}
