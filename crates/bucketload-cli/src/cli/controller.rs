//! `bucketload controller` and the commands that talk to one.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use bucketload_console::agents::AgentAddress;
use clap::{Args, ValueHint};

use super::agents::AgentTlsArgs;
use super::values::{duration, listen_address};

/// Default address; the port is that of COSBench's controller.
const LISTEN: &str = "127.0.0.1:19088";
/// Default controller of the commands that talk to one.
const URL: &str = "http://127.0.0.1:19088";

const EXAMPLES: &str = "\
Examples:
  bucketload controller
      Queue and web console at http://127.0.0.1:19088
  bucketload controller --listen 0.0.0.0:19088 --token-file token --tls-cert cert.pem --tls-key key.pem
      Reachable from the network, which takes a token and TLS
  openssl rand -hex 32 > token
      Create a token
  bucketload controller --allow-root /mnt/data
      Also accept targets that are directories below /mnt/data
  bucketload controller --agents h1:7400,h2:7400 --agent-token-file agents
      Run every workload on two hosts, each with `bucketload agent --listen`";

/// Queue workloads, run them one after another, and serve the web console
///
/// Each workload runs in its own process (`bucketload run …`), with a run directory below --data.
/// The queue survives a restart of the controller; an interrupted run keeps what was measured.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ControllerArgs {
    /// Address on which the console listens; PORT alone means loopback
    #[arg(long, value_name = "ADDRESS", default_value = LISTEN, value_parser = listen_address)]
    pub(crate) listen: SocketAddr,

    /// Directory of the queue and of all runs; created if it does not exist
    #[arg(long, value_name = "DIR", default_value = "bucketload-controller", value_hint = ValueHint::DirPath)]
    pub(crate) data: PathBuf,

    /// File with the token that browsers and programs must present (first line, at least 16 characters)
    ///
    /// The default is the environment variable BUCKETLOAD_TOKEN. Without a token, the console listens on loopback only.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) token_file: Option<PathBuf>,

    /// Certificate chain of the console, PEM
    #[arg(long, value_name = "FILE", requires = "tls_key", value_hint = ValueHint::FilePath)]
    pub(crate) tls_cert: Option<PathBuf>,

    /// Private key of the certificate, PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert", value_hint = ValueHint::FilePath)]
    pub(crate) tls_key: Option<PathBuf>,

    /// Listen on addresses other than loopback without TLS; anyone who sees the traffic sees the token
    #[arg(long)]
    pub(crate) allow_plain_http: bool,

    /// Host name by which browsers may reach the console, besides addresses and localhost (may be repeated)
    #[arg(long = "host", value_name = "NAME", value_hint = ValueHint::Hostname)]
    pub(crate) hosts: Vec<String>,

    /// Directory of this machine below which targets of workloads may lie, such as file:///DIR/x (may be repeated)
    ///
    /// Without it, workloads whose target is a directory (file:// or serve://) are refused.
    #[arg(long = "allow-root", value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) allow_roots: Vec<PathBuf>,

    /// Addresses of the agents that carry out every workload of the queue (`bucketload agent --listen`)
    ///
    /// Each run is `bucketload run … --agents …`. The console checks the state of the agents while nothing runs.
    #[arg(long, value_name = "HOST:PORT,...", value_delimiter = ',')]
    pub(crate) agents: Vec<AgentAddress>,

    /// File with the token that this controller and its agents share (default: the environment variable
    /// BUCKETLOAD_AGENT_TOKEN)
    #[arg(long, value_name = "FILE", requires = "agents", value_hint = ValueHint::FilePath)]
    pub(crate) agent_token_file: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) agent_tls: AgentTlsArgs,

    /// How long a cancelled run may take to delete its objects before it is killed
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    pub(crate) grace: Duration,
}

/// How to reach a controller.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Controller options")]
pub(crate) struct ReachArgs {
    /// URL of the controller
    #[arg(long, value_name = "URL", env = "BUCKETLOAD_CONTROLLER", default_value = URL, value_hint = ValueHint::Url)]
    pub(crate) controller: String,

    /// File with the controller's token (default: the environment variable BUCKETLOAD_TOKEN)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) token_file: Option<PathBuf>,

    /// Certificates to trust instead of the system's, PEM
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) ca_bundle: Option<PathBuf>,
}

const SUBMIT_EXAMPLES: &str = "\
Examples:
  bucketload submit workload.xml
  bucketload submit online-service -- --duration 60s --rate 500/s
  bucketload submit my.toml -- --target s3://bench --endpoint-url http://store:9000 --profile lab";

/// Submit a workload to a controller: a file (TOML, or COSBench's XML) or a built-in workload
#[derive(Clone, Debug, Args)]
#[command(after_help = SUBMIT_EXAMPLES)]
pub(crate) struct SubmitArgs {
    /// Workload file, or name of a built-in workload
    #[arg(value_name = "WORKLOAD", value_hint = ValueHint::FilePath)]
    pub(crate) workload: String,

    #[command(flatten)]
    pub(crate) reach: ReachArgs,

    /// Flags of `bucketload run` for this workload, as far as the controller passes them on
    #[arg(last = true, value_name = "FLAGS", allow_hyphen_values = true)]
    pub(crate) flags: Vec<String>,
}

/// Cancel a workload of a controller
#[derive(Clone, Debug, Args)]
pub(crate) struct CancelArgs {
    /// Identifier, such as w3
    #[arg(value_name = "ID")]
    pub(crate) id: String,

    #[command(flatten)]
    pub(crate) reach: ReachArgs,
}

/// Show the workloads of a controller, or one of them
#[derive(Clone, Debug, Args)]
pub(crate) struct InfoArgs {
    /// Identifier, such as w3
    #[arg(value_name = "ID")]
    pub(crate) id: Option<String>,

    #[command(flatten)]
    pub(crate) reach: ReachArgs,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const TOP_EXAMPLES: &str = "\
Examples:
  bucketload top bucketload-runs/get-20260131T235959Z
      A run in another terminal, or a finished run
  bucketload top
      The current run of the controller on this machine";

/// Watch a run in full screen: phases, classes, charts, agents
///
/// Without a terminal, prints a line every ten seconds until the run is over.
#[derive(Clone, Debug, Args)]
#[command(after_help = TOP_EXAMPLES)]
pub(crate) struct TopArgs {
    /// Run directory (default: the current run of the controller)
    #[arg(value_name = "RUN-DIR", value_hint = ValueHint::DirPath)]
    pub(crate) directory: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) reach: ReachArgs,
}
