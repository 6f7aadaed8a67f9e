//! A channel as a stream, for bodies of answers.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use tokio::sync::mpsc;

/// What a task sends, as a stream.
#[derive(Debug)]
pub(crate) struct Feed<T>(pub(crate) mpsc::Receiver<T>);

impl<T> Stream for Feed<T> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        self.0.poll_recv(cx)
    }
}
