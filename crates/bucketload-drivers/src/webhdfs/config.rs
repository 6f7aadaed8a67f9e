//! Configuration of the WebHDFS driver: addresses of the name nodes, user and token.
//!
//! Precedence: `--endpoint-url`, the target's `HOST:PORT`, then `fs.defaultFS`, `dfs.ha.namenodes.*` and
//! `dfs.namenode.http-address` of Hadoop's configuration files.

use std::net::IpAddr;

use crate::hadoop::HadoopOverrides;
use crate::hadoop::settings::{FileSettings, note, root_of};
use crate::hadoop::site::Site;
use crate::http::config::{ConfigError, Origin, Source, TlsConfig};
use crate::http::endpoint::Endpoint;
use crate::http::secret::Secret;

/// Base path of the interface.
const PATH: &str = "/webhdfs/v1";
/// Default port of a name node's HTTP server (Hadoop 3).
const PORT: u16 = 9870;

/// Settings of a WebHDFS target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebHdfsConfig {
    /// The name nodes; sessions use the active one. Each path ends with `/webhdfs/v1`.
    pub endpoints: Vec<Endpoint>,
    /// User and layout of files.
    pub files: FileSettings,
    /// Delegation token, instead of the user's name.
    pub token: Option<Secret>,
    /// Encryption.
    pub tls: TlsConfig,
    /// Local addresses to connect from; worker `w` uses number `w` modulo their number.
    pub source_addresses: Vec<IpAddr>,
    /// Where the values came from.
    pub origins: Vec<Origin>,
}

impl WebHdfsConfig {
    /// A configuration for the name nodes at `urls`, separated by commas, without a user.
    ///
    /// # Errors
    /// When a URL cannot be used.
    pub fn new(urls: &str) -> Result<Self, ConfigError> {
        let mut config = Self {
            endpoints: Endpoint::parse_list(urls, "name node")?,
            files: FileSettings::default(),
            token: None,
            tls: TlsConfig::default(),
            source_addresses: Vec::new(),
            origins: Vec::new(),
        };
        config.split_endpoint_paths("name node")?;
        Ok(config)
    }

