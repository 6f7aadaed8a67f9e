//! The future of one operation of any class. It is hardly larger than the largest of its variants; an `async` block
//! around them would store its arguments as well.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

pin_project! {
    /// The frequent operations, each with its own future, and one for all rare ones.
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
