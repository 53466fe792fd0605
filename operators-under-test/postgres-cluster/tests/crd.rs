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
