//! Which cluster, and who asks.
//!
//! Precedence: `--endpoint-url hdfs://…`, the target's `HOST:PORT`, `fs.defaultFS`. A host without a port
//! is a name service of Hadoop's configuration files if they know it, else a name node at the usual port.
//! The library reads the same files for whatever else it honours.

use crate::hadoop::settings::{note, root_of};
use crate::hadoop::site::Site;
use crate::hadoop::{FileSettings, HadoopOverrides};
use crate::http::config::{ConfigError, Origin, Source};

/// Port of a name node's RPC server unless it says otherwise.
const PORT: u16 = 8020;

/// Settings of an HDFS target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HdfsConfig {
    /// `hdfs://HOST:PORT`, or `hdfs://SERVICE`.
    pub url: String,
    /// Number of name nodes.
    pub name_nodes: usize,
    /// How files are written and by whom.
    pub files: FileSettings,
    /// Where the values came from.
    pub origins: Vec<Origin>,
}

impl HdfsConfig {
    /// Discovers what `overrides` leave open.
    ///
    /// # Errors
    /// When no name node is known, a setting cannot be used, or one was given that this driver has no use
    /// for.
    pub fn discover(
        overrides: &HadoopOverrides,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, ConfigError> {
        let site = Site::discover(env)?;
        let mut origins = Vec::new();
        let (url, source) = cluster(overrides, &site)?;
        let place = source.to_string();
        let wrong = |problem: &str| {
            let remedy = "write hdfs://NAMENODE:8020, or hdfs://SERVICE and set HADOOP_CONF_DIR";
            Err(ConfigError::new(place.clone(), problem, remedy))
        };
        let Some(rest) = url.strip_prefix("hdfs://") else {
            return wrong("it does not begin with hdfs://");
        };
        let (authority, path) = match rest.find('/') {
            Some(at) => rest.split_at(at),
            None => (rest, ""),
        };
        let legal = |b: u8| b.is_ascii_alphanumeric() || b"-._:[]".contains(&b);
        if authority.is_empty() || !authority.bytes().all(legal) {
            return wrong("it names no host that can be used");
        }
        let mut files = FileSettings::discover(&site, env, &mut origins)?;
        files.root = root_of(path, &place)?;
        let service = site.name_nodes(authority, "dfs.namenode.rpc-address");
        let has_port = authority
            .rsplit_once(':')
            .is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let (authority, name_nodes) = match service {
            Some((nodes, source)) if nodes.is_empty() => {
                return Err(ConfigError::new(
                    source.to_string(),
                    format!(
                        "no dfs.namenode.rpc-address.{authority}.* says where the name nodes are"
                    ),
                    "add one for each name node",
                ));
            }
            Some((nodes, _)) => (authority.to_owned(), nodes.len()),
            None if has_port => (authority.to_owned(), 1),
            None => (format!("{authority}:{PORT}"), 1),
        };
        let url = format!("hdfs://{authority}");
        note(&mut origins, "name node", url.clone(), source);
        Ok(Self {
            url,
            name_nodes,
            files,
            origins,
        })
    }
}

/// The cluster's URL and where it came from.
fn cluster(overrides: &HadoopOverrides, site: &Site) -> Result<(String, Source), ConfigError> {
    if let Some(url) = &overrides.endpoint_url {
        return Ok((url.clone(), Source::Flag("--endpoint-url")));
    }
    if let Some(authority) = &overrides.authority {
        return Ok((format!("hdfs://{authority}"), Source::Flag("--target")));
    }
    site.get("fs.defaultFS").ok_or_else(|| {
        ConfigError::new(
            "name node",
            "no address is known",
            "set --endpoint-url hdfs://NAMENODE:8020, write hdfs://NAMENODE:8020/BUCKET/PREFIX, or set \
             HADOOP_CONF_DIR",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::HdfsConfig;
    use crate::hadoop::HadoopOverrides;

    fn of(url: &str, files: &str) -> Result<HdfsConfig, String> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("hdfs-site.xml"), files).unwrap();
        let path = dir.path().display().to_string();
        let env = |name: &str| (name == "HADOOP_CONF_DIR").then(|| path.clone());
        let overrides = HadoopOverrides {
            endpoint_url: (!url.is_empty()).then(|| url.to_owned()),
            ..HadoopOverrides::default()
        };
        HdfsConfig::discover(&overrides, &env).map_err(|e| e.to_string())
    }

    const SERVICE: &str = "<configuration><property><name>dfs.ha.namenodes.ns</name>\
        <value>a,b</value></property><property><name>dfs.namenode.rpc-address.ns.a</name>\
        <value>h:1</value></property><property><name>dfs.namenode.rpc-address.ns.b</name>\
        <value>i:1</value></property><property><name>fs.defaultFS</name>\
        <value>hdfs://ns</value></property></configuration>";

    #[test]
    fn clusters_are_found() {
        for (url, want, nodes, root) in [
            ("hdfs://h:9000", "hdfs://h:9000", 1, ""),
            ("hdfs://h", "hdfs://h:8020", 1, ""),
            ("hdfs://ns/user/me/", "hdfs://ns", 2, "/user/me"),
            ("", "hdfs://ns", 2, ""),
        ] {
            let config = of(url, SERVICE).unwrap();
            assert_eq!(config.url, want);
            assert_eq!(
                (config.name_nodes, config.files.root.as_str()),
                (nodes, root)
            );
        }
    }

    #[test]
    fn what_cannot_be_used_is_refused() {
        for url in [
            "http://h:9870",
            "hdfs://",
            "hdfs:///x",
            "hdfs://a b",
            "hdfs://h/../x",
        ] {
            assert!(of(url, SERVICE).is_err(), "{url}");
        }
        let error = of("", "<configuration/>").unwrap_err();
        assert!(error.contains("--endpoint-url"), "{error}");
    }
}
