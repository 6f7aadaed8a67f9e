//! What a directory's file system offers, for `bucketload doctor`: kind, room, rights, O_DIRECT, attributes, rename and
//! how long a byte takes to be durable.
//!
//! The calls are made by a thread of their own, because a mount that hangs stops whoever touches it.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use bucketload_core::driver::Room;
use bucketload_target::OpenError;
use bucketload_target::doctor::{Examination, Examined, Finding, State, room};
use rustix::fs::{CWD, OFlags, XattrFlags, renameat};

use super::PosixDriver;

/// Longest wait for all calls.
const PATIENCE: Duration = Duration::from_secs(20);
/// Writes whose way to the device is timed.
const ROUNDS: usize = 5;
/// No device makes a file durable in less.
const TOO_FAST: Duration = Duration::from_micros(10);
/// Size and alignment of a write that bypasses the page cache.
const BLOCK: usize = 4096;

/// Examines the file system below `driver`'s root. Writes only below the doctor's own prefix, and removes that again.
///
/// # Errors
/// When this machine has no thread for the calls.
pub(super) fn examine(
    driver: &PosixDriver,
    exam: &mut Examination<'_>,
) -> Result<Examined, OpenError> {
    let root = driver.config().root.clone();
    let bucket = root.join(exam.bucket);
    let bench = Bench {
        dir: bucket.join(exam.prefix),
        marker: bucket.join(exam.marker),
        marker_body: (exam.marker_body)(!bucket.exists()),
        bucket,
        root,
        direct: driver.config().direct,
        io: driver.io().to_string(),
    };
    let (send, receive) = mpsc::channel();
    std::thread::Builder::new()
        .name("doctor".to_owned())
        .spawn(move || {
            bench.examine(&mut |finding| {
                // Nobody listens once the patience has ended.
                let _ = send.send(finding);
            });
        })
        .map_err(|e| OpenError::Aborted(format!("no thread for the examination: {e}")))?;
    let end = Instant::now() + PATIENCE;
    loop {
        match receive.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(finding) => exam.findings.push(finding),
            Err(mpsc::RecvTimeoutError::Disconnected) => return Ok(Examined::Way),
            Err(mpsc::RecvTimeoutError::Timeout) => {
                let found = format!("a call has not come back within {} s", PATIENCE.as_secs());
                let found = Finding::new("file-system", KIND, State::Failed, found);
                exam.findings.push(
                    found.remedy("the mount hangs: see what its server and the kernel log say"),
                );
                return Ok(Examined::All);
            }
        }
    }
}

const KIND: &str = "the file system of the directory";

/// Where the examination takes place.
struct Bench {
    root: PathBuf,
    bucket: PathBuf,
    dir: PathBuf,
    marker: PathBuf,
    marker_body: Vec<u8>,
    direct: bool,
    io: String,
}

impl Bench {
    fn examine(&self, say: &mut dyn FnMut(Finding)) {
        let mount = match self.kind() {
            Ok(mount) => mount,
            Err(error) => {
                let found = format!("{}: {error}", self.root.display());
                let found = Finding::new("file-system", KIND, State::Failed, found);
                say(found.remedy("create the directory, mount it, or name another one"));
                return;
            }
        };
        let words = format!("{mount}; system calls by {}", self.io);
        let about = Finding::new("file-system", KIND, State::Ok, words);
        let read_only = mount.has("ro");
        say(match read_only {
            true => Finding {
                state: State::Failed,
                ..about
            }
            .remedy("mount it for writing (rw)"),
            false => about,
        });
        if read_only {
            return;
        }
        say(match self.room() {
            Ok(left) => room(Some(&left)),
            Err(error) => Finding::new(
                "room",
                "the room left for objects",
                State::NotTried,
                error.to_string(),
            ),
        });
        let created_bucket = !self.bucket.exists();
        if let Err(error) = self.enter() {
            let found = format!("{}: {error}", self.dir.display());
            let found = Finding::new("put", "the right to write", State::Failed, found);
            say(found.remedy("grant this user the right to write in the directory"));
        } else {
            say(self.direct());
            say(self.attributes());
            say(self.rename());
            say(self.durable(&mount));
        }
        self.leave(created_bucket);
    }

