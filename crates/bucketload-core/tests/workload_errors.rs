//! Every mistake in a workload is reported with file, line, column, field and remedy.

use bucketload_core::resolve::{
    DryRun, EMBEDDED_MEMORY_BUDGET, Field, Override, Overrides, ResolveContext, Resolved, resolve,
};
use bucketload_core::spec::{Location, Problem, SpecError, WorkloadFile};
use proptest::prelude::*;

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

/// Text replaced, replacement, line and column, field, part of the message, part of the remedy.
type Case = (
    &'static str,
    &'static str,
    (usize, usize),
    &'static str,
    &'static str,
    &'static str,
);

#[test]
fn mistakes_in_values() {
    let cases: [Case; 19] = [
        ("100\n", "-1\n", (3, 9), "keysets.data.count", "-1", ""),
        (
            "100\n",
            "\"many\"\n",
            (3, 9),
            "keysets.data.count",
            "whole number",
            "",
        ),
        (
            "\"4KiB\"",
            "\"4KiX\"",
            (4, 8),
            "keysets.data.size",
            "not a size",
            "4KiB",
        ),
        (
            "\"4KiB\"",
            "\"4k/70:1m/20\"",
            (4, 8),
            "keysets.data.size",
            "add up to 90",
            "4k/70",
        ),
        (
            "\"4KiB\"",
            "\"emg(1, 2)\"",
            (4, 9),
            "keysets.data.size",
            "`tau`",
            "emg(mu, sigma, tau)",
        ),
        (
            "\"4KiB\"",
            "\"emgg(1, 2)\"",
            (4, 9),
            "keysets.data.size",
            "`emgg`",
            "`emg`?",
        ),
        (
            "\"4KiB\"",
            "\"emg(1, 0, 2)\"",
            (4, 16),
            "keysets.data.size.sigma",
            "greater than 0",
            "",
        ),
        (
            "\"4KiB\"",
            "\"uniform(9, 8)\"",
            (4, 17),
            "keysets.data.size",
            "exceeds",
            "",
        ),
        (
            "\"4KiB\"",
            "\"const(4, min=9, max=8)\"",
            (4, 8),
            "keysets.data.size",
            "exceeds",
            "exchange",
        ),
        (
            "\"4KiB\"",
            "\"mixture(0: 1, 0: 2)\"",
            (4, 9),
            "keysets.data.size",
            "weights are zero",
            "mixture",
        ),
        (
            "\"4KiB\"",
            "{ mu = 4 }",
            (4, 8),
            "keysets.data.size",
            "lacks `law`",
            "law =",
        ),
        (
            "\"4KiB\"",
            "true",
            (4, 8),
            "keysets.data.size",
            "found a boolean",
            "",
        ),
        (
            "\"10s\"",
            "10",
            (7, 12),
            "phases.run.duration",
            "lacks a unit",
            "30s",
        ),
        (
            "\"10s\"",
            "\"0s\"",
            (7, 12),
            "phases.run.duration",
            "end at once",
            "above 0",
        ),
        (
            "\"100/s\"",
            "0",
            (8, 8),
            "phases.run.rate",
            "rate is 0",
            "above 0",
        ),
        (
            "\"100/s\"",
            "\"-5/s\"",
            (8, 8),
            "phases.run.rate",
            "negative",
            "200/s",
        ),
        (
            "\"100/s\"",
            "\"1GiB/s\"",
            (8, 8),
            "phases.run.rate",
            "rate of bytes",
            "200/s",
        ),
        (
            "= 70",
            "= \"x\"",
            (9, 15),
            "phases.run.mix.get",
            "not a weight",
            "70",
        ),
        (
            "[phases.run]",
            "[\"phases\".\"ru n\"]",
            (6, 11),
            "phases.ru n",
            "not a name",
            "letters",
        ),
    ];
    check(&cases);
}

