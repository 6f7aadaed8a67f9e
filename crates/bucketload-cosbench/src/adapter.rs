//! Storage and auth adapters: their types, keys and defaults (specification sections 2 and 3).

use crate::config::Config;
use crate::error::near;

/// Whether an adapter can be driven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Availability {
    /// There is a driver for it.
    Available,
    /// It is read and checked, and refused when it would have to be used: with the reason.
    Unavailable(&'static str),
}

/// An adapter type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Adapter {
    /// Value of the attribute `type`.
    pub name: &'static str,
    /// Keys of its config string, each followed by `=` and its default where it has one, as COSBench
    /// writes config strings.
    keys: &'static str,
    /// Further keys, which the adapter has in common with others of its kind.
    common: &'static str,
    /// Keys without which it cannot work.
    pub mandatory: &'static [&'static str],
    /// Whether it can be driven.
    pub availability: Availability,
}

const GONE: Availability = Availability::Unavailable("there is no driver for this storage");

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
    storage("ampli", AMPLI_KEYS, &[]).not_driven(GONE),
    storage("cdmi", CDMI_KEYS, &[]).not_driven(GONE),
    storage("cdmi_swift", CDMI_SWIFT_KEYS, &[]).not_driven(GONE),
    storage(
        "librados",
        "endpoint=127.0.0.1; accesskey; secretkey",
        KEY_PAIR,
    )
    .not_driven(Availability::Unavailable(
        "RADOS itself is not spoken; drive the cluster through its S3 or Swift gateway",
    )),
    storage("sproxyd", SPROXYD_KEYS, &[]).not_driven(GONE),
    storage(
        "openio",
        "ns; proxyd-url; account; ecd-url",
        &["ns", "proxyd-url", "account"],
    )
    .not_driven(GONE),
    storage("manta", "", &[]).not_driven(GONE),
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
    auth("httpauth", HTTPAUTH_KEYS, LOGIN).not_driven(Availability::Unavailable(
        "it serves CDMI only, for which there is no driver",
    )),
];

/// A storage that can be driven.
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

/// An auth that can be driven.
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
    const fn not_driven(self, availability: Availability) -> Self {
        Self {
            availability,
            ..self
        }
    }

    /// The keys that it knows, each with its default where it has one; of a key that stands there
    /// twice the first counts.
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

    /// The adapter called `name` among `all`; else the one that is probably meant.
    ///
    /// # Errors
    /// The message and what to write.
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

    /// The value of `key` in `config`, else its default.
    #[must_use]
    pub fn value<'a>(&self, config: &'a Config, key: &str) -> Option<std::borrow::Cow<'a, str>> {
        config.get(key).or_else(|| {
            let known = self.keys().find(|(name, _)| *name == key)?;
            known.1.map(std::borrow::Cow::Borrowed)
        })
    }

    /// What `config` says that the adapter would not understand: key and what is probably meant.
    pub(crate) fn unknown<'a>(&self, config: &'a Config) -> Vec<(&'a str, Option<&'static str>)> {
        let names: Vec<&'static str> = self.keys().map(|(name, _)| name).collect();
        let foreign = config.keys().filter(|key| !names.contains(key));
        foreign.map(|key| (key, near(key, &names))).collect()
    }
}
