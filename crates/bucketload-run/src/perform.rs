//! The one path on which an operation is executed and recorded, for every workload model.

use std::cell::Cell;
use std::convert::identity;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};

use bucketload_core::driver::{AnySession, Completion};
use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::op::{KeySource, OpClass, Request, VersionId, Watch};
use bucketload_core::record::{OpRecord, Outcome, Probe};

use crate::buckets::not_made;
use crate::clock::now_ns;
use crate::due::{DueOp, OpEnd};
use crate::integrity_trailer::TrailerWatch;
use crate::named_objects::expected;
use crate::names::Names;
use crate::oracle::AnswerContext;
use crate::readback;
use crate::shard::Shard;
use crate::slots::Cut;
use crate::source::content;
use crate::version_table::Version;

/// The version of an operation.
#[derive(Default)]
pub(crate) struct CurrentVersion {
    /// The identifier of the version that the operation names or writes.
    id: Rc<Cell<VersionId>>,
    /// The version that the operation names, if the run knows one.
    chosen: Option<Version>,
}

impl CurrentVersion {
    /// The operations' version is kept in `id`.
    pub(crate) const fn kept_in(id: Rc<Cell<VersionId>>) -> Self {
        Self { id, chosen: None }
    }
}

/// One worker: a session and the buffers its requests borrow from.
pub(crate) struct Worker {
    pub(crate) session: AnySession,
    /// Index among all workers of the agent.
    pub(crate) id: u32,
    /// Its slot on the load thread.
    pub(crate) slot: usize,
    /// Index of its work within the phase.
    pub(crate) work: u16,
    pub(crate) probe: Probe,
    /// Names of the current operation.
    pub(crate) names: Names,
    /// Set in runs that know versions.
    pub(crate) version: Option<Box<CurrentVersion>>,
    /// Sees what the worker's operations receive, where somebody looks at it.
    pub(crate) watch: Option<Rc<dyn Watch>>,
    /// Set for works whose objects end with checksums.
    pub(crate) trailing: Option<Box<TrailerWatch>>,
}

impl Worker {
    /// A worker whose keys have at most `key_len` bytes.
    pub(crate) fn new(
        session: AnySession,
        id: u32,
        slot: usize,
        work: u16,
        key_len: usize,
    ) -> Self {
        Self {
            session,
            id,
            slot,
            work,
            probe: Probe::new(now_ns),
            names: Names::with_capacity(key_len),
            version: None,
            watch: None,
            trailing: None,
        }
    }
}

/// Polls `execute` until it ends or slot `slot` is cut. A cut becomes the failure it stands for. Calls `on_wait`
/// each time `execute` has to wait.
///
/// Takes the future by reference: by value it would be copied per operation and stored twice in the worker's state.
/// A cut is not a variant of its own, so the output stays where it was written: the processor stalls on bytes that
/// are moved right after they were written.
pub(crate) struct UntilCut<'a, F, W> {
    pub(crate) shard: &'a Shard,
    pub(crate) slot: usize,
    pub(crate) execute: Pin<&'a mut F>,
    pub(crate) on_wait: &'a W,
}

impl<F, W> Future for UntilCut<'_, F, W>
where
    F: Future<Output = Result<Completion, OpError>>,
    W: Fn(),
{
    type Output = F::Output;

    // Inlined so the output is not moved, as above.
    #[inline(always)]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let mut polled = this.execute.as_mut().poll(cx);
        if polled.is_pending() {
            (this.on_wait)();
            this.shard.recorder.count_meanwhile();
            if let Some(cut) = this.shard.slots.cut(this.slot) {
                polled = Poll::Ready(Err(failure(this.shard, cut)));
            }
        }
        polled
    }
}

/// The failure of an operation on one version of an object that has none the run knows: all were removed.
#[cold]
fn no_version() -> OpError {
    OpError::new(
        ErrorKind::NotFound,
        "the run knows no version of this object; nothing was sent",
    )
}

/// The failure that `cut` stands for.
#[cold]
fn failure(shard: &Shard, cut: Cut) -> OpError {
    match cut {
        Cut::Cancel => OpError::new(ErrorKind::Cancelled, "the phase ended before the answer"),
        Cut::Timeout => {
            let limit_ms = shard.shared.plan.timeout_ns / 1_000_000;
            let detail = format!("no complete answer within {limit_ms} ms");
            OpError::new(ErrorKind::Timeout, detail)
        }
    }
}

