//! Amazon's SDK for Rust (`aws-sdk-s3`) as an engine.
//!
//! ```text
//! AwsSdkEngine ── AwsSdkClient ── object, many, multipart (operations) ── SDK ── http (wrapped) ── hyper
//!                                   body (payload without copies)                  shared_probe
//! ```
//!
//! Used as its guide recommends: one client per worker, and one HTTP client with a connection pool per
//! thread. Retries are off unless requested. Checksums are the SDK's default (CRC-32 with every upload,
//! verified with every download that has one) unless the target's settings differ.

mod body;
mod http;
mod many;
mod multipart;
mod object;

use std::error::Error;

use aws_sdk_s3::Client as Sdk;
use aws_sdk_s3::config::retry::RetryConfig;
use aws_sdk_s3::config::{
    BehaviorVersion, Credentials, Region, RequestChecksumCalculation, ResponseChecksumValidation,
};
use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_s3::types::ChecksumAlgorithm as SdkChecksum;
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use bucketload_core::driver::{Completion, WorkerId};
use bucketload_core::error::{ErrorKind, OpError, OpResult};
use bucketload_core::op::{OpClass, Request};
use bucketload_core::record::Probe;

use super::payload::Payload;
use super::per_thread::EngineId;
use super::shared_probe::SharedProbe;
use super::{Client, Engine, EngineFacts, check_settings, driver::unsupported, failure};
use crate::s3::error_map::{Context, ErrorDocument, to_error};
use crate::s3::{Addressing, ChecksumAlgorithm, ConfigError, PayloadMode, S3Config, Source};

/// The supported version; the lock file pins the exact one.
const VERSION: &str = "aws-sdk-s3 1.157";

/// Supported operations.
const CLASSES: [OpClass; 21] = [
    OpClass::Get,
    OpClass::RangeGet,
    OpClass::Put,
    OpClass::PutIfAbsent,
    OpClass::MultipartPut,
    OpClass::Head,
    OpClass::Delete,
    OpClass::DeleteMany,
    OpClass::List,
    OpClass::ListV1,
    OpClass::Copy,
    OpClass::MultipartAbort,
    OpClass::MultipartCopy,
    OpClass::ListUploads,
    OpClass::PutTagging,
    OpClass::GetTagging,
    OpClass::DeleteTagging,
    OpClass::MakeBucket,
    OpClass::HeadBucket,
    OpClass::DeleteBucket,
    OpClass::ListBuckets,
];

/// The SDK bound to an S3 target.
#[derive(Clone, Debug)]
pub struct AwsSdkEngine {
    id: EngineId,
    config: S3Config,
    retries: u32,
    /// Certificates to trust instead of the system's, PEM.
    trusted: Option<Vec<u8>>,
}

impl AwsSdkEngine {
    /// The SDK for the target of `config`; it may repeat a request `retries` times.
    ///
    /// # Errors
    /// When the SDK does not support a setting, or a certificate file cannot be read.
    pub fn new(config: &S3Config, retries: u32) -> Result<Self, ConfigError> {
        let signed = config.payload != PayloadMode::Unsigned;
        let insecure = config.tls.insecure;
        check_settings(
            "aws-sdk",
            config,
            &[
                (signed, "it decides itself what to sign (--payload-signing)"),
                (
                    insecure,
                    "it always verifies certificates (--no-verify-ssl)",
                ),
            ],
        )?;
        let trusted = match &config.tls.ca_bundle {
            None => None,
            Some(path) => Some(std::fs::read(path).map_err(|e| {
                let place = format!("CA bundle {}", path.display());
                ConfigError::new(place, e.to_string(), "name a readable PEM file")
            })?),
        };
        Ok(Self {
            id: EngineId::new(),
            config: config.clone(),
            retries,
            trusted,
        })
    }

    /// Whether the user requested checksums only where S3 requires them.
    fn only_required(&self) -> bool {
        self.config.checksum.is_none()
            && self
                .config
                .origins
                .iter()
                .any(|o| o.name == "checksum" && o.source != Source::Default)
    }
}

bucketload_core::any_driver!(super::EngineDriver<AwsSdkEngine>);

impl Engine for AwsSdkEngine {
    type Client = AwsSdkClient;

    fn classes(&self) -> &[OpClass] {
        &CLASSES
    }

    fn facts(&self) -> EngineFacts {
        let setting = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let checksum = match (self.config.checksum, self.only_required()) {
            (Some(algorithm), _) => algorithm.name(),
            (None, true) => "when required",
            (None, false) => "the SDK's default: crc32 when supported, both ways",
        };
        let retries = match self.retries {
            0 => "none; each request of an operation is counted".to_owned(),
            n => format!("at most {n} (standard mode); each request is counted"),
        };
        EngineFacts {
            name: "aws-sdk".to_owned(),
            settings: vec![
                setting("engine version", VERSION),
                setting("engine retries", &retries),
                setting("checksum", checksum),
                setting("signing", "SigV4, payload as the SDK decides"),
                setting("stalled streams", "the SDK's default protection"),
                setting(
                    "connections",
                    "the engine's pool, one per thread; setting them up is part of service times",
                ),
            ],
        }
    }

