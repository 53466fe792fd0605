//! What belongs to a subject, and by which tie: an ownerReference in any version, a mention of its uid, or its name as a
//! token of the object's name or labels. Dead owners count: they tie their dependents to the subject above them.

use super::{Case, Life};
use serde_json::Value;
use spiritlevel_model::{Meta, Uid};
use std::collections::{BTreeMap, BTreeSet};

/// Why an object belongs to a subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tie {
    /// The subject.
    pub(crate) subject: Uid,
    /// By what.
    pub(crate) by: TieBy,
}

/// The kinds of ties, strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TieBy {
    /// It is the subject.
    Itself,
    /// An ownerReference, perhaps over other owners.
    Owner,
    /// The subject's uid stands somewhere in it.
    Uid,
    /// The subject's name is a token of its name.
    Name,
    /// The subject's name is a token of one of its labels.
    Label,
}

/// The tie of every object that has one.
pub(super) fn find(case: &Case<'_>) -> BTreeMap<Uid, Tie> {
    let mut ties = BTreeMap::new();
    for subject in &case.subjects {
        ties.insert(subject.uid.clone(), Tie { subject: subject.uid.clone(), by: TieBy::Itself });
    }
    for life in case.objects.values() {
        if let Some(tie) = own_tie(case, life) {
            ties.entry(life.uid.clone()).or_insert(tie);
        }
    }
    // Downwards through owners until nothing is added; an ownerReference outweighs a name.
    loop {
        let mut added = false;
        for life in case.objects.values() {
            if ties.get(&life.uid).is_some_and(|t| t.by <= TieBy::Uid) {
                continue;
            }
            let above = life.owners.iter().find_map(|o| ties.get(&o.uid)).map(|t| t.subject.clone());
            if let Some(subject) = above {
                ties.insert(life.uid.clone(), Tie { subject, by: TieBy::Owner });
                added = true;
            }
        }
        if !added {
            return ties;
        }
    }
}

/// A tie that the object carries in itself.
fn own_tie(case: &Case<'_>, life: &Life) -> Option<Tie> {
    let direct = case.subjects.iter().find(|s| life.owners.iter().any(|o| o.uid == s.uid));
    if let Some(subject) = direct {
        return Some(Tie { subject: subject.uid.clone(), by: TieBy::Owner });
    }
    let last = &case.version(life.last()).version.object;
    let mentions =
        |s: &&super::Subject| life.versions.iter().any(|v| mentions(&case.version(*v).version.object, &s.uid.0));
    if let Some(subject) = case.subjects.iter().find(mentions) {
        return Some(Tie { subject: subject.uid.clone(), by: TieBy::Uid });
    }
    // Cluster-scoped objects come to every run: a name alone ties only what a request of this run made.
    if life.object.namespace.is_none() && case.author(life.first()).is_none() {
        return None;
    }
    let labels: BTreeSet<&str> =
        last["metadata"]["labels"].as_object().into_iter().flatten().filter_map(|(_, v)| v.as_str()).collect();
    let by_name = named(case, life, |name| is_token(name, &life.object.name)).map(|s| (s, TieBy::Name));
    let by_label = || named(case, life, |name| labels.iter().any(|l| is_token(name, l))).map(|s| (s, TieBy::Label));
    let (subject, by) = by_name.or_else(by_label)?;
    Some(Tie { subject, by })
}

/// The subject with the longest name that fits: `pg-1-second-data` is no child of `pg-1`. Of namesakes that lived one
/// after the other, the last one that was there before the object.
fn named(case: &Case<'_>, life: &Life, fits: impl Fn(&str) -> bool) -> Option<Uid> {
    let last = case.version(life.last()).moment();
    let before = case.subjects.iter().filter(|s| {
        let namespace = s.object.namespace.is_none() || life.object.namespace.is_none();
        let born = case.objects.get(&s.uid).is_some_and(|l| l.born < last);
        (namespace || s.object.namespace == life.object.namespace)
            && born
            && s.object.name.len() > 2
            && fits(&s.object.name)
    });
    let longest = before.max_by_key(|s| {
        let born = case.objects.get(&s.uid).map(|l| l.born);
        (s.object.name.len(), born < Some(life.born), born)
    });
    longest.map(|s| s.uid.clone())
}

/// Whether `name` stands in `text` between dashes, dots or its ends.
pub(crate) fn is_token(name: &str, text: &str) -> bool {
    let border = |c: Option<char>| c.is_none_or(|c| !c.is_ascii_alphanumeric());
    let here = |(at, _): (usize, &str)| {
        border(text[..at].chars().next_back()) && border(text[at + name.len()..].chars().next())
    };
    !name.is_empty() && text.match_indices(name).any(here)
}

/// Whether any string of the object holds the uid; the object's own uid aside.
fn mentions(object: &Value, uid: &str) -> bool {
    fn within(value: &Value, uid: &str) -> bool {
        match value {
            Value::String(s) => s.contains(uid),
            Value::Array(items) => items.iter().any(|v| within(v, uid)),
            Value::Object(map) => map.iter().any(|(k, v)| k != "managedFields" && (k.contains(uid) || within(v, uid))),
            _ => false,
        }
    }
    object.uid().is_none_or(|own| own.0 != uid) && uid.len() >= 8 && within(object, uid)
}
