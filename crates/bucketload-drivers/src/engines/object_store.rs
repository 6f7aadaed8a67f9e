//! The crate `object_store` as an engine: the client of DataFusion, Polars and similar programs.
//!
//! The crate names objects by paths and would change keys with empty, `.` or `..` parts or an outer
//! slash, so this engine refuses them. It has no operations for buckets, tags or unfinished uploads.

use std::cell::RefCell;
use std::sync::Arc;

use async_trait::async_trait;
use bucketload_core::driver::{Completion, WorkerId};
use bucketload_core::error::{ErrorKind, OpError, OpResult};
use bucketload_core::op::{OpClass, Request};
use bucketload_core::record::Probe;
use futures_util::StreamExt as _;
use object_store::aws::{AmazonS3, AmazonS3Builder, Checksum};
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpRequest, HttpResponse, HttpService, ReqwestConnector,
};
use object_store::list::{PaginatedListOptions, PaginatedListStore as _};
use object_store::path::Path;
use object_store::{
    Certificate, ClientOptions, GetOptions, GetRange, ObjectStore as _, ObjectStoreExt as _,
    PutMode, PutOptions, PutPayload, RetryConfig,
};

use super::payload::{Payload, content_of, keys_of, parts_of};
use super::per_thread::{EngineId, Slot, of_this_thread};
use super::reading::check_range;
use super::shared_probe::SharedProbe;
use super::{Client, Engine, EngineFacts, check_settings, driver::unsupported, failure};
use crate::http::reading::Reading;
use crate::http::sink::Sink as _;
use crate::s3::{Addressing, ChecksumAlgorithm, ConfigError, PayloadMode, S3Config};

/// The supported version; the lock file pins the exact one.
const VERSION: &str = "object_store 0.14";

/// Supported operations.
const CLASSES: [OpClass; 11] = [
    OpClass::Get,
    OpClass::RangeGet,
    OpClass::Put,
    OpClass::PutIfAbsent,
    OpClass::MultipartPut,
    OpClass::Head,
    OpClass::Delete,
    OpClass::DeleteMany,
    OpClass::List,
    OpClass::Copy,
    OpClass::MultipartAbort,
];

thread_local! {
    static THREAD_CLIENT: Slot<HttpClient> = const { RefCell::new(None) };
}

/// `object_store` bound to an S3 target.
#[derive(Clone, Debug)]
pub struct ObjectStoreEngine {
    id: EngineId,
    config: Arc<S3Config>,
    options: ClientOptions,
    retries: u32,
}

impl ObjectStoreEngine {
    /// The library for the target of `config`; it may repeat a request `retries` times.
    ///
    /// # Errors
    /// When it does not support a setting, or a certificate file cannot be used.
    pub fn new(config: &S3Config, retries: u32) -> Result<Self, ConfigError> {
        let streamed = !matches!(config.payload, PayloadMode::Unsigned | PayloadMode::Signed);
        let other_checksum = !matches!(config.checksum, None | Some(ChecksumAlgorithm::Sha256));
        check_settings(
            "object-store",
            config,
            &[
                (streamed, "it signs only whole payloads (--payload-signing)"),
                (
                    other_checksum,
                    "it supports only the checksum sha256 (--checksum)",
                ),
            ],
        )?;
        let mut options = ClientOptions::new()
            .with_allow_http(true)
            .with_allow_invalid_certificates(config.tls.insecure);
        if let Some(path) = &config.tls.ca_bundle {
            let broken = |e: String| {
                let place = format!("CA bundle {}", path.display());
                ConfigError::new(place, e, "name a readable PEM file")
            };
            let pem = std::fs::read(path).map_err(|e| broken(e.to_string()))?;
            let all = Certificate::from_pem_bundle(&pem).map_err(|e| broken(e.to_string()))?;
            options = options.with_no_system_certificates(true);
            for certificate in all {
                options = options.with_root_certificate(certificate);
            }
        }
        Ok(Self {
            id: EngineId::new(),
            config: Arc::new(config.clone()),
            options,
            retries,
        })
    }
}

