//! io_uring: one ring per load thread, for the data of files.
//!
//! ```text
//!  session ── call ──▶ table of calls ──▶ submission ─▶ kernel ─▶ completion ──▶ reap ──▶ wakers
//!                                                                     ▲
//!                     the thread's sleeper sleeps in the ring ────────┤ if all sessions wait for answers
//!                       the ring's descriptor is readable ── AsyncFd ─┘ if some do; one waiting call, the
//!                                                                       leader, watches it
//! ```
//!
//! A call is submitted at once. If its answer is available at once too (data in the page cache), its session does
//! not wait. Otherwise it waits, and one of the waiting calls, the leader, watches the ring's descriptor for all of
//! them. When the leader ends, it wakes a successor.
//!
//! If a thread has a [sleeper](bucketload_core::wakeup::sleep), it sleeps in the ring while all of its sessions wait
//! for answers. Answers stay inside the kernel until the thread asks for them ([`Delivery::OnDemand`]): the kernel
//! hands over the first one alone, so its session's next request leaves before the other answers arrive. While the
//! event loop sleeps, an eventfd signals answers.
//!
//! Otherwise answers wait inside the kernel until the thread's next system call ([`Delivery::NextCall`]); the first
//! answer ends a call in which the thread sleeps. Then the leader is woken at once ([`AnswerSource`]), not only when the
//! event loop polls again.
//!
//! The table owns the work of every call in the kernel, and so all memory that the kernel may access. An abandoned
//! call stays in the table until its answer arrives.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::rc::Rc;
use std::sync::atomic::{Ordering, fence};
use std::task::{Context, Poll, Waker};

use bucketload_core::wakeup::{self, AnswerSource, Slept};
use io_uring::{IoUring, opcode, squeue, types};
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::blocking::close_read;
use super::buffer::Buffer;
use super::config::Fsync;
use super::errors::Failure;
use super::fixed::Fixed;
use super::uring::{Delivery, build};
use super::work::{File, Task, Work};

/// How long the thread may sleep in the ring before its event loop gets a turn: the resolution of the loop's timers.
static TURN: types::Timespec = types::Timespec::new().nsec(1_000_000);
/// Identifies the timer's answer; not an index of the table.
const TURN_OVER: u64 = u64::MAX;

/// A call in the kernel, or a free entry.
#[derive(Default)]
struct Entry {
    work: Option<Box<Work>>,
    waker: Option<Waker>,
    answer: Option<i32>,
    /// Whether its session no longer waits for it.
    abandoned: bool,
    /// Whether the answer must wake its task.
    waits: bool,
    /// Whether its answer is a descriptor.
    opens: bool,
    /// Whether it is in the list of waiting calls.
    listed: bool,
}

impl Entry {
    /// Closes the file that the kernel opened for an abandoned call.
    fn unclaimed(&self, answer: i32) {
        if self.opens && answer >= 0 {
            // SAFETY: the kernel has just returned this descriptor, and nothing else uses it.
            drop(unsafe { OwnedFd::from_raw_fd(answer) });
        }
    }
}

struct Inner {
    ring: IoUring,
    fixed: Fixed,
    entries: Vec<Entry>,
    free: Vec<usize>,
    /// Calls that may become the leader, oldest first, since the oldest will probably be answered next. Some may have
    /// ended.
    waiting: VecDeque<usize>,
    /// The call that watches the descriptor.
    leader: Option<usize>,
    /// Number of calls whose answers must wake their tasks.
    unanswered: usize,
    /// Number of answers so far, and at the start of the thread's last sleep in the ring.
    answers: u64,
    answers_before: Option<u64>,
    /// Whether the kernel has a timer that ends such a sleep. One timer serves many sleeps: to set or to stop one
    /// costs a microsecond in a virtual machine.
    turn_runs: bool,
}

/// The ring of one load thread.
pub(super) struct Ring {
    // Declared before the ring, so the descriptor leaves the reactor first.
    watch: AsyncFd<RawFd>,
    inner: RefCell<Inner>,
    /// Signals answers if the ring's descriptor does not.
    _bell: Option<OwnedFd>,
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ring").finish_non_exhaustive()
    }
}

