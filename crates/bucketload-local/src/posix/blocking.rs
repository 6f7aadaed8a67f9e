//! The system calls of every step, made by the calling thread.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, IntoRawFd, OwnedFd};

use rustix::fs::{
    Advice, AtFlags, FileType, Mode, OFlags, Timespec, Timestamps, UTIME_NOW, copy_file_range,
    fadvise, fdatasync, fstat, fsync, ftruncate, futimens, ioctl_ficlone, mkdirat, openat,
    renameat, statat, unlinkat,
};
use rustix::io::{Errno, pread, pwrite, pwritev, retry_on_intr, writev};

use super::buffer::Buffer;
use super::config::{Cache, Fsync};
use super::driver::Inner;
use super::errors::Failure;
use super::fill::Source;
use super::path::MAX_PATH;
use super::sweep;
use super::walk;
use super::work::{Ending, File, Opening, Task, Work};

/// Bytes that a copy moves at a time where the kernel cannot do it alone.
const COPY_BLOCK: usize = 1 << 20;
/// Most bytes the kernel is asked to copy at a time.
const COPY_RANGE: usize = 1 << 30;

/// A path as the kernel wants it. Paths are checked to hold no NUL but the last.
pub(super) fn c_path(path: &[u8]) -> &CStr {
    CStr::from_bytes_until_nul(path).unwrap_or(c"")
}

fn failed(call: &'static str) -> impl Fn(Errno) -> Failure {
    move |errno| Failure::new(call, errno)
}

/// Performs the step below the driver's root.
pub(super) fn perform_for(driver: &Inner, work: &mut Work, source: Option<Source<'_>>) {
    // What small requests are, many of them, by itself: the frame and the length of all the others cost it more than
    // its own work.
    if let Task::Read { open: false, close } = work.task {
        return read_on(work, close);
    }
    match driver.root() {
        Ok(root) => perform(work, root.as_fd(), source),
        // No session is opened without it.
        Err(_) => work.result = Err(Failure::new("open", Errno::NOTCONN)),
    }
}

/// Reads on in the open file.
fn read_on(work: &mut Work, close: bool) {
    work.mark_start();
    work.moved = 0;
    work.result = Ok(());
    if let Err(failure) = read_open(work) {
        work.result = Err(failure);
        work.file = None;
    } else if close {
        close_read(work);
    }
}

/// Performs the step. What is written comes from `source` where there is one, else from the buffer.
#[inline(never)]
fn perform(work: &mut Work, root: BorrowedFd<'_>, source: Option<Source<'_>>) {
    work.mark_start();
    work.moved = 0;
    let result = match work.task {
        Task::Read { open, close } => read(work, root, open, close),
        Task::Write { open, end } => write(work, root, open, end, source),
        Task::OpenShared { write } => open_shared(work, root, write),
        Task::Sync => match &work.file {
            Some(file) => retry_on_intr(|| fsync(file)).map_err(failed("fsync")),
            None => Err(Failure::new("fsync", Errno::BADF)),
        },
        Task::Stat => stat(work, root),
        Task::Unlink => {
            unlinkat(root, c_path(&work.path), AtFlags::empty()).map_err(failed("unlink"))
        }
        Task::UnlinkMany { prune } => unlink_many(work, root, prune),
        Task::Rename => rename(work, root),
        Task::Copy => copy(work, root),
        Task::Touch => touch(work, root),
        Task::MakeBucket => {
            let mode = Mode::from_raw_mode(0o777);
            mkdirat(root, c_path(&work.path), mode).map_err(failed("mkdir"))
        }
        Task::HeadBucket => head_bucket(work, root),
        Task::RemoveBucket { prune } => match prune {
            true => sweep::remove_bucket(work, root),
            false => {
                unlinkat(root, c_path(&work.path), AtFlags::REMOVEDIR).map_err(failed("rmdir"))
            }
        },
        Task::ListBuckets => list_buckets(work, root),
        Task::List => {
            let Work {
                walk, page, len, ..
            } = work;
            walk.page(root, *len, page)
        }
        Task::Sweep => sweep::sweep(work, root),
    };
    // Steps on open files mark their answers themselves, before they close them.
    let marked = matches!(work.task, Task::Read { .. }) && result.is_ok();
    if !marked {
        work.mark_answer();
    }
    if result.is_err() {
        work.file = None;
    }
    if work.cache == Cache::Drop
        && result.is_ok()
        && matches!(work.task, Task::Write { end: Some(_), .. } | Task::Copy)
    {
        drop_pages_of(root, c_path(&work.path));
    }
    // Each by itself: a copy of what was just written in smaller pieces makes the processor wait.
    match result {
        Ok(()) => work.result = Ok(()),
        failed @ Err(_) => work.result = failed,
    }
}

