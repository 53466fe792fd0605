//! The reporter: hears events, writes lines and files.

use crate::{
    Detail, Error, Event, Finished, Look, Output, Skipped, Summary, Surroundings, annotation::annotation, block::block,
    json, junit, line, progress::Progress, summary::Heard, tally::Tally,
};
use std::{
    io::{self, Write},
    path::{Path, PathBuf},
    time::Duration,
};

/// How a reporter speaks.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// For people or for programs.
    pub output: Output,
    /// How much is told.
    pub detail: Detail,
    /// Where it is told.
    pub surroundings: Surroundings,
    /// Version of the harness.
    pub harness: String,
    /// What is under test, when it is one suite: part of the header.
    pub suite: Option<String>,
}

/// Hears of everything and tells what a reader wants to know.
pub struct Reporter {
    settings: Settings,
    look: Look,
    out: Box<dyn Write + Send>,
    err: Box<dyn Write + Send>,
    progress: Option<Progress>,
    headed: bool,
    /// Whether an empty line sets off what comes next.
    gap: bool,
    heard: Heard,
    /// The first thing that could not be written; a closed pipe must not end a run half-way.
    broken: Option<Error>,
}

// === impl Reporter ===

impl Reporter {
    /// One that writes to standard output, and what is only for the moment to standard error.
    pub fn new(settings: Settings) -> Self {
        let progress = (settings.surroundings.live && settings.output == Output::Text).then(Progress::new);
        let mut reporter = Self::to(settings, Box::new(io::stdout()), Box::new(io::stderr()));
        reporter.progress = progress;
        reporter
    }

    /// One that writes elsewhere, without lines that are drawn anew.
    pub fn to(settings: Settings, out: Box<dyn Write + Send>, err: Box<dyn Write + Send>) -> Self {
        let look = if settings.surroundings.colour { Look::Coloured } else { Look::Plain };
        Self {
            settings,
            look,
            out,
            err,
            progress: None,
            headed: false,
            gap: false,
            heard: Heard::default(),
            broken: None,
        }
    }

    /// Something happened.
    pub fn hear(&mut self, event: Event) {
        match event {
            Event::Progress(text) => match &mut self.progress {
                Some(progress) => progress.work(&text),
                None => self.aside(&format!(" … {text}\n")),
            },
            Event::Notice(text) => {
                let text = format!("{} {text}\n", self.look.doubtful("note:"));
                self.aside(&text);
            }
            Event::ControlPlaneReady(ready) => {
                if let Some(progress) = &mut self.progress {
                    progress.work_done();
                }
                if self.heard.control_plane.is_none() {
                    self.heard.control_plane = Some(ready);
                    self.head();
                } else if self.settings.detail == Detail::Verbose {
                    let took = line::seconds(ready.took);
                    self.aside(&format!(" … another control plane is ready, after {took}\n"));
                }
            }
            Event::RunStarted { key, title } => {
                if let Some(progress) = &mut self.progress {
                    progress.started(&key, &title);
                }
            }
            Event::RunPhase { key, phase } => {
                if let Some(progress) = &mut self.progress {
                    progress.phase(&key, phase);
                }
            }
            Event::RunProgress { key, text } => {
                if let Some(progress) = &mut self.progress {
                    progress.step(&key, text);
                }
            }
            Event::RunFinished(run) => self.finished(*run),
            Event::RunSkipped(run) => self.skipped(run),
            Event::CleanupFailed { of, why } => {
                let text = format!("clearing up after {of} failed: {why}");
                self.aside(&format!("{} {text}\n", self.look.doubtful("note:")));
                self.heard.cleanup_failures.push(text);
            }
        }
    }

    /// Writes the files, then the last line. Returns what counts for the exit code.
    pub fn finish(mut self, report_dir: &Path, took: Duration) -> Result<Tally, Error> {
        if let Some(progress) = &mut self.progress {
            progress.close();
        }
        let summary = self.heard.summary(&self.settings.harness, took);
        let at = |name: &str| -> PathBuf { report_dir.join(name) };
        std::fs::create_dir_all(report_dir).map_err(|source| Error::File { path: report_dir.into(), source })?;
        junit::write(&self.heard, took, &at("junit.xml"))?;
        summary.write(&at("summary.json"))?;
        self.last(&summary, &at("summary.json"))?;
        match self.broken.take() {
            Some(error) => Err(error),
            None => Ok(summary.counts),
        }
    }

