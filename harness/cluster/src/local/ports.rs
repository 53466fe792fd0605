//! Free ports on the loopback address, and what to do when somebody else was faster.

use std::net::TcpListener;

use crate::{Component, Error};

/// How often a start is tried with another port.
const ATTEMPTS: u32 = 5;

/// A port that was free a moment ago.
pub(crate) fn free_port() -> Result<u16, Error> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(Error::NoPort)?;
    Ok(listener.local_addr().map_err(Error::NoPort)?.port())
}

/// Calls `start` with a free port, again with another one when the port was taken in between.
pub(crate) async fn with_free_port<T, F>(component: Component, mut start: impl FnMut(u16) -> F) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    for _ in 0..ATTEMPTS {
        match start(free_port()?).await {
            Err(Error::PortTaken { .. }) => tracing::debug!(%component, "the reserved port was taken"),
            other => return other,
        }
    }
    Err(Error::PortTaken { component, attempts: ATTEMPTS })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_taken_port_is_tried_again_and_not_for_ever() {
        let taken = || Error::PortTaken { component: Component::Etcd, attempts: 1 };
        let mut calls = 0;
        let port = with_free_port(Component::Etcd, |port| {
            calls += 1;
            std::future::ready(if calls < 3 { Err(taken()) } else { Ok(port) })
        })
        .await
        .unwrap();
        assert!(calls == 3 && port > 0);

        let error = with_free_port(Component::Etcd, |_| std::future::ready(Err::<u16, _>(taken()))).await.unwrap_err();
        assert!(matches!(error, Error::PortTaken { attempts: ATTEMPTS, .. }), "{error}");
    }
}
