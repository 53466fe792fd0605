//! Holds a document against a JSON Schema as schemars makes it, and tells every misfit, each once.

use crate::{
    Period, bindings,
    problem::{Path, nearest},
};
use serde_json::{Map, Value};

/// A place where a document does not fit.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Misfit {
    /// The value, or for `Place::Key` the key.
    pub(super) path: Path,
    /// What of it to point at.
    pub(super) place: Place,
    pub(super) message: String,
    pub(super) help: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Key,
    Value,
}

impl Misfit {
    /// A binding without a value where no string fits.
    pub(super) fn open(path: Path) -> Self {
        let help = "bindings of the suite, the scenario and its matrix can stand here, outputs of steps cannot";
        let message = "a binding that has no value before the run".into();
        Self { path, place: Place::Value, message, help: Some(help.into()) }
    }
}

/// What a check found.
#[derive(Debug, Default)]
pub(super) struct Checked {
    pub(super) misfits: Vec<Misfit>,
    /// Strings with bindings where something else than a string is wanted: their values decide.
    pub(super) open: Vec<Path>,
}

/// Holds `value` against `schema`.
pub(super) fn check(schema: &Value, value: &Value) -> Checked {
    let mut check = Check { root: schema, found: Checked::default() };
    check.value(schema, value, &Path::root());
    check.found
}

struct Check<'a> {
    root: &'a Value,
    found: Checked,
}

impl<'a> Check<'a> {
    fn value(&mut self, schema: &'a Value, value: &Value, path: &Path) {
        let branches = self.branches(schema);
        match branches.as_slice() {
            [] => {}
            [one] => self.plain(one, value, path),
            many => self.choice(many, value, path),
        }
    }

