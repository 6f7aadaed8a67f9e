//! Where the load goes, as written on the command line: `s3://bucket/prefix`, `mem:`, `null:`,
//! `file:///directory` or a bare absolute path.

use std::path::PathBuf;

/// A target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// The embedded server over memory.
    Memory,
    /// The embedded server over a directory.
    Directory(PathBuf),
    /// No server: operations that do nothing, to see what the client alone can do.
    Null,
    /// An S3 service.
    S3 {
        /// Bucket name.
        bucket: String,
        /// Key prefix without a slash at its ends; may be empty.
        prefix: String,
    },
}

/// Bucket of the embedded targets.
pub(crate) const OWN_BUCKET: &str = "bucketload";

impl Target {
    /// Reads a target.
    ///
    /// # Errors
    /// What is wrong and what may be written instead.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let forms = "use s3://BUCKET/PREFIX, mem:, null: or file:///DIRECTORY";
        if let Some(rest) = text.strip_prefix("s3://") {
            let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
            if bucket.is_empty() {
                return Err(format!("target {text:?} names no bucket; {forms}"));
            }
            return Ok(Self::S3 {
                bucket: bucket.to_owned(),
                prefix: prefix.trim_matches('/').to_owned(),
            });
        }
        let path = text
            .strip_prefix("file://")
            .or_else(|| text.starts_with('/').then_some(text));
        match (path, text) {
            (Some(path), _) if path.starts_with('/') => Ok(Self::Directory(PathBuf::from(path))),
            (Some(_), _) => Err(format!("target {text:?} is not an absolute path; {forms}")),
            (None, "mem:" | "memory" | "mem") => Ok(Self::Memory),
            (None, "null:" | "null") => Ok(Self::Null),
            (None, _) => match text.split_once("://") {
                Some((scheme, _)) => Err(format!(
                    "there is no driver for {scheme}:// targets yet; {forms}"
                )),
                None => Err(format!("{text:?} is not a target; {forms}")),
            },
        }
    }

    /// The bucket that the run works in.
    pub(crate) fn bucket(&self) -> &str {
        match self {
            Self::S3 { bucket, .. } => bucket,
            _ => OWN_BUCKET,
        }
    }

    /// The prefix that the run's own keys begin with: the user's prefix, then the run's name.
    pub(crate) fn run_prefix(&self, run_id: &str) -> String {
        match self {
            Self::S3 { prefix, .. } if !prefix.is_empty() => {
                format!("{prefix}/bucketload-{run_id}/")
            }
            _ => format!("bucketload-{run_id}/"),
        }
    }

    /// Whether the target is a server of our own that ends with the run.
    pub(crate) fn is_embedded(&self) -> bool {
        matches!(self, Self::Memory | Self::Directory(_))
    }
}

#[cfg(test)]
mod tests {
    use super::Target;

    #[test]
    fn forms_are_recognised() {
        let s3 = |bucket: &str, prefix: &str| Target::S3 {
            bucket: bucket.into(),
            prefix: prefix.into(),
        };
        assert_eq!(Target::parse("s3://b"), Ok(s3("b", "")));
        assert_eq!(Target::parse("s3://b/p/q/"), Ok(s3("b", "p/q")));
        assert_eq!(Target::parse("mem:"), Ok(Target::Memory));
        assert_eq!(Target::parse("null:"), Ok(Target::Null));
        assert_eq!(
            Target::parse("file:///data"),
            Ok(Target::Directory("/data".into()))
        );
        assert_eq!(
            Target::parse("/data"),
            Ok(Target::Directory("/data".into()))
        );
        for wrong in [
            "",
            "s3://",
            "s3:///p",
            "file://relative",
            "az://c",
            "bucket/prefix",
        ] {
            assert!(
                Target::parse(wrong)
                    .unwrap_err()
                    .contains("s3://BUCKET/PREFIX"),
                "{wrong}"
            );
        }
    }

    #[test]
    fn runs_write_below_a_prefix_of_their_own() {
        assert_eq!(
            Target::parse("s3://b/p").unwrap().run_prefix("x"),
            "p/bucketload-x/"
        );
        assert_eq!(Target::Memory.run_prefix("x"), "bucketload-x/");
    }
}
