//! Many hosts: the flags of a run on agents, and `bucketload agent`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, ValueHint};

use super::values::{duration, listen_address};

/// The agents that carry out the run, and how to find or start them.
#[derive(Clone, Debug, Default, PartialEq, Args)]
#[command(next_help_heading = "Options for many hosts")]
pub(crate) struct AgentsArgs {
    /// Addresses of the agents that carry out the run (`bucketload agent --listen`), such as h1:7400,h2:7400
    ///
    /// This process is the coordinator: it gives each agent its share of the operations, merges
    /// their measurements, and writes the run directory. It prepares and cleans up through its own
    /// connection, so it must reach the target too.
    #[arg(
        long,
        value_name = "HOST:PORT,...",
        value_delimiter = ',',
        conflicts_with = "launch"
    )]
    pub(crate) agents: Vec<String>,

    /// Start the agents: `local:N`, `ssh:HOST,...`, `slurm[:N]`, `mpi[:N]` or `k8s[:N]`
    ///
    /// local:N starts N processes on this machine. ssh:HOST,... starts one per host through ssh, with the
    /// program of --agent-program. slurm:N and mpi:N start N processes through srun or mpirun. Use slurm, mpi
    /// and k8s without a number if the launcher starts this command itself N times (srun -n N bucketload
    /// run ..., mpirun -n N ..., the job of `bucketload k8s`): process 0 is coordinator and agent, the others
    /// are agents.
    #[arg(long, value_name = "HOW")]
    pub(crate) launch: Option<Launch>,

    /// Path of bucketload on the hosts of --launch
    #[arg(long, value_name = "PATH", default_value = "bucketload")]
    pub(crate) agent_program: String,

    /// Address on which the coordinator waits for agents that a scheduler starts (default: every address of this
    /// host)
    #[arg(long, value_name = "ADDRESS", value_parser = listen_address)]
    pub(crate) agents_listen: Option<SocketAddr>,

    /// How long an agent may be silent before it counts as lost; agents give up a silent coordinator after the
    /// same time
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "10s")]
    pub(crate) agent_timeout: Duration,

    /// How long to wait until all agents are connected
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "60s")]
    pub(crate) agents_wait: Duration,

    /// File with the token that coordinator and agents share (default: the environment variable
    /// BUCKETLOAD_AGENT_TOKEN)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) agent_token_file: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) tls: AgentTlsArgs,

    /// The directory of `run --allow-local-writes`, which agents that this command starts may write to as well.
    #[arg(skip)]
    pub(crate) allow_local_writes: Option<PathBuf>,
}

impl AgentsArgs {
    /// Whether the run has agents.
    pub(crate) fn is_distributed(&self) -> bool {
        !self.agents.is_empty() || self.launch.is_some()
    }
}

/// Certificates between coordinator and agents.
#[derive(Clone, Debug, Default, PartialEq, Args)]
pub(crate) struct AgentTlsArgs {
    /// Certificate chain to present to the other side, PEM; the connection is then encrypted and both sides
    /// are authenticated
    #[arg(long, value_name = "FILE", requires_all = ["agent_key", "agent_ca"], value_hint = ValueHint::FilePath)]
    pub(crate) agent_cert: Option<PathBuf>,

    /// Private key of --agent-cert, PEM
    #[arg(long, value_name = "FILE", requires = "agent_cert", value_hint = ValueHint::FilePath)]
    pub(crate) agent_key: Option<PathBuf>,

    /// Authority that must have signed the other side's certificate, PEM
    #[arg(long, value_name = "FILE", requires = "agent_cert", value_hint = ValueHint::FilePath)]
    pub(crate) agent_ca: Option<PathBuf>,
}

/// How agents are started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Launch {
    /// This number of processes on this machine.
    Local(u32),
    /// One per host.
    Ssh(Vec<String>),
    /// By srun; `None` if srun already started this process.
    Slurm(Option<u32>),
    /// By mpirun; `None` if mpirun already started this process.
    Mpi(Option<u32>),
    /// By the job that `bucketload k8s` renders; `Some` waits here for this number of agents.
    Kubernetes(Option<u32>),
}

