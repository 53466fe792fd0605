//! From a suite and a scenario to plans: every choice made, one plan for each run.

use crate::{
    Seed,
    bindings::{self, Bindings, Unresolved},
    expect::{Expect, ExpectFile},
    invariants::Effective,
    load::{self, Loaded},
    plan::{PLAN_VERSION, Plan},
    problem::{Path, Problem, nearest},
    scenario::{Scenario, ScenarioSpec},
    suite::{Suite, SuiteSpec, Variant},
    yaml::Node,
};
use indexmap::IndexMap;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// What the command line decides.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlanOptions {
    /// Instead of the scenario's seed.
    pub seed: Option<Seed>,
    /// Only these variants; empty means all.
    pub variants: Vec<String>,
    /// How often each run is made; 0 counts as 1.
    pub repeat: u32,
    /// What makes the namespaces of one invocation differ from those of another on the same cluster.
    pub nonce: u64,
    /// The suite's folder, relative to where the harness was started.
    pub suite_dir: String,
    /// The scenario's folder, likewise.
    pub scenario_dir: String,
}

/// The plans of a scenario: for each variant, each combination of matrix values and each repetition one, in this order.
/// What is known during the run only (outputs of steps, `($binary)`, `($module)`, `($kubeconfig)`) stays open.
///
/// # Errors
/// What is wrong with the files, if they could not be read; then what does not fit in some combination.
pub fn plans(
    suite: &Loaded<Suite>,
    scenario: &Loaded<Scenario>,
    expect: Option<&Loaded<ExpectFile>>,
    options: &PlanOptions,
) -> Result<Vec<Plan>, Vec<Problem>> {
    let mut problems: Vec<Problem> = Vec::new();
    problems.extend(suite.problems.iter().filter(|p| p.is_error()).cloned());
    problems.extend(scenario.problems.iter().filter(|p| p.is_error()).cloned());
    problems.extend(expect.iter().flat_map(|e| &e.problems).filter(|p| p.is_error()).cloned());
    let (Some(suite_value), Some(scenario_value), true) = (&suite.value, &scenario.value, problems.is_empty()) else {
        return Err(problems);
    };
    let expect = expect.and_then(|e| e.value.as_ref());
    let making = Making { suite, suite_value, scenario, scenario_value, expect, options };
    let mut plans = Vec::new();
    for variant in making.variants()? {
        for matrix in combinations(&scenario_value.spec.matrix) {
            for repetition in 0..options.repeat.max(1) {
                match making.plan(variant.clone(), matrix.clone(), repetition) {
                    Ok(plan) => plans.push(plan),
                    // The same mistake in another combination is the same mistake.
                    Err(more) => more.into_iter().for_each(|p| {
                        if !problems.contains(&p) {
                            problems.push(p);
                        }
                    }),
                }
            }
        }
    }
    if problems.is_empty() { Ok(plans) } else { Err(problems) }
}

/// The seed of a scenario that names none.
pub fn default_seed(scenario: &str) -> Seed {
    // Small enough to be typed, and exact in every JSON reader.
    Seed(u64::from(u32::from_be_bytes(first_bytes(scenario))))
}

/// A name that can be a namespace's: lower case, digits and dashes, at most `longest` characters.
pub fn slug(name: &str, longest: usize) -> String {
    let mut slug = String::new();
    for c in name.chars().map(|c| c.to_ascii_lowercase()) {
        match c {
            'a'..='z' | '0'..='9' => slug.push(c),
            _ if slug.is_empty() || slug.ends_with('-') => {}
            _ => slug.push('-'),
        }
    }
    slug.truncate(longest);
    let slug = slug.trim_end_matches('-');
    if slug.is_empty() { "run".into() } else { slug.into() }
}

struct Making<'a> {
    suite: &'a Loaded<Suite>,
    suite_value: &'a Suite,
    scenario: &'a Loaded<Scenario>,
    scenario_value: &'a Scenario,
    expect: Option<&'a ExpectFile>,
    options: &'a PlanOptions,
}

// === impl Making ===

