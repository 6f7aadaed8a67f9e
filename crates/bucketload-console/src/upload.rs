//! Checks of uploaded workload files: size, name and characters.
//!
//! `bucketload run --dry-run` checks the meaning in a separate process. The checks here reject files that should
//! not get that far.

/// Maximum size of a workload file, bytes. COSBench's largest example has 30 KB.
pub(crate) const MAX_FILE: usize = 2 << 20;

/// A workload file that passed the checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Upload {
    /// Name under which the file is stored and which messages use.
    pub(crate) file: String,
    /// The contents.
    pub(crate) text: String,
}

impl Upload {
    /// Checks a file that was uploaded as `name`.
    ///
    /// # Errors
    /// With a reason for the user, and with line and column if the error has a position.
    pub(crate) fn check(name: &str, bytes: &[u8]) -> Result<Self, String> {
        if bytes.len() > MAX_FILE {
            return Err(format!(
                "the file has {} bytes; workload files have at most {MAX_FILE}",
                bytes.len()
            ));
        }
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text.strip_prefix('\u{feff}').unwrap_or(text),
            Err(e) => {
                let (line, column) = position(&bytes[..e.valid_up_to()]);
                return Err(format!(
                    "line {line}, column {column}: the file is not UTF-8 text; save it as UTF-8"
                ));
            }
        };
        if text.trim().is_empty() {
            return Err("the file is empty".to_owned());
        }
        if text.contains('\0') {
            return Err("the file contains zero bytes, so it is not a workload".to_owned());
        }
        let xml = text.trim_start().starts_with('<');
        if xml {
            refuse_declarations(text)?;
        }
        Ok(Self {
            file: file_name(name, if xml { "xml" } else { "toml" }),
            text: text.to_owned(),
        })
    }
}

/// Rejects declarations of XML entities: with them a short file could expand to any size or include other files.
/// COSBench's files have none.
fn refuse_declarations(text: &str) -> Result<(), String> {
    let upper = text.to_ascii_uppercase();
    for word in ["<!DOCTYPE", "<!ENTITY"] {
        if let Some(at) = upper.find(word) {
            let (line, column) = position(&text.as_bytes()[..at]);
            return Err(format!(
                "line {line}, column {column}: `{word}` is refused: workload files declare no document types or entities; remove the declaration"
            ));
        }
    }
    Ok(())
}

/// Line and column, from 1, of the position after `before`.
fn position(before: &[u8]) -> (usize, usize) {
    let line = before.iter().filter(|&&b| b == b'\n').count() + 1;
    let start = before
        .iter()
        .rposition(|&b| b == b'\n')
        .map_or(0, |at| at + 1);
    let column = String::from_utf8_lossy(&before[start..]).chars().count() + 1;
    (line, column)
}

/// Makes a safe name with the ending `extension`: the last part of a path, with only letters, digits, `.`, `_` and `-`.
fn file_name(name: &str, extension: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let clean: String = last
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') {
                c
            } else {
                '_'
            }
        })
        .take(80)
        .collect();
    let stem = clean
        .strip_suffix(".xml")
        .or_else(|| clean.strip_suffix(".toml"))
        .unwrap_or(&clean)
        .trim_start_matches(['.', '-'])
        .trim_end_matches('.');
    let stem = if stem.is_empty() { "workload" } else { stem };
    format!("{stem}.{extension}")
}

#[cfg(test)]
mod tests {
    use super::{MAX_FILE, Upload, file_name};

    #[test]
    fn names_cannot_leave_their_directory() {
        for (given, kept) in [
            ("my-work.toml", "my-work.toml"),
            ("../../etc/passwd", "passwd.toml"),
            ("C:\\dir\\a b.toml", "a_b.toml"),
            ("..", "workload.toml"),
            (".hidden", "hidden.toml"),
            ("-rf", "rf.toml"),
            ("", "workload.toml"),
            ("run", "run.toml"),
            ("<script>.toml", "_script_.toml"),
            ("x.xml", "x.toml"),
            ("queue.json", "queue.json.toml"),
        ] {
            assert_eq!(file_name(given, "toml"), kept, "{given}");
        }
        assert!(file_name(&"x".repeat(500), "xml").len() < 100);
    }

    #[test]
    fn the_ending_follows_from_the_content() {
        let kept = |text: &str| Upload::check("a.txt", text.as_bytes()).unwrap().file;
        assert_eq!(kept("name = 'x'\n"), "a.txt.toml");
        assert_eq!(
            kept("\u{feff} \n<?xml version='1.0'?><workload/>"),
            "a.txt.xml"
        );
    }

    #[test]
    fn entities_cannot_be_declared() {
        let bomb =
            "<?xml version=\"1.0\"?>\n  <!doctype lolz [\n <!ENTITY lol \"lol\">]><workload/>";
        let refusal = Upload::check("bomb.xml", bomb.as_bytes()).unwrap_err();
        assert!(
            refusal.starts_with("line 2, column 3: `<!DOCTYPE` is refused"),
            "{refusal}"
        );
        assert!(Upload::check("x.xml", b"<a><!ENTITY x 'y'></a>").is_err());
        // In TOML it is ordinary text.
        assert!(Upload::check("x.toml", b"name = '<!DOCTYPE'").is_ok());
    }

    #[test]
    fn invalid_text_is_refused_with_its_position() {
        for (bytes, word) in [
            (&b"a = 1\nb\xff"[..], "line 2, column 2"),
            (b"", "empty"),
            (b" \n ", "empty"),
            (b"a\0b", "zero bytes"),
        ] {
            let refusal = Upload::check("w", bytes).unwrap_err();
            assert!(refusal.contains(word), "{refusal}");
        }
        let large = vec![b'#'; MAX_FILE + 1];
        assert!(Upload::check("w", &large).unwrap_err().contains("at most"));
    }
}
