use super::*;

#[test]
fn a_replica_is_a_deployment_that_reaches_the_proxy() {
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "op"},
        "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "op"}}, "template": {
            "metadata": {"labels": {"app": "op"}},
            "spec": {"serviceAccountName": "theirs", "containers": [
                {"name": "manager", "image": "a", "env": [
                    {"name": "KUBERNETES_SERVICE_HOST", "value": "old"}, {"name": "OTHER", "value": "x"},
                ]},
                {"name": "sidecar", "image": "b"},
            ]},
        }},
    });
    let proxy: SocketAddr = "172.18.0.1:4711".parse().unwrap();
    let spec = |container: Option<&str>| DeploymentSpec {
        manifests: Vec::new(),
        name: None,
        container: container.map(Into::into),
        image: Some("c".into()),
        args: vec!["--namespace=($namespace)".into()],
        env: [("OTHER".to_owned(), "y".to_owned())].into(),
        webhook_certificate: None,
        image_build: None,
    };
    let known = Bindings::from([("namespace".to_owned(), json!("shop"))]);
    let (made, container) = rendered(&deployment, &spec(None), &known, 1, proxy).unwrap();
    assert_eq!((made.name(), container.as_str()), (Some("op-1"), "manager"));
    let template = &made["spec"]["template"];
    assert_eq!(made["spec"]["selector"]["matchLabels"], json!({"app": "op", REPLICA: "1"}));
    assert_eq!(template["metadata"]["labels"], json!({"app": "op", REPLICA: "1"}));
    assert_eq!(template["spec"]["serviceAccountName"], ACCOUNT);
    let containers = template["spec"]["containers"].as_array().unwrap();
    assert_eq!((&containers[0]["image"], &containers[1]["image"]), (&json!("c"), &json!("b")));
    for one in containers {
        let host: Vec<&Value> =
            one["env"].as_array().unwrap().iter().filter(|e| e["name"] == "KUBERNETES_SERVICE_HOST").collect();
        assert_eq!(host, [&json!({"name": "KUBERNETES_SERVICE_HOST", "value": "172.18.0.1"})]);
        assert_eq!(one["volumeMounts"][0]["mountPath"], ACCOUNT_DIR);
    }
    assert_eq!(containers[0]["args"], json!(["--namespace=shop"]));
    assert_eq!(containers[0]["env"][0], json!({"name": "OTHER", "value": "y"}));
    assert!(rendered(&deployment, &spec(Some("nobody")), &known, 0, proxy).is_err());
}
