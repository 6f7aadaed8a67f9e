//! Flags that change fields of a workload.

use bucketload_workload::resolve::{Field, Override, Overrides};
use bucketload_workload::spec::SpecError;
use clap::Args;

/// Settings that override fields of the workload. Values are written as in a workload file.
#[derive(Clone, Debug, Default, PartialEq, Args)]
#[command(next_help_heading = "Workload options (override the workload)")]
pub(crate) struct WorkloadArgs {
    /// Variant of the workload (see `bucketload show`)
    #[arg(long, value_name = "NAME")]
    pub(crate) profile_name: Option<String>,

    /// Open loop: operations per second, such as 200/s; a closed loop becomes an open one
    #[arg(long, value_name = "RATE", allow_negative_numbers = true, conflicts_with_all = ["workers", "think"])]
    pub(crate) rate: Option<String>,

    /// Open loop: arrival process, such as "lognormal(200/s, cv=2)"
    #[arg(long, value_name = "LAW", conflicts_with_all = ["workers", "think"])]
    pub(crate) arrival: Option<String>,

    /// Open loop: most operations in flight
    #[arg(long, value_name = "N", allow_negative_numbers = true, conflicts_with_all = ["workers", "think"])]
    pub(crate) max_in_flight: Option<String>,

    /// Closed loop: number of workers; an open loop becomes a closed one
    #[arg(
        long,
        short,
        visible_aliases = ["parallel", "concurrency"],
        alias = "concurrent",
        value_name = "N",
        allow_negative_numbers = true
    )]
    pub(crate) workers: Option<String>,

    /// Closed loop: pause of a worker between operations, such as 10ms
    #[arg(long, value_name = "TIME", allow_negative_numbers = true)]
    pub(crate) think: Option<String>,

    /// Time limit of the measurement, such as 30s or 5m
    #[arg(long, short, value_name = "TIME", allow_negative_numbers = true)]
    pub(crate) duration: Option<String>,

    /// Limit on the number of operations
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) ops: Option<String>,

    /// Limit on the object bytes transferred, such as 10GiB
    #[arg(long, value_name = "SIZE", allow_negative_numbers = true)]
    pub(crate) bytes: Option<String>,

    /// Operations and their weights, as shares of requests, such as get=70,put=30
    #[arg(long, value_name = "OP=WEIGHT,...")]
    pub(crate) mix: Option<String>,

    /// Object sizes: 64KiB, 4k/70:1m/30, or a law such as "loguniform(1KiB, 1MiB)"
    #[arg(
        long,
        short,
        visible_alias = "obj-size",
        alias = "obj.size",
        value_name = "SIZE",
        allow_negative_numbers = true
    )]
    pub(crate) size: Option<String>,

    /// Number of objects in every key set that has objects; --scale does not apply to it
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) objects: Option<String>,

    /// How to choose among existing objects, such as uniform, sequential or "zipf(0.99)"
    #[arg(long, value_name = "LAW")]
    pub(crate) keys: Option<String>,

    /// Seed of all random choices: the same seed gives the same operations
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) seed: Option<String>,

    /// Factor on object counts; 1 uses the whole data set even if it may not fit into memory
    #[arg(long, value_name = "FACTOR", allow_negative_numbers = true)]
    pub(crate) scale: Option<String>,

    /// Compare every byte read with what was written
    #[arg(long)]
    pub(crate) verify: bool,

    /// Check every answer against the writes acknowledged before, and audit all objects at the end
    #[arg(long)]
    pub(crate) oracle: bool,

    /// Time limit of one attempt of an operation, such as 10s
    #[arg(long, value_name = "TIME", allow_negative_numbers = true)]
    pub(crate) timeout: Option<String>,

    /// Content of objects: random, zeros, "compressible(RATIO)" or "duplicate(SHARE)"
    #[arg(long, value_name = "KIND")]
    pub(crate) payload: Option<String>,

    /// Leave the objects in the store after the run
    #[arg(long)]
    pub(crate) keep: bool,

    /// Set any field of the workload by its path, such as phases.run.drain=5s (may be repeated)
    #[arg(long = "set", value_name = "PATH=VALUE")]
    pub(crate) set: Vec<String>,
}

