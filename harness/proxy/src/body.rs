//! Bodies of answers: whole, streamed and watched for their end, or fed event by event.

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};
use tokio::sync::mpsc;

pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;
/// Any body that goes through the proxy.
pub(crate) type Body = UnsyncBoxBody<Bytes, BoxError>;

/// The exchange ends here: hyper turns it into RST_STREAM with INTERNAL_ERROR on HTTP/2, which no client's transport
/// repeats by itself, and into the end of the connection on HTTP/1.1.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the exchange was cut off")]
pub(crate) struct Cut;

/// A body that is all there.
pub(crate) fn whole(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}

/// How a streamed body ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The client's connection took all of it.
    Complete,
    /// The source failed.
    Failed,
    /// The client's connection went away first.
    Dropped,
}

/// A body that tells when it is over.
pub(crate) struct Observed {
    inner: Body,
    on_end: Option<Box<dyn FnOnce(Ended) + Send>>,
}

impl Observed {
    pub(crate) fn wrap(inner: Body, on_end: impl FnOnce(Ended) + Send + 'static) -> Body {
        Self { inner, on_end: Some(Box::new(on_end)) }.boxed_unsync()
    }

    fn end(&mut self, how: Ended) {
        if let Some(on_end) = self.on_end.take() {
            on_end(how);
        }
    }
}

impl http_body::Body for Observed {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let frame = ready!(Pin::new(&mut self.inner).poll_frame(cx));
        match &frame {
            None => self.end(Ended::Complete),
            Some(Err(_)) => self.end(Ended::Failed),
            // With a known length hyper asks no more after the last byte.
            Some(Ok(_)) if self.inner.is_end_stream() => self.end(Ended::Complete),
            Some(Ok(_)) => {}
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl Drop for Observed {
    fn drop(&mut self) {
        let how = if http_body::Body::is_end_stream(&self.inner) { Ended::Complete } else { Ended::Dropped };
        self.end(how);
    }
}

/// What a watch's body is fed with.
#[derive(Debug)]
pub(crate) enum Piece {
    /// Bytes for the client.
    Frame(Bytes),
    /// The stream breaks.
    Cut,
}

/// A watch's body; it ends cleanly when the sender is dropped.
pub(crate) struct Fed(pub(crate) mpsc::Receiver<Piece>);

impl http_body::Body for Fed {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Poll::Ready(ready!(self.0.poll_recv(cx)).map(|piece| match piece {
            Piece::Frame(bytes) => Ok(Frame::data(bytes)),
            Piece::Cut => Err(Cut.into()),
        }))
    }
}
