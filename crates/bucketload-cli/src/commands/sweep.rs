//! `bucketload sweep`: one field through several values, several runs at each, on a campaign.

use std::collections::BTreeMap;
use std::path::Path;

use bucketload_core::generate::rng::mix64;
use bucketload_results::study::StudyWriter;
use bucketload_results::sweep::{Header, Record, SCHEMA, SweepStudy, text::trial_line};
use bucketload_run::StopHandle;
use bucketload_workload::resolve::Override;
use bucketload_workload::spec::WorkloadFile;

use crate::campaign::Campaign;
use crate::cli::GlobalArgs;
use crate::cli::sweep::SweepArgs;
use crate::commands::run::resolve_workload;
use crate::commands::study;
use crate::commands::swept_field::{Swept, SweptField};
use crate::connection::{Connection, flags_of};
use crate::exit::{Exit, Failure, OrFail, also};
use crate::signals;
use crate::target::Target;

/// Measures, analyses and prints.
pub(crate) fn execute(args: &SweepArgs, global: &GlobalArgs) -> Result<Exit, Failure> {
    let over: SweptField = args
        .over
        .parse()
        .map_err(|e| Failure::usage(format!("--over {}: {e}", args.over)))?;
    study::refuse(
        "sweep",
        "performs what it measures",
        &[("--dry-run", args.load.dry_run)],
    )?;
    let (resolved, file, target) =
        resolve_workload(&args.workload, &args.target, &args.workload_args)?;
    let phase = study::one_phase(&resolved.plan, "sweep")?;
    let dir = study::directory(&args.output, "sweep", &resolved.plan.workload);
    let stop = signals::watched()?;
    let mut stores = Stores {
        args,
        file: &file,
        target: &target,
        dir: &dir,
        quiet: global.quiet,
        stop: &stop,
        open: BTreeMap::new(),
    };
    // Values that do not fit the workload or the target are refused before anything is measured.
    let mut described = String::new();
    for value in &over.values {
        let campaign = stores.of(&over, value)?;
        let plan = campaign.plan(&over.overrides(value))?;
        study::one_phase(&plan, "sweep")?;
        if described.is_empty() {
            described = campaign.describe();
        }
    }
    let (workload, profile) = study::names(&resolved);
    let header = Header {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        workload,
        profile,
        target: described,
        started: study::now(),
        field: over.field.clone(),
        axis: over.axis(),
        values: over.values.clone(),
        repetitions: args.repetitions,
        command_line: study::command_line(),
    };
    let ended = measure(&mut stores, &over, &header, phase, resolved.plan.seed);
    let closed = stores.close();
    let (exit, _) = study::finish(&dir, &args.output, global.quiet, ended, closed)?;
    Ok(exit)
}

/// The campaigns of a sweep: one, or one per number of endpoints.
struct Stores<'a> {
    args: &'a SweepArgs,
    file: &'a WorkloadFile,
    target: &'a Target,
    dir: &'a Path,
    quiet: bool,
    stop: &'a StopHandle,
    open: BTreeMap<usize, Campaign>,
}

impl Stores<'_> {
    fn of(&mut self, over: &SweptField, value: &str) -> Result<&mut Campaign, Failure> {
        let args = self.args;
        let endpoints = match over.swept {
            Swept::Endpoints => Some(over.count(value).or_usage()?),
            Swept::Field(_) => None,
        };
        let number = endpoints.unwrap_or(0);
        if !self.open.contains_key(&number) {
            let flags = flags_of(&args.target, self.file.spec().target.as_ref())?;
            let connection =
                Connection::with_endpoints(self.target.clone(), &flags, &args.load, endpoints)?;
            let dir = match endpoints {
                Some(n) => self.dir.join(format!("endpoints-{n}")),
                None => self.dir.to_owned(),
            };
            let campaign = study::campaign(
                &dir,
                self.file,
                &args.workload_args,
                connection,
                &args.load,
                self.quiet,
                self.stop,
            )?;
            self.open.insert(number, campaign);
        }
        // Inserted above.
        self.open
            .get_mut(&number)
            .ok_or_else(|| Failure::aborted("sweep: no campaign"))
    }

    fn close(self) -> Result<(), Failure> {
        let mut ended = Ok(());
        for campaign in self.open.into_values() {
            // A campaign that cannot be cleaned up does not keep the others from it.
            ended = also(ended, campaign.close());
        }
        ended
    }
}

fn measure(
    stores: &mut Stores<'_>,
    over: &SweptField,
    header: &Header,
    phase: usize,
    seed: u64,
) -> Result<(), Failure> {
    let (dir, quiet) = (stores.dir, stores.quiet);
    let mut writer = StudyWriter::<SweepStudy>::create(dir, header).or_aborted()?;
    for repetition in 0..header.repetitions {
        for index in order(over.values.len(), seed, repetition) {
            let value = &over.values[index];
            let settings: Vec<Override> = over.overrides(value);
            let name = name(&over.field, value);
            let done = stores.of(over, value)?.trial(&name, &settings)?;
            if done.exit == Exit::Interrupted {
                return Err(study::interrupted());
            }
            let (result, tally) = study::measured(&done, phase)?;
            let inside = study::relative(dir, &done);
            let number = over.number(value);
            let record = Record::of(value, number, repetition, inside, &result, &tally)
                .ok_or_else(|| Failure::aborted(format!("trial {name} has measured nothing")))?;
            if !quiet {
                eprintln!("{}", trial_line(&over.field, &record));
            }
            writer.append(&record).or_aborted()?;
        }
    }
    Ok(())
}

/// The values of one repetition in random order (Fisher and Yates): drift of the store then does
/// not look like an effect of what is varied.
pub(crate) fn order(values: usize, seed: u64, repetition: u32) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values).collect();
    for i in (1..values).rev() {
        let random = mix64(seed ^ mix64(u64::from(repetition) << 32 | i as u64));
        order.swap(i, (random % (i as u64 + 1)) as usize);
    }
    order
}

/// A name for a directory.
fn name(field: &str, value: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || "-_.".contains(c) {
            c
        } else {
            '-'
        }
    };
    let mut name: String = format!("{field}-{value}").chars().map(plain).collect();
    name.truncate(80);
    name
}

#[cfg(test)]
mod tests {
    use super::{name, order};

    #[test]
    fn every_repetition_has_every_value_once_in_its_own_order() {
        let orders: Vec<Vec<usize>> = (0..5).map(|r| order(8, 1, r)).collect();
        for order in &orders {
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..8).collect::<Vec<_>>());
        }
        assert!(orders.windows(2).any(|pair| pair[0] != pair[1]));
        assert_eq!(orders[0], order(8, 1, 0));
    }

    #[test]
    fn names_are_safe() {
        assert_eq!(name("size", "4KiB"), "size-4KiB");
        assert_eq!(name("mix", "get=1,put=../x"), "mix-get-1-put-..-x");
    }
}
