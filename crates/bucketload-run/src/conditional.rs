//! Whether a store obeys the conditions of writes. It is asked before a run that depends on them, because some stores
//! accept a condition and ignore it.

use std::cell::Cell;

use bucketload_core::driver::{AnyDriver, AnySession};
use bucketload_core::error::OpError;
use bucketload_core::op::{Op, OpClass, Request, VersionId};
use bucketload_core::payload::Arena;
use bucketload_core::plan::Plan;
use bucketload_core::record::Probe;

use crate::clock::now_ns;
use crate::error::RunError;
use crate::options::RunOptions;
use crate::ownership::{open_control, timed};

/// An entity tag that no object has.
const WRONG: &[u8] = b"\"00000000000000000000000000000000\"";
/// Size of the objects that are written, bytes.
const SIZE: u64 = 8;

/// Tries the conditions that `plan` uses, on the object that it uses them for, and removes that object again. Does
/// nothing if the plan uses none.
///
/// # Errors
/// When the store refuses the conditions or ignores them.
pub(crate) async fn check(
    driver: &AnyDriver,
    plan: &Plan,
    options: &RunOptions,
    arena: &Arena,
) -> Result<(), RunError> {
    let works = plan.phases.iter().flat_map(|phase| &phase.works);
    let mut entries = works.flat_map(|work| &work.mix);
    let Some(entry) = entries.find(|entry| entry.class == OpClass::PutIfMatch) else {
        return Ok(());
    };
    let set = &plan.keysets[usize::from(entry.keyset)].prefix;
    let key = format!("{}{set}latest", options.prefix);
    let mut session = open_control(driver, plan).await.map_err(refused)?;
    let tried = all(&mut session, &options.bucket, &key, plan.timeout_ns, arena).await;
    let keys = [key];
    let removed = session.delete_keys(&options.bucket, &keys);
    let removed = timed(plan.timeout_ns, removed).await.map_err(refused);
    tried.and(removed.map(drop))
}

async fn all(
    session: &mut AnySession,
    bucket: &str,
    key: &str,
    timeout_ns: u64,
    arena: &Arena,
) -> Result<(), RunError> {
    let op = Op {
        size: SIZE,
        ..Op::new(OpClass::PutIfMatch)
    };
    let current = Cell::new(VersionId::default());
    let none = Cell::new(VersionId::default());
    let wrong = Cell::new(VersionId::new(WRONG).unwrap_or_default());
    for (tag, written, condition) in [
        (&current, true, "If-None-Match: * where there is no object"),
        (&none, false, "If-None-Match: * where there is an object"),
        (&wrong, false, "If-Match with another entity tag"),
        (&current, true, "If-Match with the object's entity tag"),
    ] {
        let request = Request {
            content: Some(arena.content(0, 0, 0, SIZE)),
            version: Some(tag),
            ..Request::new(&op, bucket, key)
        };
        let mut probe = Probe::new(now_ns);
        let execute = session.execute(&request, &mut probe);
        let why = match timed(timeout_ns, execute).await {
            Ok(done) if (done.items > 0) == written => continue,
            Ok(_) if written => format!("it refuses a write with {condition}"),
            Ok(_) => format!("it accepts a write with {condition}, so it ignores the condition"),
            Err(error) => format!("it answers a write with {condition} with: {error}"),
        };
        return Err(not_performed(why));
    }
    Ok(())
}

fn refused(error: OpError) -> RunError {
    not_performed(error.to_string())
}

fn not_performed(why: String) -> RunError {
    RunError::Unconditional { why }
}
