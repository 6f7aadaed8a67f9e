//! Storage and auth adapters: their types, keys and defaults (specification sections 2 and 3).

use crate::config::Config;
use crate::error::near;

/// Whether a driver exists for an adapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Availability {
    /// A driver exists.
    Available,
    /// Read and checked, but rejected when it would be used, with this reason.
    Unavailable(&'static str),
}

/// An adapter type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Adapter {
    /// Value of the attribute `type`.
    pub name: &'static str,
    /// Keys of its config string, each followed by `=` and its default if it has one, in the format of
    /// COSBench config strings.
    keys: &'static str,
    /// Further keys, shared by all adapters of the same kind.
    common: &'static str,
    /// Keys that it requires.
    pub mandatory: &'static [&'static str],
    /// Whether a driver exists.
    pub availability: Availability,
}

const NO_DRIVER: Availability = Availability::Unavailable("there is no driver for this storage");

const KEY_PAIR: &[&str] = &["accesskey", "secretkey"];
const LOGIN: &[&str] = &["username", "password"];

const S3_KEYS: &str = "\
    accesskey; secretkey; endpoint=http://s3.amazonaws.com; timeout=30000; path_style_access=false; \
    proxyhost; proxyport; max_connections=50; no_verify_ssl=false; aws_region=us-east-1; \
    storage_class=STANDARD; restore_days=1; part_size=5242880; is_prefetch=false; \
    is_range_request=false; file_length=4000000; chunk_length=1000000";
const ECS_KEYS: &str = "\
    accesskey; secretkey; endpoint=http://s3.amazonaws.com; timeout=30000; read_timeout; \
    path_style_access=false; proxyhost; proxyport; namespace; http_client=apache; \
    use_smart_client=true";
const SWIFT_KEYS: &str = "\
    timeout=30000; token=AUTH_xxx; storage_url=http://127.0.0.1:8080/auth/v1.0; policy; \
    transfer_rate=50000000";
const AMPLI_KEYS: &str = "host=127.0.0.1; port=8080; nsroot=/namespace; policy; timeout=30000";
const CDMI_KEYS: &str = "\
    type=cdmi; timeout=30000; root_path; custom_headers; raise_delete_errors=false";
const CDMI_SWIFT_KEYS: &str = "\
    timeout=30000; root_path=/cdmi; storage_url=http://127.0.0.1:8080/cdmi";
const SPROXYD_KEYS: &str = "\
    hosts=127.0.0.1; port=81; base_path=/proxy/chord; pool_size=60,10; timeout=30000; logging=false";

const STORAGES: &[Adapter] = &[
    storage("none", "", &[]),
    storage(
        "mock",
        "size=1000; delay=10; errors=0; printing=false; doStats=false",
        &[],
    ),
    storage("s3", S3_KEYS, KEY_PAIR),
    storage("sio", S3_KEYS, KEY_PAIR),
    storage("siov1", S3_KEYS, KEY_PAIR),
    storage("siov2", S3_KEYS, KEY_PAIR),
    storage("gdas", S3_KEYS, KEY_PAIR),
    storage("oss", S3_KEYS, KEY_PAIR),
    storage("ecs", ECS_KEYS, KEY_PAIR),
    storage("swift", SWIFT_KEYS, &[]),
    storage(
        "gcs",
        "projectid; jsonkeyfile; timeout=30000",
        &["projectid", "jsonkeyfile"],
    ),
    storage("ampli", AMPLI_KEYS, &[]).unavailable(NO_DRIVER),
    storage("cdmi", CDMI_KEYS, &[]).unavailable(NO_DRIVER),
    storage("cdmi_swift", CDMI_SWIFT_KEYS, &[]).unavailable(NO_DRIVER),
    storage(
        "librados",
        "endpoint=127.0.0.1; accesskey; secretkey",
        KEY_PAIR,
    )
    .unavailable(Availability::Unavailable(
        "the RADOS protocol is not supported; use the cluster's S3 or Swift gateway",
    )),
    storage("sproxyd", SPROXYD_KEYS, &[]).unavailable(NO_DRIVER),
    storage(
        "openio",
        "ns; proxyd-url; account; ecd-url",
        &["ns", "proxyd-url", "account"],
    )
    .unavailable(NO_DRIVER),
    storage("manta", "", &[]).unavailable(NO_DRIVER),
];

