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
    /// Keys of its config string, with their defaults; `None` for those without.
    pub keys: &'static [(&'static str, Option<&'static str>)],
    /// Keys without which it cannot work.
    pub mandatory: &'static [&'static str],
    /// Whether it can be driven.
    pub availability: Availability,
}

const GONE: Availability = Availability::Unavailable("there is no driver for this storage");

const S3_KEYS: &[(&str, Option<&str>)] = &[
    ("accesskey", None),
    ("secretkey", None),
    ("endpoint", Some("http://s3.amazonaws.com")),
    ("timeout", Some("30000")),
    ("path_style_access", Some("false")),
    ("proxyhost", None),
    ("proxyport", None),
    ("max_connections", Some("50")),
    ("no_verify_ssl", Some("false")),
    ("aws_region", Some("us-east-1")),
    ("storage_class", Some("STANDARD")),
    ("restore_days", Some("1")),
    ("part_size", Some("5242880")),
    ("is_prefetch", Some("false")),
    ("is_range_request", Some("false")),
    ("file_length", Some("4000000")),
    ("chunk_length", Some("1000000")),
    ("logging", Some("true")),
];

const fn s3(name: &'static str) -> Adapter {
    Adapter {
        name,
        keys: S3_KEYS,
        mandatory: &["accesskey", "secretkey"],
        availability: Availability::Available,
    }
}

const STORAGES: &[Adapter] = &[
    Adapter {
        name: "none",
        keys: &[("logging", Some("true"))],
        mandatory: &[],
        availability: Availability::Available,
    },
    Adapter {
        name: "mock",
        keys: &[
            ("size", Some("1000")),
            ("delay", Some("10")),
            ("errors", Some("0")),
            ("printing", Some("false")),
            ("doStats", Some("false")),
            ("logging", Some("true")),
        ],
        mandatory: &[],
        availability: Availability::Available,
    },
    s3("s3"),
    s3("sio"),
    s3("siov1"),
    s3("siov2"),
    s3("gdas"),
    s3("oss"),
    Adapter {
        name: "ecs",
        keys: &[
            ("accesskey", None),
            ("secretkey", None),
            ("endpoint", Some("http://s3.amazonaws.com")),
            ("timeout", Some("30000")),
            ("read_timeout", None),
            ("path_style_access", Some("false")),
            ("proxyhost", None),
            ("proxyport", None),
            ("namespace", None),
            ("http_client", Some("apache")),
            ("use_smart_client", Some("true")),
            ("logging", Some("true")),
        ],
        mandatory: &["accesskey", "secretkey"],
        availability: Availability::Available,
    },
    Adapter {
        name: "swift",
        keys: &[
            ("timeout", Some("30000")),
            ("token", Some("AUTH_xxx")),
            ("storage_url", Some("http://127.0.0.1:8080/auth/v1.0")),
            ("policy", None),
            ("transfer_rate", Some("50000000")),
            ("logging", Some("true")),
        ],
        mandatory: &[],
        availability: Availability::Available,
    },
    Adapter {
        name: "gcs",
        keys: &[
            ("projectid", None),
            ("jsonkeyfile", None),
            ("timeout", Some("30000")),
            ("logging", Some("true")),
        ],
        mandatory: &["projectid", "jsonkeyfile"],
        availability: Availability::Available,
    },
    Adapter {
        name: "ampli",
        keys: &[
            ("host", Some("127.0.0.1")),
            ("port", Some("8080")),
            ("nsroot", Some("/namespace")),
            ("policy", None),
            ("timeout", Some("30000")),
            ("logging", Some("true")),
        ],
        mandatory: &[],
        availability: GONE,
    },
    Adapter {
        name: "cdmi",
        keys: &[
            ("type", Some("cdmi")),
            ("timeout", Some("30000")),
            ("root_path", None),
            ("custom_headers", None),
            ("raise_delete_errors", Some("false")),
            ("logging", Some("true")),
        ],
        mandatory: &[],
        availability: GONE,
    },
    Adapter {
        name: "cdmi_swift",
        keys: &[
            ("timeout", Some("30000")),
            ("root_path", Some("/cdmi")),
            ("storage_url", Some("http://127.0.0.1:8080/cdmi")),
            ("logging", Some("true")),
        ],
        mandatory: &[],
        availability: GONE,
    },
    Adapter {
        name: "librados",
        keys: &[
            ("endpoint", Some("127.0.0.1")),
            ("accesskey", None),
            ("secretkey", None),
            ("logging", Some("true")),
        ],
        mandatory: &["accesskey", "secretkey"],
        availability: Availability::Unavailable(
            "RADOS itself is not spoken; drive the cluster through its S3 or Swift gateway",
        ),
    },
    Adapter {
        name: "sproxyd",
        keys: &[
            ("hosts", Some("127.0.0.1")),
            ("port", Some("81")),
            ("base_path", Some("/proxy/chord")),
            ("pool_size", Some("60,10")),
            ("timeout", Some("30000")),
            ("logging", Some("false")),
        ],
        mandatory: &[],
        availability: GONE,
    },
    Adapter {
        name: "openio",
        keys: &[
            ("ns", None),
            ("proxyd-url", None),
            ("account", None),
            ("ecd-url", None),
            ("logging", Some("true")),
        ],
        mandatory: &["ns", "proxyd-url", "account"],
        availability: GONE,
    },
    Adapter {
        name: "manta",
        keys: &[("logging", Some("true"))],
        mandatory: &[],
        availability: GONE,
    },
];

