//! Flags that change a COSBench workload. They are written into the workload before it becomes a plan, so that the run
//! directory shows what was run.

use std::fmt::Display;

use bucketload_core::payload::PayloadKind;
use bucketload_core::units;
use bucketload_cosbench::{Config, OperationKind, Selector, Sizes, Work, WorkKind, Workload};

use super::refuse;
use crate::cli::workload::WorkloadArgs;

/// The values of the flags.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Settings {
    duration_s: Option<u32>,
    ops: Option<u32>,
    bytes: Option<u64>,
    size_bytes: Option<u32>,
    workers: Option<u32>,
    pub(super) seed: Option<u64>,
    pub(super) timeout_ns: Option<u64>,
    pub(super) payload: Option<PayloadKind>,
}

impl Settings {
    /// # Errors
    /// When a flag cannot be read or does not apply to COSBench workloads.
    pub(super) fn new(args: &WorkloadArgs) -> Result<Self, String> {
        let foreign = [
            ("--profile-name", args.profile_name.is_some()),
            ("--rate", args.rate.is_some()),
            ("--arrival", args.arrival.is_some()),
            ("--max-in-flight", args.max_in_flight.is_some()),
            ("--think", args.think.is_some()),
            ("--mix", args.mix.is_some()),
            ("--objects", args.objects.is_some()),
            ("--keys", args.keys.is_some()),
            ("--scale", args.scale.is_some()),
            ("--verify", args.verify),
            ("--oracle", args.oracle),
            ("--keep", args.keep),
            ("--set", !args.set.is_empty()),
        ];
        if let Some((flag, _)) = foreign.iter().find(|(_, given)| *given) {
            return Err(format!(
                "{flag} applies to workloads in TOML only; change the XML instead"
            ));
        }
        let duration_s = match read("--duration", &args.duration, units::parse_duration)? {
            None => None,
            Some(ns) if ns >= 1_000_000_000 && ns % 1_000_000_000 == 0 => {
                Some(u32::try_from(ns / 1_000_000_000).map_err(|e| format!("--duration: {e}"))?)
            }
            Some(_) => {
                return Err("--duration: COSBench takes whole seconds, at least 1".to_owned());
            }
        };
        let size_bytes = read("--size", &args.size, units::parse_size)?
            .map(|bytes| {
                let bytes = i32::try_from(bytes).ok();
                bytes.ok_or("--size: write sizes above 2147483647 B into the XML")
            })
            .transpose()?;
        Ok(Self {
            duration_s,
            ops: read("--ops", &args.ops, whole)?,
            bytes: read("--bytes", &args.bytes, units::parse_size)?,
            size_bytes: size_bytes.map(i32::unsigned_abs),
            workers: read("--workers", &args.workers, whole)?,
            seed: read("--seed", &args.seed, |text| {
                let seed = text.parse();
                seed.map_err(|_| format!("`{text}` is not a whole number"))
            })?,
            timeout_ns: read("--timeout", &args.timeout, units::parse_duration)?,
            payload: read("--payload", &args.payload, |text| match text {
                "random" => Ok(PayloadKind::Random),
                "zeros" => Ok(PayloadKind::Zeros),
                other => Err(format!(
                    "COSBench cannot write `{other}`; use random or zeros"
                )),
            })?,
        })
    }
}

/// Parses the value of a flag that was given.
fn read<T, E: Display>(
    flag: &str,
    text: &Option<String>,
    parse: impl Fn(&str) -> Result<T, E>,
) -> Result<Option<T>, String> {
    let value = text.as_deref().map(parse).transpose();
    value.map_err(|e| format!("{flag}: {e}"))
}

fn whole(text: &str) -> Result<u32, String> {
    let number = text.replace('_', "").parse::<u32>().ok();
    number
        .filter(|n| *n > 0 && *n <= i32::MAX as u32)
        .ok_or_else(|| format!("`{text}` is not a whole number from 1 to 2147483647"))
}

