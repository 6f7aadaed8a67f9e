//! Flags that say where the load goes and how it gets there.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;

use bucketload_drivers::engines::cli::Tool;
use clap::{Args, ValueEnum, ValueHint};
use serde::{Deserialize, Serialize};

use super::posix::PosixArgs;

/// Where the load goes. Flags come before environment variables, these before the AWS
/// configuration files, these before defaults.
#[derive(Clone, Debug, Default, PartialEq, Args)]
#[command(next_help_heading = "Target options")]
pub(crate) struct TargetArgs {
    /// A service (s3://BUCKET/PREFIX, swift://, az://, gs://, webhdfs://, hdfs://, seaweedfs:// or libs3://), a
    /// file system (file:///DIR), the embedded server (mem:, or serve:///DIR over a directory), or null:
    /// (nothing at all)
    ///
    /// Unless given, the target of the workload, or the embedded server over memory.
    #[arg(long, short, value_name = "URL")]
    pub(crate) target: Option<String>,

    /// URL of the service, such as http://host:9000 or https://host{1...8}:9000 (may be repeated)
    ///
    /// Unless given: AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, `endpoint_url` of the AWS profile, or
    /// Amazon's endpoint of the region; for Azure that of AZURE_STORAGE_CONNECTION_STRING or of the account.
    #[arg(long, value_name = "URL", value_delimiter = ',', value_hint = ValueHint::Url)]
    pub(crate) endpoint_url: Vec<String>,

    /// Profile of the AWS configuration files; unless given AWS_PROFILE or `default`
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,

    /// Region; unless given AWS_REGION, AWS_DEFAULT_REGION or that of the AWS profile
    #[arg(long, value_name = "NAME")]
    pub(crate) region: Option<String>,

    /// Send requests without a signature
    #[arg(long)]
    pub(crate) no_sign_request: bool,

    /// Accept any TLS certificate; the connection is then encrypted, but to whom is unknown
    #[arg(long, visible_alias = "insecure")]
    pub(crate) no_verify_ssl: bool,

    /// Certificates to trust instead of the system's, PEM; unless given AWS_CA_BUNDLE
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) ca_bundle: Option<PathBuf>,

    /// Certificate chain to show to the server, PEM
    #[arg(long, value_name = "FILE", requires = "client_key", value_hint = ValueHint::FilePath)]
    pub(crate) client_cert: Option<PathBuf>,

    /// Private key of the client certificate, PEM
    #[arg(long, value_name = "FILE", requires = "client_cert", value_hint = ValueHint::FilePath)]
    pub(crate) client_key: Option<PathBuf>,

    /// Local addresses to connect from, in turn
    #[arg(long, value_name = "IP,...", value_delimiter = ',')]
    pub(crate) source_address: Vec<IpAddr>,

    /// Where the bucket's name stands in requests; unless given `path` with an endpoint URL
    #[arg(long, value_enum, value_name = "STYLE")]
    pub(crate) addressing: Option<Addressing>,

    /// What signatures say about the bytes of objects
    #[arg(long, value_enum, value_name = "MODE")]
    pub(crate) payload_signing: Option<PayloadSigning>,

    /// Checksum sent with the bytes of objects
    #[arg(long, value_enum, value_name = "ALGORITHM")]
    pub(crate) checksum: Option<Checksum>,

    /// File with an access token for Google Cloud Storage, read again every minute
    ///
    /// Unless given: GOOGLE_OAUTH_ACCESS_TOKEN, the file GOOGLE_APPLICATION_CREDENTIALS, what `gcloud
    /// auth application-default login` wrote, or the metadata server.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) token_file: Option<PathBuf>,

    /// How Google Cloud Storage gets objects in parts; unless given `resumable`
    #[arg(long, value_enum, value_name = "WAY")]
    pub(crate) gcs_large_object: Option<LargeObject>,
    /// How Swift objects of several parts are put together; unless given `slo`
    #[arg(long, value_enum, value_name = "KIND")]
    pub(crate) swift_large_object: Option<SwiftLargeObject>,
    /// Which interface of SeaweedFS the endpoint is; unless given `filer`
    #[arg(long, value_enum, value_name = "KIND")]
    pub(crate) seaweedfs_mode: Option<SeaweedMode>,

    /// With a SeaweedFS master: most objects that the client can know, at 53 to 107 bytes each; unless
    /// given 1000000
    #[arg(long, value_name = "N")]
    pub(crate) seaweedfs_objects: Option<u64>,

    /// Library for libs3:// targets: a path, or a name that the dynamic linker looks for; unless given
    /// libs3.so.4
    ///
    /// It is told its host with --endpoint-url: a URL, or a directory for a library that keeps files.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) libs3_library: Option<PathBuf>,

    /// Client that performs the operations: native, aws-sdk, object-store, opendal or cli:PROGRAM
    ///
    /// The libraries are parts of a build with the cargo feature engine-NAME; the programs (aws, mc,
    /// rclone, s3cmd; swift, az and gsutil for swift://, az:// and gs:// targets) are looked for on the
    /// PATH.
    #[arg(long, value_name = "NAME")]
    pub(crate) engine: Option<Engine>,

    /// How often the engine may repeat a request by itself; 0 unless given
    #[arg(long, value_name = "N")]
    pub(crate) engine_retries: Option<u32>,

    #[command(flatten)]
    pub(crate) posix: PosixArgs,

    /// Settings that a workload brings with it and that come before those of the environment.
    #[arg(skip)]
    pub(crate) given: Given,

    /// Where COSBench's `localwrite` writes files.
    #[arg(skip)]
    pub(crate) local_files: Option<PathBuf>,
}

