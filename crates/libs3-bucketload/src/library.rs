//! The state of the library: how often it was initialised, what the environment says, and the
//! stores that are open, found by host name.
//!
//! | variable | meaning |
//! |---|---|
//! | `BUCKETLOAD_S3_ROOT` | directory of the store, whatever host the client names |
//! | `BUCKETLOAD_S3_REMOTE` | gateway of the store instead: `tcp://HOST:PORT` or `unix:PATH` |
//! | `BUCKETLOAD_S3_REMOTE_TOKEN_FILE` | file with the token that the gateway demands |
//! | `BUCKETLOAD_S3_ETAG` | `md5` (default) or `opaque`, which costs nothing |
//! | `BUCKETLOAD_S3_SYNC` | what a write waits for: `none` (default), `file`, `directory` |
//! | `BUCKETLOAD_S3_INDEX_ENTRIES` | most entries in the indexes of large directories |
//!
//! Without the first two the host name itself is the directory, if it is a path that begins with
//! `/`, `./` or `../` or has the scheme `file://`, or the gateway, if it begins as its address does. Threads remember the store they used last,
//! so that a request takes no lock; a number that grows with every change makes them ask again.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError, Weak};

use bucketload_gateway::{AccessToken, Address};
use bucketload_store::{Durability, EtagMode, PosixOptions};

use crate::arguments::Where;
use crate::backend::Backend;
use crate::reply::Failure;
use crate::status::Status;

/// Longest default host name, in bytes.
const MAX_HOST_BYTES: usize = 255;

/// Where a store is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    Directory(PathBuf),
    /// The address of a gateway.
    Gateway(String),
}

/// What the environment says.
#[derive(Debug, Clone)]
struct Settings {
    place: Option<Place>,
    token_file: Option<PathBuf>,
    etag: EtagMode,
    durability: Durability,
    index_entries: Option<usize>,
}

