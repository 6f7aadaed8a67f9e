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
//! The table owns the work of every call that the kernel has, and with it every byte that the kernel
//! may touch. A call that nobody waits for any more stays there until its answer comes.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::task::{Context, Poll, Waker};

use io_uring::{IoUring, Probe, opcode, squeue, types};
use rustix::io::Errno;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::blocking::close_read;
use super::config::Fsync;
use super::errors::Failure;
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
        opcode::Fsync::CODE,
    ];
    match needed.iter().all(|code| known.is_supported(*code)) {
        true => Ok(()),
        false => Err("the kernel lacks some of its calls".to_owned()),
    }
}

fn build() -> io::Result<IoUring> {
    let mut answers = ANSWERS;
    let mut builder = IoUring::builder();
    // Answers wait for the thread's next system call instead of interrupting it: it makes one with
    // every request, and before it sleeps. In a virtual machine an interrupt from another core costs
    // more than a request.
    builder.setup_coop_taskrun();
    let mut plain = false;
    loop {
        match builder.setup_cqsize(answers).build(ENTRIES) {
            // Linux before 5.19 does not know the flag.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput && !plain => {
                builder = IoUring::builder();
                plain = true;
            }
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
    /// Its answer is a descriptor.
    opens: bool,
    /// In the list of those that wait.
    listed: bool,
}

struct Inner {
    ring: IoUring,
    entries: Vec<Entry>,
    free: Vec<usize>,
    /// Calls that may take over the watch, the latest last; some have ended.
    waiting: Vec<usize>,
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
    pub(super) fn new() -> io::Result<Self> {
        let ring = build()?;
        let fd = ring.as_raw_fd();
        // SAFETY: the descriptor is the ring's, which is dropped after the watch (see `Ring`).
        let watch = unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }?;
        let inner = Inner {
            ring,
            entries: Vec::new(),
            free: Vec::new(),
            waiting: Vec::new(),
            leader: None,
        };
        Ok(Self {
            watch,
            inner: RefCell::new(inner),
        })
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
            let room = &mut work.buffer[moved..];
            let len = u32::try_from(work.len - moved).unwrap_or(u32::MAX);
            let call = opcode::Read::new(fd, room.as_mut_ptr(), len).offset(at);
            let answer;
            (work, answer) = self.call(work, call.build(), false).await;
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
            let bytes = &work.buffer[moved..];
            let len = u32::try_from(work.len - moved).unwrap_or(u32::MAX);
            let call = opcode::Write::new(fd, bytes.as_ptr(), len).offset(at);
            let answer;
            (work, answer) = self.call(work, call.build(), false).await;
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
        inner.reap();
        loop {
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
                    inner.reap();
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
    /// Puts a call into the table and gives it to the kernel; returns its place.
    fn start(&mut self, work: Box<Work>, call: squeue::Entry, opens: bool) -> usize {
        let index = match self.free.pop() {
            Some(index) => index,
            None => self.grow(),
        };
        let entry = &mut self.entries[index];
        entry.work = Some(work);
        entry.opens = opens;
        let call = call.user_data(index as u64);
        loop {
            // SAFETY: what the call points to belongs to the work, which stays in the table until
            // the answer is there, and is leaked when the ring goes before that.
            let pushed = unsafe { self.ring.submission().push(&call) };
            if pushed.is_ok() {
                break;
            }
            self.submit();
            self.reap();
        }
        self.submit();
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
        if self.ring.submission().is_empty() && !self.ring.submission().cq_overflow() {
            return;
        }
        // Busy, or interrupted: whoever polls next tries again. Nothing is lost.
        let _ = self.ring.submit();
    }

    /// Takes all answers and wakes who waits for them.
    fn reap(&mut self) {
        for answer in self.ring.completion() {
            let index = answer.user_data() as usize;
            let entry = &mut self.entries[index];
            if !entry.abandoned {
                entry.answer = Some(answer.result());
                if let Some(waker) = &entry.waker {
                    waker.wake_by_ref();
                }
                continue;
            }
            if entry.opens && answer.result() >= 0 {
                // SAFETY: the kernel has just given us this descriptor, and nobody else wants it.
                drop(unsafe { OwnedFd::from_raw_fd(answer.result()) });
            }
            entry.work = None;
            entry.abandoned = false;
            self.free.push(index);
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
        if !std::mem::replace(&mut entry.listed, true) {
            self.waiting.push(index);
        }
    }

    /// A call waits no longer. If it was the leader, another that waits is woken to become it.
    fn leave(&mut self, index: usize) {
        if self.leader != Some(index) {
            return;
        }
        self.leader = None;
        while let Some(next) = self.waiting.pop() {
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
        if inner.take(self.index).is_none() {
            inner.entries[self.index].abandoned = true;
            inner.leave(self.index);
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        let inner = self.inner.get_mut();
        inner.reap();
        for entry in &mut inner.entries {
            if let Some(work) = entry.work.take() {
                // The kernel may still write to its memory.
                Box::leak(work);
            }
        }
    }
}
