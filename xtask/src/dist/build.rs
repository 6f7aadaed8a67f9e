//! What is packed: the program and the libs3 library, built so that no path of this machine stands in them, or given by
//! `BUCKETLOAD_PROGRAM`, and what the program prints of itself.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::elf::{Elf, Version};
use super::when::When;
use crate::files::{self, TempDir};
use crate::own::{INSTEAD, target};
use crate::sh::{Result, cargo, cmd, output, root, run};

/// The profile of packages, in Cargo.toml.
const PROFILE: &str = "dist";

/// What packages have beyond the usual build.
pub(super) const FEATURES: &str = "bucketload/hdfs";

/// Shells that have completions, with the place of theirs.
const SHELLS: [(&str, &str); 3] = [
    ("bash", "bash-completion/completions/bucketload"),
    ("zsh", "zsh/site-functions/_bucketload"),
    ("fish", "fish/vendor_completions.d/bucketload.fish"),
];

/// Where Debian's packages put the completions that stand at `place` below `share`.
pub(super) fn debian_place(place: &str) -> &str {
    match place {
        "zsh/site-functions/_bucketload" => "zsh/vendor-completions/_bucketload",
        other => other,
    }
}

/// A file that is built, and what it says of itself.
pub(super) struct Built {
    pub(super) bytes: Vec<u8>,
    pub(super) elf: Elf,
    /// The oldest glibc that runs it.
    pub(super) floor: Version,
}

/// What is packed.
pub(super) struct Parts {
    pub(super) program: Built,
    pub(super) library: Built,
    /// File name and text of manual pages.
    pub(super) man: Vec<(String, Vec<u8>)>,
    /// Place below `share` and text of completions.
    pub(super) completions: Vec<(&'static str, Vec<u8>)>,
}

impl Parts {
    /// Builds what is not given, and asks the program.
    ///
    /// # Errors
    /// When it cannot be built or run, or is of another version than the workspace.
    pub(super) fn make(version: &str, when: When) -> Result<Self> {
        let program = match std::env::var_os(INSTEAD) {
            Some(given) => std::path::absolute(&given).map_err(|e| format!("{INSTEAD}: {e}"))?,
            None => build(when)?,
        };
        let says = |args: &[&str]| output(Command::new(&program).args(args));
        let own = says(&["--version"])?;
        if own.split_whitespace().nth(1) != Some(version) {
            return Err(format!(
                "{} says it is {}, the workspace is {version}; build it anew",
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

/// Builds both, and returns the path of the program.
fn build(when: When) -> Result<PathBuf> {
    let maps = maps()?;
    // What the user gives stays.
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

/// Directories of this machine, each with what stands for it in the program; compilers take the last that fits.
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