const AUTH_COMMON: [(&str, Option<&str>); 3] = [
    ("logging", Some("false")),
    ("retry", Some("0")),
    ("caching", Some("false")),
];

const AUTHS: &[Adapter] = &[
    Adapter {
        name: "none",
        keys: &AUTH_COMMON,
        mandatory: &[],
        availability: Availability::Available,
    },
    Adapter {
        name: "mock",
        keys: &[
            ("token", Some("token")),
            ("delay", Some("10")),
            AUTH_COMMON[0],
            AUTH_COMMON[1],
            AUTH_COMMON[2],
        ],
        mandatory: &[],
        availability: Availability::Available,
    },
    Adapter {
        name: "swauth",
        keys: &[
            ("auth_url", Some("http://127.0.0.1:8080/auth/v1.0")),
            ("url", None),
            ("username", None),
            ("password", None),
            ("timeout", Some("30000")),
            AUTH_COMMON[0],
            AUTH_COMMON[1],
            AUTH_COMMON[2],
        ],
        mandatory: &["username", "password"],
        availability: Availability::Available,
    },
    Adapter {
        name: "keystone",
        keys: &[
            ("auth_url", Some("http://127.0.0.1:5000/v2.0")),
            ("url", None),
            ("username", None),
            ("password", None),
            ("tenant_name", None),
            ("tenname", None),
            ("tenant_id", None),
            ("usertoken", None),
            ("service", Some("swift")),
            ("region", Some("regionOne")),
            ("timeout", Some("10000")),
            AUTH_COMMON[0],
            AUTH_COMMON[1],
            AUTH_COMMON[2],
        ],
        mandatory: &["username", "password"],
        availability: Availability::Available,
    },
    Adapter {
        name: "httpauth",
        keys: &[
            ("auth_url", Some("http://127.0.0.1:80")),
            ("username", None),
            ("password", None),
            ("timeout", Some("30000")),
            AUTH_COMMON[0],
            AUTH_COMMON[1],
            AUTH_COMMON[2],
        ],
        mandatory: &["username", "password"],
        availability: Availability::Unavailable(
            "it serves CDMI only, for which there is no driver",
        ),
    },
];

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
            let known = self.keys.iter().find(|(name, _)| *name == key)?;
            known.1.map(std::borrow::Cow::Borrowed)
        })
    }

    /// What `config` says that the adapter would not understand: key and what is probably meant.
    pub(crate) fn unknown<'a>(&self, config: &'a Config) -> Vec<(&'a str, Option<&'static str>)> {
        let names: Vec<&'static str> = self.keys.iter().map(|(name, _)| *name).collect();
        let foreign = config.keys().filter(|key| !names.contains(key));
        foreign.map(|key| (key, near(key, &names))).collect()
    }
}
