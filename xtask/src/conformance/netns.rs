//! Several hosts on this machine: network namespaces with faults between them, by `servers/netns.sh`.

use std::process::Command;

use crate::files::TempDir;
use crate::sh::{Result, need_programs, output, script};

/// The hosts `h1`, `h2` and so on; `h0` is this machine. Dropping deletes their networks.
pub(super) struct Hosts {
    home: TempDir,
    count: u32,
    subnet: &'static str,
    prefix: &'static str,
}

impl Hosts {
    /// Makes `count` hosts with addresses in `subnet` and interface names that begin with `prefix`.
    pub(super) fn start(count: u32, subnet: &'static str, prefix: &'static str) -> Result<Self> {
        need_programs(&[
            ("ip", "iproute2"),
            ("iptables", "iptables"),
            ("nft", "nftables"),
        ])?;
        let hosts = Self {
            home: TempDir::new(&format!("netns-{prefix}"))?,
            count,
            subnet,
            prefix,
        };
        hosts.set("start")?;
        Ok(hosts)
    }

    /// A call of the script, such as `exec h1` followed by a program.
    pub(super) fn script(&self, line: &str) -> Command {
        let mut command = script("netns", line);
        command
            .env("SERVERS_HOME", self.home.path())
            .env("NETNS_HOSTS", self.count.to_string())
            .env("NETNS_SUBNET", self.subnet)
            .env("NETNS_PREFIX", self.prefix);
        command
    }

    /// Runs the script with `line`.
    pub(super) fn set(&self, line: &str) -> Result {
        output(&mut self.script(line)).map(drop)
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        if let Err(error) = self.set("stop") {
            eprintln!("xtask: {error}");
        }
    }
}
