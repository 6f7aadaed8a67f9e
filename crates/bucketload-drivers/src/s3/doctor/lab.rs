//! The doctor's session with the service: signed requests, and a list of everything that it wrote.

use std::collections::{BTreeMap, BTreeSet};

use bucketload_core::driver::{Driver as _, Session, WorkerId};
use bucketload_core::error::{OpError, OpResult};
use bucketload_core::op::{Op, OpClass, Request};
use bucketload_core::payload::{Arena, PayloadKind};
use bucketload_core::record::Probe;
use bucketload_s3::canonical::{Header, NO_STANDING, Parts};
use bucketload_s3::encode;
use bucketload_s3::sha256::sha256;
use bucketload_target::doctor::Examination;

use super::answer::{Answer, Ask};
use super::listing::ListVersion;
use crate::http::doctor::patiently;
use crate::http::outgoing::{Body, Plain};
use crate::http::pool::Buffer;
use crate::http::session::HttpSession as _;
use crate::s3::template::Unsigned;
use crate::s3::{PayloadMode, S3Config, S3Driver, S3Session};

/// Size of the object that the driver itself writes, in bytes.
pub(super) const SIZE: u64 = 4096;

/// The doctor at work.
pub(super) struct Lab {
    pub(super) config: S3Config,
    session: Option<S3Session>,
    pub(super) bucket: String,
    pub(super) prefix: String,
    pub(super) marker: String,
    marker_bodies: [Vec<u8>; 2],
    pub(super) create_bucket: bool,
    pub(super) created_bucket: bool,
    /// Whether the way to the service is free.
    pub(super) reached: bool,
    /// The checks that succeeded, or that a setting repaired.
    pub(super) works: BTreeSet<&'static str>,
    /// Keys that may exist.
    pub(super) keys: BTreeSet<String>,
    /// Multipart uploads that may exist: key and identifier.
    pub(super) uploads: Vec<(String, String)>,
    /// Connection of the last request, if its answer was a success.
    last: Option<u64>,
    /// Requests that found the connection of a successful one open, and closed.
    pub(super) kept: u32,
    pub(super) closed: u32,
    /// What the service said of the first signed request.
    hello: Option<OpResult<Answer>>,
    /// What the service said of our clock, if it refuses it.
    pub(super) skewed: Option<String>,
    /// The objects written for listings: status of each PUT.
    pub(super) population: BTreeMap<String, OpResult<Answer>>,
    /// How long after the write the last key appeared in the listing; `None` if all were there at once.
    pub(super) list_delay_ms: Option<u128>,
    /// How long after the write the object could be read; `None` if at once.
    pub(super) read_delay_ms: Option<u128>,
    /// Content of the first object.
    pub(super) content: Vec<u8>,
    arena: Arena,
}

impl Lab {
    /// Opens a session, unless the service is not `reached`.
    pub(super) async fn open(
        config: S3Config,
        exam: &Examination<'_>,
        reached: bool,
    ) -> OpResult<Self> {
        let mut lab = Self {
            session: None,
            config,
            bucket: exam.bucket.to_owned(),
            prefix: exam.prefix.to_owned(),
            marker: exam.marker.to_owned(),
            marker_bodies: [false, true].map(exam.marker_body),
            create_bucket: exam.create_bucket,
            created_bucket: false,
            reached,
            works: BTreeSet::new(),
            keys: BTreeSet::new(),
            uploads: Vec::new(),
            last: None,
            kept: 0,
            closed: 0,
            hello: None,
            skewed: None,
            population: BTreeMap::new(),
            list_delay_ms: None,
            read_delay_ms: None,
            content: Vec::new(),
            arena: Arena::new(PayloadKind::Random, 26),
        };
        if reached {
            lab.session = Some(session(&lab.config).await?);
        }
        Ok(lab)
    }

    /// Goes on with other settings.
    pub(super) async fn use_config(&mut self, config: S3Config) -> OpResult<()> {
        self.session = Some(session(&config).await?);
        self.config = config;
        self.last = None;
        self.hello = None;
        Ok(())
    }

    /// Whether the check `id` succeeded.
    pub(super) fn works(&self, id: &str) -> bool {
        self.works.contains(id)
    }

