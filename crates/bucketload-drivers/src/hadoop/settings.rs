//! Settings of both HDFS drivers: the user, the directory of the buckets, and the layout of files.
//! Precedence: flag, environment, Hadoop's configuration files, default.

use std::net::IpAddr;

use super::site::Site;
use crate::http::config::{ConfigError, Origin, Source, TlsConfig};

/// Settings from the caller; everything else is looked up.
#[derive(Clone, Debug, Default)]
pub struct HadoopOverrides {
    /// Name node of a target in Hadoop's own form, `HOST:PORT`.
    pub authority: Option<String>,
    /// URLs of the name nodes, separated by commas.
    pub endpoint_url: Option<String>,
    /// Encryption of `https` name and data nodes.
    pub tls: TlsConfig,
    /// Local addresses to connect from; worker `w` uses number `w` modulo their number.
    pub source_addresses: Vec<IpAddr>,
}

/// User and layout of files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileSettings {
    /// User who makes the requests (simple authentication); `None` leaves it to the cluster.
    pub user: Option<String>,
    /// Directory of the buckets, without a trailing slash; empty for the root.
    pub root: String,
    /// Copies of each block; `None` = the cluster's default.
    pub replication: Option<u32>,
    /// Bytes of a block; `None` = the cluster's default.
    pub block_size: Option<u64>,
}

impl FileSettings {
    /// Looks up everything but the root.
    ///
    /// # Errors
    /// When the user or a number in a configuration file is invalid.
    pub(crate) fn discover(
        site: &Site,
        env: &dyn Fn(&str) -> Option<String>,
        origins: &mut Vec<Origin>,
    ) -> Result<Self, ConfigError> {
        let users = ["HADOOP_USER_NAME", "USER", "LOGNAME"].into_iter();
        let user = users
            .filter_map(|name| Some((env(name).filter(|v| !v.is_empty())?, Source::Env(name))))
            .next();
        if let Some((user, _)) = &user
            && !user.bytes().all(|b| b.is_ascii_graphic())
        {
            return Err(ConfigError::new(
                "HADOOP_USER_NAME",
                "the user's name contains blanks or characters that are not ASCII",
                "set HADOOP_USER_NAME to a user of the cluster",
            ));
        }
        let shown = user.as_ref().map_or("none", |(user, _)| user);
        let source = user.as_ref().map_or(Source::Default, |(_, s)| s.clone());
        note(origins, "user", shown.to_owned(), source);
        let replication = number(site, "dfs.replication", "replication", origins)?;
        let block_size = size(site, "dfs.blocksize", "block size", origins)?;
        Ok(Self {
            user: user.map(|(user, _)| user),
            root: String::new(),
            replication,
            block_size,
        })
    }

    /// The settings as name and value, for the result header.
    pub(crate) fn facts(&self) -> Vec<(&'static str, String)> {
        let or = |value: Option<String>| value.unwrap_or_else(|| "the cluster's".to_owned());
        let user = self.user.clone().unwrap_or_else(|| "none".to_owned());
        let mut facts = vec![
            ("user", user),
            ("replication", or(self.replication.map(|n| n.to_string()))),
            ("block size", or(self.block_size.map(|n| n.to_string()))),
        ];
        if !self.root.is_empty() {
            facts.push(("root", self.root.clone()));
        }
        facts
    }
}

/// Adds a line to the report of settings.
pub(crate) fn note(
    origins: &mut Vec<Origin>,
    name: &'static str,
    value: impl Into<String>,
    source: Source,
) {
    origins.push(Origin {
        name,
        value: value.into(),
        source,
    });
}

fn number(
    site: &Site,
    key: &str,
    name: &'static str,
    origins: &mut Vec<Origin>,
) -> Result<Option<u32>, ConfigError> {
    let Some((text, source)) = site.get(key) else {
        return Ok(None);
    };
    let Some(value) = text.parse().ok().filter(|n| *n > 0) else {
        return Err(ConfigError::new(
            source.to_string(),
            format!("`{text}` is not a number above 0"),
            "write a number such as 3",
        ));
    };
    note(origins, name, text, source);
    Ok(Some(value))
}

/// Reads a number of bytes with one of Hadoop's suffixes, which are powers of 1024.
fn size(
    site: &Site,
    key: &str,
    name: &'static str,
    origins: &mut Vec<Origin>,
) -> Result<Option<u64>, ConfigError> {
    let Some((text, source)) = site.get(key) else {
        return Ok(None);
    };
    let lower = text.to_ascii_lowercase();
    let digits = lower.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match &lower[digits.len()..] {
        "" => Some(0),
        "k" => Some(10),
        "m" => Some(20),
        "g" => Some(30),
        _ => None,
    };
    let value = shift
        .zip(digits.parse::<u64>().ok())
        .and_then(|(shift, n)| n.checked_mul(1 << shift))
        .filter(|n| *n > 0);
    let Some(value) = value else {
        return Err(ConfigError::new(
            source.to_string(),
            format!("`{text}` is not a size"),
            "write bytes, or a number with k, m or g",
        ));
    };
    note(origins, name, text, source);
    Ok(Some(value))
}

/// Checks a base directory and strips the trailing slash.
///
/// # Errors
/// When `path` is not a plain absolute path.
pub(crate) fn root_of(path: &str, place: &str) -> Result<String, ConfigError> {
    let root = path.trim_end_matches('/');
    let sound = root.is_empty()
        || (root.starts_with('/')
            && root[1..]
                .split('/')
                .all(|segment| !matches!(segment, "" | "." | "..") && !segment.contains(':')));
    if sound {
        return Ok(root.to_owned());
    }
    Err(ConfigError::new(
        place,
        format!("`{root}` is not a directory that HDFS can have"),
        "write an absolute path without `.`, `..` and `:`",
    ))
}

#[cfg(test)]
mod tests {
    use super::{FileSettings, root_of};
    use crate::hadoop::site::Site;

    fn discover(xml: &str, user: &str) -> Result<FileSettings, String> {
        let env = |name: &str| (name == "HADOOP_USER_NAME").then(|| user.to_owned());
        let site = Site::of(xml);
        FileSettings::discover(&site, &env, &mut Vec::new()).map_err(|e| e.to_string())
    }

    fn property(name: &str, value: &str) -> String {
        format!(
            "<configuration><property><name>{name}</name><value>{value}</value></property></configuration>"
        )
    }

    #[test]
    fn configuration_files_and_environment_are_read() {
        let found = discover(&property("dfs.blocksize", "64m"), "alice").unwrap();
        assert_eq!(found.user.as_deref(), Some("alice"));
        assert_eq!(found.block_size, Some(64 << 20));
        assert_eq!(found.replication, None);
        let found = discover(&property("dfs.replication", "2"), "").unwrap();
        assert_eq!((found.user, found.replication), (None, Some(2)));
        for (name, value) in [
            ("dfs.replication", "0"),
            ("dfs.replication", "x"),
            ("dfs.blocksize", "1t"),
            ("dfs.blocksize", "99999999999999999999"),
        ] {
            let error = discover(&property(name, value), "").unwrap_err();
            assert!(error.contains(name), "{error}");
        }
        assert!(discover("<configuration/>", "two words").is_err());
    }

    #[test]
    fn roots_are_plain_directories() {
        assert_eq!(root_of("/a/b/", "t").unwrap(), "/a/b");
        assert_eq!(root_of("/", "t").unwrap(), "");
        assert_eq!(root_of("", "t").unwrap(), "");
        for bad in ["a", "/a/../b", "/a//b", "/a:b"] {
            assert!(root_of(bad, "t").is_err(), "{bad}");
        }
    }
}
