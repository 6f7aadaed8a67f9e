//! The audit: after the load, reads every tracked key once more, untimed, and compares it with the acknowledged writes.
//!
//! A key that lacks an acknowledged write is read again after pauses of 0.1, 0.4 and 1.6 s. If the write turns up, the
//! earlier read was stale; if not, the write is lost.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use bucketload_core::driver::{AnyDriver, AnySession};
use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::op::{Op, OpClass, Request, Watch};
use bucketload_core::oracle::{Finding, FindingKind};
use bucketload_core::plan::Plan;
use bucketload_core::probe::AnswerId;
use bucketload_core::record::{Outcome, Probe};
use tokio::task::JoinSet;

use super::judge::WrongAnswer;
use super::{AnswerContext, KeyId, Oracle};
use crate::clock::now_ns;
use crate::error::RunError;
use crate::options::RunOptions;
use crate::ownership::{open_control, timed};
use crate::stop::{StopHandle, StopLevel};

/// Most reads under way at the same time.
pub(super) const PARALLEL: usize = 16;
/// Pauses before suspicious keys are read again, milliseconds.
const PAUSES_MS: [u64; 3] = [100, 400, 1600];
/// Most attempts of each read.
pub(super) const ATTEMPTS: u32 = 5;

/// Result of auditing one key.
enum Audited {
    Right,
    /// Wrong.
    Wrong(WrongAnswer, AnswerFacts),
    /// Could not be read or judged, and why.
    Unclear(String),
}

/// What the audit did.
#[derive(Debug, Default)]
pub(crate) struct Audit {
    /// Keys that were read.
    pub(crate) audited: u64,
    /// Numbers of keys that could not be read or judged, by reason: a kind of failure, or words.
    pub(crate) unclear: BTreeMap<String, u64>,
}

impl Audit {
    pub(super) fn add_unclear(&mut self, why: &str, keys: u64) {
        if keys > 0 {
            *self.unclear.entry(why.to_owned()).or_default() += keys;
        }
    }
}

/// Why a key is not judged whose history is unknown.
const GIVEN_UP: &str =
    "whose history is unclear (many writes of unknown outcome, copies, or removed versions)";
/// Why a key is not read after the run was aborted.
pub(super) const ABORTED: &str = "not reached before the run was aborted";

/// Facts about a wrong answer, owned until it is reported.
struct AnswerFacts {
    key: String,
    start_ns: u64,
    end_ns: u64,
    request_id: AnswerId,
    endpoint: u16,
}

/// State that the readers of one round share.
struct Round {
    oracle: Arc<Oracle>,
    plan: Arc<Plan>,
    bucket: String,
    stop: StopHandle,
    queue: RefCell<VecDeque<KeyId>>,
    audit: RefCell<Audit>,
    wrong: RefCell<Vec<(KeyId, WrongAnswer, AnswerFacts)>>,
}

/// Audits all tracked keys.
pub(crate) async fn audit(
    driver: &AnyDriver,
    plan: &Arc<Plan>,
    options: &RunOptions,
    oracle: &Arc<Oracle>,
    phase: u16,
    stop: &StopHandle,
    findings: &RefCell<Vec<Finding>>,
) -> Result<Audit, RunError> {
    let mut ids = oracle.ids();
    let mut audit = Audit::default();
    for round in 0..=PAUSES_MS.len() {
        let last = round == PAUSES_MS.len();
        let state = Rc::new(Round {
            oracle: Arc::clone(oracle),
            plan: Arc::clone(plan),
            bucket: options.bucket.clone(),
            stop: stop.clone(),
            queue: RefCell::new(std::mem::take(&mut ids).into()),
            audit: RefCell::default(),
            wrong: RefCell::default(),
        });
        state.run(driver).await?;
        let done = state.audit.take();
        if round == 0 {
            audit.audited = done.audited;
        }
        for (why, keys) in &done.unclear {
            audit.add_unclear(why, *keys);
        }
        audit.add_unclear(ABORTED, state.queue.borrow().len() as u64);
        for (id, mut wrong, answer) in state.wrong.take() {
            let late = wrong.kind == FindingKind::Stale;
            if late && !last {
                ids.push(id);
                continue;
            }
            if late {
                wrong.kind = FindingKind::Lost;
            }
            let context = AnswerContext {
                key: &answer.key,
                phase,
                audit: true,
                remembered: false,
                attempt_ns: answer.start_ns,
                done_ns: answer.end_ns,
                request_id: answer.request_id.as_str(),
                endpoint: answer.endpoint,
            };
            let on_finding = &mut |finding| findings.borrow_mut().push(finding);
            oracle.report(
                id,
                &read_of(id),
                wrong,
                answer.start_ns,
                context,
                on_finding,
            );
        }
        if ids.is_empty() || stop.level() == StopLevel::Abort {
            break;
        }
        tokio::time::sleep(Duration::from_millis(PAUSES_MS[round])).await;
    }
    Ok(audit)
}

