//! What each client is asked to do, and what its output says.

use std::ffi::OsString;
use std::path::Path;

use bucketload_core::op::OpClass;
use serde_json::Value;

use super::access::ALIAS;
use super::tool::Tool;

/// Classes that every client of S3 has a command for.
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

/// The classes of the client of Swift: its command for a container deletes what is in it as well.
const SWIFT: [OpClass; 7] = [
    OpClass::Get,
    OpClass::Put,
    OpClass::Head,
    OpClass::Delete,
    OpClass::List,
    OpClass::MakeBucket,
    OpClass::ListBuckets,
];

/// The classes of the client of Azure: its command for a container deletes what is in it as well.
const AZ: [OpClass; 7] = SWIFT;

/// The classes that `tool` has a command for.
pub(crate) const fn classes(tool: Tool) -> &'static [OpClass] {
    match tool {
        Tool::Swift => &SWIFT,
        Tool::Az => &AZ,
        _ => &CLASSES,
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
    let Subject { bucket, key, .. } = *subject;
    let file = || subject.file.as_os_str().to_owned();
    let words = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
    let url = format!("s3://{bucket}/{key}");
    let at = match tool {
        Tool::Mc => format!("{ALIAS}/{bucket}/{key}"),
        Tool::Rclone => format!("{ALIAS}:{bucket}/{key}"),
        Tool::Aws | Tool::S3cmd => url.clone(),
        Tool::Swift | Tool::Az => bucket.to_owned(),
        Tool::Gsutil => format!("gs://{bucket}/{key}"),
    };
    let base = at
        .strip_suffix(key)
        .and_then(|text| text.strip_suffix('/'))
        .unwrap_or(&at)
        .to_owned();
    let send = |mut line: Vec<OsString>| {
        line.push(file());
        line.push(at.clone().into());
        line
    };
    let receive = |mut line: Vec<OsString>| {
        line.push(at.clone().into());
        line.push(file());
        line
    };
    use OpClass as C;
    Ok(match (tool, class) {
        (Tool::Aws, C::Put) => send(words(&["s3", "cp", "--only-show-errors"])),
        (Tool::Aws, C::Get) => receive(words(&["s3", "cp", "--only-show-errors"])),
        (Tool::Aws, C::Delete) => words(&["s3", "rm", "--only-show-errors", &at]),
        (Tool::Aws, C::Head) => words(&[
            "s3api",
            "head-object",
            "--output",
            "json",
            "--bucket",
            bucket,
            "--key",
            key,
        ]),
        (Tool::Aws, C::List) if subject.recursive => words(&["s3", "ls", "--recursive", &at]),
        (Tool::Aws, C::List) => words(&["s3", "ls", &at]),
        (Tool::Aws, C::MakeBucket) => words(&["s3", "mb", &base]),
        (Tool::Aws, C::DeleteBucket) => words(&["s3", "rb", &base]),
        (Tool::Aws, C::ListBuckets) => words(&["s3", "ls"]),

        (Tool::S3cmd, C::Put) => send(words(&["put"])),
        (Tool::S3cmd, C::Get) => receive(words(&["get", "--force"])),
        (Tool::S3cmd, C::Delete) => words(&["del", &at]),
        (Tool::S3cmd, C::Head) => words(&["info", &at]),
        (Tool::S3cmd, C::List) if subject.recursive => words(&["ls", "--recursive", &at]),
        (Tool::S3cmd, C::List) => words(&["ls", &at]),
        (Tool::S3cmd, C::MakeBucket) => words(&["mb", &base]),
        (Tool::S3cmd, C::DeleteBucket) => words(&["rb", &base]),
        (Tool::S3cmd, C::ListBuckets) => words(&["ls"]),

        (Tool::Mc, C::Put) => send(words(&["cp"])),
        (Tool::Mc, C::Get) => receive(words(&["cp"])),
        (Tool::Mc, C::Delete) => words(&["rm", &at]),
        (Tool::Mc, C::Head) => words(&["stat", &at]),
        (Tool::Mc, C::List) if subject.recursive => words(&["ls", "--recursive", &at]),
        (Tool::Mc, C::List) => words(&["ls", &at]),
        (Tool::Mc, C::MakeBucket) => words(&["mb", "--region", subject.region, &base]),
        (Tool::Mc, C::DeleteBucket) => words(&["rb", &base]),
        (Tool::Mc, C::ListBuckets) => words(&["ls", ALIAS]),

        (Tool::Rclone, C::Put) => send(words(&["copyto", "--s3-no-check-bucket"])),
        (Tool::Rclone, C::Get) => receive(words(&["copyto"])),
        (Tool::Rclone, C::Delete) => words(&["deletefile", &at]),
        (Tool::Rclone, C::Head) => words(&["lsjson", "--stat", &at]),
        (Tool::Rclone, C::List) if subject.recursive => {
            words(&["lsf", "--recursive", "--files-only", &at])
        }
        (Tool::Rclone, C::List) => words(&["lsf", &at]),
        (Tool::Rclone, C::MakeBucket) => words(&["mkdir", &base]),
        (Tool::Rclone, C::DeleteBucket) => words(&["rmdir", &base]),
        (Tool::Rclone, C::ListBuckets) => words(&["lsf", &format!("{ALIAS}:")]),

        (Tool::Swift, C::Put) => {
            let mut line = words(&["upload", "--object-name", key, &at]);
            line.push(file());
            line
        }
        (Tool::Swift, C::Get) => {
            let mut line = words(&["download", &at, key, "--output"]);
            line.push(file());
            line
        }
        (Tool::Swift, C::Delete) => words(&["delete", &at, key]),
        (Tool::Swift, C::Head) => words(&["stat", &at, key]),
        (Tool::Swift, C::List) if subject.recursive => words(&["list", &at, "--prefix", key]),
        (Tool::Swift, C::List) => words(&["list", &at, "--prefix", key, "--delimiter", "/"]),
        (Tool::Swift, C::MakeBucket) => words(&["post", &at]),
        (Tool::Swift, C::ListBuckets) => words(&["list"]),
        (Tool::Az, C::Put | C::Get) => {
            let verb = if class == C::Put {
                "upload"
            } else {
                "download"
            };
            let mut line = blob(verb, bucket, key);
            line.extend(words(match class {
                C::Put => &["--overwrite", "--output", "none", "--file"],
                _ => &["--output", "none", "--file"],
            }));
            line.push(file());
            line
        }
        (Tool::Az, C::Delete) => {
            let mut line = blob("delete", bucket, key);
            line.extend(words(&["--output", "none"]));
            line
        }
        (Tool::Az, C::Head) => {
            let mut line = blob("show", bucket, key);
            let only = ["--query", "properties.contentLength", "--output", "tsv"];
            line.extend(words(&only));
            line
        }
        (Tool::Az, C::List) => {
            let mut line = words(&["storage", "blob", "list", "--container-name", bucket]);
            line.extend(words(&ALL_NAMES));
            if !key.is_empty() {
                line.push(format!("--prefix={key}").into());
            }
            if !subject.recursive {
                line.push("--delimiter=/".into());
            }
            line
        }
        (Tool::Az, C::MakeBucket) => words(&[
            "storage",
            "container",
            "create",
            "--fail-on-exist",
            "--output",
            "none",
            "--name",
            bucket,
        ]),
        (Tool::Az, C::ListBuckets) => {
            let mut line = words(&["storage", "container", "list"]);
            line.extend(words(&ALL_NAMES));
            line
        }

        (Tool::Gsutil, C::Put) => send(words(&["-q", "cp"])),
        (Tool::Gsutil, C::Get) => receive(words(&["-q", "cp"])),
        (Tool::Gsutil, C::Delete) => words(&["-q", "rm", &at]),
        (Tool::Gsutil, C::Head) => words(&["stat", &at]),
        (Tool::Gsutil, C::List) if subject.recursive => words(&["ls", &format!("{at}**")]),
        (Tool::Gsutil, C::List) => words(&["ls", "-d", &format!("{at}*")]),
        (Tool::Gsutil, C::MakeBucket) => words(&["-q", "mb", &base]),
        (Tool::Gsutil, C::DeleteBucket) => words(&["-q", "rb", &base]),
        (Tool::Gsutil, C::ListBuckets) => words(&["ls"]),
        _ => return Err("it has no command for this"),
    })
}

/// What makes `az` print the name of everything in a listing, a line each.
const ALL_NAMES: [&str; 6] = [
    "--num-results",
    "*",
    "--query",
    "[].name",
    "--output",
    "tsv",
];

/// The command of `az` for a blob. A value that begins with a hyphen stays one behind an equals sign.
fn blob(verb: &str, container: &str, key: &str) -> Vec<OsString> {
    let mut line: Vec<OsString> = ["storage", "blob", verb, "--container-name", container]
        .map(OsString::from)
        .to_vec();
    line.push(format!("--name={key}").into());
    line
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
    match tool {
        Tool::Aws => after("\"ContentLength\""),
        Tool::S3cmd => after("File size"),
        Tool::Mc => serde_json::from_str::<Value>(line).ok()?["size"].as_u64(),
        Tool::Rclone => after("\"Size\""),
        Tool::Swift => after("Content Length"),
        Tool::Az => line.trim().parse().ok(),
        Tool::Gsutil => after("Content-Length"),
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
