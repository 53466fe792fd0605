//! Exponential backoff with jitter, for reconciles and for watches.
//!
//! Without growth a broken cluster is asked a thousand times a second; without jitter all operators that lost the same
//! API server come back in the same millisecond.

use std::time::Duration;

use rand::rngs::{ChaCha8Rng, SysRng};
use rand::{RngExt, SeedableRng};

/// Delays from `FIRST`, doubling up to `LAST`, each between a half and the whole of its nominal value.
#[derive(Debug)]
pub struct JitteredBackoff {
    failures: u32,
    rng: ChaCha8Rng,
}

const FIRST: Duration = Duration::from_millis(200);
const LAST: Duration = Duration::from_secs(5);

// === impl JitteredBackoff ===

impl Default for JitteredBackoff {
    fn default() -> Self {
        let rng = ChaCha8Rng::try_from_rng(&mut SysRng).expect("the operating system has randomness");
        Self { failures: 0, rng }
    }
}

impl Iterator for JitteredBackoff {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let nominal = FIRST.saturating_mul(2_u32.saturating_pow(self.failures)).min(LAST);
        self.failures = self.failures.saturating_add(1);
        Some(nominal.mul_f64(self.rng.random_range(0.5..=1.0)))
    }
}

impl kube::runtime::utils::Backoff for JitteredBackoff {
    fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kube::runtime::utils::Backoff;

    use super::{FIRST, JitteredBackoff, LAST};

    #[test]
    fn delays_grow_to_the_last_and_start_over_after_a_success() {
        let mut backoff = JitteredBackoff::default();
        let delays: Vec<Duration> = backoff.by_ref().take(40).collect();
        assert!(delays[0] <= FIRST, "{delays:?}");
        assert!(delays.iter().skip(10).all(|delay| *delay >= LAST / 2 && *delay <= LAST), "{delays:?}");
        backoff.reset();
        assert!(backoff.next().is_some_and(|delay| delay <= FIRST));
    }
}