#[test]
fn mistakes_that_only_show_together() {
    let cases: [Case; 25] = [
        (
            "get = 70",
            "gett = 70",
            (9, 9),
            "phases.run.mix.gett",
            "unknown operation",
            "`get`?",
        ),
        (
            "get = 70, put = 30",
            "get = 0",
            (9, 1),
            "phases.run.mix",
            "all weights are zero",
            "70",
        ),
        (
            "= 70",
            "= \"70%\"",
            (9, 1),
            "phases.run.mix",
            "mixed",
            "add up to 100",
        ),
        (
            "70, put = 30",
            "\"70%\", put = \"20%\"",
            (9, 1),
            "phases.run.mix",
            "up to 90",
            "100",
        ),
        (
            "get = 70",
            "range-get = 7",
            (9, 9),
            "phases.run.mix.range-get",
            "how long",
            "`range`",
        ),
        (
            "get = 70",
            "delete-many = 7",
            (9, 9),
            "phases.run.mix.delete-many",
            "how many keys",
            "batch",
        ),
        (
            "get = 70",
            "delete-many = { batch = 5000 }",
            (9, 33),
            "phases.run.mix.delete-many.batch",
            "5000 keys",
            "1000",
        ),
        (
            "get = 70",
            "restore = { days = 0 }",
            (9, 28),
            "phases.run.mix.restore.days",
            "0 days",
            "at least 1",
        ),
        (
            "get = 70",
            "get = { weight = 70, days = 3 }",
            (9, 37),
            "phases.run.mix.get.days",
            "that is for restore",
            "remove it",
        ),
        (
            "get = 70",
            "multipart-put = { part-size = \"4MiB\" }",
            (9, 39),
            "phases.run.mix.multipart-put.part-size",
            "4MiB",
            "5MiB",
        ),
        (
            "get = 70",
            "delete-bucket = 1",
            (9, 9),
            "phases.run.mix.delete-bucket",
            "bucket of the run itself",
            "buckets of its own",
        ),
        (
            "get = 70",
            "get = { range = \"4k\" }",
            (9, 25),
            "phases.run.mix.get.range",
            "has no `range`",
            "remove",
        ),
        (
            "get = 70",
            "get = { keys = \"fresh\" }",
            (9, 24),
            "phases.run.mix.get.keys",
            "needs existing ones",
            "uniform",
        ),
        (
            "get = 70",
            "get = { keyset = \"dat\" }",
            (9, 26),
            "phases.run.mix.get.keyset",
            "no key set `dat`",
            "`data`?",
        ),
        (
            "count = 100\n",
            "",
            (8, 9),
            "phases.run.mix.get.keys",
            "has none",
            "keysets.data.count",
        ),
        (
            "size = \"4KiB\"\n",
            "",
            (2, 10),
            "keysets.data.size",
            "missing",
            "size =",
        ),
        (
            "duration = \"10s\"\n",
            "",
            (6, 9),
            "phases.run",
            "never ends",
            "duration",
        ),
        (
            "rate = \"100/s\"\n",
            "",
            (6, 9),
            "phases.run",
            "when operations are due",
            "workers",
        ),
        (
            "rate",
            "workers = 4\nrate",
            (8, 11),
            "phases.run.workers",
            "closed loop",
            "one of them",
        ),
        (
            "rate",
            "think = \"1s\"\nrate",
            (8, 9),
            "phases.run.think",
            "no think time",
            "remove",
        ),
        (
            "rate",
            "max-in-flight = 0\nrate",
            (8, 17),
            "phases.run.max-in-flight",
            "cap of 0",
            "1",
        ),
        (
            "rate = \"100/s\"",
            "workers = 0",
            (8, 11),
            "phases.run.workers",
            "do nothing",
            "1",
        ),
        (
            "rate",
            "arrival = \"ramp(1/s, 2/s, 5s)\"\nrate",
            (9, 8),
            "phases.run.rate",
            "no single rate",
            "arrival",
        ),
        (
            "rate = \"100/s\"",
            "arrival = \"poisson\"",
            (8, 11),
            "phases.run.arrival",
            "rate is missing",
            "200/s",
        ),
        (
            "[keysets.data]",
            "timeout = \"0s\"\n[keysets.data]",
            (2, 11),
            "timeout",
            "fails every",
            "30s",
        ),
    ];
    check(&cases);
}

fn check(cases: &[Case]) {
    for (old, new, place, field, message, remedy) in cases {
        let found = problem(old, new);
        assert_eq!(&found.field, field, "{found}");
        assert_eq!(&line_and_column(&found), place, "{found}");
        assert!(found.message.contains(message), "{found}");
        assert!(found.remedy.contains(remedy), "{found}");
    }
}

