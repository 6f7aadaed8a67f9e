//! Tests of the ring: its leader, sleeps and abandoned calls.

use std::cell::Cell;
use std::ffi::CString;
use std::fs::File as StdFile;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bucketload_core::wakeup::{self, AnswerSource, Slept};
use io_uring::{opcode, types};
use tokio::task::LocalSet;

use super::super::buffer::Buffer;
use super::super::config::PosixConfig;
use super::super::work::{File, Task, Work};
use super::{Flight, Ring};

const BLOCK: usize = 4096;
const BLOCKS: usize = 512;

/// A file whose blocks begin with their number, opened with O_DIRECT if the file system supports it.
fn numbered(directory: &std::path::Path) -> Arc<std::os::fd::OwnedFd> {
    let path = directory.join("numbered");
    let mut bytes = vec![0; BLOCK * BLOCKS];
    for (number, block) in bytes.chunks_mut(BLOCK).enumerate() {
        block[..8].copy_from_slice(&(number as u64).to_le_bytes());
    }
    std::fs::write(&path, bytes).unwrap();
    let mut options = StdFile::options();
    let past = options.read(true).custom_flags(libc::O_DIRECT).open(&path);
    let file = past.unwrap_or_else(|_| StdFile::open(&path).unwrap());
    file.sync_all().unwrap();
    Arc::new(file.into())
}

fn work(file: &Arc<std::os::fd::OwnedFd>, block: usize) -> Box<Work> {
    let config = PosixConfig::new("/");
    let mut work = Box::new(Work::new(&config));
    work.file = Some(File::Shared(Arc::clone(file)));
    work.buffer = Buffer::take(BLOCK);
    work.offset = (block * BLOCK) as u64;
    work.len = BLOCK;
    work.enough = BLOCK;
    work.task = Task::Read {
        open: false,
        close: false,
    };
    work
}

fn number_in(work: &Work) -> usize {
    assert_eq!((work.result, work.moved), (Ok(()), BLOCK));
    u64::from_le_bytes(work.buffer[..8].try_into().unwrap()) as usize
}

/// Runs `body` on a ring in a runtime, with a sleeper and without, and fails if that takes a minute.
fn on_ring(body: impl AsyncFn(Rc<Ring>)) {
    for sleeper in [true, false] {
        wakeup::expect_sleeper(sleeper);
        on_this_ring(&body);
    }
}

fn on_this_ring(body: &impl AsyncFn(Rc<Ring>)) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let all = async {
        body(Ring::new().unwrap()).await;
    };
    let limited = async { tokio::time::timeout(Duration::from_secs(60), all).await };
    let ended = runtime.block_on(LocalSet::new().run_until(limited));
    assert!(ended.is_ok(), "a call was never answered");
}

