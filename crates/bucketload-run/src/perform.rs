//! The one path on which an operation is executed and recorded, for every workload model.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};

use bucketload_core::driver::{AnySession, Completion};
use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::op::{KeySource, Op, OpClass, Request, Watch};
use bucketload_core::record::{OpRecord, Outcome, Probe};

use crate::buckets::not_made;
use crate::clock::now_ns;
use crate::integrity_trailer::TrailerWatch;
use crate::named_objects::expected;
use crate::names::Names;
use crate::oracle::Place;
use crate::readback;
use crate::shard::Shard;
use crate::slots::Cut;
use crate::source::content;

/// One worker: a session and the buffers that its requests borrow from.
pub(crate) struct Worker {
    pub(crate) session: AnySession,
    /// Index of the worker among all of the agent.
    pub(crate) id: u32,
    /// Its slot on the load thread.
    pub(crate) slot: usize,
    pub(crate) probe: Probe,
    /// Names of the operation it performs.
    pub(crate) names: Names,
    /// Sees what the worker's operations receive.
    pub(crate) watch: Option<Rc<dyn Watch>>,
    /// For works whose objects end with checksums.
    pub(crate) trailing: Option<Box<TrailerWatch>>,
}

impl Worker {
    /// A worker whose keys have at most `key_len` bytes.
    pub(crate) fn new(session: AnySession, id: u32, slot: usize, key_len: usize) -> Self {
        Self {
            session,
            id,
            slot,
            probe: Probe::new(now_ns),
            names: Names::with_capacity(key_len),
            watch: None,
            trailing: None,
        }
    }
}

/// An operation that a worker has taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    /// Index of the work within the phase.
    pub(crate) work: u16,
    pub(crate) op: Op,
    pub(crate) due_ns: u64,
    pub(crate) taken_ns: u64,
    pub(crate) dispatch_ns: u64,
    pub(crate) blocked_ns: u64,
    /// Whether an absent object is the answer that is expected.
    pub(crate) absent_expected: bool,
}

/// How a worker comes back from an operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Performed {
    /// Whether it ever waited, so that other tasks of the thread could run.
    pub(crate) waited: bool,
    /// Current time, nanoseconds since the epoch.
    pub(crate) now_ns: u64,
    pub(crate) outcome: Outcome,
    /// Whether the object was absent.
    pub(crate) absent: bool,
    /// End of the operation, nanoseconds since the epoch.
    pub(crate) done_ns: u64,
    /// Object bytes transferred.
    pub(crate) bytes: u64,
}

/// Carries out `execute` until it ends or slot `slot` is cut: then the output is the failure that the cut is.
/// `on_wait` is called each time it has to wait. Takes the future by reference: by value it would be copied per
/// operation, and be in the worker's state twice. That a cut has no form of its own keeps the output where it came:
/// the processor waits for bytes that are moved to another place just after they were written.
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

    // In place, for the same reason.
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

/// The failure that `cut` is.
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

