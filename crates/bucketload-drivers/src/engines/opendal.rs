//! The crate `opendal` as an engine.
//!
//! The crate names objects by paths with its own rules: it drops outer blanks and doubled slashes, a final
//! slash means a folder, and URLs lose `.` and `..`. This engine refuses keys that the crate would change.
//! The crate itself chooses between one request and a multipart upload. It has no operations for buckets,
//! tags or unfinished uploads.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;

use bucketload_core::driver::{Completion, WorkerId};
use bucketload_core::error::{ErrorKind, OpError, OpResult};
use bucketload_core::op::{ByteRange, OpClass, Request};
use bucketload_core::record::Probe;
use futures_util::StreamExt as _;
use opendal::layers::RetryLayer;
use opendal::raw::normalize_path;
use opendal::services::S3;
use opendal::{Buffer, HttpBody, HttpTransport, HttpTransporter, OperationContext, Operator};
use opendal_http_transport_reqwest::ReqwestTransport;

use super::payload::{Payload, content_of, keys_of};
use super::per_thread::{EngineId, Slot, of_this_thread};
use super::reading::check_range;
use super::shared_probe::SharedProbe;
use super::{Client, Engine, EngineFacts, check_settings, driver::unsupported, failure};
use crate::http::reading::Reading;
use crate::http::sink::Sink as _;
use crate::s3::{Addressing, ConfigError, PayloadMode, S3Config};

/// The supported version; the lock file pins the exact one.
const VERSION: &str = "opendal 0.59";

/// Supported operations.
const CLASSES: [OpClass; 9] = [
    OpClass::Get,
    OpClass::RangeGet,
    OpClass::Put,
    OpClass::PutIfAbsent,
    OpClass::Head,
    OpClass::Delete,
    OpClass::DeleteMany,
    OpClass::List,
    OpClass::Copy,
];

thread_local! {
    static THREAD_CLIENT: Slot<ReqwestTransport> = const { RefCell::new(None) };
}

/// `opendal` bound to an S3 target.
#[derive(Clone, Debug)]
pub struct OpendalEngine {
    id: EngineId,
    config: Arc<S3Config>,
    retries: u32,
    /// Certificates to trust instead of the system's.
    trusted: Vec<reqwest::Certificate>,
}

impl OpendalEngine {
    /// The library for the target of `config`; it may repeat a request `retries` times.
    ///
    /// # Errors
    /// When it does not support a setting, or a certificate file cannot be used.
    pub fn new(config: &S3Config, retries: u32) -> Result<Self, ConfigError> {
        let signed = config.payload != PayloadMode::Unsigned;
        let checksum = config.checksum.is_some();
        check_settings(
            "opendal",
            config,
            &[
                (signed, "it never signs payloads (--payload-signing)"),
                (checksum, "this engine does not set checksums (--checksum)"),
            ],
        )?;
        let mut trusted = Vec::new();
        if let Some(path) = &config.tls.ca_bundle {
            let broken = |e: String| {
                let place = format!("CA bundle {}", path.display());
                ConfigError::new(place, e, "name a readable PEM file")
            };
            let pem = std::fs::read(path).map_err(|e| broken(e.to_string()))?;
            let all = reqwest::Certificate::from_pem_bundle(&pem);
            trusted = all.map_err(|e| broken(e.to_string()))?;
        }
        Ok(Self {
            id: EngineId::new(),
            config: Arc::new(config.clone()),
            retries,
            trusted,
        })
    }

    fn transport(&self) -> OpResult<ReqwestTransport> {
        let mut builder = reqwest::Client::builder();
        if !self.trusted.is_empty() {
            builder = builder.tls_certs_only(self.trusted.clone());
        }
        if self.config.tls.insecure {
            builder = builder.tls_danger_accept_invalid_certs(true);
        }
        let client = builder.build().map_err(|e| failure::from_cause(&e))?;
        Ok(ReqwestTransport::new(client))
    }
}

bucketload_core::any_driver!(super::EngineDriver<OpendalEngine>);

impl Engine for OpendalEngine {
    type Client = OpendalClient;

    fn classes(&self) -> &[OpClass] {
        &CLASSES
    }

    fn facts(&self) -> EngineFacts {
        let setting = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let retries = match self.retries {
            0 => "none; each request of an operation is counted".to_owned(),
            n => format!("at most {n} (retry layer); each request is counted"),
        };
        EngineFacts {
            name: "opendal".to_owned(),
            settings: vec![
                setting("engine version", VERSION),
                setting("engine retries", &retries),
                setting("checksum", "none"),
                setting("signing", "SigV4, unsigned payload"),
                setting(
                    "connections",
                    "the engine's pool, one per thread; setting them up is part of service times",
                ),
            ],
        }
    }

