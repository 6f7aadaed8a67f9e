//! Examines a target through its driver: the operations that workloads use, each with its content compared.
//!
//! For drivers without checks of their own. What a driver does not offer is not tried.
//!
//! ```text
//! enter (bucket, marker) ─► objects ─► listing ─► deletion ─► room ─► clean-up
//! ```

mod deletion;
mod listing;
mod objects;

use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use bucketload_core::driver::{AnyDriver, AnySession, Completion, WorkerId};
use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::op::{Op, OpClass, Request};
use bucketload_core::payload::{Arena, Content, PayloadKind};
use bucketload_core::record::Probe;
use bucketload_run::now_ns;
use bucketload_target::Flag;
use bucketload_target::doctor::{Examination, Finding, Repair, State, judge_connections, room};

/// Longest wait for one operation.
const PATIENCE: Duration = Duration::from_secs(10);
/// Size of most objects, in bytes.
const SIZE: u64 = 100_000;

/// Opens the target with another value of a setting; `None` if the user has set it, or if that fails.
pub(super) type Reopen<'a> = &'a dyn Fn(&'static Flag, &str) -> Option<AnyDriver>;

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

async fn open(driver: &AnyDriver) -> Result<AnySession, OpError> {
    patiently(driver.open(WorkerId::default(), &mut Probe::new(now_ns))).await
}

/// Examines, and removes what was written.
pub(super) async fn examine(driver: &AnyDriver, exam: &mut Examination<'_>, reopen: Reopen<'_>) {
    let session = match open(driver).await {
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
        prefix: exam.prefix.to_owned(),
        created_bucket: false,
        keys: BTreeSet::new(),
        last: None,
        kept: 0,
        closed: 0,
        findings: Vec::new(),
        repairs: exam.repairs,
        reopen,
    };
    if desk.enter(exam).await && desk.objects().await {
        desk.listings().await;
        desk.deletions().await;
    }
    let wrote = desk.findings.iter().any(|f| f.id == "put");
    if wrote && !exam.findings.iter().any(|f| f.id == "room") {
        desk.room().await;
    }
    if let Some(finding) = exam.findings.iter_mut().find(|f| f.id == "keep-alive") {
        judge_connections(finding, desk.kept, desk.closed);
    }
    exam.findings.append(&mut desk.findings);
    if wrote {
        exam.left = desk.clean_up(exam).await;
    }
}

struct Desk<'a> {
    session: AnySession,
    offered: Vec<OpClass>,
    arena: Rc<Arena>,
    bucket: String,
    prefix: String,
    created_bucket: bool,
    /// Keys that may exist.
    keys: BTreeSet<String>,
    /// Connection of the last operation, if it was a success.
    last: Option<u64>,
    /// Operations that found the connection of a successful one open, and closed.
    kept: u32,
    closed: u32,
    findings: Vec<Finding>,
    repairs: &'static [Repair],
    reopen: Reopen<'a>,
}

/// What a check found: words of a success, or of a difference.
type Found = Result<String, String>;

