//! A whole run: the plan's phases in order, one after the other.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use bucketload_core::driver::AnyDriver;
use bucketload_core::generate::rng::mix64;
use bucketload_core::payload::Arena;
use bucketload_core::plan::{PhaseKind, Plan};
use bucketload_core::sink::{Event, PhaseEnd, RunSink};
use tokio::task::LocalSet;

use crate::affinity;
use crate::buckets::{self, WorkloadBuckets};
use crate::check::{
    check_capabilities, check_divisible, check_existing, check_generators, check_plan,
    check_refused, most_sessions,
};
use crate::cleanup::{CleanupReport, Discard, clean};
use crate::clock::now_ns;
use crate::collect::PhaseTotals;
use crate::conditional;
use crate::error::RunError;
use crate::files;
use crate::leftover;
use crate::machine::Machine;
use crate::named_objects;
use crate::options::{PhaseEdge, RemotePhase, RunOptions};
use crate::oracle::{Audit, Oracle, audit, audit_versions};
use crate::ownership::{Claim, check_data, claim, preflight};
use crate::phase::{PhaseSummary, RunContext, run_phase};
use crate::prepared::{self, Prepared};
use crate::ranks::History;
use crate::readback;
use crate::stop::{StopHandle, StopLevel};
use crate::uploads::{abort_kept, may_leave_uploads};
use crate::version_table::VersionTable;

/// The result of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunEnd {
    /// The phases that took place, in order.
    pub phases: Vec<PhaseSummary>,
    /// How urgently the run was asked to end early, if at all.
    pub stopped: StopLevel,
    /// Whether the run created the bucket.
    pub created_bucket: bool,
    /// What the clean-up did, if there was one.
    pub cleanup: Option<CleanupReport>,
    /// What the kept data set lacks, in words; `None` if it is complete or there is none.
    pub incomplete: Option<String>,
    /// Objects of the kept data set that were read and found as they were prepared.
    pub checked: u64,
    /// Core of each load thread, where pinned.
    pub cores: Vec<Option<usize>>,
}

/// Carries out `plan`, or the phases of it that the options select, against `driver` and reports its course to `sink`.
///
/// The calling thread becomes the collector; it must not be a thread of an async runtime. Load threads exist only while
/// a phase with works runs. A run that is asked to finish early, or whose data cannot be prepared, still cleans up. An
/// aborted run does not. [`RunOptions::left`] says what an aborted run, or a failed clean-up, has left behind.
///
/// # Errors
/// When the options or the plan cannot be carried out, the target is not usable, or a load thread
/// cannot start or panics. Failed operations are no error, nor is a failed clean-up.
pub fn run(
    driver: &AnyDriver,
    plan: &Plan,
    options: &RunOptions,
    sink: &mut dyn RunSink,
    stop: &StopHandle,
) -> Result<RunEnd, RunError> {
    run_calibrated(driver, plan, options, sink, stop, &mut |_| Ok(()))
}

