//! `revoke`: the operator's roles lose permissions, until heal.

use super::{
    Undo,
    play::{Failure, Play},
};
use crate::{Error, arrange::granted, harness_writes::merge_patch};
use serde_json::{Value, json};
use spiritlevel_model::{Meta, operation::Revoke};
use std::time::Duration;

/// The verbs that `*` stands for.
const VERBS: [&str; 8] = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];
/// The API server's authorizer hears of a role within milliseconds.
const EFFECTIVE: Duration = Duration::from_secs(10);
/// Between two questions.
const LOOK: Duration = Duration::from_millis(20);

impl Play<'_> {
    pub(super) async fn revoke(&self, revoke: &Revoke, path: &str) -> Result<(), Failure> {
        let client = &self.around.lane.clients().revoke;
        let objects = self.objects(client);
        let mut changed = 0;
        for role in granted(self.stage, self.around)? {
            let Some(rules) = role.get("rules").and_then(Value::as_array) else { continue };
            let left = without(rules, revoke).map_err(Failure::Broken)?;
            if left == *rules {
                continue;
            }
            let kind = role["kind"].as_str().unwrap_or_default();
            let url = objects.url("rbac.authorization.k8s.io/v1", kind, role.namespace(), role.name())?;
            let undo = json!({"step": path, "url": url, "undo": {"rules": rules}});
            self.stage.writes.undo_record(&self.stage.recorder, &undo);
            self.stage.undo().push(Undo::Rules { url: url.clone(), rules: json!(rules) });
            let answer = merge_patch(client, &url, &json!({"rules": left})).await;
            self.until_seen(&answer.map_err(Error::request(format!("change {url}")))?).await;
            changed += 1;
        }
        if changed == 0 {
            return Err(Failure::Broken("no role of the operator grants what is to be revoked".into()));
        }
        let effective = async {
            for resource in &revoke.resources {
                for verb in &revoke.verbs {
                    while self.is_allowed(verb, resource).await? {
                        tokio::time::sleep(LOOK).await;
                    }
                }
            }
            Ok::<(), Error>(())
        };
        match tokio::time::timeout(EFFECTIVE, effective).await {
            Ok(done) => Ok(done?),
            Err(_) => Err(Failure::Broken("another role still grants what is revoked, or nobody heard of it".into())),
        }
    }

    async fn is_allowed(&self, verb: &str, resource: &str) -> Result<bool, Error> {
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        let (resource, group) = resource.split_once('.').unwrap_or((resource, ""));
        let plan = &self.stage.plan;
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": {
                "user": format!("system:serviceaccount:{}:{}", plan.operator_namespace, crate::rbac::ACCOUNT),
                "resourceAttributes": {
                    "namespace": plan.namespace, "verb": verb, "group": group, "resource": resource,
                    "subresource": subresource,
                },
            },
        });
        let request = http::Request::post("/apis/authorization.k8s.io/v1/subjectaccessreviews")
            .header(http::header::CONTENT_TYPE, "application/json")
            .body(review.to_string().into_bytes());
        let request = request.expect("a constant path is a valid request");
        let answer = self.around.lane.clients().revoke.request::<Value>(request).await;
        let answer = answer.map_err(Error::request("ask what the operator may do"))?;
        Ok(answer["status"]["allowed"] == true)
    }
}

/// The rules without these verbs on these resources. Rules are taken apart, a resource each, as far as they are meant.
fn without(rules: &[Value], revoke: &Revoke) -> Result<Vec<Value>, String> {
    let texts = |value: &Value| -> Vec<String> {
        value.as_array().into_iter().flatten().filter_map(|v| v.as_str().map(Into::into)).collect()
    };
    let mut left = Vec::new();
    for rule in rules {
        let (groups, resources, verbs) = (texts(&rule["apiGroups"]), texts(&rule["resources"]), texts(&rule["verbs"]));
        let path = |group: &str, resource: &str| {
            let (name, sub) = resource.split_once('/').map_or((resource, String::new()), |(n, s)| (n, format!("/{s}")));
            if group.is_empty() { format!("{name}{sub}") } else { format!("{name}.{group}{sub}") }
        };
        let pairs: Vec<(&str, &str)> = groups
            .iter()
            .flat_map(|group| resources.iter().map(move |resource| (group.as_str(), resource.as_str())))
            .collect();
        let is_meant = |g: &str, r: &str| revoke.resources.contains(&path(g, r));
        let loses = verbs.iter().any(|v| v == "*" || revoke.verbs.contains(v));
        if loses && pairs.iter().any(|(g, r)| *g == "*" || *r == "*") {
            return Err("the operator's roles grant `*`, of which nothing can be taken away".into());
        }
        if !loses || !pairs.iter().any(|(g, r)| is_meant(g, r)) {
            left.push(rule.clone());
            continue;
        }
        for (group, resource) in pairs {
            let all: Vec<&str> = if verbs.iter().any(|v| v == "*") {
                VERBS.to_vec()
            } else {
                verbs.iter().map(String::as_str).collect()
            };
            let taken = |v: &&str| is_meant(group, resource) && revoke.verbs.iter().any(|r| r == v);
            let kept: Vec<&str> = all.into_iter().filter(|v| !taken(v)).collect();
            if kept.is_empty() {
                continue;
            }
            let mut rule = rule.clone();
            (rule["apiGroups"], rule["resources"], rule["verbs"]) = (json!([group]), json!([resource]), json!(kept));
            left.push(rule);
        }
    }
    Ok(left)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn revoke(verbs: &[&str], resources: &[&str]) -> Revoke {
        let owned = |list: &[&str]| list.iter().map(|s| (*s).to_owned()).collect();
        Revoke { verbs: owned(verbs), resources: owned(resources) }
    }

    #[test]
    fn only_what_is_named_is_taken() {
        let rules = [
            json!({"apiGroups": ["", "apps"], "resources": ["pods", "pods/status"], "verbs": ["get", "create"]}),
            json!({"apiGroups": ["x.io"], "resources": ["things/status"], "verbs": ["update"]}),
            json!({"apiGroups": ["y.io"], "resources": ["others"], "verbs": ["*"]}),
        ];
        let got =
            without(&rules, &revoke(&["create", "update"], &["pods", "things.x.io/status", "others.y.io"])).unwrap();
        let expected = [
            json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}),
            json!({"apiGroups": [""], "resources": ["pods/status"], "verbs": ["get", "create"]}),
            json!({"apiGroups": ["apps"], "resources": ["pods"], "verbs": ["get", "create"]}),
            json!({"apiGroups": ["apps"], "resources": ["pods/status"], "verbs": ["get", "create"]}),
            json!({"apiGroups": ["y.io"], "resources": ["others"], "verbs": ["get", "list", "watch", "patch", "delete", "deletecollection"]}),
        ];
        assert_eq!(got, expected);
    }

    #[test]
    fn of_everything_nothing_can_be_taken() {
        let rules = [json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]})];
        assert!(without(&rules, &revoke(&["create"], &["pods"])).unwrap_err().contains("`*`"));
        let rules = [json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["get"]})];
        assert_eq!(without(&rules, &revoke(&["create"], &["pods"])).unwrap(), rules, "it does not grant the verb");
    }
}