/// Most agents of a run.
const MOST: u32 = 65_536;

impl FromStr for Launch {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "`{text}` is not a way to start agents; write local:N, ssh:HOST,HOST, slurm, slurm:N, mpi, mpi:N, \
                 k8s or k8s:N"
            )
        };
        let (how, rest) = match text.split_once(':') {
            Some((how, rest)) => (how, Some(rest)),
            None => (text, None),
        };
        let number = |rest: &str| match rest.parse() {
            Ok(n) if (1..=MOST).contains(&n) => Ok(n),
            _ => Err(wrong()),
        };
        Ok(match (how, rest) {
            ("local", Some(rest)) => Self::Local(number(rest)?),
            ("ssh", Some(rest)) => {
                let hosts: Vec<String> = rest.split(',').map(|h| h.trim().to_owned()).collect();
                // ssh would take a leading dash for an option.
                if hosts.iter().any(|h| h.is_empty() || h.starts_with('-')) {
                    return Err(wrong());
                }
                Self::Ssh(hosts)
            }
            ("slurm", rest) => Self::Slurm(rest.map(number).transpose()?),
            ("mpi", rest) => Self::Mpi(rest.map(number).transpose()?),
            ("k8s", rest) => Self::Kubernetes(rest.map(number).transpose()?),
            _ => return Err(wrong()),
        })
    }
}

const AGENT_EXAMPLES: &str = "\
Examples:
  bucketload agent --listen 0.0.0.0:7400 --token-file token
      Serve runs, one after another; on the coordinator:
      bucketload run my.toml --agents h1:7400,h2:7400 --agent-token-file token
  bucketload agent --controller head:7401 --token-file token
      Serve one run of a waiting coordinator (run --launch k8s:2 --agents-listen 0.0.0.0:7401)

Without certificates, the token and the credentials of the target cross the network in clear text.
Use --agent-cert, --agent-key and --agent-ca on networks where others could listen.";

/// Carry out a share of a run for a coordinator on another host
///
/// Credentials and target come from the coordinator and are kept in memory only. An agent that does not
/// hear from its coordinator for the time set by run --agent-timeout stops its load.
#[derive(Clone, Debug, Args)]
#[command(after_help = AGENT_EXAMPLES)]
pub(crate) struct AgentArgs {
    /// Address on which to wait for coordinators, to serve one run after another; PORT alone means loopback
    #[arg(
        long,
        value_name = "ADDRESS",
        value_parser = listen_address,
        required_unless_present_any = ["controller", "stdio"],
        conflicts_with_all = ["controller", "stdio"]
    )]
    pub(crate) listen: Option<SocketAddr>,

    /// Connect to the coordinator at this address and serve its run
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "stdio")]
    pub(crate) controller: Option<String>,

    /// Serve one run over standard input and output, as --launch local and ssh do
    #[arg(long)]
    pub(crate) stdio: bool,

    /// With --listen: exit after one run
    #[arg(long, requires = "listen")]
    pub(crate) once: bool,

    /// Number of this agent (default: the rank from Open MPI, Slurm, PMIx, PMI or Kubernetes)
    #[arg(long, value_name = "N", requires = "controller")]
    pub(crate) rank: Option<u32>,

    /// How long to keep trying to reach the coordinator
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "60s")]
    pub(crate) wait: Duration,

    /// File with the token that coordinator and agents share (default: the environment variable
    /// BUCKETLOAD_AGENT_TOKEN)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) token_file: Option<PathBuf>,

    /// Allow COSBench's operation localwrite to write files below this directory on this machine
    ///
    /// Each agent writes on its own file system: FILES/CONTAINER/OBJECT, where `files` of the workload must be inside
    /// DIR. Without this flag, runs with localwrite are refused. Agents that `run --launch` starts have the directory of
    /// `run --allow-local-writes`.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) allow_local_writes: Option<PathBuf>,

    /// With --listen: print the address as one line of JSON when ready
    #[arg(long, requires = "listen")]
    pub(crate) announce: bool,

    #[command(flatten)]
    pub(crate) tls: AgentTlsArgs,
}

