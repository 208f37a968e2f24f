//! Request and response bodies of any length, streamed with backpressure.

use super::gate::Door;
use super::workers::Workers;
use crate::{Receiving, Sending};
use api::v1::{Problem, ProblemCode, Received};
use axum::body::Body;
use axum::extract::Request;
use axum::http::header;
use hyper::body::{Body as _, Bytes, Frame};
use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// A stream without progress for this long is aborted.
const STALL_TIME: Duration = Duration::from_secs(600);
/// Chunks queued for sending, besides the one being produced.
const PARTS: usize = 1;

/// How long the rest of a refused stream is read and discarded.
const LEFT_TIME: Duration = Duration::from_secs(20);

/// Whether the daemon is about to stop.
pub type Ending = watch::Receiver<bool>;

/// The caller of a stream, and the worker threads that process its chunks.
#[derive(Clone)]
pub struct Work {
    /// The worker threads.
    pub workers: Arc<Workers>,
    /// The listener.
    pub door: Door,
    /// The caller.
    pub who: String,
}

impl Work {
    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, tokio::task::JoinError> {
        self.workers.run((self.door, &self.who), work).await
    }
}

/// The body of a request that is a stream.
pub struct Upload {
    body: Body,
    /// The client waits for 100 Continue (RFC 9110, section 10.1.1).
    waits: bool,
}

impl Upload {
    /// The body of a request.
    pub fn of(request: Request) -> Self {
        Self {
            waits: request.headers().contains_key(header::EXPECT),
            body: request.into_body(),
        }
    }

    /// An empty body.
    pub fn empty() -> Self {
        Self {
            body: Body::empty(),
            waits: false,
        }
    }

    /// Stops reading. Clients that send without waiting, as browsers do, see the response only if
    /// their data is read for a while; closing the connection immediately could lose the response.
    pub fn leave(mut self) {
        if self.waits || self.body.is_end_stream() {
            return;
        }
        tokio::spawn(async move {
            let rest = async {
                let next =
                    |body: &mut Body, context: &mut Context<'_>| Pin::new(body).poll_frame(context);
                while let Some(Ok(_)) = poll_fn(|context| next(&mut self.body, context)).await {}
            };
            let _ = tokio::time::timeout(LEFT_TIME, rest).await;
        });
    }
}

/// Chunks as a body.
pub struct Parts(pub mpsc::Receiver<Bytes>);

impl hyper::body::Body for Parts {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let part = self.0.poll_recv(context);
        part.map(|part| part.map(|bytes| Ok(Frame::data(bytes))))
    }
}

/// The response body of a sent stream.
pub fn send(sending: Sending, work: Work, ending: Ending) -> Body {
    let (give, take) = mpsc::channel(PARTS);
    tokio::spawn(send_parts(sending, work, give, ending));
    Body::new(Parts(take))
}

async fn send_parts(
    mut sending: Sending,
    work: Work,
    parts: mpsc::Sender<Bytes>,
    mut ending: Ending,
) {
    loop {
        let made = work.run(move || {
            let part = sending.next_part();
            (sending, part)
        });
        // A panic was reported already; the stream is invalid without its end record.
        let Ok((back, Some(part))) = made.await else {
            return;
        };
        sending = back;
        tokio::select! {
            sent = parts.send(part.into()) => if sent.is_err() {
                return;
            },
            _ = ending.wait_for(|ending| *ending) => return,
            () = tokio::time::sleep(STALL_TIME) => {
                tracing::warn!("aborting a stream: the receiver has read nothing for \
                 {STALL_TIME:?}");
                return;
            }
        }
    }
}

/// Processes the body of a request as a stream. If the client disconnects, it is closed in an
/// orderly way.
///
/// # Errors
/// When the stream is corrupt or incomplete; the reason contains the token for resuming.
pub async fn receive(
    receiving: Receiving,
    work: Work,
    mut upload: Upload,
    ending: Ending,
) -> Result<Received, Problem> {
    let receiving = tokio::spawn(async move {
        let received = receive_parts(receiving, &work, &mut upload.body, ending).await;
        if received.is_err() {
            upload.leave();
        }
        received
    });
    receiving
        .await
        .unwrap_or_else(|_| Err(ended_unexpectedly()))
}

fn ended_unexpectedly() -> Problem {
    Problem::new(
        ProblemCode::Internal,
        "internal error: see the daemon's log",
    )
}

/// Runs a step on a worker thread, where it may block.
async fn step<T: Send + 'static>(
    work: &Work,
    mut receiving: Receiving,
    step: impl FnOnce(&mut Receiving) -> Result<T, Problem> + Send + 'static,
) -> Result<(Receiving, T), Problem> {
    let step = move || match step(&mut receiving) {
        Ok(value) => Ok((receiving, value)),
        Err(problem) => Err(receiving.give_up(problem)),
    };
    let done = work.run(step).await;
    done.unwrap_or_else(|_| Err(ended_unexpectedly()))
}

async fn receive_parts(
    mut receiving: Receiving,
    work: &Work,
    body: &mut Body,
    mut ending: Ending,
) -> Result<Received, Problem> {
    loop {
        let part = tokio::select! {
            frame = poll_fn(|context| Pin::new(&mut *body).poll_frame(context)) => match frame {
                None => break,
                Some(Ok(frame)) => Ok(frame.into_data().unwrap_or_default()),
                Some(Err(_)) => Err(Problem::invalid("the request ended before the end of the stream",
                )),
            },
            _ = ending.wait_for(|ending| *ending) => Err(Problem::new(
                ProblemCode::Busy,
                "the daemon is stopping",
            )),
            () = tokio::time::sleep(STALL_TIME) => Err(Problem::invalid(format!("no data of the stream received for {} s", STALL_TIME.as_secs()),
            )),
        };
        (receiving, ()) = step(work, receiving, move |to| to.push(&part?)).await?;
    }
    let (_, received) = step(work, receiving, Receiving::finish).await?;
    Ok(received)
}
