//! `bucketload train`: a model of training becomes a workload, which `run` carries out.

use std::fmt::Write as _;

use bucketload_core::units::format_size;
use bucketload_results::units::bytes;
use bucketload_workload::spec::{ReadMode, WorkloadFile};
use bucketload_workload::training::{Training, TrainingChoice, TrainingModels};

use crate::cli::GlobalArgs;
use crate::cli::cosbench::CosbenchArgs;
use crate::cli::run::RunArgs;
use crate::cli::train::{TrainArgs, TrainOptions, TrainReadMode};
use crate::cli::workload::WorkloadArgs;
use crate::commands::docs::print;
use crate::commands::run;
use crate::exit::{Exit, Failure, OrFail};
use crate::files;

/// Steps of an epoch that the default data set allows.
const STEPS: u64 = 20;

/// Trains, or prints what was asked for.
pub(crate) fn execute(args: &TrainArgs, global: &GlobalArgs, color: bool) -> Result<Exit, Failure> {
    let options = &args.train;
    if options.show_models {
        return print(TrainingModels::TEXT.as_bytes());
    }
    let training = training(options)?;
    if options.datasize {
        return print(datasize(options, &training)?.as_bytes());
    }
    let objects = objects(options, &training)?;
    let text = training.workload(&TrainingChoice {
        accelerators: options.accelerators,
        objects,
        steps: options.steps,
    });
    if options.show {
        return print(text.as_bytes());
    }
    if !global.quiet {
        for note in notes(options, &training, objects) {
            eprintln!("bucketload: {note}");
        }
    }
    let name = training.name();
    let file = WorkloadFile::parse(&format!("{name}.toml"), &text).or_aborted()?;
    let run = as_run(args, name);
    let loaded = || run::load_file(&run, file);
    run::execute_loaded(&run, global, color, loaded, |_| Ok(()))
}

/// Objects of the data set.
fn objects(options: &TrainOptions, training: &Training) -> Result<u64, Failure> {
    match options.objects.as_deref() {
        None => Ok(training.objects_for(options.accelerators, STEPS)),
        Some("rule") => {
            let rule = training.data_size(options.accelerators, memory(options)?);
            Ok(rule.objects)
        }
        Some(text) => match text.parse::<u64>() {
            Ok(objects) if objects > 0 => Ok(objects),
            _ => Err(Failure::usage(format!(
                "--objects {text}: write a number above 0, or `rule`"
            ))),
        },
    }
}

/// Bytes of the data set that the flags describe.
///
/// # Errors
/// When the flags name no data set.
pub(crate) fn written(options: &TrainOptions) -> Result<u64, Failure> {
    let training = training(options)?;
    let objects = objects(options, &training)?;
    Ok((objects as f64 * training.object_bytes()) as u64)
}

/// The model that the flags name, with what they change of it.
fn training(options: &TrainOptions) -> Result<Training, Failure> {
    let models = match &options.models {
        None => TrainingModels::builtin().or_aborted()?,
        Some(path) => {
            let text = files::read(path)?;
            TrainingModels::parse(&path.display().to_string(), &text).or_usage()?
        }
    };
    // Both are there, because only --show-models goes without them.
    let name = options.model.as_deref().unwrap_or_default();
    let kind = options.accelerator.as_deref().unwrap_or_default();
    let found = models.training(name, kind);
    let mut training = found.or_usage()?;
    let factor = factor(&options.scale)?;
    if factor != 1.0 {
        training = training.scaled(factor).or_usage()?;
    }
    training.epochs = options.epochs.unwrap_or(training.epochs);
    training.readers = options.readers.unwrap_or(training.readers);
    training.prefetch = options.prefetch.unwrap_or(training.prefetch);
    match options.read_mode {
        None => {}
        Some(TrainReadMode::Whole) => training.read = ReadMode::Whole,
        Some(TrainReadMode::Range) => training.read = ReadMode::Ranges,
        Some(TrainReadMode::Columns) if training.columns.is_none() => {
            return Err(Failure::usage(format!(
                "--read-mode columns: the model {name} has no columns; use whole or range"
            )));
        }
        Some(TrainReadMode::Columns) => training.read = ReadMode::Columns,
    }
    if options.range_size.is_some() {
        if training.read != ReadMode::Ranges {
            return Err(Failure::usage(
                "--range-size: objects are not read in ranges; add --read-mode range",
            ));
        }
        training.range_size = options.range_size;
    }
    Ok(training)
}

