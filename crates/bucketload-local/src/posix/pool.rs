//! Threads that may block in the kernel, for one load thread.
//!
//! A step is handed over as a whole and comes back as a whole: two wake-ups per step. Threads are
//! started when a step finds none idle, up to a limit, and inherit the cores of the load thread. A
//! step that waits for a thread has not started: its probe is marked by the thread that takes it.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use super::blocking;
use super::driver::Inner;
use super::work::Work;

/// Stack of a pool thread, bytes: the deepest call holds a path and a few buffers of that size.
const STACK: usize = 512 * 1024;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is behind the locks is whole at every instant.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where a step comes back to.
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
    /// Threads that perform no step: they wait for one, or are on their way to do so.
    idle: usize,
    threads: usize,
    closed: bool,
}

struct Shared {
    driver: Arc<Inner>,
    queue: Mutex<Queue>,
    ready: Condvar,
}

/// The threads of one load thread; they end with this value, but for those that hang in the kernel.
pub(super) struct Pool(Arc<Shared>);

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").finish_non_exhaustive()
    }
}

impl Pool {
    /// A pool without threads.
    pub(super) fn new(driver: &Arc<Inner>) -> Self {
        Self(Arc::new(Shared {
            driver: Arc::clone(driver),
            queue: Mutex::default(),
            ready: Condvar::new(),
        }))
    }

    /// Performs a step on a thread of the pool. `reply` must not be waited for by another step;
    /// when the future is dropped, its step still comes back to it.
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
            let shared = Arc::clone(&self.0);
            let started = std::thread::Builder::new()
                .name("posix-io".to_owned())
                .stack_size(STACK)
                .spawn(move || serve(&shared));
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

fn serve(shared: &Shared) {
    loop {
        let mut queue = lock(&shared.queue);
        let job = loop {
            if let Some(job) = queue.jobs.pop_front() {
                break job;
            }
            if queue.closed {
                queue.threads -= 1;
                return;
            }
            queue = shared
                .ready
                .wait(queue)
                .unwrap_or_else(PoisonError::into_inner);
        };
        queue.idle -= 1;
        drop(queue);
        let Job { mut work, reply } = job;
        blocking::perform_for(&shared.driver, &mut work, None);
        // Before the answer: whoever gets it may hand over the next step at once, and needs no other
        // thread for it.
        lock(&shared.queue).idle += 1;
        let mut answer = lock(&reply.0);
        answer.work = Some(work);
        // By reference: the waker stays for the next step.
        if let Some(waker) = &answer.waker {
            waker.wake_by_ref();
        }
    }
}
