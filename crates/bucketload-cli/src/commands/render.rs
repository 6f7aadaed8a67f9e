//! `bucketload k8s` and `bucketload slurm`: input for a scheduler, for a run on many hosts.

use std::path::Path;

use bucketload_agents::launch::batch::Batch;
use bucketload_agents::launch::kubernetes::Job;
use clap::Parser as _;

use crate::cli::agents::{K8sArgs, SlurmArgs};
use crate::cli::run::RunArgs;
use crate::cli::{Cli, Command};
use crate::commands::docs::print;
use crate::distributed::broken;
use crate::distributed::fleet::PORT;
use crate::exit::{Exit, Failure};
use crate::files;

/// Prints the manifest of a Kubernetes job.
pub(crate) fn kubernetes(args: &K8sArgs) -> Result<Exit, Failure> {
    let parsed = check(&args.run)?;
    let mut arguments = args.run.clone();
    let path = Path::new(&parsed.workload);
    let workload = match path.file_name().filter(|_| path.is_file()) {
        None => None,
        Some(name) => {
            let contents = files::read(path)?;
            let name = name.to_string_lossy().into_owned();
            for word in arguments
                .iter_mut()
                .filter(|word| **word == parsed.workload)
            {
                *word = format!("/workload/{name}");
            }
            Some((name, contents))
        }
    };
    let job = Job {
        token_secret: args
            .token_secret
            .clone()
            .unwrap_or_else(|| format!("{}-token", args.name)),
        name: args.name.clone(),
        namespace: args.namespace.clone(),
        agents: args.agents,
        image: args.image.clone(),
        credentials_secret: args.credentials_secret.clone(),
        results_claim: args.results_claim.clone(),
        cpu: args.cpu.clone(),
        memory: args.memory.clone(),
        port: PORT,
        workload,
        arguments,
    };
    print(job.render().map_err(broken)?.as_bytes())?;
    Ok(Exit::Ok)
}

/// Prints a script for sbatch.
pub(crate) fn slurm(args: &SlurmArgs) -> Result<Exit, Failure> {
    check(&args.run)?;
    let batch = Batch {
        name: args.name.clone(),
        nodes: args.nodes,
        time: args.time.clone(),
        partition: args.partition.clone(),
        program: args.program.clone(),
        arguments: args.run.clone(),
    };
    print(batch.render().as_bytes())?;
    Ok(Exit::Ok)
}

/// Refuses arguments that `bucketload run` would refuse on every host, and arguments that the rendered job sets itself.
fn check(arguments: &[String]) -> Result<RunArgs, Failure> {
    let words = ["bucketload", "run"].map(str::to_owned).into_iter();
    let parsed = Cli::try_parse_from(words.chain(arguments.iter().cloned()))
        .map_err(|e| Failure::usage(format!("the arguments of the run: {e}")))?;
    let Command::Run(run) = parsed.command else {
        return Err(Failure::usage(
            "the arguments are not those of `bucketload run`",
        ));
    };
    if run.agents.is_distributed() || run.output.out.is_some() {
        return Err(Failure::usage(
            "the job sets --agents, --launch and --out itself; remove them",
        ));
    }
    let named = match run.target.target.as_deref() {
        Some(target) => !target.starts_with("mem") && !target.starts_with("serve:"),
        // The workload file may name a target.
        None => Path::new(&run.workload).is_file(),
    };
    if !named {
        return Err(Failure::usage(
            "--target: name a service that every host can reach, such as s3://BUCKET/PREFIX",
        ));
    }
    Ok(*run)
}
