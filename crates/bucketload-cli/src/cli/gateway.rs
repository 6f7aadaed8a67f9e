//! `bucketload gateway`.

use std::path::PathBuf;

use bucketload_gateway::Address;
use clap::{Args, ValueHint};

use super::values::{CoreList, listen_address};

const EXAMPLES: &str = "\
Examples:
  bucketload gateway --root /srv/objects
  bucketload gateway --root /srv/objects --listen unix:/run/user/1000/bucketload
  bucketload gateway --root /srv/objects --listen 0.0.0.0:9020 --token-file token

To serve the same objects over HTTP:
  bucketload serve --store posix:DIR

Programs that use libs3 reach the gateway through libs3-bucketload with
BUCKETLOAD_S3_REMOTE=tcp://HOST:PORT or unix:PATH, and with BUCKETLOAD_S3_REMOTE_TOKEN_FILE if it
requires a token. Traffic is not encrypted: use the gateway on trusted networks only.";

/// Serve a directory of objects over a compact binary protocol, for the libs3 library
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct GatewayArgs {
    /// Directory that holds the objects; created if it does not exist
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) root: PathBuf,

    /// Address to listen on, or unix:PATH; PORT alone means loopback, port 0 picks a free port
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9020", value_parser = address)]
    pub(crate) listen: Address,

    /// File with the token that clients must present; required on addresses other than loopback
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) token_file: Option<PathBuf>,

    /// Most connections at a time; each has its own thread
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub(crate) connections: u32,

    /// Acknowledge a write only when it is on stable storage
    #[arg(long)]
    pub(crate) fsync: bool,

    /// Use MD5 sums as entity tags, as S3 does, instead of tags that cost nothing to compute
    #[arg(long)]
    pub(crate) md5_etags: bool,

    /// Cores to run on, such as 2-3
    #[arg(long, value_name = "LIST", value_parser = CoreList::parse)]
    pub(crate) cores: Option<CoreList>,

    /// Print the address as one line of JSON when the gateway listens
    #[arg(long, hide = true)]
    pub(crate) announce: bool,

    /// Exit when standard input closes
    #[arg(long, hide = true)]
    pub(crate) exit_with_stdin: bool,
}

/// Reads `unix:PATH`, or an address as `serve` takes it.
fn address(text: &str) -> Result<Address, String> {
    if text.starts_with("unix:") {
        return text.parse().map_err(|_| {
            format!("`{text}` is not the path of a socket; write unix:PATH, with a PATH of 1 to 107 bytes")
        });
    }
    let text = text.strip_prefix("tcp://").unwrap_or(text);
    Ok(Address::Tcp(listen_address(text)?.to_string()))
}

#[cfg(test)]
mod tests {
    use super::GatewayArgs;
    use crate::cli::{Command, command};

    fn parse(line: &str) -> Result<GatewayArgs, String> {
        match command(&format!("bucketload gateway {line}"))? {
            Command::Gateway(args) => Ok(args),
            other => Err(format!("{other:?}")),
        }
    }

    #[test]
    fn a_gateway_listens_on_loopback_by_default() {
        let listens = |line: &str| parse(line).unwrap().listen.to_string();
        assert_eq!(listens("--root /d"), "tcp://127.0.0.1:9020");
        assert_eq!(listens("--root /d --listen 7"), "tcp://127.0.0.1:7");
        assert_eq!(listens("--root /d --listen tcp://[::]:7"), "tcp://[::]:7");
        assert_eq!(listens("--root /d --listen unix:/s"), "unix:/s");
        for wrong in [
            "",
            "--root /d --listen nowhere",
            "--root /d --listen unix:",
            "--root /d --connections 0",
            "--root /d --token x",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
