//! The command lines of each client, and its output.

use std::ffi::OsString;
use std::path::Path;

use bucketload_core::op::OpClass;
use serde_json::Value;

use super::invocation::ALIAS;
use super::programs::Size;
use super::tool::Tool;

/// Operations that clients support.
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

/// Operations of a client that cannot delete a bucket without its objects.
const WITHOUT_DELETE_BUCKET: [OpClass; 7] = [
    OpClass::Get,
    OpClass::Put,
    OpClass::Head,
    OpClass::Delete,
    OpClass::List,
    OpClass::MakeBucket,
    OpClass::ListBuckets,
];

/// The operations that `tool` supports.
pub(crate) fn classes(tool: Tool) -> &'static [OpClass] {
    match tool.table_entry().delete_bucket {
        None => &WITHOUT_DELETE_BUCKET,
        Some(_) => &CLASSES,
    }
}

/// The names in a command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operands<'a> {
    pub(crate) bucket: &'a str,
    /// Object key, or prefix of a listing.
    pub(crate) key: &'a str,
    /// Whether a listing includes keys with further slashes.
    pub(crate) recursive: bool,
    /// File to send or to receive into.
    pub(crate) file: &'a Path,
    pub(crate) region: &'a str,
}

impl Operands<'_> {
    /// The listing's folder: its prefix up to the last slash.
    fn folder(&self) -> &str {
        let end = self.key.rfind('/').map_or(0, |at| at + 1);
        &self.key[..end]
    }
}

/// Why a client cannot perform an operation.
pub(crate) type Refusal = &'static str;

/// The arguments for an operation of one of the tool's [`classes`].
///
/// # Errors
/// When the client would misinterpret a name.
pub(crate) fn arguments(
    tool: Tool,
    class: OpClass,
    operands: &Operands<'_>,
) -> Result<Vec<OsString>, Refusal> {
    check_names(tool, class, operands)?;
    let table_entry = tool.table_entry();
    let command = match class {
        OpClass::Put => Some(table_entry.put),
        OpClass::Get => Some(table_entry.get),
        OpClass::Head => Some(table_entry.head),
        OpClass::Delete => Some(table_entry.delete),
        OpClass::List if operands.recursive => Some(table_entry.list),
        OpClass::List => Some(table_entry.list_folder),
        OpClass::MakeBucket => Some(table_entry.make_bucket),
        OpClass::DeleteBucket => table_entry.delete_bucket,
        OpClass::ListBuckets => Some(table_entry.list_buckets),
        _ => None,
    };
    let command = command.ok_or("it has no such command")?;
    let words = command.split(' ').filter_map(|word| {
        let word = match word.strip_prefix('?') {
            Some(_) if operands.key.is_empty() => return None,
            Some(word) => word,
            None => word,
        };
        Some(match word {
            "{file}" => operands.file.as_os_str().to_owned(),
            word => fill(word, operands).into(),
        })
    });
    Ok(words.collect())
}

/// Replaces the placeholders in a word of a command; see [`super::programs`].
fn fill(word: &str, operands: &Operands<'_>) -> String {
    let mut out = String::new();
    let mut pieces = word.split('{');
    out.push_str(pieces.next().unwrap_or_default());
    for piece in pieces {
        let (place, rest) = piece.split_once('}').unwrap_or((piece, ""));
        out.push_str(match place {
            "bucket" => operands.bucket,
            "key" => operands.key,
            "region" => operands.region,
            _ => ALIAS,
        });
        out.push_str(rest);
    }
    out
}

