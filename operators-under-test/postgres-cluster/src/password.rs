//! The password of the `postgres` user.

use rand::SeedableRng;
use rand::distr::{Alphanumeric, SampleString};
use rand::rngs::{ChaCha20Rng, SysRng};

/// 32 random letters and digits, about 190 bits.
pub fn generate() -> String {
    let mut rng = ChaCha20Rng::try_from_rng(&mut SysRng).expect("the operating system has randomness");
    Alphanumeric.sample_string(&mut rng, 32)
}