/// Performs `due_op` with all attempts that the plan's retry policy allows, and records it. Calls `on_pending` each
/// time the session has to wait and other tasks of the thread may run. With an oracle, `due_op` takes on the content
/// version and size that the oracle assigns.
#[expect(
    clippy::manual_async_fn,
    reason = "an async fn stores its arguments twice"
)]
pub(crate) fn perform<'p>(
    shard: &'p Shard,
    worker: &'p mut Worker,
    due_op: &'p mut DueOp,
    on_pending: impl Fn() + 'p,
) -> impl Future<Output = OpEnd> + 'p {
    async move {
        let versions = shard.shared.versions.as_deref();
        if let (Some(table), Some(version)) = (versions, &mut worker.version)
            && due_op.op.class.by_version()
        {
            version.chosen = table.choose(&mut due_op.op, &version.id);
        }
        let ticket = shard.shared.oracle.as_ref().and_then(|oracle| {
            let place = (shard.shared.phase, worker.work);
            let delimiter = shard.source(worker.work).delimiter(&due_op.op);
            oracle.begin(&mut due_op.op, place, delimiter, due_op.taken_ns)
        });
        let (batch, named, workload_bucket, judging, request);
        // Scoped so the future does not store the request's inputs. The request is written in place: the processor
        // stalls on copies of what was just written in smaller pieces.
        {
            let shared = &*shard.shared;
            let (plan, source, op) = (&*shared.plan, shard.source(worker.work), &due_op.op);
            named = source.named();
            source.render(op, &mut worker.names);
            workload_bucket = shared
                .workload_buckets
                .as_ref()
                .and_then(|all| all.find(op));
            if let Some((set, number)) = workload_bucket {
                let (key, more) = worker.names.parts_mut();
                set.render(number, &mut more.bucket);
                if op.class.on_bucket() {
                    // The log and the list of slowest requests name the bucket instead of a key.
                    key.clear();
                    key.push_str(&more.bucket);
                }
            }

            batch = source.batch(op);
            let trails = named.is_some_and(|work| work.ops.has_trailer(op.entry));
            let by_version = op.class.by_version() && versions.is_some();
            let compares = plan.verify && source.compares;
            let wanted = compares || trails || op.class.writes_body() || by_version;
            let mut known = wanted.then(|| content(&shared.arena, op)).flatten();
            if trails && let (Some(trailing), Some(content)) = (&mut worker.trailing, &known) {
                trailing.prepare(content);
            }
            let trailing = worker.trailing.as_deref().filter(|_| trails);
            if let Some(trailing) = trailing {
                known = known.map(|content| trailing.append(content));
            }
            judging = trailing.filter(|_| op.class == OpClass::Get);
            // The oracle leaves the bytes of a version to the session, which knows what they have to be.
            let judged = compares || by_version && ticket.is_some();
            let verify = judged && op.class.reads_body() && known.is_some();
            let watch = match (&ticket, judging) {
                (Some(ticket), _) if !by_version => Some(&**ticket as &dyn Watch),
                (_, Some(judging)) => Some(judging as &dyn Watch),
                (_, None) => worker.watch.as_deref(),
            };
            request = Request {
                op,
                bucket: match workload_bucket.is_some() || named.is_some() {
                    true => worker.names.bucket(),
                    false => &shared.bucket,
                },
                key: worker.names.key(),
                source: worker.names.source(),
                delimiter: source.delimiter(op),
                keys: match &batch {
                    Some(batch) => Some(batch as &dyn KeySource),
                    None => source.listed(op, &worker.names),
                },
                content: known.filter(|_| verify || op.class.writes_body()),
                verify,
                watch,
                version: match versions {
                    Some(table) => by_version || op.class.writes_body() && table.tracks(op),
                    None => op.class == OpClass::PutIfMatch,
                }
                .then_some(worker.version.as_deref())
                .flatten()
                .map(|version| &*version.id),
            };
        }
        let waited = Cell::new(false);
        let on_wait = || {
            waited.set(true);
            on_pending();
        };
        let mut begun_ns = due_op.taken_ns;
        let mut attempts = 1;
        let mut absent = false;
        shard.slots.begin(worker.slot, due_op.due_ns);
        let (outcome, done_ns, now, bytes) = 'attempts: loop {
            worker.probe.reset();
            if let Some(judging) = judging {
                judging.restart();
            }
            // The oracle's findings name the request, however fast its answer came.
            worker.probe.want_ids_from(match &ticket {
                Some(_) => 0,
                None => due_op.due_ns.saturating_add(shard.recorder.kept_from_ns()),
            });
            let timeout_ns = begun_ns.saturating_add(shard.shared.plan.timeout_ns);
            shard.slots.arm(worker.slot, timeout_ns);
            let admitted =
                workload_bucket.is_none_or(|(set, number)| set.admits(request.op.class, number));
            let chosen = || worker.version.as_ref().and_then(|version| version.chosen);
            let nameless =
                request.version.is_some() && request.op.class.by_version() && chosen().is_none();
            if request.op.class.writes_body()
                && request.op.class != OpClass::PutIfMatch
                && let Some(version) = request.version
            {
                version.set(VersionId::default());
            }
            let attempt = if nameless {
                Err(no_version())
            } else if admitted {
                let execute = pin!(worker.session.execute(&request, &mut worker.probe));
                let (slot, on_wait) = (worker.slot, &on_wait);
                UntilCut {
                    shard,
                    slot,
                    execute,
                    on_wait,
                }
                .await
            } else {
                Err(not_made(request.bucket))
            };
            let (connects, times) = worker.probe.connects();
            if connects > 0 {
                let mut tally = shard.recorder.tally();
                tally.record_connect(times);
                tally.connects += u64::from(connects - 1);
            }
            let error = 'failed: {
                // Moved whole so the future does not store the attempt across the waits below.
                let completion = match identity(attempt) {
                    Ok(completion) => completion,
                    Err(error) => break 'failed error,
                };
                // If the driver forgot `Probe::done`, the end is now rather than too early.
                let done = match worker.probe.done_ns() {
                    0 => now_ns(),
                    done => done,
                };
                if let Some(ticket) = &ticket {
                    ticket.completed(&completion);
                }
                if let (Some(judging), Some(work)) = (judging, named)
                    && let Some(error) = shard.judged(work, judging.judge(completion.bytes))
                {
                    let now = now_ns();
                    shard.report_failure(request.op.class, request.key, &error, now);
                    break 'attempts (Outcome::Failed(error.kind), done, now, 0);
                }
                if let (Some(table), Some(id)) = (versions, request.version)
                    && request.op.class.writes_body()
                    && id.get() != VersionId::default()
                {
                    table.wrote(request.op, id.get());
                }
                if let Some((set, number)) = workload_bucket {
                    set.done(request.op.class, number);
                }
                if shard.shared.check_writes && readback::applies(&request, &completion) {
                    let (slot, session) = (worker.slot, &mut worker.session);
                    let checked = readback::compare(shard, slot, session, &request, &on_wait);
                    // Boxed to keep the future of workers that check nothing small.
                    let outcome = Box::pin(checked).await;
                    let bytes = match outcome {
                        Outcome::Ok => completion.bytes,
                        Outcome::Failed(_) => 0,
                    };
                    break 'attempts (outcome, done, now_ns(), bytes);
                }
                break 'attempts (Outcome::Ok, done, done, completion.bytes);
            };
            // Only after failures: a success ends in the same turn of the thread, and its deadline with it.
            shard.slots.disarm(worker.slot);
            let now = now_ns();
            if error.kind == ErrorKind::Cancelled
                && shard.slots.cut(worker.slot) == Some(Cut::Cancel)
            {
                break (Outcome::Failed(ErrorKind::Cancelled), now, now, 0);
            }
            if let Some(ticket) = &ticket {
                ticket.failed(error.kind);
            }
            absent = error.kind == ErrorKind::NotFound;
            let ends_work =
                named.is_some() && expected(request.op, error.kind, shard.shared.share.of);
            if absent && due_op.absent_expected || ends_work {
                let done = match worker.probe.done_ns() {
                    0 => now,
                    done => done,
                };
                break (Outcome::Ok, done, now, 0);
            }
            let plan = &shard.shared.plan;
            let counted = error.kind != ErrorKind::NotFound || plan.not_found_is_failure;
            if counted && error.kind != ErrorKind::Cancelled {
                shard.report_failure(request.op.class, request.key, &error, now);
            }
            if error.kind.is_retryable() && attempts < plan.retry.max_attempts {
                let backoff = backoff_ns(plan.retry, attempts);
                // Boxed to keep the futures of workers small: retries are rare.
                if Box::pin(pause(shard, worker.slot, backoff, &on_wait)).await {
                    let now = now_ns();
                    break (Outcome::Failed(ErrorKind::Cancelled), now, now, 0);
                }
                attempts += 1;
                begun_ns = now_ns();
                continue;
            }
            let done = match (error.kind, worker.probe.done_ns()) {
                // Censored at the timeout, not at the instant of the sweep that noticed it.
                (ErrorKind::Timeout, _) => now.min(begun_ns.saturating_add(plan.timeout_ns)),
                (_, 0) => now,
                (_, done) => done,
            };
            break (Outcome::Failed(error.kind), done, now, 0);
        };
        let route = worker.session.route();
        let (outcome, bytes) = match &ticket {
            None => (outcome, bytes),
            Some(ticket) => {
                let context = AnswerContext {
                    key: request.key,
                    phase: shard.shared.phase,
                    audit: false,
                    remembered: versions
                        .zip(worker.version.as_ref().and_then(|version| version.chosen))
                        .is_some_and(|(table, version)| table.remembers(request.op, version)),
                    attempt_ns: begun_ns,
                    done_ns,
                    request_id: worker.probe.ids().map_or("", |ids| ids.request_id.as_str()),
                    endpoint: route.endpoint,
                };
                shard.judge(ticket, request.op, (outcome, bytes), context)
            }
        };
        let probe = &worker.probe;
        let (_, connect) = probe.connects();
        let started_ns = match probe.started_ns() {
            // No request left the client: the operation starts with its last attempt.
            0 => begun_ns,
            started => started,
        };
        // In this order, an interval that ends now still counts the operation as in flight.
        shard.tick(now);
        shard.slots.end(worker.slot);
        // Written in place; the record stays there until it is counted.
        let mut list = shard.recorder.ended();
        let record = list.next();
        *record = OpRecord {
            work: worker.work,
            class: due_op.op.class,
            worker: worker.id,
            endpoint: route.endpoint,
            due_ns: due_op.due_ns,
            taken_ns: due_op.taken_ns,
            dispatch_ns: due_op.dispatch_ns,
            blocked_ns: due_op.blocked_ns,
            started_ns,
            held_ns: (begun_ns - due_op.taken_ns) + connect.total_ns(),
            connect,
            sent_ns: match probe.sent_ns() {
                0 => probe.started_ns(),
                sent => sent,
            },
            first_byte_ns: probe.first_byte_ns(),
            done_ns,
            bytes,
            outcome,
            attempts,
        };
        shard.account(record, now);
        if let Some(rows) = &shard.rows {
            rows.record(record, due_op.op.entry);
        }
        shard.recorder.keep(record, &request, route, probe);
        drop(list);
        OpEnd {
            outcome,
            absent,
            started_ns,
            done_ns,
            bytes,
            now_ns: now,
            waited: waited.get(),
        }
    }
}

