//! Who speaks to the API server, and the token each proves it with.
//!
//! `--token-auth-file` is read once at the API server's start, so every identity is written up front. Operators are not
//! among them: they get a token of their own ServiceAccount, so that their real RBAC is what is tested.

use std::collections::BTreeMap;

use rand::{TryRng, rngs::SysRng};

use crate::Error;

/// Someone the harness itself acts as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Identity {
    /// For people and for setting things up.
    Admin,
    /// The independent watch of every object version.
    Witness,
    /// A scenario's steps: what a person with `kubectl` would do.
    User,
    /// Plays the kubelets: pod states, nodes.
    KubeletStub,
    /// Faults and undo records that have to touch the cluster.
    Harness,
    /// kube-controller-manager before it takes on the identity of each controller.
    ControllerManager,
}

impl Identity {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Admin, Self::Witness, Self::User, Self::KubeletStub, Self::Harness, Self::ControllerManager];

    /// The user name the API server knows this identity by.
    pub fn user_name(self) -> &'static str {
        match self {
            Self::Admin => "spiritlevel:admin",
            Self::Witness => "spiritlevel:witness",
            Self::User => "spiritlevel:user",
            Self::KubeletStub => "spiritlevel:kubelet-stub",
            Self::Harness => "spiritlevel:harness",
            // The bootstrap RBAC policy binds its rights to this name.
            Self::ControllerManager => "system:kube-controller-manager",
        }
    }

    /// Its groups. `system:masters` may do everything (bootstrap policy, `cluster-admin`).
    pub fn groups(self) -> &'static [&'static str] {
        match self {
            Self::ControllerManager => &[],
            _ => &["system:masters"],
        }
    }
}

/// One random bearer token for each identity.
#[derive(Clone)]
pub(crate) struct Tokens(BTreeMap<Identity, String>);

impl Tokens {
    pub(crate) fn random() -> Result<Self, Error> {
        let mut tokens = BTreeMap::new();
        for identity in Identity::ALL {
            let mut bytes = [0_u8; 24];
            SysRng.try_fill_bytes(&mut bytes).map_err(|source| Error::Random { source: Box::new(source) })?;
            tokens.insert(identity, hex::encode(bytes));
        }
        Ok(Self(tokens))
    }

    pub(crate) fn get(&self, identity: Identity) -> &str {
        self.0.get(&identity).expect("every identity got a token in `random`")
    }

    /// The file of `--token-auth-file`: `token,user,uid,"group,group"`.
    pub(crate) fn to_csv(&self) -> String {
        let line = |(identity, token): (&Identity, &String)| {
            let name = identity.user_name();
            format!("{token},{name},{name},\"{}\"\n", identity.groups().join(","))
        };
        self.0.iter().map(line).collect::<Vec<_>>().concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_identity_has_its_own_line_and_token() {
        let tokens = Tokens::random().unwrap();
        let csv = tokens.to_csv();
        assert_eq!(csv.lines().count(), Identity::ALL.len());
        let witness = tokens.get(Identity::Witness);
        assert!(
            csv.contains(&format!("{witness},spiritlevel:witness,spiritlevel:witness,\"system:masters\"\n")),
            "{csv}"
        );
        assert_ne!(tokens.get(Identity::Admin), witness);
        assert_ne!(Tokens::random().unwrap().get(Identity::Admin), tokens.get(Identity::Admin));
    }
}
