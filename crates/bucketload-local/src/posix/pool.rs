//! A pool of threads that may block in the kernel, for one load thread.
//!
//! A step goes to a thread and back: two wake-ups per step. The pool starts a thread when a step finds
//! none idle, up to a limit; threads inherit the cores of the load thread. A step that waits for a thread
//! has not started: the thread that takes it marks its start.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use super::blocking;
use super::driver::DriverShared;
use super::work::Work;

/// Stack of a pool thread, in bytes: the deepest call has a path and a few buffers of that size.
const STACK: usize = 512 * 1024;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic cannot leave the data behind these locks inconsistent.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Receives the result of a session's steps.
#[derive(Debug, Default)]
pub(super) struct Reply(Mutex<Answer>);

#[derive(Debug, Default)]
struct Answer {
    work: Option<Box<Work>>,
    waker: Option<Waker>,
}

struct Job {
    work: Box<Work>,
    reply: Arc<Reply>,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    /// Threads without a step: they wait for one, or are about to.
    idle: usize,
    threads: usize,
    closed: bool,
}

struct PoolState {
    driver: Arc<DriverShared>,
    queue: Mutex<Queue>,
    ready: Condvar,
}

/// The pool of one load thread. Dropping it ends its threads, except those that hang in the kernel.
pub(super) struct Pool(Arc<PoolState>);

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").finish_non_exhaustive()
    }
}

impl Pool {
    /// A pool without threads.
    pub(super) fn new(driver: &Arc<DriverShared>) -> Self {
        Self(Arc::new(PoolState {
            driver: Arc::clone(driver),
            queue: Mutex::default(),
            ready: Condvar::new(),
        }))
    }

    /// Performs a step on a thread of the pool. No other step may be waiting for `reply`. If the future is
    /// dropped, its step still returns to `reply`.
    pub(super) async fn run(&self, work: Box<Work>, reply: &Arc<Reply>) -> Box<Work> {
        self.hand_over(Job {
            work,
            reply: Arc::clone(reply),
        });
        poll_fn(|cx| {
            let mut answer = lock(&reply.0);
            if let Some(work) = answer.work.take() {
                return Poll::Ready(work);
            }
            match &mut answer.waker {
                Some(waker) => waker.clone_from(cx.waker()),
                none => *none = Some(cx.waker().clone()),
            }
            Poll::Pending
        })
        .await
    }

    fn hand_over(&self, job: Job) {
        let mut queue = lock(&self.0.queue);
        queue.jobs.push_back(job);
        let start = queue.jobs.len() > queue.idle && queue.threads < self.0.driver.config.threads;
        if start {
            queue.threads += 1;
            queue.idle += 1;
        }
        drop(queue);
        if start {
            let state = Arc::clone(&self.0);
            let started = std::thread::Builder::new()
                .name("posix-io".to_owned())
                .stack_size(STACK)
                .spawn(move || serve(&state));
            if started.is_err() {
                let mut queue = lock(&self.0.queue);
                queue.threads -= 1;
                queue.idle -= 1;
            }
        }
        self.0.ready.notify_one();
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        lock(&self.0.queue).closed = true;
        self.0.ready.notify_all();
    }
}

fn serve(state: &PoolState) {
    loop {
        let mut queue = lock(&state.queue);
        let job = loop {
            if let Some(job) = queue.jobs.pop_front() {
                break job;
            }
            if queue.closed {
                queue.threads -= 1;
                return;
            }
            queue = state
                .ready
                .wait(queue)
                .unwrap_or_else(PoisonError::into_inner);
        };
        queue.idle -= 1;
        drop(queue);
        let Job { mut work, reply } = job;
        blocking::perform_for(&state.driver, &mut work, None);
        // Before the answer: its receiver may hand over the next step at once, and this thread can take it.
        lock(&state.queue).idle += 1;
        let mut answer = lock(&reply.0);
        answer.work = Some(work);
        // By reference, to keep the waker for the next step.
        if let Some(waker) = &answer.waker {
            waker.wake_by_ref();
        }
    }
}