/// Flags that go with O_DIRECT and the fsync policy.
fn more_flags(work: &Work) -> OFlags {
    let mut flags = OFlags::CLOEXEC;
    if work.direct {
        flags |= OFlags::DIRECT;
    }
    flags
}

fn write_flags(work: &Work) -> OFlags {
    match work.fsync {
        Fsync::Write => more_flags(work) | OFlags::DSYNC,
        Fsync::Never | Fsync::Close => more_flags(work),
    }
}

fn read(work: &mut Work, root: BorrowedFd<'_>, open: bool, close: bool) -> Result<(), Failure> {
    if open {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | more_flags(work);
        let path = c_path(&work.path);
        let file = retry_on_intr(|| openat(root, path, flags, Mode::empty()));
        work.file = Some(File::Own(file.map_err(failed("open"))?));
    }
    read_open(work)?;
    if close {
        close_read(work);
    }
    Ok(())
}

/// Reads from the open file, and marks the answer.
#[inline]
fn read_open(work: &mut Work) -> Result<(), Failure> {
    let result = match &work.file {
        None => Err(Failure::new("read", Errno::BADF)),
        Some(file) => loop {
            if work.moved >= work.enough.min(work.len) {
                break Ok(());
            }
            let room = &mut work.buffer[work.moved..work.len];
            let at = work.offset + work.moved as u64;
            match retry_on_intr(|| pread(file, &mut *room, at)) {
                Ok(0) => break Ok(()),
                Ok(n) => work.moved += n,
                Err(errno) => break Err(Failure::new("read", errno)),
            }
        },
    };
    work.mark_answer();
    result
}

/// Ends the reading of a file, outside its time.
pub(super) fn close_read(work: &mut Work) {
    if let (Some(file), Cache::Drop) = (&work.file, work.cache) {
        // Advice: a file system that does not take it keeps its pages.
        let _ = fadvise(file, 0, None, Advice::DontNeed);
    }
    work.file = None;
}

fn write(
    work: &mut Work,
    root: BorrowedFd<'_>,
    open: Option<Opening>,
    end: Option<Ending>,
    source: Option<Source<'_>>,
) -> Result<(), Failure> {
    if let Some(opening) = open {
        let flags = write_flags(work);
        let (path, flags) = match opening {
            Opening::Replace => (&work.path, flags | OFlags::CREATE | OFlags::TRUNC),
            Opening::New => (&work.path, flags | OFlags::CREATE | OFlags::EXCL),
            Opening::End => (&work.path, flags | OFlags::CREATE | OFlags::APPEND),
            Opening::Beside => (&work.beside, flags | OFlags::CREATE | OFlags::EXCL),
        };
        let file = open_making_parents(root, path, flags | OFlags::WRONLY | OFlags::NOFOLLOW)?;
        work.file = Some(File::Own(file));
        work.made = matches!(opening, Opening::New | Opening::Beside).then_some(opening);
    }
    let append = open == Some(Opening::End);
    let written = match &work.file {
        Some(file) => write_all(work, file, append, source),
        None => Err(Failure::new("write", Errno::BADF)),
    };
    let ended = written.and_then(|moved| {
        work.moved = moved;
        match (end, work.file.take()) {
            (Some(end), Some(File::Own(file))) => finish(work, root, file, end),
            (end, file) => {
                work.file = file;
                end.map_or(Ok(()), |_| sync_data(work))
            }
        }
    });
    if ended.is_err() {
        // What this operation has made and nobody can have seen whole goes away again.
        let path = match work.made {
            Some(Opening::Beside) => &work.beside,
            Some(Opening::New) => &work.path,
            _ => return ended,
        };
        let _ = unlinkat(root, c_path(path), AtFlags::empty());
    }
    ended
}

fn write_all(
    work: &Work,
    file: &File,
    append: bool,
    source: Option<Source<'_>>,
) -> Result<usize, Failure> {
    let mut moved = 0;
    while moved < work.len {
        let at = work.offset + moved as u64;
        let result = match source {
            Some(source) => {
                let from = work.content_at + moved as u64;
                source.with_slices(from, work.len - moved, |slices| {
                    retry_on_intr(|| match append {
                        true => writev(file, slices),
                        false => pwritev(file, slices, at),
                    })
                })
            }
            None => {
                let bytes = &work.buffer[moved..work.len];
                retry_on_intr(|| match append {
                    true => rustix::io::write(file, bytes),
                    false => pwrite(file, bytes, at),
                })
            }
        };
        match result.map_err(failed("write"))? {
            // No file system does that; going round for ever would be worse.
            0 => return Err(Failure::new("write", Errno::IO)),
            n => moved += n,
        }
    }
    Ok(moved)
}

