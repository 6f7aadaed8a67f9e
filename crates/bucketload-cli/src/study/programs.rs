//! Command-line programs of engines (`cli:mc`): those on the PATH, and those installed by the script that the study
//! names (`programs`).
//!
//! ```text
//!  cell --engine=cli:mc ─► on the PATH? ─► servers/clients.sh install, env ─► MC=/…/mc ─► PATH of the cells
//! ```

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use bucketload_study::model::{Cell, Study};

use super::check::{engine, on_path};
use super::script::{Scripts, lines};

/// The programs of a study's engines.
#[derive(Default)]
pub(super) struct Programs {
    /// Directories of installed programs, which are appended to the PATH.
    dirs: Vec<PathBuf>,
    /// Why the script could not install them; empty if it did or was not called.
    failure: String,
}

impl Programs {
    /// Looks for the programs that `cells` need. The study's script installs missing programs, after a call of `tell`.
    pub(super) fn find(
        study: &Study,
        cells: &[&Cell],
        scripts: &Scripts,
        tell: impl FnOnce(&str),
    ) -> Self {
        let mut found = Self::default();
        let mut missing: Vec<&str> = cells.iter().filter_map(|cell| program(cell)).collect();
        missing.retain(|program| !on_path(program));
        missing.sort_unstable();
        missing.dedup();
        if study.programs.is_empty() || missing.is_empty() {
            return found;
        }
        tell(&format!(
            "{} not on the PATH; installing clients with servers/{}.sh",
            missing.join(", "),
            study.programs
        ));
        match installed(&scripts.script(&study.programs)) {
            Ok(lines) => {
                let dirs = missing
                    .iter()
                    .filter_map(|program| directory(&lines, program));
                found.dirs = dirs.collect();
                found.dirs.dedup();
            }
            Err(why) => found.failure = format!("; servers/{}.sh: {why}", study.programs),
        }
        found
    }

    /// Why the program of the cell's engine is missing; `None` if it is not.
    pub(super) fn lacks(&self, cell: &Cell) -> Option<String> {
        let program = program(cell)?;
        let there = on_path(program) || self.dirs.iter().any(|dir| dir.join(program).is_file());
        (!there).then(|| format!("{program} is not on the PATH{}", self.failure))
    }

    /// The PATH for cells; `None` if it is that of this process.
    pub(super) fn path(&self) -> Option<String> {
        if self.dirs.is_empty() {
            return None;
        }
        let own = std::env::var_os("PATH").unwrap_or_default();
        let all = std::env::split_paths(&own).chain(self.dirs.iter().cloned());
        std::env::join_paths(all).ok()?.into_string().ok()
    }
}

/// The program that the cell's engine calls.
fn program(cell: &Cell) -> Option<&str> {
    engine(cell)?.strip_prefix("cli:")
}

/// Calls `script install` and `script env`. Returns the paths of the programs, by their names in capitals.
fn installed(script: &Path) -> Result<BTreeMap<String, String>, String> {
    let call = |argument: &str| {
        let made = Command::new(script)
            .arg(argument)
            .stdin(Stdio::null())
            .output();
        let made = made.map_err(|e| e.to_string())?;
        let said = String::from_utf8_lossy(&made.stderr);
        match made.status.success() {
            true => Ok(String::from_utf8_lossy(&made.stdout).into_owned()),
            false => Err(said
                .trim()
                .lines()
                .last()
                .unwrap_or("it printed no message")
                .to_owned()),
        }
    };
    call("install")?;
    Ok(lines(&call("env")?))
}

/// The directory of a program according to the script's output.
fn directory(lines: &BTreeMap<String, String>, program: &str) -> Option<PathBuf> {
    let path = Path::new(lines.get(&program.to_uppercase())?);
    let named = path.file_name()? == program && path.is_file();
    named.then(|| path.parent().map(Path::to_owned))?
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use bucketload_study::model::{Cell, Study};

    use super::Programs;
    use crate::study::script::Scripts;

    fn cell(engine: &str) -> Cell {
        Cell {
            args: vec![format!("--engine=cli:{engine}")],
            ..Cell::default()
        }
    }

    #[test]
    fn a_script_installs_missing_programs_or_gives_the_reason() {
        let dir = tempfile::tempdir().unwrap();
        let script = dir.path().join("these.sh");
        let bin = dir.path().join("bin");
        let text = format!(
            "#!/bin/sh\nif [ $1 = install ]; then mkdir {0} && : >{0}/none-such; else echo NONE-SUCH={0}/none-such; fi\n",
            bin.display()
        );
        fs::write(&script, text).unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        let study = Study {
            programs: "these".to_owned(),
            ..Study::default()
        };
        let scripts = Scripts::at(dir.path());
        let cells = [cell("none-such"), cell("sh")];
        let open: Vec<&Cell> = cells.iter().collect();
        let mut told = String::new();
        let found = Programs::find(&study, &open, &scripts, |text| told = text.to_owned());
        assert!(told.starts_with("none-such not on the PATH"), "{told}");
        assert_eq!(found.lacks(&cells[0]), None);
        assert_eq!(found.lacks(&cells[1]), None);
        let why = found.lacks(&cell("another")).unwrap();
        assert!(why.contains("another is not on the PATH"), "{why}");
        let path = found.path().unwrap();
        assert!(path.ends_with(bin.to_str().unwrap()), "{path}");

        // A second installation fails because the directory exists.
        let failed = Programs::find(&study, &open, &scripts, |_| ());
        let why = failed.lacks(&cells[0]).unwrap();
        assert!(why.contains("servers/these.sh: mkdir"), "{why}");
        assert_eq!(failed.path(), None);
    }

    #[test]
    fn nothing_is_installed_unless_the_study_names_a_script() {
        let cells = [cell("none-such")];
        let found = Programs::find(
            &Study::default(),
            &[&cells[0]],
            &Scripts::at("/".as_ref()),
            |_| panic!("nothing to tell"),
        );
        assert!(found.lacks(&cells[0]).is_some());
    }
}
