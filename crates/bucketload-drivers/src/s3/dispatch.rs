//! The future of one operation, whichever it is: hardly larger than the largest of them, where an `async` block
//! around them would keep its arguments beside it.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

pin_project! {
    /// Operations that are frequent, each with its own state, and the rare ones.
    #[project = Projected]
    pub(super) enum Dispatch<Get, Put, Head, Delete, Rare> {
        Get { #[pin] get: Get },
        Put { #[pin] put: Put },
        Head { #[pin] head: Head },
        Delete { #[pin] delete: Delete },
        Rare { #[pin] rare: Rare },
    }
}

impl<Get, Put, Head, Delete, Rare> Future for Dispatch<Get, Put, Head, Delete, Rare>
where
    Get: Future,
    Put: Future<Output = Get::Output>,
    Head: Future<Output = Get::Output>,
    Delete: Future<Output = Get::Output>,
    Rare: Future<Output = Get::Output>,
{
    type Output = Get::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project() {
            Projected::Get { get } => get.poll(cx),
            Projected::Put { put } => put.poll(cx),
            Projected::Head { head } => head.poll(cx),
            Projected::Delete { delete } => delete.poll(cx),
            Projected::Rare { rare } => rare.poll(cx),
        }
    }
}
