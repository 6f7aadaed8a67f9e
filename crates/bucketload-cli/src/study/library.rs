//! Targets that use a libs3 library in the measuring process: on a directory (`libs3:DIR`), or over a gateway that the
//! study starts (`gateway:DIR` over TCP, `gateway-unix:DIR` over a Unix socket).

use std::path::{Path, PathBuf};

use super::cores;
use crate::hpc::gateway::{LibraryMode, LibrarySetup};
use crate::target::OWN_BUCKET;

/// The schemes of these targets.
pub(super) const SCHEMES: [&str; 3] = ["libs3", "gateway", "gateway-unix"];

/// The mode and the directory that `url` names.
pub(super) fn mode_of(url: &str) -> Option<(LibraryMode, &str)> {
    let (scheme, dir) = url.split_once(':')?;
    let mode = match scheme {
        "libs3" => LibraryMode::Embedded,
        "gateway" => LibraryMode::Remote,
        "gateway-unix" => LibraryMode::RemoteUnix,
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
pub(super) fn start(mode: LibraryMode, root: &Path) -> Result<LibrarySetup, String> {
    (crate::drivers::registry().check_library)(library().as_os_str()).map_err(|why| {
        format!(
            "{why}; put libs3.so.4 (from a package, or from cargo build --release) beside the program, into ../lib \
             relative to it, or into the search path of the dynamic linker"
        )
    })?;
    std::fs::create_dir_all(root).map_err(|e| format!("{}: {e}", root.display()))?;
    mode.start(root, &cores::spare())
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

    use super::{LibraryMode, beside, mode_of};

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
            mode_of("libs3:{dir}"),
            Some((LibraryMode::Embedded, "{dir}"))
        );
        assert_eq!(mode_of("gateway:/d"), Some((LibraryMode::Remote, "/d")));
        assert_eq!(
            mode_of("gateway-unix:/d"),
            Some((LibraryMode::RemoteUnix, "/d"))
        );
        for other in ["libs3://bucket/p", "file:///d", "mem:", "gateways:/d"] {
            assert_eq!(mode_of(other), None, "{other}");
        }
    }
}
