//! Examines a target through its driver: the operations that workloads use, each with its content compared.
//!
//! For drivers without checks of their own. What a driver does not offer is not tried.

use std::rc::Rc;
use std::time::Duration;

use bucketload_core::driver::{AnyDriver, AnySession, Completion, KeyPage, WorkerId};
use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::op::{ByteRange, Op, OpClass, Request};
use bucketload_core::payload::{Arena, Content, PayloadKind};
use bucketload_core::record::Probe;
use bucketload_run::now_ns;
use bucketload_target::doctor::{Examination, Finding, State};

/// Longest wait for one operation.
const PATIENCE: Duration = Duration::from_secs(10);
/// Size of the objects, in bytes.
const SIZE: u64 = 100_000;

/// An operation that must not take longer than [`PATIENCE`].
async fn patiently<T>(call: impl Future<Output = Result<T, OpError>>) -> Result<T, OpError> {
    match tokio::time::timeout(PATIENCE, call).await {
        Ok(result) => result,
        Err(_) => Err(OpError::new(
            ErrorKind::Timeout,
            format!("no complete answer within {} s", PATIENCE.as_secs()),
        )),
    }
}

/// Examines, and removes what was written.
pub(super) async fn examine(driver: &AnyDriver, exam: &mut Examination<'_>) {
    let opened = patiently(driver.open(WorkerId::default(), &mut Probe::new(now_ns))).await;
    let session = match opened {
        Ok(session) => session,
        Err(error) => {
            let found = Finding::new("session", "a session", State::Failed, error.to_string());
            exam.findings
                .push(found.remedy("see the page of the driver in the manual"));
            return;
        }
    };
    let mut desk = Desk {
        session,
        offered: driver.capabilities().classes,
        arena: Rc::new(Arena::new(PayloadKind::Random, 26)),
        bucket: exam.bucket.to_owned(),
        created_bucket: false,
        findings: Vec::new(),
    };
    if desk.enter(exam).await {
        desk.objects(exam.prefix).await;
    }
    let wrote = desk.findings.iter().any(|f| f.id == "put");
    exam.findings.append(&mut desk.findings);
    if wrote {
        exam.left = desk.clean_up(exam).await;
    }
}

struct Desk {
    session: AnySession,
    offered: Vec<OpClass>,
    arena: Rc<Arena>,
    bucket: String,
    created_bucket: bool,
    findings: Vec<Finding>,
}

impl Desk {
    fn say(
        &mut self,
        id: &'static str,
        asked: &'static str,
        result: Result<String, String>,
    ) -> bool {
        let (state, found) = match result {
            Ok(found) => (State::Ok, found),
            Err(found) => (State::Differs, found),
        };
        self.findings.push(Finding::new(id, asked, state, found));
        state == State::Ok
    }

    fn fail(&mut self, remedy: &str) -> bool {
        if let Some(finding) = self.findings.last_mut() {
            finding.state = State::Failed;
            remedy.clone_into(&mut finding.remedy);
        }
        false
    }

    /// Finds or makes the bucket, and marks the prefix.
    async fn enter(&mut self, exam: &Examination<'_>) -> bool {
        let found = match exam.create_bucket {
            true => patiently(self.session.ensure_bucket(exam.bucket)).await,
            false => patiently(self.session.head_bucket(exam.bucket))
                .await
                .map(|()| false),
        };
        self.created_bucket = found.as_ref().is_ok_and(|made| *made);
        let words = found.map(|made| match made {
            true => format!("`{}` is created for this examination", exam.bucket),
            false => format!("`{}` exists", exam.bucket),
        });
        if !self.say("bucket", "the bucket", words.map_err(|e| e.to_string())) {
            return self
                .fail("create it, or allow it with --create-bucket (run has the same flag)");
        }
        let body = (exam.marker_body)(self.created_bucket);
        let put = patiently(self.session.put_small(exam.bucket, exam.marker, &body)).await;
        let put = put.map(|()| "the marker is written".to_owned());
        if !self.say("put", "the right to write", put.map_err(|e| e.to_string())) {
            return self.fail("grant the right to write below the prefix");
        }
        true
    }

    async fn execute(&mut self, request: &Request<'_>) -> Result<Completion, OpError> {
        let mut probe = Probe::new(now_ns);
        patiently(self.session.execute(request, &mut probe)).await
    }

    /// Performs `op` on `key`, with the content of version `op.version`.
    async fn perform(&mut self, op: Op, key: &str, source: &str) -> Result<Completion, String> {
        let bucket = self.bucket.clone();
        // A second reference to the same bytes, because the session is borrowed while they are sent.
        let arena = Rc::clone(&self.arena);
        let content: Content<'_> = arena.content(0, 1, op.version, SIZE);
        let mut request = Request::new(&op, &bucket, key);
        request.source = source;
        if op.class.writes_body() || op.class.reads_body() {
            request.content = Some(content);
        }
        request.verify = op.class.reads_body();
        self.execute(&request).await.map_err(|e| e.to_string())
    }