/// As [`run`], and calls `calibrate` before the first phase with load: once the target has accepted the first requests,
/// so that a target which refuses them says so at once.
///
/// # Errors
/// As [`run`], and the error of `calibrate`, after which the run only cleans up.
pub fn run_calibrated(
    driver: &AnyDriver,
    plan: &Plan,
    options: &RunOptions,
    sink: &mut dyn RunSink,
    stop: &StopHandle,
    calibrate: &mut dyn FnMut(&mut dyn RunSink) -> Result<(), RunError>,
) -> Result<RunEnd, RunError> {
    options.check()?;
    check_plan(plan, options)?;
    let (capabilities, name) = (driver.capabilities(), driver.facts().driver);
    check_capabilities(plan, &capabilities, &name)?;
    check_refused(plan, options)?;
    check_existing(plan, options)?;
    buckets::check(plan, options, &name)?;
    readback::check(plan, options, (&capabilities, &name))?;
    check_generators(plan, options)?;
    prepared::check(plan, options, (&capabilities, &name))?;
    let layout = affinity::layout(options)?;
    let mut context = RunContext::new(plan, options, stop, layout);
    if plan.has_oracle() {
        context.judge()?;
    }
    context.versions = VersionTable::new(plan, options)?.map(Arc::new);
    let control = Control::new()?;
    let mut end = RunEnd {
        phases: Vec::new(),
        stopped: StopLevel::Run,
        created_bucket: false,
        cleanup: None,
        incomplete: None,
        checked: 0,
        cores: context.layout.clone(),
    };
    if options.remote.is_some() {
        check_divisible(plan)?;
    } else if let Some(message) = files::allow(most_sessions(plan, options)) {
        sink.event(&Event::Warning { message });
    }
    let chosen = || {
        let phases = plan.phases.iter().enumerate();
        phases.filter(|(index, _)| options.includes(*index))
    };
    let has_load = chosen().any(|(_, p)| !p.works.is_empty());
    if has_load && plan.is_named() {
        control.unless_aborted(stop, named_objects::check(driver, plan, options))?;
    } else if has_load && !chosen().any(|(_, p)| p.kind == PhaseKind::Init) {
        control.unless_aborted(stop, preflight(driver, plan, options))?;
    }
    if options.data.is_some() {
        control.unless_aborted(stop, check_data(driver, plan, options))?;
    }
    let mut data_set = match &options.data_set {
        Some(set) => {
            let mut say = |message| sink.event(&Event::Warning { message });
            let opened = Prepared::open(driver, plan, options, set, &mut say);
            control.unless_aborted(stop, opened)?
        }
        None => None,
    };
    let mut unchecked = options.data_set.as_ref().map_or(0, |set| set.check);
    let mut claimed: Option<Claim> = None;
    let mut failed: Option<RunError> = None;
    let mut audited_keys = Audit::default();
    let mut calibrate = Some(calibrate);
    for (index, phase) in chosen() {
        let level = stop.level();
        let ending = level >= StopLevel::Finish || failed.is_some();
        if level == StopLevel::Abort || (ending && phase.kind != PhaseKind::Cleanup) {
            continue;
        }
        if let Some(set) = &mut data_set {
            if phase.kind == PhaseKind::Prepare {
                match set.begin(&mut context, index) {
                    Ok(true) => {}
                    Ok(false) => continue,
                    Err(error) => {
                        failed = Some(error);
                        continue;
                    }
                }
            }
            if phase.kind == PhaseKind::Run && unchecked > 0 {
                let checked = set.check(driver, &context, std::mem::take(&mut unchecked));
                match control.unless_aborted(stop, checked) {
                    Ok(checked) => end.checked = checked.unwrap_or(0),
                    Err(error) => {
                        failed = Some(error);
                        continue;
                    }
                }
            }
        }
        let loads = matches!(phase.kind, PhaseKind::Prepare | PhaseKind::Run);
        if let Some(calibrate) = calibrate.take_if(|_| loads) {
            if let Err(error) = calibrate(sink) {
                failed.get_or_insert(error);
            }
            if failed.is_some() || stop.level() >= StopLevel::Finish {
                continue;
            }
        }
        if let Err(error) = edge(options, PhaseEdge::Begin(index)) {
            failed.get_or_insert(error);
            // What the hook may have begun ends with the run.
            continue;
        }
        let outcome = match phase.kind {
            PhaseKind::Prepare | PhaseKind::Run => match &options.remote {
                Some(remote) => {
                    let phase = RemotePhase {
                        index,
                        generation: context.generation,
                        filling: context.filling.as_deref(),
                    };
                    remote.borrow_mut().run_phase(phase, options, sink, stop)
                }
                None => prepared(phase.kind, options)
                    .and_then(|()| run_phase(driver, &mut context, index, sink)),
            },
            PhaseKind::Init => control.phase(index, sink, stop, async {
                let claim = claim(driver, plan, options).await?;
                end.created_bucket = claim.created_bucket;
                claimed = Some(claim);
                if let Some(set) = &mut data_set {
                    set.note(options).await?;
                    context.generation = set.generation();
                }
                Ok(PhaseEnd::Complete)
            }),
            PhaseKind::Audit => {
                let findings = RefCell::default();
                let audited = RefCell::new(Audit::default());
                let outcome = control.phase(index, sink, stop, async {
                    if let Some(oracle) = &context.oracle {
                        let phase = u16::try_from(index).unwrap_or(u16::MAX);
                        let plan = &context.plan;
                        let mut done =
                            audit(driver, plan, options, oracle, phase, stop, &findings).await?;
                        if let Some(versions) = &context.versions {
                            audit_versions(
                                driver,
                                (plan, options),
                                (oracle, versions),
                                phase,
                                stop,
                                &findings,
                                &mut done,
                            )
                            .await?;
                        }
                        audited.replace(done);
                    }
                    Ok(PhaseEnd::Complete)
                });
                for finding in findings.into_inner() {
                    sink.event(&Event::Finding(Box::new(finding)));
                }
                audited_keys = audited.into_inner();
                outcome
            }
            PhaseKind::Pause => control.phase(index, sink, stop, async {
                pause(Duration::from_nanos(phase.limits.duration_ns), stop).await;
                Ok(PhaseEnd::Complete)
            }),
            PhaseKind::Cleanup => {
                let (mut report, mut failure) = (CleanupReport::default(), None);
                let outcome = control.phase(index, sink, stop, async {
                    let cleaned = clean(
                        driver,
                        plan,
                        options,
                        claimed.as_ref(),
                        context.workload_buckets.as_deref(),
                        stop,
                        &mut report,
                    )
                    .await;
                    failure = cleaned.err();
                    let aborted = !report.complete && stop.level() == StopLevel::Abort;
                    Ok(if aborted || failure.is_some() {
                        PhaseEnd::Aborted
                    } else {
                        PhaseEnd::Complete
                    })
                });
                // A failed clean-up does not invalidate the measurement; it is reported separately.
                let ended = stop.level() == StopLevel::Abort || failure.is_some();
                if ended || report.left.is_some() {
                    leftover::report(options, &mut report, failure.as_ref());
                }
                end.cleanup = Some(report);
                outcome
            }
        };
        if let Err(error) = edge(options, PhaseEdge::End(index)) {
            failed.get_or_insert(error);
        }
        if let Some(set) = &mut data_set
            && let Err(error) = set.phase_ended(&mut context)
        {
            failed.get_or_insert(error);
        }
        if phase.kind == PhaseKind::Init && outcome.is_ok() && failed.is_none() {
            let asked = conditional::check(driver, plan, options, &context.arena);
            // The marker of ownership is there by now, which the clean-up removes.
            failed = control.unless_aborted(stop, asked).err();
        }
        match outcome {
            Ok(summary) => end.phases.push(summary),
            Err(error) if phase.kind == PhaseKind::Init => return Err(error),
            Err(error) => {
                failed.get_or_insert(error);
            }
        }
    }
    if let Some(set) = &mut data_set {
        if let Some(message) = set.end() {
            sink.event(&Event::Warning { message });
        }
        if unchecked > 0 && failed.is_none() && stop.level() == StopLevel::Run {
            match control.unless_aborted(stop, set.check(driver, &context, unchecked)) {
                Ok(checked) => end.checked = checked.unwrap_or(0),
                Err(error) => failed = Some(error),
            }
        }
        end.incomplete = set.incomplete();
        options.incomplete.replace(end.incomplete.clone());
    }
    if let Err(error) = edge(options, PhaseEdge::RunEnd) {
        failed.get_or_insert(error);
    }
    if let Some(oracle) = &context.oracle {
        sink.event(&Event::Oracle(oracle.summary(audited_keys)));
    }
    for message in abort_cut_uploads(driver, plan, options, &end, stop) {
        sink.event(&Event::Warning { message });
    }
    for message in end.cleanup.iter().flat_map(|c| c.warnings.clone()) {
        sink.event(&Event::Warning { message });
    }
    end.stopped = stop.level();
    let cleans = chosen().any(|(_, p)| p.kind == PhaseKind::Cleanup);
    let init = |s: &PhaseSummary| plan.phases[usize::from(s.phase)].kind == PhaseKind::Init;
    let began = end.phases.iter().any(init);
    let left = match &end.cleanup {
        Some(report) => report.left.clone(),
        None if end.stopped == StopLevel::Abort && cleans && began => options.aborted(),
        None => None,
    };
    *options.left.borrow_mut() = left;
    if let Some(error) = failed {
        return Err(error);
    }
    if end.stopped > StopLevel::Run && plan.is_named() {
        let message =
            "the run ended early; what it made under the names of the workload is still there";
        sink.event(&Event::Warning {
            message: message.to_owned(),
        });
    }
    Ok(end)
}

