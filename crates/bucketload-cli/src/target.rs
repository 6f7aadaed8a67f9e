//! Targets as written on the command line: `s3://bucket/prefix` and the like, `mem:`, `null:`, `file:///directory` or a
//! bare absolute path, `serve:///directory`.

use std::fmt;
use std::path::PathBuf;

use bucketload_target::{Descriptor, UrlForm};
use bucketload_workload::resolve::{EMBEDDED_MEMORY_BUDGET, ResolveContext};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::drivers::registry;

/// The storage API of a target: a registered driver. Serialized as its usual scheme.
#[derive(Clone, Copy)]
pub(crate) struct Api(&'static Descriptor);

impl Api {
    /// The driver of URLs with `scheme`.
    pub(crate) fn of_scheme(scheme: &str) -> Option<Self> {
        registry().by_scheme(scheme).map(Self)
    }

    /// The driver of the embedded servers.
    pub(crate) fn s3() -> Self {
        Self::known("s3")
    }

    /// The driver of directories.
    pub(crate) fn files() -> Self {
        Self::known("file")
    }

    /// A driver that every registry has.
    ///
    /// # Panics
    /// When the registry lacks it.
    pub(crate) fn known(scheme: &str) -> Self {
        Self::of_scheme(scheme).unwrap_or_else(|| panic!("no driver of {scheme}:// is registered"))
    }

    /// The driver's description of itself.
    pub(crate) const fn descriptor(self) -> &'static Descriptor {
        self.0
    }

    /// The usual scheme of its URLs.
    pub(crate) const fn scheme(self) -> &'static str {
        self.0.scheme()
    }
}

impl PartialEq for Api {
    fn eq(&self, other: &Self) -> bool {
        self.scheme() == other.scheme()
    }
}

impl Eq for Api {}

impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.scheme())
    }
}

impl Serialize for Api {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.scheme())
    }
}

impl<'de> Deserialize<'de> for Api {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let scheme = String::deserialize(deserializer)?;
        Self::of_scheme(&scheme)
            .ok_or_else(|| D::Error::custom(format!("no driver of {scheme}://")))
    }
}

/// A target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Target {
    /// The embedded server over memory.
    Memory,
    /// The embedded server over a directory.
    Directory(PathBuf),
    /// A directory of a file system.
    Files(PathBuf),
    /// No server: operations do nothing, which shows what the client alone can do.
    Null,
    /// A storage service.
    Service {
        api: Api,
        /// `HOST:PORT` of the server, if the URL names it.
        server: Option<String>,
        /// Bucket (container, directory) name.
        bucket: String,
        /// Key prefix without leading and trailing slash; may be empty.
        prefix: String,
    },
}

/// The forms of a target, for error messages.
fn forms() -> String {
    let forms = registry().drivers.iter().map(|driver| match driver.form {
        UrlForm::Bucket | UrlForm::ServerAndBucket => {
            format!("{}://BUCKET/PREFIX, ", driver.scheme())
        }
        UrlForm::Directory => format!("{}:///DIRECTORY, ", driver.scheme()),
    });
    format!(
        "use {}mem:, serve:///DIRECTORY or null:",
        forms.collect::<String>()
    )
}

