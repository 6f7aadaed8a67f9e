//! Local replacements for the documents' hosts: the task's own stores, agents and keys.

use std::path::{Path, PathBuf};

use super::shell::{Served, Shell};
use super::table::{BUCKETS, PLACEHOLDERS};
use crate::files;
use crate::files::TempDir;
use crate::program::program;
use crate::server::free_port;
use crate::sh::{Result, root};

const ID: &str = "examplesaccesskey001";
const SECRET: &str = "examplessecretkey0000000000000000001";

/// The servers of one run of the task, and the environment of all commands.
pub(super) struct StandIns {
    // Declared before the directory, so that they end first.
    served: Vec<Served>,
    values: Vec<(&'static str, String)>,
    pub(super) env: Vec<(String, String)>,
    home: TempDir,
}

impl StandIns {
    /// Starts two stores and two agents, and makes the examples' input files.
    pub(super) fn start() -> Result<Self> {
        crate::sh::need_programs(&[
            ("bzip2", "bzip2"),
            ("jq", "jq"),
            ("openssl", "openssl"),
            ("man", "man-db"),
        ])?;
        let home = TempDir::new("examples")?;
        let bin = home.path().join("bin");
        let at = |e: std::io::Error| format!("{}: {e}", home.path().display());
        files::make_dir(&bin)?;
        std::os::unix::fs::symlink(program()?, bin.join("bucketload")).map_err(at)?;
        for store in ["store", "other"] {
            for bucket in BUCKETS {
                files::make_dir(home.path().join(store).join(bucket))?;
            }
        }
        let port = free_port()?;
        let path = std::env::var("PATH").unwrap_or_default();
        let fixed = |name: &str, value: String| (name.to_owned(), value);
        let mut env = vec![
            fixed("PATH", format!("{}:{path}", bin.display())),
            fixed("BUCKETLOAD_SERVE_ACCESS_KEY", ID.into()),
            fixed("BUCKETLOAD_SERVE_SECRET_KEY", SECRET.into()),
            fixed("AWS_ACCESS_KEY_ID", ID.into()),
            fixed("AWS_SECRET_ACCESS_KEY", SECRET.into()),
            fixed("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{port}")),
            fixed("AWS_REGION", "us-east-1".into()),
            fixed("NO_COLOR", "1".into()),
        ];
        let inputs = home.path().join("inputs");
        files::make_dir(&inputs)?;
        let keys = home.path().join("inputs/aws-credentials");
        env.push(fixed(
            "AWS_SHARED_CREDENTIALS_FILE",
            keys.display().to_string(),
        ));
        let mut places = Self {
            served: Vec::new(),
            values: vec![
                ("{ID}", ID.into()),
                ("{SECRET}", SECRET.into()),
                ("{PORT}", port.to_string()),
            ],
            env,
            home,
        };
        // One directory on four addresses, for ranges of hosts.
        for host in 1..=4 {
            let line =
                format!("exec bucketload serve --store posix:store --listen 127.0.0.{host}:{port}");
            places.serve(&line, &format!("store{host}"))?;
        }
        places.values.push(("{STORE}", format!("127.0.0.1:{port}")));
        let other = places.serve(
            "exec bucketload serve --store posix:other --listen 127.0.0.1:0",
            "other",
        )?;
        places.values.push(("{OTHER}", other));
        places.inputs()?;
        let token = std::fs::read_to_string(places.home.path().join("inputs/token"));
        let token = token.map_err(|e| format!("inputs/token: {e}"))?;
        // For examples that take the token from the environment.
        let token = ("BUCKETLOAD_AGENT_TOKEN".to_owned(), token.trim().to_owned());
        places.env.push(token);
        let mut agents = Vec::new();
        for agent in ["agent1", "agent2"] {
            let line = "exec bucketload agent --listen 127.0.0.1:0 --token-file inputs/token";
            agents.push(places.serve(line, agent)?);
        }
        places.values.push(("{AGENTS}", agents.join(",")));
        Ok(places)
    }

    fn serve(&mut self, line: &str, name: &str) -> Result<String> {
        let shell = Shell {
            dir: self.home.path(),
            env: &self.env,
        };
        let served = shell.serve(line, name)?;
        let address = served.address()?.to_owned();
        self.served.push(served);
        Ok(address)
    }

    /// Makes the examples' input files.
    fn inputs(&self) -> Result {
        let dir = self.home.path().join("inputs");
        let script = root().join("xtask/src/examples/inputs.sh");
        let shell = Shell {
            dir: &dir,
            env: &self.env,
        };
        let ended = shell.run(
            &format!("PAGE=page sh {}", script.display()),
            std::time::Duration::from_secs(120),
        )?;
        if ended.code != Some(0) {
            return Err(format!("inputs.sh: {:?}\n{}", ended.code, ended.stderr));
        }
        crate::program::self_signed(
            &dir.join("cert.pem").to_string_lossy(),
            &dir.join("key.pem").to_string_lossy(),
        )
    }

    /// A directory for the commands of page number `n`, with the input files.
    pub(super) fn page_dir(&self, n: usize) -> Result<PathBuf> {
        let dir = self.home.path().join(format!("page{n}"));
        let from = self.home.path().join("inputs/.");
        crate::sh::output(&mut crate::sh::cmd("cp", [Path::new("-a"), &from, &dir])).map(|_| dir)
    }

    /// The command with its placeholders replaced.
    pub(super) fn mapped(&self, command: &str, dir: &Path) -> String {
        let values: Vec<(&str, String)> = self
            .values
            .iter()
            .map(|(name, value)| (*name, value.clone()))
            .chain([("{DIR}", dir.display().to_string())])
            .collect();
        mapped(command, &values)
    }
}

/// Replaces every placeholder of the table in `command`, and then `values` in the replacements.
fn mapped(command: &str, values: &[(&str, String)]) -> String {
    // Replaced text is not searched again.
    let mut out = String::new();
    let mut rest = command;
    while !rest.is_empty() {
        let place = PLACEHOLDERS.iter().find(|(from, _)| {
            // A directory starts a word or follows a scheme, a list separator or an assignment.
            let begins = !from.starts_with('/')
                || out.ends_with(|c: char| c.is_whitespace() || ":=,'\"".contains(c))
                || out.ends_with("//");
            begins && rest.starts_with(from)
        });
        if let Some((from, to)) = place {
            let filled = values.iter().fold((*to).to_owned(), |text, (name, value)| {
                text.replace(name, value)
            });
            out.push_str(&filled);
            rest = &rest[from.len()..];
        } else {
            let next = rest.chars().next().map_or(rest.len(), char::len_utf8);
            out.push_str(&rest[..next]);
            rest = &rest[next..];
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::mapped;

    #[test]
    fn placeholders_are_replaced_once() {
        let values = [
            ("{STORE}", "127.0.0.1:1".to_owned()),
            ("{PORT}", "1".to_owned()),
            ("{DIR}", "/tmp/d".to_owned()),
        ];
        for (from, to) in [
            (
                "run --endpoint-url http://host:9000",
                "run --endpoint-url http://127.0.0.1:1",
            ),
            ("http://node{1...4}:9000", "http://127.0.0.{1...4}:1"),
            (
                "--target file:///mnt/data",
                "--target file:///tmp/d/mnt/data",
            ),
            (
                "serve --store posix:/srv/objects",
                "serve --store posix:/tmp/d/srv/objects",
            ),
            ("cargo run --release -- run x", "bucketload run x"),
            ("results/srv/x", "results/srv/x"),
        ] {
            assert_eq!(mapped(from, &values), to);
        }
    }
}
