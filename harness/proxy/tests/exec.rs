//! Where no kubelet runs, the proxy answers exec itself, if the API server lets the client.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use spiritlevel_proxy::ExecAnswer;
use std::sync::Arc;
use support::{PODS, World, soon};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

async fn ask(world: &World, method: &str, headers: &str, token: &str) -> (String, TlsStream<TcpStream>) {
    let mut tls = support::tls(world.proxy.ca_pem());
    tls.alpn_protocols = vec![b"http/1.1".to_vec()];
    let tcp = TcpStream::connect(world.listener.address()).await.unwrap();
    let mut stream = TlsConnector::from(Arc::new(tls)).connect("localhost".try_into().unwrap(), tcp).await.unwrap();
    let request = format!(
        "{method} {PODS}/p/exec?command=ls&stdout=true HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\
         connection: Upgrade\r\n{headers}\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(soon("the answer", stream.read_u8()).await.unwrap());
    }
    (String::from_utf8(head).unwrap().to_lowercase(), stream)
}

const WEBSOCKET: &str = "upgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
                         sec-websocket-protocol: v5.channel.k8s.io, v4.channel.k8s.io\r\n";
const SPDY: &str = "upgrade: SPDY/3.1\r\nx-stream-protocol-version: v4.channel.k8s.io\r\nx-stream-protocol-version: v3.channel.k8s.io\r\n";

#[tokio::test]
async fn over_websocket_the_client_gets_output_and_exit_code() {
    let world = World::new().await;
    world.script.answer_exec(ExecAnswer { exit_code: 3, stdout: b"hello".to_vec() });
    let (head, mut stream) = ask(&world, "GET", WEBSOCKET, "may").await;
    assert!(head.starts_with("http/1.1 101"), "{head}");
    assert!(head.contains("sec-websocket-protocol: v5.channel.k8s.io"), "{head}");
    assert!(head.contains("sec-websocket-accept: s3ppl"), "{head}");
    let mut output = [0; 8];
    soon("the output", stream.read_exact(&mut output)).await.unwrap();
    assert_eq!(&output, b"\x82\x06\x01hello");
    let mut status = [0; 5];
    soon("the status", stream.read_exact(&mut status)).await.unwrap();
    assert_eq!((status[0], status[1], status[4]), (0x82, 126, 3));
    let mut text = vec![0; usize::from(u16::from_be_bytes([status[2], status[3]])) - 1];
    soon("the status", stream.read_exact(&mut text)).await.unwrap();
    let status: serde_json::Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(
        (&status["reason"], &status["details"]["causes"][0]["message"]),
        (&"NonZeroExitCode".into(), &"3".into())
    );
    world.script.until("reply Delivered(101)").await;
    assert_eq!(world.script.told(), ["request get pods/exec a/p", "answer 101", "reply Delivered(101)"]);
}

#[tokio::test]
async fn over_spdy_the_protocol_is_agreed_on() {
    let world = World::new().await;
    world.script.answer_exec(ExecAnswer::default());
    let (head, _) = ask(&world, "POST", SPDY, "may").await;
    assert!(
        head.starts_with("http/1.1 101") && head.contains("x-stream-protocol-version: v4.channel.k8s.io"),
        "{head}"
    );
}

#[tokio::test]
async fn who_may_not_is_refused_in_the_words_of_rbac() {
    let world = World::new().await;
    world.script.answer_exec(ExecAnswer::default());
    for (method, headers) in [("GET", WEBSOCKET), ("POST", SPDY)] {
        let (head, _) = ask(&world, method, headers, "may-not").await;
        assert!(head.starts_with("http/1.1 403"), "{head}");
    }
    world.script.until_count("reply Delivered(403)", 2).await;
}

#[tokio::test]
async fn without_an_answer_exec_goes_to_the_api_server() {
    let world = World::new().await;
    let (head, mut stream) = ask(&world, "POST", "upgrade: echo\r\n", "may").await;
    assert!(head.starts_with("http/1.1 101"), "{head}");
    stream.write_all(b"x").await.unwrap();
    assert_eq!(soon("the echo", stream.read_u8()).await.unwrap(), b'x');
}
