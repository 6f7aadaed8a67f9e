//! `bucketload serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use bucketload_server::Quirk;
use bucketload_workload::spec::closest;
use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Args, ValueHint};

use super::values::{CoreList, listen_address, size};

const EXAMPLES: &str = "\
Examples:
  BUCKETLOAD_SERVE_ACCESS_KEY=id BUCKETLOAD_SERVE_SECRET_KEY=secret bucketload serve
  bucketload serve --store posix:/srv/objects --fsync --listen 0.0.0.0:9000
  bucketload serve --store null --fault 'delay,dist=lognormal(mean=5ms,cv=1)' --fault status=503,prob=0.01

A fault rule is KIND,NAME=VALUE,...; kinds are delay, queue, stall, slow, status, reset, full,
truncate, corrupt, stale, lost, torn, resurrect and stale-list. The settings every=N, prob=P,
op=NAME, prefix=KEY, contains=TEXT and count=N say when a rule applies. A quirk applies always;
`bucketload serve --help` lists them.

Clients sign with the key pair in BUCKETLOAD_SERVE_ACCESS_KEY and BUCKETLOAD_SERVE_SECRET_KEY. If
these are not set, the server generates a random pair and prints it.";

/// Serve an S3 store from memory, a directory, or nothing at all
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ServeArgs {
    /// Where to store objects: memory, posix:DIR, or null (drops writes, makes up reads)
    #[arg(long, value_name = "STORE", default_value = "memory", value_parser = StoreKind::parse)]
    pub(crate) store: StoreKind,

    /// Address to listen on; PORT alone means loopback, port 0 picks a free port
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9000", value_parser = listen_address)]
    pub(crate) listen: SocketAddr,

    /// Serving threads
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: u16,

    /// Certificate chain, PEM; the server then accepts TLS only
    #[arg(long, value_name = "FILE", requires = "tls_key", value_hint = ValueHint::FilePath)]
    pub(crate) tls_cert: Option<PathBuf>,

    /// Private key of the certificate, PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert", value_hint = ValueHint::FilePath)]
    pub(crate) tls_key: Option<PathBuf>,

    /// Inject a fault (may be repeated)
    #[arg(long, value_name = "RULE")]
    pub(crate) fault: Vec<String>,

    /// Differ from S3 in this respect (may be repeated)
    #[arg(long, value_name = "NAME", value_parser = QuirkName, hide_short_help = true)]
    pub(crate) quirk: Vec<Quirk>,

    /// File to create, with a line per answer that a fault delayed: operation, ready_ns, due_ns,
    /// released_ns, key
    #[arg(long, value_name = "FILE", requires = "fault", value_hint = ValueHint::FilePath)]
    pub(crate) fault_log: Option<PathBuf>,

    /// Memory store: most bytes of objects; uploads beyond this are refused
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) memory_limit: Option<u64>,

    /// Directory store: acknowledge a write only when it is on stable storage
    #[arg(long)]
    pub(crate) fsync: bool,

    /// Null store: size of the objects that reads return
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) null_size: Option<u64>,

    /// Also serve requests without a signature; on loopback only
    #[arg(long)]
    pub(crate) anonymous: bool,

    /// Do not check signatures, because a check takes longer than serving a small object; on loopback only
    #[arg(long, conflicts_with = "anonymous")]
    pub(crate) no_signature_check: bool,

    /// Region that signatures must name
    #[arg(long, value_name = "NAME", default_value = "us-east-1")]
    pub(crate) region: String,

    /// Domain for virtual-host addressing (BUCKET.DOMAIN); path-style addressing still works
    #[arg(long, value_name = "NAME")]
    pub(crate) domain: Option<String>,

    /// Use entity tags that cost nothing to compute, instead of MD5 sums, which clients can check
    #[arg(long)]
    pub(crate) fast_etags: bool,

    /// Answer GET /-/bucketload/stats with counters; needs no signature
    #[arg(long)]
    pub(crate) stats_page: bool,

    /// Cores to run on, such as 2-3
    #[arg(long, value_name = "LIST", value_parser = CoreList::parse)]
    pub(crate) cores: Option<CoreList>,

    /// Print the address as one line of JSON when the server listens
    #[arg(long, hide = true)]
    pub(crate) announce: bool,

    /// Exit when standard input closes
    #[arg(long, hide = true)]
    pub(crate) exit_with_stdin: bool,
}

/// Reads the name of a quirk. The help lists all of them, an error only the nearest.
#[derive(Clone)]
struct QuirkName;

