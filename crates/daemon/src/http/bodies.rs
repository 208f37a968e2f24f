//! Bodies that say whether their connection's peer is waited for.

use super::shares::{Busy, Share};
use hyper::body::{Body, Frame, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll};

/// The body of an answer, as long as which its connection has a request.
pub struct WhileSent<B> {
    body: B,
    busy: Busy,
}

impl<B> WhileSent<B> {
    /// That of an answer.
    pub fn new(body: B, busy: Busy) -> Self {
        Self { body, busy }
    }
}

type Frames<B> = Poll<Option<Result<Frame<<B as Body>::Data>, <B as Body>::Error>>>;

impl<B: Body + Unpin> Body for WhileSent<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Frames<B> {
        // More is asked for when the peer has taken what was sent.
        self.busy.share().works();
        let frame = Pin::new(&mut self.body).poll_frame(context);
        if matches!(frame, Poll::Ready(Some(Ok(_)))) {
            self.busy.share().waits();
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The body of a request, for which its peer is waited.
pub struct WhileTaken<B> {
    body: B,
    share: Share,
}

impl<B> WhileTaken<B> {
    /// That of a request of a connection.
    pub fn new(body: B, share: Share) -> Self {
        Self { body, share }
    }
}

impl<B: Body + Unpin> Body for WhileTaken<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Frames<B> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        match frame {
            Poll::Pending => self.share.waits(),
            Poll::Ready(_) => self.share.works(),
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
