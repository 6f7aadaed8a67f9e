//! Targets that use a libs3 library in the measuring process: on a directory (`libs3:DIR`), or over a gateway that the
//! study starts (`gateway:DIR` over TCP, `gateway-unix:DIR` over a Unix socket).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::cores;
use crate::hpc::gateway::{ETAG, Gateway, REMOTE, ROOT};
use crate::target::OWN_BUCKET;

/// The schemes of these targets.
pub(super) const SCHEMES: [&str; 3] = ["libs3", "gateway", "gateway-unix"];

/// How the library accesses a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LibraryMode {
    /// Directly.
    Embedded,
    /// A gateway over TCP on loopback.
    Remote,
    /// A gateway over a Unix socket.
    RemoteUnix,
}

/// What the library needs while it is measured.
#[derive(Default)]
pub(super) struct LibrarySetup {
    /// Variables of every command.
    pub(super) env: BTreeMap<String, String>,
    gateway: Option<Gateway>,
    /// Holds the Unix socket, because socket paths must be short, however long the study's path is. The last field,
    /// because the directory must outlive the gateway.
    _directory: Option<tempfile::TempDir>,
}

impl LibrarySetup {
    /// Whether a gateway was started.
    pub(super) const fn has_server(&self) -> bool {
        self.gateway.is_some()
    }
}

impl LibraryMode {
    /// The mode and the directory that `url` names.
    pub(super) fn of(url: &str) -> Option<(Self, &str)> {
        let (scheme, dir) = url.split_once(':')?;
        let mode = match scheme {
            "libs3" => Self::Embedded,
            "gateway" => Self::Remote,
            "gateway-unix" => Self::RemoteUnix,
            _ => return None,
        };
        // libs3://BUCKET is a library that finds its objects by itself.
        (!dir.starts_with("//")).then_some((mode, dir))
    }

    /// The options for a command on such a target.
    pub(super) fn args() -> Vec<String> {
        vec![
            format!("--target=libs3://{OWN_BUCKET}"),
            format!("--libs3-library={}", library().display()),
            "--create-bucket".to_owned(),
        ]
    }

    /// Starts what the library needs on the directory `root`, which is created if it does not exist.
    ///
    /// # Errors
    /// Why the library cannot be measured.
    pub(super) fn ready(self, root: &Path) -> Result<LibrarySetup, String> {
        let library = library();
        (crate::drivers::registry().check_library)(library.as_os_str()).map_err(|why| {
            format!(
                "{why}; put libs3.so.4 (from a package, or from cargo build --release) beside the program, into ../lib \
                 relative to it, or into the search path of the dynamic linker"
            )
        })?;
        std::fs::create_dir_all(root).map_err(|e| format!("{}: {e}", root.display()))?;
        let variable = |name: &str, value: String| (name.to_owned(), value);
        let root_text = root.to_string_lossy().into_owned();
        let over = |listen: &str, directory| {
            let started = cores::on(&cores::spare(), || {
                Gateway::start(root, listen).map_err(std::io::Error::other)
            });
            let (gateway, address) = started.map_err(|e| e.to_string())?;
            Ok(LibrarySetup {
                env: BTreeMap::from([variable(REMOTE, address)]),
                gateway: Some(gateway),
                _directory: directory,
            })
        };
        match self {
            // Uses the same cheap entity tags as the gateway, so that the modes differ in nothing else.
            Self::Embedded => Ok(LibrarySetup {
                env: BTreeMap::from([
                    variable(ROOT, root_text),
                    variable(ETAG, "opaque".to_owned()),
                ]),
                ..LibrarySetup::default()
            }),
            Self::Remote => over("127.0.0.1:0", None),
            Self::RemoteUnix => {
                let directory = tempfile::tempdir().map_err(|e| format!("a socket: {e}"))?;
                let listen = format!("unix:{}", directory.path().join("gateway").display());
                over(&listen, Some(directory))
            }
        }
    }
}

/// The library: beside the program (a build), in `../lib` (a package), else wherever the dynamic linker finds it.
pub(super) fn library() -> PathBuf {
    beside(&std::env::current_exe().unwrap_or_default())
}

fn beside(program: &Path) -> PathBuf {
    let near = ["libs3.so.4", "libs3.so", "../lib/libs3.so.4"];
    let mut near = near.iter().map(|name| program.with_file_name(name));
    let found = near.find(|path| path.is_file());
    found.unwrap_or_else(|| PathBuf::from("libs3.so.4"))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{LibraryMode, beside};

    #[test]
    fn the_library_of_a_package_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("bin/bucketload");
        std::fs::create_dir(dir.path().join("bin")).unwrap();
        std::fs::create_dir(dir.path().join("lib")).unwrap();
        assert_eq!(beside(&program), Path::new("libs3.so.4"));
        std::fs::write(dir.path().join("lib/libs3.so.4"), "").unwrap();
        let found = beside(&program).canonicalize().unwrap();
        assert_eq!(
            found,
            dir.path().canonicalize().unwrap().join("lib/libs3.so.4")
        );
    }

    #[test]
    fn the_url_names_mode_and_directory() {
        assert_eq!(
            LibraryMode::of("libs3:{dir}"),
            Some((LibraryMode::Embedded, "{dir}"))
        );
        assert_eq!(
            LibraryMode::of("gateway:/d"),
            Some((LibraryMode::Remote, "/d"))
        );
        assert_eq!(
            LibraryMode::of("gateway-unix:/d"),
            Some((LibraryMode::RemoteUnix, "/d"))
        );
        for other in ["libs3://bucket/p", "file:///d", "mem:", "gateways:/d"] {
            assert_eq!(LibraryMode::of(other), None, "{other}");
        }
    }
}
