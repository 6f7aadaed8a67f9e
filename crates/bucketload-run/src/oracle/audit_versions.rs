//! The audit of versions: reads every version that the run wrote, still remembers and has not removed. Each has to be
//! there, with exactly its bytes.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bucketload_core::driver::{AnyDriver, AnySession};
use bucketload_core::error::ErrorKind;
use bucketload_core::op::{Op, Request};
use bucketload_core::oracle::Finding;
use bucketload_core::plan::Plan;
use bucketload_core::record::{Outcome, Probe};
use tokio::task::JoinSet;

use super::audit::{ABORTED, ATTEMPTS, Audit, PARALLEL};
use super::judge::WrongAnswer;
use super::{AnswerContext, Oracle};
use crate::clock::now_ns;
use crate::error::RunError;
use crate::options::RunOptions;
use crate::ownership::{open_control, timed};
use crate::source::content;
use crate::stop::{StopHandle, StopLevel};
use crate::version_table::{Version, VersionTable};

/// State that the readers share.
struct Round {
    oracle: Arc<Oracle>,
    plan: Arc<Plan>,
    bucket: String,
    phase: u16,
    stop: StopHandle,
    queue: RefCell<Vec<(Op, Version)>>,
    audit: RefCell<Audit>,
    found: RefCell<Vec<Finding>>,
}

/// Reads the versions in `table`, and adds to `audit` how many.
pub(crate) async fn audit_versions(
    driver: &AnyDriver,
    (plan, options): (&Arc<Plan>, &RunOptions),
    (oracle, table): (&Arc<Oracle>, &VersionTable),
    phase: u16,
    stop: &StopHandle,
    findings: &RefCell<Vec<Finding>>,
    audit: &mut Audit,
) -> Result<(), RunError> {
    let known = table
        .all()
        .filter(|(op, _)| oracle.is_tracked((op.keyset, op.key)));
    let round = Rc::new(Round {
        oracle: Arc::clone(oracle),
        plan: Arc::clone(plan),
        bucket: options.bucket.clone(),
        phase,
        stop: stop.clone(),
        queue: RefCell::new(known.collect()),
        audit: RefCell::default(),
        found: RefCell::default(),
    });
    let mut readers = JoinSet::new();
    let wanted = PARALLEL.min(round.queue.borrow().len());
    for _ in 0..wanted {
        let session = open_control(driver, plan)
            .await
            .map_err(RunError::Unreachable)?;
        readers.spawn_local(Rc::clone(&round).read_all(session));
    }
    while let Some(ended) = readers.join_next().await {
        if let Err(error) = ended
            && error.is_panic()
        {
            std::panic::resume_unwind(error.into_panic());
        }
    }
    let done = round.audit.take();
    audit.audited += done.audited;
    for (why, versions) in &done.unclear {
        audit.add_unclear(why, *versions);
    }
    audit.add_unclear(ABORTED, round.queue.borrow().len() as u64);
    findings.borrow_mut().append(&mut round.found.borrow_mut());
    Ok(())
}

impl Round {
    async fn read_all(self: Rc<Self>, mut session: AnySession) {
        while self.stop.level() != StopLevel::Abort {
            let next = self.queue.borrow_mut().pop();
            let Some((op, version)) = next else { break };
            let read = self.read(&mut session, &op, version).await;
            let mut audit = self.audit.borrow_mut();
            match read {
                Ok(()) => audit.audited += 1,
                Err(kind) => audit.add_unclear(&kind.to_string(), 1),
            }
        }
    }

    /// Reads a version and reports what is wrong with it. Fails with the reason if it cannot be read.
    async fn read(
        &self,
        session: &mut AnySession,
        op: &Op,
        version: Version,
    ) -> Result<(), ErrorKind> {
        let mut key = String::new();
        self.oracle.names[usize::from(op.keyset)].render(op.key, &mut key);
        let id = Cell::new(version.id);
        let mut request = Request::new(op, &self.bucket, &key);
        request.content = content(&self.oracle.arena, op);
        request.verify = true;
        request.version = Some(&id);
        let mut probe = Probe::new(now_ns);
        let mut attempt = 1;
        loop {
            probe.reset();
            probe.want_ids_from(0);
            let start_ns = now_ns();
            let read = timed(self.plan.timeout_ns, session.execute(&request, &mut probe)).await;
            let outcome = match read {
                Ok(_) => return Ok(()),
                Err(error) => Outcome::Failed(error.kind),
            };
            if let Some(wrong) = WrongAnswer::of_version(outcome, op.version, true) {
                let context = AnswerContext {
                    key: &key,
                    phase: self.phase,
                    audit: true,
                    remembered: true,
                    attempt_ns: start_ns,
                    done_ns: now_ns(),
                    request_id: probe.ids().map_or("", |ids| ids.request_id.as_str()),
                    endpoint: session.route().endpoint,
                };
                let on_finding = &mut |finding| self.found.borrow_mut().push(finding);
                let place = (op.keyset, op.key);
                self.oracle
                    .report(place, op, wrong, start_ns, context, on_finding);
                return Ok(());
            }
            let Outcome::Failed(kind) = outcome else {
                return Ok(());
            };
            if kind == ErrorKind::Auth || attempt == ATTEMPTS {
                return Err(kind);
            }
            tokio::time::sleep(Duration::from_millis(20 << attempt)).await;
            attempt += 1;
        }
    }
}