/// Aborts the uploads that an early end has cut, if no clean-up does. Returns what the user should know.
fn abort_cut_uploads(
    driver: &AnyDriver,
    plan: &Plan,
    options: &RunOptions,
    end: &RunEnd,
    stop: &StopHandle,
) -> Vec<String> {
    let mut works = plan.phases.iter().flat_map(|phase| &phase.works);
    let cut = stop.level() == StopLevel::Finish && works.any(|work| work.model.is_cut_short());
    if !cut || end.cleanup.is_some() || !may_leave_uploads(plan, &driver.facts()) {
        return Vec::new();
    }
    let aborted = async {
        let aborted = abort_kept(driver, plan, options).await;
        // What was measured does not depend on it.
        Ok(aborted.unwrap_or_else(|e| vec![format!("unfinished uploads may be left: {e}")]))
    };
    let control = Control::new().and_then(|control| control.unless_aborted(stop, aborted));
    control.ok().flatten().unwrap_or_default()
}

/// Calls the caller's hook at the edge of a phase.
fn edge(options: &RunOptions, edge: PhaseEdge) -> Result<(), RunError> {
    match &options.at_edges {
        Some(hook) => hook.borrow_mut()(edge).map_err(RunError::Before),
        None => Ok(()),
    }
}

/// Calls the caller's hook before a measured phase.
pub(crate) fn prepared(kind: PhaseKind, options: &RunOptions) -> Result<(), RunError> {
    match &options.before_measuring {
        Some(hook) if kind == PhaseKind::Run => hook.borrow_mut()().map_err(RunError::Before),
        _ => Ok(()),
    }
}

