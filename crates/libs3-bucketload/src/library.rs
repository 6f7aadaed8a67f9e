//! The state of the library: the number of initialisations, the settings from the environment, and the
//! open stores by host name.
//!
//! | variable | meaning |
//! |---|---|
//! | `BUCKETLOAD_S3_ROOT` | directory of the store, regardless of the host that the client names |
//! | `BUCKETLOAD_S3_REMOTE` | gateway to use instead: `tcp://HOST:PORT` or `unix:PATH` |
//! | `BUCKETLOAD_S3_REMOTE_TOKEN_FILE` | file with the token that the gateway requires |
//! | `BUCKETLOAD_S3_ETAG` | `opaque` (default), which costs nothing, or `md5` |
//! | `BUCKETLOAD_S3_SYNC` | what a write waits for: `none` (default), `file`, `directory` |
//! | `BUCKETLOAD_S3_INDEX_ENTRIES` | maximum number of entries in the indexes of large directories |
//!
//! Without the first two, the host name is the directory if it begins with `/`, `./`, `../` or
//! `file://`, and the gateway if it begins like a gateway address. Each thread caches the store that it
//! used last, so requests take no lock. A generation number, which grows with every change, invalidates
//! the caches.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError, Weak};

use bucketload_gateway::{AccessToken, Address};
use bucketload_store::{Durability, EtagMode, PosixOptions};

use crate::backend::{Backend, OpenBackend};
use crate::complaints;
use crate::reply::Failure;
use crate::status::Status;

/// Maximum length of the default host name, in bytes.
const MAX_HOST_BYTES: usize = 255;

/// The location of a store.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum StoreLocation {
    Directory(PathBuf),
    /// The address of a gateway.
    Gateway(String),
}

/// The settings from the environment.
#[derive(Debug, Clone)]
struct Settings {
    location: Option<StoreLocation>,
    token_file: Option<PathBuf>,
    etag: EtagMode,
    durability: Durability,
    index_entries: Option<usize>,
}

