//! The operation log as comma-separated values (RFC 4180), compressed with Zstandard.

use std::fs::File;
use std::io::{self, Write as _};

use super::columns::{COLUMNS, Value};

/// Number of bytes that are collected before they are compressed.
const BLOCK: usize = 256 * 1024;

/// One file.
pub(super) struct CsvFile {
    out: zstd::Encoder<'static, File>,
    text: Vec<u8>,
}

impl CsvFile {
    /// Starts `file` with a header line.
    pub(super) fn new(file: File) -> io::Result<Self> {
        let names = COLUMNS.map(|(name, _)| name).join(",");
        Ok(Self {
            out: zstd::Encoder::new(file, 1)?,
            text: format!("{names}\n").into_bytes(),
        })
    }

    /// Adds the cell of column `at`; the last column ends the row.
    pub(super) fn put(&mut self, at: usize, value: Value<'_>) {
        if at > 0 {
            self.text.push(b',');
        }
        match value {
            // Writing to a Vec cannot fail.
            Value::Int(value) => drop(write!(self.text, "{value}")),
            Value::Null => {}
            Value::Text(text) if text.contains(['"', ',', '\r', '\n']) => {
                self.text.push(b'"');
                self.text.extend(text.replace('"', "\"\"").bytes());
                self.text.push(b'"');
            }
            Value::Text(text) => self.text.extend(text.bytes()),
        }
        if at + 1 == COLUMNS.len() {
            self.text.push(b'\n');
        }
    }

    /// Compresses the collected text if there is enough of it.
    pub(super) fn write(&mut self) -> io::Result<()> {
        if self.text.len() >= BLOCK {
            self.out.write_all(&self.text)?;
            self.text.clear();
        }
        Ok(())
    }

    /// Ends the file.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.out.write_all(&self.text)?;
        self.out.finish()?.flush()
    }
}

/// Splits a line into cells; `None` if it ends inside quotes.
pub(crate) fn split(line: &str) -> Option<Vec<String>> {
    let mut cells = vec![String::new()];
    let mut quoted = false;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        let cell = cells.last_mut()?;
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                cell.push('"');
            }
            '"' if quoted || cell.is_empty() => quoted = !quoted,
            ',' if !quoted => cells.push(String::new()),
            c => cell.push(c),
        }
    }
    (!quoted).then_some(cells)
}