/// What to write instead of a text that is likely something else: the address of a service, a relative path, a bucket.
fn misplaced(text: &str) -> Option<String> {
    let service = |url: &str, path: &str| {
        let bucket = path.split('/').next().filter(|bucket| !bucket.is_empty());
        Some(format!(
            "it is the address of a service: write --target s3://{} --endpoint-url {url}",
            bucket.unwrap_or("BUCKET/PREFIX")
        ))
    };
    for scheme in ["http://", "https://"] {
        if let Some(rest) = text.strip_prefix(scheme) {
            let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
            return service(&format!("{scheme}{host}"), path);
        }
    }
    let directory = |path: &str| {
        let path = std::path::absolute(path).ok()?;
        Some(format!("write the whole path: file://{}", path.display()))
    };
    let relative = |text: &str| !text.is_empty() && !text.starts_with('/');
    if let Some(path) = text.strip_prefix("file:") {
        let path = path.strip_prefix("//").unwrap_or(path);
        return relative(path).then(|| directory(path)).flatten();
    }
    if text.starts_with("./") || text.starts_with("../") || text.starts_with("~/") {
        return directory(text);
    }
    let (host, path) = text.split_once('/').unwrap_or((text, ""));
    if let Some((_, port)) = host.rsplit_once(':') {
        let is_port = port.parse::<u16>().is_ok();
        return is_port
            .then(|| service(&format!("http://{host}"), path))
            .flatten();
    }
    let is_bucket = !text.contains(':') && !text.is_empty() && !text.starts_with('/');
    let known = matches!(text, "mem" | "memory" | "null");
    (is_bucket && !known).then(|| {
        format!("write s3://{text} for a bucket, file:///DIRECTORY for a directory, or mem: for the embedded server")
    })
}

/// Bucket of the embedded targets, and the subdirectory of a directory target in which runs work.
pub(crate) const OWN_BUCKET: &str = "bucketload";

impl Target {
    /// Reads a target.
    ///
    /// # Errors
    /// What is wrong, and what to write instead.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let forms = forms();
        if let Some(advice) = misplaced(text) {
            return Err(format!("{text:?} is not a target; {advice}"));
        }
        if let Some((scheme, rest)) = text.split_once("://")
            && let Some(api) = Api::of_scheme(scheme)
            && let driver = api.descriptor()
            && driver.form != UrlForm::Directory
        {
            let (first, below) = rest.split_once('/').unwrap_or((rest, ""));
            let names_server = driver.form == UrlForm::ServerAndBucket && first.contains(':');
            let (server, rest) = match names_server {
                true => (Some(first.to_owned()), below),
                false => (None, rest),
            };
            let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
            if bucket.is_empty() {
                return Err(format!("target {text:?} names no bucket; {forms}"));
            }
            (driver.check_bucket)(bucket).map_err(|e| format!("target {text:?}: {e}"))?;
            return Ok(Self::Service {
                api,
                server,
                bucket: bucket.to_owned(),
                prefix: prefix.trim_matches('/').to_owned(),
            });
        }
        if let Some(path) = text.strip_prefix("serve://") {
            return match path.starts_with('/') {
                true => Ok(Self::Directory(PathBuf::from(path))),
                false => Err(format!("target {text:?} is not an absolute path; {forms}")),
            };
        }
        let path = text
            .strip_prefix("file://")
            .or_else(|| text.starts_with('/').then_some(text));
        match (path, text) {
            (Some(path), _) if path.starts_with('/') => Ok(Self::Files(PathBuf::from(path))),
            (Some(_), _) => Err(format!("target {text:?} is not an absolute path; {forms}")),
            (None, "mem:" | "memory" | "mem") => Ok(Self::Memory),
            (None, "null:" | "null") => Ok(Self::Null),
            (None, _) => match text.split_once("://") {
                Some((scheme, _)) => {
                    let mut absent = registry().absent.iter();
                    Err(match absent.find(|(known, _)| *known == scheme) {
                        Some((_, remedy)) => (*remedy).to_owned(),
                        None => format!("there is no driver for {scheme}:// targets; {forms}"),
                    })
                }
                None => Err(format!("{text:?} is not a target; {forms}")),
            },
        }
    }

    /// The bucket that the run works in.
    pub(crate) fn bucket(&self) -> &str {
        match self {
            Self::Service { bucket, .. } => bucket,
            _ => OWN_BUCKET,
        }
    }

    /// The prefix of the run's keys: the user's prefix, then the run's name.
    pub(crate) fn run_prefix(&self, run_id: &str) -> String {
        match self {
            Self::Service { prefix, .. } if !prefix.is_empty() => {
                format!("{prefix}/bucketload-{run_id}/")
            }
            _ => format!("bucketload-{run_id}/"),
        }
    }

    /// What the workload resolver must know about the target.
    pub(crate) fn resolve_context(&self) -> ResolveContext {
        ResolveContext {
            memory_budget: (*self == Self::Memory).then_some(EMBEDDED_MEMORY_BUDGET),
        }
    }

    /// Whether the target is an embedded server, which ends with the run.
    pub(crate) fn is_embedded(&self) -> bool {
        matches!(self, Self::Memory | Self::Directory(_))
    }
}

