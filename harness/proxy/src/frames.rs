//! Watch events in a byte stream: one JSON document a line, however the bytes were cut on their way.

use bytes::{Bytes, BytesMut};
use serde::Deserialize;
use serde_json::Value;
use spiritlevel_model::fault::FrameType;

/// Longest event that is passed on: far above what etcd stores (1.5 MB) and below what would hurt.
pub(crate) const LIMIT: usize = 64 * 1024 * 1024;

/// Cuts a byte stream into lines, each with its newline.
#[derive(Debug)]
pub(crate) struct Splitter {
    rest: BytesMut,
    /// How much of `rest` is known to hold no newline.
    searched: usize,
    limit: usize,
}

/// A line is longer than the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a watch event is longer than {0} bytes")]
pub(crate) struct TooLong(usize);

impl Splitter {
    pub(crate) fn new(limit: usize) -> Self {
        Self { rest: BytesMut::new(), searched: 0, limit }
    }

    /// Takes more bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.rest.extend_from_slice(bytes);
    }

    /// The next whole line, if it is there.
    pub(crate) fn line(&mut self) -> Result<Option<Bytes>, TooLong> {
        let newline = self.rest[self.searched..].iter().position(|b| *b == b'\n').map(|at| self.searched + at + 1);
        match newline {
            Some(end) if end <= self.limit => {
                self.searched = 0;
                Ok(Some(self.rest.split_to(end).freeze()))
            }
            None if self.rest.len() <= self.limit => {
                self.searched = self.rest.len();
                Ok(None)
            }
            _ => Err(TooLong(self.limit)),
        }
    }

    /// What came after the last newline.
    pub(crate) fn rest(&mut self) -> Option<Bytes> {
        self.searched = 0;
        Some(self.rest.split().freeze()).filter(|r| !r.is_empty())
    }
}

/// A watch event.
#[derive(Debug, Deserialize)]
pub(crate) struct WatchEvent {
    #[serde(rename = "type")]
    pub(crate) kind: FrameType,
    #[serde(default)]
    object: Value,
}

impl WatchEvent {
    /// `None` for what is no watch event.
    pub(crate) fn read(line: &[u8]) -> Option<Self> {
        serde_json::from_slice(line).ok()
    }

    /// The object; where the client asked for a Table, the object in its first row.
    pub(crate) fn object(&self) -> &Value {
        match self.object["kind"].as_str() {
            Some("Table") => &self.object["rows"][0]["object"],
            _ => &self.object,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn split(limit: usize, chunks: &[&[u8]]) -> Result<(Vec<Bytes>, Option<Bytes>), TooLong> {
        let mut splitter = Splitter::new(limit);
        let mut lines = Vec::new();
        for chunk in chunks {
            splitter.push(chunk);
            while let Some(line) = splitter.line()? {
                lines.push(line);
            }
        }
        Ok((lines, splitter.rest()))
    }

    proptest! {
        #[test]
        fn lines_do_not_depend_on_how_bytes_were_cut(
            text in proptest::collection::vec(prop_oneof![3 => Just(b'x'), 1 => Just(b'\n'), 1 => any::<u8>()], 0..200),
            cuts in proptest::collection::vec(0usize..200, 0..20),
        ) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|c| c.min(text.len())).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let chunks: Vec<&[u8]> = cuts.windows(2).map(|w| &text[w[0]..w[1]]).collect();
            let (lines, rest) = split(1000, &chunks).unwrap();
            let expected: Vec<&[u8]> = text.split_inclusive(|b| *b == b'\n').collect();
            let (whole, open): (Vec<&[u8]>, Vec<&[u8]>) = expected.into_iter().partition(|l| l.ends_with(b"\n"));
            prop_assert_eq!(lines.iter().map(|l| &l[..]).collect::<Vec<_>>(), whole);
            prop_assert_eq!(rest.as_deref(), open.first().copied());
        }
    }

    #[test]
    fn a_line_above_the_limit_is_an_error_however_it_comes() {
        for (chunks, fits) in [
            (&[&b"abc\n"[..]][..], true),
            (&[b"abcd\n"], false),
            (&[b"ab", b"cde"], false),
            (&[b"ab\ncd\nef\n"], true),
            (&[b"abcd"], true),
        ] {
            assert_eq!(split(4, chunks).is_ok(), fits, "{chunks:?}");
        }
    }

    #[test]
    fn tables_carry_the_object_in_their_first_row() {
        let plain = br#"{"type":"ADDED","object":{"kind":"Pod","metadata":{"name":"a"}}}"#;
        let table = br#"{"type":"DELETED","object":{"kind":"Table","rows":[{"cells":[1],"object":{"metadata":{"name":"b"}}}]}}"#;
        for (line, kind, name) in [(&plain[..], FrameType::Added, "a"), (&table[..], FrameType::Deleted, "b")] {
            let event = WatchEvent::read(line).unwrap();
            assert_eq!((event.kind, event.object()["metadata"]["name"].as_str()), (kind, Some(name)));
        }
        assert!(WatchEvent::read(b"{\"type\":\"NEW\"}").is_none());
        assert!(WatchEvent::read(b"k8s\0").is_none());
    }
}