/// Settings under the names of environment variables; `None` hides a variable. They may be secrets.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Given(BTreeMap<String, Option<String>>);

impl Given {
    pub(crate) fn new(settings: Vec<(&'static str, Option<String>)>) -> Self {
        let settings = settings.into_iter();
        Self(settings.map(|(n, value)| (n.to_owned(), value)).collect())
    }

    /// Replaces the value of `name` where it has one.
    pub(crate) fn replace(&mut self, name: &str, value: &str) {
        if let Some(Some(known)) = self.0.get_mut(name) {
            value.clone_into(known);
        }
    }
}

impl std::fmt::Debug for Given {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.keys()).finish()
    }
}

impl TargetArgs {
    /// The environment variable `name`, or what the workload has in its place.
    pub(crate) fn variable(&self, name: &str) -> Option<String> {
        match self.given.0.get(name) {
            Some(value) => value.clone(),
            None => crate::environment::variable(name),
        }
    }
}

impl TargetArgs {
    /// These flags, replaced by those of `other` that were given.
    pub(crate) fn with(&self, other: &Self) -> Self {
        let list = |a: &Vec<String>, b: &Vec<String>| if b.is_empty() { a } else { b }.clone();
        Self {
            target: other.target.clone().or_else(|| self.target.clone()),
            endpoint_url: list(&self.endpoint_url, &other.endpoint_url),
            profile: other.profile.clone().or_else(|| self.profile.clone()),
            region: other.region.clone().or_else(|| self.region.clone()),
            no_sign_request: self.no_sign_request || other.no_sign_request,
            no_verify_ssl: self.no_verify_ssl || other.no_verify_ssl,
            ca_bundle: other.ca_bundle.clone().or_else(|| self.ca_bundle.clone()),
            client_cert: other
                .client_cert
                .clone()
                .or_else(|| self.client_cert.clone()),
            client_key: other.client_key.clone().or_else(|| self.client_key.clone()),
            source_address: if other.source_address.is_empty() {
                self.source_address.clone()
            } else {
                other.source_address.clone()
            },
            addressing: other.addressing.or(self.addressing),
            payload_signing: other.payload_signing.or(self.payload_signing),
            checksum: other.checksum.or(self.checksum),
            token_file: other.token_file.clone().or_else(|| self.token_file.clone()),
            gcs_large_object: other.gcs_large_object.or(self.gcs_large_object),
            swift_large_object: other.swift_large_object.or(self.swift_large_object),
            seaweedfs_mode: other.seaweedfs_mode.or(self.seaweedfs_mode),
            seaweedfs_objects: other.seaweedfs_objects.or(self.seaweedfs_objects),
            libs3_library: other
                .libs3_library
                .clone()
                .or_else(|| self.libs3_library.clone()),
            engine: other.engine.or(self.engine),
            posix: self.posix.with(&other.posix),
            local_files: other
                .local_files
                .clone()
                .or_else(|| self.local_files.clone()),
            given: if other.given == Given::default() {
                self.given.clone()
            } else {
                other.given.clone()
            },
            engine_retries: other.engine_retries.or(self.engine_retries),
        }
    }
}