    fn client(&self, worker: WorkerId) -> OpResult<OpendalClient> {
        let transport =
            THREAD_CLIENT.with(|slot| of_this_thread(slot, self.id, || self.transport()))?;
        Ok(OpendalClient {
            engine: self.clone(),
            endpoint: worker.worker as usize % self.config.endpoints.len(),
            transport,
            operator: None,
            shared_probe: SharedProbe::default(),
            payload: Payload::default(),
        })
    }
}

/// Counts and times the requests.
struct Watched {
    transport: ReqwestTransport,
    shared_probe: SharedProbe,
}

impl HttpTransport for Watched {
    async fn fetch(
        &self,
        request: http::Request<Buffer>,
    ) -> opendal::Result<http::Response<HttpBody>> {
        self.shared_probe.started();
        let response = self.transport.fetch(request).await?;
        let fields = response.headers();
        self.shared_probe
            .answered(response.status().as_u16(), |name| {
                fields.get(name).map(|value| value.as_bytes())
            });
        Ok(response)
    }
}

/// One worker's operator.
#[derive(Debug)]
pub struct OpendalClient {
    engine: OpendalEngine,
    endpoint: usize,
    transport: ReqwestTransport,
    /// The operator of the last bucket; an operator belongs to one bucket.
    operator: Option<(String, Operator)>,
    shared_probe: SharedProbe,
    payload: Payload,
}

/// Refuses a key that the library would change.
fn check(key: &str) -> OpResult<()> {
    // URLs lose their dot segments on the way.
    let dots = key.split('/').any(|part| matches!(part, "." | ".."));
    if !key.is_empty() && !dots && normalize_path(key) == key && !key.ends_with('/') {
        return Ok(());
    }
    let detail = format!("opendal would change the key {key:?}");
    Err(OpError::new(ErrorKind::Rejected, detail))
}

/// The part of `range` inside the object: the library treats an answer that ends with the object as
/// truncated.
fn within(request: &Request<'_>, range: ByteRange) -> Range<u64> {
    let size = match request.content.filter(|_| request.verify) {
        Some(content) => content.size(),
        None => request.op.size,
    };
    let end = range.offset + range.len;
    match size > range.offset {
        true => range.offset..end.min(size),
        false => range.offset..end,
    }
}

impl OpendalClient {
    fn operator(&mut self, bucket: &str) -> OpResult<Operator> {
        if let Some((of, operator)) = &self.operator
            && of == bucket
        {
            return Ok(operator.clone());
        }
        let config = &self.engine.config;
        let mut builder = S3::default()
            .bucket(bucket)
            .region(&config.region)
            .endpoint(&config.endpoints[self.endpoint].url())
            .disable_config_load()
            .disable_ec2_metadata();
        if config.addressing == Addressing::Virtual {
            builder = builder.enable_virtual_host_style();
        }
        builder = match &config.credentials {
            None => builder.skip_signature(),
            Some(keys) => {
                let builder = builder
                    .access_key_id(&keys.access_key)
                    .secret_access_key(keys.secret_key.expose());
                match &keys.session_token {
                    Some(token) => builder.session_token(token.expose()),
                    None => builder,
                }
            }
        };
        let transport = HttpTransporter::new(Watched {
            transport: self.transport.clone(),
            shared_probe: self.shared_probe.clone(),
        });
        let mut operator = Operator::new(builder)
            .map_err(|e| failure::from_cause(&e))?
            .with_context(OperationContext::new().with_http_transport(transport));
        if self.engine.retries > 0 {
            let layer = RetryLayer::new().with_max_times(self.engine.retries as usize);
            operator = operator.layer(layer);
        }
        self.operator = Some((bucket.to_owned(), operator.clone()));
        Ok(operator)
    }

    /// Marks the end of a call and interprets its failure.
    fn call_done<T>(&self, result: opendal::Result<T>) -> OpResult<T> {
        self.shared_probe.lock().done();
        result.map_err(|error| {
            let status = self.shared_probe.lock().status();
            failure::from_answer(status, &error, &self.engine.config)
        })
    }

    async fn get(&mut self, request: &Request<'_>) -> OpResult {
        let operator = self.operator(request.bucket)?;
        check(request.key)?;
        let mut reading = Reading::of(request);
        let opened = async {
            let reader = operator.reader(request.key).await?;
            match reading.range() {
                Some(range) => reader.into_stream(within(request, range)).await,
                None => reader.into_stream(..).await,
            }
        };
        let mut body = match opened.await {
            Ok(body) => body,
            error => return self.call_done(error).map(|_| Completion::default()),
        };
        let mut received = 0;
        while let Some(buffer) = body.next().await {
            let buffer = match buffer {
                Ok(buffer) => buffer,
                error => return self.call_done(error).map(|_| Completion::default()),
            };
            for bytes in buffer {
                received += bytes.len() as u64;
                if reading.wants_body() {
                    reading.data(&bytes);
                }
            }
        }
        self.shared_probe.lock().done();
        let status = self.shared_probe.lock().status();
        check_range(request, status, None)?;
        reading.judge(status, received, None)
    }

