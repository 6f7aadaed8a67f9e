//! The rows of the study's grid (docs/spec/cs597-grid.md section 1), and user-defined rows.

use serde::{Deserialize, Serialize};

/// Name, files and file size in bytes. The study's sizes are 1024 · 10^k bytes.
const STUDY: [(&str, u64, u64); 10] = [
    ("touch", 10_000, 0),
    ("g0", 10_000, 0),
    ("g1", 10_000, 1_024),
    ("g2", 1_000, 10_240),
    ("g3", 1_000, 102_400),
    ("g4", 1_000, 1_024_000),
    ("g5", 1_000, 10_240_000),
    ("g6", 100, 102_400_000),
    ("g7", 10, 1_024_000_000),
    ("g8", 1, 10_240_000_000),
];

/// Limit on the files of a row.
const MAX_FILES: u64 = 1_000_000_000;

/// A row of the grid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// Its name in the study, or `FxS`.
    pub name: String,
    /// Files that one process writes, after scaling.
    pub files: u64,
    /// Files in the study.
    pub full_files: u64,
    /// Size of each, bytes.
    pub size_bytes: u64,
    /// Whether files are touched instead of written.
    pub touch: bool,
}

impl Row {
    /// Parses rows as a user writes them: `g0..g5`, `touch`, `all`, `200x4096`, separated by commas. Names are
    /// those of the study.
    ///
    /// # Errors
    /// Says what is wrong and lists the valid forms.
    pub fn parse_list(text: &str) -> Result<Vec<Self>, String> {
        let mut rows: Vec<Self> = Vec::new();
        for item in text
            .split(',')
            .map(str::trim)
            .filter(|item| !item.is_empty())
        {
            let found = match item {
                "all" => STUDY.iter().map(Self::of_study).collect(),
                _ => match item.split_once("..") {
                    Some((from, to)) => Self::range(from.trim(), to.trim())?,
                    None => vec![Self::one(item)?],
                },
            };
            for row in found {
                if !rows.iter().any(|known| known.name == row.name) {
                    rows.push(row);
                }
            }
        }
        if rows.is_empty() {
            return Err(format!("`{text}` names no row; {}", Self::forms()));
        }
        Ok(rows)
    }

    /// This row with `scale` times as many files, at least one. User-defined rows (`FxS`) stay as they are.
    #[must_use]
    pub fn scaled(mut self, scale: f64) -> Self {
        if !STUDY.iter().any(|(name, _, _)| *name == self.name) {
            return self;
        }
        self.files = ((self.full_files as f64 * scale).round() as u64).max(1);
        self
    }

    /// Bytes that `processes` processes write.
    #[must_use]
    pub fn bytes(&self, processes: u32) -> u64 {
        self.files
            .saturating_mul(self.size_bytes)
            .saturating_mul(u64::from(processes))
    }

    fn of_study(&(name, files, size_bytes): &(&str, u64, u64)) -> Self {
        Self {
            name: name.to_owned(),
            files,
            full_files: files,
            size_bytes,
            touch: name == "touch",
        }
    }

    fn forms() -> &'static str {
        "rows are touch, g0 to g8, ranges such as g0..g5, all, or FILESxBYTES such as 200x4096"
    }

    fn position(name: &str) -> Result<usize, String> {
        let found = STUDY.iter().position(|(known, _, _)| *known == name);
        found.ok_or_else(|| format!("no such row: `{name}`; {}", Self::forms()))
    }

    fn range(from: &str, to: &str) -> Result<Vec<Self>, String> {
        let (from, to) = (Self::position(from)?, Self::position(to)?);
        if from > to {
            return Err(format!("a range of rows must ascend; {}", Self::forms()));
        }
        Ok(STUDY[from..=to].iter().map(Self::of_study).collect())
    }

    fn one(item: &str) -> Result<Self, String> {
        let Some((files, size)) = item.split_once('x') else {
            return Self::position(item).map(|at| Self::of_study(&STUDY[at]));
        };
        let number = |text: &str| text.replace('_', "").parse::<u64>().ok();
        match (number(files), number(size)) {
            (Some(files @ 1..=MAX_FILES), Some(size_bytes)) => Ok(Self {
                name: format!("{files}x{size_bytes}"),
                files,
                full_files: files,
                size_bytes,
                touch: false,
            }),
            _ => Err(format!("`{item}` is not a row; {}", Self::forms())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Row;

    fn names(text: &str) -> Vec<String> {
        let rows = Row::parse_list(text).unwrap();
        rows.into_iter().map(|row| row.name).collect()
    }

    #[test]
    fn rows_are_those_of_the_study() {
        let all = Row::parse_list("all").unwrap();
        let files: u64 = all.iter().filter(|r| !r.touch).map(|r| r.files).sum();
        let bytes: u64 = all.iter().map(|row| row.bytes(1)).sum();
        // Rows g1 to g8 and touch, as the study counts.
        assert_eq!(files - 10_000 + 10_000, 24_111);
        assert_eq!(bytes, 42_106_880_000);
        assert_eq!(names("g0..g2, touch,g1"), ["g0", "g1", "g2", "touch"]);
        assert_eq!(names("7x0,3x5_000"), ["7x0", "3x5000"]);
    }

    #[test]
    fn scaling_divides_files_and_not_sizes() {
        let row = Row::parse_list("g8").unwrap().remove(0).scaled(0.01);
        assert_eq!(
            (row.files, row.full_files, row.size_bytes),
            (1, 1, 10_240_000_000)
        );
        let row = Row::parse_list("g1").unwrap().remove(0).scaled(0.01);
        assert_eq!((row.files, row.bytes(4)), (100, 409_600));
        let user_defined = Row::parse_list("20x5000").unwrap().remove(0).scaled(0.01);
        assert_eq!(user_defined.files, 20);
    }

    #[test]
    fn errors_list_the_valid_forms() {
        for text in ["", "g9", "g5..g1", "0x5", "5xlarge", "g1..x"] {
            let error = Row::parse_list(text).unwrap_err();
            assert!(
                error.contains("g0 to g8") || error.contains("ascend"),
                "{text}: {error}"
            );
        }
    }
}
