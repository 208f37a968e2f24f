//! Body wrappers that track whether a connection waits for its peer.

use super::shares::{Busy, Share};
use hyper::body::{Body, Frame, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll};

/// A response body during which its connection counts as busy.
pub struct WhileSent<B> {
    body: B,
    busy: Busy,
}

impl<B> WhileSent<B> {
    /// Wraps the body of a response.
    pub fn new(body: B, busy: Busy) -> Self {
        Self { body, busy }
    }
}

type Frames<B> = Poll<Option<Result<Frame<<B as Body>::Data>, <B as Body>::Error>>>;

impl<B: Body + Unpin> Body for WhileSent<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Frames<B> {
        // The next frame is polled once the peer has read the previous one.
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

/// A request body, whose connection waits for its peer.
pub struct WhileTaken<B> {
    body: B,
    share: Share,
}

impl<B> WhileTaken<B> {
    /// Wraps the body of a request.
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
