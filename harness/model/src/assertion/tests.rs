use super::{Tree, closest, evaluate, expression_in, output, parse, render};
use crate::{bindings::Bindings, yaml};
use proptest::prelude::*;
use serde_json::{Value, json};

fn object() -> Value {
    json!({
        "kind": "Thing",
        "metadata": {"name": "a", "labels": {"app.kubernetes.io/name": "x"}},
        "spec": {"replicas": 3, "ratio": 1.0, "paused": false, "names": ["p", "q"]},
        "status": {
            "readyReplicas": 1,
            "conditions": [
                {"type": "Ready", "status": "True", "observedGeneration": 2},
                {"type": "Degraded", "status": "False", "reason": "AllGood"},
            ],
        },
    })
}

fn bindings() -> Bindings {
    Bindings::from([("n".into(), json!(2)), ("who".into(), json!("Ready"))])
}

#[test]
fn expressions() {
    for (text, value) in [
        ("@.kind", json!("Thing")),
        ("spec.replicas", json!(3)),
        ("spec.nothing.there", json!(null)),
        ("metadata.labels.\"app.kubernetes.io/name\"", json!("x")),
        ("status.conditions[0].type", json!("Ready")),
        ("status.conditions[-1].type", json!("Degraded")),
        ("status.conditions[7]", json!(null)),
        ("status.conditions[*].type", json!(["Ready", "Degraded"])),
        ("status.conditions[*].reason", json!(["AllGood"])),
        ("status.conditions[?type == 'Ready'].status", json!(["True"])),
        ("status.conditions[?type == $who] | [0].status", json!("True")),
        ("status.conditions[?type == 'Degraded' && reason != 'X'] | length(@)", json!(1)),
        ("length(status.conditions)", json!(2)),
        ("length(kind)", json!(5)),
        ("contains(spec.names, 'p')", json!(true)),
        ("contains(kind, 'hin')", json!(true)),
        ("starts_with(kind, 'Th') && ends_with(kind, 'ng')", json!(true)),
        ("keys(metadata)", json!(["name", "labels"])),
        ("spec.replicas > `2`", json!(true)),
        ("spec.replicas >= 4", json!(false)),
        ("spec.replicas == $n", json!(false)),
        ("spec.ratio == 1", json!(true)),
        ("kind > 1", json!(null)),
        ("!spec.paused", json!(true)),
        ("!!kind", json!(true)),
        ("!!spec.nothing", json!(false)),
        ("!!!kind", json!(false)),
        ("!(spec.paused || spec.replicas < 3)", json!(true)),
        ("spec.paused == false", json!(true)),
        ("spec.nothing == null", json!(true)),
        ("spec.nothing || 'other'", json!("other")),
        ("'it\\'s'", json!("it's")),
        ("`{\"a\": [1]}`.a[0]", json!(1)),
        ("-1", json!(-1)),
    ] {
        let expression = parse(text).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(evaluate(&expression, &object(), &bindings()).unwrap(), value, "{text}");
    }
}

#[test]
fn what_is_no_expression_says_why() {
    for (text, offset, why) in [
        ("sort_by(@, &name)", 0, "the function `sort_by` is not supported in assertions; say it in a `cel:` assertion"),
        ("items[].name", 6, "flattening with `[]` is not supported in assertions; say it in a `cel:` assertion"),
        ("items[0:2]", 6, "a slice is not supported in assertions; say it in a `cel:` assertion"),
        ("{a: b}", 0, "`{` is not supported in assertions; say it in a `cel:` assertion"),
        ("~.items", 0, "`~` is not supported in assertions; say it in a `cel:` assertion"),
        (
            "items[?a == 'b'][0]",
            17,
            "after a filter or [*] an index is taken of each item; for the item itself write `| [0]`",
        ),
        ("a ==", 4, "the expression ends too early"),
        ("", 0, "the expression ends too early"),
        ("a b", 2, "unexpected `b`"),
        ("a == 'b", 5, "the string that begins here has no end"),
        ("a == `b`", 5, "`b` is not JSON; a string is written 'b'"),
        ("length(a, b)", 0, "`length` takes 1 argument"),
        ("items[?a == 'b'", 15, "the expression ends too early; `]` is expected"),
        ("$", 0, "a name must follow `$`"),
    ] {
        let error = parse(text).unwrap_err();
        assert_eq!((error.offset, error.message.as_str()), (offset, why), "{text}");
    }
    assert!(parse(&"(".repeat(1000)).is_err());
}

#[test]
fn what_fails_on_a_node_says_why() {
    for (text, why) in [
        ("length(nothing)", "length() of nothing"),
        ("contains(kind, 3)", "contains() needs a string, and got a number"),
        ("$missing", "`$missing` has no value"),
    ] {
        let error = evaluate(&parse(text).unwrap(), &object(), &bindings()).unwrap_err();
        assert_eq!(error.message, why, "{text}");
    }
}

fn check(tree: &str, differences: &str) {
    let (documents, flaws) = yaml::parse(tree);
    assert_eq!(flaws, [], "{tree}");
    let tree = Tree::read(&documents[0].to_value()).unwrap_or_else(|e| panic!("{tree}: {e:?}"));
    assert_eq!(render(&tree.mismatches(&object(), &bindings())), differences);
}

