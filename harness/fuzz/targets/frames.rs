//! The watch frame splitter: the same lines and the same error however the bytes were cut, none above the limit, and
//! nothing lost. Input: a limit, a number of cuts, the cuts, the bytes.
#![no_main]
#![allow(dead_code, reason = "the module is the proxy's own, and only a part of it is under test")]

#[path = "../../proxy/src/frames.rs"]
mod frames;

use bytes::Bytes;
use frames::{Splitter, TooLong, WatchEvent};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let [limit, cuts, rest @ ..] = input else { return };
    let (limit, cuts) = (usize::from(*limit) + 1, usize::from(*cuts % 16));
    let Some((cuts, text)) = rest.split_at_checked(cuts) else { return };
    let mut at: Vec<usize> = cuts.iter().map(|c| usize::from(*c).min(text.len())).collect();
    at.extend([0, text.len()]);
    at.sort_unstable();

    let (lines, end) = split(limit, std::iter::once(text));
    let as_cut = split(limit, at.windows(2).map(|w| &text[w[0]..w[1]]));
    assert_eq!(as_cut, (lines.clone(), end.clone()), "the lines depend on how the bytes were cut");
    let by_byte = split(limit, text.chunks(1));
    assert_eq!(by_byte, (lines.clone(), end.clone()), "the lines depend on how the bytes were cut");

    for line in &lines {
        assert_eq!(line.iter().position(|b| *b == b'\n'), Some(line.len() - 1), "a line has one newline, at its end");
        assert!(line.len() <= limit, "a line is longer than the limit");
        if let Some(event) = WatchEvent::read(line) {
            let _ = event.object();
        }
    }
    let mut all = lines.concat();
    if let Ok(rest) = end {
        all.extend_from_slice(rest.as_deref().unwrap_or_default());
        assert_eq!(all, text, "bytes are lost or made up");
    } else {
        assert!(text.starts_with(&all), "bytes are lost or made up");
        let next = text[all.len()..].split_inclusive(|b| *b == b'\n').next().unwrap_or_default();
        assert!(next.len() > limit, "a line that fits is refused");
    }
});

type End = Result<Option<Bytes>, TooLong>;

fn split<'a>(limit: usize, chunks: impl Iterator<Item = &'a [u8]>) -> (Vec<Bytes>, End) {
    let mut splitter = Splitter::new(limit);
    let mut lines = Vec::new();
    for chunk in chunks {
        splitter.push(chunk);
        loop {
            match splitter.line() {
                Ok(Some(line)) => lines.push(line),
                Ok(None) => break,
                Err(error) => return (lines, Err(error)),
            }
        }
    }
    let rest = splitter.rest();
    (lines, Ok(rest))
}
