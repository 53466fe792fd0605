use super::{parse, to_yaml};
use crate::problem::Path;
use proptest::prelude::*;
use serde_json::{Value, json};

fn read(text: &str) -> Value {
    let (documents, flaws) = parse(text);
    assert_eq!(flaws, [], "{text}");
    documents[0].to_value()
}

#[test]
fn scalars_mean_what_they_mean_to_kubectl() {
    for (text, value) in [
        ("no", json!(false)),
        ("y", json!(true)),
        ("On", json!(true)),
        ("off", json!(false)),
        ("~", json!(null)),
        ("", json!(null)),
        ("'no'", json!("no")),
        ("\"1\"", json!("1")),
        ("!!str 1", json!("1")),
        ("0644", json!(420)),
        ("0o17", json!(15)),
        ("0x1F", json!(31)),
        ("08", json!(8)),
        ("1_000", json!(1000)),
        ("1e3", json!(1000)),
        ("1.50", json!(1.5)),
        (".5", json!(0.5)),
        ("-3", json!(-3)),
        ("1.2.3", json!("1.2.3")),
        ("2024-01-01", json!("2024-01-01")),
        ("12:30:00", json!("12:30:00")),
        ("1Gi", json!("1Gi")),
        ("yEs", json!("yEs")),
        ("18446744073709551615", json!(u64::MAX)),
        ("-9223372036854775808", json!(i64::MIN)),
    ] {
        assert_eq!(read(&format!("x: {text}\n"))["x"], value, "{text}");
    }
}

#[test]
fn keys_become_what_json_has() {
    assert_eq!(read("on: 1\n2: a\n'yes': b\n"), json!({"true": 1, "2": "a", "yes": "b"}));
}

#[test]
fn anchors_and_merges() {
    let text = "a: &x {p: 1, q: 2}\nb: *x\nc: {<<: *x, q: 3}\n";
    let v = read(text);
    assert_eq!((&v["b"], &v["c"]), (&json!({"p": 1, "q": 2}), &json!({"q": 3, "p": 1})));
}

#[test]
fn several_documents_and_empty_ones() {
    let (documents, flaws) = parse("---\n# nothing\n---\na: 1\n---\nb: 2\n...\n");
    assert_eq!(flaws, []);
    assert_eq!(documents.iter().map(super::Node::to_value).collect::<Vec<_>>(), [json!({"a": 1}), json!({"b": 2})]);
}

#[test]
fn duplicate_keys_are_flaws_and_the_rest_is_read() {
    let (documents, flaws) = parse("a: 1\nb: {c: 1, c: 2}\na: 2\n");
    assert_eq!(documents[0].to_value(), json!({"a": 1, "b": {"c": 1}}));
    let places: Vec<_> = flaws.iter().map(|f| (f.message.as_str(), f.span.line, f.span.column)).collect();
    assert_eq!(places, [("duplicate key `c`", 2, 11), ("duplicate key `a`", 3, 1)]);
}

#[test]
fn bombs_of_aliases_and_deep_nesting_end_early() {
    let mut bomb = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x]\n");
    for i in 1..12 {
        let before = format!("*a{}", i - 1);
        let line = format!("a{i}: &a{i} [{}]\n", [before.as_str(); 9].join(","));
        bomb.push_str(&line);
    }
    assert!(parse(&bomb).1[0].message.contains("too large"));
    assert!(!parse(&"[".repeat(5000)).1.is_empty());
    // Few nodes, each alias a level deeper than its text.
    let mut tower = String::from("a0: &a0 [x]\n");
    for i in 1..150 {
        tower.push_str(&format!("a{i}: &a{i} [*a{}]\n", i - 1));
    }
    assert!(parse(&tower).1[0].message.contains("too deeply"));
}

#[test]
fn what_is_written_is_read_back() {
    for text in [
        "no",
        "y",
        "1_000",
        "0644",
        "~",
        "",
        " x ",
        "a: b",
        "# c",
        "2024-01-01",
        "1e3",
        "on",
        "- a",
        "a\nb",
        "a\n\n b\n",
        "\t",
        "'",
        "\"",
        "($x)",
        "é",
        ".5",
        "0x1F",
        "12:30:00",
        "null",
        "<<",
        "=",
        "*a",
        "&a",
        "!x",
        "%",
        "@",
        "`",
        "{}",
        "[]",
        "?",
        "a #b",
        "\u{85}",
        "\r\n",
        "+1",
        "1__0",
        "-0b1",
        "0o8",
        ".inf",
    ] {
        let value = json!({"s": text, "list": [text, {"k": text}], text: 1});
        let written = to_yaml(&value).unwrap();
        let (documents, flaws) = parse(&written);
        assert_eq!(flaws, [], "{text:?}:\n{written}");
        assert_eq!(documents[0].to_value(), value, "{text:?}:\n{written}");
    }
}

#[test]
fn places_count_characters_and_offsets_bytes() {
    let text = "ä: {ß: 1, \"q\": [x, 'ü']}\n";
    let (documents, _) = parse(text);
    let root = &documents[0];
    for (path, is_key, column, covered) in [
        ("ä.ß", true, 5, "ß"),
        ("ä.q", true, 11, "\"q\""),
        ("ä.q[1]", false, 20, "'ü'"),
        ("ä.ß", false, 8, "1"),
        // What is not there is told at what is.
        ("ä.q[7].z", false, 16, ""),
    ] {
        let path = Path::parse(path);
        let span = if is_key { root.key_span_at(&path) } else { root.span_at(&path) };
        let there = &text[span.offset..span.offset + span.length];
        assert_eq!((span.line, span.column), (1, column), "{path}");
        assert!(covered.is_empty() || there == covered, "{path}: {there}");
    }
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1.0e6..1.0e6).prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        "[-+0-9._:xoeyn~# ]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(".{0,6}", inner, 0..4).prop_map(|m| json!(m)),
        ]
    })
}

proptest! {
    #[test]
    fn every_value_is_read_back_as_written(value in values()) {
        let value = json!({"document": value});
        let written = to_yaml(&value).unwrap();
        let (documents, flaws) = parse(&written);
        prop_assert_eq!(&flaws, &[], "{}", written);
        prop_assert_eq!(documents[0].to_value(), value, "{}", written);
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in "[-a-c:{}\\[\\]&*!|>'\"%@ \n\t?,#]{0,60}") {
        let (_, _) = parse(&text);
    }
}
