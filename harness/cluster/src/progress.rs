//! How long work tells what it is doing, without knowing about terminals.

/// Receives one line each time a long step begins or advances.
pub trait Progress: Send + Sync {
    /// Says one line, without a line end.
    fn say(&self, text: &str);
}

/// Says nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Quiet;

impl Progress for Quiet {
    fn say(&self, _text: &str) {}
}

impl<F: Fn(&str) + Send + Sync> Progress for F {
    fn say(&self, text: &str) {
        self(text);
    }
}
