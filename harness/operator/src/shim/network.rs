//! A network with nothing but `lo`.

use crate::wire::Refusal;
use rtnetlink::packet_route::route::{RouteScope, RouteType};
use rtnetlink::{LinkUnspec, RouteMessageBuilder, new_connection};
use std::{fs, io, net::Ipv4Addr};

/// `lo` has this index in every fresh network namespace.
const LO: u32 = 1;
/// The kernel's table of local addresses.
const LOCAL: u32 = 255;

/// Brings `lo` up, and makes invented pod addresses (10.1.0.0/16) local: refused at once, or served by a fake data plane.
/// No other route exists, so nothing that the operator dials can leave the machine.
pub(super) fn bring_up() -> Result<(), Refusal> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Refusal::new("make a runtime", error))?;
    runtime.block_on(async {
        let (connection, netlink, _) = new_connection().map_err(|error| Refusal::new("open netlink", error))?;
        let serving = tokio::spawn(connection);
        let up = LinkUnspec::new_with_index(LO).up().build();
        netlink.link().set(up).execute().await.map_err(|error| netlink_refusal("bring up lo", error))?;
        let pods = RouteMessageBuilder::<Ipv4Addr>::new().destination_prefix(Ipv4Addr::new(10, 1, 0, 0), 16);
        let pods = pods.output_interface(LO).table_id(LOCAL).scope(RouteScope::Host).kind(RouteType::Local).build();
        netlink.route().add(pods).execute().await.map_err(|error| netlink_refusal("make 10.1.0.0/16 local", error))?;
        serving.abort();
        Ok(())
    })?;
    // As container runtimes do, so that an operator without capabilities may listen on :443. An old kernel without this
    // setting only lacks that.
    let _ = fs::write("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0");
    Ok(())
}

fn netlink_refusal(step: &str, error: rtnetlink::Error) -> Refusal {
    match error {
        rtnetlink::Error::NetlinkError(message) => Refusal::new(step, message.to_io()),
        other => Refusal { why: Some(other.to_string()), ..Refusal::new(step, io::Error::from(io::ErrorKind::Other)) },
    }
}