    /// The full key of the object `name`.
    pub(super) fn key(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// The content of the marker.
    pub(super) fn marker_body(&self) -> &[u8] {
        &self.marker_bodies[usize::from(self.created_bucket)]
    }

    /// The newest listing that works.
    pub(super) fn list_version(&self) -> Option<ListVersion> {
        match (self.works("list-v2"), self.works("list-v1")) {
            (true, _) => Some(ListVersion::V2),
            (false, true) => Some(ListVersion::V1),
            (false, false) => None,
        }
    }

    fn scrub(&self, text: &str) -> String {
        match &self.config.credentials {
            Some(credentials) => credentials.scrub(text),
            None => text.to_owned(),
        }
    }

    /// Sends a signed request, and waits for the whole answer.
    ///
    /// # Errors
    /// When no complete answer arrived in time.
    pub(super) async fn ask(&mut self, ask: Ask<'_>) -> OpResult<Answer> {
        let mut new = false;
        if matches!(ask.method, "PUT" | "POST") && !ask.key.is_empty() {
            new = self.keys.insert(ask.key.to_owned());
        }
        let bucket = self.bucket.clone();
        let answer = self.send(&bucket, ask).await?;
        // A refusal writes nothing; after any other failure, nobody knows.
        if new && (400..500).contains(&answer.status) {
            self.keys.remove(ask.key);
        }
        Ok(answer.complete(|text| self.scrub(text)))
    }

    async fn send(&mut self, bucket: &str, ask: Ask<'_>) -> OpResult<Answer> {
        let digest = encode::hex32(&sha256(ask.body));
        let payload: &[u8] = match (&self.config.credentials, ask.payload, self.config.payload) {
            (None, ..) => b"",
            (_, Some(payload), _) => payload.as_bytes(),
            (_, None, PayloadMode::Unsigned | PayloadMode::UnsignedTrailer) => b"UNSIGNED-PAYLOAD",
            _ => &digest,
        };
        let headers: Vec<Header<'_>> = ask
            .headers
            .iter()
            .map(|(name, value)| Header {
                name,
                value: value.as_bytes(),
            })
            .collect();
        let parts = Parts {
            method: ask.method,
            bucket,
            key: ask.key,
            query: ask.query.as_bytes(),
            payload,
            headers: &headers,
            standing: &NO_STANDING,
        };
        let unsigned = Unsigned {
            range: None,
            content_length: matches!(ask.method, "PUT" | "POST").then_some(ask.body.len() as u64),
        };
        let Some(session) = &mut self.session else {
            return Err(OpError::new(
                bucketload_core::error::ErrorKind::Connect,
                "there is no session",
            ));
        };
        let mut head = Buffer::take();
        session
            .shared
            .writer
            .borrow_mut()
            .render(&mut head, &parts, unsigned);
        let mut request = Plain::new(head, Body::Bytes(ask.body), ask.method == "HEAD");
        let mut answer = Answer::default();
        let probe = &mut Probe::untimed();
        let reply = patiently(session.attempt(&mut request, &mut answer, probe)).await?;
        let connection = Session::route(session).connection;
        match self.last.replace(connection) {
            Some(before) if before == connection => self.kept += 1,
            Some(_) => self.closed += 1,
            None => {}
        }
        if reply.status >= 300 {
            self.last = None;
        }
        answer.status = reply.status;
        answer.refusal = reply.refusal;
        Ok(answer)
    }

    /// The canonical request of the last request, without secrets.
    pub(super) fn canonical(&self) -> String {
        let Some(session) = &self.session else {
            return String::new();
        };
        let writer = session.shared.writer.borrow();
        let canonical = writer
            .signer()
            .map_or(&b""[..], |signer| signer.canonical());
        self.scrub(&String::from_utf8_lossy(canonical))
    }

    /// The first signed request: a listing below the doctor's own prefix.
    pub(super) async fn hello(&mut self) -> &OpResult<Answer> {
        if self.hello.is_none() {
            let query = format!(
                "list-type=2&max-keys=1&prefix={}",
                encode::query_text(&self.prefix)
            );
            let answer = self.ask(Ask::new("GET", "").query(&query)).await;
            self.hello = Some(answer);
        }
        self.hello.as_ref().expect("it was just asked")
    }

    /// Writes an object of [`SIZE`] bytes as a run would, with `config`.
    pub(super) async fn put_as_a_run(&mut self, config: &S3Config, key: &str) -> OpResult<()> {
        self.keys.insert(key.to_owned());
        let mut session = session(config).await?;
        let content = self.arena.content(0, 0, 0, SIZE);
        let op = Op {
            size: SIZE,
            ..Op::new(OpClass::Put)
        };
        let mut request = Request::new(&op, &self.bucket, key);
        request.content = Some(content);
        patiently(session.execute(&request, &mut Probe::untimed())).await?;
        self.content.resize(SIZE as usize, 0);
        content.fill(0, &mut self.content);
        Ok(())
    }

    /// Whether an object exists, by the cheapest way that works.
    pub(super) async fn exists(&mut self, key: &str) -> OpResult<bool> {
        let method = match self.works("head") {
            true => "HEAD",
            false => "GET",
        };
        let answer = self.ask(Ask::new(method, key)).await?;
        Ok(answer.status != 404)
    }

    /// Writes a small object; `Err` with the server's words if it refuses.
    pub(super) async fn put(&mut self, key: &str, body: &[u8]) -> Result<Answer, String> {
        match self.ask(Ask::new("PUT", key).body(body)).await {
            Ok(answer) if answer.is_ok() => Ok(answer),
            other => Err(super::answer::words(&other)),
        }
    }

    /// Makes the bucket.
    pub(super) async fn make_bucket(&mut self) -> OpResult<()> {
        let bucket = self.bucket.clone();
        if let Some(session) = &mut self.session {
            patiently(session.make_bucket(&bucket, false, &mut Probe::untimed())).await?;
        }
        self.created_bucket = true;
        self.hello = None;
        Ok(())
    }
}

/// A new session with `config`.
async fn session(config: &S3Config) -> OpResult<S3Session> {
    let driver = S3Driver::new(config.clone())
        .map_err(|e| OpError::new(bucketload_core::error::ErrorKind::Rejected, e.to_string()))?;
    patiently(driver.open(WorkerId::default(), &mut Probe::untimed())).await
}