bucketload_core::any_driver!(super::EngineDriver<ObjectStoreEngine>);

impl Engine for ObjectStoreEngine {
    type Client = ObjectStoreClient;

    fn classes(&self) -> &[OpClass] {
        &CLASSES
    }

    fn facts(&self) -> EngineFacts {
        let setting = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let retries = match self.retries {
            0 => "none; each request of an operation is counted".to_owned(),
            n => format!("at most {n}; each request is counted"),
        };
        EngineFacts {
            name: "object-store".to_owned(),
            settings: vec![
                setting("engine version", VERSION),
                setting("engine retries", &retries),
                setting(
                    "checksum",
                    self.config.checksum.map_or("none", ChecksumAlgorithm::name),
                ),
                setting("signing", "SigV4, signed payload"),
                setting(
                    "engine timeouts",
                    "the library's: 30 s per request, 5 s to connect",
                ),
                setting(
                    "connections",
                    "the engine's pool, one per thread; setting them up is part of service times",
                ),
            ],
        }
    }

    fn client(&self, worker: WorkerId) -> OpResult<ObjectStoreClient> {
        let http = THREAD_CLIENT.with(|slot| {
            of_this_thread(slot, self.id, || {
                ReqwestConnector::default()
                    .connect(&self.options)
                    .map_err(|e| failure::from_cause(&e))
            })
        })?;
        Ok(ObjectStoreClient {
            engine: self.clone(),
            endpoint: worker.worker as usize % self.config.endpoints.len(),
            http,
            store: None,
            shared_probe: SharedProbe::default(),
            payload: Payload::default(),
        })
    }
}

/// Creates the watched client for every store.
#[derive(Debug)]
struct WatchedConnector {
    http: HttpClient,
    shared_probe: SharedProbe,
}

impl HttpConnector for WatchedConnector {
    fn connect(&self, _options: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(Watched {
            http: self.http.clone(),
            shared_probe: self.shared_probe.clone(),
        }))
    }
}

/// Counts and times the requests.
#[derive(Debug)]
struct Watched {
    http: HttpClient,
    shared_probe: SharedProbe,
}

#[async_trait]
impl HttpService for Watched {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        self.shared_probe.started();
        let response = self.http.execute(request).await?;
        let fields = response.headers();
        self.shared_probe
            .answered(response.status().as_u16(), |name| {
                fields.get(name).map(|value| value.as_bytes())
            });
        Ok(response)
    }
}

/// One worker's store.
#[derive(Debug)]
pub struct ObjectStoreClient {
    engine: ObjectStoreEngine,
    endpoint: usize,
    http: HttpClient,
    /// The store of the last bucket; a store belongs to one bucket.
    store: Option<(String, AmazonS3)>,
    shared_probe: SharedProbe,
    payload: Payload,
}

/// The path for exactly `key`.
fn path(key: &str) -> OpResult<Path> {
    let refused = |why: String| OpError::new(ErrorKind::Rejected, why);
    let path =
        Path::parse(key).map_err(|e| refused(format!("object_store cannot name it: {e}")))?;
    match path.as_ref() == key {
        true => Ok(path),
        false => Err(refused(format!(
            "object_store would change {key:?} to {path}"
        ))),
    }
}

