//! The driver: the root directory, and the state that one thread's sessions share.

use std::cell::RefCell;
use std::fmt;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::{Rc, Weak};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use bucketload_core::driver::{Capabilities, Driver, DriverFacts, WorkerId};
use bucketload_core::error::{ErrorKind, OpError, OpResult};
use bucketload_core::op::OpClass;
use bucketload_core::record::{ConnectTimes, Probe};
use rustix::fs::{Mode, OFlags, fstatfs, open};

use super::config::{Fsync, Io, Layout, PosixConfig};
use super::engine::Engine;
use super::errors::{Failure, Intent, to_error};
use super::range::HeldFiles;
use super::session::PosixSession;
use super::shared::SharedFiles;

/// Operations with one file per object.
const FILES: [OpClass; 20] = [
    OpClass::Get,
    OpClass::RangeGet,
    OpClass::Put,
    OpClass::PutIfAbsent,
    OpClass::MultipartPut,
    OpClass::Append,
    OpClass::Touch,
    OpClass::Head,
    OpClass::Delete,
    OpClass::DeleteMany,
    OpClass::List,
    OpClass::ListV1,
    OpClass::Copy,
    OpClass::Rename,
    OpClass::MakeBucket,
    OpClass::HeadBucket,
    OpClass::DeleteBucket,
    OpClass::ListBuckets,
    OpClass::RangePut,
    OpClass::Sync,
];
/// Operations with objects at fixed offsets in one file.
pub(super) const SHARED: [OpClass; 3] = [OpClass::Get, OpClass::RangeGet, OpClass::Put];

/// The driver of file systems.
#[derive(Clone)]
pub struct PosixDriver {
    inner: Arc<DriverShared>,
}

bucketload_core::any_driver!(PosixDriver);

/// State that all sessions share.
pub(super) struct DriverShared {
    pub(super) config: PosixConfig,
    pub(super) io: Io,
    /// Why `io` is not the default engine.
    fallback_reason: Option<String>,
    /// Opened by the first session. It keeps the mount in use, and all paths are relative to it, so the
    /// driver never writes by mistake to a directory that was mounted over or unmounted.
    root: OnceLock<OpResult<OwnedFd>>,
    /// Identifies the driver in the threads' registries.
    id: u64,
    /// Number of the next temporary file.
    pub(super) files: AtomicU64,
}

impl DriverShared {
    /// The root directory.
    pub(super) fn root(&self) -> OpResult<&OwnedFd> {
        let root = self.root.get_or_init(|| {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let path = &self.config.root;
            open(path, flags, Mode::empty()).map_err(|errno| {
                let failure = Failure::new("open", errno);
                to_error(failure, Intent::Make, path.as_os_str().as_encoded_bytes())
            })
        });
        root.as_ref().map_err(Clone::clone)
    }
}

impl fmt::Debug for PosixDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PosixDriver")
            .field("config", &self.inner.config)
            .field("io", &self.inner.io)
            .finish_non_exhaustive()
    }
}

impl PosixDriver {
    /// A driver for the directory that `config` names. Does not open it yet.
    ///
    /// # Errors
    /// When the configuration cannot work, or requests an unavailable engine.
    pub fn new(config: PosixConfig) -> Result<Self, String> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        config.check()?;
        let (io, fallback_reason) = match (config.io, Engine::ring_is_usable()) {
            (Some(Io::Uring), Err(why)) => {
                return Err(format!("io_uring cannot be used: {why}; use threads"));
            }
            (None, Err(why)) => (Io::Threads, Some(format!("io_uring: {why}"))),
            (None, Ok(())) => (Io::Uring, None),
            (Some(io), _) => (io, None),
        };
        Ok(Self {
            inner: Arc::new(DriverShared {
                config,
                io,
                fallback_reason,
                root: OnceLock::new(),
                id: NEXT.fetch_add(1, Ordering::Relaxed),
                files: AtomicU64::new(0),
            }),
        })
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &PosixConfig {
        &self.inner.config
    }

    /// How system calls are made.
    #[must_use]
    pub fn io(&self) -> Io {
        self.inner.io
    }
}

impl Driver for PosixDriver {
    type Session = PosixSession;

    fn capabilities(&self) -> Capabilities {
        let config = &self.inner.config;
        let mut classes = match config.layout {
            Layout::Files => FILES.to_vec(),
            Layout::Shared => SHARED.to_vec(),
        };
        // O_DIRECT cannot access ranges that are not multiples of a block.
        let unaligned = [OpClass::Append, OpClass::RangePut];
        classes.retain(|class| !unaligned.contains(class) || !config.direct);
        Capabilities {
            classes,
            verify: true,
            connections: false,
            parts_in_flight: false,
        }
    }

