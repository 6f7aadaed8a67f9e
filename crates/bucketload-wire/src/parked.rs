//! Futures of rare or long operations, in memory that the thread keeps.
//!
//! A future has room for the largest of all that it may await. If the future of a small request held the
//! state of a multipart upload, or of a body that has to wait for room, each of ten thousand sessions
//! that only ever read would have room for one. Such state stands in a block of its own, which comes from
//! the thread's pool and goes back to it: in a steady state nothing is allocated.

use std::cell::RefCell;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::ptr::NonNull;
use std::task::{Context, Poll};

/// Bytes of a block: enough for the largest operation.
const BLOCK: usize = 4096;

/// Room for a future.
#[repr(align(16))]
struct Block {
    _room: [MaybeUninit<u8>; BLOCK],
}

impl Block {
    const NEW: Self = Self {
        _room: [MaybeUninit::uninit(); BLOCK],
    };
}

thread_local! {
    static FREE: RefCell<Vec<Box<Block>>> = const { RefCell::new(Vec::new()) };
}

/// A future in memory that the thread keeps ([`park`]).
#[derive(Debug)]
pub struct Parked<F> {
    future: NonNull<F>,
}

/// Moves `future` into a block of the thread's pool: its owner has room for a pointer only. Futures of more
/// than 4 KiB are refused at compile time.
pub fn park<F: Future>(future: F) -> Parked<F> {
    const {
        assert!(size_of::<F>() <= BLOCK && align_of::<F>() <= align_of::<Block>());
    }
    let block = FREE.with_borrow_mut(Vec::pop);
    let block = block.unwrap_or_else(|| Box::new(Block::NEW));
    let future_at = NonNull::from(Box::leak(block)).cast::<F>();
    // SAFETY: the block is exclusively ours, and large and aligned enough by the assertion above.
    unsafe { future_at.write(future) };
    Parked { future: future_at }
}

impl<F: Future> Future for Parked<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        // SAFETY: the future was written by `park`, is not dropped before `self` is, and never
        // moves: its block is given back only after it was dropped in place.
        let future = unsafe { Pin::new_unchecked(self.future.as_mut()) };
        future.poll(cx)
    }
}

// The future itself does not move when this does.
impl<F> Unpin for Parked<F> {}

impl<F> Drop for Parked<F> {
    fn drop(&mut self) {
        // SAFETY: the future is live and dropped only here. The pointer came from a leaked `Box` of a
        // block, which nobody else refers to.
        let block = unsafe {
            self.future.drop_in_place();
            Box::from_raw(self.future.cast::<Block>().as_ptr())
        };
        // A session may be dropped while the thread's locals are being destroyed.
        let _ = FREE.try_with(|free| free.borrow_mut().push(block));
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::pin::pin;
    use std::rc::Rc;
    use std::task::{Context, Poll, Waker};

    use super::{FREE, park};

    struct Tell(Rc<Cell<u32>>);

    impl Drop for Tell {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
        }
    }

    #[test]
    fn a_parked_future_runs_is_dropped_once_and_leaves_its_block() {
        let drops = Rc::new(Cell::new(0));
        let mut cx = Context::from_waker(Waker::noop());
        for turn in 0..3 {
            let tell = Tell(Rc::clone(&drops));
            let mut waited = false;
            let mut parked = pin!(park(async move {
                std::future::poll_fn(|_| match std::mem::replace(&mut waited, true) {
                    true => Poll::Ready(()),
                    false => Poll::Pending,
                })
                .await;
                tell.0.get()
            }));
            assert!(parked.as_mut().poll(&mut cx).is_pending());
            // The last one is abandoned half-way.
            if turn < 2 {
                assert_eq!(parked.as_mut().poll(&mut cx), Poll::Ready(turn));
            }
        }
        assert_eq!(drops.get(), 3);
        assert_eq!(FREE.with_borrow(Vec::len), 1);
    }
}
