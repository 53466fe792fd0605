//! The operator's output, line by line, into the log file and to whoever listens.

use crate::{Error, Observer};
use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// Longer lines are cut into pieces, in bytes.
const LONGEST: usize = 64 * 1024;

/// Where a line was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// One line of the operator's output, redacted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// When it was read, by the wall clock.
    pub at: jiff::Timestamp,
    /// Where it was written.
    pub stream: Stream,
    /// Without the line's end. What was no UTF-8 is replaced.
    pub text: String,
}

/// `2026-11-30T18:05:01.123Z out text`, as in the log file.
impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stream = match self.stream {
            Stream::Out => "out",
            Stream::Err => "err",
        };
        write!(f, "{:.3} {stream} {}", self.at, self.text)
    }
}

/// The log file of one process, shared by its two streams.
#[derive(Clone)]
pub(crate) struct Log {
    file: Arc<Mutex<File>>,
    observer: Observer,
}

// === impl Log ===

impl Log {
    pub(crate) fn open(path: &Path, observer: Observer) -> Result<Self, Error> {
        let folder = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        let file = folder.and_then(|()| File::options().create(true).append(true).open(path));
        let file =
            file.map_err(|source| Error::File { action: "open the operator's log", path: path.to_owned(), source })?;
        Ok(Self { file: Arc::new(Mutex::new(file)), observer })
    }

    /// Copies a stream up to its end.
    pub(crate) async fn copy(self, from: impl AsyncRead + Unpin, stream: Stream) -> io::Result<()> {
        let mut from = BufReader::new(from);
        let mut line = Vec::new();
        loop {
            let piece = from.fill_buf().await?;
            if piece.is_empty() {
                break;
            }
            let (taken, whole) = match piece.iter().position(|byte| *byte == b'\n') {
                Some(end) => (end + 1, true),
                None => (piece.len(), false),
            };
            line.extend(&piece[..taken - usize::from(whole)]);
            from.consume(taken);
            if whole || line.len() >= LONGEST {
                self.write(&line, stream);
                line.clear();
            }
        }
        if !line.is_empty() {
            self.write(&line, stream);
        }
        Ok(())
    }

    fn write(&self, bytes: &[u8], stream: Stream) {
        let text = String::from_utf8_lossy(bytes);
        let text = text.trim_end_matches('\r');
        let text = self.observer.redact.as_ref().map_or_else(|| text.to_owned(), |redact| redact(text));
        let line = Line { at: jiff::Timestamp::now(), stream, text };
        let written = writeln!(self.file.lock().unwrap_or_else(PoisonError::into_inner), "{line}");
        if let Err(error) = written {
            // A full disk must not stop the operator, who would wait for a reader.
            tracing::warn!(%error, "write the operator's log");
        }
        if let Some(listen) = &self.observer.line {
            listen(&line);
        }
    }
}