impl ObjectStoreClient {
    fn store(&mut self, bucket: &str) -> OpResult<AmazonS3> {
        if let Some((of, store)) = &self.store
            && of == bucket
        {
            return Ok(store.clone());
        }
        let config = &self.engine.config;
        let endpoint = &config.endpoints[self.endpoint];
        let virtual_host = config.addressing == Addressing::Virtual;
        let url = match virtual_host {
            false => endpoint.url(),
            // The library then expects the URL of the bucket.
            true => endpoint.url().replacen("://", &format!("://{bucket}."), 1),
        };
        let mut builder = AmazonS3Builder::new()
            .with_bucket_name(bucket)
            .with_region(&config.region)
            .with_endpoint(url)
            .with_allow_http(true)
            .with_virtual_hosted_style_request(virtual_host)
            .with_client_options(self.engine.options.clone())
            .with_retry(RetryConfig {
                max_retries: self.engine.retries as usize,
                ..RetryConfig::default()
            })
            .with_http_connector(WatchedConnector {
                http: self.http.clone(),
                shared_probe: self.shared_probe.clone(),
            });
        builder = match &config.credentials {
            None => builder.with_skip_signature(true),
            Some(keys) => {
                let builder = builder
                    .with_access_key_id(&keys.access_key)
                    .with_secret_access_key(keys.secret_key.expose());
                match &keys.session_token {
                    Some(token) => builder.with_token(token.expose()),
                    None => builder,
                }
            }
        };
        if config.checksum.is_some() {
            builder = builder.with_checksum_algorithm(Checksum::SHA256);
        }
        let store = builder.build().map_err(|e| failure::from_cause(&e))?;
        self.store = Some((bucket.to_owned(), store.clone()));
        Ok(store)
    }

    /// Marks the end of a call and interprets its failure.
    fn call_done<T>(&self, result: object_store::Result<T>) -> OpResult<T> {
        self.shared_probe.lock().done();
        result.map_err(|error| {
            let status = self.shared_probe.lock().status();
            failure::from_answer(status, &error, &self.engine.config)
        })
    }

    async fn get(&mut self, request: &Request<'_>) -> OpResult {
        let (store, path) = (self.store(request.bucket)?, path(request.key)?);
        let mut reading = Reading::of(request);
        let options = GetOptions {
            range: reading
                .range()
                .map(|r| GetRange::Bounded(r.offset..r.offset + r.len)),
            ..GetOptions::default()
        };
        let answer = match store.get_opts(&path, options).await {
            Ok(answer) => answer,
            error => return self.call_done(error).map(|_| Completion::default()),
        };
        let start = answer.range.start;
        let mut received = 0;
        let mut body = answer.into_stream();
        while let Some(bytes) = body.next().await {
            let bytes = match bytes {
                Ok(bytes) => bytes,
                // The head was a success; only the body is incomplete.
                Err(error) => {
                    self.shared_probe.lock().done();
                    return Err(failure::from_cause(&error));
                }
            };
            received += bytes.len() as u64;
            if reading.wants_body() {
                reading.data(&bytes);
            }
        }
        self.shared_probe.lock().done();
        let status = self.shared_probe.lock().status();
        check_range(request, status, None)?;
        reading.judge(status, received, Some(start))
    }

