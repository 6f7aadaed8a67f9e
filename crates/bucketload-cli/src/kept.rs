//! Data sets that outlive the run that prepares them: `run --prepare-only` and `run --data`.

use std::path::Path;

use bucketload_core::plan::{KeyLaw, MixEntry, PhaseKind, Plan};
use bucketload_results::rundir::RunDir;
use bucketload_run::{DataSet, PATIENCE, Purpose, RunEnd};

use crate::campaign::dataset::{identity_of_objects, indices};
use crate::cli::run::DataArgs;
use crate::exit::Failure;
use crate::target::Target;

/// What the flags say about a run's data set.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    /// The run that began it; `None` if this run does.
    pub(crate) run_id: Option<String>,
    pub(crate) set: DataSet,
    /// The phases to carry out; `None` for all.
    pub(crate) phases: Option<Vec<usize>>,
    /// The note in the head of the result.
    pub(crate) note: String,
}

impl Kept {
    /// The data set that `args` ask for; `None` if the run deletes its objects as usual.
    ///
    /// # Errors
    /// When the flags do not fit each other or the plan, or the run that they name cannot be read.
    pub(crate) fn of(
        args: &DataArgs,
        plan: &Plan,
        target: &Target,
    ) -> Result<Option<Self>, Failure> {
        if !args.keeps() {
            return match args.check {
                None => Ok(None),
                Some(_) => Err(Failure::usage(
                    "--check reads objects of a data set; add --data RUN, or --prepare-only",
                )),
            };
        }
        if *target == Target::Memory {
            return Err(Failure::usage(
                "a target in memory keeps no objects beyond the run; name a --target that does",
            ));
        }
        let run_id = args.data.as_deref().map(run_id).transpose()?;
        let purpose = match (args.prepare_only, &run_id) {
            (true, None) => Purpose::Begin,
            (true, Some(_)) => Purpose::GoOn,
            (false, _) => Purpose::Measure {
                incomplete: args.incomplete,
            },
        };
        if let (Purpose::Measure { .. }, Some(operation)) = (purpose, worn(plan)) {
            return Err(Failure::usage(format!(
                "--data: {operation} may delete or change objects that are there, so the next run would find the data \
                 set changed; leave --data out, and the run prepares objects of its own"
            )));
        }
        let note = run_id.as_ref().map_or_else(
            || "prepared and kept".to_owned(),
            |run_id| format!("the data set of run {run_id}"),
        );
        let phases = args.prepare_only.then(|| {
            let init = indices(plan, PhaseKind::Init);
            init.chain(indices(plan, PhaseKind::Prepare)).collect()
        });
        let set = DataSet {
            identity: identity_of_objects(plan),
            purpose,
            check: args.check.unwrap_or(0),
            patience: PATIENCE,
        };
        Ok(Some(Self {
            run_id,
            set,
            phases,
            note,
        }))
    }
}

/// What the user should know about the data set after a run with the directory `out`.
pub(crate) fn words(set: &DataSet, end: &RunEnd, out: &Path) -> Vec<String> {
    let mut words = Vec::new();
    if end.checked > 0 {
        words.push(format!(
            "{} objects of the data set were read; each is as it was prepared",
            end.checked
        ));
    }
    let dir = out.display();
    words.push(match (&end.incomplete, set.purpose) {
        (Some(missing), _) => format!(
            "the data set is not complete: {missing}. Go on with --prepare-only --data {dir}"
        ),
        (None, Purpose::Measure { .. }) => {
            format!("the data set stays in the target; measure on it again with --data {dir}")
        }
        (None, _) => format!("the data set is complete; measure on it with --data {dir}"),
    });
    words
}

/// What the user should know about the data set after a run that lost an agent.
pub(crate) fn words_after_loss(set: &DataSet, missing: Option<&str>, out: &Path) -> Vec<String> {
    match (set.purpose, missing) {
        (Purpose::Begin | Purpose::GoOn, Some(missing)) => vec![format!(
            "the data set is not complete: {missing}. Write the rest, with as many agents as you like, with \
             --prepare-only --data {}",
            out.display()
        )],
        _ => Vec::new(),
    }
}

/// A measured operation that may delete or change objects that are there, in words. Fresh objects have names of their
/// own in each measurement.
fn worn(plan: &Plan) -> Option<String> {
    let measured = indices(plan, PhaseKind::Run).flat_map(|index| &plan.phases[index].works);
    let mut entries = measured.flat_map(|work| &work.mix);
    let lasting = |entry: &MixEntry| {
        let fresh = entry.keys == KeyLaw::Fresh && entry.class.writes_body();
        entry.class.only_reads() || fresh && !entry.class.removes_objects()
    };
    let entry = entries.find(|entry| !lasting(entry))?;
    let set = plan.keysets.get(usize::from(entry.keyset));
    let name = set.map_or("", |set| &set.name);
    Some(format!("{} on key set `{name}`", entry.class))
}

/// The identifier of the run that `named` is: a run directory, or an identifier.
fn run_id(named: &str) -> Result<String, Failure> {
    let dir = Path::new(named);
    if dir.is_dir() {
        let run = RunDir::open(dir).map_err(|e| Failure::usage(format!("--data {named}: {e}")))?;
        return Ok(run.manifest().run_id.clone());
    }
    // As `setup::new_run_id` makes them.
    let is_id = named.split_once('-').is_some_and(|(start, random)| {
        let digits = |text: &str, radix| text.chars().all(|c| c.is_digit(radix));
        !start.is_empty() && digits(start, 10) && random.len() == 8 && digits(random, 16)
    });
    match is_id {
        true => Ok(named.to_owned()),
        false => Err(Failure::usage(format!(
            "--data {named}: there is no such run directory, and it is not the identifier of a run; name the \
             directory of a run with --prepare-only"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::run_id;

    #[test]
    fn runs_are_named_by_directory_or_identifier() {
        assert_eq!(
            run_id("1795624866-57560403").unwrap(),
            "1795624866-57560403"
        );
        for bad in [
            "gone",
            "17-5756040",
            "x-57560403",
            "-57560403",
            "../17-57560403",
        ] {
            let refused = run_id(bad).unwrap_err();
            assert!(refused.message.contains("no such run directory"), "{bad}");
        }
    }
}
