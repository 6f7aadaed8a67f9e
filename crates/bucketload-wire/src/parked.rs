//! Futures of rare or long operations, in memory from a per-thread pool.
//!
//! A future is as large as the largest future that it may await. If the future of a small request
//! contained the state of a multipart upload, or of a body waiting to be sent, each of ten thousand
//! sessions that only ever read would reserve that space. Such state lives in a separate block from the
//! thread's pool instead, so nothing is allocated in steady state.

use std::cell::RefCell;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::ptr::NonNull;
use std::task::{Context, Poll};

/// Size of a block in bytes: enough for the largest operation.
const BLOCK: usize = 4096;

/// Memory for one future.
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

/// A future in a block of the thread's pool; see [`park`].
#[derive(Debug)]
pub struct Parked<F> {
    future: NonNull<F>,
}

/// Moves `future` into a block of the thread's pool, so its owner holds only a pointer. A future larger
/// than 4 KiB is a compile-time error.
pub fn park<F: Future>(future: F) -> Parked<F> {
    const {
        assert!(size_of::<F>() <= BLOCK && align_of::<F>() <= align_of::<Block>());
    }
    let block = FREE.with_borrow_mut(Vec::pop);
    let block = block.unwrap_or_else(|| Box::new(Block::NEW));
    let future_at = NonNull::from(Box::leak(block)).cast::<F>();
    // SAFETY: the block is exclusively owned, and large and aligned enough by the assertion above.
    unsafe { future_at.write(future) };
    Parked { future: future_at }
}

impl<F: Future> Future for Parked<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        // SAFETY: `park` wrote the future. It is not dropped before `self` and never moves: the block
        // returns to the pool only after the future was dropped in place.
        let future = unsafe { Pin::new_unchecked(self.future.as_mut()) };
        future.poll(cx)
    }
}

// The future itself does not move when this does.
impl<F> Unpin for Parked<F> {}

impl<F> Drop for Parked<F> {
    fn drop(&mut self) {
        // SAFETY: the future is live and dropped only here. The pointer comes from a leaked `Box` of a
        // block, to which there is no other reference.
        let block = unsafe {
            self.future.drop_in_place();
            Box::from_raw(self.future.cast::<Block>().as_ptr())
        };
        // A session may be dropped while the thread-locals are being destroyed.
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

    struct CountDrops(Rc<Cell<u32>>);

    impl Drop for CountDrops {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
        }
    }

    #[test]
    fn a_parked_future_runs_is_dropped_once_and_returns_its_block() {
        let drops = Rc::new(Cell::new(0));
        let mut cx = Context::from_waker(Waker::noop());
        for turn in 0..3 {
            let counter = CountDrops(Rc::clone(&drops));
            let mut waited = false;
            let mut parked = pin!(park(async move {
                std::future::poll_fn(|_| match std::mem::replace(&mut waited, true) {
                    true => Poll::Ready(()),
                    false => Poll::Pending,
                })
                .await;
                counter.0.get()
            }));
            assert!(parked.as_mut().poll(&mut cx).is_pending());
            // The last one is dropped unfinished.
            if turn < 2 {
                assert_eq!(parked.as_mut().poll(&mut cx), Poll::Ready(turn));
            }
        }
        assert_eq!(drops.get(), 3);
        assert_eq!(FREE.with_borrow(Vec::len), 1);
    }
}