fn words<T>(result: Result<T, OpError>, success: &str) -> Found {
    match result {
        Ok(_) => Ok(success.to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

impl Desk<'_> {
    fn say(&mut self, id: &'static str, asked: &'static str, found: Found) -> bool {
        let (state, found) = match found {
            Ok(found) => (State::Ok, found),
            Err(found) => (State::Differs, found),
        };
        self.findings.push(Finding::new(id, asked, state, found));
        state == State::Ok
    }

    /// Makes the last finding a failure.
    fn fail(&mut self, remedy: &str) -> bool {
        if let Some(finding) = self.findings.last_mut() {
            finding.state = State::Failed;
            finding.refuses.clear();
            remedy.clone_into(&mut finding.remedy);
        }
        false
    }

    /// Adds to the last finding, unless it is a success, what to do and which operations to leave out.
    fn advise(&mut self, remedy: &str, refuses: &[OpClass]) {
        if let Some(finding) = self.findings.last_mut()
            && finding.state == State::Differs
        {
            remedy.clone_into(&mut finding.remedy);
            finding.refuses = refuses.to_vec();
        }
    }

    fn key(&mut self, name: &str) -> String {
        let key = format!("{}{name}", self.prefix);
        self.keys.insert(key.clone());
        key
    }

    /// Finds or makes the bucket, and marks the prefix.
    async fn enter(&mut self, exam: &Examination<'_>) -> bool {
        let mut found = self.bucket(exam).await;
        let repaired = match &found {
            Err(error) if error.kind == ErrorKind::Rejected => {
                self.repair("bucket", async |desk| desk.bucket(exam).await)
                    .await
            }
            _ => None,
        };
        let refusal = found.as_ref().err().map(ToString::to_string);
        let kind = found.as_ref().err().map(|error| error.kind);
        let setting = repaired.map(|(flag, value, made)| {
            found = Ok(made);
            (flag, value)
        });
        self.created_bucket = found.as_ref().is_ok_and(|made| *made);
        let said = found.map(|made| match made {
            true => format!("`{}` is created for this examination", exam.bucket),
            false => format!("`{}` exists", exam.bucket),
        });
        if !self.say("bucket", "the bucket", said.map_err(|e| e.to_string())) {
            return self.fail(match kind {
                Some(ErrorKind::NotFound) => {
                    "create it, or allow it with --create-bucket (run has the same flag)"
                }
                Some(ErrorKind::Auth) => {
                    "check the credentials, and what they permit; the driver's page in the manual says where they come from"
                }
                _ => "see what the server says; the driver's page in the manual lists what it needs",
            });
        }
        if let Some(setting) = setting {
            self.settle(setting, refusal.unwrap_or_default());
        }
        let body = (exam.marker_body)(self.created_bucket);
        let put = patiently(self.session.put_small(exam.bucket, exam.marker, &body)).await;
        match self.say(
            "put",
            "the right to write",
            words(put, "the marker is written"),
        ) {
            true => true,
            false => self.fail("grant the right to write below the prefix"),
        }
    }

    async fn bucket(&mut self, exam: &Examination<'_>) -> Result<bool, OpError> {
        match exam.create_bucket {
            true => patiently(self.session.ensure_bucket(exam.bucket)).await,
            false => patiently(self.session.head_bucket(exam.bucket))
                .await
                .map(|()| false),
        }
    }

    /// Goes through the settings that may make check `id` work. Goes on with the first that does.
    async fn repair<T, E>(
        &mut self,
        id: &str,
        mut check: impl AsyncFnMut(&mut Self) -> Result<T, E>,
    ) -> Option<(&'static Flag, &'static str, T)> {
        for repair in self.repairs.iter().filter(|repair| repair.check == id) {
            for value in repair.values {
                let Some(driver) = (self.reopen)(repair.flag, value) else {
                    continue;
                };
                let Ok(session) = open(&driver).await else {
                    continue;
                };
                let before = std::mem::replace(&mut self.session, session);
                if let Ok(done) = check(self).await {
                    return Some((repair.flag, value, done));
                }
                self.session = before;
            }
        }
        None
    }

    /// Turns the last finding into one that a setting makes up for.
    fn settle(&mut self, (flag, value): (&'static Flag, &'static str), refusal: String) {
        if let Some(finding) = self.findings.last_mut() {
            finding.state = State::Differs;
            finding.found = refusal;
            finding.remedy = format!("{} {value}, or the dialect", flag.name);
            finding.refuses.clear();
            finding.setting = Some((flag.long(), value.to_owned()));
        }
    }

    async fn execute(&mut self, request: &Request<'_>) -> Result<Completion, OpError> {
        let mut probe = Probe::new(now_ns);
        let done = patiently(self.session.execute(request, &mut probe)).await;
        let connection = self.session.route().connection;
        match self.last {
            Some(before) if before == connection => self.kept += 1,
            Some(_) => self.closed += 1,
            None => {}
        }
        self.last = done.is_ok().then_some(connection);
        done
    }

    /// Performs `op` on `key`, with the content of version `op.version`.
    async fn perform(&mut self, op: Op, key: &str, source: &str) -> Result<Completion, OpError> {
        if op.class.creates_object() {
            self.keys.insert(key.to_owned());
        }
        let bucket = self.bucket.clone();
        // A second reference to the same bytes, because the session is borrowed while they are sent.
        let arena = Rc::clone(&self.arena);
        let size = if op.size == Op::UNKNOWN_SIZE {
            SIZE
        } else {
            op.size
        };
        let content: Content<'_> = arena.content(0, 1, op.version, size);
        let mut request = Request::new(&op, &bucket, key);
        request.source = source;
        if op.class.writes_body() || op.class.reads_body() {
            request.content = Some(content);
        }
        request.verify = op.class.reads_body();
        self.execute(&request).await
    }

    /// Whether the driver offers `class`; a line of the report says so if it does not.
    fn offers(&mut self, class: OpClass, id: &'static str, asked: &'static str) -> bool {
        let offers = self.offered.contains(&class);
        if !offers {
            let found = "the driver does not offer it";
            self.findings
                .push(Finding::new(id, asked, State::NotTried, found));
        }
        offers
    }

    /// As [`Desk::perform`], as a line of the report; `words` describe a success.
    async fn try_out(
        &mut self,
        id: &'static str,
        asked: &'static str,
        op: Op,
        (key, source): (&str, &str),
        words: impl FnOnce(Completion) -> Found,
    ) -> bool {
        if !self.offers(op.class, id, asked) {
            return false;
        }
        let class = op.class;
        let done = self.perform(op, key, source).await;
        let ok = self.say(id, asked, done.map_err(|e| e.to_string()).and_then(words));
        self.advise(&format!("leave {class} out of the mix"), &[class]);
        ok
    }

    /// Whether `key` holds the content of `version`, in words.
    async fn holds(&mut self, key: &str, version: u32, size: u64) -> Found {
        let op = Op {
            size,
            version,
            ..Op::new(OpClass::Get)
        };
        let done = self.perform(op, key, "").await;
        done.map_err(|e| e.to_string())
            .and_then(|done| sized(done.bytes, size))
    }

    async fn room(&mut self) {
        let bucket = self.bucket.clone();
        let finding = match patiently(self.session.room(&bucket)).await {
            Ok(left) => room(left.as_ref()),
            Err(error) => Finding {
                found: error.to_string(),
                ..room(None)
            },
        };
        self.findings.push(finding);
    }

    /// Removes everything below the prefix, the marker last. Returns what could not be removed.
    async fn clean_up(&mut self, exam: &Examination<'_>) -> Vec<String> {
        let mut known = std::mem::take(&mut self.keys);
        let listed = patiently(self.session.list_keys(exam.bucket, exam.prefix, None)).await;
        known.extend(listed.map(|page| page.keys).unwrap_or_default());
        known.remove(exam.marker);
        let known: Vec<String> = known.into_iter().collect();
        let mut left = Vec::new();
        let mut note = |what: &str, done: Result<(), OpError>| {
            left.extend(
                done.err()
                    .map(|error| format!("{what} below {}: {error}", exam.prefix)),
            );
        };
        note(
            "objects",
            patiently(self.session.delete_keys(exam.bucket, &known)).await,
        );
        // Afterwards, because the parts of an object may be objects of their own until it is gone.
        let aborted = patiently(self.session.abort_uploads(exam.bucket, exam.prefix)).await;
        note("unfinished uploads", aborted.map(drop));
        if left.is_empty() {
            let marker = [exam.marker.to_owned()];
            let deleted = patiently(self.session.delete_keys(exam.bucket, &marker)).await;
            left.extend(
                deleted
                    .err()
                    .map(|error| format!("the marker {}: {error}", exam.marker)),
            );
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

/// A number of bytes as a success, unless it is another than `wanted`.
fn sized(bytes: u64, wanted: u64) -> Found {
    match bytes == wanted {
        true => Ok(format!("{bytes} bytes")),
        false => Err(format!("{bytes} bytes instead of {wanted}")),
    }
}
