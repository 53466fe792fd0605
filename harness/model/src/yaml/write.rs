//! YAML out.

use serde::Serialize;

/// Writes a value so that a YAML 1.1 reader gets the same value: strings such as `no`, `y` and `1_000` are quoted.
///
/// # Errors
/// When the value cannot be a document: a mapping with keys that are no scalars.
pub fn to_yaml(value: &impl Serialize) -> Result<String, serde_saphyr::SerializeError> {
    serde_saphyr::to_string_with_options(value, serde_saphyr::ser_options! { compact_list_indent: false })
}
