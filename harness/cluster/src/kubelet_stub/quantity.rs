//! Sizes as Kubernetes writes them (`10Gi`, `1500M`, `1e9`), compared by value.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

/// Bytes of `resources["storage"]`, rounded up; `None` if absent or not a quantity.
pub(crate) fn storage(resources: Option<&BTreeMap<String, Quantity>>) -> Option<u128> {
    bytes(&resources?.get("storage")?.0)
}

/// The value of a quantity rounded up to a whole number, as apimachinery's `resource.Quantity.Value` does.
fn bytes(text: &str) -> Option<u128> {
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits: u128 = format!("{whole}{fraction}").parse().ok()?;
    let scale = 10u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let (multiply, divide) = match suffix {
        "" => (1, 1),
        "n" => (1, 1_000_000_000),
        "u" => (1, 1_000_000),
        "m" => (1, 1_000),
        "k" => (1_000, 1),
        "M" => (1_000_000, 1),
        "G" => (1_000_000_000, 1),
        "T" => (1_000_000_000_000, 1),
        "P" => (1_000_000_000_000_000, 1),
        "E" => (1_000_000_000_000_000_000, 1),
        "Ki" => (1 << 10, 1),
        "Mi" => (1 << 20, 1),
        "Gi" => (1 << 30, 1),
        "Ti" => (1 << 40, 1),
        "Pi" => (1 << 50, 1),
        "Ei" => (1 << 60, 1),
        exponent => {
            let power: i32 = exponent.strip_prefix(['e', 'E'])?.parse().ok()?;
            let factor = 10u128.checked_pow(power.unsigned_abs())?;
            if power < 0 { (1, factor) } else { (factor, 1) }
        }
    };
    Some(digits.checked_mul(multiply)?.div_ceil(scale.checked_mul(divide)?))
}

#[cfg(test)]
mod tests {
    use super::bytes;

    #[test]
    fn forms_of_one_size_are_equal() {
        for (text, want) in [
            ("10Gi", Some(10_737_418_240)),
            ("10240Mi", Some(10_737_418_240)),
            ("1.5Gi", Some(1_610_612_736)),
            ("1500M", Some(1_500_000_000)),
            ("1.5e9", Some(1_500_000_000)),
            ("100m", Some(1)),
            ("15E-1", Some(2)),
            ("3", Some(3)),
            ("1E", Some(1_000_000_000_000_000_000)),
            ("", None),
            ("Gi", None),
            ("10Gib", None),
        ] {
            assert_eq!(bytes(text), want, "{text}");
        }
    }
}
