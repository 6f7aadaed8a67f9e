//! Every mistake in a workload is reported with file, line, column, field and remedy.
//!
//! `table`: one mistake per row; `flags`: command-line mistakes; `arbitrary`: random text.

mod arbitrary;
mod flags;
mod table;

use bucketload_workload::resolve::{Overrides, ResolveContext, Resolved, resolve};
use bucketload_workload::spec::{Location, Problem, SpecError, WorkloadFile};

const GOOD: &str = r#"
[keysets.data]
count = 100
size = "4KiB"

[phases.run]
duration = "10s"
rate = "100/s"
mix = { get = 70, put = 30 }
"#;

fn run(text: &str, overrides: &Overrides) -> Result<Resolved, SpecError> {
    let file = WorkloadFile::parse("w.toml", text)?;
    resolve(&file, overrides, &ResolveContext::default())
}

fn problems(text: &str) -> Vec<Problem> {
    match run(text, &Overrides::default()) {
        Ok(_) => Vec::new(),
        Err(error) => error.problems().to_vec(),
    }
}

/// The only problem of `GOOD` with `old` replaced by `new`.
fn problem(old: &str, new: &str) -> Problem {
    assert!(GOOD.contains(old), "{old}");
    let found = problems(&GOOD.replace(old, new));
    assert_eq!(found.len(), 1, "{old} -> {new}: {found:#?}");
    found[0].clone()
}

fn line_and_column(problem: &Problem) -> (usize, usize) {
    match &problem.location {
        Location::File {
            file, line, column, ..
        } => {
            assert_eq!(file, "w.toml");
            (*line, *column)
        }
        Location::Flag { flag } => panic!("{flag}"),
    }
}

#[test]
fn the_base_is_good() {
    assert_eq!(problems(GOOD), []);
}

#[test]
fn display_shows_the_line_with_a_caret() {
    let file = WorkloadFile::parse("w.toml", &GOOD.replace("duration", "duraton"));
    let expected = "w.toml:7:1: phases.run.duraton: unknown field `duraton`
    |
  7 | duraton = \"10s\"
    | ^^^^^^^
  help: did you mean `duration`?";
    assert_eq!(file.unwrap_err().to_string(), expected);
}

#[test]
fn a_read_only_workload_on_an_empty_key_set_is_rejected() {
    let text = GOOD.replace("count = 100\n", "").replace(", put = 30", "");
    let found = problems(&text);
    assert_eq!(found.len(), 1);
    assert!(
        found[0].message.contains("empty and nothing writes"),
        "{}",
        found[0]
    );
}

#[test]
fn verification_of_overwritten_objects_is_rejected() {
    let overwriting = GOOD.replace("put = 30", "put = { weight = 30, keys = \"uniform\" }");
    assert_eq!(problems(&overwriting), []);
    let found = problems(&format!("verify = true\n{overwriting}"));
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].field, "phases.run.mix.get");
    assert!(
        found[0].message.contains("cannot be verified"),
        "{}",
        found[0]
    );
}

#[test]
fn unprepared_objects_must_be_written_before_they_are_read() {
    let text = GOOD.replace("count = 100", "count = 100\nprepare = false");
    let found = problems(&text);
    assert_eq!(found.len(), 1);
    assert!(
        found[0].message.contains("no earlier phase writes it"),
        "{}",
        found[0]
    );
    let written_first = text.replace(
        "[phases.run]",
        "[phases.fill]\nops = 100\nworkers = 4\nmix.put = { keys = \"sequential\" }\n[phases.run]",
    );
    assert_eq!(problems(&written_first), []);
}

#[test]
fn several_mistakes_are_reported_at_once() {
    let text = GOOD
        .replace("count", "cuont")
        .replace("\"4KiB\"", "\"x\"")
        .replace("\"10s\"", "\"10\"");
    let fields: Vec<String> = problems(&text).into_iter().map(|p| p.field).collect();
    let expected = [
        "keysets.data.cuont",
        "keysets.data.size",
        "phases.run.duration",
    ];
    assert_eq!(fields, expected);
}

#[test]
fn syntax_errors_have_a_location() {
    let found = problems(&GOOD.replace("\"10s\"", "\"10s"));
    assert_eq!(line_and_column(&found[0]).0, 7, "{found:#?}");
    assert!(!found[0].message.is_empty());
    let twice = problems(&GOOD.replace("count = 100", "count = 100\ncount = 5"));
    assert_eq!(line_and_column(&twice[0]).0, 4);
    assert!(twice[0].message.contains("duplicate"), "{}", twice[0]);
}