    fn client(&self, worker: WorkerId) -> OpResult<AwsSdkClient> {
        let config = &self.config;
        let endpoint = &config.endpoints[worker.worker as usize % config.endpoints.len()];
        let shared_probe = SharedProbe::default();
        let mut builder = aws_sdk_s3::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new(config.region.clone()))
            .endpoint_url(endpoint.url())
            .force_path_style(config.addressing == Addressing::Path)
            .retry_config(match self.retries {
                0 => RetryConfig::disabled(),
                n => RetryConfig::standard().with_max_attempts(n.saturating_add(1)),
            })
            .http_client(http::Watched::of_this_thread(
                self.id,
                self.trusted.as_deref(),
                shared_probe.clone(),
            )?);
        builder = match &config.credentials {
            Some(keys) => builder.credentials_provider(Credentials::new(
                keys.access_key.clone(),
                keys.secret_key.expose(),
                keys.session_token.as_ref().map(|t| t.expose().to_owned()),
                None,
                "bucketload",
            )),
            None => builder.allow_no_auth(),
        };
        if self.only_required() {
            builder = builder
                .request_checksum_calculation(RequestChecksumCalculation::WhenRequired)
                .response_checksum_validation(ResponseChecksumValidation::WhenRequired);
        }
        Ok(AwsSdkClient {
            sdk: Sdk::from_conf(builder.build()),
            config: config.clone(),
            checksum: config.checksum.map(sdk_checksum),
            shared_probe,
            payload: Payload::default(),
        })
    }
}

fn sdk_checksum(algorithm: ChecksumAlgorithm) -> SdkChecksum {
    match algorithm {
        ChecksumAlgorithm::Crc32 => SdkChecksum::Crc32,
        ChecksumAlgorithm::Crc32c => SdkChecksum::Crc32C,
        ChecksumAlgorithm::Crc64Nvme => SdkChecksum::Crc64Nvme,
        ChecksumAlgorithm::Sha1 => SdkChecksum::Sha1,
        ChecksumAlgorithm::Sha256 => SdkChecksum::Sha256,
    }
}

/// One worker's SDK client.
#[derive(Debug)]
pub struct AwsSdkClient {
    sdk: Sdk,
    config: S3Config,
    /// The requested algorithm; `None` leaves it to the SDK.
    checksum: Option<SdkChecksum>,
    shared_probe: SharedProbe,
    payload: Payload,
}

/// Result of an SDK call.
type SdkResult<T, E> = Result<T, SdkError<E, HttpResponse>>;

impl AwsSdkClient {
    /// Marks the end of a call and interprets its failure.
    fn call_done<T, E>(&self, result: SdkResult<T, E>) -> OpResult<T>
    where
        E: ProvideErrorMetadata + Error + 'static,
    {
        self.shared_probe.lock().done();
        result.map_err(|error| self.failed(&error))
    }

    fn failed<E>(&self, error: &SdkError<E, HttpResponse>) -> OpError
    where
        E: ProvideErrorMetadata + Error + 'static,
    {
        let cause = |kind: Option<ErrorKind>| {
            let kind = kind.unwrap_or_else(|| failure::kind_of_cause(error));
            let detail = failure::chain(error);
            let keys = self.config.credentials.as_ref();
            OpError::new(kind, keys.map_or(detail.clone(), |k| k.scrub(&detail)))
        };
        match error {
            SdkError::ServiceError(context) => {
                let text =
                    |text: Option<&str>| crate::http::answer::one_line(text.unwrap_or_default());
                let answer = context.raw();
                let document = ErrorDocument {
                    code: text(context.err().code()),
                    message: text(context.err().message()),
                    ..ErrorDocument::default()
                };
                let region = answer.headers().get("x-amz-bucket-region");
                let context = Context {
                    region: &self.config.region,
                    credentials: self.config.credentials.as_ref(),
                    bucket_region: region.unwrap_or_default(),
                    location: "",
                };
                to_error(answer.status().as_u16(), &document, &context)
            }
            SdkError::TimeoutError(_) => cause(Some(ErrorKind::Timeout)),
            SdkError::DispatchFailure(f) if f.is_timeout() => cause(Some(ErrorKind::Timeout)),
            SdkError::ConstructionFailure(_) => cause(Some(ErrorKind::Rejected)),
            _ => cause(None),
        }
    }

    async fn perform(&mut self, request: &Request<'_>) -> OpResult {
        match request.op.class {
            OpClass::Get | OpClass::RangeGet => self.get(request).await,
            OpClass::Put | OpClass::PutIfAbsent => self.put(request).await,
            OpClass::Head => self.head(request).await,
            OpClass::Delete => self.delete(request).await,
            OpClass::Copy => self.copy(request).await,
            OpClass::PutTagging => self.put_tagging(request).await,
            OpClass::GetTagging => self.get_tagging(request).await,
            OpClass::DeleteTagging => self.delete_tagging(request).await,
            OpClass::DeleteMany => self.delete_many(request).await,
            OpClass::List => self.list_v2(request).await,
            OpClass::ListV1 => self.list_v1(request).await,
            OpClass::ListUploads => self.list_uploads(request).await,
            OpClass::MultipartPut => self.multipart_put(request).await,
            OpClass::MultipartAbort => self.multipart_abort(request).await,
            OpClass::MultipartCopy => self.multipart_copy(request).await,
            OpClass::MakeBucket => self.make_bucket(request).await,
            OpClass::HeadBucket => self.head_bucket(request).await,
            OpClass::DeleteBucket => self.delete_bucket(request).await,
            OpClass::ListBuckets => self.list_buckets().await,
            class => Err(unsupported("aws-sdk", class)),
        }
    }
}

impl Client for AwsSdkClient {
    async fn execute(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        let shared_probe = self.shared_probe.clone();
        let _lent = shared_probe.lend(probe);
        // Boxed: the SDK's futures would otherwise enlarge every session's task.
        Box::pin(self.perform(request)).await
    }
}
