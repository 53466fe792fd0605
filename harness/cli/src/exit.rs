//! Exit codes: an interface.

use spiritlevel_model::verdict::VerdictKind;
use std::process::ExitCode;

/// How `spiritlevel` ends. Several runs: the worst of fail, error, inconclusive, pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// All is as it should be.
    Pass = 0,
    /// An invariant is violated, or a run did not get what its author expects.
    Fail = 1,
    /// Nothing can be said: a fault never fired, the world never settled, the deadline was over.
    Inconclusive = 2,
    /// The surroundings failed: no control plane, no operator, no disk.
    Error = 3,
    /// The command line or a file of the user's is wrong.
    Usage = 4,
    /// A bug of ours.
    Bug = 70,
    /// Ctrl-C: everything is torn down.
    Interrupted = 130,
    /// SIGTERM: everything is torn down.
    Terminated = 143,
}

impl From<VerdictKind> for Exit {
    fn from(outcome: VerdictKind) -> Self {
        match outcome {
            VerdictKind::Pass => Self::Pass,
            VerdictKind::Fail => Self::Fail,
            VerdictKind::Inconclusive => Self::Inconclusive,
            VerdictKind::Error => Self::Error,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::Exit;
    use spiritlevel_model::verdict::VerdictKind;

    #[test]
    fn verdicts_and_exit_codes_agree() {
        for kind in [VerdictKind::Pass, VerdictKind::Fail, VerdictKind::Inconclusive, VerdictKind::Error] {
            assert_eq!(Exit::from(kind) as u8, kind.exit_code());
        }
    }
}
