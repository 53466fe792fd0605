//! The assertion expressions: errors point into the text, blanks and parentheses change nothing, and an expression gives
//! one value, whose negation is the other of true and false. Input: the text of an expression.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use spiritlevel_model::{
    assertion::{Tree, evaluate, parse},
    bindings::Bindings,
};
use std::sync::LazyLock;

static NODE: LazyLock<Value> = LazyLock::new(|| {
    json!({
        "metadata": {"name": "pg-1", "labels": {"app": "pg", "a-b": ""}},
        "spec": {"replicas": 3, "paused": false, "ratio": 0.5, "nothing": null, "items": [[1, 2], [], [3, [4]]]},
        "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Idle"}, 7, "Ready"]},
        "a": [{"b": 1}, {"b": 2}], "b": "aé€", "c": -1,
    })
});

fuzz_target!(|text: &str| {
    let bindings: Bindings = [("x".to_owned(), json!("pg-1")), ("n".to_owned(), json!(3))].into_iter().collect();
    let expression = match parse(text) {
        Ok(expression) => expression,
        Err(error) => {
            assert!(text.is_char_boundary(error.offset), "{error} at {} is nowhere in {text:?}", error.offset);
            assert!(!error.message.is_empty());
            return;
        }
    };
    assert_eq!(parse(&format!(" {text}\n")).as_ref(), Ok(&expression), "blanks change {text:?}");
    match parse(&format!("({text})")) {
        Ok(in_parentheses) => assert_eq!(in_parentheses, expression, "parentheses change {text:?}"),
        Err(error) => assert_eq!(error.message, "nested too deeply", "{text:?}"),
    }
    let value = evaluate(&expression, &NODE, &bindings);
    assert_eq!(evaluate(&expression, &NODE, &bindings), value, "{text:?} has two values");
    if let Ok(negated) = parse(&format!("!({text})")) {
        let negated = evaluate(&negated, &NODE, &bindings);
        let doubly = parse(&format!("!!({text})")).map(|e| evaluate(&e, &NODE, &bindings));
        let opposite = negated.clone().map(|n| Value::Bool(n == Value::Bool(false)));
        assert_eq!(doubly, Ok(opposite), "{text:?} negated twice");
        assert_eq!(negated.as_ref().err(), value.as_ref().err(), "{text:?} fails only without its negation");
        assert!(negated.is_err() || matches!(negated, Ok(Value::Bool(_))), "{text:?} is negated to {negated:?}");
    }
    // As a condition in a tree, over the node and over what the expression made of it.
    for node in [&*NODE, value.as_ref().unwrap_or(&Value::Null)] {
        if let Ok(tree) = Tree::read(&json!({(format!("({text})")): {"b": format!("({text})")}})) {
            let mismatches = tree.mismatches(node, &bindings);
            assert_eq!(tree.mismatches(node, &bindings).len(), mismatches.len());
        }
    }
});
