//! Replay of a recorded trace (docs/spec/traces.md sections 4 and 5).
//!
//! The records themselves are not in the plan: they come from a [`crate::trace::TraceSource`]. The plan says
//! which trace to replay, when its requests are due and how absent keys are handled.

use serde::{Deserialize, Serialize};

use crate::generate::LawError;
use crate::op::OpClass;
use crate::payload::PayloadKind;
use crate::plan::{
    KeyLaw, KeyNaming, KeysetPlan, Limits, MixEntry, Model, PhaseKind, PhasePlan, SizeAssign,
};
use crate::plan::{Plan, RetryPlan, SizeLaw, WorkPlan};
use crate::trace::TraceOp;

/// A trace and how it is replayed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplayPlan {
    /// Identity of the trace as replayed: a hash over the records and over everything that selects, scales or
    /// loops them.
    pub trace: String,
    /// Which of the trace's two lists to replay.
    pub part: ReplayPart,
    /// When requests are due.
    pub timing: ReplayTiming,
    /// How late requests are handled.
    pub late: LatePolicy,
    /// Whether a request waits for the latest mutating request on the same key.
    pub per_key: bool,
    /// How absent objects are handled.
    pub on_absent: OnAbsent,
    /// Maximum number of requests in flight, over all agents; reaching it marks the run semi-open.
    pub max_in_flight: u32,
    /// Key prefix of each bucket of the trace, below the key set's prefix, indexed by bucket id; ids beyond
    /// the list have none. Each prefix ends with a slash or is empty.
    pub buckets: Vec<String>,
}

impl Model for ReplayPlan {
    fn max_sessions(&self) -> u32 {
        self.max_in_flight
    }

    fn open_cap(&self) -> Option<u32> {
        (self.timing != ReplayTiming::Asap).then_some(self.max_in_flight)
    }

    fn ends_by_itself(&self) -> bool {
        true
    }

    fn has_indexed_names(&self) -> bool {
        false
    }

    fn fingerprint(
        &self,
        _: &Plan,
        _: (usize, usize),
        put: &mut dyn FnMut(u64),
    ) -> Result<(), LawError> {
        // The trace's identity represents its requests.
        self.trace.bytes().for_each(|byte| put(u64::from(byte)));
        put(self.timing.speed().unwrap_or(0.0).to_bits());
        Ok(())
    }
}

/// Which list of a trace is replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReplayPart {
    /// The objects that must exist before the first request, written as fast as possible.
    Preload,
    /// The requests.
    Requests,
}

/// When requests are due (docs/spec/traces.md section 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum ReplayTiming {
    /// At their recorded instants, replayed `speed` times as fast.
    Original {
        /// Divisor of recorded times; 1 = as recorded.
        speed: f64,
    },
    /// At their recorded instants, scaled to another mean rate.
    Rate {
        /// Wanted mean rate, requests per second.
        ops_per_s: f64,
        /// Mean rate of the trace, requests per second.
        recorded_ops_per_s: f64,
    },
    /// Like `Original`, but never faster than these limits. The resulting delay counts as shaping and moves
    /// the due instant.
    Capped {
        /// Divisor of recorded times.
        speed: f64,
        /// Maximum requests per second; 0 = no limit.
        ops_per_s: f64,
        /// Maximum object bytes per second; 0 = no limit.
        bytes_per_s: f64,
    },
    /// In order, as fast as the store answers, with as many requests in flight as the plan allows: a closed
    /// loop.
    Asap,
}

impl ReplayTiming {
    /// The divisor of recorded times; `None` if they do not matter.
    #[must_use]
    pub fn speed(&self) -> Option<f64> {
        match *self {
            Self::Original { speed } | Self::Capped { speed, .. } => Some(speed),
            Self::Rate {
                ops_per_s,
                recorded_ops_per_s,
            } => Some(ops_per_s / recorded_ops_per_s),
            Self::Asap => None,
        }
    }
}

/// How late requests are handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum LatePolicy {
    /// Send them at once; their latency counts from the due instant.
    Issue,
    /// Shed them if they are later than this.
    Drop {
        /// Largest lateness, nanoseconds.
        after_ns: u64,
    },
}

/// How absent objects are handled (docs/spec/traces.md section 5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnAbsent {
    /// All required objects were created beforehand: an absent object is a failure.
    Preload,
    /// Nothing was created: a 404 is a success if the trace recorded a 404, and only then.
    Expect,
    /// Do not issue requests on keys known to be absent.
    Skip,
    /// End the run at the first object that is absent contrary to the trace.
    Fail,
}