    async fn put(&mut self, request: &Request<'_>) -> OpResult {
        let operator = self.operator(request.bucket)?;
        check(request.key)?;
        let content = content_of(request)?;
        let absent = request.op.class == OpClass::PutIfAbsent;
        let buffer = Buffer::from(self.payload.pieces(content, 0, content.size()));
        let result = match absent {
            true => {
                let write = operator.write_with(request.key, buffer);
                write.if_not_exists(true).await
            }
            false => operator.write(request.key, buffer).await,
        };
        match self.call_done(result) {
            Ok(_) => Ok(Completion {
                bytes: content.size(),
                items: u64::from(absent),
                ..Completion::default()
            }),
            Err(error) if absent && error.status == 412 => Ok(Completion::default()),
            Err(error) => Err(error),
        }
    }

    async fn head(&mut self, request: &Request<'_>) -> OpResult {
        let operator = self.operator(request.bucket)?;
        check(request.key)?;
        let result = operator.stat(request.key).await;
        self.call_done(result).map(|meta| Completion {
            object_size: meta.content_length(),
            ..Completion::default()
        })
    }

    async fn delete(&mut self, request: &Request<'_>) -> OpResult {
        let operator = self.operator(request.bucket)?;
        check(request.key)?;
        let result = operator.delete(request.key).await;
        self.call_done(result).map(|()| Completion::default())
    }

    async fn delete_many(&mut self, request: &Request<'_>) -> OpResult {
        let operator = self.operator(request.bucket)?;
        let keys = keys_of(request, 1000)?;
        keys.iter().try_for_each(|key| check(key))?;
        let result = operator.delete_iter(keys).await;
        self.call_done(result).map(|()| Completion {
            items: request.op.count,
            ..Completion::default()
        })
    }

    async fn copy(&mut self, request: &Request<'_>) -> OpResult {
        let operator = self.operator(request.bucket)?;
        check(request.source)?;
        check(request.key)?;
        let result = operator.copy(request.source, request.key).await;
        self.call_done(result).map(|_| Completion::default())
    }

    async fn list(&mut self, request: &Request<'_>) -> OpResult {
        let operator = self.operator(request.bucket)?;
        let op = &request.op;
        if !matches!(request.delimiter, "" | "/") {
            let detail = "opendal groups keys only by slashes";
            return Err(OpError::new(ErrorKind::Rejected, detail));
        }
        if !request.key.is_empty() && normalize_path(request.key) != request.key {
            let detail = format!("opendal would change the prefix {:?}", request.key);
            return Err(OpError::new(ErrorKind::Rejected, detail));
        }
        let mut call = operator
            .lister_with(request.key)
            .recursive(request.delimiter.is_empty());
        if op.count > 0 {
            call = call.limit(op.count as usize);
        }
        let mut lister = match call.await {
            Ok(lister) => lister,
            error => return self.call_done(error).map(|_| Completion::default()),
        };
        // The lister fetches a page only when an entry of it is needed.
        let most = match (op.pages, op.count) {
            (0, _) | (_, 0) => u64::MAX,
            (pages, count) => count.saturating_mul(u64::from(pages)),
        };
        let mut items = 0;
        while items < most {
            let entry = match lister.next().await {
                None => break,
                Some(Ok(entry)) => entry,
                Some(error) => return self.call_done(error).map(|_| Completion::default()),
            };
            items += 1;
            if let Some(watch) = request.watch.filter(|_| entry.metadata().is_file()) {
                watch.listed(entry.path());
            }
        }
        if items == most
            && let Some(watch) = request.watch
        {
            watch.cut_short();
        }
        self.shared_probe.lock().done();
        Ok(Completion {
            items,
            ..Completion::default()
        })
    }

    async fn perform(&mut self, request: &Request<'_>) -> OpResult {
        match request.op.class {
            OpClass::Get | OpClass::RangeGet => self.get(request).await,
            OpClass::Put | OpClass::PutIfAbsent => self.put(request).await,
            OpClass::Head => self.head(request).await,
            OpClass::Delete => self.delete(request).await,
            OpClass::DeleteMany => self.delete_many(request).await,
            OpClass::Copy => self.copy(request).await,
            OpClass::List => self.list(request).await,
            class => Err(unsupported("opendal", class)),
        }
    }
}

impl Client for OpendalClient {
    async fn execute(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        let shared_probe = self.shared_probe.clone();
        let _lent = shared_probe.lend(probe);
        // Boxed: the library's futures would otherwise enlarge every session's task.
        Box::pin(self.perform(request)).await
    }
}