impl Ring {
    /// A ring for the calling thread, whose runtime must have its I/O driver enabled.
    pub(super) fn new() -> io::Result<Rc<Self>> {
        let (ring, delivery) = build(wakeup::has_sleeper())?;
        let mut bell = None;
        let mut fd = ring.as_raw_fd();
        if delivery == Delivery::OnDemand {
            let made = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
            fd = made.as_raw_fd();
            ring.submitter().register_eventfd(fd)?;
            bell = Some(made);
        }
        // SAFETY: the descriptor is the ring's or the bell, which are dropped after the watch (see `Ring`).
        let watch = unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }?;
        let inner = Inner {
            fixed: Fixed::new(&ring),
            ring,
            entries: Vec::new(),
            free: Vec::new(),
            waiting: VecDeque::new(),
            leader: None,
            unanswered: 0,
            answers: 0,
            answers_before: None,
            turn_runs: false,
        };
        let ring = Rc::new(Self {
            watch,
            inner: RefCell::new(inner),
            _bell: bell,
        });
        wakeup::register(&ring);
        Ok(ring)
    }

    /// Whether the ring performs such a step, which only transfers data. Creating and renaming files waits for a disk
    /// inside the kernel, and io_uring would use threads for that as well, one call at a time.
    pub(super) const fn takes(task: &Task) -> bool {
        match task {
            Task::Read { .. } => true,
            Task::Write { open, end } => match end {
                Some(end) => open.is_none() && end.truncate.is_none() && !end.rename,
                None => open.is_none(),
            },
            _ => false,
        }
    }

    /// Performs a step that the ring takes.
    pub(super) async fn run(&self, mut work: Box<Work>, root: BorrowedFd<'_>) -> Box<Work> {
        work.mark_start();
        work.moved = 0;
        match work.task {
            Task::Read { open, close } => self.read(work, root, open, close).await,
            Task::Write { end, .. } => self.write(work, end.is_some()).await,
            _ => {
                work.result = Err(Failure::new("io_uring", Errno::NOSYS));
                work
            }
        }
    }

    async fn read(
        &self,
        mut work: Box<Work>,
        root: BorrowedFd<'_>,
        open: bool,
        close: bool,
    ) -> Box<Work> {
        if open {
            let direct = if work.direct { libc::O_DIRECT } else { 0 };
            let flags = libc::O_RDONLY | libc::O_NOFOLLOW | libc::O_CLOEXEC | direct;
            let path = work.path.as_ptr().cast();
            let call = opcode::OpenAt::new(types::Fd(root.as_raw_fd()), path).flags(flags);
            let answer;
            (work, answer) = self.call(work, call.build(), true).await;
            match check("open", answer) {
                // SAFETY: the kernel has just returned this descriptor.
                Ok(fd) => work.file = Some(File::Own(unsafe { OwnedFd::from_raw_fd(fd) })),
                Err(failure) => return failed(work, failure),
            }
        }
        let Some(fd) = descriptor(&work) else {
            return failed(work, Failure::new("read", Errno::BADF));
        };
        while work.moved < work.enough.min(work.len) {
            let (moved, at) = (work.moved, work.offset + work.moved as u64);
            let number = self.inner.borrow_mut().number(&work.buffer);
            let room = work.buffer[moved..].as_mut_ptr();
            let len = u32::try_from(work.len - moved).unwrap_or(u32::MAX);
            let call = match number {
                Some(number) => opcode::ReadFixed::new(fd, room, len, number)
                    .offset(at)
                    .build(),
                None => opcode::Read::new(fd, room, len).offset(at).build(),
            };
            let answer;
            (work, answer) = self.call(work, call, false).await;
            match check("read", answer) {
                Ok(0) => break,
                Ok(n) => work.moved += n as usize,
                Err(failure) => return failed(work, failure),
            }
        }
        work.mark_answer();
        work.result = Ok(());
        if close {
            close_read(&mut work);
        }
        work
    }

    async fn write(&self, mut work: Box<Work>, last: bool) -> Box<Work> {
        let own = matches!(work.file, Some(File::Own(_)));
        let Some(fd) = descriptor(&work) else {
            return failed(work, Failure::new("write", Errno::BADF));
        };
        while work.moved < work.len {
            let (moved, at) = (work.moved, work.offset + work.moved as u64);
            let number = self.inner.borrow_mut().number(&work.buffer);
            let bytes = work.buffer[moved..].as_ptr();
            let len = u32::try_from(work.len - moved).unwrap_or(u32::MAX);
            let call = match number {
                Some(number) => opcode::WriteFixed::new(fd, bytes, len, number)
                    .offset(at)
                    .build(),
                None => opcode::Write::new(fd, bytes, len).offset(at).build(),
            };
            let answer;
            (work, answer) = self.call(work, call, false).await;
            match check("write", answer) {
                Ok(0) => return failed(work, Failure::new("write", Errno::IO)),
                Ok(n) => work.moved += n as usize,
                Err(failure) => return failed(work, failure),
            }
        }
        if last && work.fsync == Fsync::Close {
            // The length of a shared file matters as well as its data.
            let call = opcode::Fsync::new(fd).flags(types::FsyncFlags::DATASYNC);
            let answer;
            (work, answer) = self.call(work, call.build(), false).await;
            if let Err(failure) = check("fdatasync", answer) {
                return failed(work, failure);
            }
        }
        if last && own {
            work.file = None;
        }
        work.mark_answer();
        work.result = Ok(());
        work
    }

    /// Makes one call. The kernel accesses only memory and files of `work`.
    async fn call(&self, work: Box<Work>, call: squeue::Entry, opens: bool) -> (Box<Work>, i32) {
        let index = self.inner.borrow_mut().start(work, call, opens);
        let mut flight = Flight {
            ring: self,
            index,
            landed: false,
        };
        poll_fn(|cx| {
            let landed = self.poll(index, cx);
            flight.landed |= landed.is_ready();
            landed
        })
        .await
    }

    fn poll(&self, index: usize, cx: &mut Context<'_>) -> Poll<(Box<Work>, i32)> {
        let mut inner = self.inner.borrow_mut();
        loop {
            inner.reap_for(index);
            if let Some(landed) = inner.take(index) {
                return Poll::Ready(landed);
            }
            inner.submit();
            inner.wait(index, cx.waker());
            if *inner.leader.get_or_insert(index) != index {
                return Poll::Pending;
            }
            match self.watch.poll_read_ready(cx) {
                Poll::Ready(Ok(mut guard)) => {
                    // This order misses no answer: a later one makes the descriptor readable again.
                    guard.clear_ready();
                }
                Poll::Ready(Err(_)) => {
                    // The runtime is shutting down, and this task with it.
                    return Poll::Pending;
                }
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}

impl AnswerSource for Ring {
    fn wake_answered(&self) -> bool {
        self.inner.borrow_mut().look()
    }

    fn sleep(&self, tasks: usize) -> Slept {
        self.inner.borrow_mut().sleep(tasks)
    }
}

fn descriptor(work: &Work) -> Option<types::Fd> {
    work.file
        .as_ref()
        .map(|file| types::Fd(file.as_fd().as_raw_fd()))
}

fn check(call: &'static str, answer: i32) -> Result<i32, Failure> {
    match answer {
        0.. => Ok(answer),
        _ => Err(Failure::new(call, Errno::from_raw_os_error(-answer))),
    }
}

fn failed(mut work: Box<Work>, failure: Failure) -> Box<Work> {
    work.mark_answer();
    work.file = None;
    work.result = Err(failure);
    work
}

impl Inner {
    /// See [`AnswerSource::sleep`].
    fn sleep(&mut self, tasks: usize) -> Slept {
        if tasks == 0 || self.unanswered != tasks || self.answers_before == Some(self.answers) {
            self.ring.completion().enable_eventfd();
            // This order misses no answer: a later one rings the bell.
            fence(Ordering::SeqCst);
            self.look();
            return Slept::Not;
        }
        self.answers_before = Some(self.answers);
        self.ring.completion().disable_eventfd();
        let long = !self.turn_runs;
        if long {
            self.begin_turn();
        }
        if self.ring.completion().is_empty() {
            // On an interrupt, or if the kernel cannot accept calls now, the tasks check and wait again.
            let _ = self.ring.submit_and_wait(1);
        }
        self.reap(None);
        if long { Slept::Long } else { Slept::Briefly }
    }

    /// Wakes the leader if there are answers; returns whether there are.
    fn look(&mut self) -> bool {
        if self.ring.completion().is_empty() && !self.ring.submission().taskrun() {
            return false;
        }
        if let Some(waker) = self.leader.and_then(|at| self.entries[at].waker.as_ref()) {
            waker.wake_by_ref();
        }
        true
    }

    /// Sets the timer that ends the thread's sleep in the ring.
    fn begin_turn(&mut self) {
        let call = opcode::Timeout::new(&TURN).build().user_data(TURN_OVER);
        // SAFETY: the call points to a static of the program.
        let pushed = unsafe { self.ring.submission().push(&call) };
        self.turn_runs = pushed.is_ok();
    }

    /// The index of the region of `buffer`, if it is registered with the kernel.
    fn number(&mut self, buffer: &Buffer) -> Option<u16> {
        self.fixed.number(&self.ring, buffer)
    }

    /// Adds a call to the table and submits it; returns its index.
    fn start(&mut self, work: Box<Work>, call: squeue::Entry, opens: bool) -> usize {
        let index = match self.free.pop() {
            Some(index) => index,
            None => self.grow(),
        };
        let entry = &mut self.entries[index];
        entry.work = Some(work);
        entry.opens = opens;
        entry.waits = false;
        let call = call.user_data(index as u64);
        loop {
            // SAFETY: the call points to memory of the work, which stays in the table until the answer arrives, and
            // is leaked if the ring is dropped before that.
            let pushed = unsafe { self.ring.submission().push(&call) };
            if pushed.is_ok() {
                break;
            }
            self.submit();
            self.reap(None);
        }
        self.submit();
        self.reap(None);
        index
    }

    /// Adds an entry to the table. Reserves memory in the lists now, not when a call first waits, long after the
    /// steady state has begun.
    fn grow(&mut self) -> usize {
        self.entries.push(Entry::default());
        let room = self.entries.capacity();
        self.free.reserve(room.saturating_sub(self.free.len()));
        self.waiting
            .reserve(room.saturating_sub(self.waiting.len()));
        self.entries.len() - 1
    }

    /// Submits the queued calls to the kernel.
    fn submit(&mut self) {
        let queue = self.ring.submission();
        if queue.is_empty() && !queue.cq_overflow() {
            return;
        }
        drop(queue);
        // If the kernel is busy or the call interrupted, the next poll tries again. Nothing is lost.
        let _ = self.ring.submit();
    }

    /// Takes answers and wakes their tasks, but only up to the answer to call `index`. That call's session goes first:
    /// a disk that has answered everything is idle until its next request. [`Inner::start`] takes the other answers
    /// once the next request has left.
    fn reap_for(&mut self, index: usize) {
        if self.entries[index].answer.is_some() {
            return;
        }
        self.reap(Some(index));
        if self.entries[index].answer.is_none() && self.ring.submission().taskrun() {
            // The bell rings only for the first answer until the thread has asked for all. After an interrupt the next
            // poll tries again.
            let _ = self.ring.submit();
            self.reap(Some(index));
        }
    }

    /// Takes all answers, or those up to the answer to call `own`, and wakes the waiting tasks.
    fn reap(&mut self, own: Option<usize>) {
        for answer in self.ring.completion() {
            if answer.user_data() == TURN_OVER {
                self.turn_runs = false;
                continue;
            }
            self.answers += 1;
            let index = answer.user_data() as usize;
            let entry = &mut self.entries[index];
            if entry.abandoned {
                entry.unclaimed(answer.result());
                entry.work = None;
                entry.abandoned = false;
                self.free.push(index);
                continue;
            }
            entry.answer = Some(answer.result());
            let waits = std::mem::take(&mut entry.waits);
            self.unanswered -= usize::from(waits);
            if own == Some(index) {
                break;
            }
            if let (true, Some(waker)) = (waits, &entry.waker) {
                waker.wake_by_ref();
            }
        }
    }

    /// The work and answer of a call, if it was answered.
    fn take(&mut self, index: usize) -> Option<(Box<Work>, i32)> {
        let entry = &mut self.entries[index];
        let answer = entry.answer.take()?;
        let work = entry.work.take()?;
        self.free.push(index);
        self.leave(index);
        Some((work, answer))
    }

    fn wait(&mut self, index: usize, waker: &Waker) {
        let entry = &mut self.entries[index];
        match &mut entry.waker {
            Some(known) => known.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
        self.unanswered += usize::from(!std::mem::replace(&mut entry.waits, true));
        if !std::mem::replace(&mut entry.listed, true) {
            self.waiting.push_back(index);
        }
    }

    /// Ends the wait of a call. If it was the leader, or there is none (a call woken to become the leader may have its
    /// answer by then), wakes another waiting call to become the leader.
    fn leave(&mut self, index: usize) {
        if self.leader.is_some_and(|leader| leader != index) {
            return;
        }
        self.leader = None;
        while let Some(next) = self.waiting.pop_front() {
            let entry = &mut self.entries[next];
            entry.listed = false;
            let waits = entry.work.is_some() && entry.answer.is_none() && !entry.abandoned;
            if let (true, Some(waker)) = (waits && next != index, &entry.waker) {
                waker.wake_by_ref();
                return;
            }
        }
    }
}

/// A call whose session waits for it. Dropping it before the answer abandons the call.
struct Flight<'a> {
    ring: &'a Ring,
    index: usize,
    landed: bool,
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        if self.landed {
            return;
        }
        let mut inner = self.ring.inner.borrow_mut();
        // The answer may have arrived without being read.
        if let Some((_, answer)) = inner.take(self.index) {
            inner.entries[self.index].unclaimed(answer);
        } else {
            let entry = &mut inner.entries[self.index];
            entry.abandoned = true;
            let waited = std::mem::take(&mut entry.waits);
            inner.unanswered -= usize::from(waited);
            inner.leave(self.index);
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        let inner = self.inner.get_mut();
        // Fetch answers that the thread has not asked for yet.
        let _ = inner.ring.submit();
        inner.reap(None);
        for entry in &mut inner.entries {
            if let Some(answer) = entry.answer.take() {
                entry.unclaimed(answer);
            } else if let Some(work) = entry.work.take() {
                // The kernel may still write to this memory.
                Box::leak(work);
            }
        }
    }
}

#[cfg(test)]
#[path = "ring_tests.rs"]
mod tests;
