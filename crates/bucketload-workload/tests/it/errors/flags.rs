//! Mistakes in flags, settings by path, and profiles.

use bucketload_workload::resolve::{Field, Override, Overrides};
use bucketload_workload::spec::Location;

use super::{GOOD, problems, run};

#[test]
fn flags_are_named_instead_of_lines() {
    let cases = [
        (Field::Rate, "0", "--rate 0", "the rate is 0"),
        (Field::Rate, "-1", "--rate -1", "negative"),
        (Field::Duration, "5", "--duration 5", "lacks a unit"),
        (Field::Workers, "0", "--workers 0", "at least 1 worker"),
        (Field::Mix, "get", "--mix get", "its weight"),
        (Field::Mix, "gte=1", "--mix gte=1", "unknown operation"),
        (Field::Mix, "get=0", "--mix get=0", "all weights are zero"),
        (Field::Size, "4X", "--size 4X", "not a size"),
        (Field::Keys, "zipff", "--keys zipff", "not a key law"),
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
