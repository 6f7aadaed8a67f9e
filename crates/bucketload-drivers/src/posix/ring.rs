//! io_uring: one ring per load thread, for the data of files.
//!
//! ```text
//!  session ── call ──▶ table of calls ──▶ submission ─▶ kernel ─▶ completion ──▶ reap ──▶ wakers
//!                                                                     ▲
//!                       the ring's descriptor is readable ── AsyncFd ─┘ one waiting call, the
//!                                                                       leader, watches it
//! ```
//!
//! A call is submitted at once; where the answer is there at once too (data in the page cache), nobody
//! waits. Otherwise its session waits, and one of all that wait watches the ring's descriptor on behalf
//! of the others. When it leaves, it names a successor.
//!
//! Answers wait inside the kernel until the thread's next system call (`IORING_SETUP_COOP_TASKRUN`); the first
//! of them ends the one that the thread sleeps in. Then the leader is woken at once ([`Look`]), instead of by the
//! event loop's next question.
//!
//! The table owns the work of every call that the kernel has, and with it every byte that the kernel
//! may touch. A call that nobody waits for any more stays there until its answer comes.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bucketload_core::wakeup::{self, Look};
use io_uring::{Builder, IoUring, Probe, opcode, squeue, types};
use rustix::io::Errno;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::blocking::close_read;
use super::buffer::Buffer;
use super::config::Fsync;
use super::errors::Failure;
use super::fixed::Fixed;
use super::work::{File, Task, Work};

/// Calls that may wait to be submitted.
const ENTRIES: u32 = 256;
/// Answers that fit; more than there are sessions on a thread.
const ANSWERS: u32 = 32 * 1024;
/// As many do where the kernel has no more memory at once; further ones wait inside it
/// (`IORING_FEAT_NODROP`).
const LEAST_ANSWERS: u32 = 4 * 1024;

/// Whether this process may use io_uring and the kernel knows the calls.
pub(super) fn probe() -> Result<(), String> {
    let ring = build().map_err(|e| match e.raw_os_error() {
        Some(libc::ENOSYS) => "the kernel does not have it".to_owned(),
        Some(libc::EPERM) => {
            "it is forbidden here (kernel.io_uring_disabled, or a container)".to_owned()
        }
        _ => e.to_string(),
    })?;
    let mut known = Probe::new();
    ring.submitter()
        .register_probe(&mut known)
        .map_err(|e| format!("the kernel does not tell what it can do: {e}"))?;
    let needed = [
        opcode::OpenAt::CODE,
        opcode::Read::CODE,
        opcode::Write::CODE,
        opcode::ReadFixed::CODE,
        opcode::WriteFixed::CODE,
        opcode::Fsync::CODE,
    ];
    match needed.iter().all(|code| known.is_supported(*code)) {
        true => Ok(()),
        false => Err("the kernel lacks some of its calls".to_owned()),
    }
}

/// How answers reach the thread, the best first. In a virtual machine an interrupt from another core
/// costs more than a request.
const DELIVERIES: [fn(&mut Builder) -> &mut Builder; 2] = [
    // With the thread's next system call; an answer ends the one that it sleeps in: Linux 5.19.
    |ring| ring.setup_coop_taskrun(),
    // By an interrupt.
    |ring| ring,
];

fn build() -> io::Result<IoUring> {
    let mut refused = io::Error::from(Errno::INVAL);
    for delivery in DELIVERIES {
        match build_with(delivery) {
            // So says a kernel about what it does not know.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => refused = error,
            built => return built,
        }
    }
    Err(refused)
}

fn build_with(delivery: impl Fn(&mut Builder) -> &mut Builder) -> io::Result<IoUring> {
    let mut answers = ANSWERS;
    loop {
        let mut builder = IoUring::builder();
        match delivery(builder.setup_cqsize(answers)).build(ENTRIES) {
            // The kernel takes the pages in one go, which a machine that is busy with files may refuse.
            Err(error) if error.kind() == io::ErrorKind::OutOfMemory && answers > LEAST_ANSWERS => {
                answers /= 2;
            }
            built => return built,
        }
    }
}

/// A call that the kernel has, or a free place.
#[derive(Default)]
struct Entry {
    work: Option<Box<Work>>,
    waker: Option<Waker>,
    answer: Option<i32>,
    /// Nobody waits for it.
    abandoned: bool,
    /// Its task is to be woken by the answer.
    waits: bool,
    /// Its answer is a descriptor.
    opens: bool,
    /// In the list of those that wait.
    listed: bool,
}

impl Entry {
    /// Closes the file that the kernel has opened for a call that nobody waits for any more.
    fn unclaimed(&self, answer: i32) {
        if self.opens && answer >= 0 {
            // SAFETY: the kernel has given us this descriptor, and nobody else has seen it.
            drop(unsafe { OwnedFd::from_raw_fd(answer) });
        }
    }
}

