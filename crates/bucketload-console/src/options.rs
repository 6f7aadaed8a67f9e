//! The options of a submission: the flags of `bucketload run` that users may set.
//!
//! Only flags in [`OPTIONS`] are passed on, each as one argument `--NAME=VALUE`, so no value can be mistaken for a
//! flag. The list has no flags that name files of the controller's machine, open ports or start programs, and none
//! for credentials: those come from the controller's environment, or from an AWS profile selected by name.

use serde::{Deserialize, Serialize};

/// The syntax of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionKind {
    /// A value.
    Text,
    /// A flag without a value.
    Flag,
    /// A value that may be given several times.
    Many,
}

/// An allowed option.
#[derive(Clone, Copy, Debug)]
pub struct OptionRow {
    /// Name of the flag of `bucketload run`.
    pub name: &'static str,
    /// The syntax.
    pub kind: OptionKind,
    /// Group in the submission form: `load`, `target`, `cosbench` or `more`.
    pub group: &'static str,
    /// Label in the form.
    pub label: &'static str,
    /// An example value.
    pub example: &'static str,
}

const fn row(
    name: &'static str,
    kind: OptionKind,
    group: &'static str,
    label: &'static str,
    example: &'static str,
) -> OptionRow {
    OptionRow {
        name,
        kind,
        group,
        label,
        example,
    }
}

use OptionKind::{Flag, Many, Text};

/// All allowed options.
#[rustfmt::skip]
pub const OPTIONS: &[OptionRow] = &[
    row("duration", Text, "load", "Time limit", "60s"),
    row("rate", Text, "load", "Open loop: operations per second", "200/s"),
    row("workers", Text, "load", "Closed loop: workers", "32"),
    row("objects", Text, "load", "Objects", "10000"),
    row("size", Text, "load", "Object size", "64KiB"),
    row("mix", Text, "load", "Operations", "get=70,put=30"),
    row("target", Text, "target", "Target", "s3://bucket/prefix"),
    row("endpoint-url", Many, "target", "Endpoint", "http://host:9000"),
    row("region", Text, "target", "Region", "us-east-1"),
    row("profile", Text, "target", "AWS profile with the credentials", "default"),
    row("addressing", Text, "target", "Addressing style", "path"),
    row("create-bucket", Flag, "target", "Create the bucket if it does not exist", ""),
    row("no-sign-request", Flag, "target", "Send requests without a signature", ""),
    row("no-verify-ssl", Flag, "target", "Accept any TLS certificate", ""),
    row("delete-named", Flag, "cosbench", "Allow replacing and deleting existing objects and containers", ""),
    row("skip-operations", Text, "cosbench", "Operations to leave out", "restore,localwrite"),
    row("compat", Text, "cosbench", "Archive computed as by COSBench", "strict"),
    row("profile-name", Text, "more", "Variant of the workload", ""),
    row("arrival", Text, "more", "Arrival process", "lognormal(200/s, cv=2)"),
    row("max-in-flight", Text, "more", "Maximum operations in flight", "1000"),
    row("think", Text, "more", "Think time", "10ms"),
    row("ops", Text, "more", "Operation limit", "100000"),
    row("bytes", Text, "more", "Byte limit", "10GiB"),
    row("keys", Text, "more", "Object popularity", "zipf(0.99)"),
    row("seed", Text, "more", "Seed", "1"),
    row("scale", Text, "more", "Scale factor for object counts", "0.1"),
    row("payload", Text, "more", "Object contents", "random"),
    row("timeout", Text, "more", "Timeout per attempt", "10s"),
    row("threads", Text, "more", "Load threads", "2"),
    row("payload-signing", Text, "more", "Payload signing", "unsigned"),
    row("checksum", Text, "more", "Checksum", "crc32c"),
    row("op-log", Text, "more", "Log every operation (parquet or csv.zst)", "parquet"),
    row("set", Many, "more", "Any field of the workload", "phases.run.drain=5s"),
    row("fact", Many, "more", "Fact about the target", "durability=3-copies"),
    row("verify", Flag, "more", "Verify every byte read", ""),
    row("oracle", Flag, "more", "Check every answer (consistency oracle)", ""),
    row("keep", Flag, "more", "Keep the objects in the store", ""),
    row("no-calibration", Flag, "more", "Skip the calibration of the client", ""),
    row("no-calibration-cache", Flag, "more", "Calibrate the client anew", ""),
];

/// Maximum length of a value, bytes.
const MAX_VALUE: usize = 1000;
/// Maximum number of options of a job.
const MAX_OPTIONS: usize = 100;

/// Checked options: names from [`OPTIONS`] with their values (empty for flags).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<(String, String)>", into = "Vec<(String, String)>")]
pub struct RunOptions(Vec<(String, String)>);

impl From<RunOptions> for Vec<(String, String)> {
    fn from(options: RunOptions) -> Self {
        options.0
    }
}

impl TryFrom<Vec<(String, String)>> for RunOptions {
    type Error = String;

    fn try_from(pairs: Vec<(String, String)>) -> Result<Self, String> {
        Self::check(pairs)
    }
}

