//! What a process learns from the environment set by its launcher: its rank, the number of ranks, and the
//! host of rank 0.
//!
//! | launcher | rank | number of ranks | host of rank 0 |
//! |---|---|---|---|
//! | Open MPI | `OMPI_COMM_WORLD_RANK` | `OMPI_COMM_WORLD_SIZE` | the first host of `SLURM_JOB_NODELIST`, else mpirun's own: `OMPI_MCA_orte_hnp_uri` (4.x), `PMIX_NAMESPACE` `prterun-HOST-PID@1` (5.x) |
//! | Slurm, inside a step | `SLURM_PROCID` | `SLURM_STEP_NUM_TASKS`, `SLURM_NTASKS` | the first host of `SLURM_STEP_NODELIST` |
//! | PMIx | `PMIX_RANK` | unknown | – |
//! | PMI (MPICH) | `PMI_RANK` | `PMI_SIZE` | – |
//! | Kubernetes, Indexed Job | `JOB_COMPLETION_INDEX` | `BUCKETLOAD_AGENTS` | `BUCKETLOAD_CONTROLLER` |
//!
//! The order matters. Under mpirun inside a batch job, processes see Open MPI's variables *and* the
//! launcher's own `SLURM_PROCID`, which is 0 on every first node. Slurm's variables count only with
//! `SLURM_STEP_ID`: a plain program in a batch script has `SLURM_PROCID=0` and the `SLURM_NTASKS` of the
//! allocation, and would wait for peers that never start.

use bucketload_core::generate::rng::mix64;

use super::hosts::expand;
use crate::error::AgentsError;

/// Environment variable with the number of agents, for launchers that do not provide it.
pub const AGENTS_ENV: &str = "BUCKETLOAD_AGENTS";
/// Environment variable with `HOST:PORT` of the coordinator, for launchers that do not provide it.
pub const CONTROLLER_ENV: &str = "BUCKETLOAD_CONTROLLER";

/// First port and size of the range from which rank 0 takes its port. The range lies below the ephemeral
/// ports of Linux, which begin at 32768.
const FIRST_PORT: u16 = 20_000;
const PORTS: u64 = 10_000;

/// The launcher of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Launcher {
    /// `mpirun` of Open MPI.
    OpenMpi,
    /// `srun`.
    Slurm,
    /// Another launcher that speaks PMIx.
    Pmix,
    /// A launcher that speaks PMI, such as MPICH's `mpiexec`.
    Pmi,
    /// A Kubernetes Indexed Job.
    Kubernetes,
}

/// A process's rank among those that were launched together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchedRank {
    /// The launcher.
    pub launcher: Launcher,
    /// The rank, from 0.
    pub rank: u32,
    /// Number of ranks, if the launcher provides it.
    pub size: Option<u32>,
    /// The host of rank 0, if the launcher provides it.
    pub leader: Option<String>,
    /// Port that all ranks compute alike from their common job, if there is one.
    pub port: Option<u16>,
}

