//! `cargo xtask dist`: packages for users without a toolchain.
//!
//! ```text
//! build (profile dist, no path of this machine) ─► elf: glibc, libraries ─┬► tree ─► .tar.gz, .deb
//! cargo tree, metadata, Cargo.lock ─► crates ─► sbom, notices ────────────┼► wheel
//!                                     image: libraries, certificates ─────┴► oci
//! ```
//!
//! The same source on the same system gives the same bytes: entries are sorted, owners and modes fixed, and all times
//! are that of the last commit.

mod build;
mod crates;
mod deb;
mod elf;
mod image;
mod notices;
mod oci;
mod sbom;
mod texts;
mod tree;
mod wheel;
mod when;

use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use self::build::{Built, Parts};
use self::texts::dotted;
use self::tree::{Tree, gzip};
use self::when::SourceTime;
use crate::files;
use crate::program::target;
use crate::sh::{Result, root};

const PROGRAM: &str = "bucketload";
const LIBRARY: &str = "libs3-bucketload";
const LICENSE: &str = "Apache-2.0 OR MIT";
const AUTHORS: &str = "The Bucketload authors";
/// The file with the checksums of all others.
const SUMS: &str = "SHA256SUMS";

/// Makes every package.
///
/// # Errors
/// Something cannot be built, read or written.
pub(crate) fn main(args: &[String]) -> Result {
    let out = match args {
        [] => target().join("packages"),
        [flag, dir] if flag == "--out" => PathBuf::from(dir),
        _ => return Err("usage: cargo xtask dist [--out DIR]".to_owned()),
    };
    for path in make(&out)? {
        println!("{}", path.display());
    }
    Ok(())
}

/// Makes every package in `out`, replacing those of earlier calls, and returns their sorted paths, the checksums
/// last.
///
/// # Errors
/// As [`main`].
pub(crate) fn make(out: &Path) -> Result<Vec<PathBuf>> {
    let when = SourceTime::of_source()?;
    let version = version()?;
    let parts = Parts::make(&version, when)?;
    let mut files = Source::read(PROGRAM, &version, when, &parts.program)?.program(&parts)?;
    files.extend(Source::read(LIBRARY, &version, when, &parts.library)?.library()?);
    files.sort_unstable();
    let sums = files
        .iter()
        .map(|(name, bytes)| format!("{}  {name}\n", hex(&Sha256::digest(bytes))));
    let sums: String = sums.collect();
    files.push((SUMS.to_owned(), sums.into_bytes()));
    write(out, &files)
}

/// Lower-case hexadecimal digits.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Replaces the files of earlier calls; other files in the directory stay.
fn write(out: &Path, files: &[(String, Vec<u8>)]) -> Result<Vec<PathBuf>> {
    let earlier = std::fs::read_to_string(out.join(SUMS)).unwrap_or_default();
    for name in earlier
        .lines()
        .filter_map(|line| line.split_once("  "))
        .map(|(_, name)| name)
    {
        if !name.contains('/') {
            // The file may be gone already.
            let _ = std::fs::remove_file(out.join(name));
        }
    }
    let mut paths = Vec::new();
    for (name, bytes) in files {
        let path = out.join(name);
        files::write(&path, bytes)?;
        paths.push(path);
    }
    Ok(paths)
}

/// The version of the workspace, if all kinds of packages write it alike.
fn version() -> Result<String> {
    let version = env!("CARGO_PKG_VERSION");
    match version
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.')
    {
        true => Ok(version.to_owned()),
        false => Err(format!(
            "version {version}: Debian and Python write versions before a release in other ways; release X.Y.Z"
        )),
    }
}

/// A packed file, and the documents that go with it into every package.
struct Source<'a> {
    name: &'static str,
    version: &'a str,
    when: SourceTime,
    built: &'a Built,
    machine: elf::Machine,
    readme: String,
    apache: String,
    mit: String,
    notices: String,
    sbom: String,
}

type File = (String, Vec<u8>);

impl<'a> Source<'a> {
    fn read(
        name: &'static str,
        version: &'a str,
        when: SourceTime,
        built: &'a Built,
    ) -> Result<Self> {
        let license = |name: &str| files::read(root().join(name));
        let machine = built.elf.machine()?;
        eprintln!(
            "{name} {version}: {}, glibc {} or newer, {} bytes",
            machine.name,
            dotted(built.floor),
            built.bytes.len()
        );
        let words = if name == PROGRAM {
            texts::program
        } else {
            texts::library
        };
        let crates = crates::of(name)?;
        let sum = hex(&Sha256::digest(&built.bytes));
        Ok(Self {
            readme: words(version, built.floor, machine),
            apache: license("LICENSE-APACHE")?,
            mit: license("LICENSE-MIT")?,
            notices: notices::text(&crates)?,
            sbom: sbom::document(name, &crates, &sum, when),
            name,
            version,
            when,
            built,
            machine,
        })
    }

