//! What a process learns from the environment that its launcher gave it: its number, how many there
//! are, and where number 0 can be found.
//!
//! | launcher | number | how many | number 0 is on |
//! |---|---|---|---|
//! | Open MPI | `OMPI_COMM_WORLD_RANK` | `OMPI_COMM_WORLD_SIZE` | the first host of `SLURM_JOB_NODELIST`, else mpirun's own: `OMPI_MCA_orte_hnp_uri` (4.x), `PMIX_NAMESPACE` `prterun-HOST-PID@1` (5.x) |
//! | Slurm, inside a step | `SLURM_PROCID` | `SLURM_STEP_NUM_TASKS`, `SLURM_NTASKS` | the first host of `SLURM_STEP_NODELIST` |
//! | PMIx | `PMIX_RANK` | not told | – |
//! | PMI (MPICH) | `PMI_RANK` | `PMI_SIZE` | – |
//! | Kubernetes, Indexed Job | `JOB_COMPLETION_INDEX` | `BUCKETLOAD_AGENTS` | `BUCKETLOAD_CONTROLLER` |
//!
//! The order matters. Under mpirun inside a batch job, processes see Open MPI's variables *and* the
//! launcher's own `SLURM_PROCID`, which is 0 on every first node. Slurm's variables count only with
//! `SLURM_STEP_ID`: a plain program in a batch script has `SLURM_PROCID=0` and `SLURM_NTASKS` of the
//! allocation, and would wait for peers that never come.

use bucketload_core::generate::rng::mix64;

use super::hosts::expand;
use crate::error::AgentsError;

/// Number of agents, where the launcher does not tell it.
pub const AGENTS_ENV: &str = "BUCKETLOAD_AGENTS";
/// `HOST:PORT` of the coordinator, where the launcher does not tell it.
pub const CONTROLLER_ENV: &str = "BUCKETLOAD_CONTROLLER";

/// First port of the range from which number 0 takes one, and the length of the range. Below the
/// ephemeral ports of Linux, which begin at 32768.
const FIRST_PORT: u16 = 20_000;
const PORTS: u64 = 10_000;

/// Who has started a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Launcher {
    /// `mpirun` of Open MPI.
    OpenMpi,
    /// `srun`.
    Slurm,
    /// Something that speaks PMIx.
    Pmix,
    /// Something that speaks PMI, such as MPICH's `mpiexec`.
    Pmi,
    /// An Indexed Job.
    Kubernetes,
}

/// A process's place among those that were started together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Who has started it.
    pub launcher: Launcher,
    /// Its number, from 0.
    pub rank: u32,
    /// How many there are, where that is told.
    pub size: Option<u32>,
    /// The host on which number 0 runs, where that is told.
    pub leader: Option<String>,
    /// Port that all of them can compute, where they have a job in common.
    pub port: Option<u16>,
}

/// Reads the environment (`variable` looks one up); `None` when this process was not started together
/// with others.
///
/// # Errors
/// When a variable says something that cannot be.
pub fn detect(variable: &dyn Fn(&str) -> Option<String>) -> Result<Option<Place>, AgentsError> {
    let var = |name: &str| variable(name).filter(|value| !value.is_empty());
    let number = |name: &str| -> Result<Option<u32>, AgentsError> {
        match var(name) {
            None => Ok(None),
            Some(text) => text
                .trim()
                .parse()
                .map(Some)
                .map_err(|_| AgentsError::usage(format!("{name}={text} is no number"))),
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
    let place = if let Some(rank) = number("OMPI_COMM_WORLD_RANK")? {
        let namespace = var("PMIX_NAMESPACE");
        let leader = match first_of("SLURM_JOB_NODELIST")? {
            Some(host) => Some(host),
            None => mpirun_host(
                var("OMPI_MCA_orte_hnp_uri").as_deref(),
                namespace.as_deref(),
            ),
        };
        // The step of a launcher under mpirun differs from node to node: the job is what they share.
        let job = namespace.or_else(|| var("SLURM_JOB_ID"));
        Place {
            launcher: Launcher::OpenMpi,
            rank,
            size: size(&["OMPI_COMM_WORLD_SIZE"])?,
            leader,
            port: job.map(|job| port_of(&job)),
        }
    } else if let (Some(rank), true) = (number("SLURM_PROCID")?, var("SLURM_STEP_ID").is_some()) {
        Place {
            launcher: Launcher::Slurm,
            rank,
            size: size(&["SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"])?,
            leader: first_of("SLURM_STEP_NODELIST")?,
            port: slurm_job().map(|job| port_of(&job)),
        }
    } else if let Some(rank) = number("PMIX_RANK")? {
        Place {
            launcher: Launcher::Pmix,
            rank,
            size: size(&[])?,
            leader: None,
            port: var("PMIX_NAMESPACE").map(|job| port_of(&job)),
        }
    } else if let Some(rank) = number("PMI_RANK")? {
        Place {
            launcher: Launcher::Pmi,
            rank,
            size: size(&["PMI_SIZE"])?,
            leader: None,
            port: var("PMI_JOBID").map(|job| port_of(&job)),
        }
    } else if let Some(rank) = number("JOB_COMPLETION_INDEX")? {
        Place {
            launcher: Launcher::Kubernetes,
            rank,
            size: size(&[])?,
            leader: None,
            port: None,
        }
    } else {
        return Ok(None);
    };
    if let Some(size) = place.size
        && place.rank >= size
    {
        return Err(AgentsError::usage(format!(
            "the launcher says that this is process {} of {size}",
            place.rank
        )));
    }
    Ok(Some(place))
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

/// The port at which number 0 of job `job` listens: the same on every process without a word between
/// them. FNV-1a (64 bits) and a finaliser spread jobs over the range, so that two on one host rarely meet.
#[must_use]
pub fn port_of(job: &str) -> u16 {
    let hash = job.bytes().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    FIRST_PORT + (mix64(hash) % PORTS) as u16
}

#[cfg(test)]
mod tests;