/// Performs `taken` with all attempts that the plan's retry policy allows and records it. What the oracle
/// says about the operation's content replaces what the plan knew, in `taken`.
/// `on_pending` is called each time the session has to wait: then other tasks of the thread run.
#[expect(
    clippy::manual_async_fn,
    reason = "an async fn has room for its arguments twice"
)]
pub(crate) fn perform<'p>(
    shard: &'p Shard,
    worker: &'p mut Worker,
    taken: &'p mut Taken,
    on_pending: impl Fn() + 'p,
) -> impl Future<Output = Performed> + 'p {
    async move {
        let ticket = shard.shared.oracle.as_ref().and_then(|oracle| {
            let place = (shard.shared.phase as u16, taken.work);
            let delimiter = shard.source(taken.work).delimiter(&taken.op);
            oracle.begin(&mut taken.op, place, delimiter, taken.taken_ns)
        });
        let (batch, own_names, own, judging, request);
        // A block, so that the future has no room for what only the request is made of. What it makes is written
        // where it stays: a copy of what was just written in smaller pieces makes the processor wait.
        {
            let shared = &*shard.shared;
            let (plan, source, op) = (&*shared.plan, shard.source(taken.work), &taken.op);
            own_names = source.named();
            source.render(op, &mut worker.names);
            own = shared.own.as_ref().and_then(|own| own.find(op));
            if let Some((set, number)) = own {
                let (key, more) = worker.names.parts_mut();
                set.render(number, &mut more.bucket);
                if op.class.on_bucket() {
                    // Records name what they are about.
                    key.clear();
                    key.push_str(&more.bucket);
                }
            }

            batch = source.batch(op);
            let trails = own_names.is_some_and(|named| named.ops.has_trailer(op.entry));
            let wanted = plan.verify || trails || op.class.writes_body();
            let mut known = wanted.then(|| content(&shared.arena, op)).flatten();
            if trails && let (Some(trailing), Some(content)) = (&mut worker.trailing, &known) {
                trailing.prepare(content);
            }
            let trailing = worker.trailing.as_deref().filter(|_| trails);
            if let Some(trailing) = trailing {
                known = known.map(|content| trailing.append(content));
            }
            judging = trailing.filter(|_| op.class == OpClass::Get);
            let verify = plan.verify && op.class.reads_body() && known.is_some();
            let watch = match (&ticket, judging) {
                (Some(ticket), _) => Some(&**ticket as &dyn Watch),
                (None, Some(judging)) => Some(judging as &dyn Watch),
                (None, None) => worker.watch.as_deref(),
            };
            request = Request {
                op,
                bucket: match own.is_some() || own_names.is_some() {
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
            };
        }
        let waited = Cell::new(false);
        let on_wait = || {
            waited.set(true);
            on_pending();
        };
        let mut begun_ns = taken.taken_ns;
        let mut attempts = 1;
        let mut absent = false;
        shard.slots.begin(worker.slot, taken.due_ns);
        let (outcome, done_ns, now, bytes) = 'attempts: loop {
            worker.probe.reset();
            if let Some(judging) = judging {
                judging.restart();
            }
            // A finding of the oracle names the request, however fast it was answered.
            worker.probe.want_ids_from(match &ticket {
                Some(_) => 0,
                None => taken.due_ns.saturating_add(shard.recorder.kept_from_ns()),
            });
            let timeout_ns = begun_ns.saturating_add(shard.shared.plan.timeout_ns);
            shard.slots.arm(worker.slot, timeout_ns);
            let admitted = own.is_none_or(|(set, number)| set.admits(request.op.class, number));
            let attempt = if admitted {
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
            // By a call, which leaves nothing of the attempt that the future would have room for.
            // And nothing of its end is left while anything is awaited.
            let error = 'failed: {
                let completion = match ended(shard, worker.slot, attempt) {
                    Ended::Well(completion) => completion,
                    Ended::Cancelled => {
                        let now = now_ns();
                        break 'attempts (Outcome::Failed(ErrorKind::Cancelled), now, now, 0);
                    }
                    Ended::Badly(error) => break 'failed error,
                };
                // A driver that forgets the last mark still gets an end that is not too early.
                let done = match worker.probe.done_ns() {
                    0 => now_ns(),
                    done => done,
                };
                if let Some(ticket) = &ticket {
                    ticket.completed(&completion);
                }
                if let (Some(judging), Some(work)) = (judging, own_names)
                    && let Some(error) = shard.judged(work, judging.judge(completion.bytes))
                {
                    let now = now_ns();
                    shard.report_failure(request.op.class, request.key, &error, now);
                    break 'attempts (Outcome::Failed(error.kind), done, now, 0);
                }
                if let Some((set, number)) = own {
                    set.done(request.op.class, number);
                }
                if shard.shared.check_writes && readback::applies(&request, &completion) {
                    let (slot, session) = (worker.slot, &mut worker.session);
                    let checked = readback::compare(shard, slot, session, &request, &on_wait);
                    // Boxed: workers that check nothing have no room for it.
                    let outcome = Box::pin(checked).await;
                    let bytes = match outcome {
                        Outcome::Ok => completion.bytes,
                        Outcome::Failed(_) => 0,
                    };
                    break 'attempts (outcome, done, now_ns(), bytes);
                }
                break 'attempts (Outcome::Ok, done, done, completion.bytes);
            };
            // An operation that has succeeded ends in this turn of the thread, with its deadline.
            shard.slots.disarm(worker.slot);
            if let Some(ticket) = &ticket {
                ticket.failed(error.kind);
            }
            let now = now_ns();
            absent = error.kind == ErrorKind::NotFound;
            let ends_work =
                own_names.is_some() && expected(request.op, error.kind, shard.shared.share.of);
            if absent && taken.absent_expected || ends_work {
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
                // Censored at the timeout, not at the instant the sweep came by.
                (ErrorKind::Timeout, _) => now.min(begun_ns.saturating_add(plan.timeout_ns)),
                (_, 0) => now,
                (_, done) => done,
            };
            break (Outcome::Failed(error.kind), done, now, 0);
        };
        let went = worker.session.place();
        let (outcome, bytes) = match &ticket {
            None => (outcome, bytes),
            Some(ticket) => {
                let place = Place {
                    key: request.key,
                    phase: shard.shared.phase as u16,
                    audit: false,
                    attempt_ns: begun_ns,
                    done_ns,
                    request_id: worker.probe.ids().map_or("", |ids| ids.request_id.as_str()),
                    endpoint: went.endpoint,
                };
                shard.judge(ticket, request.op, (outcome, bytes), place)
            }
        };
        let probe = &worker.probe;
        let (_, connect) = probe.connects();
        let started_ns = match probe.started_ns() {
            // Nothing left: its start is the instant at which the last attempt was made.
            0 => begun_ns,
            started => started,
        };
        // In this order an interval that ends now counts the operation as in flight, not as ended.
        shard.tick(now);
        shard.slots.end(worker.slot);
        // Written where it stays until it is counted.
        let mut list = shard.recorder.ended();
        let record = list.next();
        *record = OpRecord {
            seq: taken.op.seq,
            work: taken.work,
            class: taken.op.class,
            worker: worker.id,
            endpoint: went.endpoint,
            due_ns: taken.due_ns,
            taken_ns: taken.taken_ns,
            dispatch_ns: taken.dispatch_ns,
            blocked_ns: taken.blocked_ns,
            started_ns,
            held_ns: (begun_ns - taken.taken_ns) + connect.total_ns(),
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
            rows.record(record, taken.op.entry);
        }
        shard.recorder.keep(record, &request, went, probe);
        drop(list);
        Performed {
            waited: waited.get(),
            now_ns: now,
            outcome,
            absent,
            done_ns,
            bytes,
        }
    }
}

/// How an attempt ended.
enum Ended {
    Well(Completion),
    Badly(OpError),
    Cancelled,
}

/// What `attempt` of the worker in `slot` came to.
#[inline]
fn ended(shard: &Shard, slot: usize, attempt: Result<Completion, OpError>) -> Ended {
    match attempt {
        Ok(completion) => Ended::Well(completion),
        Err(error) => {
            let cancelled = shard.slots.cut(slot) == Some(Cut::Cancel);
            match cancelled && error.kind == ErrorKind::Cancelled {
                true => Ended::Cancelled,
                false => Ended::Badly(error),
            }
        }
    }
}

/// The pause before retry number `retry` (from 1): doubling, bounded.
fn backoff_ns(plan: bucketload_core::plan::RetryPlan, retry: u32) -> u64 {
    let factor = 1u64.checked_shl(retry - 1).unwrap_or(u64::MAX);
    plan.backoff_ns
        .saturating_mul(factor)
        .min(plan.max_backoff_ns)
}

/// Waits `ns`; returns `true` when the operation was cancelled meanwhile.
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