/// The operation that reads a key.
fn read_of((keyset, key): KeyId) -> Op {
    Op {
        keyset,
        key,
        ..Op::new(OpClass::Get)
    }
}

impl Oracle {
    /// All tracked keys, in order.
    fn ids(&self) -> Vec<KeyId> {
        let mut ids = Vec::new();
        for shard in &self.shards {
            let shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            let tracked = shard.keys().filter(|id| self.is_tracked(**id));
            ids.extend(tracked);
        }
        ids.sort_unstable();
        ids
    }
}

impl Round {
    /// Reads all keys of the queue.
    async fn run(self: &Rc<Self>, driver: &AnyDriver) -> Result<(), RunError> {
        let mut readers = JoinSet::new();
        let readers_wanted = PARALLEL.min(self.queue.borrow().len());
        for _ in 0..readers_wanted {
            let mut session = open_control(driver, &self.plan)
                .await
                .map_err(RunError::Unreachable)?;
            let round = Rc::clone(self);
            readers.spawn_local(async move {
                loop {
                    let next = round.queue.borrow_mut().pop_front();
                    let Some(id) = next else { break };
                    if round.stop.level() == StopLevel::Abort {
                        break;
                    }
                    round.note(id, round.read(&mut session, id).await);
                }
            });
        }
        while let Some(ended) = readers.join_next().await {
            if let Err(error) = ended
                && error.is_panic()
            {
                std::panic::resume_unwind(error.into_panic());
            }
        }
        Ok(())
    }

    fn note(&self, id: KeyId, audited: Audited) {
        let mut audit = self.audit.borrow_mut();
        match audited {
            Audited::Unclear(why) => audit.add_unclear(&why, 1),
            Audited::Right => audit.audited += 1,
            Audited::Wrong(wrong, answer) => {
                audit.audited += 1;
                self.wrong.borrow_mut().push((id, wrong, answer));
            }
        }
    }

    async fn read(&self, session: &mut AnySession, id: KeyId) -> Audited {
        let mut key = String::new();
        self.oracle.names[usize::from(id.0)].render(id.1, &mut key);
        let mut probe = Probe::new(now_ns);
        let mut why = String::new();
        for attempt in 1..=ATTEMPTS {
            let op = read_of(id);
            let start_ns = now_ns();
            let Some(ticket) = self.oracle.begin_audit(&op, start_ns) else {
                return Audited::Unclear(GIVEN_UP.to_owned());
            };
            let mut request = Request::new(&op, &self.bucket, &key);
            request.watch = Some(&*ticket as &dyn Watch);
            probe.reset();
            probe.want_ids_from(0);
            let read = timed(self.plan.timeout_ns, session.execute(&request, &mut probe)).await;
            let outcome = match read {
                Ok(completion) => {
                    ticket.completed(&completion);
                    Outcome::Ok
                }
                Err(OpError { kind, .. }) => {
                    ticket.failed(kind);
                    Outcome::Failed(kind)
                }
            };
            let answer = ticket.answer(outcome);
            let judged = answer.map(|answer| self.oracle.judge(id, answer, None, ticket.mark()));
            self.oracle.with(id, |register| register.end_read());
            match judged {
                Some(None) => return Audited::Right,
                Some(Some(wrong)) => {
                    let end_ns = now_ns();
                    return Audited::Wrong(
                        wrong,
                        AnswerFacts {
                            key,
                            start_ns,
                            end_ns,
                            request_id: probe
                                .ids()
                                .map_or_else(AnswerId::default, |ids| ids.request_id),
                            endpoint: session.route().endpoint,
                        },
                    );
                }
                None if outcome == Outcome::Failed(ErrorKind::Auth) => {
                    why = ErrorKind::Auth.to_string();
                    break;
                }
                None => {
                    why = match outcome {
                        Outcome::Failed(kind) => kind.to_string(),
                        _ => "without a readable answer".to_owned(),
                    };
                    tokio::time::sleep(Duration::from_millis(20 << attempt)).await;
                }
            }
        }
        Audited::Unclear(why)
    }
}