/// Declares an enumeration of flag values whose names are those of the S3 driver.
macro_rules! names {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident => $text:literal,)* }) => {
        $(#[$meta])*
        #[allow(rustdoc::bare_urls, reason = "these are help texts for a terminal")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
        pub(crate) enum $name {
            $($(#[$doc])* #[value(name = $text)] $variant,)*
        }

        impl $name {
            /// The name, as the driver spells it.
            pub(crate) const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }
    };
}

names! {
    /// Where the bucket's name stands.
    Addressing {
        /// In the path: http://host/bucket/key
        Path => "path",
        /// In the host name: http://bucket.host/key
        Virtual => "virtual",
    }
}

names! {
    /// What signatures say about the bytes of objects.
    PayloadSigning {
        /// Nothing
        Unsigned => "unsigned",
        /// Their SHA-256, computed before the timed start
        Signed => "signed",
        /// A chain of signed chunks
        Streaming => "streaming",
        /// Signed chunks and a signed checksum after them
        StreamingTrailer => "streaming-trailer",
        /// Unsigned chunks and a checksum after them
        UnsignedTrailer => "unsigned-trailer",
    }
}

names! {
    /// Checksum algorithms.
    Checksum {
        /// MD5 (Azure, Swift)
        Md5 => "md5",
        /// CRC-32
        Crc32 => "crc32",
        /// CRC-32C
        Crc32c => "crc32c",
        /// CRC-64/NVME
        Crc64Nvme => "crc64nvme",
        /// SHA-1
        Sha1 => "sha1",
        /// SHA-256
        Sha256 => "sha256",
    }
}

/// How Swift objects of several parts are put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SwiftLargeObject {
    /// Static: the manifest names each segment with its MD5
    Slo,
    /// Dynamic: the object is what the listing shows below a prefix
    Dlo,
}

impl From<SwiftLargeObject> for bucketload_drivers::swift::LargeObject {
    fn from(kind: SwiftLargeObject) -> Self {
        match kind {
            SwiftLargeObject::Slo => Self::Slo,
            SwiftLargeObject::Dlo => Self::Dlo,
        }
    }
}

names! {
    /// How Google Cloud Storage gets objects in parts.
    LargeObject {
        /// One resumable upload in chunks
        Resumable => "resumable",
        /// Objects that are composed and deleted
        Compose => "compose",
    }
}

names! {
    /// Interfaces of SeaweedFS.
    SeaweedMode {
        /// A filer: objects have paths
        Filer => "filer",
        /// A master: objects have file ids, which the client keeps
        Master => "master",
    }
}

/// Client engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    /// Bucketload's own client.
    Native,
    /// Amazon's SDK for Rust.
    AwsSdk,
    /// The crate `object_store`.
    ObjectStore,
    /// The crate `opendal`.
    Opendal,
    /// A command-line program, one process per operation.
    Cli(Tool),
}

impl FromStr for Engine {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "native" => Ok(Self::Native),
            "aws-sdk" => Ok(Self::AwsSdk),
            "object-store" => Ok(Self::ObjectStore),
            "opendal" => Ok(Self::Opendal),
            _ => match text.strip_prefix("cli:") {
                Some(name) => name.parse().map(Self::Cli),
                None => Err(format!(
                    "`{text}` is no engine; use native, aws-sdk, object-store, opendal or cli:PROGRAM"
                )),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::{Parser, ValueEnum};

    use super::{Addressing, Checksum, Engine, PayloadSigning, TargetArgs, Tool};

    #[derive(Parser)]
    struct Wrapper {
        #[command(flatten)]
        target: TargetArgs,
    }

    fn parse(line: &str) -> Result<TargetArgs, String> {
        let words = std::iter::once("test").chain(line.split_whitespace());
        match Wrapper::try_parse_from(words) {
            Ok(wrapper) => Ok(wrapper.target),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn names_are_those_on_the_command_line() {
        for value in PayloadSigning::value_variants() {
            assert_eq!(value.to_possible_value().unwrap().get_name(), value.name());
        }
        for value in Checksum::value_variants() {
            assert_eq!(value.to_possible_value().unwrap().get_name(), value.name());
        }
    }

    #[test]
    fn lists_and_pairs() {
        let target = parse(
            "--target s3://b/p --endpoint-url http://a:1,http://b:2 --endpoint-url http://c{1...4}:3 \
             --source-address 10.0.0.1,::1 --addressing virtual --insecure",
        )
        .unwrap();
        assert_eq!(
            target.endpoint_url,
            ["http://a:1", "http://b:2", "http://c{1...4}:3"]
        );
        assert_eq!(target.source_address.len(), 2);
        assert_eq!(target.addressing, Some(Addressing::Virtual));
        assert!(target.no_verify_ssl);
        assert!(
            parse("--client-cert a.pem")
                .unwrap_err()
                .contains("--client-key")
        );
        assert!(parse("--source-address host").is_err());
        let engine = parse("--engine cli:s3cmd").unwrap().engine;
        assert_eq!(engine, Some(Engine::Cli(Tool::S3cmd)));
        let wrong = parse("--engine cli:curl").unwrap_err();
        assert!(wrong.contains("s3cmd, swift"), "{wrong}");
        let wrong = parse("--engine minio").unwrap_err();
        assert!(wrong.contains("object-store"), "{wrong}");
        let wrong = parse("--checksum md4").unwrap_err();
        assert!(wrong.contains("crc64nvme"), "{wrong}");
    }
}
