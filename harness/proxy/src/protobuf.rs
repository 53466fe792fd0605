//! The few fields of a protobuf body that a decision needs: `runtime.Unknown` around the object, and field 1 of every
//! kind, its `ObjectMeta` (`k8s.io/apimachinery/pkg/runtime/generated.proto`, `…/meta/v1/generated.proto`).
//!
//! A reader for messages without their schema, since only field numbers are needed; it returns nothing for what it does
//! not understand, and a body is passed on untouched whatever it returns.

use serde_json::json;
use spiritlevel_model::{Uid, fault::Bodies};

/// What the Kubernetes protobuf serializer writes first.
const MAGIC: &[u8] = b"k8s\0";

/// Reads a body in Kubernetes' protobuf encoding.
pub(crate) fn read(body: &[u8]) -> Option<Bodies> {
    let unknown = Message(body.strip_prefix(MAGIC)?);
    let kind = unknown.bytes(1).and_then(|type_meta| Message(type_meta).text(2));
    let raw = Message(unknown.bytes(2)?);
    Some(if kind.as_deref() == Some("DeleteOptions") { delete_options(raw) } else { object(raw) })
}

fn object(raw: Message<'_>) -> Bodies {
    let meta = Message(raw.bytes(1).unwrap_or_default());
    let filled = |field| meta.text(field).filter(|s| !s.is_empty());
    let label = |entry: Message<'_>| Some((entry.text(1)?, entry.text(2).unwrap_or_default()));
    Bodies {
        name: filled(1),
        generate_name: filled(2),
        uid: filled(5).map(Uid),
        resource_version: filled(6),
        labels: meta.fields().filter_map(|f| f.message(11)).filter_map(label).collect(),
        ..Bodies::default()
    }
}

fn delete_options(raw: Message<'_>) -> Bodies {
    let preconditions = Message(raw.bytes(2).unwrap_or_default());
    let (uid, resource_version) = (preconditions.text(1), preconditions.text(2));
    Bodies {
        // All that is asked of a delete's body later on.
        json: raw.text(5).map(|dry_run| json!({"dryRun": [dry_run]})),
        uid: uid.map(Uid),
        resource_version,
        ..Bodies::default()
    }
}

/// An encoded message.
#[derive(Clone, Copy)]
struct Message<'a>(&'a [u8]);

/// A field of a message: its number and, where it is length-delimited, its bytes.
struct Field<'a> {
    number: u64,
    bytes: Option<&'a [u8]>,
}

impl<'a> Message<'a> {
    /// Its fields, up to the first that cannot be read.
    fn fields(self) -> impl Iterator<Item = Field<'a>> {
        let mut rest = self.0;
        std::iter::from_fn(move || next_field(&mut rest))
    }

    /// A length-delimited field; the last one wins, as protobuf says.
    fn bytes(self, number: u64) -> Option<&'a [u8]> {
        self.fields().filter(|f| f.number == number).filter_map(|f| f.bytes).last()
    }

    fn text(self, number: u64) -> Option<String> {
        String::from_utf8(self.bytes(number)?.to_vec()).ok()
    }
}

impl<'a> Field<'a> {
    fn message(&self, number: u64) -> Option<Message<'a>> {
        self.bytes.filter(|_| self.number == number).map(Message)
    }
}

