//! Runs on many hosts: real Slurm, real Open MPI, a thousand simulated agents, and the schema that
//! Kubernetes publishes.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::agents::{TOKEN, agents_json, end, end_within};
use crate::own::{Serve, TempDir, example, program};
use crate::sh::{Result, cmd, need_programs, output, root, run, step};

/// `srun -n 4` in a real Slurm cluster of four nodes on this machine.
pub(crate) fn slurm() -> Result {
    let home = TempDir::new("slurm")?;
    let script = root()
        .join("servers/slurm.sh")
        .to_string_lossy()
        .into_owned();
    let slurm = |args: &[&str]| {
        let mut command = cmd(&script, args);
        command.env("SERVERS_HOME", home.path());
        command
    };
    let outcome = run(slurm(&["start"]).stdout(Stdio::null())).and_then(|()| {
        let env = output(&mut slurm(&["env"]))?;
        let conf = env
            .lines()
            .find_map(|line| line.strip_prefix("SLURM_CONF="));
        let conf = conf.ok_or("slurm.sh names no SLURM_CONF")?.to_owned();
        step("srun -n 4 bucketload run", || {
            let program = program()?.to_string_lossy().into_owned();
            spmd(&["srun", "-n", "4", &program], "slurm", Some(&conf))
        })?;
        step("bucketload run --launch slurm:4", || {
            let program = program()?.to_string_lossy().into_owned();
            spmd(&[&program], "slurm:4", Some(&conf))
        })
    });
    let stopped = run(&mut slurm(&["clean"]));
    outcome.and(stopped)
}

/// `mpirun -n 4` of Open MPI.
pub(crate) fn mpi() -> Result {
    need_programs(&[("mpirun", "openmpi-bin")])?;
    let program = program()?.to_string_lossy().into_owned();
    let mpirun = [
        "mpirun",
        "--allow-run-as-root",
        "--oversubscribe",
        "-n",
        "4",
    ];
    spmd(&[&mpirun[..], &[&program]].concat(), "mpi", None)
}

/// Starts a run by a scheduler and checks that four agents have carried it out.
fn spmd(launcher: &[&str], launch: &str, slurm_conf: Option<&str>) -> Result {
    let dir = TempDir::new("spmd")?;
    let server = Serve::start(&["--store", "memory", "--threads", "1"])?;
    let (out, url) = (dir.file("run"), format!("http://{}", server.endpoint().0));
    let mut args = launcher[1..].to_vec();
    args.extend([
        "run",
        "get",
        "--target",
        "s3://bench/x",
        "--create-bucket",
        "--endpoint-url",
        &url,
        "--objects",
        "40",
        "--size",
        "1KiB",
        "--rate",
        "100",
        "--duration",
        "3s",
        "--no-calibration",
        "--launch",
        launch,
        "--out",
        &out,
    ]);
    let mut command = cmd(launcher[0], args);
    command.envs(server.aws_env()).env(TOKEN.0, TOKEN.1);
    for name in ["AWS_CA_BUNDLE", "AWS_PROFILE"] {
        command.env_remove(name);
    }
    if let Some(conf) = slurm_conf {
        command.env("SLURM_CONF", conf);
    }
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let outcome = end((child.map_err(|e| e.to_string())?, Instant::now()))?;
    outcome.expect(0, &[])?;
    let agents = agents_json(&out).unwrap_or_default();
    let done = agents
        .iter()
        .filter(|a| a["totals"]["ok"].as_u64() > Some(0))
        .count();
    match (agents.len(), done) {
        (4, 4) => Ok(()),
        _ => Err(format!("{agents:?}\n{}", outcome.said())),
    }
}