const K8S_EXAMPLE: &str = "\
Example:
  kubectl create secret generic bench-token --from-literal=token=$(head -c 24 /dev/urandom | base64)
  bucketload k8s --name bench --agents 4 --image REGISTRY/bucketload --credentials-secret s3-keys \\
      -- my.toml --target s3://bench --endpoint-url http://store:9000 > bench.yaml
  kubectl apply -f bench.yaml; kubectl logs -f -l batch.kubernetes.io/job-completion-index=0";

/// Print the manifest of a Kubernetes job that carries out a run on several pods
///
/// The manifest is an Indexed Job with a headless Service; pod 0 is the coordinator.
#[derive(Clone, Debug, Args)]
#[command(after_help = K8S_EXAMPLE)]
pub(crate) struct K8sArgs {
    /// Name of the job
    #[arg(long, value_name = "NAME", default_value = "bucketload")]
    pub(crate) name: String,

    /// Namespace (default: the one that kubectl uses)
    #[arg(long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,

    /// Number of pods
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub(crate) agents: u32,

    /// Container image with bucketload as its entry point
    #[arg(long, value_name = "IMAGE")]
    pub(crate) image: String,

    /// Secret whose key `token` holds the agents' token (default: NAME-token)
    #[arg(long, value_name = "NAME")]
    pub(crate) token_secret: Option<String>,

    /// Secret whose keys become environment variables with the target's credentials, such as
    /// AWS_ACCESS_KEY_ID
    #[arg(long, value_name = "NAME")]
    pub(crate) credentials_secret: Option<String>,

    /// PersistentVolumeClaim for the run directory; without one, the directory is lost with the pod and only
    /// the log of pod 0 has the result
    #[arg(long, value_name = "NAME")]
    pub(crate) results_claim: Option<String>,

    /// CPUs of each pod, such as 4
    #[arg(long, value_name = "CPUS")]
    pub(crate) cpu: Option<String>,

    /// Memory of each pod, such as 2Gi
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<String>,

    /// The workload and the flags of `bucketload run`; a workload file becomes a ConfigMap
    #[arg(last = true, required = true, value_name = "RUN ARGUMENTS")]
    pub(crate) run: Vec<String>,
}

/// Print a script for sbatch that carries out a run on several nodes
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "Example:\n  bucketload slurm --nodes 8 --time 1:00:00 -- my.toml --target s3://bench > job.sh && sbatch job.sh"
)]
pub(crate) struct SlurmArgs {
    /// Name of the job
    #[arg(long, value_name = "NAME", default_value = "bucketload")]
    pub(crate) name: String,

    /// Number of nodes, each with one agent
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub(crate) nodes: u32,

    /// Time limit, in Slurm's format
    #[arg(long, value_name = "TIME")]
    pub(crate) time: Option<String>,

    /// Partition
    #[arg(long, value_name = "NAME")]
    pub(crate) partition: Option<String>,

    /// Path of bucketload on the nodes
    #[arg(long, value_name = "PATH", default_value = "bucketload")]
    pub(crate) program: String,

    /// The workload and the flags of `bucketload run`
    #[arg(last = true, required = true, value_name = "RUN ARGUMENTS")]
    pub(crate) run: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::Launch;

    #[test]
    fn ways_to_start_agents() {
        for (text, launch) in [
            ("local:3", Launch::Local(3)),
            ("ssh:a,b", Launch::Ssh(vec!["a".into(), "b".into()])),
            ("slurm", Launch::Slurm(None)),
            ("slurm:4", Launch::Slurm(Some(4))),
            ("mpi", Launch::Mpi(None)),
            ("k8s:2", Launch::Kubernetes(Some(2))),
        ] {
            assert_eq!(text.parse(), Ok(launch), "{text}");
        }
        for text in [
            "",
            "local",
            "local:0",
            "local:x",
            "ssh",
            "ssh:",
            "ssh:-oProxyCommand=x",
            "pbs:2",
        ] {
            assert!(
                text.parse::<Launch>().unwrap_err().contains("local:N"),
                "{text}"
            );
        }
    }
}
