//! The bounded queue between the reader of a trace and one load thread.
//!
//! ```text
//!  reader thread ── parcel (some thousand requests) ──▶ queue ──▶ load thread
//!        ▲ waits while the queue is full                            │ never blocks: is woken
//!        └───────────── emptied parcels ◀───────────────────────────┘
//! ```
//!
//! The lock is taken once per parcel, not per request.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use bucketload_core::op::Op;
use bucketload_core::trace::Batch;

/// Most parcels in a queue: some 30 000 requests per thread.
const DEPTH: usize = 8;

/// A request without its names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TraceRequest {
    pub(crate) op: Op,
    /// Due instant, nanoseconds from the start of the phase.
    pub(crate) due_ns: u64,
    /// How much a rate limit delayed the due instant, nanoseconds.
    pub(crate) shaped_ns: u64,
    /// Whether it changes the object.
    pub(crate) mutates: bool,
    /// Whether the object did not exist when the trace was recorded.
    pub(crate) absent: bool,
}

/// Requests with their keys, in order of their due instants.
#[derive(Debug, Default)]
pub(crate) struct Parcel {
    pub(crate) items: Vec<TraceRequest>,
    /// The keys of each item.
    pub(crate) keys: Batch,
    /// Records skipped since the last parcel: those on keys known to be absent, and others.
    pub(crate) skipped: (u64, u64),
}

impl Parcel {
    /// Empties the parcel and keeps its memory.
    pub(crate) fn clear(&mut self) {
        self.items.clear();
        self.keys.clear();
        self.skipped = (0, 0);
    }
}

/// Result of [`Queue::pop`].
#[derive(Debug)]
pub(crate) enum Pop {
    Parcel(Parcel),
    /// Nothing yet; the thread will be woken.
    Empty,
    /// Nothing more will come.
    Ended,
}

#[derive(Default)]
struct State {
    full: VecDeque<Parcel>,
    spare: Vec<Parcel>,
    ended: bool,
    closed: bool,
    waker: Option<Waker>,
}

/// A queue of parcels.
#[derive(Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    room: Condvar,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reader: waits for room and adds a parcel. Returns `false` once the queue is closed.
    pub(crate) fn push(&self, parcel: Parcel) -> bool {
        let mut state = self.lock();
        while state.full.len() >= DEPTH && !state.closed {
            state = self
                .room
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        if state.closed {
            return false;
        }
        state.full.push_back(parcel);
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
        true
    }

    /// Reader: an empty parcel.
    pub(crate) fn spare(&self) -> Parcel {
        self.lock().spare.pop().unwrap_or_default()
    }

    /// Reader: nothing more comes.
    pub(crate) fn end(&self) {
        let mut state = self.lock();
        state.ended = true;
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
    }

    /// Load thread: takes the first parcel. If there is none, `waker` is woken when one comes.
    pub(crate) fn pop(&self, waker: Option<&Waker>) -> Pop {
        let mut state = self.lock();
        match state.full.pop_front() {
            Some(parcel) => {
                self.room.notify_one();
                Pop::Parcel(parcel)
            }
            None if state.ended => Pop::Ended,
            None => {
                state.waker = waker.cloned();
                Pop::Empty
            }
        }
    }

    /// Load thread: returns a used parcel.
    pub(crate) fn give_back(&self, mut parcel: Parcel) {
        parcel.clear();
        self.lock().spare.push(parcel);
    }

    /// Discards all parcels and makes the reader stop.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.full.clear();
        self.room.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::task::{Wake, Waker};

    use super::{DEPTH, Parcel, Pop, Queue};

    #[derive(Default)]
    struct Counter(AtomicU64);

    impl Wake for Counter {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn parcel(n: u64) -> Parcel {
        Parcel {
            skipped: (n, 0),
            ..Parcel::default()
        }
    }

    #[test]
    fn a_starving_thread_is_woken_once_and_told_of_the_end() {
        let (queue, counter) = (Queue::default(), Arc::new(Counter::default()));
        let waker = Waker::from(Arc::clone(&counter));
        assert!(matches!(queue.pop(Some(&waker)), Pop::Empty));
        assert!(queue.push(parcel(1)) && queue.push(parcel(2)));
        assert_eq!(counter.0.load(Ordering::Relaxed), 1);
        assert!(matches!(queue.pop(None), Pop::Parcel(p) if p.skipped.0 == 1));
        assert!(matches!(queue.pop(None), Pop::Parcel(p) if p.skipped.0 == 2));
        assert!(matches!(queue.pop(Some(&waker)), Pop::Empty));
        queue.end();
        assert_eq!(counter.0.load(Ordering::Relaxed), 2);
        assert!(matches!(queue.pop(None), Pop::Ended));
    }

    #[test]
    fn a_full_queue_holds_the_reader_until_it_is_closed() {
        let queue = Arc::new(Queue::default());
        let reader = {
            let queue = Arc::clone(&queue);
            std::thread::spawn(move || (0..).take_while(|&n| queue.push(parcel(n))).count())
        };
        let begun = std::time::Instant::now();
        for n in 0..3 * DEPTH as u64 {
            let got = loop {
                assert!(begun.elapsed().as_secs() < 60, "the reader stands still");
                match queue.pop(None) {
                    Pop::Parcel(parcel) => break parcel,
                    Pop::Empty => std::thread::yield_now(),
                    Pop::Ended => panic!("ended"),
                }
            };
            assert_eq!(got.skipped.0, n);
            queue.give_back(got);
        }
        queue.close();
        let delivered = reader.join().unwrap();
        assert!(
            (3 * DEPTH..=4 * DEPTH + 1).contains(&delivered),
            "{delivered}"
        );
    }
}
