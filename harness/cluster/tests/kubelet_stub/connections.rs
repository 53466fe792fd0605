//! A stub whose connections are cut.

use k8s_openapi::api::core::v1::Pod;
use kube::api::DeleteParams;
use spiritlevel_cluster::{Cluster, Endpoint, Identity, connect, kubelet_stub::KubeletStub};

use crate::{
    ground::{Corner, Outcome, idle, until},
    objects::{is_ready, pod, restarts},
    relay::Relay,
};

/// A second stub serves the same corner as the shared one, as after a hand-over: which of them wrote is of no account,
/// except for a kill, which only the second one is told of.
pub(crate) async fn lost_connections(corner: &Corner<'_>) -> Outcome {
    let direct = corner.ground.cluster.endpoint();
    let relay = Relay::start(direct.url.trim_start_matches("https://")).await?;
    let endpoint = Endpoint { url: format!("https://{}", relay.address()), ca_pem: direct.ca_pem.clone() };
    let stub = KubeletStub::start(connect(&endpoint, corner.ground.cluster.token(Identity::KubeletStub))?).await?;
    corner.create(pod("before", "Always")).await?;
    corner.ready("before").await?;
    kill(&stub, corner, "before").await?;

    relay.cut();
    corner.create(pod("meanwhile", "Always")).await?;
    corner.ready("meanwhile").await?;
    corner.api::<Pod>().delete("before", &DeleteParams::default()).await?;
    corner.gone::<Pod>("before").await?;
    relay.mend();
    kill(&stub, corner, "meanwhile").await?;
    assert!(stub.kill_pod(&corner.namespace, "before").is_err(), "it has noticed that the pod is gone");

    stub.relist();
    assert!(!stub.busy(&corner.namespace).is_empty(), "nothing is believed before the new listing");
    idle(&stub, &corner.namespace).await?;
    corner.create(pod("after", "Always")).await?;
    corner.ready("after").await?;
    kill(&stub, corner, "after").await?;
    stub.stop().await;
    Ok(())
}

/// Kills a pod as soon as `stub` knows that it runs.
async fn kill(stub: &KubeletStub, corner: &Corner<'_>, name: &str) -> Outcome {
    until(stub, "it runs", |stub| stub.kill_pod(&corner.namespace, name).is_ok()).await?;
    corner.wait(name, |pod: Option<&Pod>| is_ready(pod) && restarts(pod) == 1).await
}
