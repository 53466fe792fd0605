//! What a plain scalar means: YAML 1.1 as `sigs.k8s.io/yaml` (over `go.yaml.in/yaml/v2`, `resolve.go`) reads manifests.

use serde_json::{Number, Value};

/// The value of an unquoted scalar without a tag.
pub(super) fn resolve(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => return Value::Bool(true),
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            return Value::Bool(false);
        }
        _ => {}
    }
    let first = text.as_bytes()[0];
    if !(first.is_ascii_digit() || matches!(first, b'+' | b'-' | b'.')) {
        return text.into();
    }
    // Underscores are read away in numbers, but not in those that begin with a dot.
    let plain = if first == b'.' { text.to_owned() } else { text.replace('_', "") };
    integer(&plain).or_else(|| float(&plain)).unwrap_or_else(|| text.into())
}

/// Go's `ParseInt(s, 0, 64)`, then `ParseUint`: 0x, 0o, 0b, and a leading 0 is octal.
fn integer(plain: &str) -> Option<Value> {
    let (negative, digits) = match plain.as_bytes().first()? {
        b'-' => (true, &plain[1..]),
        b'+' => (false, &plain[1..]),
        _ => (false, plain),
    };
    let lower = digits.to_ascii_lowercase();
    let (radix, digits) = match lower.as_bytes() {
        [b'0', b'x', ..] => (16, &lower[2..]),
        [b'0', b'o', ..] => (8, &lower[2..]),
        [b'0', b'b', ..] => (2, &lower[2..]),
        [b'0', _, ..] => (8, &lower[1..]),
        _ => (10, lower.as_str()),
    };
    if !digits.bytes().next()?.is_ascii_alphanumeric() {
        return None;
    }
    let magnitude = u64::from_str_radix(digits, radix).ok()?;
    if !negative {
        return Some(magnitude.into());
    }
    i64::try_from(-i128::from(magnitude)).ok().map(Into::into)
}

/// `^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`; infinities and NaN have no JSON and stay text.
fn float(plain: &str) -> Option<Value> {
    let unsigned = plain.strip_prefix(['-', '+']).unwrap_or(plain);
    let (mantissa, exponent) = match unsigned.find(['e', 'E']) {
        Some(at) => (&unsigned[..at], Some(&unsigned[at + 1..])),
        None => (unsigned, None),
    };
    let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    let mantissa_ok = match mantissa.split_once('.') {
        Some(("", fraction)) => digits(fraction),
        Some((whole, fraction)) => digits(whole) && (fraction.is_empty() || digits(fraction)),
        None => digits(mantissa),
    };
    let exponent_ok = exponent.is_none_or(|e| digits(e.strip_prefix(['-', '+']).unwrap_or(e)));
    if !mantissa_ok || !exponent_ok {
        return None;
    }
    let value: f64 = plain.parse().ok()?;
    // JSON knows one kind of number: what is whole is written without a fraction, as Go does.
    if value.fract() == 0.0 && value.abs() < 9.0e15 {
        return Some((value as i64).into());
    }
    Number::from_f64(value).map(Value::Number)
}
