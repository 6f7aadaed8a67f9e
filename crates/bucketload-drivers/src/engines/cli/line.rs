//! What each client is asked to do, and what its output says.

use std::ffi::OsString;
use std::path::Path;

use bucketload_core::op::OpClass;
use serde_json::Value;

use super::access::ALIAS;
use super::programs::Size;
use super::tool::Tool;

/// Classes that clients have a command for.
const CLASSES: [OpClass; 8] = [
    OpClass::Get,
    OpClass::Put,
    OpClass::Head,
    OpClass::Delete,
    OpClass::List,
    OpClass::MakeBucket,
    OpClass::DeleteBucket,
    OpClass::ListBuckets,
];

/// Those of a client that cannot delete a bucket alone.
const WITHOUT_DELETE_BUCKET: [OpClass; 7] = [
    OpClass::Get,
    OpClass::Put,
    OpClass::Head,
    OpClass::Delete,
    OpClass::List,
    OpClass::MakeBucket,
    OpClass::ListBuckets,
];

/// The classes that `tool` has a command for.
pub(crate) fn classes(tool: Tool) -> &'static [OpClass] {
    match tool.row().delete_bucket {
        None => &WITHOUT_DELETE_BUCKET,
        Some(_) => &CLASSES,
    }
}

/// What a command is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subject<'a> {
    pub(crate) bucket: &'a str,
    /// Object key, or prefix of a listing.
    pub(crate) key: &'a str,
    /// Whether a listing goes below slashes.
    pub(crate) recursive: bool,
    /// File to send or to receive into.
    pub(crate) file: &'a Path,
    pub(crate) region: &'a str,
}

impl Subject<'_> {
    /// The listing's folder: its prefix up to the last slash.
    fn folder(&self) -> &str {
        let end = self.key.rfind('/').map_or(0, |at| at + 1);
        &self.key[..end]
    }
}

/// Why a client cannot be asked.
pub(crate) type Refusal = &'static str;

/// The arguments for an operation of one of the tool's [`classes`].
///
/// # Errors
/// When the client would understand a name as something else.
pub(crate) fn arguments(
    tool: Tool,
    class: OpClass,
    subject: &Subject<'_>,
) -> Result<Vec<OsString>, Refusal> {
    check_names(tool, class, subject)?;
    let row = tool.row();
    let command = match class {
        OpClass::Put => Some(row.put),
        OpClass::Get => Some(row.get),
        OpClass::Head => Some(row.head),
        OpClass::Delete => Some(row.delete),
        OpClass::List if subject.recursive => Some(row.list),
        OpClass::List => Some(row.list_folder),
        OpClass::MakeBucket => Some(row.make_bucket),
        OpClass::DeleteBucket => row.delete_bucket,
        OpClass::ListBuckets => Some(row.list_buckets),
        _ => None,
    };
    let command = command.ok_or("it has no command for this")?;
    let words = command.split(' ').filter_map(|word| {
        let word = match word.strip_prefix('?') {
            Some(_) if subject.key.is_empty() => return None,
            Some(word) => word,
            None => word,
        };
        Some(match word {
            "{file}" => subject.file.as_os_str().to_owned(),
            word => fill(word, subject).into(),
        })
    });
    Ok(words.collect())
}

/// A word of a command with what its places stand for; see [`super::programs`].
fn fill(word: &str, subject: &Subject<'_>) -> String {
    let mut out = String::new();
    let mut pieces = word.split('{');
    out.push_str(pieces.next().unwrap_or_default());
    for piece in pieces {
        let (place, rest) = piece.split_once('}').unwrap_or((piece, ""));
        out.push_str(match place {
            "bucket" => subject.bucket,
            "key" => subject.key,
            "region" => subject.region,
            _ => ALIAS,
        });
        out.push_str(rest);
    }
    out
}

