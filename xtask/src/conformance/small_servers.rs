//! Small S3 servers with quirks: gofakes3, `rclone serve s3`, s3rver, moto, S3Mock, s3s-fs. Newcomers often try the
//! program on one of them first. On a fresh bucket and on one with foreign objects, `online-service`, `smoke --oracle`
//! and `cleanup` must produce a result, leave nothing behind and delete nothing foreign.
//!
//! Each server's faults are expected by name; `servers/README.md` explains them. This part fails if a server no
//! longer has a fault, because the expectation is then wrong.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::files::TempDir;
use crate::program::{Outcome, bucketload, call, items, run_bucketload};
use crate::server::Server;
use crate::sh::{Result, line, need_programs, none_of, output, step};

/// A server and its deviations from S3.
struct SmallServer {
    name: &'static str,
    /// Kinds of findings of the oracle; a correct store has none.
    findings: &'static [&'static str],
    /// Operations of `smoke` that fail.
    failing: &'static [&'static str],
    /// True if the server keeps nested folders whose objects are gone, so that an emptied bucket cannot be deleted.
    keeps_folders: bool,
    /// True if a listing of more than one page works only through ListObjects (V1).
    v1_only: bool,
}

/// Findings on a server that stores tags as content: reads are old, wrong or fail, and listings are incomplete.
const TAGS_ARE_CONTENT: &[&str] = &["corrupt", "list-missing", "lost", "stale"];

const SERVERS: [SmallServer; 3] = [
    SmallServer {
        name: "gofakes3",
        findings: TAGS_ARE_CONTENT,
        failing: &["get", "get-tagging", "multipart-copy", "range-get"],
        keeps_folders: false,
        v1_only: false,
    },
    SmallServer {
        name: "rclone-s3",
        findings: TAGS_ARE_CONTENT,
        failing: &["get", "get-tagging", "multipart-copy", "range-get"],
        keeps_folders: true,
        v1_only: false,
    },
    SmallServer {
        name: "s3rver",
        findings: &[],
        failing: &[
            "delete-tagging",
            "list-uploads",
            "multipart-abort",
            "multipart-copy",
        ],
        keeps_folders: false,
        v1_only: true,
    },
];

/// Servers whose installation takes minutes.
const MORE: [SmallServer; 3] = [
    SmallServer {
        name: "moto",
        findings: &[],
        failing: &[],
        keeps_folders: false,
        v1_only: false,
    },
    SmallServer {
        name: "s3mock",
        findings: &[],
        failing: &["get-tagging"],
        keeps_folders: false,
        v1_only: false,
    },
    SmallServer {
        name: "s3s-fs",
        findings: &[],
        failing: &[
            "delete-tagging",
            "get-tagging",
            "list-uploads",
            "put-tagging",
        ],
        keeps_folders: false,
        v1_only: false,
    },
];

/// Foreign objects: outside the runs' prefix, inside it, and where a run without an ownership marker would write.
const FOREIGN: [&str; 3] = [
    "p/bucketload-0-00000000/r/0000000000001",
    "p/notes.txt",
    "theirs",
];
const CONTENT: &str = "not the runs' business";
/// More than a page of a listing.
const OBJECTS: &str = "1100";

/// Tests the servers of every change; one failure does not hide the next.
pub(crate) fn all() -> Result {
    each(&SERVERS)
}

/// Tests the servers that take minutes to install.
pub(crate) fn more() -> Result {
    each(&MORE)
}

fn each(kinds: &[SmallServer]) -> Result {
    need_programs(&[("curl", "curl")])?;
    let failures = kinds
        .iter()
        .filter_map(|kind| step(kind.name, || one(kind)).err());
    none_of(&failures.collect::<Vec<_>>())
}