/// A factor written as a number or a fraction.
fn factor(text: &str) -> Result<f64, Failure> {
    let number = |text: &str| text.trim().parse::<f64>().ok();
    let value = match text.split_once('/') {
        Some((over, under)) => number(over).zip(number(under)).map(|(a, b)| a / b),
        None => number(text),
    };
    value.filter(|x| x.is_finite() && *x > 0.0).ok_or_else(|| {
        Failure::usage(format!(
            "--scale {text}: write a factor above 0, such as 1/1000 or 0.5"
        ))
    })
}

/// Memory of all hosts, bytes.
fn memory(options: &TrainOptions) -> Result<u128, Failure> {
    let each = match options.host_memory {
        Some(bytes) => bytes,
        None => machine_memory().ok_or_else(|| {
            Failure::usage("the memory of this machine is unknown; give it with --host-memory")
        })?,
    };
    Ok(u128::from(options.hosts) * u128::from(each))
}

fn machine_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

/// What the rule asks for, in words.
fn datasize(options: &TrainOptions, training: &Training) -> Result<String, Failure> {
    let memory = memory(options)?;
    let rule = training.data_size(options.accelerators, memory);
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "{} on {} x {}, {} host{} with {} of memory in total",
        training.model,
        options.accelerators,
        training.accelerator,
        options.hosts,
        if options.hosts == 1 { "" } else { "s" },
        format_size(u64::try_from(memory).unwrap_or(u64::MAX)),
    );
    let _ = writeln!(out, "  objects for 500 steps per epoch:  {}", rule.by_steps);
    let _ = writeln!(
        out,
        "  objects for five times the memory: {}",
        rule.by_memory
    );
    let _ = writeln!(
        out,
        "  objects: {}, {} samples each, {} in total",
        rule.objects,
        training.samples,
        bytes(rule.bytes),
    );
    Ok(out)
}

/// What keeps the result from being comparable with MLPerf's.
fn notes(options: &TrainOptions, training: &Training, objects: u64) -> Vec<String> {
    let mut notes = Vec::new();
    if options.scale != "1" {
        notes.push(format!(
            "records are {} times as large as the model's, so the result is not comparable with MLPerf's",
            options.scale
        ));
    }
    // Without the memory, the number of steps alone decides.
    let rule = training.data_size(options.accelerators, memory(options).unwrap_or(0));
    if objects < rule.objects {
        notes.push(format!(
            "the data set has {objects} objects; MLPerf's rule asks for {} here (--objects rule)",
            rule.objects
        ));
    }
    notes
}

/// The flags of the run that carries it out.
fn as_run(args: &TrainArgs, workload: String) -> RunArgs {
    let options = &args.train;
    RunArgs {
        workload,
        target: args.target.clone(),
        workload_args: WorkloadArgs {
            duration: options.duration.clone(),
            seed: options.seed.clone(),
            verify: options.verify,
            keep: options.keep,
            timeout: options.timeout.clone(),
            set: options.set.clone(),
            ..WorkloadArgs::default()
        },
        data: args.data.clone(),
        load: args.load.clone(),
        gates: args.gates.clone(),
        until_precise: None,
        no_calibration_cache: false,
        cosbench: CosbenchArgs::default(),
        agents: args.agents.clone(),
        output: args.output.clone(),
        expect_rate: args.room.expect_rate,
        exit_with_stdin: false,
        confined: false,
        allow_root: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::factor;

    #[test]
    fn factors_are_numbers_or_fractions() {
        assert_eq!(factor("1/1000").unwrap(), 0.001);
        assert_eq!(factor("0.5").unwrap(), 0.5);
        for bad in ["", "0", "-1", "1/0", "a", "1/2/3", "nan"] {
            assert!(factor(bad).is_err(), "{bad}");
        }
    }
}
