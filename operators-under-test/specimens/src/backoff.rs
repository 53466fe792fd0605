//! How long to wait before what failed is tried again.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

const FIRST: Duration = Duration::from_millis(200);
const LONGEST: Duration = Duration::from_secs(5);

/// Counts failures in a row by name: 200 ms after the first, twice as long after each further one, at most 5 s.
#[derive(Debug, Default)]
pub(crate) struct Backoff(Mutex<BTreeMap<String, u32>>);

// === impl Backoff ===

impl Backoff {
    /// Counts one more failure and says how long to wait after it.
    pub(crate) fn after_failure(&self, name: &str) -> Duration {
        let mut failures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let failures = failures.entry(name.to_owned()).or_default();
        let wait = FIRST.saturating_mul(2_u32.saturating_pow(*failures)).min(LONGEST);
        *failures = failures.saturating_add(1);
        wait
    }

    /// Starts counting anew.
    pub(crate) fn succeeded(&self, name: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_up_to_a_limit_and_forgets_on_success() {
        let backoff = Backoff::default();
        let waits: Vec<_> = (0..7).map(|_| backoff.after_failure("a").as_millis()).collect();
        assert_eq!(waits, [200, 400, 800, 1600, 3200, 5000, 5000]);
        assert_eq!(backoff.after_failure("b"), FIRST);
        backoff.succeeded("a");
        assert_eq!(backoff.after_failure("a"), FIRST);
    }
}