impl WorkloadArgs {
    /// The settings for the resolver. `--set` comes last, because it is the most specific.
    ///
    /// # Errors
    /// When an argument of `--set` is not of the form PATH=VALUE.
    pub(crate) fn overrides(&self) -> Result<Overrides, SpecError> {
        let yes = |given: bool| given.then(|| "true".to_owned());
        let named = [
            // The arrival process comes before the rate, which applies to it.
            (Field::Arrival, self.arrival.clone()),
            (Field::Rate, self.rate.clone()),
            (Field::Workers, self.workers.clone()),
            (Field::Think, self.think.clone()),
            (Field::MaxInFlight, self.max_in_flight.clone()),
            (Field::Duration, self.duration.clone()),
            (Field::Ops, self.ops.clone()),
            (Field::Bytes, self.bytes.clone()),
            (Field::Mix, self.mix.clone()),
            (Field::Size, self.size.clone()),
            (Field::Objects, self.objects.clone()),
            (Field::Keys, self.keys.clone()),
            (Field::Seed, self.seed.clone()),
            (Field::Scale, self.scale.clone()),
            (Field::Verify, yes(self.verify)),
            (Field::Oracle, yes(self.oracle)),
            (Field::Timeout, self.timeout.clone()),
            (Field::Payload, self.payload.clone()),
            (Field::Keep, yes(self.keep)),
        ];
        let mut settings: Vec<Override> = named
            .into_iter()
            .filter_map(|(field, value)| Some(Override::new(field, &value?)))
            .collect();
        for text in &self.set {
            settings.push(Override::parse(text)?);
        }
        Ok(Overrides {
            profile: self.profile_name.clone(),
            settings,
        })
    }
}

#[cfg(test)]
mod tests {
    use bucketload_core::plan::{ArrivalLaw, OpenPlan, PhaseKind, Plan};
    use bucketload_workload::resolve::{ResolveContext, resolve};
    use bucketload_workload::spec::WorkloadFile;
    use clap::Parser;

    use crate::cli::run::RunArgs;
    use crate::cli::{Cli, Command};

    fn parse(line: &[&str]) -> Result<RunArgs, String> {
        let whole = ["bucketload", "run"].iter().chain(line);
        match Cli::try_parse_from(whole)
            .map_err(|error| error.to_string())?
            .command
        {
            Command::Run(args) => Ok(*args),
            other => Err(format!("{other:?}")),
        }
    }

    fn plan(line: &[&str]) -> Result<Plan, String> {
        let args = parse(line)?;
        let overrides = args.workload_args.overrides().map_err(|e| e.to_string())?;
        let file = WorkloadFile::builtin(&args.workload).map_err(|e| e.to_string())?;
        let context = ResolveContext::default();
        let resolved = resolve(&file, &overrides, &context).map_err(|e| e.to_string())?;
        Ok(resolved.plan)
    }

    fn open(plan: &Plan) -> &OpenPlan {
        let mut phases = plan.phases.iter();
        let run = phases.find(|phase| phase.kind == PhaseKind::Run).unwrap();
        run.works[0].model.open().unwrap()
    }

    /// Every flag has an effect: alone, it changes the plan.
    #[test]
    fn every_flag_changes_the_plan() {
        let flags: [&[&str]; 19] = [
            &["--profile-name", "acloud"],
            &["--rate", "7/s"],
            &["--arrival", "poisson(9/s)"],
            &["--max-in-flight", "5"],
            &["--workers", "3"],
            &["--duration", "1s"],
            &["--ops", "5"],
            &["--bytes", "5MiB"],
            &["--mix", "get=1"],
            &["--size", "4k"],
            &["--objects", "77"],
            &["--keys", "uniform"],
            &["--seed", "5"],
            &["--scale", "0.5"],
            &["--verify"],
            &["--oracle"],
            &["--timeout", "3s"],
            &["--payload", "zeros"],
            &["--keep"],
        ];
        let base = plan(&["online-service"]).unwrap();
        for flag in flags {
            let line = [&["online-service"], flag].concat();
            assert_ne!(plan(&line).unwrap(), base, "{flag:?}");
        }
        let closed = plan(&["get"]).unwrap();
        assert_ne!(plan(&["get", "--think", "1ms"]).unwrap(), closed);
        assert_ne!(
            plan(&["get", "--set", "phases.run.drain=1s"]).unwrap(),
            closed
        );
    }

    #[test]
    fn the_rate_belongs_to_the_arrival_process_given_with_it() {
        let line = [
            "online-service",
            "--rate",
            "5/s",
            "--arrival",
            "lognormal(cv=3)",
        ];
        let plan = plan(&line).unwrap();
        let arrival = &open(&plan).arrival;
        assert_eq!(*arrival, ArrivalLaw::LognormalGaps { rate: 5.0, cv: 3.0 });
    }

    #[test]
    fn set_is_more_specific_than_named_flags() {
        let line = ["get", "--seed", "1", "--set", "seed=9", "--set", "seed=10"];
        assert_eq!(plan(&line).unwrap().seed, 10);
    }

    #[test]
    fn mistakes_name_the_flag() {
        for (line, expected) in [
            (
                ["get", "--rate", "0"],
                "--rate 0: phases.run.rate: the rate is 0",
            ),
            (["get", "--rate", "-5"], "--rate -5: phases.run.rate: "),
            (
                ["get", "--duration", "5"],
                "--duration 5: phases.run.duration: ",
            ),
            (["get", "--set", "seed"], "--set seed: it contains no `=`"),
            (["gett", "--ops", "5"], "did you mean `get`?"),
        ] {
            let error = plan(&line).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
        assert!(parse(&["get", "--rate", "5", "--workers", "3"]).is_err());
    }
}
