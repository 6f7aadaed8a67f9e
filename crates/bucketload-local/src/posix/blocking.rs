//! The system calls of every step, made on the calling thread.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, IntoRawFd, OwnedFd};

use rustix::fs::{
    Advice, AtFlags, FileType, Mode, OFlags, Timespec, Timestamps, UTIME_NOW, copy_file_range,
    fadvise, fdatasync, fstat, fsync, ftruncate, futimens, ioctl_ficlone, mkdirat, openat,
    renameat, statat, syncfs, unlinkat,
};
use rustix::io::{Errno, pread, pwrite, pwritev, retry_on_intr, writev};

use super::buffer::Buffer;
use super::config::{Cache, Fsync};
use super::driver::DriverShared;
use super::errors::Failure;
use super::fill::Source;
use super::path::MAX_PATH;
use super::sweep;
use super::walk;
use super::work::{File, Finish, OpenMode, Task, Work};

/// Bytes per call of a copy that the kernel cannot perform by itself.
const COPY_BLOCK: usize = 1 << 20;
/// Most bytes per copy call to the kernel.
const COPY_RANGE: usize = 1 << 30;

/// A path as a C string. Paths were checked to contain no NUL except the last byte.
pub(super) fn c_path(path: &[u8]) -> &CStr {
    CStr::from_bytes_until_nul(path).unwrap_or(c"")
}

fn failed(call: &'static str) -> impl Fn(Errno) -> Failure {
    move |errno| Failure::new(call, errno)
}

/// Performs the step below the driver's root.
pub(super) fn perform_for(driver: &DriverShared, work: &mut Work, source: Option<Source<'_>>) {
    match driver.root() {
        Ok(root) => perform_at(root.as_fd(), work, source),
        // Sessions do not open without the root.
        Err(_) => work.result = Err(Failure::new("open", Errno::NOTCONN)),
    }
}

/// Performs the step below `root`.
#[inline]
pub(super) fn perform_at(root: BorrowedFd<'_>, work: &mut Work, source: Option<Source<'_>>) {
    // The most frequent small step has its own function: the stack frame and the length of the general one would cost
    // more than the step itself.
    match work.task {
        Task::Read { open: false, close } => read_on(work, close),
        _ => perform(work, root, source),
    }
}

/// Continues reading the open file.
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

/// Performs the step. Writes from `source` if there is one, else from the buffer.
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
        Task::SyncAll => retry_on_intr(|| syncfs(root)).map_err(failed("syncfs")),
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
        Task::Search => {
            let Work {
                search, page, len, ..
            } = work;
            search.page(root, *len, page)
        }
        Task::Sweep => sweep::sweep(work, root),
    };
    // Reads mark their answers themselves, before they close the file.
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
    // Two separate writes: copying a value just after writing it in smaller pieces stalls the processor.
    match result {
        Ok(()) => work.result = Ok(()),
        failed @ Err(_) => work.result = failed,
    }
}

/// Flags of every open.
fn common_flags(work: &Work) -> OFlags {
    let mut flags = OFlags::CLOEXEC;
    if work.direct {
        flags |= OFlags::DIRECT;
    }
    flags
}

fn write_flags(work: &Work) -> OFlags {
    match work.fsync {
        Fsync::Write => common_flags(work) | OFlags::DSYNC,
        Fsync::Never | Fsync::Close => common_flags(work),
    }
}

fn read(work: &mut Work, root: BorrowedFd<'_>, open: bool, close: bool) -> Result<(), Failure> {
    if open {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | common_flags(work);
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

/// Closes a file after reading it, outside the operation's time.
pub(super) fn close_read(work: &mut Work) {
    if let (Some(file), Cache::Drop) = (&work.file, work.cache) {
        // Only advice: a file system may keep the pages.
        let _ = fadvise(file, 0, None, Advice::DontNeed);
    }
    work.file = None;
}

fn write(
    work: &mut Work,
    root: BorrowedFd<'_>,
    open: Option<OpenMode>,
    end: Option<Finish>,
    source: Option<Source<'_>>,
) -> Result<(), Failure> {
    if let Some(mode) = open {
        let flags = write_flags(work);
        let (path, flags) = match mode {
            OpenMode::Replace => (&work.path, flags | OFlags::CREATE | OFlags::TRUNC),
            OpenMode::New => (&work.path, flags | OFlags::CREATE | OFlags::EXCL),
            OpenMode::End => (&work.path, flags | OFlags::CREATE | OFlags::APPEND),
            OpenMode::Beside => (&work.beside, flags | OFlags::CREATE | OFlags::EXCL),
        };
        let file = open_making_parents(root, path, flags | OFlags::WRONLY | OFlags::NOFOLLOW)?;
        work.file = Some(File::Own(file));
        work.made = matches!(mode, OpenMode::New | OpenMode::Beside).then_some(mode);
    }
    let append = open == Some(OpenMode::End);
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
        // Remove the incomplete file that this operation created.
        let path = match work.made {
            Some(OpenMode::Beside) => &work.beside,
            Some(OpenMode::New) => &work.path,
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
            // No file system should do that, but an endless loop would be worse.
            0 => return Err(Failure::new("write", Errno::IO)),
            n => moved += n,
        }
    }
    Ok(moved)
}

/// Makes the data of a shared file durable, if so configured.
pub(super) fn sync_data(work: &Work) -> Result<(), Failure> {
    match (&work.file, work.fsync) {
        (Some(file), Fsync::Close) => {
            retry_on_intr(|| fdatasync(file)).map_err(failed("fdatasync"))
        }
        _ => Ok(()),
    }
}

/// Truncates, syncs, closes and renames a written file.
fn finish(work: &Work, root: BorrowedFd<'_>, file: OwnedFd, end: Finish) -> Result<(), Failure> {
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

/// Closes a written file and reports the error: network file systems may write only now.
fn close(file: OwnedFd) -> Result<(), Failure> {
    // SAFETY: the descriptor is owned, given up here, and not used again.
    let result = unsafe { libc::close(file.into_raw_fd()) };
    match result {
        0 => Ok(()),
        _ => match Errno::from_io_error(&std::io::Error::last_os_error()) {
            // Linux closes the descriptor nevertheless.
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
            // Repeat: another run's clean-up may remove an empty directory again.
            Err(Errno::NOENT) if turns < 3 => make_parents(root, path)?,
            result => return result.map_err(failed("open")),
        }
        turns += 1;
    }
}

/// Creates the missing directories between bucket and object.
fn make_parents(root: BorrowedFd<'_>, path: &[u8]) -> Result<(), Failure> {
    let mut copy = [0; MAX_PATH];
    let copy = &mut copy[..path.len()];
    copy.copy_from_slice(path);
    let mode = Mode::from_raw_mode(0o777);
    // From the deepest directory up to the first that can be created, then down again.
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
            // The bucket itself is missing; writing an object must not create it.
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
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | common_flags(work);
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
            // Missing, or not an object.
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
    // Either the source or the destination's directory is missing.
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
            // Not supported between these file systems, or not at all.
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

/// Writes back the pages of a written file and drops them.
fn drop_pages_of(root: BorrowedFd<'_>, path: &CStr) {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // Outside the operation: a failure only leaves the pages in the cache.
    if let Ok(file) = openat(root, path, flags, Mode::empty()) {
        let _ = fdatasync(file.as_fd());
        let _ = fadvise(file.as_fd(), 0, None, Advice::DontNeed);
    }
}
