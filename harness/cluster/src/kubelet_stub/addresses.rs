//! Pod addresses out of 10.1.0.0/16, which is local inside an operator's network namespace: nothing dialled there can
//! leave the machine.

use std::{collections::BTreeMap, net::Ipv4Addr};

/// Which pod has which address.
#[derive(Debug, Default)]
pub(super) struct Addresses {
    by_pod: BTreeMap<String, Ipv4Addr>,
    last: u16,
}

// === impl Addresses ===

impl Addresses {
    /// The address of the pod `uid`, a free one if it has none.
    pub(super) fn of(&mut self, uid: &str) -> Ipv4Addr {
        if let Some(address) = self.by_pod.get(uid) {
            return *address;
        }
        // The longest unused one comes first again: a dead pod's address is not soon given to another.
        let address = (0..=u16::MAX)
            .map(|step| self.last.wrapping_add(step).wrapping_add(1))
            .filter(|host| (2..u16::MAX).contains(host))
            .map(|host| Ipv4Addr::from(0x0a01_0000 | u32::from(host)))
            .find(|address| !self.by_pod.values().any(|taken| taken == address))
            .expect("fewer pods than a /16 has addresses fit into etcd's limits");
        self.claim(uid, address);
        address
    }

    /// Notes an address that a pod has already.
    pub(super) fn claim(&mut self, uid: &str, address: Ipv4Addr) {
        self.last = (u32::from(address) & 0xffff) as u16;
        self.by_pod.insert(uid.to_owned(), address);
    }

    /// The pod is gone.
    pub(super) fn release(&mut self, uid: &str) {
        self.by_pod.remove(uid);
    }
}

#[cfg(test)]
mod tests {
    use super::Addresses;

    #[test]
    fn addresses_are_unique_and_not_reused_at_once() {
        let mut addresses = Addresses::default();
        let first = addresses.of("a");
        assert_eq!(first.to_string(), "10.1.0.2");
        assert_eq!(addresses.of("a"), first);
        addresses.release("a");
        assert_eq!(addresses.of("b").to_string(), "10.1.0.3");
        addresses.claim("c", [10, 1, 255, 254].into());
        assert_eq!(addresses.of("d").to_string(), "10.1.0.2");
    }
}
