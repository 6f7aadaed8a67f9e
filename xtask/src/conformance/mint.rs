//! The functional tests of MinIO's clients against the embedded server, over the memory store and TLS: those of "mint"
//! that package registries serve. What passes is counted and compared with the table in `docs/servers/embedded.md`,
//! which also has the name of each test that does not pass, and the reason.

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::process::Command;

use serde_json::Value;

use crate::files::{self, TempDir};
use crate::program::{Env, Serve, self_signed, text};
use crate::server::{Clients, parse_env};
use crate::sh::{Result, cmd, need_programs, none_of, output, root, run, script, show, step};

/// The suites, with the command that runs each; its standard output has a JSON object a line.
const SUITES: [(&str, MakeCommand); 3] =
    [("minio-go", minio_go), ("minio-py", minio_py), ("mc", mc)];
type MakeCommand = fn(&Suite<'_>) -> Result<Command>;
/// Seconds that a suite may take.
const LIMIT: &str = "1800";

/// Each test, and whether it passed.
type Results = BTreeMap<String, bool>;

/// Runs the suites and compares their results with the page; one failure does not hide the next.
pub(crate) fn all() -> Result {
    need_programs(&[("jq", "jq"), ("curl", "curl")])?;
    let clients = Clients::install("")?;
    run(&mut script("mint", "install"))?;
    let tools = parse_env(&output(&mut script("mint", "env"))?);
    let page = files::read(root().join("docs/servers/embedded.md"))?;
    let failures = SUITES.iter().filter_map(|(name, command)| {
        step(name, || {
            let dir = TempDir::new(&format!("mint-{name}"))?;
            let (cert, key) = (dir.file("cert.pem"), dir.file("key.pem"));
            self_signed(&cert, &key)?;
            let server = format!("--threads 2 --tls-cert {cert} --tls-key {key}");
            let suite = Suite {
                clients: &clients,
                tools: &tools,
                dir: &dir,
                server: Serve::start(&server)?,
                cert,
            };
            compare(name, &suite.results(&mut command(&suite)?)?, &page)
        })
        .err()
    });
    none_of(&failures.collect::<Vec<_>>())
}

struct Suite<'a> {
    clients: &'a Clients,
    tools: &'a Env,
    dir: &'a TempDir,
    server: Serve,
    cert: String,
}

impl Suite<'_> {
    fn tool(&self, name: &str) -> Result<&str> {
        let path = self.tools.get(name).map(String::as_str);
        path.ok_or_else(|| format!("mint.sh names no {name}"))
    }

    /// A command with the settings that mint gives its suites.
    fn command(&self, program: &str, args: &[&str]) -> Command {
        let (address, access, secret) = self.server.endpoint();
        let mut command = cmd("timeout", [LIMIT, program].iter().chain(args));
        command.current_dir(self.dir.path()).envs([
            ("SERVER_ENDPOINT", address),
            ("ACCESS_KEY", access),
            ("SECRET_KEY", secret),
            ("SERVER_REGION", "us-east-1"),
            ("ENABLE_HTTPS", "1"),
            ("MINT_MODE", "full"),
            ("RUN_ON_FAIL", "1"),
            ("SSL_CERT_FILE", &*self.cert),
            ("CURL_CA_BUNDLE", &*self.cert),
        ]);
        command.env("HOME", self.dir.path());
        command
    }

    fn results(&self, command: &mut Command) -> Result<Results> {
        // It fails if a test does, which the page allows for; without results the counts differ.
        let shown = show(command);
        eprintln!("$ {shown}");
        let ended = command
            .output()
            .map_err(|error| format!("{shown}: {error}"))?;
        let results = read(&String::from_utf8_lossy(&ended.stdout));
        if results.is_empty() {
            let said = String::from_utf8_lossy(&ended.stderr);
            return Err(format!("{shown}: no test ran ({}): {said}", ended.status));
        }
        Ok(results)
    }
}

fn minio_go(suite: &Suite<'_>) -> Result<Command> {
    Ok(suite.command(suite.tool("MINIO_GO")?, &[]))
}

fn minio_py(suite: &Suite<'_>) -> Result<Command> {
    let driver = root().join("xtask/conformance/minio_py.py");
    let args = [&*driver.to_string_lossy(), suite.tool("MINIO_PY")?];
    Ok(suite.command(suite.tool("PYTHON")?, &args))
}

/// The script calls the `mc` beside it, and makes the files that it needs.
fn mc(suite: &Suite<'_>) -> Result<Command> {
    let data = suite.dir.file("data");
    files::make_dir(&data)?;
    let beside = suite.dir.path().join("mc");
    symlink(suite.clients.get("MC")?, &beside).map_err(files::at(&beside))?;
    let mut command = suite.command("bash", &[suite.tool("MC_TESTS")?]);
    command.env("MINT_DATA_DIR", data);
    Ok(command)
}

/// Reads the results. A test may have several lines: it passed if all say so.
fn read(log: &str) -> Results {
    let mut results = Results::new();
    for line in log.lines() {
        let Ok(line) = serde_json::from_str::<Value>(line) else {
            continue;
        };
        let status = text(&line["status"]);
        if status.is_empty() {
            continue;
        }
        // `minio-go: testCors_2_preflight`, `minio-py:test_get`; mc names the test as its function.
        let name = match text(&line["name"]).split_once(':') {
            Some(("minio-go", name)) => name.split('_').next().unwrap_or(name),
            Some((_, name)) => name,
            None => text(&line["function"]),
        };
        if status != "PASS" {
            eprintln!("{} {}: {line}", status, name.trim());
        }
        *results.entry(name.trim().to_owned()).or_insert(true) &= status == "PASS";
    }
    results
}

/// Fails unless the page has the row of the suite, and the name of each test that did not pass.
fn compare(suite: &str, results: &Results, page: &str) -> Result {
    let not_passed = results.iter().filter(|(_, passed)| !**passed);
    let not_passed: Vec<_> = not_passed.map(|(name, _)| name.as_str()).collect();
    let all = results.len();
    let row = format!("| {suite} | {} | {all} |", all - not_passed.len());
    println!("{row}");
    let unexplained = not_passed
        .iter()
        .filter(|name| !page.contains(&format!("`{name}`")))
        .map(|name| format!("docs/servers/embedded.md does not say why {name} of {suite} fails"));
    let mut faults: Vec<String> = unexplained.collect();
    if !page.contains(&row) {
        faults.push(format!(
            "docs/servers/embedded.md lacks the row {row}; correct the page, or what broke"
        ));
    }
    none_of(&faults)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_read_by_test() {
        let log = r#"
noise
{"name":"minio-go: testCors_1_x","status":"PASS"}
{"name":"minio-go: testCors_2_x","status":"FAIL"}
{"name":"minio-go: testList","status":"PASS"}
{"name":"minio-py:test_get","status":"NA"}
{"name":"mc","function":"test_rb","status":"PASS"}
{"found":"object"}
"#;
        let results = read(log);
        let want = [
            ("testCors", false),
            ("testList", true),
            ("test_get", false),
            ("test_rb", true),
        ];
        assert_eq!(
            results,
            want.map(|(name, passed)| (name.to_owned(), passed)).into()
        );
        assert!(compare("s", &results, "| s | 2 | 4 | `testCors` `test_get`").is_ok());
        let missing = compare("s", &results, "| s | 2 | 4 | `testCors`").unwrap_err();
        assert!(missing.contains("test_get"), "{missing}");
        assert!(compare("s", &results, "`testCors` `test_get`").is_err());
    }
}
