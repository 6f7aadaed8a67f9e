//! Flags that several drivers read, or that the program itself needs to know.

use std::net::IpAddr;

use crate::{Flag, Scope, Value};

/// URLs of the service.
pub static ENDPOINT_URL: Flag = Flag::new(
    "--endpoint-url",
    Value::Urls("URL"),
    Scope::Service,
    "URL of the service, such as http://host:9000 or https://host{1...8}:9000 (may be repeated)",
)
.with_more(
    "Unless given: AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, `endpoint_url` of the AWS profile, or Amazon's endpoint of \
     the region; for Azure that of AZURE_STORAGE_CONNECTION_STRING or of the account.",
);

/// Accept any TLS certificate.
pub static NO_VERIFY_SSL: Flag = Flag::new(
    "--no-verify-ssl",
    Value::Switch,
    Scope::Service,
    "Accept any TLS certificate: traffic is encrypted, but the server's identity is not checked",
)
.with_alias("insecure");

/// Certificates to trust.
pub static CA_BUNDLE: Flag = Flag::new(
    "--ca-bundle",
    Value::File("FILE"),
    Scope::Service,
    "Certificates to trust instead of the system's, PEM (default: AWS_CA_BUNDLE)",
);

/// Certificate of the client.
pub static CLIENT_CERT: Flag = Flag::new(
    "--client-cert",
    Value::File("FILE"),
    Scope::Service,
    "Certificate chain to show to the server, PEM",
)
.with("--client-key");

/// Private key of the client certificate.
pub static CLIENT_KEY: Flag = Flag::new(
    "--client-key",
    Value::File("FILE"),
    Scope::Service,
    "Private key of the client certificate, PEM",
)
.with("--client-cert");

/// Local addresses to connect from.
pub static SOURCE_ADDRESS: Flag = Flag::new(
    "--source-address",
    Value::List("IP,...", Value::parses::<IpAddr>),
    Scope::Service,
    "Local addresses to connect from, used in rotation",
);

/// The flags of every service over HTTP.
pub const HTTP: [&Flag; 6] = [
    &ENDPOINT_URL,
    &NO_VERIFY_SSL,
    &CA_BUNDLE,
    &CLIENT_CERT,
    &CLIENT_KEY,
    &SOURCE_ADDRESS,
];

/// Profile of the AWS configuration files.
pub static PROFILE: Flag = Flag::new(
    "--profile",
    Value::Text("NAME"),
    Scope::Service,
    "Profile of the AWS configuration files (default: AWS_PROFILE, else `default`)",
);

/// Region of the service.
pub static REGION: Flag = Flag::new(
    "--region",
    Value::Text("NAME"),
    Scope::Service,
    "Region (default: AWS_REGION, AWS_DEFAULT_REGION, else the region of the AWS profile)",
);

/// Anonymous access.
pub static NO_SIGN_REQUEST: Flag = Flag::new(
    "--no-sign-request",
    Value::Switch,
    Scope::Service,
    "Send requests without a signature",
);

/// Where requests carry the bucket's name.
pub static ADDRESSING: Flag = Flag::new(
    "--addressing",
    Value::Choice(
        "STYLE",
        &[
            ("path", "In the path: http://host/bucket/key"),
            ("virtual", "In the host name: http://bucket.host/key"),
        ],
    ),
    Scope::Service,
    "Where requests carry the bucket's name (default: `path` with an endpoint URL, else `virtual`)",
);

/// Checksum of content.
pub static CHECKSUM: Flag = Flag::new(
    "--checksum",
    Value::Choice(
        "ALGORITHM",
        &[
            ("md5", "MD5 (Azure, Swift)"),
            ("crc32", "CRC-32"),
            ("crc32c", "CRC-32C"),
            ("crc64nvme", "CRC-64/NVME"),
            ("sha1", "SHA-1"),
            ("sha256", "SHA-256"),
        ],
    ),
    Scope::Content,
    "Checksum sent with the bytes of objects",
);

/// How objects are appended to.
pub static APPEND: Flag = Flag::new(
    "--append",
    Value::Choice(
        "HOW",
        &[
            ("none", "Not at all: workloads that append are refused"),
            (
                "write-offset",
                "By a PUT at the object's end (x-amz-write-offset-bytes), as in S3 Express One Zone",
            ),
        ],
    ),
    Scope::Content,
    "How the store appends to objects (default: `none`; `write-offset` for an embedded server)",
);

/// Whether to empty the page cache of this machine.
pub static DROP_CACHES: Flag = Flag::new(
    "--posix-drop-caches",
    Value::Switch,
    Scope::Files,
    "Drop the whole machine's page cache, dentries and inodes before each measured phase; needs root",
)
.with_more(
    "Writes dirty pages back first. Slows other programs on this machine for a while. Does not empty the caches of \
     servers behind a mount.",
);