struct Inner {
    ring: IoUring,
    fixed: Fixed,
    entries: Vec<Entry>,
    free: Vec<usize>,
    /// Calls that may take over the watch, the oldest first, whose answer will most likely be the next; some
    /// have ended.
    waiting: VecDeque<usize>,
    /// The call that watches the descriptor.
    leader: Option<usize>,
}

/// The ring of one load thread.
pub(super) struct Ring {
    // Before the ring: its descriptor must leave the reactor first.
    watch: AsyncFd<RawFd>,
    inner: RefCell<Inner>,
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ring").finish_non_exhaustive()
    }
}

impl Ring {
    /// A ring for the calling thread, whose runtime must have its I/O driver enabled.
    pub(super) fn new() -> io::Result<Rc<Self>> {
        let ring = build()?;
        let fd = ring.as_raw_fd();
        // SAFETY: the descriptor is the ring's, which is dropped after the watch (see `Ring`).
        let watch = unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }?;
        let inner = Inner {
            fixed: Fixed::new(&ring),
            ring,
            entries: Vec::new(),
            free: Vec::new(),
            waiting: VecDeque::new(),
            leader: None,
        };
        let ring = Rc::new(Self {
            watch,
            inner: RefCell::new(inner),
        });
        wakeup::register(&ring);
        Ok(ring)
    }

    /// Whether the ring performs such a step: one that moves data. What makes or names files waits
    /// for a disk inside the kernel, where io_uring uses threads as well, one call at a time.
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
                // SAFETY: the kernel has just given us this descriptor.
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

    /// Makes one call. The kernel reads and writes only memory and files of `work`.
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
                    // In this order no answer is missed: one that comes from here on makes the
                    // descriptor readable again.
                    guard.clear_ready();
                }
                Poll::Ready(Err(_)) => {
                    // The runtime is going away, and this task with it.
                    return Poll::Pending;
                }
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}

impl Look for Ring {
    fn look(&self) {
        let mut inner = self.inner.borrow_mut();
        if inner.ring.completion().is_empty() {
            return;
        }
        if let Some(waker) = inner.leader.and_then(|at| inner.entries[at].waker.as_ref()) {
            waker.wake_by_ref();
        }
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
    /// The number of the region that `buffer` lies in, if the kernel knows it.
    fn number(&mut self, buffer: &Buffer) -> Option<u16> {
        self.fixed.number(&self.ring, buffer)
    }

    /// Puts a call into the table and gives it to the kernel; returns its place.
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
            // SAFETY: what the call points to belongs to the work, which stays in the table until
            // the answer is there, and is leaked when the ring goes before that.
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

    /// Adds a place to the table. The lists get the memory for it here, and not when the first call
    /// happens to wait, long after the steady state has begun.
    fn grow(&mut self) -> usize {
        self.entries.push(Entry::default());
        let room = self.entries.capacity();
        self.free.reserve(room.saturating_sub(self.free.len()));
        self.waiting
            .reserve(room.saturating_sub(self.waiting.len()));
        self.entries.len() - 1
    }

    /// Gives the kernel what has not been given yet.
    fn submit(&mut self) {
        let queue = self.ring.submission();
        if queue.is_empty() && !queue.cq_overflow() {
            return;
        }
        drop(queue);
        // Busy, or interrupted: whoever polls next tries again. Nothing is lost.
        let _ = self.ring.submit();
    }

    /// Takes answers and wakes who waits for them until the one to call `index` is there, which comes first:
    /// a disk that has answered everything has nothing to do before its next request. The others are taken once
    /// that has left, see [`Inner::start`].
    fn reap_for(&mut self, index: usize) {
        if self.entries[index].answer.is_none() {
            self.reap(Some(index));
        }
    }

    /// Takes all answers, or those up to the one to call `own`, and wakes who waits for them.
    fn reap(&mut self, own: Option<usize>) {
        for answer in self.ring.completion() {
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
            if own == Some(index) {
                break;
            }
            if let (true, Some(waker)) = (waits, &entry.waker) {
                waker.wake_by_ref();
            }
        }
    }

    /// The work and answer of a call that has ended.
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
        entry.waits = true;
        if !std::mem::replace(&mut entry.listed, true) {
            self.waiting.push_back(index);
        }
    }

    /// A call waits no longer. If it was the leader, or there is none (it was woken to become it, and had its
    /// answer by then), another that waits is woken to become it.
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

/// A call that somebody waits for.
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
        // Its answer may be there already, unread.
        if let Some((_, answer)) = inner.take(self.index) {
            inner.entries[self.index].unclaimed(answer);
        } else {
            inner.entries[self.index].abandoned = true;
            inner.leave(self.index);
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        let inner = self.inner.get_mut();
        inner.reap(None);
        for entry in &mut inner.entries {
            if let Some(answer) = entry.answer.take() {
                entry.unclaimed(answer);
            } else if let Some(work) = entry.work.take() {
                // The kernel may still write to its memory.
                Box::leak(work);
            }
        }
    }
}

#[cfg(test)]
#[path = "ring_tests.rs"]
mod tests;