/// Refuses names that a client would interpret as patterns, folders or options.
fn check_names(tool: Tool, class: OpClass, operands: &Operands<'_>) -> Result<(), Refusal> {
    let key = operands.key;
    let lists = class == OpClass::List;
    if tool == Tool::Swift && key.starts_with('-') {
        return Err("it treats a name with a leading hyphen as an option");
    }
    if key.chars().any(char::is_control) {
        return Err("its output would be ambiguous with control characters in a key");
    }
    if tool == Tool::S3cmd && !lists && key.contains(['*', '?']) {
        return Err("it treats * and ? as patterns");
    }
    if tool == Tool::Gsutil && key.contains(['*', '?', '[', ']', '#']) {
        return Err("it treats *, ? and [ as patterns and # as a version");
    }
    if class.on_bucket() || lists {
        if tool == Tool::Rclone && lists && !key.is_empty() && !key.ends_with('/') {
            return Err("it lists folders, and the prefix does not end with a slash");
        }
        return Ok(());
    }
    if key.is_empty() || key.ends_with('/') {
        return Err("it treats a key with a trailing slash as a folder");
    }
    let odd = |part: &str| matches!(part, "" | "." | "..");
    if matches!(tool, Tool::Mc | Tool::Rclone) && key.split('/').any(odd) {
        return Err("it cleans paths, and the key has an empty, . or .. part");
    }
    Ok(())
}

/// The key or folder in a line of a listing; `None` if the line has none.
pub(crate) fn listed(tool: Tool, operands: &Operands<'_>, line: &str) -> Option<String> {
    match tool {
        Tool::S3cmd => {
            let start = format!("s3://{}/", operands.bucket);
            let at = line.find(&start)?;
            Some(line[at + start.len()..].to_owned())
        }
        Tool::Aws => {
            if let Some(folder) = line.trim_start().strip_prefix("PRE ") {
                return Some(format!("{}{folder}", operands.folder()));
            }
            // "2026-11-20 17:30:00         11 the key"
            let mut rest = line;
            for _ in 0..3 {
                rest = rest.trim_start();
                rest = &rest[rest.find(' ')?..];
            }
            let key = rest.strip_prefix(' ')?;
            Some(match operands.recursive {
                true => key.to_owned(),
                false => format!("{}{key}", operands.folder()),
            })
        }
        Tool::Mc => {
            let value: Value = serde_json::from_str(line).ok()?;
            let key = value["key"].as_str()?;
            Some(format!("{}{key}", operands.folder()))
        }
        Tool::Rclone => Some(format!("{}{line}", operands.folder())),
        Tool::Swift | Tool::Az => (!line.is_empty()).then(|| line.to_owned()),
        Tool::Gsutil => {
            let start = format!("gs://{}/", operands.bucket);
            line.strip_prefix(&start).map(str::to_owned)
        }
    }
}

/// The object's size in a line of a head's output.
pub(crate) fn size(tool: Tool, line: &str) -> Option<u64> {
    let after = |word: &str| {
        let rest = line[line.find(word)? + word.len()..].trim_start_matches([' ', ':', '"']);
        let end = rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len());
        rest[..end].parse().ok()
    };
    match tool.table_entry().size {
        Size::After(words) => after(words),
        Size::Json => serde_json::from_str::<Value>(line).ok()?["size"].as_u64(),
        Size::Line => line.trim().parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use bucketload_core::op::OpClass;

    use super::{Operands, arguments, classes, listed, size};
    use crate::engines::cli::tool::Tool;

    fn operands(key: &str) -> Operands<'_> {
        Operands {
            bucket: "buck",
            key,
            recursive: true,
            file: Path::new("/tmp/x/file"),
            region: "eu-1",
        }
    }

    fn line(tool: Tool, class: OpClass, key: &str) -> Result<String, &'static str> {
        let words = arguments(tool, class, &operands(key))?;
        let words: Vec<_> = words.iter().map(|w| w.to_string_lossy()).collect();
        Ok(words.join(" "))
    }

    #[test]
    fn exactly_the_supported_classes_have_a_command() {
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
    fn names_that_a_client_would_misinterpret_are_refused() {
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
            assert_eq!(listed(tool, &operands("p/"), text).as_deref(), Some(key));
        }
        assert_eq!(listed(Tool::Aws, &operands("p/"), "Total Objects: 5"), None);
        assert_eq!(listed(Tool::Mc, &operands("p/"), "{}"), None);
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
