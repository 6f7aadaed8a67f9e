//! The compatibility tests of the Ceph project against the embedded server, over the memory store. What passes is
//! counted by group and compared with the table in `docs/servers/embedded.md`, which has the reason for the rest.

use std::collections::BTreeMap;
use std::process::Command;

use crate::files::{self, TempDir};
use crate::program::Serve;
use crate::server::parse_env;
use crate::sh::{Result, cmd, ensure, output, root, run, script};

/// What is left out, by the marks that the tests carry: what Amazon S3 does not pass either, what only Ceph has, and
/// users other than the owner.
const MARKS: &str = "not (fails_on_aws or bucket_logging or bucket_logging_cleanup or lifecycle_expiration or \
                     lifecycle_transition or cloud_transition or cloud_restore or bucket_policy or iam_user or \
                     iam_account or iam_role or iam_tenant)";
/// What is left out by its name: keys of a key service, the decisions of policies, other tenants.
const NAMES: &str = "not (kms or policy or tenant)";

/// The groups: a test belongs to the first one of which its name contains a word.
const GROUPS: &[(&str, &[&str])] = &[
    ("object lock", &["object_lock"]),
    (
        "encryption",
        &["sse_", "encrypt", "copy_enc", "copy_part_enc", "_enc_"],
    ),
    ("forms", &["post_object"]),
    ("versioning", &["version", "delete_marker"]),
    (
        "public access block, ownership",
        &[
            "block_public",
            "public_block",
            "ignore_public",
            "ownership",
            "owner_",
            "object_writer",
        ],
    ),
    (
        "access control lists",
        &[
            "acl",
            "access_bucket",
            "anon",
            "not_owned",
            "unreadable",
            "nonowner",
        ],
    ),
    ("CORS", &["cors"]),
    ("lifecycle", &["lifecycle"]),
    ("multipart uploads", &["multipart"]),
    ("conditions", &["match", "modified"]),
    ("checksums", &["checksum", "cksum"]),
    ("tags", &["tag"]),
    ("listings", &["list"]),
    ("copies", &["copy"]),
    ("presigned and raw requests", &["object_raw", "presigned"]),
    ("buckets", &["bucket"]),
    ("objects", &[""]),
];

/// Passed tests, and all.
type Counts = BTreeMap<&'static str, (u32, u32)>;

/// Runs the tests and compares the counts with the page.
pub(crate) fn all() -> Result {
    run(&mut script("s3-tests", "install"))?;
    let tools = parse_env(&output(&mut script("s3-tests", "env"))?);
    let tool = |name: &str| {
        let path = tools.get(name).map(String::as_str);
        path.ok_or_else(|| format!("s3-tests.sh names no {name}"))
    };
    let (python, source) = (tool("PYTHON")?, tool("SOURCE")?);
    let dir = TempDir::new("s3-tests")?;
    let server = Serve::start("--threads 2")?;
    let settings = dir.path().join("s3tests.conf");
    files::write(&settings, configuration(&server)?)?;
    let mut pytest = cmd(
        "timeout",
        [
            "3600",
            python,
            "-m",
            "pytest",
            "-v",
            "--tb=no",
            "-p",
            "no:cacheprovider",
        ],
    );
    pytest
        .args(["-m", MARKS, "-k", NAMES, "s3tests/functional/test_s3.py"])
        .current_dir(source)
        .env_remove("AWS_CA_BUNDLE")
        .env("S3TEST_CONF", &settings);
    let counts = count(&results(&mut pytest)?);
    let table = table(&counts);
    println!("{table}");
    let page = files::read(root().join("docs/servers/embedded.md"))?;
    let differing = counts.iter().filter(|(group, (passed, all))| {
        !page.contains(&format!("| {group} | {passed} | {all} |"))
    });
    let differing: Vec<_> = differing.map(|(group, _)| *group).collect();
    ensure(differing.is_empty(), || {
        format!(
            "docs/servers/embedded.md has other counts for {}; correct the page, or what broke",
            differing.join(", ")
        )
    })
}

