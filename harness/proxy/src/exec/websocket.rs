//! A command's streams over WebSocket: one binary message a piece, its first byte the channel
//! (`k8s.io/apimachinery/pkg/util/remotecommand/constants.go`).

use super::ExecAnswer;
use base64::{Engine, prelude::BASE64_STANDARD};
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// RFC 6455, 1.3.
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const STDOUT: u8 = 1;
const ERROR: u8 = 3;
const BINARY: u8 = 0x82;
const CLOSE: u8 = 0x88;
/// Small enough for every client's read buffer.
const PIECE: usize = 32 * 1024;

/// The answer to a handshake's key.
pub(super) fn accept(key: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY, &[key, GUID].concat());
    BASE64_STANDARD.encode(digest)
}

/// Writes output and exit code, then closes.
pub(super) async fn give(mut io: impl AsyncRead + AsyncWrite + Unpin, answer: &ExecAnswer) -> io::Result<()> {
    let mut out = Vec::new();
    for piece in answer.stdout.chunks(PIECE) {
        message(&mut out, BINARY, &[&[STDOUT], piece].concat());
    }
    message(&mut out, BINARY, &[&[ERROR], &answer.status()[..]].concat());
    message(&mut out, CLOSE, &1000u16.to_be_bytes());
    io.write_all(&out).await?;
    io.flush().await?;
    // The client closes when it has read that; what it still sends (standard input, its own close) says nothing.
    let mut ignored = [0; 4096];
    while io.read(&mut ignored).await? > 0 {}
    io.shutdown().await
}

/// Servers do not mask (RFC 6455, 5.1).
fn message(out: &mut Vec<u8>, opcode: u8, payload: &[u8]) {
    out.push(opcode);
    match u16::try_from(payload.len()) {
        Ok(length @ 0..126) => out.push(length as u8),
        Ok(length) => {
            out.push(126);
            out.extend(length.to_be_bytes());
        }
        Err(_) => {
            out.push(127);
            out.extend((payload.len() as u64).to_be_bytes());
        }
    }
    out.extend(payload);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handshakes_are_answered_as_the_rfc_shows() {
        assert_eq!(accept(b"dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[test]
    fn lengths_are_written_in_their_shortest_form() {
        for (length, head) in [
            (0usize, &[0x82, 0][..]),
            (125, &[0x82, 125]),
            (126, &[0x82, 126, 0, 126]),
            (65536, &[0x82, 127, 0, 0, 0, 0, 0, 1, 0, 0]),
        ] {
            let mut out = Vec::new();
            message(&mut out, BINARY, &vec![7; length]);
            assert_eq!((&out[..head.len()], out.len()), (head, head.len() + length));
        }
    }
}
