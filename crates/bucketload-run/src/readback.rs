//! Reads objects back right after their writes were acknowledged, in runs that ask for it.
//!
//! Some stores acknowledge a write and serve something else for a while: HDFS serves a file that was just closed as
//! empty, and a weakly consistent store serves the previous object. Such a write is a failure, however fast it was. The
//! reading back is not part of the operation's time, but it keeps the worker busy: a closed loop gets slower, and an
//! open loop may need more workers.

use std::pin::pin;

use bucketload_core::driver::{AnySession, Capabilities, Completion};
use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::op::{Op, OpClass, Request};
use bucketload_core::plan::{PhaseKind, Plan, WorkPlan};
use bucketload_core::record::{Outcome, Probe};

use crate::clock::now_ns;
use crate::error::RunError;
use crate::options::RunOptions;
use crate::perform::UntilCut;
use crate::shard::Shard;
use crate::slots::Cut;

/// Whether `class` writes a whole object whose bytes are known.
const fn writes_object(class: OpClass) -> bool {
    matches!(
        class,
        OpClass::Put | OpClass::PutIfAbsent | OpClass::PutIfMatch | OpClass::MultipartPut
    )
}

/// Whether `class` changes or removes the bytes of an object in another way.
const fn changes_object(class: OpClass) -> bool {
    matches!(
        class,
        OpClass::Append
            | OpClass::RangePut
            | OpClass::Touch
            | OpClass::Delete
            | OpClass::DeleteMany
            | OpClass::Copy
            | OpClass::Rename
            | OpClass::MultipartCopy
    )
}

/// Whether the operation wrote an object that can be read back.
pub(crate) fn applies(request: &Request<'_>, completion: &Completion) -> bool {
    let class = request.op.class;
    // A conditional write that found an object wrote nothing.
    let conditional = matches!(class, OpClass::PutIfAbsent | OpClass::PutIfMatch);
    let wrote = !conditional || completion.items > 0;
    writes_object(class) && wrote && request.content.is_some()
}

/// Reads the object of `write` and compares it. Reports a difference as a failure of the write.
pub(crate) async fn compare(
    shard: &Shard,
    slot: usize,
    session: &mut AnySession,
    write: &Request<'_>,
    on_wait: &impl Fn(),
) -> Outcome {
    let op = Op {
        class: OpClass::Get,
        range: None,
        ..*write.op
    };
    let read = Request {
        op: &op,
        source: "",
        delimiter: "",
        keys: None,
        verify: true,
        watch: None,
        ..*write
    };
    let timeout_ns = shard.shared.plan.timeout_ns;
    let mut probe = Probe::new(now_ns);
    shard.slots.arm(slot, now_ns().saturating_add(timeout_ns));
    let execute = pin!(session.execute(&read, &mut probe));
    let until_cut = UntilCut {
        shard,
        slot,
        execute,
        on_wait,
    };
    let attempt = until_cut.await;
    let cut = shard.slots.cut(slot);
    shard.slots.disarm(slot);
    let (kind, what) = match attempt {
        Ok(_) => return Outcome::Ok,
        Err(error) if error.kind == ErrorKind::Cancelled && cut == Some(Cut::Cancel) => {
            return Outcome::Failed(ErrorKind::Cancelled);
        }
        // An acknowledged object that does not exist is as wrong as other bytes.
        Err(error) if error.kind == ErrorKind::NotFound => (ErrorKind::Corrupt, error.to_string()),
        Err(error) => (error.kind, error.to_string()),
    };
    let detail = format!("the write was acknowledged, but reading it back failed: {what}");
    let error = OpError::new(kind, detail);
    shard.report_failure(write.op.class, write.key, &error, now_ns());
    Outcome::Failed(kind)
}

/// Refuses `--check-writes` for objects that somebody else may change before they are read back.
pub(crate) fn check(
    plan: &Plan,
    options: &RunOptions,
    (capabilities, driver): (&Capabilities, &str),
) -> Result<(), RunError> {
    if !options.check_writes {
        return Ok(());
    }
    if !capabilities.verify || !capabilities.classes.contains(&OpClass::Get) {
        return Err(RunError::Unsupported {
            driver: driver.to_owned(),
            what: "reading writes back (--check-writes)".to_owned(),
        });
    }
    let refuse = |text: String| Err(RunError::Options(format!("--check-writes: {text}")));
    if plan.has_oracle() {
        return refuse(
            "the consistency oracle judges every read and reads everything once more at the end; \
             leave one of them out"
                .to_owned(),
        );
    }
    for phase in &plan.phases {
        if phase.works.iter().any(|work| work.model.replay().is_some()) {
            return refuse("a trace may change objects that it has just written".to_owned());
        }
        let entries = || phase.works.iter().flat_map(|work| &work.mix);
        let written = |set: u16| entries().any(|e| writes_object(e.class) && e.keyset == set);
        let of = |set: u16| plan.keysets.get(usize::from(set));
        let sessions = |work: &WorkPlan| u64::from(work.model.max_sessions());
        let alone =
            phase.works.iter().map(sessions).sum::<u64>() * u64::from(options.share.of) <= 1;
        let races =
            |set: u16| phase.kind == PhaseKind::Run && of(set).is_some_and(|s| s.overwritten);
        if !alone && let Some(entry) = entries().find(|e| races(e.keyset) && written(e.keyset)) {
            return refuse(format!(
                "phase `{}` overwrites the objects of key set `{}` with other content, and another worker \
                 may do so before an object is read back; write fresh keys, use one worker, or let \
                 --oracle judge",
                phase.name,
                of(entry.keyset).map_or("", |set| &set.name)
            ));
        }
        let other = entries().find(|e| changes_object(e.class) && written(e.keyset));
        if let Some(entry) = other {
            return refuse(format!(
                "phase `{}` also performs {} on the objects that it writes, so what is read back may \
                 differ for good reason; move that to a phase or a key set of its own",
                phase.name, entry.class
            ));
        }
    }
    Ok(())
}