    /// Looks up every setting that `overrides` do not give.
    ///
    /// # Errors
    /// When no name node is known, or a setting cannot be used.
    pub fn discover(
        overrides: &HadoopOverrides,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, ConfigError> {
        let site = Site::discover(env)?;
        let mut origins = Vec::new();
        let (urls, source) = name_nodes(overrides, &site)?;
        let place = source.to_string();
        let endpoints = Endpoint::parse_list(&urls, &place)?;
        let files = FileSettings::discover(&site, env, &mut origins)?;
        let token = env("WEBHDFS_DELEGATION_TOKEN").filter(|token| !token.is_empty());
        if token.is_some() {
            let source = Source::Env("WEBHDFS_DELEGATION_TOKEN");
            note(&mut origins, "delegation token", "***", source);
        }
        let mut config = Self {
            endpoints,
            files,
            token: token.map(Secret::new),
            tls: overrides.tls.clone(),
            source_addresses: overrides.source_addresses.clone(),
            origins,
        };
        config.split_endpoint_paths(&place)?;
        let shown: Vec<String> = config.endpoints.iter().map(Endpoint::url).collect();
        note(&mut config.origins, "name nodes", shown.join(","), source);
        if let Some((path, source)) = &overrides.tls.ca_bundle.as_ref().map(|p| (p, "--ca-bundle"))
        {
            let shown = path.display().to_string();
            note(
                &mut config.origins,
                "CA bundle",
                shown,
                Source::Flag(source),
            );
        }
        Ok(config)
    }

    /// Splits the path of the endpoints into the interface and the directory of the buckets.
    fn split_endpoint_paths(&mut self, place: &str) -> Result<(), ConfigError> {
        let mut roots = Vec::new();
        for endpoint in &mut self.endpoints {
            let path = std::mem::take(&mut endpoint.base_path);
            let root = match path.split_once(PATH) {
                Some((front, root)) if root.is_empty() || root.starts_with('/') => {
                    endpoint.base_path = format!("{front}{PATH}");
                    root_of(root, place)?
                }
                // A path in front of the interface, as with gateways.
                _ => {
                    endpoint.base_path = format!("{path}{PATH}");
                    String::new()
                }
            };
            roots.push(root);
        }
        roots.dedup();
        match roots.as_slice() {
            [root] => {
                self.files.root.clone_from(root);
                Ok(())
            }
            _ => Err(ConfigError::new(
                place,
                "the name nodes' URLs name different directories",
                "give every name node of the cluster the same path",
            )),
        }
    }
}

/// URLs of the name nodes, separated by commas, and where they came from.
fn name_nodes(overrides: &HadoopOverrides, site: &Site) -> Result<(String, Source), ConfigError> {
    if let Some(url) = &overrides.endpoint_url {
        return Ok((url.clone(), Source::Flag("--endpoint-url")));
    }
    if let Some(authority) = &overrides.authority {
        return Ok((format!("http://{authority}"), Source::Flag("--target")));
    }
    let policy = site.get("dfs.http.policy");
    let https = policy.is_some_and(|(policy, _)| policy == "HTTPS_ONLY");
    let (scheme, kind) = match https {
        true => ("https", "dfs.namenode.https-address"),
        false => ("http", "dfs.namenode.http-address"),
    };
    let default = site.get("fs.defaultFS");
    let host = default.as_ref().and_then(|(url, _)| {
        let rest = url.split_once("://")?.1;
        let authority = rest.split('/').next().unwrap_or_default();
        let host = authority
            .rsplit_once(':')
            .map_or(authority, |(host, _)| host);
        (!host.is_empty()).then(|| host.to_owned())
    });
    if let Some(service) = &host
        && let Some((nodes, source)) = site.name_nodes(service, kind)
    {
        if nodes.is_empty() {
            return Err(ConfigError::new(
                source.to_string(),
                format!("no {kind}.{service}.* gives the address of a name node"),
                "add one for each name node",
            ));
        }
        let urls: Vec<String> = nodes.iter().map(|n| format!("{scheme}://{n}")).collect();
        return Ok((urls.join(","), source));
    }
    if let Some((address, source)) = site.get(kind) {
        // A server's own configuration may give a wildcard listen address.
        let address = match (address.strip_prefix("0.0.0.0:"), &host) {
            (Some(port), Some(host)) => format!("{host}:{port}"),
            _ => address,
        };
        return Ok((format!("{scheme}://{address}"), source));
    }
    match (host, default) {
        (Some(host), Some((_, source))) => Ok((format!("{scheme}://{host}:{PORT}"), source)),
        _ => Err(ConfigError::new(
            "name node",
            "no address is known",
            "set --endpoint-url http://NAMENODE:9870, write webhdfs://NAMENODE:9870/BUCKET/PREFIX, or \
             set HADOOP_CONF_DIR",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::{HadoopOverrides, Site, WebHdfsConfig, name_nodes};
    use crate::http::endpoint::Endpoint;

    fn property(pairs: &[(&str, &str)]) -> Site {
        let all = pairs.iter().map(|(name, value)| {
            format!("<property><name>{name}</name><value>{value}</value></property>")
        });
        Site::of(&format!(
            "<configuration>{}</configuration>",
            all.collect::<String>()
        ))
    }

    fn found(pairs: &[(&str, &str)]) -> Result<String, String> {
        name_nodes(&HadoopOverrides::default(), &property(pairs))
            .map(|(urls, _)| urls)
            .map_err(|e| e.to_string())
    }

    #[test]
    fn name_nodes_are_discovered() {
        let default = ("fs.defaultFS", "hdfs://nn.example:8020");
        let cases: [(&[_], &str); 5] = [
            (&[default], "http://nn.example:9870"),
            (
                &[default, ("dfs.namenode.http-address", "0.0.0.0:50070")],
                "http://nn.example:50070",
            ),
            (
                &[default, ("dfs.namenode.http-address", "10.0.0.1:1")],
                "http://10.0.0.1:1",
            ),
            (
                &[
                    ("fs.defaultFS", "hdfs://ns"),
                    ("dfs.ha.namenodes.ns", "a,b"),
                    ("dfs.namenode.http-address.ns.a", "h1:1"),
                    ("dfs.namenode.http-address.ns.b", "h2:2"),
                ],
                "http://h1:1,http://h2:2",
            ),
            (
                &[
                    default,
                    ("dfs.http.policy", "HTTPS_ONLY"),
                    ("dfs.namenode.https-address", "nn:9871"),
                ],
                "https://nn:9871",
            ),
        ];
        for (pairs, want) in cases {
            assert_eq!(found(pairs).unwrap(), want);
        }
        assert!(found(&[]).unwrap_err().contains("--endpoint-url"));
        let half = [
            ("fs.defaultFS", "hdfs://ns"),
            ("dfs.ha.namenodes.ns", "a,b"),
        ];
        assert!(found(&half).unwrap_err().contains("dfs.ha.namenodes.ns"));
    }

    #[test]
    fn flags_take_precedence() {
        let site = property(&[("fs.defaultFS", "hdfs://nn:8020")]);
        let mut overrides = HadoopOverrides {
            authority: Some("h:1".to_owned()),
            ..HadoopOverrides::default()
        };
        assert_eq!(name_nodes(&overrides, &site).unwrap().0, "http://h:1");
        overrides.endpoint_url = Some("https://g/knox".to_owned());
        assert_eq!(name_nodes(&overrides, &site).unwrap().0, "https://g/knox");
    }

    #[test]
    fn paths_are_split_into_interface_and_root() {
        for (url, base, root) in [
            ("http://h:1", "/webhdfs/v1", ""),
            ("http://h:1/webhdfs/v1", "/webhdfs/v1", ""),
            ("http://h:1/webhdfs/v1/user/me/", "/webhdfs/v1", "/user/me"),
            ("http://h:1/gate/way", "/gate/way/webhdfs/v1", ""),
            ("http://h:1/g/webhdfs/v1/d", "/g/webhdfs/v1", "/d"),
        ] {
            let config = WebHdfsConfig::new(url).unwrap();
            let endpoint: &Endpoint = &config.endpoints[0];
            assert_eq!(
                (endpoint.base_path.as_str(), config.files.root.as_str()),
                (base, root)
            );
        }
        assert!(WebHdfsConfig::new("http://h:1/webhdfs/v1/a,http://i:1/webhdfs/v1/b").is_err());
        assert!(WebHdfsConfig::new("http://h:1/webhdfs/v1/../b").is_err());
    }

    #[test]
    fn tokens_are_not_printed() {
        let env = |name: &str| (name == "WEBHDFS_DELEGATION_TOKEN").then(|| "hush".to_owned());
        let overrides = HadoopOverrides {
            endpoint_url: Some("http://h:1".to_owned()),
            ..HadoopOverrides::default()
        };
        let config = WebHdfsConfig::discover(&overrides, &env).unwrap();
        assert!(config.token.is_some());
        assert!(!format!("{config:?}").contains("hush"));
    }
}