fn one(kind: &SmallServer) -> Result {
    let visit = Visit {
        kind,
        server: Server::start(kind.name)?,
        dir: TempDir::new("small-servers")?,
    };
    super::doctor::expect_dialect(&visit.server, "s3", kind.name)?;
    visit.online_service("fresh-online", "", "")?;
    visit.gone("fresh-online", false)?;
    visit.smoke("fresh-smoke", "")?;
    visit.gone("fresh-smoke", kind.keeps_folders)?;

    curl(&visit.server, "PUT", "shared", None)?;
    for key in FOREIGN {
        let path = format!("shared/{key}");
        curl(&visit.server, "PUT", &path, Some(CONTENT))?;
    }
    visit.online_service("shared", "/p", "--keep")?;
    let kept = visit.keys("shared")?.len();
    if kept <= FOREIGN.len() {
        return Err(format!("{}: --keep kept nothing: {kept} keys", kind.name));
    }
    visit.cleanup("shared/p")?;
    visit.only_foreign("shared", "cleanup")?;
    visit.smoke("shared", "/p")?;
    visit.only_foreign("shared", "smoke --oracle")
}

/// A server under test.
struct Visit<'a> {
    kind: &'a SmallServer,
    server: Server,
    dir: TempDir,
}

impl Visit<'_> {
    fn run(&self, workload: &str, place: &str, more: &str) -> Result<Outcome> {
        let out = self.dir.file(&place.replace('/', "-"));
        // rclone sometimes fails when several clients write the first objects of a folder.
        let line = format!(
            "run {workload} --target s3://{place} --create-bucket --duration 2s --set retry.attempts=5 --threads 1 \
             --no-calibration --output json --out {out}-{workload} {more}"
        );
        call(bucketload(&line)?.envs(&self.server.env))
    }

    /// Reads and writes a data set of more than one page, 1 KiB per object.
    fn online_service(&self, bucket: &str, prefix: &str, more: &str) -> Result {
        let flags = format!("--objects {OBJECTS} --size 1KiB --rate 100/s {more}");
        let outcome = self.run("online-service", &format!("{bucket}{prefix}"), &flags)?;
        outcome.expect_code(0)?;
        let result = outcome.json()?;
        self.has_result(&result, &[])?;
        // A run that deletes nothing lists nothing.
        if !more.contains("--keep") {
            let v1 = outcome.stderr.contains("ListObjects (V1)");
            if v1 != self.kind.v1_only {
                return self.changed(&format!("a listing by ListObjects (V1): {v1}"));
            }
        }
        self.told(&format!("online-service on {bucket}{prefix}"), &outcome);
        Ok(())
    }

    /// Every operation, judged by the oracle.
    fn smoke(&self, bucket: &str, prefix: &str) -> Result {
        let outcome = self.run("smoke", &format!("{bucket}{prefix}"), "--oracle")?;
        // A finding fails the run. Operations that the server does not offer only appear in the result.
        outcome.expect_code(i32::from(!self.kind.findings.is_empty()))?;
        let result = outcome.json()?;
        self.has_result(&result, self.kind.failing)?;
        let found = result["oracle"]["found"].as_object();
        let found: BTreeSet<&str> = found
            .ok_or("the result has no oracle")?
            .keys()
            .map(String::as_str)
            .collect();
        if found != self.kind.findings.iter().copied().collect() {
            return self.changed(&format!("the oracle found {found:?}"));
        }
        self.told(&format!("smoke --oracle on {bucket}{prefix}"), &outcome);
        Ok(())
    }

    fn cleanup(&self, place: &str) -> Result {
        let outcome = run_bucketload(&format!("cleanup --target s3://{place}"), &self.server.env)?;
        eprintln!("{}: {}", self.kind.name, outcome.stdout.trim_end());
        Ok(())
    }

    /// Fails unless there is a verdict and the operations fail that are expected to.
    fn has_result(&self, result: &Value, failing: &[&str]) -> Result {
        let word = result["verdict"]["word"].as_str();
        if word.is_none() {
            return Err(format!("{}: no verdict in {result}", self.kind.name));
        }
        let failed: BTreeSet<&str> = items(&result["phases"])
            .flat_map(|phase| items(&phase["classes"]))
            .filter(|class| items(&class["errors"]).next().is_some())
            .filter_map(|class| class["class"].as_str())
            .collect();
        // Other operations may fail too, on objects that these have damaged.
        match failing.iter().all(|class| failed.contains(class))
            && (!failed.is_empty() || failing.is_empty())
            && (failed.is_empty() || !failing.is_empty())
        {
            true => Ok(()),
            false => self.changed(&format!("{failed:?} failed, expected {failing:?}")),
        }
    }

    fn changed(&self, what: &str) -> Result {
        let name = self.kind.name;
        Err(format!(
            "{name} behaves differently than expected: {what}; if the server was fixed, update this part and \
             servers/README.md"
        ))
    }

    fn told(&self, what: &str, outcome: &Outcome) {
        eprintln!("{}: {what}: exit code {}", self.kind.name, outcome.code);
    }

    /// Fails unless `bucket`, which the run made, holds none of its objects, and is gone or, if `stays`, still
    /// exists.
    fn gone(&self, bucket: &str, stays: bool) -> Result {
        let (status, body) = curl(&self.server, "GET", bucket, None)?;
        let keys = keys_of(&body);
        if !keys.is_empty() {
            return Err(format!("{}: left in {bucket}: {keys:?}", self.kind.name));
        }
        match (status, stays) {
            (404, false) | (200, true) => {
                eprintln!("{}: {bucket}: nothing is left ({status})", self.kind.name);
                Ok(())
            }
            _ => self.changed(&format!("{bucket} answers {status} after the run")),
        }
    }

    /// Fails unless `bucket` holds the foreign objects, unchanged, and nothing else.
    fn only_foreign(&self, bucket: &str, after: &str) -> Result {
        let name = self.kind.name;
        let keys = self.keys(bucket)?;
        if keys != FOREIGN.map(str::to_owned) {
            return Err(format!("{name}: {bucket} holds {keys:?} after {after}"));
        }
        for key in FOREIGN {
            let (_, body) = curl(&self.server, "GET", &format!("{bucket}/{key}"), None)?;
            if body != CONTENT {
                return Err(format!(
                    "{name}: {bucket}/{key} reads {body:?} after {after}"
                ));
            }
        }
        eprintln!("{name}: {bucket}: only foreign objects are left after {after}");
        Ok(())
    }

    /// The first thousand keys of a bucket, sorted.
    fn keys(&self, bucket: &str) -> Result<Vec<String>> {
        let (status, body) = curl(&self.server, "GET", bucket, None)?;
        match status {
            200 => Ok(keys_of(&body)),
            _ => Err(format!(
                "{}: {bucket} answers {status}: {body}",
                self.kind.name
            )),
        }
    }
}

