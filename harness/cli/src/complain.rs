//! Mistakes and failures as a person at a terminal reads them: what, why, and what to do.

use crate::{Error, voice::aside};
use miette::{GraphicalReportHandler, GraphicalTheme};
use spiritlevel_model::{problem::Problem, render};
use std::{
    collections::BTreeMap,
    error::Error as _,
    fmt::Write,
    io::{self, IsTerminal},
};

/// Texts of files by the names that problems give them; what is not there is read.
pub(crate) type Texts = BTreeMap<String, String>;

/// Tells on standard error why a command could not do its work.
pub(crate) fn complain(error: &Error) {
    let mut text = String::new();
    if let Error::Problems { problems } = error {
        text += &problems_text(problems, &Texts::new());
    }
    text += &error_text(error);
    aside(&text);
}

/// The message, its causes below each other, and the remedy.
fn error_text(error: &Error) -> String {
    let message = error.to_string();
    let whole = matches!(error, Error::Usage { .. } | Error::Find(spiritlevel_runner::Error::Input(_)));
    let to = if whole || message.starts_with("failed to ") { "" } else { "failed to " };
    let mut text = format!("error: {to}{}\n", indented(&message, 7));
    let mut told = message;
    let mut cause = error.source();
    while let Some(source) = cause {
        let next = source.to_string();
        if !told.contains(&next) {
            let _ = writeln!(text, "  why: {}", indented(&next, 7));
            told = next;
        }
        cause = source.source();
    }
    match error {
        Error::Usage { help, .. } => _ = writeln!(text, " hint: {}", indented(help, 7)),
        Error::Recorded { .. } => text += " hint: give a run's folder, as `run` writes it below its reports\n",
        _ => {}
    }
    text
}

fn indented(text: &str, by: usize) -> String {
    text.trim_end().replace('\n', &format!("\n{:by$}", ""))
}

/// All problems, each with the lines of its file.
pub(crate) fn problems_text(problems: &[Problem], texts: &Texts) -> String {
    let fancy = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
    let theme = if fancy { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
    let handler = GraphicalReportHandler::new_themed(theme).with_width(110).with_links(false);
    let mut all = String::new();
    for problem in problems {
        let read = || std::fs::read_to_string(&problem.file).unwrap_or_default();
        let source = texts.get(&problem.file).cloned().unwrap_or_else(read);
        let report = render::report(problem, &source);
        if handler.render_report(&mut all, report.as_ref()).is_err() {
            let _ = writeln!(all, "{}", problem.to_line());
        }
        all.push('\n');
    }
    all
}
