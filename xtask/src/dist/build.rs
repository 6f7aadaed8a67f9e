//! The contents of packages: the program and the libs3 library, built so that they contain no path of this machine,
//! or given by `BUCKETLOAD_PROGRAM`; and the manual pages and completions that the program prints.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::elf::{Elf, Version};
use super::when::SourceTime;
use crate::files::{self, TempDir};
use crate::program::{INSTEAD, target};
use crate::sh::{Result, cargo, cmd, output, root, run};

/// The profile for packages in Cargo.toml.
const PROFILE: &str = "dist";

/// Features of packages beyond the usual build.
pub(super) const FEATURES: &str = "bucketload/hdfs";

/// Shells with completions, and the path of each file.
const SHELLS: [(&str, &str); 3] = [
    ("bash", "bash-completion/completions/bucketload"),
    ("zsh", "zsh/site-functions/_bucketload"),
    ("fish", "fish/vendor_completions.d/bucketload.fish"),
];

/// Debian's path for the completions at `place`, both below `share`.
pub(super) fn debian_place(place: &str) -> &str {
    match place {
        "zsh/site-functions/_bucketload" => "zsh/vendor-completions/_bucketload",
        other => other,
    }
}

/// A built file and its system requirements.
pub(super) struct Built {
    pub(super) bytes: Vec<u8>,
    pub(super) elf: Elf,
    /// The oldest glibc that runs it.
    pub(super) floor: Version,
}

/// The contents of packages.
pub(super) struct Parts {
    pub(super) program: Built,
    pub(super) library: Built,
    /// File name and text of each manual page.
    pub(super) man: Vec<(String, Vec<u8>)>,
    /// Path below `share` and text of each completion.
    pub(super) completions: Vec<(&'static str, Vec<u8>)>,
}

impl Parts {
    /// Builds the program unless one is given, and lets it print its pages and completions.
    ///
    /// # Errors
    /// The program cannot be built or run, or its version is not the workspace's.
    pub(super) fn make(version: &str, when: SourceTime) -> Result<Self> {
        let program = match std::env::var_os(INSTEAD) {
            Some(given) => std::path::absolute(&given).map_err(|e| format!("{INSTEAD}: {e}"))?,
            None => build(when)?,
        };
        let says = |args: &[&str]| output(Command::new(&program).args(args));
        let own = says(&["--version"])?;
        if own.split_whitespace().nth(1) != Some(version) {
            return Err(format!(
                "{} reports {}, the workspace is {version}; build it again",
                program.display(),
                own.trim()
            ));
        }
        let pages = TempDir::new("dist-man")?;
        says(&["man", "--out", &pages.path().to_string_lossy()])?;
        let mut man = Vec::new();
        for path in files::below(pages.path())? {
            let page = files::bytes(pages.path().join(&path))?;
            man.push((path.to_string_lossy().into_owned(), page));
        }
        let completions = SHELLS
            .iter()
            .map(|(shell, place)| Ok((*place, says(&["completions", shell])?.into_bytes())));
        Ok(Self {
            library: Built::read(&program.with_file_name("libs3.so"))?,
            completions: completions.collect::<Result<_>>()?,
            program: Built::read(&program)?,
            man,
        })
    }
}

impl Built {
    fn read(path: &Path) -> Result<Self> {
        let at = |e: String| format!("{}: {e}", path.display());
        let bytes = files::bytes(path)?;
        let elf = Elf::read(&bytes).map_err(at)?;
        let floor = elf.newest("GLIBC_");
        let floor = floor.ok_or_else(|| at("needs no symbol of glibc".to_owned()))?;
        Ok(Self { bytes, elf, floor })
    }
}

/// Builds program and library, and returns the program's path.
fn build(when: SourceTime) -> Result<PathBuf> {
    let maps = maps()?;
    // Keeps the user's flags.
    let given = std::env::var("RUSTFLAGS").unwrap_or_default();
    let rust = given.split_whitespace().map(str::to_owned);
    let rust = rust.chain(maps.iter().map(|map| format!("--remap-path-prefix={map}")));
    let rust: Vec<String> = rust.collect();
    let mut command = cargo(&format!(
        "build --locked --profile {PROFILE} --features {FEATURES}"
    ));
    command
        .env("CARGO_ENCODED_RUSTFLAGS", rust.join("\x1f"))
        .env("SOURCE_DATE_EPOCH", when.0.to_string());
    for name in ["CFLAGS", "CXXFLAGS"] {
        let given = std::env::var(name).unwrap_or_default();
        let flags = maps.iter().map(|map| format!("-ffile-prefix-map={map}"));
        let flags: Vec<String> = [given].into_iter().chain(flags).collect();
        command.env(name, flags.join(" ").trim());
    }
    run(&mut command)?;
    Ok(target().join(PROFILE).join("bucketload"))
}

/// Directories of this machine and their replacements in the program; compilers apply the last match.
fn maps() -> Result<Vec<String>> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(Path::new(&std::env::var_os("HOME")?).join(".cargo")));
    let sysroot = output(&mut cmd("rustc", ["--print=sysroot"]))?;
    let library = Path::new(sysroot.trim()).join("lib/rustlib/src/rust");
    let said = output(&mut cmd("rustc", ["--version", "--verbose"]))?;
    let hash = said
        .lines()
        .find_map(|line| line.strip_prefix("commit-hash: "));
    let places = [
        home.map(|dir| (dir, "/cargo".to_owned())),
        Some((root(), "/bucketload".to_owned())),
        Some((target(), "/target".to_owned())),
        hash.map(|hash| (library, format!("/rustc/{hash}"))),
    ];
    let maps = places.into_iter().flatten();
    Ok(maps
        .map(|(dir, name)| format!("{}={name}", dir.display()))
        .collect())
}