impl TypedValueParser for QuirkName {
    type Value = Quirk;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<Quirk, clap::Error> {
        let read = |name: &str| {
            let unknown = |_| {
                let known = Quirk::ALL.iter().map(|quirk| quirk.name());
                let advice = match closest(name, known) {
                    Some(near) => format!("did you mean `{near}`? "),
                    None => String::new(),
                };
                format!("there is no such quirk; {advice}`bucketload serve --help` lists them")
            };
            name.parse::<Quirk>().map_err(unknown)
        };
        read.parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let named = |quirk: &Quirk| PossibleValue::new(quirk.name()).help(quirk.help());
        Some(Box::new(Quirk::ALL.iter().map(named)))
    }
}

/// Where a server stores objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StoreKind {
    /// Memory.
    Memory,
    /// A directory.
    Posix(PathBuf),
    /// Nothing.
    Null,
}

impl StoreKind {
    fn parse(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "memory" => Ok(Self::Memory),
            None if text == "null" => Ok(Self::Null),
            Some(("posix", directory)) if !directory.is_empty() => {
                Ok(Self::Posix(PathBuf::from(directory)))
            }
            _ => Err(format!(
                "`{text}` is not a store; write memory, posix:DIR or null"
            )),
        }
    }
}

impl ServeArgs {
    /// Refuses flags that do not apply to the store.
    ///
    /// # Errors
    /// The flag, and the store that it is for.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.memory_limit.is_some() && self.store != StoreKind::Memory {
            return Err("--memory-limit is for --store memory; remove it".to_owned());
        }
        if self.fsync && !matches!(self.store, StoreKind::Posix(_)) {
            return Err("--fsync is for --store posix:DIR; remove it".to_owned());
        }
        if self.null_size.is_some() && self.store != StoreKind::Null {
            return Err("--null-size is for --store null; remove it".to_owned());
        }
        let open = [
            ("--anonymous", self.anonymous),
            ("--no-signature-check", self.no_signature_check),
        ];
        if let Some((flag, _)) = open.iter().find(|(_, given)| *given)
            && !self.listen.ip().is_loopback()
        {
            return Err(format!(
                "{flag} would let anyone who can reach {} read and write; listen on loopback, or remove the flag",
                self.listen
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::{Quirk, ServeArgs, StoreKind};
    use crate::cli::{Command, command};

    fn parse(line: &str) -> Result<ServeArgs, String> {
        match command(&format!("bucketload serve {line}"))? {
            Command::Serve(args) => args.check().map(|()| args),
            other => Err(format!("{other:?}")),
        }
    }

    #[test]
    fn a_server_listens_on_loopback_by_default() {
        let args = parse("").unwrap();
        assert_eq!(args.store, StoreKind::Memory);
        assert_eq!(args.listen.to_string(), "127.0.0.1:9000");
        assert_eq!(
            parse("--listen 0.0.0.0:1").unwrap().listen.to_string(),
            "0.0.0.0:1"
        );
    }

    #[test]
    fn quirks_are_known_by_name() {
        let args = parse("--quirk list-unsorted --quirk range-no-416").unwrap();
        assert_eq!(args.quirk, [Quirk::ListUnsorted, Quirk::RangeNo416]);
        let refused = parse("--quirk list-unsorte").unwrap_err();
        assert!(refused.contains("`list-unsorted`?"), "{refused}");
        let refused = parse("--quirk nonsense").unwrap_err();
        assert!(refused.contains("--help` lists them"), "{refused}");
        let help = command("bucketload serve --help").unwrap_err();
        for quirk in Quirk::ALL {
            assert!(help.contains(quirk.name()), "{help}");
        }
    }

    #[test]
    fn stores_and_their_flags() {
        let posix = parse("--store posix:/srv/a:b --fsync").unwrap();
        assert_eq!(posix.store, StoreKind::Posix(PathBuf::from("/srv/a:b")));
        assert_eq!(
            parse("--memory-limit 1GiB").unwrap().memory_limit,
            Some(1 << 30)
        );
        let faults = parse("--store null --fault status=503,prob=0.1 --fault delay,ms=3").unwrap();
        assert_eq!(faults.fault, ["status=503,prob=0.1", "delay,ms=3"]);
        for wrong in [
            "--store disk",
            "--store posix:",
            "--fsync",
            "--store null --memory-limit 1k",
            "--tls-cert a.pem",
            "--memory-limit lots",
            "--secret-key x",
            "--anonymous --no-signature-check",
            "--no-signature-check --listen 0.0.0.0:1",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