impl Making<'_> {
    /// The names of the variants that run; one nameless run for a suite without any.
    fn variants(&self) -> Result<Vec<Option<String>>, Vec<Problem>> {
        let all = &self.suite_value.spec.operator.variants;
        if all.is_empty() {
            return Ok(vec![None]);
        }
        let wanted = self.scenario_value.spec.variants.as_deref();
        let mut problems = Vec::new();
        for (i, name) in wanted.into_iter().flatten().enumerate() {
            if !all.contains_key(name) {
                let at = Path::parse("spec.variants").index(i);
                let help = match nearest(name, all.keys().map(String::as_str)) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("it has {}", all.keys().cloned().collect::<Vec<_>>().join(", ")),
                };
                problems
                    .push(self.scenario.at_value(&at, format!("the suite has no variant `{name}`")).with_help(help));
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let chosen = |name: &&String| {
            wanted.is_none_or(|w| w.contains(name))
                && (self.options.variants.is_empty() || self.options.variants.contains(name))
        };
        Ok(all.keys().filter(chosen).cloned().map(Some).collect())
    }

    fn plan(&self, variant: Option<String>, mut matrix: Bindings, repetition: u32) -> Result<Plan, Vec<Problem>> {
        let name = &self.scenario_value.metadata.name;
        let seed = self.options.seed.or(self.scenario_value.spec.seed).unwrap_or_else(|| default_seed(name));
        let suite_name = &self.suite_value.metadata.name;
        let identity = json!([suite_name, name, variant, matrix, repetition, seed, self.options.nonce]).to_string();
        let namespace = format!("{}-{}", slug(name, 40), &hex::encode(first_bytes(&identity))[..6]);
        let operator_namespace = format!("{namespace}-system");
        let known = self.bindings(&namespace, &operator_namespace, seed, &matrix);
        matrix.iter_mut().for_each(|(name, value)| value.clone_from(&known[name.as_str()]));

        let mut suite: SuiteSpec = spec(self.suite, load::suite_spec(), &known)?;
        if let Some(variant) = variant.as_ref().and_then(|v| suite.operator.variants.get(v)).cloned() {
            apply(&mut suite, variant);
        }
        let scenario: ScenarioSpec = spec(self.scenario, load::scenario_spec(), &known)?;
        let process = &mut suite.operator.process;
        process.replicas = scenario.replicas.unwrap_or(process.replicas);
        Ok(Plan {
            schema_version: PLAN_VERSION,
            suite_name: suite_name.clone(),
            scenario_name: name.clone(),
            expect: self.expected(variant.as_deref(), &matrix, &known),
            variant,
            matrix,
            seed,
            repetition,
            suite_dir: self.options.suite_dir.clone(),
            scenario_dir: self.options.scenario_dir.clone(),
            namespace,
            operator_namespace,
            bindings: known,
            process: process.clone(),
            invariants: Effective::of(&suite.defaults.invariants, &scenario.invariants),
            suite,
            scenario,
        })
    }

    /// Everything that is known before the run. Later ones may use earlier ones.
    fn bindings(&self, namespace: &str, operator_namespace: &str, seed: Seed, matrix: &Bindings) -> Bindings {
        let mut known = Bindings::new();
        known.insert("namespace".into(), namespace.into());
        known.insert("operatorNamespace".into(), operator_namespace.into());
        let others = self.scenario_value.spec.namespaces.iter();
        let others: IndexMap<&String, String> =
            others.map(|name| (name, format!("{namespace}-{}", slug(name, 62 - namespace.len())))).collect();
        known.insert("namespaces".into(), json!(others));
        known.insert("seed".into(), seed.0.into());
        let suite = self.suite_value.spec.bindings.iter();
        let own = self.scenario_value.spec.bindings.iter();
        // A value of the matrix takes the place of the scenario's own.
        for (name, value) in suite.chain(matrix).chain(own.filter(|(name, _)| !matrix.contains_key(*name))) {
            let value = bindings::resolve(value, &known, Unresolved::Keep).unwrap_or_else(|_| value.clone());
            known.insert(name.clone(), value);
        }
        known
    }

    /// The first expectation for this variant whose `when` applies.
    fn expected(&self, variant: Option<&str>, matrix: &Bindings, known: &Bindings) -> Option<Expect> {
        let all = self.expect?;
        let list = variant.and_then(|v| all.get(v)).or_else(|| all.get("default"))?;
        let expect = list.iter().find(|e| e.when.iter().all(|(k, v)| matrix.get(k) == Some(v)))?;
        let resolved = bindings::resolve(&json!(expect), known, Unresolved::Keep).ok()?;
        serde_json::from_value(resolved).ok()
    }
}

/// `spec` of a file with the bindings put in.
fn spec<T: DeserializeOwned, F>(file: &Loaded<F>, schema: &Value, known: &Bindings) -> Result<T, Vec<Problem>> {
    let at = Path::root().key("spec");
    let written = file.tree.at(&at).map(Node::to_value).unwrap_or_default();
    let resolved = bindings::resolve(&written, known, Unresolved::Keep).unwrap_or(written);
    load::decode(&file.source, &file.tree, &at, schema, &resolved, known)
}

/// Every combination of the matrix's values, the last name turning fastest.
fn combinations(matrix: &IndexMap<String, Vec<Value>>) -> Vec<Bindings> {
    let mut all = vec![Bindings::new()];
    for (name, values) in matrix {
        let with = |one: &Bindings, value: &Value| {
            let mut more = one.clone();
            more.insert(name.clone(), value.clone());
            more
        };
        all = all.iter().flat_map(|one| values.iter().map(move |value| with(one, value))).collect();
    }
    all
}

/// What a variant says replaces the suite's; arguments and environment are added.
fn apply(suite: &mut SuiteSpec, variant: Variant) {
    let operator = &mut suite.operator;
    operator.build = variant.build.or_else(|| operator.build.take());
    if let Some(command) = variant.command {
        operator.process.command = command;
    }
    if let Some(deployment) = &mut operator.deployment {
        deployment.args.extend(variant.args.iter().cloned());
        deployment.env.extend(variant.env.clone());
    }
    operator.process.command.extend(variant.args);
    operator.process.env.extend(variant.env);
    if let Some(account) = variant.service_account {
        operator.service_account = account;
    }
    if let Some(crds) = variant.crds {
        suite.crds = crds;
    }
}

fn first_bytes(text: &str) -> [u8; 4] {
    let digest = Sha256::digest(text.as_bytes());
    [digest[0], digest[1], digest[2], digest[3]]
}
