//! Dialect files: what a store does otherwise than its API says. `doctor` writes them, `--dialect` reads them.

use std::fmt::Write as _;

use bucketload_core::op::OpClass;
use bucketload_target::doctor::{Finding, State};
use bucketload_target::{Dialect, Flag, Value};
use bucketload_workload::spec::closest;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::drivers::registry;

const SETTINGS: &str = "settings";
const REFUSED: &str = "refused";

/// Reads the dialect file `path`.
///
/// # Errors
/// File, line, key and remedy.
pub(crate) fn read(path: &str) -> Result<Dialect, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{path}: {e}"))?;
    parse(path, &text)
}

fn parse(path: &str, text: &str) -> Result<Dialect, String> {
    let line = |at: usize| {
        let before = &text.as_bytes()[..at.min(text.len())];
        u32::try_from(before.iter().filter(|b| **b == b'\n').count() + 1).unwrap_or(u32::MAX)
    };
    let table = DeTable::parse(text).map_err(|e| {
        let at = e.span().map_or(0, |span| span.start);
        format!("{path}:{}: {}", line(at), e.message())
    })?;
    let mut dialect = Dialect {
        file: path.to_owned(),
        ..Dialect::default()
    };
    for (section, entries) in table.get_ref() {
        let name = section.get_ref().as_ref();
        let at = line(section.span().start);
        if ![SETTINGS, REFUSED].contains(&name) {
            return Err(format!(
                "{path}:{at}: {name}: a dialect has the tables [{SETTINGS}] and [{REFUSED}]; remove the line"
            ));
        }
        let DeValue::Table(entries) = entries.get_ref() else {
            return Err(format!(
                "{path}:{at}: {name}: write it as a table: [{name}]"
            ));
        };
        for (key, value) in entries {
            let place = format!(
                "{path}:{}: [{name}] {}",
                line(key.span().start),
                key.get_ref()
            );
            let value =
                text_of(value).ok_or_else(|| format!("{place}: write the value in quotes"))?;
            let key_line = line(key.span().start);
            let key = key.get_ref().as_ref();
            match name {
                SETTINGS => {
                    let flag = setting(key).map_err(|e| format!("{place}: {e}"))?;
                    check(flag, value).map_err(|e| format!("{place}: {e}"))?;
                    let value = (value.to_owned(), key_line);
                    dialect.settings.insert(flag.name.to_owned(), value);
                }
                _ => {
                    let class = class(key).map_err(|e| format!("{place}: {e}"))?;
                    dialect
                        .refused
                        .push((class, format!("{path}:{key_line}: {value}")));
                }
            }
        }
    }
    Ok(dialect)
}

fn text_of<'v>(value: &'v Spanned<DeValue<'_>>) -> Option<&'v str> {
    match value.get_ref() {
        DeValue::String(text) => Some(text.as_ref()),
        _ => None,
    }
}

/// The flags that any driver's dialect may set.
fn settable() -> impl Iterator<Item = &'static Flag> + Clone {
    registry()
        .drivers
        .iter()
        .flat_map(|driver| driver.dialect.iter().copied())
}

/// The flag that the key of `[settings]` means.
fn setting(key: &str) -> Result<&'static Flag, String> {
    let mut all = settable();
    all.find(|flag| flag.long() == key)
        .ok_or_else(|| unknown(key, settable().map(Flag::long)))
}

fn class(key: &str) -> Result<OpClass, String> {
    let all = OpClass::ALL
        .into_iter()
        .filter(|class| class.is_for_workloads());
    let found = OpClass::from_name(key).filter(|class| class.is_for_workloads());
    found.ok_or_else(|| unknown(key, all.map(OpClass::name)))
}

fn unknown(key: &str, known: impl Iterator<Item = &'static str> + Clone) -> String {
    match closest(key, known.clone()) {
        Some(name) => format!("there is no such key; did you mean `{name}`?"),
        None => format!(
            "there is no such key; use one of {}",
            known.collect::<Vec<_>>().join(", ")
        ),
    }
}

