//! The committed CRD is the one that the types describe.

#[test]
fn crd_yaml_is_current() {
    let committed = include_str!("../crd.yaml");
    let generated = postgres_cluster::cli::crd_yaml().expect("the CRD can be printed");
    assert!(
        committed == generated,
        "crd.yaml is out of date; run: cargo run -p postgres-cluster -- crd > operators-under-test/postgres-cluster/crd.yaml"
    );
}

/// The rules that the API server applies to a changed spec, applied here.
#[test]
fn storage_cannot_shrink_and_the_major_version_cannot_go_down() {
    use postgres_cluster::crd::{PostgresClusterSpec, Storage};
    let size = |size: &str| serde_json::json!({"size": size});
    let grow = Storage::validate_cel(&size("2Gi"), Some(&size("1Gi")));
    assert!(grow.is_ok(), "{grow:?}");
    assert!(Storage::validate_cel(&size("1024Mi"), Some(&size("1Gi"))).is_ok(), "another spelling of the same size");
    assert!(Storage::validate_cel(&size("512Mi"), Some(&size("1Gi"))).is_err());

    let spec = |version: &str| serde_json::json!({"replicas": 1, "version": version, "storage": {"size": "1Gi"}});
    assert!(PostgresClusterSpec::validate_cel(&spec("18"), Some(&spec("17.2"))).is_ok());
    assert!(PostgresClusterSpec::validate_cel(&spec("16.9"), Some(&spec("17.2"))).is_err());
}

#[test]
fn restore_from_is_for_the_beginning() {
    use postgres_cluster::crd::PostgresClusterSpec;
    let plain = serde_json::json!({"replicas": 1, "version": "18", "storage": {"size": "1Gi"}});
    let restored = |from: &str| {
        let mut spec = plain.clone();
        spec["restoreFrom"] = serde_json::json!({"cluster": from});
        spec
    };
    let check = |new: &serde_json::Value, old: &serde_json::Value| PostgresClusterSpec::validate_cel(new, Some(old));
    assert!(check(&restored("old"), &restored("old")).is_ok());
    assert!(check(&plain, &restored("old")).is_ok(), "it can be taken away");
    assert!(check(&restored("old"), &plain).is_err(), "it cannot be added later");
    assert!(check(&restored("other"), &restored("old")).is_err(), "it cannot change");
}