impl RunContext<'_> {
    /// Adds the consistency oracle. Objects then carry a generation that is derived from the run's identifier, so
    /// content that another run left under the same keys is recognised.
    fn judge(&mut self) -> Result<(), RunError> {
        let (plan, options) = (&*self.plan, self.options);
        if options.share.of > 1 {
            let text =
                "the consistency oracle must see every write, so it works with one agent only";
            return Err(RunError::Options(text.to_owned()));
        }
        let mut works = plan.phases.iter().flat_map(|phase| &phase.works);
        if let Some(work) = works.find(|work| !work.model.has_any_mix()) {
            return Err(RunError::Options(format!(
                "the consistency oracle judges closed and open loops; work `{}` is neither",
                work.name
            )));
        }
        let run = options
            .run_id
            .bytes()
            .fold(plan.seed, |hash, byte| mix64(hash ^ u64::from(byte)));
        let arena = Arena::new(plan.payload, plan.seed).with_generation(run as u32 | 1);
        self.arena = Arc::new(arena);
        let arena = Arc::clone(&self.arena);
        let oracle = Oracle::new(plan, options, arena)
            .map_err(|e| RunError::Options(format!("the plan's {e}")))?;
        self.oracle = Some(Arc::new(oracle));
        Ok(())
    }
}