#[test]
fn trees() {
    for (tree, differences) in [
        ("kind: Thing\nspec: {replicas: 3}", ""),
        (
            "spec: {replicas: 4, paused: true}",
            "spec.replicas: expected 4, got 3\nspec.paused: expected true, got false",
        ),
        ("spec: {replicas: \"3\"}", "spec.replicas: expected \"3\" (a string), got 3 (a number)"),
        ("spec: {ratio: 1}", ""),
        ("status: {phase: Ready}", "status.phase: expected \"Ready\", it is missing"),
        ("nothing: {at: {all: 1}}", "nothing.at.all: expected 1, it is missing"),
        ("metadata: {deletionTimestamp: null}", ""),
        (
            "metadata: {labels: {app.kubernetes.io/name: z}}",
            "metadata.labels[\"app.kubernetes.io/name\"]: expected \"z\", got \"x\"",
        ),
        ("nothing: {}", "nothing: expected a mapping, it is missing"),
        ("spec: {}", ""),
        ("kind: {a: 1}", "kind: expected a mapping, got \"Thing\""),
        ("spec: {names: [p, q]}", ""),
        ("spec: {names: [q, p]}", "spec.names[0]: expected \"q\", got \"p\"\nspec.names[1]: expected \"p\", got \"q\""),
        ("spec: {names: [p]}", "spec.names: expected a list of 1 item, got a list of 2 items"),
        ("status: {nothing: [1]}", "status.nothing: expected a list of 1 item, it is missing"),
        ("spec: {names: {contains: [q]}}", ""),
        (
            "spec: {names: {contains: [r]}}",
            "spec.names: expected an item like contains[0], got a list of 2 items; the closest item: expected \"r\", got \"p\"",
        ),
        ("status: {conditions: {contains: [{type: Degraded, status: \"False\"}]}}", ""),
        ("status:\n  (conditions[?type == 'Ready']):\n    - status: \"True\"", ""),
        (
            "status:\n  (conditions[?type == 'Ready']):\n    - status: \"False\"",
            "status.(conditions[?type == 'Ready'])[0].status: expected \"False\", got \"True\"",
        ),
        (
            "status:\n  (conditions[?type == 'Gone']):\n    - status: \"True\"",
            "status.(conditions[?type == 'Gone']): expected a list of 1 item, got a list of 0 items",
        ),
        (
            "status:\n  (length(conditions)): 2\n  (length(nothing)): 0",
            "status.(length(nothing)): expected an answer, but length() of nothing, got {\"readyReplicas\":1,\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\",\"observedGeneration\":2},{\"type\":\"Degraded\",\"status\":\"Fa…",
        ),
        ("status: {conditions: (length(@) > `1`)}", ""),
        (
            "status: {conditions: (length(@) > `2`)}",
            "status.conditions: expected (length(@) > `2`), got [{\"type\":\"Ready\",\"status\":\"True\",\"observedGeneration\":2},{\"type\":\"Degraded\",\"status\":\"False\",\"reason\":\"AllGood\"}]",
        ),
        ("spec: {replicas: ($n), paused: (@ == false)}", "spec.replicas: expected 2, got 3"),
        ("spec:\n  (replicas > $n): true\n  (paused || ratio == `1`): true", ""),
        ("(kind != 'Thing'): true", "(kind != 'Thing'): expected true, got false"),
        ("metadata: {name: \\(a)}", "metadata.name: expected \"(a)\", got \"a\""),
    ] {
        check(tree, differences);
    }
}

#[test]
fn expressions_that_are_none_are_told_with_their_place() {
    let tree = json!({"a": {"(b[])": 1}, "c": ["(sum(@))"]});
    let told: Vec<_> = Tree::read(&tree).unwrap_err().into_iter().map(|p| (p.path.to_string(), p.is_key)).collect();
    assert_eq!(told, [("a.(b[])".to_string(), true), ("c[0]".to_string(), false)]);
}

#[test]
fn the_closest_object_explains() {
    let tree = Tree::read(&json!({"a": 1, "b": 1})).unwrap();
    let objects = [json!({"a": 2, "b": 2}), json!({"a": 1, "b": 2})];
    let (object, mismatches) = closest(&tree, &objects, &Bindings::new()).unwrap_err().unwrap();
    assert_eq!((object, render(&mismatches).as_str()), (&objects[1], "b: expected 1, got 2"));
    assert!(closest(&tree, &[], &Bindings::new()).unwrap_err().is_none());
    assert!(closest(&tree, &[json!({"a": 1, "b": 1, "c": 1})], &Bindings::new()).is_ok());
}

#[test]
fn outputs_are_expressions_or_values() {
    assert_eq!(output(&json!("(metadata.name)"), &object(), &bindings()).unwrap(), "a");
    assert_eq!(output(&json!("plain"), &object(), &bindings()).unwrap(), "plain");
    assert_eq!(expression_in("(a) b"), None);
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-z]{1,5}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{1,3}", inner, 0..4).prop_map(|m| json!(m)),
        ]
    })
}

/// A copy in which mappings have lost the fields that a bit of `which` names.
fn subset(value: &Value, which: &mut u64) -> Value {
    match value {
        Value::Object(map) => {
            let mut kept = serde_json::Map::new();
            for (key, inner) in map {
                *which = which.rotate_right(1);
                if *which & 1 == 1 {
                    kept.insert(key.clone(), subset(inner, which));
                }
            }
            Value::Object(kept)
        }
        Value::Array(items) => items.iter().map(|i| subset(i, which)).collect(),
        other => other.clone(),
    }
}

proptest! {
    #[test]
    fn every_subset_matches(value in values(), mut which in any::<u64>()) {
        let tree = Tree::read(&subset(&value, &mut which)).unwrap();
        prop_assert_eq!(tree.mismatches(&value, &Bindings::new()), []);
    }

    #[test]
    fn what_matches_both_ways_is_equal(a in values(), b in values()) {
        let matches = |tree: &Value, actual: &Value| Tree::read(tree).unwrap().mismatches(actual, &Bindings::new()).is_empty();
        prop_assert!(matches(&a, &a));
        if matches(&a, &b) && matches(&b, &a) {
            prop_assert_eq!(a, b);
        }
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in ".{0,40}") {
        let _ = parse(&text);
    }
}
