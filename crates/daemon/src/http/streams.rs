//! Bodies of any length: sent and taken part by part, no faster than both sides are.

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

/// A client that takes or gives nothing for so long is given up.
const STALL_TIME: Duration = Duration::from_secs(600);
/// Parts that wait to be sent, beside the one that is being made.
const PARTS: usize = 1;

/// How long what is left of a refused stream is taken and thrown away.
const LEFT_TIME: Duration = Duration::from_secs(20);

/// Whether the daemon is about to end.
pub type Ending = watch::Receiver<bool>;

/// Whose stream it is, and the threads in which its parts are made or taken.
#[derive(Clone)]
pub struct Work {
    /// The threads.
    pub workers: Arc<Workers>,
    /// By which listener it came.
    pub door: Door,
    /// Whose it is.
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
    /// The client sends nothing before it is told to go on (RFC 9110, section 10.1.1).
    waits: bool,
}

impl Upload {
    /// That of a request.
    pub fn of(request: Request) -> Self {
        Self {
            waits: request.headers().contains_key(header::EXPECT),
            body: request.into_body(),
        }
    }

    /// None.
    pub fn empty() -> Self {
        Self {
            body: Body::empty(),
            waits: false,
        }
    }

    /// Takes no more of it. A client that sends without waiting, as browsers do, hears why only if what it sends is taken
    /// for a while; a connection that ended at once would take the answer with it.
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

/// Parts as a body.
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

/// The body of an answer that is a stream.
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
        // A panic in there was reported where it happened; without its end the stream does not count.
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
                tracing::warn!("a stream is given up: nobody took any of it for {STALL_TIME:?}");
                return;
            }
        }
    }
}

/// Takes the body of a request as a stream. It goes on to an orderly end when the client is gone.
///
/// # Errors
/// When it is not right or not whole; the reason has the token to go on by.
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
        "the daemon could not do this: its log says more",
    )
}

/// Runs a step where it may block.
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
                Some(Err(_)) => Err(Problem::invalid("the request ended before the stream did",
                )),
            },
            _ = ending.wait_for(|ending| *ending) => Err(Problem::new(
                ProblemCode::Busy,
                "the daemon is stopping",
            )),
            () = tokio::time::sleep(STALL_TIME) => Err(Problem::invalid(format!("nothing of the stream came for {} s", STALL_TIME.as_secs()),
            )),
        };
        (receiving, ()) = step(work, receiving, move |to| to.push(&part?)).await?;
    }
    let (_, received) = step(work, receiving, Receiving::finish).await?;
    Ok(received)
}