    fn kind(&self) -> io::Result<Mount> {
        let path = self.root.canonicalize()?;
        if !path.is_dir() {
            return Err(io::Error::from(io::ErrorKind::NotADirectory));
        }
        let text = fs::read_to_string("/proc/self/mountinfo")?;
        Mount::of(&text, &path).ok_or_else(|| io::Error::other("no mount holds it"))
    }

    fn room(&self) -> io::Result<Room> {
        let about = rustix::fs::statvfs(&self.root)?;
        Ok(Room {
            free_bytes: Some(about.f_bavail.saturating_mul(about.f_frsize)),
            total_bytes: Some(about.f_blocks.saturating_mul(about.f_frsize)),
            // Some file systems have no fixed number of files.
            free_objects: (about.f_files > 0).then_some(about.f_favail),
            of: "the file system; each object takes a file (inode)".to_owned(),
            ..Room::default()
        })
    }

    /// Makes the doctor's directory, with the mark of ownership first.
    fn enter(&self) -> io::Result<()> {
        fs::create_dir_all(&self.dir)?;
        fs::write(&self.marker, &self.marker_body)
    }

    /// Removes what was made, as far as it is empty.
    fn leave(&self, created_bucket: bool) {
        for name in ["direct", "attributes", "rename", "rename.new", "durable"] {
            let _ = fs::remove_file(self.dir.join(name));
        }
        let _ = fs::remove_file(&self.marker);
        let _ = fs::remove_dir(&self.dir);
        if created_bucket {
            let _ = fs::remove_dir(&self.bucket);
        }
    }

    fn direct(&self) -> Finding {
        let asked = "O_DIRECT (--posix-direct)";
        let written = (|| {
            let flags = OFlags::DIRECT.bits().cast_signed();
            let path = self.dir.join("direct");
            let file = File::options()
                .create(true)
                .truncate(true)
                .write(true)
                .custom_flags(flags)
                .open(path)?;
            // Somewhere in two blocks, a whole one is aligned.
            let space = vec![0x42_u8; 2 * BLOCK];
            let at = space.as_ptr().align_offset(BLOCK).min(BLOCK);
            file.write_all_at(&space[at..at + BLOCK], 0)
        })();
        match written {
            Ok(()) => Finding::new("direct", asked, State::Ok, "works, in blocks of 4096 bytes"),
            Err(error) => {
                let state = if self.direct {
                    State::Failed
                } else {
                    State::Differs
                };
                Finding::new("direct", asked, state, error.to_string()).remedy(
                    "leave out --posix-direct; --posix-cache drop empties the page cache instead",
                )
            }
        }
    }

    fn attributes(&self) -> Finding {
        let asked = "extended attributes of files (user.*)";
        let (name, value) = ("user.bucketload", b"doctor");
        let kept = (|| {
            let path = self.dir.join("attributes");
            fs::write(&path, b"x")?;
            rustix::fs::setxattr(&path, name, value, XattrFlags::empty())?;
            let mut found = [0_u8; 16];
            let len = rustix::fs::getxattr(&path, name, &mut found)?;
            Ok::<_, io::Error>(found.get(..len) == Some(&value[..]))
        })();
        let found = match kept {
            Ok(true) => {
                return Finding::new("attributes", asked, State::Ok, "written and read back");
            }
            Ok(false) => "the value read back is another one".to_owned(),
            Err(error) => error.to_string(),
        };
        Finding::new("attributes", asked, State::Differs, found)
            .remedy("nothing in Bucketload needs them; gateways that keep metadata beside files do")
    }

    fn rename(&self) -> Finding {
        let asked = "a rename over a file that exists (--posix-write rename)";
        let (old, new) = (self.dir.join("rename"), self.dir.join("rename.new"));
        let replaced = (|| {
            fs::write(&old, b"old")?;
            fs::write(&new, b"new")?;
            renameat(CWD, &new, CWD, &old)?;
            Ok::<_, io::Error>(fs::read(&old)? == b"new" && !new.exists())
        })();
        let found = match replaced {
            Ok(true) => {
                return Finding::new("rename", asked, State::Ok, "the new file is in its place");
            }
            Ok(false) => "the new file is not in its place".to_owned(),
            Err(error) => error.to_string(),
        };
        let found = Finding::new("rename", asked, State::Differs, found);
        found.remedy(
            "write objects in place (the default): readers may then see a part of a new one",
        )
    }

