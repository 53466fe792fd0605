//! Who can be reached, from inside and from outside.

use super::fixture::{Fixture, PATIENCE};
use crate::Outcome;
use rustix::net::sockopt::set_socket_linger;
use spiritlevel_operator::{Bind, Exit, Sandbox, stop_listening};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Accepts one connection and answers with this text.
async fn answer(listener: &TcpListener, text: &str) -> Outcome {
    let (mut stream, _) = tokio::time::timeout(PATIENCE, listener.accept()).await??;
    let mut hello = [0; 6];
    stream.read_exact(&mut hello).await?;
    stream.write_all(text.as_bytes()).await?;
    Ok(())
}

fn listen(sandbox: &Sandbox) -> Result<TcpListener, std::io::Error> {
    TcpListener::from_std(sandbox.bind()?)
}

pub(crate) async fn connections_are_refused_accepted_and_reset() -> Outcome {
    let fixture = Fixture::new()?;
    assert_eq!(fixture.hear(&["call", "1"]).await?, ["error ConnectionRefused"], "before");

    let listener = listen(&fixture.sandbox)?;
    let (process, mut lines) = fixture.start(&["call", "2"]).await?;
    answer(&listener, "welcome").await?;
    assert_eq!(lines.next().await?, "answer welcome");
    let (stream, _) = tokio::time::timeout(PATIENCE, listener.accept()).await??;
    set_socket_linger(&stream, Some(Duration::ZERO))?;
    drop(stream);
    assert_eq!(lines.next().await?, "error ConnectionReset");
    assert_eq!(process.wait().await, Exit::Code(0));

    stop_listening(&listener)?;
    assert_eq!(fixture.hear(&["call", "1"]).await?, ["error ConnectionRefused"], "between");
    drop(listener);
    let listener = listen(&fixture.sandbox)?;
    let (_process, mut lines) = fixture.start(&["call", "1"]).await?;
    answer(&listener, "again").await?;
    assert_eq!(lines.next().await?, "answer again");
    assert!(std::net::TcpStream::connect(fixture.sandbox.address()).is_err(), "nothing listens on the host");
    Ok(())
}

pub(crate) async fn the_listener_stays_across_restarts() -> Outcome {
    let fixture = Fixture::new()?;
    let listener = listen(&fixture.sandbox)?;
    for round in 0..20 {
        let (process, mut lines) = fixture.start(&["call", "1"]).await?;
        answer(&listener, &format!("round {round}")).await?;
        assert_eq!(lines.next().await?, format!("answer round {round}"));
        assert_eq!(process.wait().await, Exit::Code(0));
    }
    Ok(())
}

pub(crate) async fn two_sandboxes_share_a_port() -> Outcome {
    let (one, two) = (Fixture::new()?, Fixture::new()?);
    assert_eq!(one.sandbox.address(), two.sandbox.address());
    let (first, second) = (listen(&one.sandbox)?, listen(&two.sandbox)?);
    let (_process, mut ones) = one.start(&["call", "1"]).await?;
    let (_process, mut twos) = two.start(&["call", "1"]).await?;
    answer(&second, "two").await?;
    answer(&first, "one").await?;
    assert_eq!([ones.next().await?, twos.next().await?], ["answer one", "answer two"]);
    Ok(())
}

pub(crate) async fn the_harness_calls_inside() -> Outcome {
    let fixture = Fixture::new()?;
    let webhook = "127.0.0.1:9443";
    let refused = fixture.sandbox.dial(webhook.parse()?).expect_err("nobody listens yet");
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    let (_process, mut lines) = fixture.start(&["serve", webhook]).await?;
    assert_eq!(lines.next().await?, "listening");
    let mut stream = TcpStream::from_std(fixture.sandbox.dial(webhook.parse()?)?)?;
    let mut greeting = String::new();
    tokio::time::timeout(PATIENCE, stream.read_to_string(&mut greeting)).await??;
    assert_eq!(greeting, "from inside");
    Ok(())
}

pub(crate) async fn pod_addresses_can_be_served() -> Outcome {
    let fixture = Fixture::new()?;
    let pod = TcpListener::from_std(fixture.sandbox.listen("10.1.7.7:8000".parse()?)?)?;
    let mut launch = fixture.launch(&["call", "1"]);
    launch.env.insert("KUBERNETES_SERVICE_HOST".into(), "10.1.7.7".into());
    launch.env.insert("KUBERNETES_SERVICE_PORT".into(), "8000".into());
    let (_process, mut lines) = fixture.start_as(launch).await?;
    answer(&pod, "a pod").await?;
    assert_eq!(lines.next().await?, "answer a pod");
    Ok(())
}
