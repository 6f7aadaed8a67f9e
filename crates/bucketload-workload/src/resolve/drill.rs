//! Drills: from `[drill]` and `[[fault]]` to a [`DrillPlan`], and a phase whose measured window is the baseline.

use bucketload_core::drill::{Direction, DrillPlan, Fault, What};
use bucketload_core::plan::{GapLaw, PhaseKind, Plan};

use super::builder::PlanBuilder;
use super::{Drill, DrillFlags};
use crate::spec::node::{Node, Value};
use crate::spec::{DirectionName, FaultName, FaultSpec, Nanos, Origin, WorkloadSpec};

const SECOND: u64 = 1_000_000_000;
const WARM_NS: u64 = 10 * SECOND;
const STEADY_NS: u64 = 30 * SECOND;
const RECOVER_NS: u64 = 30 * SECOND;
const HOLD_NS: u64 = 10 * SECOND;
const INTERVAL_NS: u64 = SECOND / 10;
const LEAST_INTERVAL_NS: u64 = SECOND / 100;
const LIMIT_NS: u64 = 30 * SECOND;
/// Fewest intervals of a baseline: below, its steadiness cannot be judged.
const BASELINE_INTERVALS: u64 = 20;

/// The fields that every fault takes, and those of one kind.
const COMMON: [&str; 6] = ["name", "what", "at", "for", "every", "times"];

const fn fields(what: FaultName) -> &'static [&'static str] {
    match what {
        FaultName::Latency => &["ramp", "share", "endpoints", "direction", "delay"],
        FaultName::Bandwidth => &["ramp", "share", "endpoints", "direction", "rate"],
        FaultName::SlowOpen | FaultName::SlowClose => &["ramp", "share", "endpoints", "delay"],
        FaultName::Reset => &["ramp", "share", "endpoints", "after-bytes", "after"],
        FaultName::BlackHole => &["ramp", "share", "endpoints"],
        FaultName::HalfOpen => &["ramp", "share", "endpoints", "direction"],
        FaultName::Refused => &["endpoints"],
        FaultName::Slice => &["ramp", "share", "endpoints", "direction", "bytes", "pause"],
        FaultName::Cut => &["ramp", "share", "endpoints", "after-bytes"],
        FaultName::Answer => &[
            "ramp",
            "share",
            "endpoints",
            "status",
            "body",
            "retry-after",
        ],
        FaultName::Hook => &["break", "mend", "check", "limit"],
    }
}

