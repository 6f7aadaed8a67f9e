//! Dependency rules, checked against cargo's own resolution: which crate may depend on which, which crates must stay
//! free of a runtime, the licences and bans of `deny.toml`, and that all commands build with one set of features
//! (`features`).

use std::collections::{BTreeMap, BTreeSet};

use crate::features;
use crate::files;
use crate::sh::{Result, cargo, ensure, output, root};

/// A crate, the crates of ours that it may depend on (without `bucketload-`), and the packages that must not be among
/// its normal dependencies.
const RULES: &[(&str, &str, &str)] = &[
    // The core does not parse files.
    ("core", "", "tokio libc rustix socket2 toml"),
    ("workload", "core", "tokio libc rustix"),
    ("wire", "", "hyper reqwest"),
    // Declarations only.
    ("libs3-abi", "", "tokio rustix"),
    // Pure functions of a protocol.
    ("s3", "", "tokio rustix aws-lc-sys"),
    ("store", "", "tokio rustls"),
    ("server", "s3 store wire", "hyper"),
    // Its CPU is never the client's, and its timers are finer than a runtime's.
    ("faultline", "core", "tokio"),
    // Shared by everything that demands a token, including the gateway, whose client runs inside other processes.
    ("token", "", "tokio rustix libc"),
    // Runs inside other processes.
    ("gateway", "store token", "tokio rustls"),
    ("target", "core", "tokio clap"),
    ("drivers", "core s3 target wire", "hyper"),
    ("local", "core libs3-abi target", "rustls"),
    // A change of a driver must compile only the driver's crate and link the program.
    (
        "cli",
        "agents console core cosbench faultline gateway results run s3 server store study target token trace wire \
         workload",
        "",
    ),
    // Other clients belong only to builds that ask for them.
    (
        "bucketload",
        "agents cli console core cosbench drivers faultline gateway libs3-abi local results run s3 server store study target \
         token trace wire workload",
        "aws-sdk-s3 object_store opendal reqwest",
    ),
    ("cosbench", "", "tokio"),
    // The load never runs inside the web server.
    ("console", "core results token workload", ""),
    ("trace", "core workload", "tokio"),
    ("run", "core", ""),
    // The gRPC service is written by hand.
    ("agents", "core run token", "prost axum"),
    // Runs inside applications.
    (
        "libs3-bucketload",
        "gateway libs3-abi s3 store token",
        "tokio rustls aws-lc-sys tracing",
    ),
    // The program starts and measures; this crate does not.
    ("study", "core results workload", "tokio"),
    // Fakes follow the services' documentation and must not contain the crates that they help to test.
    ("testkit", "", "tokio"),
    ("results", "core workload", "tokio"),
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
    for (name, allowed, forbidden) in RULES {
        let package = full_name(name);
        let tree = output(&mut cargo(&format!(
            "tree --locked -p {package} -e normal --prefix none -f {{p}}"
        )))?;
        let lines = tree.lines().skip(1);
        let present: BTreeSet<&str> = lines
            .filter_map(|line| line.split_whitespace().next())
            .filter(|found| *found != package)
            .collect();
        let allowed: BTreeSet<String> = allowed.split_whitespace().map(full_name).collect();
        let is_ours = |found: &str| found.starts_with("bucketload") || found.starts_with("libs3-");
        let known = present.into_iter().filter(|found| {
            let forbidden = forbidden.split(' ').any(|name| name == *found);
            forbidden || is_ours(found) && !allowed.contains(*found)
        });
        problems.extend(known.map(|found| format!("{package} must not depend on {found}")));
    }
    problems.extend(licences_and_bans()?);
    problems.extend(features::differences()?);
    ensure(problems.is_empty(), || problems.join("\n  "))
}

/// The package of a crate in the rules.
fn full_name(name: &str) -> String {
    match name {
        "bucketload" => name.to_owned(),
        _ if name.starts_with("libs3-") => name.to_owned(),
        _ => format!("bucketload-{name}"),
    }
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
