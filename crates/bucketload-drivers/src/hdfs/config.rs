//! Configuration of the HDFS driver: the cluster's address and the settings of files.
//!
//! Precedence: `--endpoint-url hdfs://…`, the target's `HOST:PORT`, `fs.defaultFS`. A host without a port
//! is a name service if Hadoop's configuration files define it, else a name node at the default port. The
//! library reads the same files for its other settings.

use crate::hadoop::settings::{note, root_of};
use crate::hadoop::site::Site;
use crate::hadoop::{FileSettings, HadoopOverrides};
use crate::http::config::{ConfigError, Origin, Source};

/// Default port of a name node's RPC server.
const PORT: u16 = 8020;

/// Settings of an HDFS target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HdfsConfig {
    /// `hdfs://HOST:PORT`, or `hdfs://SERVICE`.
    pub url: String,
    /// Number of name nodes.
    pub name_nodes: usize,
    /// User and layout of files.
    pub files: FileSettings,
    /// Why gets and heads go through the library, like all other operations; `None` when the driver
    /// performs them itself.
    pub library_reads: Option<String>,
    /// Where the values came from.
    pub origins: Vec<Origin>,
}

impl HdfsConfig {
    /// Looks up every setting that `overrides` do not give.
    ///
    /// # Errors
    /// When no name node is known or a setting cannot be used.
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
            return wrong("it does not start with hdfs://");
        };
        let (authority, path) = match rest.find('/') {
            Some(at) => rest.split_at(at),
            None => (rest, ""),
        };
        let legal = |b: u8| b.is_ascii_alphanumeric() || b"-._:[]".contains(&b);
        if authority.is_empty() || !authority.bytes().all(legal) {
            return wrong("it does not name a usable host");
        }
        let mut files = FileSettings::discover(&site, env, &mut origins)?;
        files.root = root_of(path, &place)?;
        let library_reads = library_reads(&site, &files, authority, env);
        let service = site.name_nodes(authority, "dfs.namenode.rpc-address");
        let has_port = authority
            .rsplit_once(':')
            .is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let (authority, name_nodes) = match service {
            Some((nodes, source)) if nodes.is_empty() => {
                return Err(ConfigError::new(
                    source.to_string(),
                    format!(
                        "no dfs.namenode.rpc-address.{authority}.* gives the address of a name node"
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
            library_reads,
            origins,
        })
    }
}

/// Why only the library can read from the cluster: the settings require more than plain connections to
/// one name node and its data nodes. `None` if they do not.
fn library_reads(
    site: &Site,
    files: &FileSettings,
    authority: &str,
    env: &dyn Fn(&str) -> Option<String>,
) -> Option<String> {
    let said = |name: &str| site.get(name).map(|(value, _)| value);
    let switched = |name: &str| said(name).filter(|value| value.eq_ignore_ascii_case("true"));
    let kerberos = said("hadoop.security.authentication").filter(|kind| kind != "simple");
    let settings = [
        ("hadoop.security.authentication", kerberos),
        (
            "dfs.data.transfer.protection",
            said("dfs.data.transfer.protection"),
        ),
        (
            "dfs.encrypt.data.transfer",
            switched("dfs.encrypt.data.transfer"),
        ),
        (
            "dfs.client.use.datanode.hostname",
            switched("dfs.client.use.datanode.hostname"),
        ),
    ];
    for (name, value) in settings {
        if let Some(value) = value {
            return Some(format!("{name} is {value}"));
        }
    }
    let set = |name: &&str| env(name).is_some_and(|value| !value.is_empty());
    if let Some(name) = ["HADOOP_PROXY_USER", "HADOOP_TOKEN_FILE_LOCATION"]
        .iter()
        .find(|name| set(name))
    {
        return Some(format!("{name} is set"));
    }
    if files.user.is_none() {
        return Some("no user is set".to_owned());
    }
    let service = said(&format!("dfs.ha.namenodes.{authority}"));
    service.map(|_| format!("{authority} is a name service"))
}

/// The cluster's URL and its origin.
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
    use super::{HdfsConfig, library_reads};
    use crate::hadoop::site::Site;
    use crate::hadoop::{FileSettings, HadoopOverrides};

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
    fn the_library_reads_from_clusters_that_are_not_plain() {
        let why = |property: &str, env: &[(&str, &str)]| {
            let env = |name: &str| {
                let set = env.iter().find(|(set, _)| *set == name);
                set.map(|(_, value)| (*value).to_owned())
            };
            let site = Site::of(&format!("<configuration>{property}</configuration>"));
            let files = FileSettings::discover(&site, &env, &mut Vec::new()).unwrap();
            library_reads(&site, &files, "ns", &env)
        };
        let property = |name: &str, value: &str| {
            format!("<property><name>{name}</name><value>{value}</value></property>")
        };
        let user = ("HADOOP_USER_NAME", "u");
        for plain in [
            String::new(),
            property("hadoop.security.authentication", "simple"),
            property("dfs.encrypt.data.transfer", "false"),
            property("dfs.ha.namenodes.other", "a,b"),
        ] {
            assert_eq!(why(&plain, &[user]), None, "{plain}");
        }
        for (name, value) in [
            ("hadoop.security.authentication", "kerberos"),
            ("dfs.data.transfer.protection", "privacy"),
            ("dfs.encrypt.data.transfer", "true"),
            ("dfs.client.use.datanode.hostname", "true"),
            ("dfs.ha.namenodes.ns", "a,b"),
        ] {
            assert!(why(&property(name, value), &[user]).is_some(), "{name}");
        }
        assert!(why("", &[]).unwrap().contains("user"));
        let proxied = why("", &[user, ("HADOOP_PROXY_USER", "p")]);
        assert!(proxied.unwrap().contains("HADOOP_PROXY_USER"));
    }

    #[test]
    fn bad_addresses_are_refused() {
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
