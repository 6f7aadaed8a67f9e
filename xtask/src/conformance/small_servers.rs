//! Small S3 servers that are not as the others: gofakes3, `rclone serve s3`, s3rver. A stranger who tries the
//! program meets one of them first. On a fresh bucket and on one with objects of others, `online-service`,
//! `smoke --oracle` and `cleanup` have a result, leave nothing of theirs and take nothing of others'.
//!
//! What a server does wrong is expected by name, with the reason in `servers/README.md`; this part fails when it
//! no longer does so, because the expectation is then wrong.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::files::TempDir;
use crate::own::{Outcome, bucketload, call, items, own_with};
use crate::server::Server;
use crate::sh::{Result, line, need_programs, none_of, output, step};

/// A server, and what it does otherwise than S3.
struct Kind {
    name: &'static str,
    /// What the oracle finds; a store that does as it says has none.
    findings: &'static [&'static str],
    /// Operations of `smoke` that fail.
    failing: &'static [&'static str],
    /// Whether a bucket whose objects were all deleted cannot be deleted where some lay in folders of folders,
    /// which are still in it.
    keeps_folders: bool,
    /// Whether a listing of more than one page works by ListObjects (V1) only.
    v1_only: bool,
}

/// Tags that are taken for content: what is read is older, other or gone, and listings lack it.
const TAGS_ARE_CONTENT: &[&str] = &["corrupt", "list-missing", "lost", "stale"];