/// The pause before retry number `retry` (from 1), nanoseconds: doubles each time, up to a bound.
fn backoff_ns(plan: bucketload_core::plan::RetryPlan, retry: u32) -> u64 {
    let factor = 1u64.checked_shl(retry - 1).unwrap_or(u64::MAX);
    plan.backoff_ns
        .saturating_mul(factor)
        .min(plan.max_backoff_ns)
}

/// Waits `ns` nanoseconds. Returns `true` if the operation was cancelled meanwhile.
async fn pause(shard: &Shard, slot: usize, ns: u64, on_wait: &impl Fn()) -> bool {
    let mut sleep = pin!(tokio::time::sleep(std::time::Duration::from_nanos(ns)));
    poll_fn(|cx| {
        if shard.slots.cut(slot) == Some(Cut::Cancel) {
            return Poll::Ready(true);
        }
        if sleep.as_mut().poll(cx).is_ready() {
            return Poll::Ready(false);
        }
        on_wait();
        Poll::Pending
    })
    .await
}

#[cfg(test)]
mod tests {
    use bucketload_core::plan::RetryPlan;

    use super::backoff_ns;

    #[test]
    fn pauses_double_up_to_the_bound() {
        let plan = RetryPlan {
            max_attempts: 200,
            backoff_ns: 10,
            max_backoff_ns: 65,
        };
        let pauses: Vec<_> = [1, 2, 3, 4, 100].map(|n| backoff_ns(plan, n)).to_vec();
        assert_eq!(pauses, [10, 20, 40, 65, 65]);
    }
}