/// Makes the data of a shared file durable where that is asked for.
pub(super) fn sync_data(work: &Work) -> Result<(), Failure> {
    match (&work.file, work.fsync) {
        (Some(file), Fsync::Close) => {
            retry_on_intr(|| fdatasync(file)).map_err(failed("fdatasync"))
        }
        _ => Ok(()),
    }
}

/// Cuts, syncs, closes and names a file that was written.
fn finish(work: &Work, root: BorrowedFd<'_>, file: OwnedFd, end: Ending) -> Result<(), Failure> {
    if let Some(len) = end.truncate {
        retry_on_intr(|| ftruncate(&file, len)).map_err(failed("ftruncate"))?;
    }
    if work.fsync == Fsync::Close {
        retry_on_intr(|| fsync(&file)).map_err(failed("fsync"))?;
    }
    close(file)?;
    if end.rename {
        let (from, to) = (c_path(&work.beside), c_path(&work.path));
        renameat(root, from, root, to).map_err(failed("rename"))?;
    }
    Ok(())
}

/// Closes a written file and says what that reveals: network file systems write at this point.
fn close(file: OwnedFd) -> Result<(), Failure> {
    // SAFETY: the descriptor is owned and given up here; it is not used again.
    let result = unsafe { libc::close(file.into_raw_fd()) };
    match result {
        0 => Ok(()),
        _ => match Errno::from_io_error(&std::io::Error::last_os_error()) {
            // Linux has closed it all the same.
            None | Some(Errno::INTR) => Ok(()),
            Some(errno) => Err(Failure::new("close", errno)),
        },
    }
}

fn open_making_parents(
    root: BorrowedFd<'_>,
    path: &[u8],
    flags: OFlags,
) -> Result<OwnedFd, Failure> {
    let mode = Mode::from_raw_mode(0o666);
    let mut turns = 0;
    loop {
        match retry_on_intr(|| openat(root, c_path(path), flags, mode)) {
            // More than once: another run's clean-up may take an empty directory away again.
            Err(Errno::NOENT) if turns < 3 => make_parents(root, path)?,
            result => return result.map_err(failed("open")),
        }
        turns += 1;
    }
}

/// Makes the directories between bucket and object that are missing.
fn make_parents(root: BorrowedFd<'_>, path: &[u8]) -> Result<(), Failure> {
    let mut copy = [0; MAX_PATH];
    let copy = &mut copy[..path.len()];
    copy.copy_from_slice(path);
    let mode = Mode::from_raw_mode(0o777);
    // From the deepest up to the first that can be made, then down again.
    let mut end = copy.len();
    let bucket = copy.iter().position(|&b| b == b'/').unwrap_or(end);
    let slash_before = |copy: &[u8], end: usize| copy[..end].iter().rposition(|&b| b == b'/');
    loop {
        match slash_before(copy, end) {
            Some(at) if at > bucket => {
                copy[at] = 0;
                end = at;
                match mkdirat(root, c_path(copy), mode) {
                    Ok(()) | Err(Errno::EXIST) => break,
                    Err(Errno::NOENT) => {}
                    Err(errno) => return Err(Failure::new("mkdir", errno)),
                }
            }
            // The bucket itself is missing, and that is not for an object to make.
            _ => return Err(Failure::new("open", Errno::NOENT)),
        }
    }
    while let Some(at) = copy[..copy.len() - 1].iter().position(|&b| b == 0) {
        copy[at] = b'/';
        match copy[..copy.len() - 1].contains(&0) {
            true => match mkdirat(root, c_path(copy), mode) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(Failure::new("mkdir", errno)),
            },
            false => break,
        }
    }
    Ok(())
}

fn open_shared(work: &mut Work, root: BorrowedFd<'_>, write: bool) -> Result<(), Failure> {
    let file = match write {
        true => {
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | write_flags(work);
            open_making_parents(root, &work.beside, flags)?
        }
        false => {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | more_flags(work);
            openat(root, c_path(&work.beside), flags, Mode::empty()).map_err(failed("open"))?
        }
    };
    work.file = Some(File::Own(file));
    Ok(())
}

fn stat(work: &mut Work, root: BorrowedFd<'_>) -> Result<(), Failure> {
    let stat =
        statat(root, c_path(&work.path), AtFlags::SYMLINK_NOFOLLOW).map_err(failed("stat"))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(Failure::new("stat", Errno::NOENT));
    }
    work.found = u64::try_from(stat.st_size).unwrap_or(0);
    work.changed_s = stat.st_ctime;
    Ok(())
}