/// Sends a request by curl, a third-party client; returns status and body of the answer.
///
/// # Errors
/// When curl fails, or the server refuses anything but a GET.
pub(super) fn curl(
    server: &Server,
    method: &str,
    path: &str,
    body: Option<&str>,
) -> Result<(u16, String)> {
    let url = format!("{}/{path}", server.get("ENDPOINT")?);
    let (id, secret) = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY");
    let user = [server.get(id)?, server.get(secret)?].join(":");
    let mut command = line(&format!(
        "curl --silent --max-time 20 --aws-sigv4 aws:amz:us-east-1:s3 --user {user} \
         --header 'x-amz-content-sha256: UNSIGNED-PAYLOAD' --request {method}"
    ));
    command.args(["--write-out", "\n%{http_code}"]);
    if let Some(body) = body {
        // curl's own type is that of forms, whose content moto parses instead of storing it.
        command.args(["--header", "content-type: text/plain"]);
        command.args(["--data-binary", body]);
    }
    let answer = output(command.arg(&url))?;
    let (body, status) = answer.rsplit_once('\n').unwrap_or_default();
    let status = status
        .parse()
        .map_err(|e| format!("{url}: {status}: {e}"))?;
    match method == "GET" || status < 300 {
        true => Ok((status, body.to_owned())),
        false => Err(format!("{method} {url}: {status}: {body}")),
    }
}

/// The keys of a listing, sorted.
pub(super) fn keys_of(listing: &str) -> Vec<String> {
    let keys = listing.split("<Key>").skip(1);
    let keys = keys.filter_map(|rest| rest.split_once("</Key>"));
    let mut keys: Vec<String> = keys.map(|(key, _)| key.to_owned()).collect();
    keys.sort();
    keys
}
