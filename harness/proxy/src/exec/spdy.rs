//! A command's streams over SPDY/3.1, as client-go before 1.30 and the operators built with it speak.
//!
//! Only what an exec needs. Headers are zlib-compressed with a preset dictionary, and need not be read: which stream is
//! which follows from the order in which client-go opens them (`k8s.io/client-go/tools/remotecommand/v2.go`: error, then
//! stdin, stdout and stderr as the URL asks). They need not be compressed either: a zlib stream of stored blocks, without
//! the dictionary, is valid to every reader.

use super::ExecAnswer;
use spiritlevel_model::RequestInfo;
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

const SYN_STREAM: u16 = 1;
const SYN_REPLY: u16 = 2;
const PING: u16 = 6;
const GOAWAY: u16 = 7;
const FIN: u8 = 1;
const PIECE: usize = 16 * 1024;
/// Larger control frames are no exec.
const LIMIT: usize = 1 << 20;

/// Which streams the client opens, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Streams(Vec<Kind>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Error,
    Stdin,
    Stdout,
    Stderr,
}

impl Streams {
    pub(super) fn of(info: &RequestInfo) -> Self {
        let asked = |name: &str| info.query.get(name).is_some_and(|v| v == "true" || v == "1");
        let optional = [("stdin", Kind::Stdin), ("stdout", Kind::Stdout), ("stderr", Kind::Stderr)];
        let optional = optional.into_iter().filter(|(name, _)| asked(name)).map(|(_, kind)| kind);
        Self(std::iter::once(Kind::Error).chain(optional).collect())
    }
}

/// Accepts the streams, writes output and exit code, and waits for the client to leave.
pub(super) async fn give(
    mut io: impl AsyncRead + AsyncWrite + Unpin,
    streams: Streams,
    answer: &ExecAnswer,
) -> io::Result<()> {
    let mut opened = Vec::new();
    let mut replied = false;
    loop {
        let mut head = [0; 8];
        if io.read_exact(&mut head).await.is_err() {
            return io.shutdown().await;
        }
        let length = usize::from(head[5]) << 16 | usize::from(head[6]) << 8 | usize::from(head[7]);
        if length > LIMIT {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut payload = vec![0; length];
        io.read_exact(&mut payload).await?;
        if head[0] & 0x80 == 0 {
            // Standard input, which nobody reads.
            continue;
        }
        match u16::from_be_bytes([head[2], head[3]]) {
            SYN_STREAM if length >= 4 => {
                let id = [payload[0], payload[1], payload[2], payload[3]];
                let mut reply = id.to_vec();
                reply.extend(no_headers(!replied));
                replied = true;
                io.write_all(&control(SYN_REPLY, &reply)).await?;
                opened.push(id);
                // One more may come, for the size of a terminal.
                if opened.len() == streams.0.len() {
                    write_answer(&mut io, &streams, &opened, answer).await?;
                }
            }
            PING => io.write_all(&control(PING, &payload)).await?,
            GOAWAY => return io.shutdown().await,
            _ => {}
        }
        io.flush().await?;
    }
}

async fn write_answer(
    io: &mut (impl AsyncWrite + Unpin),
    streams: &Streams,
    ids: &[[u8; 4]],
    answer: &ExecAnswer,
) -> io::Result<()> {
    let status = answer.status();
    for kind in [Kind::Stdout, Kind::Stderr, Kind::Error] {
        let Some(at) = streams.0.iter().position(|k| *k == kind) else { continue };
        let content: &[u8] = match kind {
            Kind::Stdout => &answer.stdout,
            Kind::Error => &status,
            Kind::Stdin | Kind::Stderr => &[],
        };
        for piece in content.chunks(PIECE) {
            io.write_all(&data(ids[at], 0, piece)).await?;
        }
        io.write_all(&data(ids[at], FIN, &[])).await?;
    }
    Ok(())
}

fn control(kind: u16, payload: &[u8]) -> Vec<u8> {
    let mut out = vec![0x80, 3];
    out.extend(kind.to_be_bytes());
    with_length(&mut out, 0, payload);
    out
}

fn data(stream: [u8; 4], flags: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = stream.to_vec();
    with_length(&mut out, flags, payload);
    out
}

fn with_length(out: &mut Vec<u8>, flags: u8, payload: &[u8]) {
    out.push(flags);
    // Pieces and headers are far below 2^24 bytes.
    out.extend(&(payload.len() as u32).to_be_bytes()[1..]);
    out.extend(payload);
}

/// A block of no headers; all blocks of a connection are one zlib stream. The empty stored block after the content is
/// what makes a reader hand the content out (a sync flush).
fn no_headers(first: bool) -> Vec<u8> {
    let mut out = if first { vec![0x78, 0x01] } else { Vec::new() };
    out.extend([0, 4, 0, 0xfb, 0xff, 0, 0, 0, 0]);
    out.extend([0, 0, 0, 0xff, 0xff]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_come_in_the_order_of_client_go() {
        for (query, expected) in [
            ("command=ls&stdout=true&stderr=true", vec![Kind::Error, Kind::Stdout, Kind::Stderr]),
            (
                "command=sh&stderr=true&stdin=true&stdout=true",
                vec![Kind::Error, Kind::Stdin, Kind::Stdout, Kind::Stderr],
            ),
            ("command=ls&stdin=false&stdout=1", vec![Kind::Error, Kind::Stdout]),
        ] {
            let info = RequestInfo::classify("POST", &format!("/api/v1/namespaces/a/pods/p/exec?{query}"));
            assert_eq!(Streams::of(&info), Streams(expected), "{query}");
        }
    }

    #[tokio::test]
    async fn each_stream_is_accepted_and_ends() {
        let (mut client, server) = tokio::io::duplex(1 << 16);
        let info = RequestInfo::classify("POST", "/api/v1/namespaces/a/pods/p/exec?command=ls&stdout=true");
        let answer = ExecAnswer { exit_code: 0, stdout: b"hi".to_vec() };
        let serve = async move { give(server, Streams::of(&info), &answer).await };
        let ask = async move {
            for id in [1u8, 3] {
                let payload = [0, 0, 0, id, 0, 0, 0, 0, 0, 0];
                client.write_all(&control(SYN_STREAM, &payload)).await.unwrap();
            }
            client.write_all(&control(GOAWAY, &[0; 8])).await.unwrap();
            let mut got = Vec::new();
            client.read_to_end(&mut got).await.unwrap();
            got
        };
        let (done, got) = tokio::join!(serve, ask);
        done.unwrap();
        let reply = |id: u8, first| control(SYN_REPLY, &[vec![0, 0, 0, id], no_headers(first)].concat());
        let status = ExecAnswer::default().status();
        let expected = [
            reply(1, true),
            reply(3, false),
            data([0, 0, 0, 3], 0, b"hi"),
            data([0, 0, 0, 3], FIN, b""),
            data([0, 0, 0, 1], 0, &status),
            data([0, 0, 0, 1], FIN, b""),
        ];
        assert_eq!(got, expected.concat());
    }
}