fn unlink_many(work: &mut Work, root: BorrowedFd<'_>, prune: bool) -> Result<(), Failure> {
    work.found = 0;
    let mut parent: &[u8] = b"";
    for path in work.names.split_inclusive(|&b| b == 0) {
        match unlinkat(root, c_path(path), AtFlags::empty()) {
            Ok(()) => work.found += 1,
            // Not there, or never an object.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::ISDIR) => {}
            Err(errno) => return Err(Failure::new("unlink", errno)),
        }
        if prune {
            let own = path
                .iter()
                .rposition(|&b| b == b'/')
                .map_or(&path[..0], |at| &path[..at]);
            if own != parent {
                sweep::prune(root, parent);
                parent = own;
            }
        }
    }
    sweep::prune(root, parent);
    Ok(())
}

fn rename(work: &mut Work, root: BorrowedFd<'_>) -> Result<(), Failure> {
    let (from, to) = (c_path(&work.source), c_path(&work.path));
    match renameat(root, from, root, to) {
        Err(Errno::NOENT) => {}
        result => return result.map_err(failed("rename")),
    }
    // Either there is nothing to rename or nowhere to put it.
    statat(root, from, AtFlags::SYMLINK_NOFOLLOW).map_err(failed("rename"))?;
    make_parents(root, &work.path)?;
    renameat(root, from, root, to).map_err(failed("rename"))
}

fn copy(work: &mut Work, root: BorrowedFd<'_>) -> Result<(), Failure> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let source =
        openat(root, c_path(&work.source), flags, Mode::empty()).map_err(failed("open"))?;
    let stat = fstat(&source).map_err(failed("stat"))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(Failure::new("open", Errno::NOENT));
    }
    let flags =
        OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let target = open_making_parents(root, &work.path, flags)?;
    if ioctl_ficlone(&target, &source).is_err() {
        copy_data(&source, &target)?;
    }
    if work.fsync != Fsync::Never {
        retry_on_intr(|| fsync(&target)).map_err(failed("fsync"))?;
    }
    close(target)
}

fn copy_data(source: &OwnedFd, target: &OwnedFd) -> Result<(), Failure> {
    let mut at = 0;
    loop {
        match copy_file_range(source, None, target, None, COPY_RANGE) {
            Ok(0) => return Ok(()),
            Ok(n) => at += n as u64,
            Err(Errno::INTR) => {}
            // Not between these file systems, or not on them at all.
            Err(Errno::XDEV | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => break,
            Err(errno) => return Err(Failure::new("copy_file_range", errno)),
        }
    }
    let mut buffer = Buffer::take(COPY_BLOCK);
    let result = loop {
        let n = match retry_on_intr(|| pread(source, &mut buffer[..COPY_BLOCK], at)) {
            Ok(0) => break Ok(()),
            Ok(n) => n,
            Err(errno) => break Err(Failure::new("read", errno)),
        };
        let mut done = 0;
        while done < n {
            match retry_on_intr(|| pwrite(target, &buffer[done..n], at + done as u64)) {
                Ok(written) => done += written,
                Err(errno) => return Err(Failure::new("write", errno)),
            }
        }
        at += n as u64;
    };
    buffer.release();
    result
}

fn touch(work: &mut Work, root: BorrowedFd<'_>) -> Result<(), Failure> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NONBLOCK | OFlags::NOFOLLOW;
    let file = open_making_parents(root, &work.path, flags | OFlags::CLOEXEC)?;
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: UTIME_NOW,
    };
    let times = Timestamps {
        last_access: now,
        last_modification: now,
    };
    futimens(&file, &times).map_err(failed("futimens"))?;
    close(file)
}

fn head_bucket(work: &Work, root: BorrowedFd<'_>) -> Result<(), Failure> {
    let stat = statat(root, c_path(&work.path), AtFlags::empty()).map_err(failed("stat"))?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => Ok(()),
        _ => Err(Failure::new("stat", Errno::NOENT)),
    }
}

fn list_buckets(work: &mut Work, root: BorrowedFd<'_>) -> Result<(), Failure> {
    let mut found = 0;
    walk::scan(root, c".", work.walk.room(), |_, is_directory| {
        found += u64::from(is_directory);
    })?;
    work.found = found;
    Ok(())
}

/// Drops the pages of a file that was written, after writing them back.
fn drop_pages_of(root: BorrowedFd<'_>, path: &CStr) {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // All of this is outside the operation: a failure leaves the pages where they are.
    if let Ok(file) = openat(root, path, flags, Mode::empty()) {
        let _ = fdatasync(file.as_fd());
        let _ = fadvise(file.as_fd(), 0, None, Advice::DontNeed);
    }
}