/// Names that a client takes for something else: patterns, folders, options.
fn check_names(tool: Tool, class: OpClass, subject: &Subject<'_>) -> Result<(), Refusal> {
    let key = subject.key;
    let lists = class == OpClass::List;
    if tool == Tool::Swift && key.starts_with('-') {
        return Err("it takes what begins with a hyphen for an option");
    }
    if key.chars().any(char::is_control) {
        return Err("a key with control characters is not safe in its output");
    }
    if tool == Tool::S3cmd && !lists && key.contains(['*', '?']) {
        return Err("it takes * and ? for patterns");
    }
    if tool == Tool::Gsutil && key.contains(['*', '?', '[', ']', '#']) {
        return Err("it takes *, ? and [ for patterns and # for a version");
    }
    if class.on_bucket() || lists {
        if tool == Tool::Rclone && lists && !key.is_empty() && !key.ends_with('/') {
            return Err("it lists folders, and the prefix does not end in a slash");
        }
        return Ok(());
    }
    if key.is_empty() || key.ends_with('/') {
        return Err("it takes a key that ends in a slash for a folder");
    }
    let odd = |part: &str| matches!(part, "" | "." | "..");
    if matches!(tool, Tool::Mc | Tool::Rclone) && key.split('/').any(odd) {
        return Err("it cleans paths, and the key has an empty, . or .. part");
    }
    Ok(())
}

/// The key or folder that a line of a listing names; `None` for a line that names none.
pub(crate) fn listed(tool: Tool, subject: &Subject<'_>, line: &str) -> Option<String> {
    match tool {
        Tool::S3cmd => {
            let start = format!("s3://{}/", subject.bucket);
            let at = line.find(&start)?;
            Some(line[at + start.len()..].to_owned())
        }
        Tool::Aws => {
            if let Some(folder) = line.trim_start().strip_prefix("PRE ") {
                return Some(format!("{}{folder}", subject.folder()));
            }
            // "2026-11-20 17:30:00         11 the key"
            let mut rest = line;
            for _ in 0..3 {
                rest = rest.trim_start();
                rest = &rest[rest.find(' ')?..];
            }
            let key = rest.strip_prefix(' ')?;
            Some(match subject.recursive {
                true => key.to_owned(),
                false => format!("{}{key}", subject.folder()),
            })
        }
        Tool::Mc => {
            let value: Value = serde_json::from_str(line).ok()?;
            let key = value["key"].as_str()?;
            Some(format!("{}{key}", subject.folder()))
        }
        Tool::Rclone => Some(format!("{}{line}", subject.folder())),
        Tool::Swift | Tool::Az => (!line.is_empty()).then(|| line.to_owned()),
        Tool::Gsutil => {
            let start = format!("gs://{}/", subject.bucket);
            line.strip_prefix(&start).map(str::to_owned)
        }
    }
}