    /// The alternatives of a schema, through references and nested choices.
    fn branches(&self, schema: &'a Value) -> Vec<&'a Value> {
        let schema = self.resolve(schema);
        let choice = schema.get("oneOf").or_else(|| schema.get("anyOf")).and_then(Value::as_array);
        match choice {
            // A choice beside properties is about which keys go together.
            Some(all) if schema.get("properties").is_none() => all.iter().flat_map(|b| self.branches(b)).collect(),
            _ => vec![schema],
        }
    }

    fn resolve(&self, schema: &'a Value) -> &'a Value {
        match schema["$ref"].as_str().and_then(|r| self.root.pointer(r.trim_start_matches('#'))) {
            Some(target) => self.resolve(target),
            None => schema,
        }
    }

    fn choice(&mut self, branches: &[&'a Value], value: &Value, path: &Path) {
        let fitting: Vec<&'a Value> = branches.iter().copied().filter(|b| has_type(b, value)).collect();
        let constants: Vec<&str> = fitting.iter().filter_map(|b| b["const"].as_str()).collect();
        match (value, fitting.as_slice()) {
            (Value::String(text), [_, ..]) if constants.len() == fitting.len() => {
                if !constants.contains(&text.as_str()) && !self.is_open(text, path) {
                    self.unknown_value(text, &constants, path);
                }
            }
            (Value::Object(map), [_, _, ..]) => match tagged(&fitting) {
                Some(variants) => self.variant(&variants, map, path),
                None => self.plain(best(&fitting, map), value, path),
            },
            (_, [one, ..]) => self.plain(one, value, path),
            (Value::String(text), []) if self.is_open(text, path) => {}
            (_, []) => self.wrong_type(branches, value, path),
        }
    }

    /// An externally tagged enum: exactly one key, which says what it is.
    fn variant(&mut self, variants: &[(&'a str, &'a Value)], map: &Map<String, Value>, path: &Path) {
        let names = || variants.iter().map(|(name, _)| *name);
        let mut known = 0;
        for (key, inner) in map {
            match variants.iter().find(|(name, _)| name == key) {
                None => self.unknown_key(key, names(), path, ""),
                Some((_, schema)) => {
                    known += 1;
                    if known == 1 {
                        self.value(schema, inner, &path.key(key));
                    } else {
                        let message = format!("`{key}` is one too many: exactly one of these can stand here");
                        self.push(path.key(key), Place::Key, message, None);
                    }
                }
            }
        }
        if map.is_empty() {
            let help = format!("one of {}", list(names()));
            self.push(path.clone(), Place::Value, "nothing is said here".into(), Some(help));
        }
    }

    fn plain(&mut self, schema: &'a Value, value: &Value, path: &Path) {
        if !has_type(schema, value) {
            if !value.as_str().is_some_and(|text| self.is_open(text, path)) {
                self.wrong_type(&[schema], value, path);
            }
            return;
        }
        match value {
            Value::String(text) => self.text(schema, text, path),
            Value::Number(_) => self.number(schema, value, path),
            Value::Array(items) if schema["items"].is_object() => {
                for (i, item) in items.iter().enumerate() {
                    self.value(&schema["items"], item, &path.index(i));
                }
            }
            Value::Object(map) => self.mapping(schema, map, path),
            _ => {}
        }
    }

    fn text(&mut self, schema: &Value, text: &str, path: &Path) {
        if let Some(constant) = schema["const"].as_str() {
            if text != constant && !self.is_open(text, path) {
                self.unknown_value(text, &[constant], path);
            }
        } else if let Some(all) = schema["enum"].as_array() {
            let all: Vec<&str> = all.iter().filter_map(Value::as_str).collect();
            if !all.contains(&text) && !self.is_open(text, path) {
                self.unknown_value(text, &all, path);
            }
        } else if is_period(schema)
            && let Err(message) = text.parse::<Period>()
            && !self.is_open(text, path)
        {
            self.push(path.clone(), Place::Value, message, None);
        }
    }

    fn number(&mut self, schema: &Value, value: &Value, path: &Path) {
        let Some(number) = value.as_f64() else { return };
        let below = schema["minimum"].as_f64().is_some_and(|least| number < least);
        let above = schema["maximum"].as_f64().is_some_and(|most| number > most);
        if below || above {
            let least = &schema["minimum"];
            let range = match &schema["maximum"] {
                Value::Null => format!("{least} or more"),
                most => format!("{least} to {most}"),
            };
            self.push(path.clone(), Place::Value, format!("{value} is out of range: {range}"), None);
        }
    }

    fn mapping(&mut self, schema: &'a Value, map: &Map<String, Value>, path: &Path) {
        let properties = schema["properties"].as_object();
        let names: Vec<&'a str> = properties.into_iter().flat_map(|p| p.keys().map(String::as_str)).collect();
        let mut mistaken: Vec<&str> = Vec::new();
        let mut strays = 0;
        for (key, inner) in map {
            let at = path.key(key);
            match (properties.and_then(|p| p.get(key)), &schema["additionalProperties"]) {
                (Some(property), _) => self.value(property, inner, &at),
                (None, Value::Bool(false)) => {
                    strays += 1;
                    mistaken.extend(nearest(key, names.iter().copied()));
                    let operation = names.contains(&"try") && self.is_operation(key);
                    self.unknown_key(
                        key,
                        names.iter().copied(),
                        path,
                        if operation { "operations stand below `try:`" } else { "" },
                    );
                }
                (None, other) if other.is_object() => self.value(other, inner, &at),
                (None, _) => {}
            }
        }
        for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            // A misspelled field or a misplaced operation is told already.
            let told = mistaken.contains(&name) || (name == "try" && strays > 0);
            if !told && !map.contains_key(name) {
                self.push(path.key(name), Place::Value, format!("missing field `{name}`"), None);
            }
        }
        if let Some(all) = schema["oneOf"].as_array() {
            self.exactly_one(all, map, path, strays > 0);
        }
    }

    fn exactly_one(&mut self, all: &[Value], map: &Map<String, Value>, path: &Path, excused: bool) {
        let names: Vec<&str> = all.iter().filter_map(|one| one["required"][0].as_str()).collect();
        let mut there = map.keys().filter(|k| names.contains(&k.as_str()));
        match there.next() {
            None if !excused => {
                let help = format!("one of {}", list(names.iter().copied()));
                self.push(path.clone(), Place::Value, "an item needs an operation".into(), Some(help));
            }
            None => {}
            Some(first) => {
                for key in there {
                    let message = format!("an item is one operation: `{first}` stands here already");
                    self.push(path.key(key), Place::Key, message, Some(format!("begin a new item with `- {key}:`")));
                }
            }
        }
    }

    fn is_operation(&self, key: &str) -> bool {
        self.root.pointer(&format!("/$defs/Operation/properties/{key}")).is_some()
    }

    /// Whether a binding decides what stands here; then it is noted.
    fn is_open(&mut self, text: &str, path: &Path) -> bool {
        let open = bindings::mentions_any(text);
        if open {
            self.found.open.push(path.clone());
        }
        open
    }

    fn unknown_key<'n>(&mut self, key: &str, known: impl Iterator<Item = &'n str> + Clone, path: &Path, remedy: &str) {
        let boolean = matches!(key, "true" | "false");
        let help = if !remedy.is_empty() {
            remedy.into()
        } else if boolean && known.clone().any(|k| k == "match") {
            "unquoted, `on` is the boolean true in YAML; what a fault is about stands under `match`".into()
        } else if let Some(name) = nearest(key, known.clone()) {
            format!("did you mean `{name}`?")
        } else if known.clone().next().is_none() {
            "nothing can be set here".into()
        } else {
            format!("known here: {}", list(known))
        };
        let message =
            if boolean { format!("a key that is the boolean {key}") } else { format!("unknown field `{key}`") };
        self.push(path.key(key), Place::Key, message, Some(help));
    }

    fn unknown_value(&mut self, text: &str, known: &[&str], path: &Path) {
        let help = match nearest(text, known.iter().copied()) {
            Some(name) => format!("did you mean `{name}`?"),
            None => format!("one of {}", list(known.iter().copied())),
        };
        self.push(path.clone(), Place::Value, format!("`{text}` is not known here"), Some(help));
    }

    fn wrong_type(&mut self, branches: &[&'a Value], value: &Value, path: &Path) {
        let mut wanted: Vec<&str> = Vec::new();
        for branch in branches {
            let name = type_name(branch);
            if name != "nothing" && !wanted.contains(&name) {
                wanted.push(name);
            }
        }
        let help = match value {
            Value::Bool(_) | Value::Number(_) if wanted == ["a string"] => Some("put it in quotes".into()),
            Value::Number(n) if wanted == ["a duration"] => Some(format!("with a unit, such as \"{n}s\"")),
            Value::String(_) if bindings::mentions_any(value.as_str().unwrap_or_default()) => {
                Some("no binding of the suite, the scenario or its matrix has a value that fits here".into())
            }
            _ => None,
        };
        self.push(
            path.clone(),
            Place::Value,
            format!("expected {}, found {}", wanted.join(" or "), found(value)),
            help,
        );
    }

    fn push(&mut self, path: Path, place: Place, message: String, help: Option<String>) {
        self.found.misfits.push(Misfit { path, place, message, help });
    }
}

/// The variants of an externally tagged enum, if all branches are such.
fn tagged<'a>(branches: &[&'a Value]) -> Option<Vec<(&'a str, &'a Value)>> {
    branches
        .iter()
        .map(|branch| {
            let properties = branch["properties"].as_object().filter(|p| p.len() == 1)?;
            let (name, schema) = properties.iter().next()?;
            (branch["required"][0] == name.as_str()).then_some((name.as_str(), schema))
        })
        .collect()
}