/// Parses the value of the variable `name`, if it is set. The error names the allowed values.
fn parse<T>(
    name: &str,
    value: Option<OsString>,
    allowed: &str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<Option<T>, String> {
    let Some(value) = value else { return Ok(None) };
    let parsed = value.to_str().and_then(parse);
    parsed
        .map(Some)
        .ok_or_else(|| format!("{name}: {value:?} is not one of {allowed}: change or unset it"))
}

impl Settings {
    /// Reads the environment. An error names the variable and the problem.
    fn read(variable: impl Fn(&str) -> Option<OsString>) -> Result<Self, String> {
        let text = |name: &str| variable(name).filter(|value| !value.is_empty());
        let name = "BUCKETLOAD_S3_ETAG";
        let etag = parse(name, text(name), "md5, opaque", |value| match value {
            "md5" => Some(EtagMode::Md5),
            "opaque" => Some(EtagMode::Opaque),
            _ => None,
        })?;
        let name = "BUCKETLOAD_S3_SYNC";
        let durability = parse(
            name,
            text(name),
            "none, file, directory",
            |value| match value {
                "none" => Some(Durability::None),
                "file" => Some(Durability::File),
                "directory" => Some(Durability::FileAndDirectory),
                _ => None,
            },
        )?;
        let name = "BUCKETLOAD_S3_INDEX_ENTRIES";
        let number = |value: &str| value.parse().ok();
        let index_entries = parse(name, text(name), "the numbers from 0", number)?;
        let root = text("BUCKETLOAD_S3_ROOT").map(|root| StoreLocation::Directory(root.into()));
        let name = "BUCKETLOAD_S3_REMOTE";
        let remote = parse(name, text(name), "tcp://HOST:PORT, unix:PATH", gateway)?;
        if root.is_some() && remote.is_some() {
            let both = "BUCKETLOAD_S3_ROOT and BUCKETLOAD_S3_REMOTE are both set: unset one";
            return Err(both.to_owned());
        }
        if remote.is_some() {
            let local = ["ETAG", "SYNC", "INDEX_ENTRIES"].map(|end| format!("BUCKETLOAD_S3_{end}"));
            if let Some(name) = local.iter().find(|name| text(name).is_some()) {
                return Err(format!(
                    "{name}: the gateway decides this setting; unset it"
                ));
            }
        }
        Ok(Self {
            location: root.or(remote),
            token_file: text("BUCKETLOAD_S3_REMOTE_TOKEN_FILE").map(PathBuf::from),
            etag: etag.unwrap_or(EtagMode::Opaque),
            durability: durability.unwrap_or_default(),
            index_entries,
        })
    }

    fn options(&self, root: PathBuf) -> PosixOptions {
        let mut options = PosixOptions::new(root);
        options.etag = self.etag;
        options.durability = self.durability;
        if let Some(entries) = self.index_entries {
            options.index_entries = entries;
        }
        options
    }
}

#[derive(Default)]
struct State {
    references: u64,
    default_host: Option<Vec<u8>>,
    settings: Option<Result<Settings, String>>,
    open: HashMap<StoreLocation, Arc<Backend>>,
}

static STATE: Mutex<Option<State>> = Mutex::new(None);
static GENERATION: AtomicU64 = AtomicU64::new(0);
/// Whether this process is a fork of the one that opened the stores.
static FORKED: AtomicBool = AtomicBool::new(false);

/// The store that a thread used last.
struct Recent {
    generation: u64,
    host: Option<Vec<u8>>,
    backend: Weak<Backend>,
}

thread_local! {
    static RECENT: RefCell<Option<Recent>> = const { RefCell::new(None) };
}

/// Runs in the child of a fork: the open stores belong to the parent.
extern "C" fn in_child() {
    FORKED.store(true, Ordering::Relaxed);
    complaints::forget();
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

fn state<T>(body: impl FnOnce(&mut State) -> T) -> T {
    static AT_FORK: Once = Once::new();
    AT_FORK.call_once(|| {
        // SAFETY: the function only stores to atomics, which is allowed in the child of a fork. If
        // there is no memory to register it, a child shares temporary names with its parent. Files
        // are created exclusively, so the child then fails instead of mixing up objects.
        let _ = unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
    let mut guard: MutexGuard<'_, Option<State>> =
        STATE.lock().unwrap_or_else(PoisonError::into_inner);
    let state = guard.get_or_insert_default();
    if FORKED.swap(false, Ordering::Relaxed) {
        for (_, parents) in state.open.drain() {
            // Leaked: dropping it would remove the parent's temporary files.
            let _ = Arc::into_raw(parents);
        }
    }
    body(state)
}

impl State {
    fn settings(&mut self) -> &Result<Settings, String> {
        self.settings
            .get_or_insert_with(|| Settings::read(|name| std::env::var_os(name)))
    }
}

/// Initialises the library. Every call but the first only counts.
pub(crate) fn initialize(default_host: Option<&[u8]>) -> Result<(), Status> {
    if default_host.is_some_and(|host| host.len() >= MAX_HOST_BYTES) {
        complaints::not_initialized("the name of the default host is longer than 254 bytes");
        return Err(Status::UriTooLong);
    }
    state(|state| {
        if state.references == 0 {
            // The environment may have changed since the library was last used.
            state.settings = None;
            state.default_host = default_host.map(<[u8]>::to_vec);
            GENERATION.fetch_add(1, Ordering::Release);
        }
        state.references += 1;
        match state.settings() {
            Ok(_) => Ok(()),
            Err(why) => {
                complaints::not_initialized(why);
                Err(Status::FailedToInitializeRequest)
            }
        }
    })
}

/// Reverts one initialisation. The last call closes all stores.
pub(crate) fn deinitialize() {
    let closed = state(|state| {
        state.references = state.references.saturating_sub(1);
        if state.references > 0 {
            return HashMap::new();
        }
        complaints::summarize();
        GENERATION.fetch_add(1, Ordering::Release);
        state.default_host = None;
        state.settings = None;
        std::mem::take(&mut state.open)
    });
    // Closed here, after the lock is released, because closing makes system calls.
    drop(closed);
}

/// The host name used for NULL.
pub(crate) fn default_host() -> Vec<u8> {
    state(|state| state.default_host.clone()).unwrap_or_else(|| b"s3.amazonaws.com".to_vec())
}

/// The gateway with the address `text`.
fn gateway(text: &str) -> Option<StoreLocation> {
    let named = ["tcp://", "unix:"]
        .iter()
        .any(|start| text.starts_with(start));
    let address = text.parse::<Address>().ok().filter(|_| named)?;
    Some(StoreLocation::Gateway(address.to_string()))
}

/// The store location given by a host name, if it is not the name of a host.
pub(crate) fn location_of_host(host: &[u8]) -> Option<StoreLocation> {
    let path = host.strip_prefix(b"file://").unwrap_or(host);
    let is_path = [&b"/"[..], b"./", b"../"]
        .iter()
        .any(|start| path.starts_with(start));
    if is_path {
        return Some(StoreLocation::Directory(
            OsString::from_vec(path.to_vec()).into(),
        ));
    }
    gateway(std::str::from_utf8(host).ok()?)
}

/// The store for a host name; `None` means the default host.
pub(crate) fn backend(host: Option<&[u8]>) -> OpenBackend {
    let host = host.filter(|host| !host.is_empty());
    let generation = GENERATION.load(Ordering::Acquire);
    let recent = RECENT.try_with(|recent| {
        let recent = recent.borrow();
        let recent = recent.as_ref()?;
        if recent.generation != generation || recent.host.as_deref() != host {
            return None;
        }
        recent.backend.upgrade()
    });
    if let Ok(Some(backend)) = recent {
        return Ok(backend);
    }
    let backend = state(|state| find(state, host))?;
    // Fails if the thread is exiting, which then cannot cache the store.
    let _ = RECENT.try_with(|recent| {
        recent.replace(Some(Recent {
            generation,
            host: host.map(<[u8]>::to_vec),
            backend: Arc::downgrade(&backend),
        }))
    });
    Ok(backend)
}

fn find(state: &mut State, host: Option<&[u8]>) -> OpenBackend {
    let settings = match state.settings() {
        Ok(settings) => settings.clone(),
        Err(fault) => {
            return Err(Failure::new(
                Status::FailedToInitializeRequest,
                fault.clone(),
            ));
        }
    };
    let location = settings.location.clone().or_else(|| {
        let host = host.or(state.default_host.as_deref())?;
        location_of_host(host)
    });
    let Some(location) = location else {
        return Err(no_store(host.or(state.default_host.as_deref())));
    };
    if let Some(open) = state.open.get(&location) {
        return Ok(Arc::clone(open));
    }
    let opened = open(&settings, &location)?;
    state.open.insert(location, Arc::clone(&opened));
    Ok(opened)
}

fn open(settings: &Settings, location: &StoreLocation) -> OpenBackend {
    let address = match location {
        StoreLocation::Directory(root) => {
            return Ok(Arc::new(Backend::open(settings.options(root.clone()))?));
        }
        StoreLocation::Gateway(address) => address,
    };
    let failed = |fault: String| Failure::new(Status::FailedToInitializeRequest, fault);
    let address: Address = address.parse().map_err(|_| failed(address.clone()))?;
    let token = settings.token_file.as_deref();
    let token = token.map(|file| AccessToken::read("the gateway's token", file));
    let token = token.transpose().map_err(failed)?;
    Ok(Arc::new(Backend::remote(address, token)))
}

fn no_store(host: Option<&[u8]>) -> Failure {
    let host = OsStr::from_bytes(host.unwrap_or(b"s3.amazonaws.com"));
    Failure::new(
        Status::NameLookupError,
        format!(
            "host {host:?} is not a store: set BUCKETLOAD_S3_ROOT or BUCKETLOAD_S3_REMOTE, or use an \
            absolute path as host"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_a_store_only_if_it_has_that_form() {
        let location = |host: &str| location_of_host(host.as_bytes());
        let directory = |path: &str| Some(StoreLocation::Directory(path.into()));
        let gateway = |address: &str| Some(StoreLocation::Gateway(address.to_owned()));
        assert_eq!(location("/scratch/s3"), directory("/scratch/s3"));
        assert_eq!(location("file:///scratch/s3"), directory("/scratch/s3"));
        assert_eq!(location("./s3"), directory("./s3"));
        assert_eq!(location("tcp://node7:9020"), gateway("tcp://node7:9020"));
        assert_eq!(location("unix:/run/s3"), gateway("unix:/run/s3"));
        assert_eq!(location("localhost:9000"), None);
        assert_eq!(location("s3.amazonaws.com"), None);
    }

    #[test]
    fn a_store_is_either_local_or_behind_a_gateway() {
        let both = Settings::read(|name| match name {
            "BUCKETLOAD_S3_ROOT" => Some("/s3".into()),
            "BUCKETLOAD_S3_REMOTE" => Some("unix:/s".into()),
            _ => None,
        });
        assert!(both.unwrap_err().contains("unset one"));
        let foreign = Settings::read(|name| match name {
            "BUCKETLOAD_S3_REMOTE" => Some("unix:/s".into()),
            "BUCKETLOAD_S3_ETAG" => Some("opaque".into()),
            _ => None,
        });
        assert!(foreign.unwrap_err().contains("BUCKETLOAD_S3_ETAG"));
    }

    #[test]
    fn settings_are_checked_and_errors_name_them() {
        let with = |name: &'static str, value: &'static str| {
            Settings::read(move |asked| (asked == name).then(|| value.into()))
        };
        for (name, value) in [
            ("BUCKETLOAD_S3_ETAG", "sha1"),
            ("BUCKETLOAD_S3_SYNC", "yes"),
            ("BUCKETLOAD_S3_INDEX_ENTRIES", "-1"),
            ("BUCKETLOAD_S3_REMOTE", "node7"),
        ] {
            let fault = with(name, value).unwrap_err();
            assert!(fault.contains(name) && fault.contains(value), "{fault}");
        }
        let settings = with("BUCKETLOAD_S3_ETAG", "md5").unwrap();
        assert_eq!(settings.etag, EtagMode::Md5);
        let settings = with("BUCKETLOAD_S3_SYNC", "file").unwrap();
        assert_eq!(
            settings.etag,
            EtagMode::Opaque,
            "tags cost nothing unless asked for"
        );
        assert_eq!(settings.location, None);
    }
}
