//! The run-info file, which connects commands that run one part each.
//!
//! `pos: N` is MD-Workbench's own line: the number of steps done so far. `run: ID` names the run that created the
//! objects; commands change objects below its prefix only.

use std::path::Path;

/// The content of the run-info file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Info {
    /// Steps done so far.
    pub(crate) position: u64,
    /// Identifier of the run that created the objects.
    pub(crate) run_id: String,
}

impl Info {
    /// Reads the file.
    ///
    /// # Errors
    /// When the file is missing, or is not a run-info file.
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|e| {
            format!(
                "{}: {e}; run the precreation first, which writes this file (-1)",
                path.display()
            )
        })?;
        let value = |name: &str| {
            let mut lines = text.lines();
            lines.find_map(|line| line.strip_prefix(name).map(|rest| rest.trim().to_owned()))
        };
        let wrong = |what: &str| {
            format!(
                "{}: the file has no line `{what}`; run the precreation again (-1)",
                path.display()
            )
        };
        let position = value("pos:").and_then(|text| text.parse().ok());
        let run_id = value("run:").filter(|id| {
            !id.is_empty() && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
        });
        Ok(Self {
            position: position.ok_or_else(|| wrong("pos: NUMBER"))?,
            run_id: run_id.ok_or_else(|| wrong("run: IDENTIFIER"))?,
        })
    }

    /// Writes the file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn write(&self, path: &Path) -> Result<(), String> {
        let text = format!("pos: {}\nrun: {}\n", self.position, self.run_id);
        std::fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::Info;

    #[test]
    fn what_is_written_is_read_and_other_files_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("status");
        assert!(Info::read(&path).unwrap_err().contains("-1"));
        let info = Info {
            position: 57,
            run_id: "1795163891-0a1b2c3d".to_owned(),
        };
        info.write(&path).unwrap();
        assert_eq!(Info::read(&path), Ok(info));
        std::fs::write(&path, "pos: 5\n").unwrap();
        assert!(Info::read(&path).unwrap_err().contains("run:"));
        std::fs::write(&path, "pos: 5\nrun: ../x\n").unwrap();
        assert!(Info::read(&path).is_err());
    }
}