/// Deletes objects of the run under its prefix, so that the same data set can be measured again from a known state.
/// Keeps marker and bucket. Does nothing if `stop` has been asked to abort.
///
/// # Errors
/// When the prefix does not carry this run's marker, or the store refuses.
pub fn discard(
    driver: &AnyDriver,
    plan: &Plan,
    options: &RunOptions,
    what: Discard,
    stop: &StopHandle,
) -> Result<CleanupReport, RunError> {
    options.check()?;
    let body = crate::cleanup::discard(driver, plan, options, what, stop);
    let report = Control::new()?.unless_aborted(stop, body)?;
    Ok(report.unwrap_or_default())
}

impl<'a> RunContext<'a> {
    pub(crate) fn new(
        plan: &Plan,
        options: &'a RunOptions,
        stop: &'a StopHandle,
        layout: Vec<Option<usize>>,
    ) -> Self {
        let budget = options.failures_per_kind;
        Self {
            plan: Arc::new(plan.clone()),
            options,
            stop,
            arena: Arc::new(Arena::new(plan.payload, plan.seed)),
            oracle: None,
            versions: None,
            workload_buckets: WorkloadBuckets::of(plan, &options.run_id).map(Arc::new),
            failures: Arc::new(std::array::from_fn(|_| AtomicU32::new(budget))),
            history: History::new(plan, options.agreement.clone()),
            progress: None,
            filling: None,
            generation: options.generation,
            machine: Machine::new(),
            cpu_base: vec![0; layout.len()],
            layout,
        }
    }
}

/// The runtime of the control plane. It runs between phases with load, never at the same time.
struct Control(tokio::runtime::Runtime);

impl Control {
    fn new() -> Result<Self, RunError> {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map(Self)
            .map_err(RunError::Thread)
    }

    /// Runs `body`; gives up and returns `None` when the user aborts the run.
    fn unless_aborted<T>(
        &self,
        stop: &StopHandle,
        body: impl Future<Output = Result<T, RunError>>,
    ) -> Result<Option<T>, RunError> {
        LocalSet::new().block_on(&self.0, async {
            tokio::select! {
                outcome = body => outcome.map(Some),
                () = aborted(stop) => Ok(None),
            }
        })
    }

    /// Runs a phase that consists of `body`.
    fn phase(
        &self,
        index: usize,
        sink: &mut dyn RunSink,
        stop: &StopHandle,
        body: impl Future<Output = Result<PhaseEnd, RunError>>,
    ) -> Result<PhaseSummary, RunError> {
        let phase = u16::try_from(index).unwrap_or(u16::MAX);
        let start_ns = now_ns();
        sink.event(&Event::PhaseStarted {
            phase,
            at_ns: start_ns,
        });
        let outcome = self
            .unless_aborted(stop, body)
            .map(|end| end.unwrap_or(PhaseEnd::Aborted));
        let now = now_ns();
        let end = *outcome.as_ref().unwrap_or(&PhaseEnd::Aborted);
        sink.event(&Event::PhaseEnded {
            phase,
            at_ns: now,
            end,
            drained_ns: now,
        });
        outcome.map(|end| PhaseSummary {
            phase,
            start_ns,
            at_ns: now,
            drained_ns: now,
            end,
            totals: PhaseTotals::default(),
        })
    }
}

/// Waits for `length`, or until the user asks to stop.
async fn pause(length: Duration, stop: &StopHandle) {
    let end = tokio::time::Instant::now() + length;
    while stop.level() == StopLevel::Run {
        let left = end.saturating_duration_since(tokio::time::Instant::now());
        if left.is_zero() {
            return;
        }
        tokio::time::sleep(left.min(Duration::from_millis(50))).await;
    }
}

/// Returns once the user has asked twice to stop.
async fn aborted(stop: &StopHandle) {
    while stop.level() < StopLevel::Abort {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
