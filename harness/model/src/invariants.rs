//! Settings of invariants, in a suite's defaults and in a scenario. What is left out has the built-in value.

use crate::Period;
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `invariants:` of a scenario or of a suite's defaults.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Invariants {
    /// Every subject gets ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub converges: Option<Toggle<Converges>>,
    /// Nothing is written at rest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quiet: Option<Toggle<Quiet>>,
    /// Nothing is left behind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_orphans: Option<Toggle<NoOrphans>>,
    /// Every ownerReference resolves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub legal_owners: Option<Toggle<Nothing>>,
    /// Deletion ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletes: Option<Toggle<Within>>,
    /// A removed or changed child comes back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heals: Option<Toggle<Within>>,
    /// The operator neither crashes nor sits idle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process_health: Option<Toggle<ProcessHealth>>,
    /// Must hold for every object version.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub always: Vec<Property>,
    /// Must hold for no object version.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub never: Vec<Property>,
    /// Must hold at the end, and may fail on the way.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub eventually: Vec<Property>,
}

/// `false` switches an invariant off; `true` or settings switch it on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Toggle<T> {
    /// On with the built-in settings, or off.
    Switch(bool),
    /// On with these settings.
    Settings(T),
}

/// Settings of `converges`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Converges {
    /// T, counted from heal; default 90 s.
    pub within: Option<Period>,
}

/// Settings of `quiet`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Quiet {
    /// The window at rest; default 2 s, longer where the operator reacts slowly.
    pub window: Option<Period>,
    /// Effective writes allowed in it; default 0.
    pub max_effective_writes: Option<u64>,
    /// No-op writes and failing requests a minute; default 60.
    pub max_no_op_writes_per_minute: Option<u64>,
}

/// Settings of `noOrphans`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct NoOrphans {
    /// What is meant to stay.
    pub retain: Vec<Retain>,
}

/// Objects that are meant to stay when their subject goes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Retain {
    /// `persistentvolumeclaims`, `secrets`, `*.example.com`.
    pub resource: String,
    /// A glob over names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Labels that they have.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub labels: IndexMap<String, String>,
    /// CEL over `subject`, its last version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
}

/// An invariant with a time limit only.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Within {
    /// The limit; default 90 s.
    pub within: Option<Period>,
}

/// An invariant without settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Nothing {}

/// Settings of `processHealth`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct ProcessHealth {
    /// Until its watches are open again after heal; default 90 s.
    pub within: Option<Period>,
}

/// The author's own property, in CEL over the world: `objects(apiVersion, kind)` lists live objects, `object` is the
/// version at hand.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Property {
    /// How findings name it.
    pub name: String,
    /// The expression.
    pub cel: String,
    /// Only for versions of this kind.
    #[serde(default, rename = "match", skip_serializing_if = "Option::is_none")]
    pub matches: Option<KindSelector>,
}

/// Objects of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct KindSelector {
    /// Group and version.
    pub api_version: String,
    /// Kind.
    pub kind: String,
}

/// The settings of a run: built-in values, then the suite's, then the scenario's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Effective {
    /// T of `converges`; none when switched off.
    pub converges: Option<Period>,
    /// The quiet settings; none when switched off.
    pub quiet: Option<QuietSettings>,
    /// What may stay; none when switched off.
    pub no_orphans: Option<Vec<Retain>>,
    /// Whether ownerReferences are judged.
    pub legal_owners: bool,
    /// T of `deletes`; none when switched off.
    pub deletes: Option<Period>,
    /// T of `heals`; none when switched off.
    pub heals: Option<Period>,
    /// T of `processHealth`; none when switched off.
    pub process_health: Option<Period>,
    /// `always`.
    pub always: Vec<Property>,
    /// `never`.
    pub never: Vec<Property>,
    /// `eventually`.
    pub eventually: Vec<Property>,
}

/// The quiet settings with every value decided.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QuietSettings {
    /// The shortest window.
    pub window: Period,
    /// Effective writes allowed in it.
    pub max_effective_writes: u64,
    /// No-op writes and failing requests a minute.
    pub max_no_op_writes_per_minute: u64,
}