/// The tests' configuration: all of their users are the owner, the only user of the server.
fn configuration(server: &Serve) -> Result<String> {
    let (address, access, secret) = server.endpoint();
    let (host, port) = address
        .rsplit_once(':')
        .ok_or_else(|| format!("no port in {address}"))?;
    let mut text = format!(
        "[DEFAULT]\nhost = {host}\nport = {port}\nis_secure = False\nssl_verify = False\n\
         [fixtures]\nbucket prefix = s3-tests-{{random}}-\n"
    );
    for (section, more) in [
        ("s3 main", "api_name = us-east-1\n"),
        ("s3 alt", ""),
        ("s3 tenant", "tenant = tenant\n"),
        ("iam", ""),
        ("iam root", ""),
        ("iam alt root", ""),
    ] {
        // The identity that the server gives to its owner.
        let id = if section == "s3 main" {
            "02d6176db174dc93cb1b899f7c6078f08654445fe8cf1b6ce98d8855f66bdbf4"
        } else {
            "1111111111111111111111111111111111111111111111111111111111111111"
        };
        text += &format!(
            "[{section}]\ndisplay_name = bucketload\nuser_id = {id}\nemail = {id}@example.com\n\
             access_key = {access}\nsecret_key = {secret}\n{more}"
        );
    }
    Ok(text)
}

/// Runs pytest and returns each test's name and whether it passed.
fn results(pytest: &mut Command) -> Result<BTreeMap<String, bool>> {
    // It fails if a test does, which the page allows for; without results the counts differ.
    let ended = pytest
        .output()
        .map_err(|error| format!("pytest: {error}"))?;
    let text = String::from_utf8_lossy(&ended.stdout);
    let mut results = BTreeMap::new();
    for line in text.lines() {
        let Some((_, rest)) = line.split_once("::") else {
            continue;
        };
        let mut words = rest.split_whitespace();
        let (Some(name), Some(outcome)) = (words.next(), words.next()) else {
            continue;
        };
        let passed = match outcome {
            "PASSED" => true,
            "FAILED" | "ERROR" | "SKIPPED" => false,
            _ => continue,
        };
        let entry = results.entry(name.to_owned()).or_insert(true);
        *entry &= passed;
    }
    ensure(!results.is_empty(), || {
        format!(
            "pytest ran nothing: {}",
            String::from_utf8_lossy(&ended.stderr)
        )
    })?;
    Ok(results)
}

fn count(results: &BTreeMap<String, bool>) -> Counts {
    let mut counts = Counts::new();
    for (name, passed) in results {
        let group = GROUPS
            .iter()
            .find(|(_, words)| words.iter().any(|word| name.contains(word)));
        let Some((group, _)) = group else { continue };
        let entry = counts.entry(group).or_default();
        entry.0 += u32::from(*passed);
        entry.1 += 1;
    }
    let total = counts
        .values()
        .fold((0, 0), |sum, count| (sum.0 + count.0, sum.1 + count.1));
    counts.insert("all", total);
    counts
}

/// The counts as rows of the page's table.
fn table(counts: &Counts) -> String {
    let groups = GROUPS.iter().map(|(group, _)| *group).chain(["all"]);
    let row = |group: &str| {
        let (passed, all) = counts.get(group)?;
        Some(format!("| {group} | {passed} | {all} |\n"))
    };
    groups.filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_test_counts_in_one_group() {
        let results = [
            ("test_object_lock_put_legal_hold", true),
            ("test_copy_enc[sse-c-sse-c-STANDARD-STANDARD-1]", false),
            ("test_versioning_obj_list_marker", true),
            ("test_bucket_list_many", true),
            ("test_bucket_create_naming_dns_long", true),
            ("test_object_read_not_exist", false),
        ];
        let results = results.map(|(name, passed)| (name.to_owned(), passed));
        let counts = count(&results.into());
        assert_eq!(counts["object lock"], (1, 1));
        assert_eq!(counts["encryption"], (0, 1));
        assert_eq!(counts["listings"], (1, 1));
        assert_eq!(counts["buckets"], (1, 1));
        assert_eq!(counts["objects"], (0, 1));
        assert_eq!(counts["all"], (4, 6));
        assert!(table(&counts).ends_with("| all | 4 | 6 |\n"));
    }
}
