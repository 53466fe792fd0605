//! What was measured, as a table in Markdown.

use std::time::Duration;

pub(crate) struct Table {
    columns: usize,
    lines: Vec<String>,
}

impl Table {
    pub(crate) fn new(head: &[&str]) -> Self {
        let rule = vec!["---"; head.len()];
        Self { columns: head.len(), lines: vec![line(head), line(&rule)] }
    }

    pub(crate) fn row<const N: usize>(&mut self, cells: [&str; N]) {
        assert_eq!(N, self.columns, "a cell for every column");
        self.lines.push(line(&cells));
    }

    pub(crate) fn print(&self) {
        println!("{}\n", self.lines.join("\n"));
    }
}

/// In ms at p50 and p99; nothing where nothing was measured.
pub(crate) fn quantiles(mut times: Vec<Duration>) -> (f64, f64) {
    times.sort_unstable();
    let at = |share: f64| {
        let index = (times.len().saturating_sub(1) as f64 * share) as usize;
        times.get(index).map_or(f64::NAN, |t| t.as_secs_f64() * 1000.0)
    };
    (at(0.5), at(0.99))
}

fn line(cells: &[&str]) -> String {
    format!("| {} |", cells.join(" | "))
}
