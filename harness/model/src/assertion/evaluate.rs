//! What an expression says about a node.

use super::{
    ast::{Comparison, Expression, Function},
    parser::ExpressionError,
};
use crate::bindings::Bindings;
use serde_json::Value;
use std::cmp::Ordering;

/// The value of an expression on `node`. What is not there is null.
///
/// # Errors
/// When a binding has no value or a function gets what it cannot work on.
pub fn evaluate(expression: &Expression, node: &Value, bindings: &Bindings) -> Result<Value, ExpressionError> {
    let of = |e: &Expression| evaluate(e, node, bindings);
    Ok(match expression {
        Expression::Current => node.clone(),
        Expression::Literal(value) => value.clone(),
        Expression::Binding(name) => {
            let value = bindings.get(name.as_str()).cloned();
            value.ok_or_else(|| ExpressionError::at(0, &format!("`${name}` has no value")))?
        }
        Expression::Field(left, name) => {
            each(left, of(left)?, &|v| Ok(v.get(name.as_str()).cloned().unwrap_or_default()))?
        }
        Expression::Index(left, index) => each(left, of(left)?, &|v| Ok(item(v, *index)))?,
        Expression::Each(left) => each(left, of(left)?, &|v| Ok(if v.is_array() { v.clone() } else { Value::Null }))?,
        Expression::Filter(left, condition) => each(left, of(left)?, &|v| filter(v, condition, bindings))?,
        Expression::Pipe(left, right) => evaluate(right, &of(left)?, bindings)?,
        Expression::Not(inner) => (!is_true(&of(inner)?)).into(),
        // As in JMESPath these give one of their values.
        Expression::And(left, right) => {
            let value = of(left)?;
            if is_true(&value) { of(right)? } else { value }
        }
        Expression::Or(left, right) => {
            let value = of(left)?;
            if is_true(&value) { value } else { of(right)? }
        }
        Expression::Compare(how, left, right) => compare(*how, &of(left)?, &of(right)?),
        Expression::Call(function, arguments) => {
            let arguments = arguments.iter().map(of).collect::<Result<Vec<_>, _>>()?;
            call(*function, &arguments)?
        }
    })
}

/// What JMESPath takes for true: all but nothing, `false` and what is empty.
pub(super) fn is_true(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(map) => !map.is_empty(),
        _ => true,
    }
}

/// Equal, with 1 and 1.0 the same number.
pub(super) fn is_equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(x), Value::Number(y)) => x == y || x.as_f64() == y.as_f64(),
        (Value::Array(x), Value::Array(y)) => x.len() == y.len() && x.iter().zip(y).all(|(x, y)| is_equal(x, y)),
        (Value::Object(x), Value::Object(y)) => {
            x.len() == y.len() && x.iter().all(|(k, v)| y.get(k).is_some_and(|w| is_equal(v, w)))
        }
        _ => a == b,
    }
}

type Step<'a> = &'a dyn Fn(&Value) -> Result<Value, ExpressionError>;

/// Does a step for a value; for each item, leaving out what is not there, when `left` ends in `[*]` or a filter.
fn each(left: &Expression, value: Value, step: Step<'_>) -> Result<Value, ExpressionError> {
    match (projects(left), value) {
        (true, Value::Array(items)) => {
            let all = items.iter().map(step).collect::<Result<Vec<_>, _>>()?;
            Ok(all.into_iter().filter(|v| !v.is_null()).collect())
        }
        (_, value) => step(&value),
    }
}

fn projects(expression: &Expression) -> bool {
    match expression {
        Expression::Each(_) | Expression::Filter(..) => true,
        Expression::Field(left, _) | Expression::Index(left, _) => projects(left),
        _ => false,
    }
}

fn item(value: &Value, index: i64) -> Value {
    let Some(items) = value.as_array() else { return Value::Null };
    let from_end = usize::try_from(index.unsigned_abs()).unwrap_or(usize::MAX);
    let at = if index < 0 { items.len().checked_sub(from_end) } else { Some(from_end) };
    at.and_then(|at| items.get(at)).cloned().unwrap_or_default()
}

fn filter(value: &Value, condition: &Expression, bindings: &Bindings) -> Result<Value, ExpressionError> {
    let Some(items) = value.as_array() else { return Ok(Value::Null) };
    let mut kept = Vec::new();
    for item in items {
        if is_true(&evaluate(condition, item, bindings)?) {
            kept.push(item.clone());
        }
    }
    Ok(kept.into())
}

/// Order exists between numbers only; between others it is nothing, which is not true.
fn compare(how: Comparison, a: &Value, b: &Value) -> Value {
    let order = a.as_f64().zip(b.as_f64()).and_then(|(a, b)| a.partial_cmp(&b));
    let ordered = |wanted: &[Ordering]| order.map_or(Value::Null, |o| wanted.contains(&o).into());
    match how {
        Comparison::Equal => is_equal(a, b).into(),
        Comparison::NotEqual => (!is_equal(a, b)).into(),
        Comparison::Less => ordered(&[Ordering::Less]),
        Comparison::LessOrEqual => ordered(&[Ordering::Less, Ordering::Equal]),
        Comparison::Greater => ordered(&[Ordering::Greater]),
        Comparison::GreaterOrEqual => ordered(&[Ordering::Greater, Ordering::Equal]),
    }
}

fn call(function: Function, arguments: &[Value]) -> Result<Value, ExpressionError> {
    let first = &arguments[0];
    let second = arguments.get(1).unwrap_or(&Value::Null);
    let cannot = || ExpressionError::at(0, &format!("{}() of {}", function.name(), kind_of(first)));
    Ok(match (function, first) {
        (Function::Length, Value::Array(items)) => items.len().into(),
        (Function::Length, Value::Object(map)) => map.len().into(),
        (Function::Length, Value::String(text)) => text.chars().count().into(),
        (Function::Contains, Value::Array(items)) => items.iter().any(|i| is_equal(i, second)).into(),
        (Function::Keys, Value::Object(map)) => map.keys().cloned().collect(),
        (_, Value::String(text)) if function != Function::Keys => {
            let part = second.as_str().ok_or_else(|| {
                let message = format!("{}() needs a string, and got {}", function.name(), kind_of(second));
                ExpressionError::at(0, &message)
            })?;
            match function {
                Function::Contains => text.contains(part),
                Function::StartsWith => text.starts_with(part),
                _ => text.ends_with(part),
            }
            .into()
        }
        _ => return Err(cannot()),
    })
}

pub(super) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "a mapping",
    }
}
