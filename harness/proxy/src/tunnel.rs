//! Upgraded connections (exec, attach, port-forward): bytes in both directions until one side ends.

use crate::{body, exchange::Transit};
use http::{HeaderValue, Response, header, response::Parts};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use spiritlevel_model::history::ReplyOutcome;

/// Answers 101 and copies until the end of either side, or of the client's connection.
pub(crate) async fn open(
    transit: Transit,
    mut parts: Parts,
    protocol: Option<HeaderValue>,
    to_client: OnUpgrade,
    to_server: OnUpgrade,
) {
    parts.headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    if let Some(protocol) = protocol {
        parts.headers.insert(header::UPGRADE, protocol);
    }
    let status = parts.status.as_u16();
    let (path, connection) = (transit.path.clone(), transit.connection.clone());
    let (client, receipt) = transit.split();
    receipt.close(ReplyOutcome::Delivered(status), None);
    client.hand_over(Response::from_parts(parts, body::whole("")));
    let (Ok(client), Ok(server)) = tokio::join!(to_client, to_server) else { return };
    // hyper has let go of the connection; a partition must still find it.
    path.add_connection(connection.clone());
    let (mut client, mut server) = (TokioIo::new(client), TokioIo::new(server));
    let mut condition = path.condition();
    let copy = tokio::io::copy_bidirectional(&mut client, &mut server);
    tokio::pin!(copy);
    loop {
        let vanishes = condition.borrow_and_update().cut == Some(spiritlevel_model::fault::PartitionAs::Blackhole);
        tokio::select! {
            () = connection.ended.cancelled() => break,
            _ = &mut copy, if !vanishes => break,
            _ = condition.changed() => {}
        }
    }
    path.remove_connection(connection.number);
}
