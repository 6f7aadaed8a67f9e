//! Runs on many hosts: real Slurm, real Open MPI, a thousand simulated agents, and Kubernetes' published schema.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;

use super::agents::{DEADLINE, TOKEN, agents_json};
use crate::files::{self, TempDir};
use crate::process::{Process, wait_until};
use crate::program::{Serve, bucketload, example, program, quoted, whole};
use crate::server::{free_port, parse_env};
use crate::sh::{Result, cmd, ensure, line, need_programs, output, run, script, step};

/// `srun -n 4` in a real Slurm cluster of four nodes on this machine.
pub(crate) fn slurm() -> Result {
    let home = TempDir::new("slurm")?;
    let slurm = |verb: &str| {
        let mut command = script("slurm", verb);
        command.env("SERVERS_HOME", home.path());
        command
    };
    let outcome = run(slurm("start").stdout(Stdio::null())).and_then(|()| {
        let env = parse_env(&output(&mut slurm("env"))?);
        let conf = env
            .get("SLURM_CONF")
            .ok_or("slurm.sh names no SLURM_CONF")?;
        step("srun -n 4 bucketload run", || {
            spmd("srun -n 4", "slurm", Some(conf))
        })?;
        step("bucketload run --launch slurm:4", || {
            spmd("", "slurm:4", Some(conf))
        })
    });
    let stopped = run(&mut slurm("clean"));
    outcome.and(stopped)
}

/// `mpirun -n 4` of Open MPI.
pub(crate) fn mpi() -> Result {
    need_programs(&[("mpirun", "openmpi-bin")])?;
    spmd(
        "mpirun --allow-run-as-root --oversubscribe -n 4",
        "mpi",
        None,
    )
}

/// Starts a run through a scheduler and checks that four agents carried it out.
fn spmd(launcher: &str, launch: &str, slurm_conf: Option<&str>) -> Result {
    let dir = TempDir::new("spmd")?;
    let server = Serve::start("--store memory --threads 1")?;
    let (out, url, program) = (dir.file("run"), server.url(), quoted(program()?)?);
    let mut command = line(&format!(
        "{launcher} {program} run get --target s3://bench/x --create-bucket --endpoint-url {url} --objects 40 \
         --size 1KiB --rate 100 --duration 3s --no-calibration --launch {launch} --out {out}"
    ));
    command.envs(server.aws_env()).env(TOKEN.0, TOKEN.1);
    for name in ["AWS_CA_BUNDLE", "AWS_PROFILE"] {
        command.env_remove(name);
    }
    if let Some(conf) = slurm_conf {
        command.env("SLURM_CONF", conf);
    }
    let outcome = Process::recorded(&mut command)?.end(DEADLINE)?;
    outcome.expect_code(0)?;
    let agents = agents_json(&out).unwrap_or_default();
    let worked = |agent: &&Value| whole(&agent["totals"]["ok"]) > 0;
    let done = agents.iter().filter(worked).count();
    ensure(agents.len() == 4 && done == 4, || {
        format!("{agents:?}\n{}", outcome.said())
    })
}

/// A thousand simulated agents with eight classes: the coordinator must need less than one core and one GiB.
pub(crate) fn scale() -> Result {
    const SIMULATED: &str = "1000";
    const PATIENCE: Duration = Duration::from_secs(900);
    let dir = TempDir::new("scale")?;
    let out = dir.file("run");
    let port = free_port()?.to_string();
    let simulated = example("simulated_agents")?;
    // Only the cost is measured. An unoptimised build on a busy machine takes minutes to register a thousand agents,
    // which one thread simulates.
    let coordinator = Process::recorded(&mut bucketload(&format!(
        "run get --target null: --objects 1000 --rate 1000 --duration 40s --set phases.run.max-in-flight=100000 \
         --no-calibration --launch k8s:{SIMULATED} --agents-listen {port} --agent-timeout 240s --agents-wait 240s \
         --out {out}"
    ))?)?;
    let address = format!("127.0.0.1:{port}");
    let version = env!("CARGO_PKG_VERSION");
    let args = [&address, SIMULATED, version];
    let agents = Process::start(&mut cmd(&simulated.to_string_lossy(), args))?;
    let stat = format!("/proc/{}", coordinator.child.id());
    // User and system time in ticks, and resident pages.
    let usage = || -> Option<(u64, u64)> {
        let text = files::read(format!("{stat}/stat")).ok()?;
        let fields: Vec<&str> = text.rsplit_once(") ")?.1.split(' ').collect();
        let ticks = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
        Some((ticks, fields.get(21)?.parse().ok()?))
    };
    // The same, with the number of one-second intervals merged so far.
    let steady = |from: u64| -> Result<(u64, u64, u64)> {
        let intervals = Path::new(&out).join("intervals.jsonl");
        wait_until(&format!("{from} intervals"), PATIENCE, || {
            Ok(files::lines(&intervals) as u64 >= from)
        })?;
        let (ticks, pages) = usage().ok_or("the coordinator is gone")?;
        Ok((ticks, pages, files::lines(&intervals) as u64))
    };
    let measured = steady(5).and_then(|first| Ok((first, steady(35)?)));
    let outcome = coordinator.end(PATIENCE);
    drop(agents);
    let ((ticks0, _, told0), (ticks1, pages, told1)) = match (measured, &outcome) {
        (Ok(measured), _) => measured,
        (Err(error), Ok(ended)) => return Err(format!("{error}: {}", ended.said())),
        (Err(error), Err(other)) => return Err(format!("{error}; {other}")),
    };
    outcome?.expect_code(0)?;
    // SAFETY: sysconf has no preconditions; it only reads configuration values.
    let (tick, page) = unsafe {
        (
            libc::sysconf(libc::_SC_CLK_TCK),
            libc::sysconf(libc::_SC_PAGESIZE),
        )
    };
    // Relative to seconds of the run, so that other load on the machine does not matter.
    let cores = (ticks1 - ticks0) as f64 / tick as f64 / (told1 - told0).max(1) as f64;
    let mib = pages as f64 * page as f64 / f64::from(1 << 20);
    eprintln!("{SIMULATED} agents: {cores:.2} cores, {mib:.0} MiB");
    ensure(cores < 1.0 && mib < 1024.0, || {
        format!("{cores:.2} cores and {mib:.0} MiB; the limits are 1 and 1024")
    })
}

/// Checks the manifest against Kubernetes' published schema.
pub(crate) fn kubernetes() -> Result {
    let dir = TempDir::new("k8s")?;
    let (manifest, workload) = (dir.file("job.yaml"), dir.file("load.toml"));
    files::write(&workload, output(&mut bucketload("show get")?)?)?;
    let text = output(&mut bucketload(&format!(
        "k8s --name bench --namespace load --agents 4 --image registry/bucketload:1 --credentials-secret s3 \
         --results-claim results --cpu 4 --memory 2Gi -- {workload} --target s3://bench/x \
         --endpoint-url http://store:9000"
    ))?)?;
    files::write(&manifest, text)?;
    run(&mut script("kubernetes-schema", &manifest))
}