const SWAUTH_KEYS: &str = "\
    auth_url=http://127.0.0.1:8080/auth/v1.0; url; username; password; timeout=30000";
const KEYSTONE_KEYS: &str = "\
    auth_url=http://127.0.0.1:5000/v2.0; url; username; password; tenant_name; tenname; tenant_id; \
    usertoken; service=swift; region=regionOne; timeout=10000";
const HTTPAUTH_KEYS: &str = "auth_url=http://127.0.0.1:80; username; password; timeout=30000";

const AUTHS: &[Adapter] = &[
    auth("none", "", &[]),
    auth("mock", "token=token; delay=10", &[]),
    auth("swauth", SWAUTH_KEYS, LOGIN),
    auth("keystone", KEYSTONE_KEYS, LOGIN),
    auth("httpauth", HTTPAUTH_KEYS, LOGIN).unavailable(Availability::Unavailable(
        "it serves CDMI only, for which there is no driver",
    )),
];

/// A storage with a driver.
const fn storage(
    name: &'static str,
    keys: &'static str,
    mandatory: &'static [&'static str],
) -> Adapter {
    Adapter {
        name,
        keys,
        common: "logging=true",
        mandatory,
        availability: Availability::Available,
    }
}

/// An auth with a driver.
const fn auth(
    name: &'static str,
    keys: &'static str,
    mandatory: &'static [&'static str],
) -> Adapter {
    Adapter {
        common: "logging=false; retry=0; caching=false",
        ..storage(name, keys, mandatory)
    }
}

/// Every storage type.
#[must_use]
pub const fn storage_types() -> &'static [Adapter] {
    STORAGES
}

/// Every auth type.
#[must_use]
pub const fn auth_types() -> &'static [Adapter] {
    AUTHS
}

impl Adapter {
    const fn unavailable(self, availability: Availability) -> Self {
        Self {
            availability,
            ..self
        }
    }

    /// The keys that it knows, each with its default if it has one. If a key appears twice, the first one
    /// counts.
    fn keys(&self) -> impl Iterator<Item = (&'static str, Option<&'static str>)> {
        let entries = self.keys.split(';').chain(self.common.split(';'));
        entries
            .map(str::trim)
            .filter(|entry| !entry.is_empty())
            .map(|entry| match entry.split_once('=') {
                Some((key, default)) => (key, Some(default)),
                None => (entry, None),
            })
    }

    /// The adapter called `name` among `all`.
    ///
    /// # Errors
    /// The message and the remedy, which suggests the closest name.
    pub(crate) fn find(
        all: &'static [Self],
        name: &str,
        kind: &str,
    ) -> Result<&'static Self, (String, String)> {
        if let Some(found) = all.iter().find(|adapter| adapter.name == name) {
            return Ok(found);
        }
        let names: Vec<&str> = all.iter().map(|adapter| adapter.name).collect();
        let remedy = match near(name, &names) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("use one of {}", names.join(", ")),
        };
        Err((format!("there is no {kind} type `{name}`"), remedy))
    }

    /// The value of `key` in `config`, or its default.
    #[must_use]
    pub fn value<'a>(&self, config: &'a Config, key: &str) -> Option<std::borrow::Cow<'a, str>> {
        config.get(key).or_else(|| {
            let known = self.keys().find(|(name, _)| *name == key)?;
            known.1.map(std::borrow::Cow::Borrowed)
        })
    }

    /// The keys in `config` that the adapter does not know, each with the closest known key.
    pub(crate) fn unknown<'a>(&self, config: &'a Config) -> Vec<(&'a str, Option<&'static str>)> {
        let names: Vec<&'static str> = self.keys().map(|(name, _)| name).collect();
        let foreign = config.keys().filter(|key| !names.contains(key));
        foreign.map(|key| (key, near(key, &names))).collect()
    }
}