const SERVERS: [Kind; 3] = [
    Kind {
        name: "gofakes3",
        findings: TAGS_ARE_CONTENT,
        failing: &["get", "get-tagging", "multipart-copy", "range-get"],
        keeps_folders: false,
        v1_only: false,
    },
    Kind {
        name: "rclone-s3",
        findings: TAGS_ARE_CONTENT,
        failing: &["get", "get-tagging", "multipart-copy", "range-get"],
        keeps_folders: true,
        v1_only: false,
    },
    Kind {
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

/// Objects of others: beside the runs' prefix, below it, and where a run without a mark would have put them.
const FOREIGN: [&str; 3] = [
    "p/bucketload-0-00000000/r/0000000000001",
    "p/notes.txt",
    "theirs",
];
const CONTENT: &str = "not the runs' business";
/// More than a page of a listing.
const OBJECTS: &str = "1100";

/// All of them.
pub(crate) fn all() -> Result {
    need_programs(&[("curl", "curl")])?;
    // One failure does not hide the next.
    let failures = SERVERS
        .iter()
        .filter_map(|kind| step(kind.name, || one(kind)).err());
    none_of(&failures.collect::<Vec<_>>())
}

fn one(kind: &Kind) -> Result {
    let visit = Visit {
        kind,
        server: Server::start(kind.name)?,
        dir: TempDir::new("small-servers")?,
    };
    visit.online_service("fresh-online", "", "")?;
    visit.gone("fresh-online", false)?;
    visit.smoke("fresh-smoke", "")?;
    visit.gone("fresh-smoke", kind.keeps_folders)?;

    visit.curl("PUT", "shared", None)?;
    for key in FOREIGN {
        visit.curl("PUT", &format!("shared/{key}"), Some(CONTENT))?;
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
    kind: &'a Kind,
    server: Server,
    dir: TempDir,
}

impl Visit<'_> {
    fn run(&self, workload: &str, place: &str, more: &str) -> Result<Outcome> {
        let out = self.dir.file(&place.replace('/', "-"));
        // rclone fails now and then where several clients write the first objects of a folder.
        let line = format!(
            "run {workload} --target s3://{place} --create-bucket --duration 2s --set retry.attempts=5 --threads 1 \
             --no-calibration --output json --out {out}-{workload} {more}"
        );
        call(bucketload(&line)?.envs(&self.server.env))
    }
    /// Reads and writes of a data set of more than a page, each object 1 KiB.
    fn online_service(&self, bucket: &str, prefix: &str, more: &str) -> Result {
        let flags = format!("--objects {OBJECTS} --size 1KiB --rate 100/s {more}");
        let outcome = self.run("online-service", &format!("{bucket}{prefix}"), &flags)?;
        outcome.expect_code(0)?;
        let result = outcome.json()?;
        self.has_result(&result, &[])?;
        // Where nothing is to be deleted nothing is listed.
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
        // A finding fails the run; operations that the server does not offer are told in the result.
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
        let outcome = own_with(&format!("cleanup --target s3://{place}"), &self.server.env)?;
        eprintln!("{}: {}", self.kind.name, outcome.stdout.trim_end());
        Ok(())
    }
    /// Whether there is a verdict, operations were performed, and those fail that are expected to.
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
        // Others fail by chance on objects that these have spoilt.
        match failing.iter().all(|class| failed.contains(class))
            && (!failed.is_empty() || failing.is_empty())
            && (failed.is_empty() || !failing.is_empty())
        {
            true => Ok(()),
            false => self.changed(&format!("{failed:?} failed, expected were {failing:?}")),
        }
    }

    fn changed(&self, what: &str) -> Result {
        let name = self.kind.name;
        Err(format!(
            "{name} does not do as expected: {what}; if the server was mended, so must be what this part and \
             servers/README.md say of it"
        ))
    }

    fn told(&self, what: &str, outcome: &Outcome) {
        eprintln!("{}: {what}: exit code {}", self.kind.name, outcome.code);
    }

    /// Fails unless nothing of the run is in `bucket`, which it has made, and the bucket is gone or `stays` with
    /// empty folders.
    fn gone(&self, bucket: &str, stays: bool) -> Result {
        let (status, body) = self.curl("GET", bucket, None)?;
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

    /// Fails unless `bucket` holds the objects of others, as they were, and nothing else.
    fn only_foreign(&self, bucket: &str, after: &str) -> Result {
        let name = self.kind.name;
        let keys = self.keys(bucket)?;
        if keys != FOREIGN.map(str::to_owned) {
            return Err(format!("{name}: {bucket} holds {keys:?} after {after}"));
        }
        for key in FOREIGN {
            let (_, body) = self.curl("GET", &format!("{bucket}/{key}"), None)?;
            if body != CONTENT {
                return Err(format!(
                    "{name}: {bucket}/{key} reads {body:?} after {after}"
                ));
            }
        }
        eprintln!("{name}: {bucket}: only objects of others are left after {after}");
        Ok(())
    }

    /// The first thousand keys of a bucket, sorted.
    fn keys(&self, bucket: &str) -> Result<Vec<String>> {
        let (status, body) = self.curl("GET", bucket, None)?;
        match status {
            200 => Ok(keys_of(&body)),
            _ => Err(format!(
                "{}: {bucket} answers {status}: {body}",
                self.kind.name
            )),
        }
    }

    /// A request by curl, a client that is not ours; status and body of the answer.
    fn curl(&self, method: &str, path: &str, body: Option<&str>) -> Result<(u16, String)> {
        let url = format!("{}/{path}", self.server.get("ENDPOINT")?);
        let (id, secret) = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY");
        let user = [self.server.get(id)?, self.server.get(secret)?].join(":");
        let mut command = line(&format!(
            "curl --silent --max-time 20 --aws-sigv4 aws:amz:us-east-1:s3 --user {user} \
             --header 'x-amz-content-sha256: UNSIGNED-PAYLOAD' --request {method}"
        ));
        command.args(["--write-out", "\n%{http_code}"]);
        if let Some(body) = body {
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
}

/// The keys of a listing, sorted.
fn keys_of(listing: &str) -> Vec<String> {
    let keys = listing.split("<Key>").skip(1);
    let keys = keys.filter_map(|rest| rest.split_once("</Key>"));
    let mut keys: Vec<String> = keys.map(|(key, _)| key.to_owned()).collect();
    keys.sort();
    keys
}