/// The object's size that a line of the answer to a head states.
pub(crate) fn size(tool: Tool, line: &str) -> Option<u64> {
    let after = |word: &str| {
        let rest = line[line.find(word)? + word.len()..].trim_start_matches([' ', ':', '"']);
        let end = rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len());
        rest[..end].parse().ok()
    };
    match tool.row().size {
        Size::After(words) => after(words),
        Size::Json => serde_json::from_str::<Value>(line).ok()?["size"].as_u64(),
        Size::Line => line.trim().parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use bucketload_core::op::OpClass;

    use super::{Subject, arguments, classes, listed, size};
    use crate::engines::cli::tool::Tool;

    fn subject(key: &str) -> Subject<'_> {
        Subject {
            bucket: "buck",
            key,
            recursive: true,
            file: Path::new("/tmp/x/file"),
            region: "eu-1",
        }
    }

    fn line(tool: Tool, class: OpClass, key: &str) -> Result<String, &'static str> {
        let words = arguments(tool, class, &subject(key))?;
        let words: Vec<_> = words.iter().map(|w| w.to_string_lossy()).collect();
        Ok(words.join(" "))
    }

    #[test]
    fn every_class_has_a_command_and_no_other_has() {
        for tool in Tool::ALL {
            for class in OpClass::ALL {
                let key = if class == OpClass::List { "a/" } else { "a/b" };
                assert_eq!(
                    line(tool, class, key).is_ok(),
                    classes(tool).contains(&class),
                    "{tool} {class}"
                );
            }
        }
        assert_eq!(
            line(Tool::S3cmd, OpClass::Put, "a/b").unwrap(),
            "put /tmp/x/file s3://buck/a/b"
        );
        assert_eq!(
            line(Tool::Mc, OpClass::DeleteBucket, "").unwrap(),
            "rb bucketload/buck"
        );
        assert_eq!(
            line(Tool::Aws, OpClass::MakeBucket, "").unwrap(),
            "s3 mb s3://buck"
        );
        assert_eq!(
            line(Tool::Rclone, OpClass::Get, "a b").unwrap(),
            "copyto bucketload:buck/a b /tmp/x/file"
        );
        assert_eq!(
            line(Tool::Az, OpClass::Get, "-a").unwrap(),
            "storage blob download --container-name buck --name=-a --output none --file /tmp/x/file"
        );
        assert_eq!(
            line(Tool::Gsutil, OpClass::List, "a/").unwrap(),
            "ls gs://buck/a/**"
        );
    }

    #[test]
    fn names_that_mean_something_else_are_refused() {
        for (tool, class, key) in [
            (Tool::S3cmd, OpClass::Get, "a*"),
            (Tool::Mc, OpClass::Put, "a//b"),
            (Tool::Rclone, OpClass::Put, "a/../b"),
            (Tool::Aws, OpClass::Delete, "a/"),
            (Tool::Rclone, OpClass::List, "a/b"),
            (Tool::Aws, OpClass::Get, "a\nb"),
            (Tool::Swift, OpClass::Get, "-a"),
            (Tool::Gsutil, OpClass::Get, "a#1"),
            (Tool::Gsutil, OpClass::List, "a[b"),
        ] {
            assert!(line(tool, class, key).is_err(), "{tool} {class} {key}");
        }
    }

    #[test]
    fn listings_give_whole_keys() {
        for (tool, text, key) in [
            (
                Tool::S3cmd,
                "2026-11-20 17:30           11  s3://buck/p/a b",
                "p/a b",
            ),
            (
                Tool::S3cmd,
                "                          DIR  s3://buck/p/q/",
                "p/q/",
            ),
            (Tool::Aws, "2026-11-20 17:30:00         11 p/ a b", "p/ a b"),
            (Tool::Aws, "                           PRE q/", "p/q/"),
            (
                Tool::Mc,
                r#"{"status":"success","type":"file","key":"a b"}"#,
                "p/a b",
            ),
            (Tool::Rclone, "a b", "p/a b"),
            (Tool::Swift, "p/a b", "p/a b"),
            (Tool::Az, "p/a b", "p/a b"),
            (Tool::Gsutil, "gs://buck/p/a b", "p/a b"),
        ] {
            assert_eq!(listed(tool, &subject("p/"), text).as_deref(), Some(key));
        }
        assert_eq!(listed(Tool::Aws, &subject("p/"), "Total Objects: 5"), None);
        assert_eq!(listed(Tool::Mc, &subject("p/"), "{}"), None);
    }

    #[test]
    fn sizes_are_read() {
        for (tool, text) in [
            (Tool::Aws, r#"    "ContentLength": 4711,"#),
            (Tool::S3cmd, "   File size: 4711"),
            (Tool::Mc, r#"{"status":"success","size":4711}"#),
            (Tool::Rclone, r#"{"Path":"a","Size":4711,"IsDir":false}"#),
            (Tool::Swift, "         Content Length: 4711"),
            (Tool::Az, "4711"),
            (Tool::Gsutil, "        Content-Length:         4711"),
        ] {
            assert_eq!(size(tool, text), Some(4711), "{tool}");
            assert_eq!(size(tool, "nothing"), None);
        }
    }
}
