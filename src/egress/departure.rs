//! When has a request left? Its tokens are debt until then.
//!
//! On a warm connection the moment is exact: hyper asks our body whether it is
//! at its end just before it writes the head. A request that opens a
//! connection is taken by hyper long before it can be written, and one over
//! HTTP/2 may wait for a free stream; for those the moment is the head of the
//! answer. Late is safe, early is not.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tower::{Layer, Service};

use crate::admission;

tokio::task_local! {
    static JOURNEY: Arc<Journey>;
}

/// What is seen of one request on its way out.
#[derive(Debug, Default)]
pub(super) struct Journey {
    cold: AtomicBool,
    taken: AtomicBool,
}

impl Journey {
    /// Runs a request so that its connector knows whose it is.
    pub(super) async fn of<F: Future>(self: &Arc<Self>, request: F) -> F::Output {
        JOURNEY.scope(self.clone(), request).await
    }

    /// False is proof that nothing was written.
    pub(super) fn was_taken(&self) -> bool {
        self.taken.load(Ordering::Acquire)
    }
}

/// Whether the moment is known before the head of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stamp {
    /// When hyper takes the request, if the connection was warm.
    WhenTaken,
    /// Not before the head.
    AtHead,
}

/// A request's body that reports its departure.
pub(super) struct Leaving {
    data: Option<Bytes>,
    journey: Arc<Journey>,
    departure: admission::Departure,
    stamp: Stamp,
}

impl Leaving {
    pub(super) fn new(
        data: Bytes,
        journey: Arc<Journey>,
        departure: admission::Departure,
        stamp: Stamp,
    ) -> Self {
        let data = (!data.is_empty()).then_some(data);
        Self {
            data,
            journey,
            departure,
            stamp,
        }
    }

    fn taken(&self) {
        self.journey.taken.store(true, Ordering::Release);
        if self.stamp == Stamp::WhenTaken && !self.journey.cold.load(Ordering::Acquire) {
            self.departure.mark();
        }
    }
}

impl Body for Leaving {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.taken();
        Poll::Ready(self.data.take().map(|data| Ok(Frame::data(data))))
    }

    fn is_end_stream(&self) -> bool {
        self.taken();
        self.data.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.data.as_ref().map_or(0, |data| data.len() as u64))
    }
}

/// Marks the request for which a connection is opened, and counts those.
#[derive(Clone, Debug)]
pub(super) struct Connecting {
    pub(super) opened: Arc<AtomicUsize>,
}

/// See [`Connecting`].
#[derive(Clone, Debug)]
pub(super) struct Marked<S> {
    inner: S,
    opened: Arc<AtomicUsize>,
}

impl<S> Layer<S> for Connecting {
    type Service = Marked<S>;
    fn layer(&self, inner: S) -> Marked<S> {
        let opened = self.opened.clone();
        Marked { inner, opened }
    }
}

impl<S: Service<R>, R> Service<R> for Marked<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: R) -> S::Future {
        self.opened.fetch_add(1, Ordering::Relaxed);
        // Outside of a request of ours there is nobody to tell.
        let _ = JOURNEY.try_with(|journey| journey.cold.store(true, Ordering::Release));
        self.inner.call(request)
    }
}