impl Effective {
    /// The scenario's settings over the suite's over the built-in ones: lists replace, what is left out is inherited.
    pub fn of(suite: &Invariants, scenario: &Invariants) -> Self {
        let limit = Period::secs(90);
        let quiet = merge(suite.quiet.as_ref(), scenario.quiet.as_ref(), |outer, inner| Quiet {
            window: inner.window.or(outer.window),
            max_effective_writes: inner.max_effective_writes.or(outer.max_effective_writes),
            max_no_op_writes_per_minute: inner.max_no_op_writes_per_minute.or(outer.max_no_op_writes_per_minute),
        });
        let within = |suite: Option<&Toggle<Within>>, scenario: Option<&Toggle<Within>>| {
            let merged = merge(suite, scenario, |o, i| Within { within: i.within.or(o.within) });
            merged.map(|w| w.within.unwrap_or(limit))
        };
        let converges = merge(suite.converges.as_ref(), scenario.converges.as_ref(), |o, i| Converges {
            within: i.within.or(o.within),
        });
        let health = merge(suite.process_health.as_ref(), scenario.process_health.as_ref(), |o, i| ProcessHealth {
            within: i.within.or(o.within),
        });
        let orphans = merge(suite.no_orphans.as_ref(), scenario.no_orphans.as_ref(), |_, i| i.clone());
        let list = |a: &[Property], b: &[Property]| if b.is_empty() { a.to_vec() } else { b.to_vec() };
        Self {
            converges: converges.map(|c| c.within.unwrap_or(limit)),
            quiet: quiet.map(|q| QuietSettings {
                window: q.window.unwrap_or(Period::secs(2)),
                max_effective_writes: q.max_effective_writes.unwrap_or(0),
                max_no_op_writes_per_minute: q.max_no_op_writes_per_minute.unwrap_or(60),
            }),
            no_orphans: orphans.map(|o| o.retain),
            legal_owners: merge(suite.legal_owners.as_ref(), scenario.legal_owners.as_ref(), |_, i| i.clone())
                .is_some(),
            deletes: within(suite.deletes.as_ref(), scenario.deletes.as_ref()),
            heals: within(suite.heals.as_ref(), scenario.heals.as_ref()),
            process_health: health.map(|h| h.within.unwrap_or(limit)),
            always: list(&suite.always, &scenario.always),
            never: list(&suite.never, &scenario.never),
            eventually: list(&suite.eventually, &scenario.eventually),
        }
    }
}

/// `None`: switched off.
fn merge<T: Default + Clone>(
    outer: Option<&Toggle<T>>,
    inner: Option<&Toggle<T>>,
    both: impl Fn(&T, &T) -> T,
) -> Option<T> {
    let outer_settings = match outer {
        Some(Toggle::Settings(s)) => s.clone(),
        _ => T::default(),
    };
    match (inner, outer) {
        (Some(Toggle::Switch(false)), _) | (None, Some(Toggle::Switch(false))) => None,
        (Some(Toggle::Settings(inner)), _) => Some(both(&outer_settings, inner)),
        _ => Some(outer_settings),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_scenario_overrides_a_suite_and_the_rest_is_inherited() {
        let suite: Invariants =
            serde_json::from_value(json!({"quiet": {"window": "5s"}, "converges": {"within": "10s"}, "heals": false}))
                .unwrap();
        let scenario: Invariants =
            serde_json::from_value(json!({"quiet": {"maxEffectiveWrites": 3}, "noOrphans": false, "heals": true}))
                .unwrap();
        let e = Effective::of(&suite, &scenario);
        let quiet = e.quiet.unwrap();
        assert_eq!((quiet.window, quiet.max_effective_writes), (Period::secs(5), 3));
        assert_eq!(e.converges, Some(Period::secs(10)));
        assert_eq!((e.no_orphans, e.heals), (None, Some(Period::secs(90))));
        assert!(e.legal_owners);
        assert_eq!(Effective::of(&suite, &Invariants::default()).heals, None);
    }
}
