//! Configuration of the SeaweedFS driver, with the origin of each value.

use std::net::IpAddr;

use crate::http::config::named_enum;
use crate::http::{ConfigError, Endpoint, Origin, Source, TlsConfig};

/// Which of SeaweedFS's own HTTP interfaces the driver uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// The filer: objects have paths.
    #[default]
    Filer,
    /// Master and volume servers: objects have file IDs, which the client keeps.
    Master,
}

named_enum!(Mode, "interface of SeaweedFS", { Filer => "filer", Master => "master" });

/// Default for the most objects that a master's client can keep.
pub const DEFAULT_OBJECTS: u64 = 1_000_000;

/// Largest allowed number of objects: 16 GiB of file IDs.
const MAX_OBJECTS: u64 = 400_000_000;

/// Settings of a SeaweedFS target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeaweedConfig {
    /// Filers or masters; worker `w` uses endpoint `w` modulo their number.
    pub endpoints: Vec<Endpoint>,
    /// The kind of the endpoints.
    pub mode: Mode,
    /// With a master: most objects that the client can keep at a time.
    pub objects: u64,
    /// Encryption.
    pub tls: TlsConfig,
    /// Local addresses to connect from; worker `w` uses number `w` modulo their number.
    pub source_addresses: Vec<IpAddr>,
    /// Where the values came from.
    pub origins: Vec<Origin>,
}

/// Settings from the caller (command line, workload file).
#[derive(Clone, Debug, Default)]
pub struct SeaweedOverrides {
    /// `--endpoint-url`: URLs separated by commas, with ranges.
    pub endpoint_url: Option<String>,
    /// `--seaweedfs-mode`.
    pub mode: Option<Mode>,
    /// `--seaweedfs-objects`.
    pub objects: Option<u64>,
    /// How connections are encrypted.
    pub tls: TlsConfig,
    /// `--source-address`, repeated.
    pub source_addresses: Vec<IpAddr>,
}

impl SeaweedConfig {
    /// Builds the configuration from `overrides` and the environment (`env` looks a variable up).
    /// SeaweedFS's clients have no conventions beyond its default ports, which are the defaults here;
    /// the variables are Bucketload's own.
    ///
    /// # Errors
    /// When a setting cannot be used.
    pub fn new(
        overrides: &SeaweedOverrides,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, ConfigError> {
        let mut origins = Vec::new();
        let mut note = |name, value: String, source: Source| {
            origins.push(Origin {
                name,
                value,
                source,
            });
        };
        let flag = |name: &'static str, given: bool| match given {
            true => Source::Flag(name),
            false => Source::Default,
        };
        let mode = overrides.mode.unwrap_or_default();
        let source = flag("--seaweedfs-mode", overrides.mode.is_some());
        note("interface", mode.to_string(), source);
        let (variable, usual) = match mode {
            Mode::Filer => ("SEAWEEDFS_FILER_URL", "http://localhost:8888"),
            Mode::Master => ("SEAWEEDFS_MASTER_URL", "http://localhost:9333"),
        };
        let named = env(variable).filter(|url| !url.is_empty());
        let (url, source) = match (&overrides.endpoint_url, named) {
            (Some(url), _) => (url.clone(), Source::Flag("--endpoint-url")),
            (None, Some(url)) => (url, Source::Env(variable)),
            (None, None) => (usual.to_owned(), Source::Default),
        };
        let endpoints = Endpoint::parse_list(&url, &source.to_string())?;
        note("endpoint", url, source);
        let objects = overrides.objects.unwrap_or(DEFAULT_OBJECTS);
        match (mode, overrides.objects) {
            (Mode::Filer, Some(_)) => {
                return Err(ConfigError::new(
                    "--seaweedfs-objects",
                    "a filer keeps the objects' names itself",
                    "omit it, or choose --seaweedfs-mode master",
                ));
            }
            (Mode::Master, given) => {
                let source = flag("--seaweedfs-objects", given.is_some());
                note("objects", objects.to_string(), source);
            }
            (Mode::Filer, None) => {}
        }
        if objects == 0 || objects > MAX_OBJECTS {
            return Err(ConfigError::new(
                "--seaweedfs-objects",
                format!("{objects} objects cannot be kept"),
                format!("choose a number from 1 to {MAX_OBJECTS}"),
            ));
        }
        Ok(Self {
            endpoints,
            mode,
            objects,
            tls: overrides.tls.clone(),
            source_addresses: overrides.source_addresses.clone(),
            origins,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Mode, SeaweedConfig, SeaweedOverrides};

    #[test]
    fn the_defaults_are_the_ports_of_seaweedfs() {
        let mut overrides = SeaweedOverrides::default();
        let config = SeaweedConfig::new(&overrides, &|_| None).unwrap();
        assert_eq!(config.endpoints[0].url(), "http://localhost:8888");
        overrides.mode = Some(Mode::Master);
        let config = SeaweedConfig::new(&overrides, &|_| None).unwrap();
        assert_eq!(config.endpoints[0].url(), "http://localhost:9333");
        assert_eq!(config.objects, 1_000_000);
        let env = |name: &str| (name == "SEAWEEDFS_MASTER_URL").then(|| "http://m:1".to_owned());
        let config = SeaweedConfig::new(&overrides, &env).unwrap();
        assert_eq!(config.endpoints[0].url(), "http://m:1");
    }

    #[test]
    fn a_filer_refuses_a_number_of_objects() {
        let mut overrides = SeaweedOverrides {
            objects: Some(5),
            ..SeaweedOverrides::default()
        };
        let error = SeaweedConfig::new(&overrides, &|_| None)
            .unwrap_err()
            .to_string();
        assert!(error.contains("--seaweedfs-mode master"), "{error}");
        overrides.mode = Some(Mode::Master);
        assert_eq!(
            SeaweedConfig::new(&overrides, &|_| None).unwrap().objects,
            5
        );
        overrides.objects = Some(0);
        assert!(SeaweedConfig::new(&overrides, &|_| None).is_err());
    }
}
