//! The operator's own permissions, from the suite's files: subjects rewritten to the run's account, names of cluster-scoped
//! objects suffixed by the run, so that many runs share a control plane and each account has just what its suite grants.

use serde_json::{Value, json};
use spiritlevel_model::Meta;
use std::collections::BTreeSet;

/// Name of the operator's account in its own namespace.
pub(crate) const ACCOUNT: &str = "operator";

/// Where the account lives and what the run is called.
pub(crate) struct Account<'a> {
    /// Namespace of the subjects.
    pub(crate) namespace: &'a str,
    /// The operator's own namespace, where its account is.
    pub(crate) operator_namespace: &'a str,
}

impl Account<'_> {
    /// The objects to apply for those in the suite's files. Documents of other kinds (a ServiceAccount, a Deployment) are
    /// left out: the account is ours, and the operator runs as a process.
    pub(crate) fn rewrite(&self, documents: &[Value]) -> Vec<Value> {
        let cluster_roles: BTreeSet<&str> =
            documents.iter().filter(|d| d["kind"] == "ClusterRole").filter_map(Meta::name).collect();
        let mut objects = Vec::new();
        for document in documents {
            let kind = document["kind"].as_str().unwrap_or_default();
            let mut object = document.clone();
            if kind.ends_with("Binding") {
                object["subjects"] =
                    json!([{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": self.operator_namespace}]);
                let role = object["roleRef"]["name"].as_str().unwrap_or_default().to_owned();
                if object["roleRef"]["kind"] == "ClusterRole" && cluster_roles.contains(role.as_str()) {
                    object["roleRef"]["name"] = json!(self.suffixed(&role));
                }
            }
            match kind {
                "ClusterRole" | "ClusterRoleBinding" => {
                    object["metadata"]["name"] = json!(self.suffixed(document.name().unwrap_or_default()));
                    objects.push(object);
                }
                "Role" | "RoleBinding" => match document.namespace() {
                    Some(own) if own == self.namespace || own == self.operator_namespace => objects.push(object),
                    // A fixed namespace is where the project deploys its operator.
                    Some(_) => objects.push(placed(&object, self.operator_namespace)),
                    // Without one: where the operator works and where it keeps its leases.
                    None => {
                        objects.push(placed(&object, self.namespace));
                        objects.push(placed(&object, self.operator_namespace));
                    }
                },
                _ => {}
            }
        }
        objects
    }

    /// Everything is allowed.
    pub(crate) fn cluster_admin(&self) -> Vec<Value> {
        vec![json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": self.suffixed("spiritlevel-cluster-admin")},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": self.operator_namespace}],
        })]
    }

    fn suffixed(&self, name: &str) -> String {
        format!("{name}-{}", self.namespace)
    }
}

fn placed(object: &Value, namespace: &str) -> Value {
    let mut object = object.clone();
    object["metadata"]["namespace"] = json!(namespace);
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_go_where_the_operator_works_and_bindings_name_its_account() {
        let documents = [
            json!({"kind": "ClusterRole", "metadata": {"name": "manager"}}),
            json!({"kind": "ClusterRoleBinding", "metadata": {"name": "manager"}, "roleRef": {"kind": "ClusterRole", "name": "manager"}, "subjects": []}),
            json!({"kind": "RoleBinding", "metadata": {"name": "view"}, "roleRef": {"kind": "ClusterRole", "name": "view"}}),
            json!({"kind": "Role", "metadata": {"name": "leader", "namespace": "op-system"}}),
            json!({"kind": "ServiceAccount", "metadata": {"name": "sa"}}),
        ];
        let account = Account { namespace: "a", operator_namespace: "a-system" };
        let got = account.rewrite(&documents);
        let brief: Vec<String> = got
            .iter()
            .map(|o| {
                format!(
                    "{} {}/{} -> {}",
                    o["kind"].as_str().unwrap(),
                    o.namespace().unwrap_or("-"),
                    o.name().unwrap(),
                    o["roleRef"]["name"].as_str().unwrap_or("-")
                )
            })
            .collect();
        assert_eq!(
            brief,
            [
                "ClusterRole -/manager-a -> -",
                "ClusterRoleBinding -/manager-a -> manager-a",
                "RoleBinding a/view -> view",
                "RoleBinding a-system/view -> view",
                "Role a-system/leader -> -",
            ]
        );
        assert_eq!(got[1]["subjects"][0]["namespace"], "a-system");
    }
}