/// Reads the environment through `variable`; `None` if no launcher started this process together with
/// others.
///
/// # Errors
/// When a variable has an impossible value.
pub fn detect(
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<LaunchedRank>, AgentsError> {
    let var = |name: &str| variable(name).filter(|value| !value.is_empty());
    let number = |name: &str| -> Result<Option<u32>, AgentsError> {
        match var(name) {
            None => Ok(None),
            Some(text) => text
                .trim()
                .parse()
                .map(Some)
                .map_err(|_| AgentsError::usage(format!("{name}={text} is not a number"))),
        }
    };
    let size = |names: &[&str]| -> Result<Option<u32>, AgentsError> {
        for name in names.iter().chain(&[AGENTS_ENV]) {
            if let Some(n) = number(name)? {
                return Ok(Some(n));
            }
        }
        Ok(None)
    };
    let first_of = |name: &str| -> Result<Option<String>, AgentsError> {
        match var(name) {
            None => Ok(None),
            Some(list) => Ok(expand(&list)?.into_iter().next()),
        }
    };
    let slurm_job = || {
        let step = var("SLURM_STEP_ID").unwrap_or_default();
        var("SLURM_JOB_ID").map(|job| format!("slurm {job}.{step}"))
    };
    let launched = if let Some(rank) = number("OMPI_COMM_WORLD_RANK")? {
        let namespace = var("PMIX_NAMESPACE");
        let leader = match first_of("SLURM_JOB_NODELIST")? {
            Some(host) => Some(host),
            None => mpirun_host(
                var("OMPI_MCA_orte_hnp_uri").as_deref(),
                namespace.as_deref(),
            ),
        };
        // Under mpirun the Slurm step differs from node to node, so the common job identifies the run.
        let job = namespace.or_else(|| var("SLURM_JOB_ID"));
        LaunchedRank {
            launcher: Launcher::OpenMpi,
            rank,
            size: size(&["OMPI_COMM_WORLD_SIZE"])?,
            leader,
            port: job.map(|job| port_of(&job)),
        }
    } else if let (Some(rank), true) = (number("SLURM_PROCID")?, var("SLURM_STEP_ID").is_some()) {
        LaunchedRank {
            launcher: Launcher::Slurm,
            rank,
            size: size(&["SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"])?,
            leader: first_of("SLURM_STEP_NODELIST")?,
            port: slurm_job().map(|job| port_of(&job)),
        }
    } else if let Some(rank) = number("PMIX_RANK")? {
        LaunchedRank {
            launcher: Launcher::Pmix,
            rank,
            size: size(&[])?,
            leader: None,
            port: var("PMIX_NAMESPACE").map(|job| port_of(&job)),
        }
    } else if let Some(rank) = number("PMI_RANK")? {
        LaunchedRank {
            launcher: Launcher::Pmi,
            rank,
            size: size(&["PMI_SIZE"])?,
            leader: None,
            port: var("PMI_JOBID").map(|job| port_of(&job)),
        }
    } else if let Some(rank) = number("JOB_COMPLETION_INDEX")? {
        LaunchedRank {
            launcher: Launcher::Kubernetes,
            rank,
            size: size(&[])?,
            leader: None,
            port: None,
        }
    } else {
        return Ok(None);
    };
    if let Some(size) = launched.size
        && launched.rank >= size
    {
        return Err(AgentsError::usage(format!(
            "the launcher says that this is process {} of {size}",
            launched.rank
        )));
    }
    Ok(Some(launched))
}

/// The host of mpirun: `ID.0;tcp://IP,IP:PORT;…` of Open MPI 4, `prterun-HOST-PID@1` of 5.
fn mpirun_host(uri: Option<&str>, namespace: Option<&str>) -> Option<String> {
    if let Some(uri) = uri {
        let tcp = uri
            .split(';')
            .find_map(|part| part.strip_prefix("tcp://"))?;
        let addresses = tcp.rsplit_once(':').map_or(tcp, |(addresses, _)| addresses);
        return addresses.split(',').next().map(str::to_owned);
    }
    let namespace = namespace?.strip_prefix("prterun-")?;
    let (namespace, _) = namespace.split_once('@')?;
    let (host, pid) = namespace.rsplit_once('-')?;
    let is_pid = !pid.is_empty() && pid.bytes().all(|b| b.is_ascii_digit());
    (is_pid && !host.is_empty()).then(|| host.to_owned())
}

/// The port on which rank 0 of job `job` listens. Every process computes the same port without communication.
/// FNV-1a (64 bits) and a finaliser spread jobs over the range, so two jobs on one host rarely collide.
#[must_use]
pub fn port_of(job: &str) -> u16 {
    let hash = job.bytes().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    FIRST_PORT + (mix64(hash) % PORTS) as u16
}

#[cfg(test)]
mod tests;
