//! The supported command-line clients, and the search for an installed one.

use std::ffi::OsString;
use std::fmt;
use std::io::Read as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::str::FromStr;
use std::time::{Duration, Instant};

use super::programs::{self, Program};
use crate::s3::ConfigError;

/// Longest time that a client may take to print its version.
const PATIENCE: Duration = Duration::from_secs(60);

/// A command-line client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tool {
    /// The AWS CLI.
    Aws,
    /// The MinIO client.
    Mc,
    /// rclone.
    Rclone,
    /// s3cmd, OSSperf's default.
    S3cmd,
    /// The client of OpenStack Swift.
    Swift,
    /// The Azure CLI.
    Az,
    /// Google's client for Cloud Storage.
    Gsutil,
}

impl Tool {
    /// Every client.
    pub const ALL: [Self; 7] = [
        Self::Aws,
        Self::Mc,
        Self::Rclone,
        Self::S3cmd,
        Self::Swift,
        Self::Az,
        Self::Gsutil,
    ];

    pub(super) const fn table_entry(self) -> &'static Program {
        match self {
            Self::Aws => &programs::AWS,
            Self::Mc => &programs::MC,
            Self::Rclone => &programs::RCLONE,
            Self::S3cmd => &programs::S3CMD,
            Self::Swift => &programs::SWIFT,
            Self::Az => &programs::AZ,
            Self::Gsutil => &programs::GSUTIL,
        }
    }

    /// The name of its program.
    #[must_use]
    pub const fn program(self) -> &'static str {
        self.table_entry().name
    }

    /// Scheme of the supported targets; `None` for S3.
    #[must_use]
    pub const fn scheme(self) -> Option<&'static str> {
        self.table_entry().scheme
    }

    /// How to install it.
    #[must_use]
    pub const fn remedy(self) -> &'static str {
        self.table_entry().remedy
    }
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.program())
    }
}

impl FromStr for Tool {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|tool| tool.program() == text)
            .ok_or_else(|| {
                let names = Self::ALL.map(Self::program).join(", ");
                format!("`{text}` is not a supported client; use one of {names}")
            })
    }
}

/// An installed client.
#[derive(Clone, Debug)]
pub(crate) struct InstalledTool {
    pub(crate) tool: Tool,
    pub(crate) path: PathBuf,
    /// The line with its version.
    pub(crate) version: String,
}

impl InstalledTool {
    /// Searches `search` (the value of `PATH`) for `tool` and reads its version.
    ///
    /// # Errors
    /// When it is not found, does not answer, or is another program with that name.
    pub(crate) fn find(tool: Tool, search: Option<OsString>) -> Result<Self, ConfigError> {
        let fail = |problem: String| {
            ConfigError::new(format!("engine cli:{tool}"), problem, tool.remedy())
        };
        let path = std::env::split_paths(&search.unwrap_or_default())
            .map(|dir| dir.join(tool.program()))
            .find(|path| is_program(path))
            .ok_or_else(|| fail(format!("there is no program `{tool}` on the PATH")))?;
        let text = version_of(&path, tool.table_entry().version_word).map_err(fail)?;
        let version = text
            .lines()
            .find(|line| line.contains(tool.table_entry().sign))
            .ok_or_else(|| fail(format!("{} is another program", path.display())))?;
        Ok(Self {
            tool,
            version: version.trim().trim_end_matches(',').replace('"', ""),
            path,
        })
    }
}

fn is_program(path: &std::path::Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata()
        .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// The program's output about its version, from both streams.
fn version_of(path: &std::path::Path, word: &str) -> Result<String, String> {
    let shown = path.display();
    let mut child = Command::new(path)
        .arg(word)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| format!("{shown} cannot be started: {e}"))?;
    let since = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(_)) => break,
            Ok(None) if since.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(5));
            }
            outcome => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(match outcome {
                    Err(error) => format!("{shown}: {error}"),
                    Ok(_) => format!("{shown} {word} did not end within {PATIENCE:?}"),
                });
            }
        }
    }
    let mut text = String::new();
    // A pipe holds far more than a version, so the program could exit before this reads it.
    for stream in [
        child
            .stdout
            .take()
            .map(|s| Box::new(s) as Box<dyn std::io::Read>),
        child
            .stderr
            .take()
            .map(|s| Box::new(s) as Box<dyn std::io::Read>),
    ]
    .into_iter()
    .flatten()
    {
        let mut bytes = Vec::new();
        let _ = stream.take(64 * 1024).read_to_end(&mut bytes);
        text += &String::from_utf8_lossy(&bytes);
        text.push('\n');
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::{InstalledTool, Tool};

    #[test]
    fn names_are_the_programs_names() {
        for tool in Tool::ALL {
            assert_eq!(tool.program().parse(), Ok(tool));
        }
        let error = "curl".parse::<Tool>().unwrap_err();
        assert!(error.contains("s3cmd, swift, az, gsutil"), "{error}");
    }

    #[test]
    fn missing_and_wrong_programs_are_refused_with_a_remedy() {
        let dir = tempfile::tempdir().unwrap();
        let search = || Some(dir.path().into());
        let error = InstalledTool::find(Tool::Mc, search()).unwrap_err();
        assert!(error.to_string().contains("go install"), "{error}");
        let path = dir.path().join("mc");
        let program = |text: &str| {
            std::fs::write(&path, format!("#!/bin/sh\necho '{text}' >&2\n")).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        };
        program("GNU Midnight Commander 4.8.29");
        let error = InstalledTool::find(Tool::Mc, search()).unwrap_err();
        assert!(error.to_string().contains("another program"), "{error}");
        program("mc version RELEASE.2026");
        let found = InstalledTool::find(Tool::Mc, search()).unwrap();
        assert_eq!(found.version, "mc version RELEASE.2026");
        assert_eq!(found.path, path);
    }
}
