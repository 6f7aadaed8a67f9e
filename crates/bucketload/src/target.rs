//! Where the load goes, as written on the command line: `s3://bucket/prefix` and the like, `mem:`,
//! `null:`, `file:///directory` or a bare absolute path, `serve:///directory`.

use std::path::PathBuf;

use bucketload_drivers::swift::check_container;
use serde::{Deserialize, Serialize};

/// A storage API that a service may have. `services` knows how to open each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Api {
    /// Amazon S3 and its kind.
    S3,
    /// Google Cloud Storage, JSON API.
    Gcs,
    /// Azure Blob Storage.
    Azblob,
    /// OpenStack Swift.
    Swift,
    /// HDFS by its REST interface.
    WebHdfs,
    /// HDFS by its RPC protocol.
    #[cfg(feature = "hdfs")]
    Hdfs,
    /// SeaweedFS's own HTTP interfaces.
    Seaweedfs,
    /// A libs3 library in this process.
    Libs3,
}

impl Api {
    /// Every API.
    pub(crate) const ALL: &'static [Self] = &[
        Self::S3, //
        Self::Azblob,
        Self::Gcs,
        Self::Swift,
        Self::WebHdfs,
        #[cfg(feature = "hdfs")]
        Self::Hdfs,
        Self::Seaweedfs,
        Self::Libs3,
    ];

    /// The schemes of its URLs, the usual one first.
    pub(crate) const fn schemes(self) -> &'static [&'static str] {
        match self {
            Self::S3 => &["s3"],
            Self::Gcs => &["gs"],
            Self::Azblob => &["az", "azure"],
            Self::Swift => &["swift"],
            Self::WebHdfs => &["webhdfs"],
            #[cfg(feature = "hdfs")]
            Self::Hdfs => &["hdfs"],
            Self::Seaweedfs => &["seaweedfs"],
            Self::Libs3 => &["libs3"],
        }
    }

    /// The usual scheme of its URLs.
    pub(crate) const fn scheme(self) -> &'static str {
        self.schemes()[0]
    }

    /// Whether its URLs may name the server, as `SCHEME://HOST:PORT/BUCKET/PREFIX`.
    const fn names_servers(self) -> bool {
        match self {
            Self::WebHdfs => true,
            #[cfg(feature = "hdfs")]
            Self::Hdfs => true,
            _ => false,
        }
    }

    fn from_scheme(scheme: &str) -> Option<Self> {
        let mut all = Self::ALL.iter().copied();
        all.find(|api| api.schemes().contains(&scheme))
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
    /// No server: operations that do nothing, to see what the client alone can do.
    Null,
    /// A storage service.
    Service {
        /// How to talk to it.
        api: Api,
        /// `HOST:PORT` of the server, where the API's URLs may name it and this one does.
        server: Option<String>,
        /// Bucket (container, directory) name.
        bucket: String,
        /// Key prefix without a slash at its ends; may be empty.
        prefix: String,
    },
}

/// What may be written as a target.
fn forms() -> String {
    let services = Api::ALL.iter().map(|api| {
        let scheme = api.scheme();
        format!("{scheme}://BUCKET/PREFIX, ")
    });
    let services: String = services.collect();
    format!("use {services}file:///DIRECTORY, mem:, serve:///DIRECTORY or null:")
}

/// Bucket of the embedded targets, and the directory below a directory target that runs work in.
pub(crate) const OWN_BUCKET: &str = "bucketload";

impl Target {
    /// Reads a target.
    ///
    /// # Errors
    /// What is wrong and what may be written instead.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let forms = forms();
        if let Some((scheme, rest)) = text.split_once("://")
            && let Some(api) = Api::from_scheme(scheme)
        {
            let (first, below) = rest.split_once('/').unwrap_or((rest, ""));
            let (server, rest) = match api.names_servers() && first.contains(':') {
                true => (Some(first.to_owned()), below),
                false => (None, rest),
            };
            let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
            if bucket.is_empty() {
                return Err(format!("target {text:?} names no bucket; {forms}"));
            }
            if api == Api::Swift {
                check_container(bucket).map_err(|e| format!("target {text:?}: {e}"))?;
            }
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
                #[cfg(not(feature = "hdfs"))]
                Some(("hdfs", _)) => Err(
                    "hdfs:// is not part of this build: use a package, build with `--features hdfs`, or reach the \
                     same files by webhdfs://"
                        .to_owned(),
                ),
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
            Self::Service { bucket, .. } => bucket,
            _ => OWN_BUCKET,
        }
    }

    /// The prefix that the run's own keys begin with: the user's prefix, then the run's name.
    pub(crate) fn run_prefix(&self, run_id: &str) -> String {
        match self {
            Self::Service { prefix, .. } if !prefix.is_empty() => {
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
    use super::{Api, Target};

    #[test]
    fn forms_are_recognised() {
        let s3 = |bucket: &str, prefix: &str| Target::Service {
            api: Api::S3,
            server: None,
            bucket: bucket.into(),
            prefix: prefix.into(),
        };
        assert_eq!(Target::parse("s3://b"), Ok(s3("b", "")));
        assert_eq!(Target::parse("s3://b/p/q/"), Ok(s3("b", "p/q")));
        let azure = Target::Service {
            server: None,
            api: Api::Azblob,
            bucket: "c".into(),
            prefix: "p".into(),
        };
        let library = Target::Service {
            server: None,
            api: Api::Libs3,
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
            "file://relative",
            "az://",
            "abfss://c@account.dfs.core.windows.net/p",
            "serve://relative",
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
    fn hadoop_urls_may_name_the_name_node() {
        let webhdfs = |server: Option<&str>, bucket: &str, prefix: &str| Target::Service {
            api: Api::WebHdfs,
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
    fn runs_write_below_a_prefix_of_their_own() {
        assert_eq!(
            Target::parse("s3://b/p").unwrap().run_prefix("x"),
            "p/bucketload-x/"
        );
        assert_eq!(Target::Memory.run_prefix("x"), "bucketload-x/");
    }
}