    fn facts(&self) -> DriverFacts {
        let config = &self.inner.config;
        let mut engine = self.inner.io.name().to_owned();
        if let Some(reason) = &self.inner.fallback_reason {
            engine = format!("{engine} ({reason})");
        }
        let on = |flag: bool| if flag { "on" } else { "off" }.to_owned();
        let mut settings = vec![
            ("O_DIRECT".to_owned(), on(config.direct)),
            ("fsync".to_owned(), fsync(config)),
            ("write".to_owned(), config.write.to_string()),
            ("page cache".to_owned(), config.cache.to_string()),
            ("layout".to_owned(), layout(config)),
            ("block".to_owned(), config.block.to_string()),
        ];
        if let Some(name) = self.inner.root().ok().and_then(file_system) {
            settings.insert(0, ("file system".to_owned(), name));
        }
        DriverFacts {
            driver: "posix".to_owned(),
            engine,
            endpoints: vec![format!("file://{}", config.root.display())],
            settings,
        }
    }

    async fn open(&self, worker: WorkerId, probe: &mut Probe) -> OpResult<PosixSession> {
        self.inner.root()?;
        let local = ThreadState::of_this_thread(&self.inner)?;
        probe.connected(ConnectTimes::default());
        Ok(PosixSession::new(local, worker))
    }
}

fn fsync(config: &PosixConfig) -> String {
    let text = match config.fsync {
        Fsync::Never => "never (data may be in memory only)",
        Fsync::Close => "before close",
        Fsync::Write => "with each write",
    };
    text.to_owned()
}

fn layout(config: &PosixConfig) -> String {
    match config.layout {
        Layout::Files => "one file per object".to_owned(),
        Layout::Shared => format!("one file per directory, slots of {} bytes", config.slot),
    }
}

/// The name of the file system, from its magic number (statfs(2)).
fn file_system(root: &OwnedFd) -> Option<String> {
    let stat = fstatfs(root.as_fd()).ok()?;
    // The field's width differs between architectures; the magic numbers have 32 bits.
    let magic = stat.f_type as u32;
    let name = match magic {
        0xef53 => "ext2/3/4",
        0x5846_5342 => "XFS",
        0x9123_683e => "Btrfs",
        0x2fc1_2fc1 => "ZFS",
        0x0102_1994 => "tmpfs",
        0x794c_7630 => "overlayfs",
        0x6969 => "NFS",
        0x00c3_6400 => "CephFS",
        0x6573_5546 => "FUSE",
        0x0bd0_0bd0 => "Lustre",
        0x4750_4653 => "GPFS",
        0x1983_0326 => "BeeGFS",
        0xff53_4d42 | 0xfe53_4d42 => "SMB",
        other => return Some(format!("{other:#x}")),
    };
    Some(name.to_owned())
}

/// State that the sessions of one thread share.
pub(super) struct ThreadState {
    pub(super) driver: Arc<DriverShared>,
    pub(super) engine: Engine,
    pub(super) shared: SharedFiles,
    /// Files of objects that stay open between operations.
    pub(super) held: HeldFiles,
}

impl fmt::Debug for ThreadState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Local")
            .field("engine", &self.engine)
            .finish_non_exhaustive()
    }
}

thread_local! {
    /// Each driver's state on this thread, while a session uses it.
    static LOCAL: RefCell<Vec<(u64, Weak<ThreadState>)>> = const { RefCell::new(Vec::new()) };
}

impl ThreadState {
    fn of_this_thread(driver: &Arc<DriverShared>) -> OpResult<Rc<Self>> {
        LOCAL.with_borrow_mut(|all| {
            all.retain(|(_, local)| local.strong_count() > 0);
            let known = all.iter().find(|(id, _)| *id == driver.id);
            if let Some(local) = known.and_then(|(_, local)| local.upgrade()) {
                return Ok(local);
            }
            let engine = Engine::new(driver).map_err(|e| {
                OpError::new(
                    ErrorKind::Connect,
                    match driver.io {
                        Io::Uring => {
                            format!(
                                "io_uring on this thread: {e}; --posix-io threads works without it"
                            )
                        }
                        Io::Threads | Io::Sync => format!("the directory, on this thread: {e}"),
                    },
                )
            })?;
            let local = Rc::new(Self {
                driver: Arc::clone(driver),
                engine,
                shared: SharedFiles::default(),
                held: HeldFiles::default(),
            });
            all.push((driver.id, Rc::downgrade(&local)));
            Ok(local)
        })
    }
}
