//! The file system of the image: the program, the libraries of this machine that it needs, certificates and a user.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::elf::Elf;
use super::oci::{HOME, USER};
use super::tree::Tree;
use crate::files;
use crate::sh::{Result, ensure, output};

/// Library directories of distributions; Debian's own directories are searched first.
const LIBRARIES: [&str; 4] = ["/lib64", "/usr/lib64", "/lib", "/usr/lib"];
/// Mozilla's certificates from the package ca-certificates, without others that this machine trusts.
const CERTIFICATES: &str = "/usr/share/ca-certificates/mozilla";
/// Packages whose files the image carries, and their licences.
const CARRIED: [(&str, &str); 3] = [
    ("libc6", "GNU C library, LGPL-2.1-or-later"),
    (
        "libgcc-s1",
        "GCC support library, GPL-3.0-or-later with the GCC Runtime Library Exception",
    ),
    ("ca-certificates", "Mozilla's certificates, MPL-2.0"),
];

/// The image's files besides the program's own.
///
/// # Errors
/// This machine lacks a library that the program needs, or its licence.
pub(super) fn root(elf: &Elf) -> Result<Tree> {
    let mut root = Tree::default();
    let triplet = elf.machine()?.triplet;
    let mut open = elf.libraries.clone();
    let mut known: Vec<String> = Vec::new();
    while let Some(name) = open.pop() {
        // The loader is also a library; it goes where the program looks for it.
        if known.contains(&name) || elf.loader.ends_with(&format!("/{name}")) {
            continue;
        }
        let path = library(&name, triplet)?;
        let bytes = files::bytes(&path)?;
        open.extend(
            Elf::read(&bytes)
                .map_err(|e| format!("{}: {e}", path.display()))?
                .libraries,
        );
        root.file(inside(&path), 0o755, bytes);
        known.push(name);
    }
    let loader = Path::new(&elf.loader);
    root.file(inside(loader), 0o755, files::bytes(loader)?);
    root.file("etc/ssl/certs/ca-certificates.crt", 0o644, certificates()?);
    root.file("etc/passwd", 0o644, format!(
        "root:x:0:0:root:/:/sbin/nologin\nbucketload:x:{USER}:{USER}:bucketload:/{HOME}:/sbin/nologin\n"
    ));
    root.file(
        "etc/group",
        0o644,
        format!("root:x:0:\nbucketload:x:{USER}:\n"),
    );
    root.file("etc/nsswitch.conf", 0o644, "hosts: files dns\n");
    root.dir(HOME, 0o755, USER);
    root.dir("tmp", 0o1777, 0);
    licenses(&mut root)?;
    Ok(root)
}

fn library(name: &str, triplet: &str) -> Result<PathBuf> {
    let debian = [format!("/lib/{triplet}"), format!("/usr/lib/{triplet}")];
    let dirs = debian.iter().map(String::as_str).chain(LIBRARIES);
    let mut paths = dirs.map(|dir| Path::new(dir).join(name));
    paths
        .find(|path| path.is_file())
        .ok_or_else(|| format!("the program needs {name}, which this machine does not have"))
}

/// The path inside the image for a path of this machine.
fn inside(path: &Path) -> &str {
    path.to_str().unwrap_or_default().trim_start_matches('/')
}

fn certificates() -> Result<Vec<u8>> {
    let failed = |e| format!("{e}; install the package ca-certificates");
    let mut paths = files::list(Path::new(CERTIFICATES)).map_err(failed)?;
    paths.retain(|path| files::is_kind(path, "crt"));
    let mut all = Vec::new();
    for path in paths {
        all.extend(files::bytes(&path)?);
        if all.last() != Some(&b'\n') {
            all.push(b'\n');
        }
    }
    ensure(!all.is_empty(), || {
        failed(format!("{CERTIFICATES}: is empty"))
    })?;
    Ok(all)
}

/// Adds a list of the files carried from this machine, with versions, sources and licences.
fn licenses(root: &mut Tree) -> Result {
    let mut list = "# What this image carries besides the program\n\n\
                    The files are Debian's, unchanged; their sources are Debian's source packages of these versions\n\
                    (`apt-get source`, snapshot.debian.org). The terms stand beside this file.\n\n"
        .to_owned();
    for (package, license) in CARRIED {
        let terms = Path::new("/usr/share/doc").join(package).join("copyright");
        let text = files::bytes(&terms).map_err(|e| {
            format!("{e}; the image carries {package} with its terms: make packages on Debian or a distribution based on it")
        })?;
        let format = "${Version} (source ${source:Package} ${source:Version})";
        let query = ["-W", &format!("-f={format}\n"), package];
        let said = output(Command::new("dpkg-query").args(query))?;
        let version = said.lines().next().unwrap_or_default();
        list.push_str(&format!("- {package} {version}: {license}\n"));
        root.file(&format!("usr/share/doc/{package}/copyright"), 0o644, text);
    }
    root.file("usr/share/doc/bucketload/SYSTEM.md", 0o644, list);
    Ok(())
}