/// Writes the settings into the workload and removes the skipped operations.
///
/// # Errors
/// When an operation to skip is unknown, or the settings contradict each other.
pub(super) fn apply(
    workload: &mut Workload,
    settings: &Settings,
    skipped: &[String],
    notes: &mut Vec<String>,
) -> Result<(), String> {
    let mut kinds = Vec::new();
    for name in skipped {
        let kind = OperationKind::from_name(name)
            .ok_or_else(|| format!("--skip-operations: there is no operation `{name}`"))?;
        kinds.push(kind);
    }
    if !kinds.is_empty() {
        skip(workload, &kinds, notes);
    }
    if workload.stages.is_empty() {
        return Err("--skip-operations: no operation is left; skip fewer".to_owned());
    }
    for stage in &mut workload.stages {
        if let Some(duration) = settings.duration_s {
            stage.closure_delay_s = stage.closure_delay_s.min(duration);
        }
        for work in &mut stage.works {
            change(work, settings)?;
        }
    }
    Ok(())
}

fn change(work: &mut Work, settings: &Settings) -> Result<(), String> {
    if work.kind == WorkKind::Delay {
        return Ok(());
    }
    if let Some(workers) = settings.workers {
        work.workers = workers;
        if work.kind != WorkKind::Normal {
            work.total_ops = workers;
        }
    }
    if let Some(bytes) = settings.size_bytes {
        for operation in &mut work.operations {
            if operation.target.sizes.is_some()
                && work.kind != WorkKind::Init
                && work.kind != WorkKind::Dispose
            {
                let text = format!("{};sizes=c({bytes})B", operation.config.text());
                operation.config = Config::parse(&text);
                operation.target.sizes = Some(Sizes {
                    selector: Selector::Constant(bytes),
                    unit_bytes: 1,
                    misread: None,
                });
            }
        }
    }
    if work.kind != WorkKind::Normal {
        return Ok(());
    }
    if settings.duration_s.is_some() || settings.ops.is_some() || settings.bytes.is_some() {
        // A limit replaces all limits of the file, which could otherwise end the work earlier.
        work.runtime_s = settings.duration_s.unwrap_or(0);
        (work.rampup_s, work.rampdown_s) = (0, 0);
        work.total_ops = settings.ops.unwrap_or(0);
        work.total_bytes = settings.bytes.unwrap_or(0);
    }
    if work.total_ops > 0 && work.workers > work.total_ops {
        let problem = format!(
            "{} workers share {} operations",
            work.workers, work.total_ops
        );
        return Err(refuse(
            &work.location,
            &problem,
            "change --ops or --workers",
        ));
    }
    Ok(())
}

/// Removes operations and scales the ratios of the others to 100.
fn skip(workload: &mut Workload, kinds: &[OperationKind], notes: &mut Vec<String>) {
    for stage in &mut workload.stages {
        if stage.is_delay() {
            continue;
        }
        for work in &mut stage.works {
            let before = work.operations.len();
            work.operations
                .retain(|operation| !kinds.contains(&operation.kind));
            if work.operations.len() < before {
                notes.push(format!(
                    "{}: operations are skipped (--skip-operations)",
                    work.location
                ));
                grow(work);
            }
        }
        stage.works.retain(|work| !work.operations.is_empty());
    }
    workload
        .stages
        .retain(|stage| stage.is_delay() || !stage.works.is_empty());
}

/// Scales the ratios to sum to 100, by largest remainders.
fn grow(work: &mut Work) {
    let sum: u32 = work.operations.iter().map(|o| o.ratio).sum();
    if sum == 0 {
        return;
    }
    let mut left = 100;
    let mut remainders = Vec::new();
    for (index, operation) in work.operations.iter_mut().enumerate() {
        let exact = operation.ratio * 100;
        remainders.push((exact % sum, index));
        operation.ratio = exact / sum;
        left -= operation.ratio;
    }
    remainders.sort_by_key(|(remainder, index)| (std::cmp::Reverse(*remainder), *index));
    for (_, index) in remainders.into_iter().take(left as usize) {
        work.operations[index].ratio += 1;
    }
}