impl RunOptions {
    /// Checks options. Empty values count as not given, except for flags, which are set by any value but `false`.
    ///
    /// # Errors
    /// For an option that is not allowed, or an invalid value.
    pub fn check(pairs: impl IntoIterator<Item = (String, String)>) -> Result<Self, String> {
        let mut checked: Vec<(String, String)> = Vec::new();
        for (name, value) in pairs {
            let Some(row) = OPTIONS.iter().find(|row| row.name == name) else {
                return Err(format!(
                    "option `{}` is not allowed; allowed are {}",
                    printable(&name),
                    OPTIONS
                        .iter()
                        .map(|row| row.name)
                        .collect::<Vec<_>>()
                        .join(", ")
                ));
            };
            let value = value.trim();
            match row.kind {
                Flag if value == "false" => continue,
                Flag => {
                    if !checked.iter().any(|(known, _)| *known == name) {
                        checked.push((name, String::new()));
                    }
                    continue;
                }
                Text | Many if value.is_empty() => continue,
                Text if checked.iter().any(|(known, _)| *known == name) => {
                    return Err(format!("option `{name}` was given twice"));
                }
                Text | Many => {}
            }
            check_value(&name, value)?;
            checked.push((name, value.to_owned()));
            if checked.len() > MAX_OPTIONS {
                return Err(format!("more than {MAX_OPTIONS} options"));
            }
        }
        Ok(Self(checked))
    }

    /// The arguments for `bucketload run`.
    #[must_use]
    pub fn arguments(&self) -> Vec<String> {
        self.0
            .iter()
            .map(|(name, value)| {
                if value.is_empty() {
                    format!("--{name}")
                } else {
                    format!("--{name}={value}")
                }
            })
            .collect()
    }

    /// The names and values.
    #[must_use]
    pub fn pairs(&self) -> &[(String, String)] {
        &self.0
    }
}

fn check_value(name: &str, value: &str) -> Result<(), String> {
    use bucketload_results::rundir::redact;

    if value.len() > MAX_VALUE {
        return Err(format!(
            "option `{name}`: the value is longer than {MAX_VALUE} bytes"
        ));
    }
    if value.chars().any(char::is_control) {
        return Err(format!(
            "option `{name}`: the value contains control characters"
        ));
    }
    let secret = "credentials are not allowed here, because everyone on the machine can see arguments; set them in the environment of the controller, or select an AWS profile";
    let named = value.split_once('=').is_some_and(|(field, _)| {
        redact::is_secret_name(field.rsplit('.').next().unwrap_or(field))
    });
    if matches!(name, "set" | "fact") && named {
        return Err(format!("option `{name}`: {secret}"));
    }
    // A value that a report would mask contains a secret.
    if redact::text(value) != value {
        return Err(format!("option `{name}`: {secret}"));
    }
    Ok(())
}

fn printable(text: &str) -> String {
    text.chars()
        .filter(|c| !c.is_control())
        .take(60)
        .collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::RunOptions;

    fn check(pairs: &[(&str, &str)]) -> Result<Vec<String>, String> {
        let pairs = pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        RunOptions::check(pairs).map(|options| options.arguments())
    }

    #[test]
    fn options_become_single_arguments() {
        let arguments = check(&[
            ("duration", " 5s "),
            ("rate", ""),
            ("verify", "on"),
            ("verify", "true"),
            ("keep", "false"),
            ("endpoint-url", "http://a:1"),
            ("endpoint-url", "http://b:2"),
            ("size", "--out=/etc/passwd"),
        ]);
        assert_eq!(
            arguments.unwrap(),
            [
                "--duration=5s",
                "--verify",
                "--endpoint-url=http://a:1",
                "--endpoint-url=http://b:2",
                "--size=--out=/etc/passwd"
            ]
        );
    }

    #[test]
    fn other_options_are_refused() {
        for name in [
            "out",
            "results-csv",
            "ca-bundle",
            "client-key",
            "token-file",
            "prometheus",
            "engine",
            "launch",
            "objects-of",
            "agents",
            "cosbench-artifacts",
            "cosbench-number",
            "--rate",
            "",
        ] {
            assert!(
                check(&[(name, "x")]).unwrap_err().contains("not allowed"),
                "{name}"
            );
        }
        assert!(
            check(&[("rate", "1"), ("rate", "2")])
                .unwrap_err()
                .contains("twice")
        );
        assert!(check(&[("mix", "get=1\nput=1")]).is_err());
        assert!(check(&[("mix", &"x".repeat(2000))]).is_err());
    }

    #[test]
    fn credentials_in_arguments_are_refused() {
        for (name, value) in [
            ("endpoint-url", "http://user:secret@host:9000"),
            ("set", "target.secret-key=abc"),
            ("fact", "password=abc"),
        ] {
            assert!(
                check(&[(name, value)])
                    .unwrap_err()
                    .contains("environment of the controller"),
                "{name} {value}"
            );
        }
    }

    #[test]
    fn a_stored_list_is_checked_again() {
        let stored = r#"[["rate","5/s"],["out","/tmp"]]"#;
        assert!(serde_json::from_str::<RunOptions>(stored).is_err());
        let stored = r#"[["rate","5/s"],["verify",""]]"#;
        let options: RunOptions = serde_json::from_str(stored).unwrap();
        assert_eq!(serde_json::to_string(&options).unwrap(), stored);
    }
}