fn next_field<'a>(rest: &mut &'a [u8]) -> Option<Field<'a>> {
    if rest.is_empty() {
        return None;
    }
    let tag = varint(rest)?;
    let bytes = match tag & 7 {
        0 => {
            varint(rest)?;
            None
        }
        1 => {
            take(rest, 8)?;
            None
        }
        2 => {
            let length = usize::try_from(varint(rest)?).ok()?;
            Some(take(rest, length)?)
        }
        5 => {
            take(rest, 4)?;
            None
        }
        // Groups are not used by Kubernetes.
        _ => return None,
    };
    Some(Field { number: tag >> 3, bytes })
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let byte = take(rest, 1)?[0];
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(length)?;
    *rest = left;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn field(number: u8, content: &[u8]) -> Vec<u8> {
        let mut out = vec![number << 3 | 2];
        let mut length = content.len();
        while length >= 0x80 {
            out.push(u8::try_from(length & 0x7f).unwrap() | 0x80);
            length >>= 7;
        }
        out.push(u8::try_from(length).unwrap());
        out.extend_from_slice(content);
        out
    }

    fn unknown(kind: &str, raw: &[u8]) -> Vec<u8> {
        let type_meta = [field(1, b"v1"), field(2, kind.as_bytes())].concat();
        [MAGIC.to_vec(), field(1, &type_meta), field(2, raw), field(3, b""), field(4, b"")].concat()
    }

    #[test]
    fn object_meta_is_read_from_any_kind() {
        let label = |k: &[u8], v: &[u8]| field(11, &[field(1, k), field(2, v)].concat());
        let long = "x".repeat(300);
        let meta = [
            field(1, b"pg-1"),
            field(2, b"pg-"),
            field(3, b"shop"),
            field(5, b"u-1"),
            field(6, b"42"),
            // generation, a varint of several bytes.
            vec![7 << 3, 0xac, 0x02],
            label(b"app", b"pg"),
            label(b"long", long.as_bytes()),
        ]
        .concat();
        let body = unknown("ConfigMap", &[field(1, &meta), field(2, b"data")].concat());
        let bodies = read(&body).unwrap();
        assert_eq!(bodies.name.as_deref(), Some("pg-1"));
        assert_eq!(bodies.generate_name.as_deref(), Some("pg-"));
        assert_eq!(bodies.uid, Some(Uid("u-1".into())));
        assert_eq!(bodies.resource_version.as_deref(), Some("42"));
        assert_eq!(bodies.labels["app"], "pg");
        assert_eq!(bodies.labels["long"], long);
    }

    #[test]
    fn preconditions_of_a_delete_are_read() {
        for (preconditions, expected) in [
            (vec![], (None, None)),
            (field(2, &field(1, b"u-1")), (Some("u-1"), None)),
            (field(2, &field(2, b"42")), (None, Some("42"))),
            (field(2, &[]), (None, None)),
        ] {
            let grace = vec![1 << 3, 30];
            let bodies = read(&unknown("DeleteOptions", &[grace, preconditions].concat())).unwrap();
            let uid = bodies.uid.map(|u| u.0);
            assert_eq!((uid.as_deref(), bodies.resource_version.as_deref()), expected);
            assert_eq!(bodies.json, None);
        }
    }

    #[test]
    fn a_dry_run_of_a_delete_is_read() {
        let bodies = read(&unknown("DeleteOptions", &[vec![1 << 3, 30], field(5, b"All")].concat())).unwrap();
        assert_eq!(bodies.json, Some(json!({"dryRun": ["All"]})));
    }

    #[test]
    fn empty_names_are_no_names() {
        let body = unknown("Pod", &field(1, &[field(1, b""), field(2, b"p-"), field(6, b"")].concat()));
        let bodies = read(&body).unwrap();
        assert_eq!((bodies.name, bodies.generate_name.as_deref(), bodies.resource_version), (None, Some("p-"), None));
    }

    proptest! {
        #[test]
        fn garbage_is_read_without_panic(garbage in proptest::collection::vec(any::<u8>(), 0..300)) {
            read(&garbage);
            read(&[MAGIC, &garbage].concat());
            read(&unknown("Pod", &garbage));
            read(&unknown("DeleteOptions", &garbage));
        }

        #[test]
        fn a_truncated_body_is_read_without_panic(cut in 0usize..60) {
            let body = unknown("Pod", &field(1, &[field(1, b"name"), field(11, &field(1, b"key"))].concat()));
            read(&body[..cut.min(body.len())]);
        }
    }
}