/// A thousand simulated agents with eight classes: the coordinator needs less than a core and a GiB.
pub(crate) fn scale() -> Result {
    const SIMULATED: &str = "1000";
    const PATIENCE: Duration = Duration::from_secs(900);
    let dir = TempDir::new("scale")?;
    let out = dir.file("run");
    let port = crate::server::free_port()?.to_string();
    let simulated = example("bucketload-agents", "simulated_agents")?;
    let program = program()?;
    let launch = format!("k8s:{SIMULATED}");
    let mut coordinator = cmd(
        &program.to_string_lossy(),
        [
            "run",
            "get",
            "--target",
            "null:",
            "--objects",
            "1000",
            "--rate",
            "1000",
            "--duration",
            "40s",
            "--set",
            "phases.run.max-in-flight=100000",
            "--no-calibration",
            "--launch",
            &launch,
            "--agents-listen",
            &port,
            // What is measured is the cost. A build without optimisation on a busy machine takes minutes to
            // introduce a thousand, all of whom are simulated by one thread.
            "--agent-timeout",
            "240s",
            "--agents-wait",
            "240s",
            "--out",
            &out,
        ],
    );
    let coordinator = coordinator
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| e.to_string())?;
    let begun = Instant::now();
    let address = format!("127.0.0.1:{port}");
    let version = env!("CARGO_PKG_VERSION");
    let mut agents = cmd(&simulated.to_string_lossy(), [&address, SIMULATED, version])
        .spawn()
        .map_err(|e| e.to_string())?;
    let stat = format!("/proc/{}", coordinator.id());
    // User and system time in ticks, and resident pages.
    let usage = || -> Option<(u64, u64)> {
        let text = std::fs::read_to_string(format!("{stat}/stat")).ok()?;
        let fields: Vec<&str> = text.rsplit_once(") ")?.1.split(' ').collect();
        let ticks = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
        Some((ticks, fields.get(21)?.parse().ok()?))
    };
    // The same with the number of intervals, each of a second, that were merged until then.
    let steady = |from: u64| -> Result<(u64, u64, u64)> {
        while begun.elapsed() < PATIENCE {
            let told = std::fs::read_to_string(Path::new(&out).join("intervals.jsonl"));
            let told = told.map_or(0, |text| text.lines().count() as u64);
            if told >= from {
                let (ticks, pages) = usage().ok_or("the coordinator is gone")?;
                return Ok((ticks, pages, told));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Err(format!("there were no {from} intervals"))
    };
    let measured = steady(5).and_then(|first| Ok((first, steady(35)?)));
    let outcome = end_within((coordinator, begun), PATIENCE);
    let _ = agents.wait();
    let ((ticks0, _, told0), (ticks1, pages, told1)) = match (measured, &outcome) {
        (Ok(measured), _) => measured,
        (Err(error), Ok(ended)) => return Err(format!("{error}: {}", ended.said())),
        (Err(error), Err(other)) => return Err(format!("{error}; {other}")),
    };
    outcome?.expect(0, &[])?;
    // SAFETY: sysconf has no preconditions; it only reads configuration values.
    let (tick, page) = unsafe {
        (
            libc::sysconf(libc::_SC_CLK_TCK),
            libc::sysconf(libc::_SC_PAGESIZE),
        )
    };
    // Per second of the run, whatever else the machine has to do meanwhile.
    let cores = (ticks1 - ticks0) as f64 / tick as f64 / (told1 - told0).max(1) as f64;
    let mib = pages as f64 * page as f64 / f64::from(1 << 20);
    eprintln!("{SIMULATED} agents: {cores:.2} cores, {mib:.0} MiB");
    match cores < 1.0 && mib < 1024.0 {
        true => Ok(()),
        false => Err(format!(
            "{cores:.2} cores and {mib:.0} MiB; allowed are 1 and 1024"
        )),
    }
}

/// The manifest against the schema that Kubernetes publishes.
pub(crate) fn kubernetes() -> Result {
    let dir = TempDir::new("k8s")?;
    let manifest = dir.file("job.yaml");
    let workload = dir.file("load.toml");
    let program = program()?.to_string_lossy().into_owned();
    let shown = output(&mut cmd(&program, ["show", "get"]))?;
    std::fs::write(&workload, shown).map_err(|e| e.to_string())?;
    let text = output(&mut cmd(
        &program,
        [
            "k8s",
            "--name",
            "bench",
            "--namespace",
            "load",
            "--agents",
            "4",
            "--image",
            "registry/bucketload:1",
            "--credentials-secret",
            "s3",
            "--results-claim",
            "results",
            "--cpu",
            "4",
            "--memory",
            "2Gi",
            "--",
            &workload,
            "--target",
            "s3://bench/x",
            "--endpoint-url",
            "http://store:9000",
        ],
    ))?;
    std::fs::write(&manifest, text).map_err(|e| e.to_string())?;
    let script = root().join("servers/kubernetes-schema.sh");
    run(&mut cmd(&script.to_string_lossy(), [&manifest]))
}
