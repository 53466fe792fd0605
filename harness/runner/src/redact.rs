//! Secrets never reach the disk: each value is replaced by an HMAC under a key that lives only in memory, so that equality
//! can still be judged.

use hmac::{Hmac, Mac};
use serde_json::{Value, json};
use sha2::Sha256;
use spiritlevel_model::{ResourceKey, history::Event};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

/// Values shorter than this are not looked for in logs: they would match everywhere.
const SHORTEST_KNOWN: usize = 8;

/// Replaces secret values.
#[derive(Clone)]
pub(crate) struct Redactor {
    key: Arc<[u8; 32]>,
    /// Plain values seen so far, for logs.
    known: Arc<Mutex<BTreeMap<String, String>>>,
}

impl Redactor {
    /// With a fresh key.
    pub(crate) fn new() -> Self {
        use rand::TryRng;
        let mut key = [0_u8; 32];
        // Without entropy the replacement is still one-way; only runs could then be compared with each other.
        let _ = rand::rngs::SysRng.try_fill_bytes(&mut key);
        Self { key: Arc::new(key), known: Arc::default() }
    }

    /// A value that must not be shown, such as a token.
    pub(crate) fn learn(&self, plain: &str) {
        if plain.len() >= SHORTEST_KNOWN {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            known.entry(plain.to_owned()).or_insert_with(|| self.mask(plain));
        }
    }

    /// A line of output without known values.
    pub(crate) fn line(&self, text: &str) -> String {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = text.to_owned();
        for (plain, mask) in known.iter() {
            if text.contains(plain.as_str()) {
                text = text.replace(plain.as_str(), mask);
            }
        }
        text
    }

    /// An event as it may be written.
    pub(crate) fn event(&self, mut event: Event) -> Event {
        match &mut event {
            Event::Version(v) if is_secret(&v.resource) => self.secret(&mut v.object),
            Event::Request(r) => {
                let token = r.info.subresource.as_deref() == Some("token");
                let secret = r.info.resource.as_ref().is_some_and(is_secret);
                match &mut r.body {
                    Some(_) if token => r.body = None,
                    // A JSON patch has values anywhere.
                    Some(body) if secret && body.is_array() => self.all(body),
                    Some(body) if secret => self.secret(body),
                    _ => {}
                }
            }
            _ => {}
        }
        event
    }

    fn secret(&self, object: &mut Value) {
        for field in ["data", "stringData"] {
            if let Some(map) = object.get_mut(field).and_then(Value::as_object_mut) {
                for value in map.values_mut() {
                    if let Some(text) = value.as_str() {
                        self.learn(text);
                        if field == "data" {
                            self.learn_decoded(text);
                        }
                        *value = json!(self.mask(text));
                    }
                }
            }
        }
        if let Some(annotations) = object["metadata"].get_mut("annotations").and_then(Value::as_object_mut) {
            for (key, value) in annotations.iter_mut() {
                if key.ends_with("last-applied-configuration") || key.ends_with("last-applied") {
                    *value = json!(self.mask(value.as_str().unwrap_or_default()));
                }
            }
        }
    }

    fn learn_decoded(&self, text: &str) {
        use base64::Engine as _;
        if let Ok(bytes) = base64::engine::general_purpose::STANDARD.decode(text)
            && let Ok(plain) = String::from_utf8(bytes)
        {
            self.learn(&plain);
        }
    }

    fn all(&self, value: &mut Value) {
        match value {
            Value::String(text) if !text.starts_with('/') && text.len() > 7 => *value = json!(self.mask(text)),
            Value::Array(items) => items.iter_mut().for_each(|v| self.all(v)),
            Value::Object(map) => map.values_mut().for_each(|v| self.all(v)),
            _ => {}
        }
    }

    fn mask(&self, plain: &str) -> String {
        let mut mac = Hmac::<Sha256>::new_from_slice(self.key.as_slice()).expect("HMAC takes keys of any length");
        mac.update(plain.as_bytes());
        format!("hmac:{}", &hex::encode(mac.finalize().into_bytes())[..16])
    }
}

fn is_secret(resource: &ResourceKey) -> bool {
    resource.group.is_empty() && resource.resource == "secrets"
}

#[cfg(test)]
mod tests {
    use super::*;
    use spiritlevel_model::{
        Revision,
        history::{Version, VersionType},
    };

    #[test]
    fn secret_values_are_replaced_and_stay_comparable() {
        let r = Redactor::new();
        let version = |data: &str| {
            let object = json!({"kind": "Secret", "metadata": {"name": "s"}, "data": {"password": data}});
            let version = Version {
                resource: ResourceKey::new("", "secrets"),
                kind: VersionType::Added,
                revision: Revision(1),
                object,
            };
            match r.event(Event::Version(version)) {
                Event::Version(v) => v.object["data"]["password"].as_str().unwrap().to_owned(),
                _ => unreachable!(),
            }
        };
        let (a, b, other) =
            (version("aHVudGVyMmh1bnRlcjI="), version("aHVudGVyMmh1bnRlcjI="), version("eHh4eHh4eHh4eHg="));
        assert!(a.starts_with("hmac:") && a == b && a != other);
        assert_eq!(r.line("logged in with hunter2hunter2"), format!("logged in with {}", r.mask("hunter2hunter2")));
    }
}