#[cfg(test)]
mod tests {
    use super::{Api, Target};

    #[test]
    fn forms_are_recognised() {
        let s3 = |bucket: &str, prefix: &str| Target::Service {
            api: Api::s3(),
            server: None,
            bucket: bucket.into(),
            prefix: prefix.into(),
        };
        assert_eq!(Target::parse("s3://b"), Ok(s3("b", "")));
        assert_eq!(Target::parse("s3://b/p/q/"), Ok(s3("b", "p/q")));
        let azure = Target::Service {
            server: None,
            api: Api::known("az"),
            bucket: "c".into(),
            prefix: "p".into(),
        };
        let library = Target::Service {
            server: None,
            api: Api::known("libs3"),
            bucket: "b".into(),
            prefix: "p".into(),
        };
        assert_eq!(Target::parse("libs3://b/p"), Ok(library));
        assert_eq!(Target::parse("az://c/p"), Ok(azure.clone()));
        assert_eq!(Target::parse("azure://c/p"), Ok(azure));
        assert_eq!(Target::parse("mem:"), Ok(Target::Memory));
        assert_eq!(Target::parse("null:"), Ok(Target::Null));
        assert_eq!(
            Target::parse("file:///data"),
            Ok(Target::Files("/data".into()))
        );
        assert_eq!(Target::parse("/data"), Ok(Target::Files("/data".into())));
        assert_eq!(
            Target::parse("serve:///data"),
            Ok(Target::Directory("/data".into()))
        );
        for wrong in [
            "",
            "s3://",
            "s3:///p",
            "az://",
            "abfss://c@account.dfs.core.windows.net/p",
            "serve://relative",
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
    fn what_is_no_target_gets_the_form_that_was_meant() {
        for (wrong, remedy) in [
            (
                "localhost:9000",
                "s3://BUCKET/PREFIX --endpoint-url http://localhost:9000",
            ),
            ("https://h:9000/b/p", "s3://b --endpoint-url https://h:9000"),
            (
                "10.0.0.1:9000/b",
                "s3://b --endpoint-url http://10.0.0.1:9000",
            ),
            ("bucket/prefix", "s3://bucket/prefix"),
            ("file://relative", "file:///"),
            ("file:relative", "/relative"),
            ("./relative", "/relative"),
        ] {
            let error = Target::parse(wrong).unwrap_err();
            assert!(error.contains(remedy), "{wrong}: {error}");
        }
    }

    #[test]
    fn hadoop_urls_may_name_the_name_node() {
        let webhdfs = |server: Option<&str>, bucket: &str, prefix: &str| Target::Service {
            api: Api::known("webhdfs"),
            server: server.map(str::to_owned),
            bucket: bucket.into(),
            prefix: prefix.into(),
        };
        assert_eq!(
            Target::parse("webhdfs://nn:9870/data/bench/"),
            Ok(webhdfs(Some("nn:9870"), "data", "bench"))
        );
        assert_eq!(
            Target::parse("webhdfs://data/bench"),
            Ok(webhdfs(None, "data", "bench"))
        );
        assert!(Target::parse("webhdfs://nn:9870/").is_err());
    }

    #[test]
    fn each_run_writes_below_its_own_prefix() {
        assert_eq!(
            Target::parse("s3://b/p").unwrap().run_prefix("x"),
            "p/bucketload-x/"
        );
        assert_eq!(Target::Memory.run_prefix("x"), "bucketload-x/");
    }
}