    /// The packages of the program.
    fn program(&self, parts: &Parts) -> Result<Vec<File>> {
        let mut shared = Tree::default();
        for (name, page) in &parts.man {
            shared.file(&format!("man/man1/{name}.gz"), 0o644, gzip(page)?);
        }
        let mut plain = shared.clone();
        for (place, text) in &parts.completions {
            plain.file(place, 0o644, text.clone());
            shared.file(build::debian_place(place), 0o644, text.clone());
        }
        let mut prefix = plain.below("share");
        prefix.file("bin/bucketload", 0o755, self.built.bytes.clone());
        let mut system = shared.below("usr/share");
        system.file("usr/bin/bucketload", 0o755, self.built.bytes.clone());
        self.documents(&mut system)?;
        let mut files = vec![self.archive(prefix)?, self.bill()];
        let recommended = format!("Recommends: ca-certificates\nSuggests: {LIBRARY}\n");
        let text = " Drives an object store by an open or closed load, measures response times from the intended\n \
                    instant, checks what it reads, and says whether the result can be believed.\n";
        files.push(self.package(&system, "utils", &recommended, texts::SUMMARY, text, "")?);
        files.push(self.wheel()?);
        files.push(self.image()?);
        Ok(files)
    }

    /// The packages of the library.
    fn library(&self) -> Result<Vec<File>> {
        let name = &self.built.elf.name;
        let mut prefix = Tree::default();
        prefix.file(&format!("lib/{name}"), 0o644, self.built.bytes.clone());
        let mut system = Tree::default();
        let path = format!("usr/lib/{}/{name}", self.machine.triplet);
        system.file(&path, 0o644, self.built.bytes.clone());
        self.documents(&mut system)?;
        let text = " Applications of libs3 (IOR, mdtest, IO500, MD-Workbench) work on a directory, or behind\n \
                    bucketload gateway, without being compiled again.\n";
        let summary = "libs3 on a directory instead of a server";
        let triggers = "activate-noawait ldconfig\n";
        Ok(vec![
            self.archive(prefix)?,
            self.bill(),
            self.package(&system, "libs", "", summary, text, triggers)?,
        ])
    }

    /// The `.tar.gz` for installation into a prefix.
    fn archive(&self, mut prefix: Tree) -> Result<File> {
        for (name, text) in [
            ("README.md", &self.readme),
            ("LICENSE-APACHE", &self.apache),
            ("LICENSE-MIT", &self.mit),
            ("THIRD-PARTY-LICENSES.txt", &self.notices),
        ] {
            prefix.file(
                &format!("share/doc/{}/{name}", self.name),
                0o644,
                text.as_str(),
            );
        }
        let stem = format!(
            "{}-{}-{}-linux-glibc{}",
            self.name,
            self.version,
            self.machine.name,
            dotted(self.built.floor)
        );
        let tar = prefix.below(&stem).tar("", self.when.0)?;
        Ok((format!("{stem}.tar.gz"), gzip(&tar)?))
    }

    fn bill(&self) -> File {
        let name = format!("{}-{}.cdx.json", self.name, self.version);
        (name, self.sbom.clone().into_bytes())
    }

    /// Adds the documents of a system package.
    fn documents(&self, system: &mut Tree) -> Result {
        let copyright = texts::copyright(self.name, &self.mit);
        let mut put = |name: &str, bytes: Vec<u8>| {
            system.file(&format!("usr/share/doc/{}/{name}", self.name), 0o644, bytes);
        };
        put("README.md", self.readme.clone().into_bytes());
        put("copyright", copyright.into_bytes());
        put(
            "THIRD-PARTY-LICENSES.txt.gz",
            gzip(self.notices.as_bytes())?,
        );
        Ok(())
    }

    /// The `.deb`.
    fn package(
        &self,
        data: &Tree,
        section: &str,
        related: &str,
        summary: &str,
        text: &str,
        triggers: &str,
    ) -> Result<File> {
        let (name, version, machine) = (self.name, self.version, self.machine.debian);
        let unwinder = match self.built.elf.newest("GCC_") {
            Some(version) => format!(", libgcc-s1 (>= {})", dotted(version)),
            None => String::new(),
        };
        let floor = dotted(self.built.floor);
        let control = format!(
            "Package: {name}\nVersion: {version}\nArchitecture: {machine}\nMaintainer: {AUTHORS}\n\
             Section: {section}\nPriority: optional\nDepends: libc6 (>= {floor}){unwinder}\n{related}\
             Description: {summary}\n{text}"
        );
        let deb = deb::Deb {
            control,
            triggers,
            data,
        };
        Ok((
            format!("{name}_{version}_{machine}.deb"),
            deb.bytes(self.when.0)?,
        ))
    }

    fn wheel(&self) -> Result<File> {
        let wheel = wheel::Wheel {
            name: self.name,
            version: self.version,
            floor: self.built.floor,
            machine: self.machine.name,
            summary: texts::SUMMARY,
            readme: &self.readme,
            license: LICENSE,
            licenses: &[
                ("LICENSE-APACHE", &self.apache),
                ("LICENSE-MIT", &self.mit),
                ("THIRD-PARTY-LICENSES.txt", &self.notices),
            ],
            program: &self.built.bytes,
        };
        Ok((wheel.file_name(), wheel.bytes(self.when)?))
    }

    /// The image: the program with everything that it needs from a system.
    fn image(&self) -> Result<File> {
        let mut root = image::root(&self.built.elf)?;
        root.file("usr/bin/bucketload", 0o755, self.built.bytes.clone());
        self.documents(&mut root)?;
        let image = oci::Image {
            name: &format!("{}:{}", self.name, self.version),
            machine: self.machine.debian,
            program: "/usr/bin/bucketload",
            labels: &[
                ("title", "Bucketload"),
                ("description", texts::SUMMARY),
                ("version", self.version),
                ("licenses", LICENSE),
            ],
            root: &root,
        };
        let name = format!(
            "{}-{}-oci-{}.tar",
            self.name, self.version, self.machine.debian
        );
        Ok((name, image.bytes(self.when)?))
    }
}