    async fn put(&mut self, request: &Request<'_>) -> OpResult {
        let (store, path) = (self.store(request.bucket)?, path(request.key)?);
        let content = content_of(request)?;
        let absent = request.op.class == OpClass::PutIfAbsent;
        let pieces = self.payload.pieces(content, 0, content.size());
        let options = PutOptions {
            mode: match absent {
                true => PutMode::Create,
                false => PutMode::Overwrite,
            },
            ..PutOptions::default()
        };
        let payload = PutPayload::from_iter(pieces);
        let result = store.put_opts(&path, payload, options).await;
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

    async fn multipart_put(&mut self, request: &Request<'_>) -> OpResult {
        let (store, path) = (self.store(request.bucket)?, path(request.key)?);
        let content = content_of(request)?;
        let (count, part) = parts_of(content.size(), request.op.count)?;
        let created = store.put_multipart(&path).await;
        let mut upload = self.call_done(created)?;
        for number in 0..count {
            let pieces = self.payload.pieces(content, number * part, part);
            let sent = upload.put_part(PutPayload::from_iter(pieces)).await;
            self.call_done(sent)?;
        }
        let completed = upload.complete().await;
        self.call_done(completed)?;
        Ok(Completion {
            bytes: content.size(),
            items: count,
            ..Completion::default()
        })
    }

    async fn multipart_abort(&mut self, request: &Request<'_>) -> OpResult {
        let (store, path) = (self.store(request.bucket)?, path(request.key)?);
        let created = store.put_multipart(&path).await;
        let mut upload = self.call_done(created)?;
        let aborted = upload.abort().await;
        self.call_done(aborted).map(|()| Completion::default())
    }

    async fn head(&mut self, request: &Request<'_>) -> OpResult {
        let (store, path) = (self.store(request.bucket)?, path(request.key)?);
        let result = store.head(&path).await;
        self.call_done(result).map(|meta| Completion {
            object_size: meta.size,
            ..Completion::default()
        })
    }

    async fn delete(&mut self, request: &Request<'_>) -> OpResult {
        let (store, path) = (self.store(request.bucket)?, path(request.key)?);
        let result = store.delete(&path).await;
        self.call_done(result).map(|()| Completion::default())
    }

    async fn delete_many(&mut self, request: &Request<'_>) -> OpResult {
        let store = self.store(request.bucket)?;
        let keys = keys_of(request, 1000)?;
        let paths: OpResult<Vec<_>> = keys.iter().map(|key| path(key).map(Ok)).collect();
        let mut deleted = store.delete_stream(futures_util::stream::iter(paths?).boxed());
        let mut items = 0;
        while let Some(one) = deleted.next().await {
            self.call_done(one)?;
            items += 1;
        }
        self.shared_probe.lock().done();
        Ok(Completion {
            items,
            ..Completion::default()
        })
    }

    async fn copy(&mut self, request: &Request<'_>) -> OpResult {
        let store = self.store(request.bucket)?;
        let result = store
            .copy(&path(request.source)?, &path(request.key)?)
            .await;
        self.call_done(result).map(|()| Completion::default())
    }

    async fn list(&mut self, request: &Request<'_>) -> OpResult {
        let store = self.store(request.bucket)?;
        let op = &request.op;
        let delimiter =
            (!request.delimiter.is_empty()).then(|| request.delimiter.to_owned().into());
        let (mut items, mut pages, mut from) = (0, 0, None);
        loop {
            let options = PaginatedListOptions {
                delimiter: delimiter.clone(),
                max_keys: (op.count > 0).then_some(op.count as usize),
                page_token: from.take(),
                ..PaginatedListOptions::default()
            };
            let result = store.list_paginated(Some(request.key), options).await;
            let page = self.call_done(result)?;
            items += (page.result.objects.len() + page.result.common_prefixes.len()) as u64;
            if let Some(watch) = request.watch {
                let objects = page.result.objects.iter();
                objects.for_each(|object| watch.listed(object.location.as_ref()));
            }
            pages += 1;
            let truncated = page.page_token.is_some();
            if !truncated || (op.pages > 0 && pages >= op.pages) {
                if let Some(watch) = request.watch.filter(|_| truncated) {
                    watch.cut_short();
                }
                return Ok(Completion {
                    items,
                    ..Completion::default()
                });
            }
            from = page.page_token;
        }
    }

    async fn perform(&mut self, request: &Request<'_>) -> OpResult {
        match request.op.class {
            OpClass::Get | OpClass::RangeGet => self.get(request).await,
            OpClass::Put | OpClass::PutIfAbsent => self.put(request).await,
            OpClass::MultipartPut => self.multipart_put(request).await,
            OpClass::MultipartAbort => self.multipart_abort(request).await,
            OpClass::Head => self.head(request).await,
            OpClass::Delete => self.delete(request).await,
            OpClass::DeleteMany => self.delete_many(request).await,
            OpClass::Copy => self.copy(request).await,
            OpClass::List => self.list(request).await,
            class => Err(unsupported("object-store", class)),
        }
    }
}

impl Client for ObjectStoreClient {
    async fn execute(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        let shared_probe = self.shared_probe.clone();
        let _lent = shared_probe.lend(probe);
        // Boxed: the library's futures would otherwise enlarge every session's task.
        Box::pin(self.perform(request)).await
    }
}
