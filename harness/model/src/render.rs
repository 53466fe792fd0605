//! A problem as people see it at a terminal: the lines of the file with a mark under the mistake.

use crate::problem::{Problem, Severity};
use miette::{Diagnostic, LabeledSpan, NamedSource, SourceCode};
use std::fmt;

/// A report for `miette`, which the binary prints; `text` is what is in the problem's file.
pub fn report(problem: &Problem, text: &str) -> miette::Report {
    miette::Report::new(Shown {
        problem: problem.clone(),
        source: NamedSource::new(&problem.file, text.to_owned()).with_language("yaml"),
    })
}

#[derive(Debug)]
struct Shown {
    problem: Problem,
    source: NamedSource<String>,
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem.message)
    }
}

impl std::error::Error for Shown {}

impl Diagnostic for Shown {
    fn severity(&self) -> Option<miette::Severity> {
        Some(match self.problem.severity {
            Severity::Error => miette::Severity::Error,
            Severity::Warning => miette::Severity::Warning,
        })
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.problem.help.as_ref().map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(&self.source)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let span = self.problem.span;
        let path = (!self.problem.path.0.is_empty()).then(|| self.problem.path.to_string());
        Some(Box::new(std::iter::once(LabeledSpan::new(path, span.offset, span.length))))
    }
}

#[cfg(test)]
mod tests {
    use super::report;
    use crate::load::load_scenario;
    use miette::NarratableReportHandler;

    #[test]
    fn the_mistake_is_marked_in_its_line() {
        let text = "apiVersion: spiritlevel/v1alpha1\nkind: Scenario\nmetadata: {name: s}\nspec: {sed: 1}\n";
        let loaded = load_scenario("s.yaml", text, None);
        let mut shown = String::new();
        let report = report(&loaded.problems[0], text);
        NarratableReportHandler::new().render_report(&mut shown, report.as_ref()).unwrap();
        for part in ["unknown field `sed`", "s.yaml", "line 4", "spec.sed", "did you mean `seed`?", "severity: error"] {
            assert!(shown.contains(part), "{part} in:\n{shown}");
        }
    }
}