/// Checks a value as the command line would.
fn check(flag: &Flag, value: &str) -> Result<(), String> {
    match flag.value {
        Value::Choice(_, choices) if !choices.iter().any(|(name, _)| *name == value) => {
            let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
            Err(format!("{value:?} is not one of {}", names.join(", ")))
        }
        Value::Checked(_, check) | Value::List(_, check) => check(value),
        _ => Ok(()),
    }
}

/// The dialect that `findings` make, as a file for `target`.
pub(crate) fn write(target: &str, findings: &[Finding]) -> String {
    let mut out = format!(
        "# What {target} does otherwise, found by `bucketload doctor` {}.\n# Use it with --dialect.\n",
        env!("CARGO_PKG_VERSION")
    );
    let differing = || findings.iter().filter(|f| f.state == State::Differs);
    // Writing to a string cannot fail.
    for finding in differing().filter(|f| f.setting.is_none() && f.refuses.is_empty()) {
        let _ = writeln!(out, "# {}: {}", finding.id, one_line(&finding.found));
    }
    let used = findings.iter().filter(|f| f.state != State::Failed);
    let settings: Vec<_> = used.filter_map(|f| f.setting.as_ref()).collect();
    if !settings.is_empty() {
        let _ = writeln!(out, "\n[{SETTINGS}]");
    }
    for (name, value) in settings {
        let _ = writeln!(out, "{name} = {}", quoted(value));
    }
    let refused: Vec<_> = differing().filter(|f| !f.refuses.is_empty()).collect();
    if !refused.is_empty() {
        let _ = writeln!(out, "\n[{REFUSED}]");
    }
    let mut seen = Vec::new();
    for finding in refused {
        for class in &finding.refuses {
            if !seen.contains(class) {
                seen.push(*class);
                let why = format!("{}: {}", finding.id, one_line(&finding.found));
                let _ = writeln!(out, "{class} = {}", quoted(&why));
            }
        }
    }
    out
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// The first line of `text`, without control characters.
fn one_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    line.chars().filter(|c| !c.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use bucketload_core::op::OpClass;
    use bucketload_target::doctor::{Finding, State};
    use bucketload_target::flags;

    use super::{parse, write};

    #[test]
    fn what_the_doctor_writes_is_read_back() {
        let mut region = Finding::new("region", "", State::Differs, "400: elsewhere");
        region.setting = Some(("region", "eu-quirk-1".to_owned()));
        let mut copy = Finding::new("copy", "", State::Differs, "501 \"no\"\nmore");
        copy.refuses = vec![OpClass::Copy];
        let slow = Finding::new("round-trip", "", State::Differs, "200 ms");
        let fine = Finding::new("get", "", State::Ok, "fine");
        let text = write("s3://b", &[region, copy, slow, fine]);
        let dialect = parse("d.toml", &text).unwrap();
        let (value, source) = dialect.get(&flags::REGION).unwrap();
        assert_eq!(value, "eu-quirk-1");
        assert_eq!(source.to_string(), "dialect d.toml:6");
        assert_eq!(dialect.refused.len(), 1);
        assert_eq!(dialect.refused[0].0, OpClass::Copy);
        assert!(
            dialect.refused[0].1.ends_with("copy: 501 \"no\""),
            "{dialect:?}"
        );
        assert!(text.contains("# round-trip: 200 ms") && !text.contains("fine"));
    }

    #[test]
    fn mistakes_are_named_with_file_line_and_key() {
        for (text, words) in [
            (
                "[settings]\nregoin = \"x\"\n",
                "d.toml:2: [settings] regoin: there is no such key; did you mean `region`?",
            ),
            (
                "\n[refused]\ncopi = \"x\"\n",
                "d.toml:3: [refused] copi: there is no such key; did you mean `copy`?",
            ),
            ("[refused]\nsync = \"x\"\n", "d.toml:2: [refused] sync"),
            (
                "[settings]\naddressing = \"host\"\n",
                "is not one of path, virtual",
            ),
            (
                "[settings]\nregion = 5\n",
                "d.toml:2: [settings] region: write the value in quotes",
            ),
            (
                "region = \"x\"\n",
                "d.toml:1: region: a dialect has the tables",
            ),
            ("settings = 1\n", "d.toml:1: settings: write it as a table"),
            ("[settings\n", "d.toml:1: "),
        ] {
            let error = parse("d.toml", text).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }
}