    /// What has been heard so far.
    pub fn tally(&self) -> Tally {
        self.heard.tally()
    }

    fn last(&mut self, summary: &Summary, path: &Path) -> Result<(), Error> {
        match self.settings.output {
            Output::Json => {
                let text = json::summary(summary)?;
                self.tell(&text);
            }
            Output::Text => {
                self.head();
                let text = format!("\n{} · {}\n", summary.counts.line(self.look), path.display());
                self.tell(&text);
            }
        }
        Ok(())
    }

    fn finished(&mut self, run: Finished) {
        if let Some(progress) = &mut self.progress {
            progress.ended(&run.key);
        }
        let text = match self.settings.output {
            Output::Json => json::finished(&run),
            Output::Text => {
                self.head();
                let mut text = block(&self.shortened(&run), self.settings.detail, self.look);
                let gap = std::mem::replace(&mut self.gap, text.lines().count() > 1);
                if gap {
                    text.insert(0, '\n');
                }
                if let Some(line) = annotation(&run).filter(|_| self.settings.surroundings.github) {
                    text.push_str(&line);
                    text.push('\n');
                }
                Ok(text)
            }
        };
        self.told(text);
        self.heard.runs.push(run);
    }

    /// Reasons of several lines are told once: a build that failed, programs that were not found.
    fn shortened(&self, run: &Finished) -> Finished {
        let mut run = run.clone();
        let reasons = &run.verdict.reasons;
        let earlier = self.heard.runs.iter().find(|earlier| earlier.verdict.reasons == *reasons);
        let first = reasons.first().filter(|first| first.contains('\n'));
        if let (Some(earlier), Some(first)) = (earlier, first) {
            run.verdict.reasons = vec![format!("{} (as for {})", line::first_line(first), earlier.title)];
        }
        run
    }

    fn skipped(&mut self, run: Skipped) {
        let text = match self.settings.output {
            Output::Json => json::skipped(&run),
            Output::Text => {
                self.head();
                let gap = if std::mem::take(&mut self.gap) { "\n" } else { "" };
                Ok(format!("{gap}{}\n", line::skipped(&run, self.look)))
            }
        };
        self.told(text);
        self.heard.skipped.push(run);
    }

    /// `spiritlevel 0.1.0 · local control plane v1.36.3, ready in 4.6 s, garbage collection proven`, once.
    fn head(&mut self) {
        if self.headed || self.settings.output == Output::Json {
            return;
        }
        self.headed = true;
        let mut text = self.look.strong(&format!("spiritlevel {}", self.settings.harness));
        if let Some(ready) = &self.heard.control_plane {
            let took = line::seconds(ready.took);
            text += &format!(
                " · {} control plane {}, ready in {took}, garbage collection proven",
                ready.provider, ready.version
            );
        }
        if let Some(suite) = &self.settings.suite {
            text += &format!(" · {suite}");
        }
        self.gap = true;
        self.tell(&(text + "\n"));
    }

    fn told(&mut self, text: Result<String, Error>) {
        match text {
            Ok(text) => self.tell(&text),
            Err(error) => self.broken = self.broken.take().or(Some(error)),
        }
    }

    fn tell(&mut self, text: &str) {
        let out = &mut self.out;
        let mut write = || out.write_all(text.as_bytes()).and_then(|()| out.flush());
        let written = match &self.progress {
            Some(progress) => progress.above(&mut write),
            None => write(),
        };
        if let Err(error) = written {
            self.broken = self.broken.take().or(Some(Error::Output(error)));
        }
    }

    /// For the moment only. Nobody may listen, and that is all right.
    fn aside(&mut self, text: &str) {
        let err = &mut self.err;
        let mut write = || err.write_all(text.as_bytes()).and_then(|()| err.flush());
        let _ = match &self.progress {
            Some(progress) => progress.above(&mut write),
            None => write(),
        };
    }
}

#[cfg(test)]
mod tests;
