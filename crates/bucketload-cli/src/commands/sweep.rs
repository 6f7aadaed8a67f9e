//! `bucketload sweep`: several runs at each of several values of one field.

use std::collections::BTreeMap;

use bucketload_core::generate::rng::mix64;
use bucketload_results::error::ResultsError;
use bucketload_results::study::StudyFiles;
use bucketload_results::sweep::{Header, Record, SCHEMA, SweepResult, SweepStudy, page, text};
use bucketload_workload::spec::WorkloadFile;

use crate::campaign::Campaign;
use crate::cli::GlobalArgs;
use crate::cli::sweep::SweepArgs;
use crate::commands::run::resolve_workload;
use crate::commands::swept_field::{Swept, SweptField};
use crate::connection::{Connection, flags_of};
use crate::exit::{Exit, Failure, OrFail, first_failure};
use crate::experiment::{self, Experiment, Journal, Measured, Session};
use crate::setup;
use crate::target::Target;

impl Experiment for SweepStudy {
    type Result = SweepResult;

    fn result(files: StudyFiles<Self>) -> SweepResult {
        SweepResult::new(files)
    }

    fn text(result: &SweepResult, _with_trials: bool) -> String {
        text::text(result)
    }

    fn page(result: &SweepResult) -> String {
        page::html(result)
    }

    fn run_directory(record: &Record) -> &str {
        &record.dir
    }

    fn record_again(
        _header: &Header,
        old: &Record,
        trial: &Measured,
    ) -> Result<Option<Record>, ResultsError> {
        Ok(Record::of(
            &old.value,
            old.number,
            old.repetition,
            old.dir.clone(),
            &trial.result,
            &trial.tally,
        ))
    }
}

/// Measures, analyses and prints.
pub(crate) fn execute(args: &SweepArgs, global: &GlobalArgs) -> Result<Exit, Failure> {
    let over: SweptField = args
        .over
        .parse()
        .map_err(|e| Failure::usage(format!("--over {}: {e}", args.over)))?;
    experiment::refuse(
        "sweep",
        "has no dry run",
        &[("--dry-run", args.load.dry_run)],
    )?;
    let (resolved, file, target) =
        resolve_workload(&args.workload, &args.target, &args.workload_args)?;
    let plan = resolved.plan;
    experiment::check_one_phase(&plan, "sweep")?;
    let session = Session::new("sweep", &plan.workload, &args.output, global.quiet)?;
    let mut campaigns = Campaigns {
        args,
        file: &file,
        target: &target,
        session: &session,
        open: BTreeMap::new(),
    };
    // Values that do not fit the workload or the target are refused before anything is measured.
    let mut described = String::new();
    for value in &over.values {
        let campaign = campaigns.of(&over, value)?;
        let plan = campaign.plan(&over.overrides(value))?;
        experiment::check_one_phase(&plan, "sweep")?;
        if described.is_empty() {
            described = campaign.describe();
        }
    }
    let header = Header {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        workload: plan.workload,
        profile: plan.profile,
        target: described,
        started: experiment::now(),
        field: over.field.clone(),
        axis: over.axis(),
        values: over.values.clone(),
        repetitions: args.repetitions,
        command_line: experiment::command_line(),
    };
    let mut journal = session.create(&header)?;
    let ended = measure(&mut campaigns, &mut journal, &over, &header, plan.seed);
    session.finish::<SweepStudy>(ended, campaigns.close())
}

/// The campaigns of a sweep: a single one, or one per number of endpoints.
struct Campaigns<'a> {
    args: &'a SweepArgs,
    file: &'a WorkloadFile,
    target: &'a Target,
    session: &'a Session<'a>,
    open: BTreeMap<usize, Campaign>,
}

impl Campaigns<'_> {
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
                Some(n) => self.session.dir.join(format!("endpoints-{n}")),
                None => self.session.dir.clone(),
            };
            let campaign = self.session.campaign(
                &dir,
                self.file,
                &args.workload_args,
                connection,
                &args.load,
            )?;
            self.open.insert(number, campaign);
        }
        // Inserted above.
        self.open
            .get_mut(&number)
            .ok_or_else(|| Failure::aborted("sweep: no campaign"))
    }

    /// Closes all campaigns, even if the clean-up of one fails.
    fn close(self) -> Result<(), Failure> {
        let mut closed = Ok(());
        for campaign in self.open.into_values() {
            closed = first_failure(closed, campaign.close());
        }
        closed
    }
}

fn measure(
    campaigns: &mut Campaigns<'_>,
    journal: &mut Journal<SweepStudy>,
    over: &SweptField,
    header: &Header,
    seed: u64,
) -> Result<(), Failure> {
    for repetition in 0..header.repetitions {
        for index in order(over.values.len(), seed, repetition) {
            let value = &over.values[index];
            let name = name(&over.field, value);
            let campaign = campaigns.of(over, value)?;
            let done = campaign.trial(&name, &over.overrides(value))?;
            let of = Measured::read(&done.dir).or_aborted()?;
            let inside = campaigns.session.relative(&done.dir);
            let number = over.number(value);
            let record = Record::of(value, number, repetition, inside, &of.result, &of.tally)
                .ok_or_else(|| Failure::aborted(format!("trial {name} measured nothing")))?;
            journal.append(&record, &text::trial_line(&over.field, &record))?;
        }
    }
    Ok(())
}

/// The indices of `values` values in random order (Fisher-Yates shuffle), so that drift of the store does not look
/// like an effect of the swept field.
pub(crate) fn order(values: usize, seed: u64, repetition: u32) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values).collect();
    for i in (1..values).rev() {
        let random = mix64(seed ^ mix64(u64::from(repetition) << 32 | i as u64));
        order.swap(i, (random % (i as u64 + 1)) as usize);
    }
    order
}

/// The name of a trial, safe as a directory name.
fn name(field: &str, value: &str) -> String {
    let mut name = setup::file_name(&format!("{field}-{value}"));
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
    fn trial_names_are_safe_directory_names() {
        assert_eq!(name("size", "4KiB"), "size-4KiB");
        assert_eq!(name("mix", "get=1,put=../x"), "mix-get-1-put-..-x");
    }
}
