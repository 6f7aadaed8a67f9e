//! Dependency rules, checked against cargo's own resolution: which crate may depend on which, which crates must stay
//! free of a runtime, the licences and bans of `deny.toml`, and that all commands build with one set of features
//! (`features`).

use std::collections::{BTreeMap, BTreeSet};

use crate::features;
use crate::files;
use crate::sh::{Result, cargo, ensure, output, root};

/// A crate, and the packages that must not be among its normal dependencies.
const FORBIDDEN: &[(&str, &str)] = &[
    // The core does not parse files.
    (
        "bucketload-core",
        "tokio libc rustix socket2 bucketload-wire bucketload-store bucketload-workload toml",
    ),
    (
        "bucketload-workload",
        "tokio libc rustix bucketload-wire bucketload-drivers bucketload-run",
    ),
    (
        "bucketload-wire",
        "bucketload-core bucketload-store hyper reqwest",
    ),
    // Declarations only.
    (
        "libs3-abi",
        "tokio rustix bucketload-core bucketload-store bucketload-gateway bucketload-wire",
    ),
    (
        // Pure functions of a protocol.
        "bucketload-s3",
        "tokio rustix aws-lc-sys bucketload-core bucketload-wire bucketload-store",
    ),
    (
        "bucketload-store",
        "tokio rustls bucketload-core bucketload-wire",
    ),
    (
        "bucketload-server",
        "bucketload-core bucketload-drivers hyper",
    ),
    // Shared by everything that demands a token, including the gateway, whose client runs inside other processes.
    (
        "bucketload-token",
        "tokio rustix libc bucketload-core bucketload-store bucketload-wire",
    ),
    // Runs inside other processes.
    (
        "bucketload-gateway",
        "tokio rustls bucketload-core bucketload-wire",
    ),
    (
        "bucketload-drivers",
        "bucketload-local bucketload-store bucketload-run bucketload-results hyper",
    ),
    (
        "bucketload-local",
        "bucketload-drivers bucketload-wire bucketload-store bucketload-run \
         bucketload-results rustls",
    ),
    (
        "bucketload-target",
        "tokio bucketload-wire bucketload-run clap",
    ),
    // A change of a driver must compile only the driver's crate and link the program.
    ("bucketload-cli", "bucketload-drivers bucketload-local"),
    // Other clients belong only to builds that ask for them.
    ("bucketload", "aws-sdk-s3 object_store opendal reqwest"),
    (
        "bucketload-cosbench",
        "tokio bucketload-core bucketload-wire",
    ),
    // The load never runs inside the web server.
    (
        "bucketload-console",
        "bucketload-wire bucketload-store bucketload-drivers bucketload-run",
    ),
    (
        "bucketload-trace",
        "tokio bucketload-wire bucketload-store bucketload-drivers bucketload-run \
         bucketload-results",
    ),
    (
        "bucketload-run",
        "bucketload-drivers bucketload-wire bucketload-store bucketload-results \
         bucketload-workload",
    ),
    // The gRPC service is written by hand.
    (
        "bucketload-agents",
        "bucketload-drivers bucketload-wire bucketload-store bucketload-results \
         bucketload-workload prost axum",
    ),
    // Runs inside applications.
    (
        "libs3-bucketload",
        "tokio rustls aws-lc-sys tracing bucketload-core bucketload-wire bucketload-drivers \
         bucketload-run",
    ),
    // The program starts and measures; this crate does not.
    (
        "bucketload-study",
        "tokio bucketload-run bucketload-drivers bucketload-store bucketload-wire",
    ),
    // Fakes follow the services' documentation and must not contain the crates that they help to test.
    (
        "bucketload-testkit",
        "tokio bucketload-core bucketload-wire bucketload-store bucketload-drivers \
         bucketload-run",
    ),
    (
        "bucketload-results",
        "tokio bucketload-run bucketload-drivers bucketload-store",
    ),
];

/// Allowed only as a dependency of tests and examples.
const TESTKIT: &str = "bucketload-testkit";