impl Settings {
    /// Reads the environment. The error says which variable has which fault.
    fn read(variable: impl Fn(&str) -> Option<OsString>) -> Result<Self, String> {
        let text = |name: &str| variable(name).filter(|value| !value.is_empty());
        let wrong = |name: &str, value: &OsStr, allowed: &str| {
            format!("{name}: {value:?} is not one of {allowed}")
        };
        let etag = match text("BUCKETLOAD_S3_ETAG") {
            None => EtagMode::Md5,
            Some(value) if value == "md5" => EtagMode::Md5,
            Some(value) if value == "opaque" => EtagMode::Opaque,
            Some(value) => return Err(wrong("BUCKETLOAD_S3_ETAG", &value, "md5, opaque")),
        };
        let durability = match text("BUCKETLOAD_S3_SYNC") {
            None => Durability::None,
            Some(value) if value == "none" => Durability::None,
            Some(value) if value == "file" => Durability::File,
            Some(value) if value == "directory" => Durability::FileAndDirectory,
            Some(value) => {
                let allowed = "none, file, directory";
                return Err(wrong("BUCKETLOAD_S3_SYNC", &value, allowed));
            }
        };
        let index_entries = match text("BUCKETLOAD_S3_INDEX_ENTRIES") {
            None => None,
            Some(value) => match value.to_str().and_then(|text| text.parse().ok()) {
                Some(number) => Some(number),
                None => {
                    let allowed = "the numbers from 0";
                    return Err(wrong("BUCKETLOAD_S3_INDEX_ENTRIES", &value, allowed));
                }
            },
        };
        let root = text("BUCKETLOAD_S3_ROOT").map(|root| Place::Directory(root.into()));
        let remote = match text("BUCKETLOAD_S3_REMOTE") {
            None => None,
            Some(value) => match value.to_str().and_then(gateway) {
                Some(gateway) => Some(gateway),
                None => {
                    let allowed = "tcp://HOST:PORT, unix:PATH";
                    return Err(wrong("BUCKETLOAD_S3_REMOTE", &value, allowed));
                }
            },
        };
        if root.is_some() && remote.is_some() {
            let both = "BUCKETLOAD_S3_ROOT and BUCKETLOAD_S3_REMOTE are both set: unset one";
            return Err(both.to_owned());
        }
        if remote.is_some() {
            let own = ["ETAG", "SYNC", "INDEX_ENTRIES"].map(|end| format!("BUCKETLOAD_S3_{end}"));
            if let Some(name) = own.iter().find(|name| text(name).is_some()) {
                return Err(format!("{name} is a matter of the gateway: unset it"));
            }
        }
        Ok(Self {
            place: root.or(remote),
            token_file: text("BUCKETLOAD_S3_REMOTE_TOKEN_FILE").map(PathBuf::from),
            etag,
            durability,
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
    open: HashMap<Place, Arc<Backend>>,
}

static STATE: Mutex<Option<State>> = Mutex::new(None);
static GENERATION: AtomicU64 = AtomicU64::new(0);
/// This process is a child of the one that opened what is open.
static FORKED: AtomicBool = AtomicBool::new(false);

/// What a thread used last.
struct Recent {
    generation: u64,
    host: Option<Vec<u8>>,
    backend: Weak<Backend>,
}

thread_local! {
    static RECENT: RefCell<Option<Recent>> = const { RefCell::new(None) };
}

/// In the child of a fork: what the parent has open is the parent's.
extern "C" fn in_child() {
    FORKED.store(true, Ordering::Relaxed);
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

fn state<T>(body: impl FnOnce(&mut State) -> T) -> T {
    static AT_FORK: Once = Once::new();
    AT_FORK.call_once(|| {
        // SAFETY: the function only stores to atomics, which a child of a fork may do. Without
        // memory for the entry a child shares temporary names with its parent, whose files are
        // created exclusively, so that it fails instead of mixing objects up.
        let _ = unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
    let mut guard: MutexGuard<'_, Option<State>> =
        STATE.lock().unwrap_or_else(PoisonError::into_inner);
    let state = guard.get_or_insert_default();
    if FORKED.swap(false, Ordering::Relaxed) {
        for (_, parents) in state.open.drain() {
            // Dropping it would remove the temporary files of the parent.
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

/// Initialises the library; every call but the first only counts.
pub(crate) fn initialize(default_host: Option<&[u8]>) -> Result<(), Status> {
    if default_host.is_some_and(|host| host.len() >= MAX_HOST_BYTES) {
        return Err(Status::UriTooLong);
    }
    state(|state| {
        if state.references == 0 {
            // The environment may have changed since the library was used last.
            state.settings = None;
            state.default_host = default_host.map(<[u8]>::to_vec);
            GENERATION.fetch_add(1, Ordering::Release);
        }
        state.references += 1;
        match state.settings() {
            Ok(_) => Ok(()),
            Err(_) => Err(Status::FailedToInitializeRequest),
        }
    })
}

/// Takes one initialisation back; the last closes all stores.
pub(crate) fn deinitialize() {
    let closed = state(|state| {
        state.references = state.references.saturating_sub(1);
        if state.references > 0 {
            return HashMap::new();
        }
        GENERATION.fetch_add(1, Ordering::Release);
        state.default_host = None;
        state.settings = None;
        std::mem::take(&mut state.open)
    });
    // Closing makes system calls, for which no other thread must wait.
    drop(closed);
}

/// The host name that stands for NULL.
pub(crate) fn default_host() -> Vec<u8> {
    state(|state| state.default_host.clone()).unwrap_or_else(|| b"s3.amazonaws.com".to_vec())
}

/// The gateway that a text names.
fn gateway(text: &str) -> Option<Place> {
    let named = ["tcp://", "unix:"]
        .iter()
        .any(|start| text.starts_with(start));
    let address = text.parse::<Address>().ok().filter(|_| named)?;
    Some(Place::Gateway(address.to_string()))
}

/// Where a host name leads, if it is not the name of a host.
pub(crate) fn place_of_host(host: &[u8]) -> Option<Place> {
    let path = host.strip_prefix(b"file://").unwrap_or(host);
    let is_path = [&b"/"[..], b"./", b"../"]
        .iter()
        .any(|start| path.starts_with(start));
    if is_path {
        return Some(Place::Directory(OsString::from_vec(path.to_vec()).into()));
    }
    gateway(std::str::from_utf8(host).ok()?)
}

/// The store for a host name; `None` is the default host.
pub(crate) fn backend(host: Option<&[u8]>) -> Where {
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
    // A thread that is ending asks every time.
    let _ = RECENT.try_with(|recent| {
        recent.replace(Some(Recent {
            generation,
            host: host.map(<[u8]>::to_vec),
            backend: Arc::downgrade(&backend),
        }))
    });
    Ok(backend)
}

fn find(state: &mut State, host: Option<&[u8]>) -> Where {
    let settings = match state.settings() {
        Ok(settings) => settings.clone(),
        Err(fault) => {
            return Err(Failure::new(
                Status::FailedToInitializeRequest,
                fault.clone(),
            ));
        }
    };
    let place = settings.place.clone().or_else(|| {
        let host = host.or(state.default_host.as_deref())?;
        place_of_host(host)
    });
    let Some(place) = place else {
        return Err(nowhere(host.or(state.default_host.as_deref())));
    };
    if let Some(open) = state.open.get(&place) {
        return Ok(Arc::clone(open));
    }
    let opened = open(&settings, &place)?;
    state.open.insert(place, Arc::clone(&opened));
    Ok(opened)
}

fn open(settings: &Settings, place: &Place) -> Where {
    let address = match place {
        Place::Directory(root) => {
            return Ok(Arc::new(Backend::open(settings.options(root.clone()))?));
        }
        Place::Gateway(address) => address,
    };
    let failed = |fault: String| Failure::new(Status::FailedToInitializeRequest, fault);
    let address: Address = address.parse().map_err(|_| failed(address.clone()))?;
    let token = settings.token_file.as_deref();
    let token = token.map(|file| AccessToken::read("the gateway's token", file));
    let token = token.transpose().map_err(failed)?;
    Ok(Arc::new(Backend::remote(address, token)))
}

fn nowhere(host: Option<&[u8]>) -> Failure {
    let host = OsStr::from_bytes(host.unwrap_or(b"s3.amazonaws.com"));
    Failure::new(
        Status::NameLookupError,
        format!(
            "host {host:?} is no store: set BUCKETLOAD_S3_ROOT or BUCKETLOAD_S3_REMOTE, or give an \
         absolute path as host"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_a_store_only_if_it_looks_like_one() {
        let place = |host: &str| place_of_host(host.as_bytes());
        let directory = |path: &str| Some(Place::Directory(path.into()));
        let gateway = |address: &str| Some(Place::Gateway(address.to_owned()));
        assert_eq!(place("/scratch/s3"), directory("/scratch/s3"));
        assert_eq!(place("file:///scratch/s3"), directory("/scratch/s3"));
        assert_eq!(place("./s3"), directory("./s3"));
        assert_eq!(place("tcp://node7:9020"), gateway("tcp://node7:9020"));
        assert_eq!(place("unix:/run/s3"), gateway("unix:/run/s3"));
        assert_eq!(place("localhost:9000"), None);
        assert_eq!(place("s3.amazonaws.com"), None);
    }

    #[test]
    fn a_store_is_here_or_behind_a_gateway() {
        let both = Settings::read(|asked| match asked {
            "BUCKETLOAD_S3_ROOT" => Some("/s3".into()),
            "BUCKETLOAD_S3_REMOTE" => Some("unix:/s".into()),
            _ => None,
        });
        assert!(both.unwrap_err().contains("unset one"));
        let foreign = Settings::read(|asked| match asked {
            "BUCKETLOAD_S3_REMOTE" => Some("unix:/s".into()),
            "BUCKETLOAD_S3_ETAG" => Some("opaque".into()),
            _ => None,
        });
        assert!(foreign.unwrap_err().contains("BUCKETLOAD_S3_ETAG"));
    }

    #[test]
    fn a_wrong_setting_is_named() {
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
        let settings = with("BUCKETLOAD_S3_ETAG", "opaque").unwrap();
        assert_eq!(settings.etag, EtagMode::Opaque);
        assert_eq!(settings.place, None);
    }
}
