//! Sizes such as `1Gi`, compared as numbers.
//!
//! The API server stores quantities in a canonical form: who writes `1024Mi` reads `1Gi` back. An operator that compares
//! the strings sees a difference for ever, and writes for ever.

/// The bytes that a quantity stands for; `None` for what is not a whole, positive number of bytes.
pub fn bytes(quantity: &str) -> Option<u128> {
    let digits = quantity.find(|c: char| !c.is_ascii_digit()).unwrap_or(quantity.len());
    let (number, unit) = quantity.split_at(digits);
    let factor: u128 = match unit {
        "" => 1,
        "k" => 1_000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        "T" => 1_000_000_000_000,
        "Ki" => 1 << 10,
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        "Ti" => 1 << 40,
        "Pi" => 1 << 50,
        _ => return None,
    };
    number.parse::<u128>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::bytes;

    #[test]
    fn different_spellings_of_one_size_are_equal() {
        for (one, other) in [("1024Mi", "1Gi"), ("1536Mi", "1610612736"), ("2Ti", "2048Gi"), ("1k", "1000")] {
            assert_eq!(bytes(one), bytes(other), "{one} and {other}");
            assert!(bytes(one).is_some());
        }
    }

    #[test]
    fn what_is_not_a_size_is_none() {
        for text in ["", "Gi", "1.5Gi", "-1", "1Xi"] {
            assert_eq!(bytes(text), None, "{text}");
        }
    }
}