    /// As [`Desk::perform`], as a line of the report; `words` describe a success.
    async fn try_out(
        &mut self,
        id: &'static str,
        asked: &'static str,
        op: Op,
        (key, source): (&str, &str),
        words: impl FnOnce(Completion) -> Result<String, String>,
    ) -> bool {
        if !self.offered.contains(&op.class) {
            let found = "the driver does not offer it";
            self.findings
                .push(Finding::new(id, asked, State::NotTried, found));
            return false;
        }
        let class = op.class;
        let done = self.perform(op, key, source).await.and_then(words);
        let ok = self.say(id, asked, done);
        if let (false, Some(finding)) = (ok, self.findings.last_mut()) {
            finding.refuses = vec![class];
            finding.remedy = format!("leave {class} out of the mix");
        }
        ok
    }

    async fn objects(&mut self, prefix: &str) {
        let key = format!("{prefix}object");
        let write = |version| Op {
            size: SIZE,
            version,
            ..Op::new(OpClass::Put)
        };
        let read = |version| Op {
            size: SIZE,
            version,
            ..Op::new(OpClass::Get)
        };
        let bytes = |done: Completion| match done.bytes {
            SIZE => Ok(format!("{SIZE} bytes")),
            other => Err(format!("{other} bytes instead of {SIZE}")),
        };
        let at = (key.as_str(), "");
        if !self
            .try_out("write", "an object", write(0), at, bytes)
            .await
        {
            self.fail("see what the server logs");
            return;
        }
        if self
            .try_out("get", "the content just written", read(0), at, bytes)
            .await
        {
            let range = Op {
                range: Some(ByteRange {
                    offset: 70_000,
                    len: 1000,
                }),
                ..Op {
                    class: OpClass::RangeGet,
                    ..read(0)
                }
            };
            let thousand = |done: Completion| match done.bytes {
                1000 => Ok("1000 bytes".to_owned()),
                other => Err(format!("{other} bytes instead of 1000")),
            };
            self.try_out("range", "a range of bytes", range, at, thousand)
                .await;
        }
        let sized = |done: Completion| match done.object_size {
            SIZE => Ok(format!("{SIZE} bytes")),
            other => Err(format!("{other} bytes instead of {SIZE}")),
        };
        let plain = Op::new;
        self.try_out(
            "head",
            "the size of an object",
            plain(OpClass::Head),
            at,
            sized,
        )
        .await;
        if self.perform(write(1), &key, "").await.is_ok() {
            self.try_out(
                "read-after-overwrite",
                "the new content at once",
                read(1),
                at,
                bytes,
            )
            .await;
        }
        let copied = format!("{prefix}copy");
        let done = |_| Ok("accepted".to_owned());
        let to = (copied.as_str(), key.as_str());
        if self
            .try_out(
                "copy",
                "a copy in the store",
                plain(OpClass::Copy),
                to,
                done,
            )
            .await
        {
            let read = self.perform(read(1), &copied, "").await.and_then(bytes);
            self.say("copied", "the content of the copy", read);
        }
        self.list(prefix, &key).await;
        let deleted = self
            .try_out(
                "delete",
                "the right to delete",
                plain(OpClass::Delete),
                at,
                done,
            )
            .await;
        if !deleted {
            self.fail(
                "grant the right to delete below the prefix; without it, a run cannot clean up",
            );
            return;
        }
        let bucket = self.bucket.clone();
        let gone = match patiently(self.session.get_small(&bucket, &key)).await {
            Err(error) if error.kind == ErrorKind::NotFound => Ok("not found".to_owned()),
            Err(error) => Err(error.to_string()),
            Ok(_) => Err("it is still there".to_owned()),
        };
        self.say("deleted", "nothing where an object was deleted", gone);
    }

    async fn list(&mut self, prefix: &str, key: &str) {
        let bucket = self.bucket.clone();
        let listed = match patiently(self.session.list_keys(&bucket, prefix, None)).await {
            Ok(KeyPage { keys, .. }) if keys.iter().any(|k| k == key) => {
                Ok(format!("{} keys", keys.len()))
            }
            Ok(KeyPage { keys, .. }) => {
                Err(format!("{} keys, without the one just written", keys.len()))
            }
            Err(error) => Err(error.to_string()),
        };
        if !self.say("list", "all keys below a prefix", listed)
            && let Some(finding) = self.findings.last_mut()
        {
            finding.refuses = vec![OpClass::List];
            "leave list out of the mix; check that clean-up has removed everything"
                .clone_into(&mut finding.remedy);
        }
    }

    /// Removes everything below the prefix, the marker last. Returns what could not be removed.
    async fn clean_up(&mut self, exam: &Examination<'_>) -> Vec<String> {
        let mut known = vec![
            format!("{}object", exam.prefix),
            format!("{}copy", exam.prefix),
        ];
        let listed = patiently(self.session.list_keys(exam.bucket, exam.prefix, None)).await;
        known.extend(listed.map(|page| page.keys).unwrap_or_default());
        known.retain(|key| key != exam.marker);
        known.sort();
        known.dedup();
        let mut left = Vec::new();
        for keys in [known, vec![exam.marker.to_owned()]] {
            if let (true, Err(error)) = (
                left.is_empty(),
                patiently(self.session.delete_keys(exam.bucket, &keys)).await,
            ) {
                left.push(format!("objects below {}: {error}", exam.prefix));
            }
        }
        if self.created_bucket && left.is_empty() {
            match patiently(self.session.delete_bucket(exam.bucket)).await {
                Err(error) if !matches!(error.kind, ErrorKind::Conflict | ErrorKind::NotFound) => {
                    left.push(format!("the bucket {}: {error}", exam.bucket));
                }
                _ => {}
            }
        }
        left
    }
}