    fn durable(&self, mount: &Mount) -> Finding {
        let asked = "the way of a small write to the device (--posix-fsync)";
        let timed = (|| {
            let mut file = File::create(self.dir.join("durable"))?;
            let mut times = Vec::new();
            for _ in 0..ROUNDS {
                file.write_all(&[0x42; BLOCK])?;
                let began = Instant::now();
                file.sync_all()?;
                times.push(began.elapsed());
            }
            times.sort_unstable();
            Ok::<_, io::Error>(times[ROUNDS / 2])
        })();
        let (state, found) = match timed {
            Err(error) => (State::Differs, format!("fsync: {error}")),
            Ok(_) if mount.is_memory() => {
                (State::Ok, "memory: nothing outlives the machine".to_owned())
            }
            Ok(median) => {
                let words = format!(
                    "fsync takes {} µs at the median of {ROUNDS}",
                    median.as_micros()
                );
                let unsafe_option = ["nobarrier", "barrier=0", "eatmydata"]
                    .into_iter()
                    .find(|o| mount.has(o));
                match unsafe_option {
                    Some(option) => (
                        State::Differs,
                        format!("{words}, and the mount has {option}"),
                    ),
                    None if median < TOO_FAST => (
                        State::Differs,
                        format!("{words}: too short for a device, so the bytes are not on one"),
                    ),
                    None => (State::Ok, words),
                }
            }
        };
        let finding = Finding::new("fsync", asked, state, found);
        match state {
            State::Ok => finding,
            _ => finding.remedy(
                "what is written here may be lost with the power: say so beside the figures",
            ),
        }
    }
}

/// A line of `/proc/self/mountinfo`.
#[derive(Debug, PartialEq)]
struct Mount {
    point: String,
    kind: String,
    device: String,
    options: String,
}

impl Mount {
    /// The mount that holds `path`: of those above it, the one mounted last at the longest path.
    fn of(mountinfo: &str, path: &Path) -> Option<Self> {
        let mounts = mountinfo.lines().filter_map(Self::parse);
        let above = mounts.filter(|mount| path.starts_with(&mount.point));
        above.max_by_key(|mount| mount.point.len())
    }

    /// Reads a line (proc_pid_mountinfo(5)): `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw`.
    fn parse(line: &str) -> Option<Self> {
        let (before, after) = line.split_once(" - ")?;
        let mut fields = before.split(' ').skip(4);
        let point = fields.next()?.replace("\\040", " ");
        let options = fields.next()?;
        let mut fields = after.split(' ');
        let (kind, device) = (fields.next()?.to_owned(), fields.next()?.to_owned());
        let options = format!("{options},{}", fields.next().unwrap_or_default());
        Some(Self {
            point,
            kind,
            device,
            options,
        })
    }

    fn has(&self, option: &str) -> bool {
        self.options.split(',').any(|set| set == option)
    }

    fn is_memory(&self) -> bool {
        matches!(&*self.kind, "tmpfs" | "ramfs")
    }
}

impl std::fmt::Display for Mount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({}) on {}", self.kind, self.device, self.point)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::Mount;

    #[test]
    fn the_mount_that_holds_a_directory_is_found() {
        let lines = "22 1 0:20 / / rw,relatime shared:1 - ext4 /dev/vda rw\n\
                     30 22 0:30 / /mnt/data\\040set ro,noatime - xfs /dev/vdb rw,nobarrier\n\
                     31 22 0:31 / /mnt/data\\040set rw - tmpfs tmpfs rw,size=1g\n";
        let root = Mount::of(lines, Path::new("/mnt/datasets")).unwrap();
        assert_eq!(root.to_string(), "ext4 (/dev/vda) on /");
        assert!(!root.has("ro"));
        let covered = Mount::of(lines, Path::new("/mnt/data set/b")).unwrap();
        assert!(covered.is_memory() && !covered.has("ro"), "{covered:?}");
        let first = lines.lines().take(2).collect::<Vec<_>>().join("\n");
        let disk = Mount::of(&first, Path::new("/mnt/data set/b")).unwrap();
        assert!(disk.has("ro") && disk.has("nobarrier"), "{disk:?}");
    }
}