/// The branch that knows most of the keys; the last when none knows any.
fn best<'a>(branches: &[&'a Value], map: &Map<String, Value>) -> &'a Value {
    let score = |branch: &Value| map.keys().filter(|k| branch["properties"].get(k.as_str()).is_some()).count();
    let most = branches.iter().map(|b| score(b)).max().unwrap_or(0);
    let mut best = branches.iter().filter(|b| score(b) == most);
    let chosen = if most == 0 { best.next_back() } else { best.next() };
    chosen.copied().unwrap_or(&Value::Null)
}

fn types(schema: &Value) -> Vec<&str> {
    match &schema["type"] {
        Value::String(one) => vec![one.as_str()],
        Value::Array(many) => many.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn has_type(schema: &Value, value: &Value) -> bool {
    let types = types(schema);
    types.is_empty()
        || types.iter().any(|t| match *t {
            "null" => value.is_null(),
            "boolean" => value.is_boolean(),
            "string" => value.is_string(),
            "integer" => value.is_i64() || value.is_u64(),
            "number" => value.is_number(),
            "array" => value.is_array(),
            "object" => value.is_object(),
            _ => true,
        })
}

/// The only strings with a pattern are durations.
fn is_period(schema: &Value) -> bool {
    schema["pattern"].is_string()
}

fn type_name(schema: &Value) -> &'static str {
    match types(schema).first().copied() {
        Some("string") if is_period(schema) => "a duration",
        Some("string") => "a string",
        Some("integer") => "a whole number",
        Some("number") => "a number",
        Some("boolean") => "true or false",
        Some("array") => "a list",
        Some("object") => "a mapping",
        _ => "nothing",
    }
}

fn found(value: &Value) -> String {
    match value {
        Value::Null => "nothing".into(),
        Value::Bool(b) => format!("the boolean {b}"),
        Value::Number(n) => format!("the number {n}"),
        Value::String(s) => format!("the string {s:?}"),
        Value::Array(_) => "a list".into(),
        Value::Object(_) => "a mapping".into(),
    }
}

fn list<'n>(names: impl Iterator<Item = &'n str>) -> String {
    names.map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ")
}
