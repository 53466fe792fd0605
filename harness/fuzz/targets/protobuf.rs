//! The protobuf peek: reads what was written, whatever fields stand between; says nothing that is not in the body; and
//! of a body that was cut off, nothing that was behind the cut. Input: a mode; then a body, or fields for one.
#![no_main]
#![allow(dead_code, reason = "the module is the proxy's own, and only a part of it is under test")]

#[path = "../../proxy/src/protobuf.rs"]
mod protobuf;

use arbitrary::{Result, Unstructured};
use indexmap::IndexMap;
use libfuzzer_sys::fuzz_target;
use spiritlevel_model::{Uid, fault::Bodies};

const MAGIC: &[u8] = b"k8s\0";

fuzz_target!(|input: &[u8]| {
    let Some((mode, rest)) = input.split_first() else { return };
    match mode % 4 {
        0 => says_only_what_is_there(rest),
        1 => says_only_what_is_there(&[MAGIC, rest].concat()),
        2 => says_only_what_is_there(&object(&delimited(1, rest))),
        _ => {
            let _ = reads_what_was_written(&mut Unstructured::new(rest));
        }
    }
});

fn says_only_what_is_there(body: &[u8]) {
    let Some(bodies) = protobuf::read(body) else { return };
    assert!(body.starts_with(MAGIC));
    for text in texts(&bodies) {
        let there = text.is_empty() || body.windows(text.len()).any(|w| w == text.as_bytes());
        assert!(there, "{text:?} is not in the body");
    }
}

fn texts(bodies: &Bodies) -> impl Iterator<Item = &str> {
    let labels = bodies.labels.iter().flat_map(|(k, v)| [k.as_str(), v.as_str()]);
    [&bodies.name, &bodies.generate_name, &bodies.resource_version]
        .into_iter()
        .flatten()
        .map(String::as_str)
        .chain(bodies.uid.as_ref().map(|u| u.0.as_str()))
        .chain(labels)
}

fn reads_what_was_written(u: &mut Unstructured<'_>) -> Result<()> {
    let filled = |text: &str| Some(text.to_owned()).filter(|t| !t.is_empty());
    let (name, generate_name, uid, version) = (text(u)?, text(u)?, text(u)?, text(u)?);
    let mut labels = IndexMap::new();
    let mut meta = Vec::new();
    for (number, content) in [(1, &name), (2, &generate_name), (5, &uid), (6, &version)] {
        other_fields(u, &mut meta)?;
        meta.extend(delimited(number, content.as_bytes()));
    }
    for _ in 0..u.int_in_range(0..=3)? {
        let (key, value) = (text(u)?, text(u)?);
        other_fields(u, &mut meta)?;
        meta.extend(delimited(11, &[delimited(1, key.as_bytes()), delimited(2, value.as_bytes())].concat()));
        labels.insert(key, value);
    }
    let mut raw = delimited(1, &meta);
    other_fields(u, &mut raw)?;
    let body = object(&raw);
    let expected = Bodies {
        name: filled(&name),
        generate_name: filled(&generate_name),
        uid: filled(&uid).map(Uid),
        resource_version: filled(&version),
        labels,
        ..Bodies::default()
    };
    assert_eq!(protobuf::read(&body), Some(expected));
    let cut = u.int_in_range(0..=body.len())?;
    says_only_what_is_there(&body[..cut]);
    Ok(())
}

fn text(u: &mut Unstructured<'_>) -> Result<String> {
    let length = u.int_in_range(0..=200)?;
    let length = length.min(u.len());
    Ok(String::from_utf8_lossy(u.bytes(length)?).into_owned())
}

/// Fields that the peek does not know, of every type that there is.
fn other_fields(u: &mut Unstructured<'_>, out: &mut Vec<u8>) -> Result<()> {
    for _ in 0..u.int_in_range(0..=2)? {
        let number: u64 = u.int_in_range(12..=(1 << 29) - 1)?;
        match u.int_in_range(0..=3)? {
            0 => {
                varint(number << 3, out);
                varint(u.arbitrary()?, out);
            }
            1 => {
                varint(number << 3 | 1, out);
                out.extend(u.arbitrary::<[u8; 8]>()?);
            }
            2 => out.extend(delimited(number, text(u)?.as_bytes())),
            _ => {
                varint(number << 3 | 5, out);
                out.extend(u.arbitrary::<[u8; 4]>()?);
            }
        }
    }
    Ok(())
}

fn object(raw: &[u8]) -> Vec<u8> {
    let type_meta = [delimited(1, b"v1"), delimited(2, b"Pod")].concat();
    [MAGIC.to_vec(), delimited(1, &type_meta), delimited(2, raw), delimited(3, b""), delimited(4, b"")].concat()
}

fn delimited(number: u64, content: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    varint(number << 3 | 2, &mut out);
    varint(content.len() as u64, &mut out);
    out.extend_from_slice(content);
    out
}

fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