/// Checks all rules and reports every violation.
pub(crate) fn check() -> Result {
    let mut problems = Vec::new();
    let users = output(&mut cargo(&format!(
        "tree --locked --workspace --all-features -e normal,build --invert {TESTKIT} --depth 1 --prefix none -f {{p}}"
    )))?;
    for user in users.lines().skip(1) {
        let name = user.split_whitespace().next().unwrap_or_default();
        problems.push(format!(
            "{name} must not depend on {TESTKIT}, except in [dev-dependencies]"
        ));
    }
    for (name, forbidden) in FORBIDDEN {
        let tree = output(&mut cargo(&format!(
            "tree --locked -p {name} -e normal --prefix none -f {{p}}"
        )))?;
        let lines = tree.lines().skip(1);
        let present: BTreeSet<&str> = lines
            .filter_map(|line| line.split_whitespace().next())
            .collect();
        let known = forbidden.split(' ').filter(|name| present.contains(name));
        problems.extend(known.map(|found| format!("{name} must not depend on {found}")));
    }
    problems.extend(licences_and_bans()?);
    problems.extend(features::differences()?);
    ensure(problems.is_empty(), || problems.join("\n  "))
}

fn licences_and_bans() -> Result<Vec<String>> {
    let path = root().join("deny.toml");
    let text = files::read(&path)?;
    let policy: toml::Table = text
        .parse()
        .map_err(|e| format!("{}: {e}", path.display()))?;
    let strings = |value: Option<&toml::Value>, field: Option<&str>| -> BTreeSet<String> {
        let items = value
            .and_then(toml::Value::as_array)
            .map(Vec::as_slice)
            .unwrap_or_default();
        items
            .iter()
            .filter_map(|item| field.map_or(Some(item), |name| item.get(name)))
            .filter_map(|item| item.as_str().map(str::to_owned))
            .collect()
    };
    let section = |name: &str, key: &str| policy.get(name).and_then(|s| s.get(key)).cloned();
    let allowed = strings(section("licenses", "allow").as_ref(), None);
    let banned = strings(section("bans", "deny").as_ref(), Some("name"));
    // Packages that only other clients may depend on.
    let wrapped: BTreeSet<String> = section("bans", "deny")
        .iter()
        .filter_map(toml::Value::as_array)
        .flatten()
        .filter(|ban| ban.get("wrappers").is_some())
        .filter_map(|ban| ban.get("name")?.as_str().map(str::to_owned))
        .collect();
    let mut problems = BTreeMap::new();
    for features in ["", "bucketload/engines"] {
        // Unlike `cargo metadata`, the tree holds only what is built.
        let tree = output(
            cargo("tree --locked --workspace -e normal,build,dev --prefix none -f {p}|{l}")
                .args(["--features", features]),
        )?;
        for line in tree.lines().filter(|line| !line.is_empty()) {
            let Some((package, licence)) = line.split_once('|') else {
                return Err(format!("cargo tree: unexpected line {line:?}"));
            };
            let licence = licence.trim_end_matches(" (*)");
            let name = package.split_whitespace().next().unwrap_or_default();
            if banned.contains(name) && (features.is_empty() || !wrapped.contains(name)) {
                problems.insert(name.to_owned(), format!("{name} is banned by deny.toml"));
            } else if !permitted(licence, &allowed) {
                problems.insert(
                    name.to_owned(),
                    format!("{name}: licence {licence:?} is not allowed by deny.toml"),
                );
            }
        }
    }
    Ok(problems.into_values().collect())
}

/// True if the allowed licences satisfy an SPDX expression: every `AND` part needs an allowed `OR` alternative.
/// Parentheses are dropped, which is exact for the `(A OR B) AND C` expressions that occur.
fn permitted(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let flat = expression.replace(['(', ')'], "").replace('/', " OR ");
    !flat.is_empty()
        && flat.split(" AND ").all(|part| {
            part.split(" OR ")
                .any(|licence| allowed.contains(licence.trim()))
        })
}

#[cfg(test)]
mod tests {
    use super::permitted;

    #[test]
    fn expressions_need_one_allowed_alternative_in_each_part() {
        let allowed = ["MIT", "ISC"].map(str::to_owned).into();
        assert!(permitted("MIT OR GPL-3.0", &allowed));
        assert!(permitted("ISC AND (GPL-2.0 OR MIT)", &allowed));
        assert!(permitted("GPL-2.0/MIT", &allowed));
        assert!(!permitted("MIT AND GPL-3.0", &allowed));
        assert!(!permitted("", &allowed));
    }
}