#[test]
fn every_call_is_answered_whichever_others_have_ended() {
    let directory = tempfile::tempdir().unwrap();
    let file = numbered(directory.path());
    on_ring(async |ring| {
        let tasks: Vec<_> = (0..48)
            .map(|task| {
                let (ring, file) = (Rc::clone(&ring), Arc::clone(&file));
                // The tasks end one after the other, so each becomes the leader.
                tokio::task::spawn_local(async move {
                    for turn in 0..=task {
                        let block = (task * 31 + turn * 7) % BLOCKS;
                        let done = ring.run(work(&file, block), file.as_fd()).await;
                        assert_eq!(number_in(&done), block);
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
    });
}

#[test]
fn abandoned_calls_do_not_take_answers_from_others() {
    let directory = tempfile::tempdir().unwrap();
    let file = numbered(directory.path());
    on_ring(async |ring| {
        for round in 0..40 {
            let tasks: Vec<_> = (0..24)
                .map(|task| {
                    let (ring, file) = (Rc::clone(&ring), Arc::clone(&file));
                    tokio::task::spawn_local(async move {
                        let block = (round * 24 + task) % BLOCKS;
                        let done = ring.run(work(&file, block), file.as_fd()).await;
                        assert_eq!(number_in(&done), block);
                    })
                })
                .collect();
            // By the next turn all have submitted their calls, and the first is the leader.
            tokio::task::yield_now().await;
            for given_up in tasks.iter().step_by(2) {
                given_up.abort();
            }
            for (number, task) in tasks.into_iter().enumerate() {
                let ended = task.await;
                assert!(ended.is_ok() || number % 2 == 0, "{ended:?}");
            }
        }
    });
}

/// Reads all blocks with `tasks` tasks while the thread sleeps in the ring whenever it can.
async fn reads_asleep(ring: Rc<Ring>, file: Arc<std::os::fd::OwnedFd>, tasks: usize) {
    let live = Rc::new(Cell::new(tasks));
    let reading = (0..tasks).map(|first| {
        let (ring, file, live) = (Rc::clone(&ring), Arc::clone(&file), Rc::clone(&live));
        tokio::task::spawn_local(async move {
            for block in (first..BLOCKS).step_by(tasks) {
                let done = ring.run(work(&file, block), file.as_fd()).await;
                assert_eq!(number_in(&done), block);
            }
            live.set(live.get() - 1);
        })
    });
    let reading: Vec<_> = reading.collect();
    let begun = std::time::Instant::now();
    while live.get() > 0 {
        assert!(
            begun.elapsed().as_secs() < 60,
            "{} tasks wait on",
            live.get()
        );
        ring.sleep(live.get());
        tokio::task::yield_now().await;
    }
    for task in reading {
        task.await.unwrap();
    }
}

#[test]
fn a_thread_sleeps_in_the_ring_while_all_its_tasks_wait() {
    let directory = tempfile::tempdir().unwrap();
    let file = numbered(directory.path());
    on_ring(async |ring| {
        for tasks in [1, 3, 16] {
            reads_asleep(Rc::clone(&ring), Arc::clone(&file), tasks).await;
            assert_eq!(ring.inner.borrow().unanswered, 0);
        }
    });
}

#[test]
fn a_sleep_without_an_answer_ends_and_is_not_repeated() {
    on_ring(async |ring| {
        let (reader, writer) = std::io::pipe().unwrap();
        let pipe: Arc<std::os::fd::OwnedFd> = Arc::new(reader.into());
        let (ring_too, pipe_too) = (Rc::clone(&ring), Arc::clone(&pipe));
        let reading = tokio::task::spawn_local(async move {
            let mut work = work(&pipe_too, 0);
            // A pipe has no offsets, only the current position.
            work.offset = u64::MAX;
            ring_too.run(work, pipe_too.as_fd()).await
        });
        let begun = std::time::Instant::now();
        while ring.inner.borrow().unanswered == 0 {
            assert!(begun.elapsed().as_secs() < 60, "the read does not leave");
            tokio::task::yield_now().await;
        }
        assert_eq!(ring.sleep(2), Slept::Not, "another task may go on");
        assert_eq!(ring.sleep(1), Slept::Long);
        assert_eq!(ring.sleep(1), Slept::Not, "the last one was in vain");
        let mut block = [0; BLOCK];
        block[0] = 7;
        (&writer).write_all(&block).unwrap();
        assert_eq!(number_in(&reading.await.unwrap()), 7);
        assert_eq!(ring.inner.borrow().unanswered, 0);
    });
}

/// Number of this process's descriptors for the file.
fn opened(path: &std::path::Path) -> usize {
    let all = std::fs::read_dir("/proc/self/fd").unwrap();
    all.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok())
        .filter(|name| name == path)
        .count()
}

#[test]
fn a_file_opened_for_an_abandoned_call_is_closed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().canonicalize().unwrap().join("file");
    std::fs::write(&path, "").unwrap();
    let name = CString::new(path.as_os_str().as_bytes()).unwrap();
    let opening = |ring: &Ring| {
        let work = Box::new(Work::new(&PosixConfig::new("/")));
        let call = opcode::OpenAt::new(types::Fd(libc::AT_FDCWD), name.as_ptr()).build();
        let mut inner = ring.inner.borrow_mut();
        let index = inner.start(work, call, true);
        while inner.entries[index].answer.is_none() {
            inner.ring.submit_and_wait(1).unwrap();
            inner.reap(None);
        }
        index
    };
    on_ring(async |ring| {
        let index = opening(&ring);
        assert_eq!(opened(&path), 1);
        drop(Flight {
            ring: &ring,
            index,
            landed: false,
        });
        assert_eq!(opened(&path), 0);
        // A file is also closed if the ring is dropped before a session waits for the call.
        opening(&ring);
        assert_eq!(opened(&path), 1);
    });
    assert_eq!(opened(&path), 0);
}