#[test]
fn a_read_only_workload_on_an_empty_key_set_is_impossible() {
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
fn verification_of_overwritten_objects_is_refused() {
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
fn syntax_errors_have_a_place() {
    let found = problems(&GOOD.replace("\"10s\"", "\"10s"));
    assert_eq!(line_and_column(&found[0]).0, 7, "{found:#?}");
    assert!(!found[0].message.is_empty());
    let twice = problems(&GOOD.replace("count = 100", "count = 100\ncount = 5"));
    assert_eq!(line_and_column(&twice[0]).0, 4);
    assert!(twice[0].message.contains("duplicate"), "{}", twice[0]);
}

#[test]
fn flags_are_named_instead_of_lines() {
    let cases = [
        (Field::Rate, "0", "--rate 0", "the rate is 0"),
        (Field::Rate, "-1", "--rate -1", "negative"),
        (Field::Duration, "5", "--duration 5", "lacks a unit"),
        (Field::Workers, "0", "--workers 0", "do nothing"),
        (Field::Mix, "get", "--mix get", "its weight"),
        (Field::Mix, "gte=1", "--mix gte=1", "unknown operation"),
        (Field::Mix, "get=0", "--mix get=0", "all weights are zero"),
        (Field::Size, "4X", "--size 4X", "not a size"),
        (Field::Keys, "zipff", "--keys zipff", "not a law of keys"),
        (Field::Scale, "0", "--scale 0", "greater than 0"),
        (
            Field::Payload,
            "noise",
            "--payload noise",
            "not a kind of payload",
        ),
        (Field::MaxInFlight, "0", "--max-in-flight 0", "cap of 0"),
        (Field::Size, "6GiB", "--size 6GiB", "above 5 GiB"),
        (
            Field::Path("phases.run.mix.get.keys".to_owned()),
            "zipf(1e9)",
            "--set phases.run.mix.get.keys=zipf(1e9)",
            "at most 100",
        ),
    ];
    for (field, value, flag, message) in cases {
        let overrides = Overrides {
            profile: None,
            settings: vec![Override::new(field, value)],
        };
        let error = run(GOOD, &overrides).unwrap_err();
        let problem = &error.problems()[0];
        assert_eq!(
            problem.location,
            Location::Flag {
                flag: flag.to_owned()
            },
            "{error}"
        );
        assert!(problem.message.contains(message), "{error}");
    }
}

#[test]
fn paths_of_settings_are_checked() {
    for (text, field, remedy) in [
        ("phases.rum.duration=3s", "phases.rum.duration", "`run`?"),
        ("keysets.dta.count=3", "keysets.dta.count", "`data`?"),
        ("phases.run.duraton=3s", "phases.run.duraton", "`duration`?"),
        (
            "phases.run.mix.get.kes=uniform",
            "phases.run.mix.get.kes",
            "`keys`?",
        ),
        (
            "keysets.data.size.max=4k",
            "keysets.data.size.max",
            "as a whole",
        ),
    ] {
        let overrides = Overrides {
            profile: None,
            settings: vec![Override::parse(text).unwrap()],
        };
        let error = run(GOOD, &overrides).unwrap_err();
        assert_eq!(error.problems()[0].field, field, "{error}");
        assert!(error.problems()[0].remedy.contains(remedy), "{error}");
    }
    for text in ["phases.run.duration", "=5", "a..b=5", "a b=5"] {
        assert!(Override::parse(text).is_err(), "{text}");
    }
}

#[test]
fn profiles_are_checked_even_when_they_are_not_used() {
    let text = format!("{GOOD}\n[profiles.fast]\nphases.run.rat = 5\nseed = \"x\"");
    let fields: Vec<String> = problems(&text).into_iter().map(|p| p.field).collect();
    assert_eq!(
        fields,
        ["profiles.fast.phases.run.rat", "profiles.fast.seed"]
    );
    let unknown = problems(&format!(
        "profile = \"fats\"\n{GOOD}\n[profiles.fast]\nseed = 4"
    ));
    assert!(unknown[0].remedy.contains("`fast`?"), "{}", unknown[0]);
}

proptest! {
    #[test]
    fn arbitrary_text_never_panics(text in "\\PC*") {
        let _ = run(&text, &Overrides::default());
    }

    /// Cuts, repeats and overwrites parts of good workloads.
    #[test]
    fn mutated_workloads_never_panic(
        which in 0usize..16, from in 0usize..2000, len in 0usize..40, to in 0usize..2000,
        insert in "[\\[\\]{}=\"'.,()%/:0-9a-z\n -]{0,12}",
    ) {
        let builtins = bucketload_core::spec::BUILTIN_WORKLOADS;
        let mut text: Vec<char> = builtins[which % builtins.len()].1.chars().collect();
        let from = from % text.len();
        let cut: Vec<char> = text.drain(from..(from + len).min(text.len())).collect();
        let to = to % (text.len() + 1);
        let new: Vec<char> = insert.chars().chain(cut).collect();
        text.splice(to..to, new);
        let text: String = text.into_iter().collect();
        let in_memory = ResolveContext { memory_budget: Some(EMBEDDED_MEMORY_BUDGET) };
        let resolved = WorkloadFile::parse("w.toml", &text)
            .and_then(|file| resolve(&file, &Overrides::default(), &in_memory));
        match resolved {
            Ok(resolved) => {
                // What resolves can be generated from.
                let outlook = DryRun::new(&resolved.plan);
                let outlook = outlook.map_err(|e| TestCaseError::fail(e.to_string()))?;
                prop_assert!(!outlook.to_string().is_empty());
            }
            Err(error) => {
                prop_assert!(!error.problems().is_empty());
                prop_assert!(!error.to_string().is_empty());
            }
        }
    }

    #[test]
    fn arbitrary_settings_never_panic(
        path in "(phases|keysets|target|seed|profile)(\\.(run|data|mix|get|works|keys|size|rate)){0,4}",
        value in "\\PC{0,30}",
    ) {
        let overrides = Overrides {
            profile: None,
            settings: vec![Override::new(Field::Path(path), &value)],
        };
        let _ = run(GOOD, &overrides);
    }
}