/// Operation classes that a traced operation can become.
const fn classes(op: TraceOp) -> &'static [OpClass] {
    match op {
        TraceOp::Get => &[OpClass::Get, OpClass::RangeGet],
        TraceOp::Head => &[OpClass::Head],
        TraceOp::Put => &[OpClass::Put, OpClass::MultipartPut],
        TraceOp::Delete => &[OpClass::Delete],
        TraceOp::List => &[OpClass::List],
        TraceOp::Copy => &[OpClass::Copy],
        TraceOp::MultiDelete => &[OpClass::DeleteMany],
        TraceOp::MpuComplete => &[OpClass::MultipartPut],
        TraceOp::MpuAbort => &[OpClass::MultipartAbort],
        TraceOp::MpuInit | TraceOp::MpuPart | TraceOp::Other => &[],
    }
}

/// The mix of a replay's work: every class that the operations `ops` can become, listed once.
#[must_use]
pub fn mix(ops: &[TraceOp]) -> Vec<MixEntry> {
    let mut mix: Vec<MixEntry> = Vec::new();
    for &class in ops.iter().flat_map(|&op| classes(op)) {
        if mix.iter().all(|entry| entry.class != class) {
            mix.push(MixEntry::new(class, 0, KeyLaw::Fresh));
        }
    }
    mix
}

/// Input of [`plan`].
#[derive(Clone, Debug, PartialEq)]
pub struct ReplayRequest {
    /// Name of the workload in results.
    pub name: String,
    /// The replay of the requests; the preload follows from it.
    pub replay: ReplayPlan,
    /// The operations that occur in the trace.
    pub ops: Vec<TraceOp>,
    /// Whether to create objects before the requests.
    pub preload: bool,
    /// Workers of the preload.
    pub preload_workers: u32,
    /// Time limit of the requests, nanoseconds; 0 = to the end of the trace.
    pub duration_ns: u64,
    /// Longest duration of one attempt, nanoseconds.
    pub timeout_ns: u64,
    /// Whether to leave the objects in the store.
    pub keep: bool,
    /// Content of objects.
    pub payload: PayloadKind,
    /// Seed of the content.
    pub seed: u64,
}

/// Builds the plan of a replay: init, preload (if wanted), the requests, clean-up (unless objects are kept).
/// Its one key set, below `t/`, owns every name under that prefix.
#[must_use]
pub fn plan(request: &ReplayRequest) -> Plan {
    let phase = |name: &str, kind: PhaseKind, works: Vec<WorkPlan>, duration_ns: u64| {
        let limits = Limits {
            duration_ns,
            drain_ns: request.timeout_ns,
            ..Limits::default()
        };
        PhasePlan::new(name, kind, works, limits)
    };
    let work = |name: &str, replay: ReplayPlan, ops: &[TraceOp]| WorkPlan {
        name: name.to_owned(),
        model: replay.into(),
        mix: mix(ops),
    };
    let mut phases = vec![phase("init", PhaseKind::Init, Vec::new(), 0)];
    if request.preload {
        let preload = ReplayPlan {
            part: ReplayPart::Preload,
            timing: ReplayTiming::Asap,
            late: LatePolicy::Issue,
            per_key: false,
            on_absent: OnAbsent::Preload,
            max_in_flight: request.preload_workers,
            ..request.replay.clone()
        };
        let works = vec![work("preload", preload, &[TraceOp::Put])];
        phases.push(phase("preload", PhaseKind::Prepare, works, 0));
    }
    let works = vec![work("replay", request.replay.clone(), &request.ops)];
    phases.push(phase("replay", PhaseKind::Run, works, request.duration_ns));
    if !request.keep {
        phases.push(phase("cleanup", PhaseKind::Cleanup, Vec::new(), 0));
    }
    Plan {
        workload: request.name.clone(),
        profile: String::new(),
        compat: String::new(),
        seed: request.seed,
        scale: 1.0,
        size_scale: 1.0,
        payload: request.payload,
        verify: false,
        timeout_ns: request.timeout_ns,
        retry: RetryPlan::NONE,
        not_found_is_failure: true,
        keysets: vec![KeysetPlan {
            name: "trace".to_owned(),
            prefix: "t/".to_owned(),
            shards: 1,
            count: 0,
            size: SizeLaw::constant(0),
            assign: SizeAssign::Random,
            overwritten: true,
            naming: KeyNaming::Index,
            existing: false,
            buckets: None,
        }],
        phases,
    }
}
