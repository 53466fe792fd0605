//! A stub whose connections are cut.

use k8s_openapi::api::core::v1::Pod;
use kube::api::DeleteParams;
use spiritlevel_cluster::{Cluster, Endpoint, Identity, connect, kubelet_stub::KubeletStub};

use crate::{
    ground::{Corner, Outcome, idle},
    objects::{is_ready, pod, restarts},
    relay::Relay,
};

pub(crate) async fn lost_connections(corner: &Corner<'_>) -> Outcome {
    // A stub of its own, in a corner of its own; the shared one sees the same objects, so both act, as after a hand-over.
    let relay = Relay::start(corner.ground.cluster.endpoint().url.trim_start_matches("https://")).await?;
    let endpoint = Endpoint {
        url: format!("https://{}", relay.address()),
        ca_pem: corner.ground.cluster.endpoint().ca_pem.clone(),
    };
    let stub = KubeletStub::start(connect(&endpoint, corner.ground.cluster.token(Identity::KubeletStub))?).await?;
    corner.create(pod("before", "Always")).await?;
    corner.ready("before").await?;
    idle(&stub, &corner.namespace).await?;

    relay.cut();
    corner.create(pod("meanwhile", "Always")).await?;
    corner.ready("meanwhile").await?;
    corner.api::<Pod>().delete("before", &DeleteParams::default()).await?;
    corner.gone::<Pod>("before").await?;
    relay.mend();
    stub.relist();
    idle(&stub, &corner.namespace).await?;
    assert!(stub.kill_pod(&corner.namespace, "before").is_err(), "it has noticed that the pod is gone");
    stub.kill_pod(&corner.namespace, "meanwhile")?;
    corner.wait("meanwhile", |pod: Option<&Pod>| is_ready(pod) && restarts(pod) == 1).await?;
    stub.stop().await;
    Ok(())
}