impl PlanBuilder<'_> {
    /// Refuses a workload with faults, which an ordinary run would pass over in silence.
    pub(super) fn refuse_faults(&mut self, spec: &WorkloadSpec) {
        let path = match (&spec.fault, &spec.drill) {
            (Some(_), _) => "fault",
            (None, Some(_)) => "drill",
            (None, None) => return,
        };
        let message = "the workload is a drill, whose faults this command does not make";
        self.error(path, message, "use `bucketload drill`");
    }

    /// The drill of the workload; changes its phase in `plan`. The result is meaningless if a problem was reported.
    pub(super) fn drill(
        &mut self,
        spec: &WorkloadSpec,
        flags: &DrillFlags,
        plan: &mut Plan,
    ) -> Option<Drill> {
        let stages = spec.drill.clone().unwrap_or_default();
        let time = |given: Option<Nanos>, otherwise| given.map_or(otherwise, |t: Nanos| t.0);
        let recover_ns = time(stages.recover, RECOVER_NS);
        let mut drill = DrillPlan {
            warm_ns: time(stages.warm, WARM_NS),
            steady_ns: time(stages.steady, STEADY_NS),
            recover_ns,
            hold_ns: time(stages.hold, HOLD_NS.min(recover_ns / 2)),
            interval_ns: time(stages.interval, INTERVAL_NS),
            deadline_ns: time(stages.deadline, 0),
            faults: Vec::new(),
        };
        if drill.interval_ns < LEAST_INTERVAL_NS {
            self.error(
                "drill.interval",
                "the interval is too short to measure",
                "make it at least 10ms",
            );
        } else if drill.steady_ns < BASELINE_INTERVALS * drill.interval_ns {
            let message = format!("the baseline has fewer than {BASELINE_INTERVALS} intervals");
            self.error(
                "drill.steady",
                message,
                "make `steady` longer or `interval` shorter",
            );
        }
        if drill.hold_ns == 0 || drill.hold_ns > drill.recover_ns {
            let message = "the load ends before anything can count as recovered";
            self.error(
                "drill.hold",
                message,
                "make `recover` longer than `hold`, and both longer than 0s",
            );
        }
        let given = spec.fault.as_deref().unwrap_or_default();
        if given.is_empty() {
            self.error(
                "fault",
                "the drill breaks nothing",
                "add a table [[fault]] with `what` and `for`",
            );
        }
        let nodes = self.fault_nodes();
        let mut places = Vec::new();
        for (fault, node) in given.iter().zip(&nodes) {
            drill.faults.extend(self.fault(fault, node, flags));
            let origin = origin(node, "endpoints");
            places.push(self.errors.source.locate(origin).to_string());
        }
        if !flags.hooks.is_empty() && !given.iter().any(|f| f.what == Some(FaultName::Hook)) {
            let remedy = "add [[fault]] with what = \"hook\", or remove --hook";
            self.error(
                "fault",
                "--hook names commands, but no fault is a hook",
                remedy,
            );
        }
        self.fit_phase(plan, &drill);
        Some(Drill {
            plan: drill,
            places,
        })
    }

    fn fault_nodes(&self) -> Vec<Node> {
        match self.root.find("fault").map(|node| &node.value) {
            Some(Value::Array(items)) => items.clone(),
            _ => Vec::new(),
        }
    }

    /// Makes the measured phase as long as the drill, and its window the baseline.
    fn fit_phase(&mut self, plan: &mut Plan, drill: &DrillPlan) {
        let measured = plan
            .phases
            .iter()
            .filter(|phase| phase.kind == PhaseKind::Run)
            .count();
        if measured > 1 {
            let remedy = "keep one phase; its `works` may be several";
            self.error(
                "phases",
                "a drill goes through one phase, and the workload has several",
                remedy,
            );
        }
        let Some(phase) = plan
            .phases
            .iter_mut()
            .find(|phase| phase.kind == PhaseKind::Run)
        else {
            return;
        };
        let path = format!("phases.{}", phase.name);
        let limits = phase.limits;
        if limits.ops > 0 || limits.bytes > 0 {
            let remedy = "remove `ops`, `bytes` and `once`";
            self.error(
                &path,
                "the load could end in the middle of the drill",
                remedy,
            );
        }
        if limits.duration_ns > 0 {
            self.note(format!(
                "phase `{}` lasts as long as the drill, not `duration`",
                phase.name
            ));
        }
        if phase
            .works
            .iter()
            .all(|work| work.model.open_cap().is_none())
        {
            self.note(
                "closed loop: when the store stands still, its workers wait and offer nothing, so the figures of the \
                 drill show less than users would notice; use `rate` instead of `workers`",
            );
        }
        phase.limits.duration_ns = drill.duration_ns();
        phase.stop = None;
        phase.accounting.rampup_ns = drill.warm_ns;
        phase.accounting.measured_ns = drill.steady_ns;
        phase.accounting.baseline = true;
        phase.accounting.max_failed.get_or_insert(1.0);
    }

    fn fault(&mut self, spec: &FaultSpec, node: &Node, flags: &DrillFlags) -> Option<Fault> {
        let Some(what) = spec.what else {
            let remedy = "add what = \"latency\" or another kind";
            self.refuse_fault(node, "what", "the fault does nothing", remedy);
            return None;
        };
        let word: &str = what.into();
        let known = fields(what);
        for entry in node.as_table().into_iter().flat_map(|table| &table.entries) {
            let key = entry.key.as_str();
            if !COMMON.contains(&key) && !known.contains(&key) {
                let message = format!("`{key}` means nothing for {word}");
                let remedy = format!(
                    "its fields are {}",
                    [&COMMON[..], known].concat().join(", ")
                );
                self.errors
                    .push(&entry.at, format!("fault.{key}"), message, remedy);
            }
        }
        let for_ns = spec.r#for.map_or(0, |t| t.0);
        if for_ns == 0 {
            self.refuse_fault(node, "for", "the fault has no end", "add for = \"10s\"");
        }
        let (every_ns, times) = (spec.every.map_or(0, |t| t.0), spec.times.unwrap_or(1));
        if spec.every.is_some() != spec.times.is_some() {
            let remedy = "set both `every` and `times`, or neither";
            self.refuse_fault(
                node,
                "every",
                "it is open how often the fault comes back",
                remedy,
            );
        } else if times == 0 || times > 10_000 {
            self.refuse_fault(node, "times", "a fault comes 1 to 10000 times", "");
        } else if times > 1 && every_ns < for_ns {
            let remedy = "make `every` at least as long as `for`";
            self.refuse_fault(
                node,
                "every",
                "the fault would come back before it has ended",
                remedy,
            );
        }
        let share = spec.share.map_or(1.0, |share| share.0);
        if share == 0.0 {
            self.refuse_fault(
                node,
                "share",
                "a share of 0 strikes nothing",
                "write it such as \"30%\"",
            );
        }
        let direction = match (spec.direction, what) {
            (Some(DirectionName::Both), FaultName::HalfOpen) => {
                let remedy = "write \"up\" or \"down\", or use what = \"black-hole\"";
                self.refuse_fault(
                    node,
                    "direction",
                    "half-open leaves one direction alive",
                    remedy,
                );
                Direction::Both
            }
            (None, FaultName::Latency | FaultName::HalfOpen) | (Some(DirectionName::Down), _) => {
                Direction::Down
            }
            (Some(DirectionName::Up), _) => Direction::Up,
            (None | Some(DirectionName::Both), _) => Direction::Both,
        };
        Some(Fault {
            name: spec.name.clone().unwrap_or_else(|| word.to_owned()),
            what: self.what(what, spec, node, flags)?,
            at_ns: spec.at.map_or(0, |t| t.0),
            for_ns,
            every_ns,
            times,
            ramp_ns: spec.ramp.map_or(0, |t| t.0),
            share,
            direction,
            endpoints: spec.endpoints.clone().unwrap_or_default(),
        })
    }

    fn what(
        &mut self,
        what: FaultName,
        spec: &FaultSpec,
        node: &Node,
        flags: &DrillFlags,
    ) -> Option<What> {
        let delay = |builder: &mut Self| match spec.delay {
            Some(law) if law.0 != GapLaw::None => Some(law.0),
            _ => {
                let remedy = "add delay = \"20ms\" or \"uniform(15ms, 25ms)\"";
                builder.refuse_fault(node, "delay", "the fault delays nothing", remedy);
                None
            }
        };
        Some(match what {
            FaultName::Latency => What::Latency {
                delay: delay(self)?,
            },
            FaultName::SlowOpen => What::SlowOpen {
                delay: delay(self)?,
            },
            FaultName::SlowClose => What::SlowClose {
                delay: delay(self)?,
            },
            FaultName::Bandwidth => {
                let rate = spec.rate.map(|rate| rate.0);
                let bytes_per_s = self.needed(rate, node, "rate", "add rate = \"1MiB/s\"")?;
                What::Bandwidth { bytes_per_s }
            }
            FaultName::Reset => What::Reset {
                after_bytes: spec.after_bytes.map_or(0, |b| b.0),
                after_ns: spec.after.map_or(0, |t| t.0),
            },
            FaultName::BlackHole | FaultName::HalfOpen => What::BlackHole,
            FaultName::Refused => What::Refused,
            FaultName::Slice => {
                let bytes = spec.bytes.map(|b| b.0).filter(|b| *b > 0);
                let bytes = self.needed(bytes, node, "bytes", "add bytes = 100")?;
                What::Slice {
                    bytes,
                    pause_ns: spec.pause.map_or(0, |t| t.0),
                }
            }
            FaultName::Cut => {
                let bytes = spec.after_bytes.map(|b| b.0).filter(|b| *b > 0);
                let after_bytes =
                    self.needed(bytes, node, "after-bytes", "add after-bytes = \"64KiB\"")?;
                What::Cut { after_bytes }
            }
            FaultName::Answer => {
                let status = spec.status.filter(|status| (400..=599).contains(status));
                let status = self.needed(
                    status,
                    node,
                    "status",
                    "add status = 503; it may be 400 to 599",
                )?;
                // At most 599.
                let status = status as u16;
                What::Answer {
                    status,
                    body: spec.body.clone().unwrap_or_else(|| body_of(status)),
                    retry_after: spec.retry_after.unwrap_or(0),
                }
            }
            FaultName::Hook => return self.hook(spec, node, flags),
        })
    }

    fn hook(&mut self, spec: &FaultSpec, node: &Node, flags: &DrillFlags) -> Option<What> {
        let command = |given: &Option<String>, name: &str| {
            let flag = flags.hooks.iter().rev().find(|(hook, _)| hook == name);
            let given = flag.map(|(_, command)| command).or(given.as_ref());
            given.filter(|command| !command.trim().is_empty()).cloned()
        };
        let breaks = command(&spec.r#break, "break");
        let breaks = self.needed(
            breaks,
            node,
            "break",
            "add break = \"COMMAND\", or --hook 'break=COMMAND'",
        );
        let mend = command(&spec.mend, "mend");
        let remedy =
            "add mend = \"COMMAND\", or --hook 'mend=COMMAND': what is broken has to be mended";
        let mend = self.needed(mend, node, "mend", remedy);
        let limit_ns = spec.limit.map_or(LIMIT_NS, |t| t.0);
        if limit_ns == 0 {
            self.refuse_fault(
                node,
                "limit",
                "no command ends within 0s",
                "write it such as \"30s\"",
            );
        }
        Some(What::Hook {
            r#break: breaks?,
            mend: mend?,
            check: command(&spec.check, "check").unwrap_or_default(),
            limit_ns,
        })
    }

    fn needed<T>(&mut self, value: Option<T>, node: &Node, field: &str, remedy: &str) -> Option<T> {
        if value.is_none() {
            let message = format!("the fault lacks a usable `{field}`");
            self.refuse_fault(node, field, &message, remedy);
        }
        value
    }

    /// Reports a problem with `field` of a fault, or with the fault if it lacks the field.
    fn refuse_fault(&mut self, node: &Node, field: &str, message: &str, remedy: &str) {
        self.errors.push(
            origin(node, field),
            format!("fault.{field}"),
            message,
            remedy,
        );
    }
}

/// Where `field` of a fault stands, else the fault.
fn origin<'n>(node: &'n Node, field: &str) -> &'n Origin {
    let entry = node.as_table().and_then(|table| table.entry(field));
    entry.map_or_else(|| whole(node), |entry| &entry.node.origin)
}

/// Where a fault begins: at its first field.
fn whole(node: &Node) -> &Origin {
    let first = node.as_table().and_then(|table| table.entries.first());
    first.map_or(&node.origin, |entry| &entry.at)
}

/// The error of S3 that fits a status.
fn body_of(status: u16) -> String {
    let code = match status {
        429 | 503 => "SlowDown",
        _ => "InternalError",
    };
    format!("<Error><Code>{code}</Code><Message>made by a drill</Message></Error>")
}

#[cfg(test)]
#[path = "drill_tests.rs"]
mod tests;
