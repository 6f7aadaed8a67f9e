use bucketload_core::drill::{Direction, What};
use bucketload_core::plan::GapLaw;

use crate::resolve::{DrillFlags, Overrides, ResolveContext, Resolved, resolve, resolve_drill};
use crate::spec::{BUILTIN_DRILLS, WorkloadFile};

const LOAD: &str = "[keysets.o]\ncount = 10\nsize = 10\n[phases.run]\nrate = 100\nmix = { get = 1 }\nkeyset = \"o\"\n";

fn drill(text: &str, hooks: &[(&str, &str)]) -> Result<Resolved, String> {
    let file =
        WorkloadFile::parse("d.toml", &format!("{LOAD}{text}")).map_err(|e| e.to_string())?;
    let hooks = hooks
        .iter()
        .map(|(name, command)| ((*name).to_owned(), (*command).to_owned()));
    let flags = DrillFlags {
        hooks: hooks.collect(),
    };
    resolve_drill(
        &file,
        &Overrides::default(),
        &ResolveContext::default(),
        &flags,
    )
    .map_err(|e| e.to_string())
}

#[test]
fn a_fault_gets_its_defaults_and_the_phase_its_stages() {
    let text = "[[fault]]\nwhat = \"latency\"\nat = \"2s\"\nfor = \"10s\"\ndelay = \"uniform(15ms, 25ms)\"\n";
    let resolved = drill(text, &[]).unwrap();
    let plan = resolved.drill.unwrap().plan;
    let fault = &plan.faults[0];
    let law = GapLaw::Uniform {
        min_ns: 15_000_000,
        max_ns: 25_000_000,
    };
    assert_eq!(fault.what, What::Latency { delay: law });
    assert_eq!(
        (fault.direction, fault.share, fault.name.as_str()),
        (Direction::Down, 1.0, "latency")
    );
    let phase = resolved
        .plan
        .phases
        .iter()
        .find(|p| p.name == "run")
        .unwrap();
    assert_eq!(
        phase.limits.duration_ns, 83_000_000_000,
        "10 + 30 + 1 + 2 + 10 + 30 s"
    );
    assert_eq!(phase.accounting.rampup_ns, 10_000_000_000);
    assert_eq!(phase.accounting.measured_ns, 30_000_000_000);
}

#[test]
fn wrong_drills_are_refused_with_line_and_remedy() {
    let fault = |rest: &str| drill(&format!("[[fault]]\n{rest}\n"), &[]).unwrap_err();
    for (text, words) in [
        (
            "what = \"black-hole\"",
            vec!["d.toml:9", "fault.for", "no end", "add for"],
        ),
        (
            "what = \"black-hole\"\nfor = \"1s\"\nshare = \"130%\"",
            vec!["d.toml:11", "fault.share"],
        ),
        (
            "what = \"hook\"\nfor = \"1s\"\nbreak = \"x\"",
            vec!["d.toml:9", "fault.mend", "--hook"],
        ),
        (
            "what = \"refused\"\nfor = \"1s\"\nshare = \"10%\"",
            vec!["d.toml:11", "means nothing for refused"],
        ),
        (
            "what = \"latency\"\nfor = \"1s\"",
            vec!["fault.delay", "delays nothing"],
        ),
        (
            "what = \"latent\"\nfor = \"1s\"",
            vec!["d.toml:9", "latency"],
        ),
        ("for = \"1s\"", vec!["fault.what", "does nothing"]),
        ("what = \"cut\"\nfor = \"1s\"", vec!["fault.after-bytes"]),
        (
            "what = \"answer\"\nstatus = 200\nfor = \"1s\"",
            vec!["d.toml:10", "fault.status"],
        ),
        (
            "what = \"bandwidth\"\nrate = \"1MiB\"\nfor = \"1s\"",
            vec!["fault.rate", "1MiB/s"],
        ),
        (
            "what = \"refused\"\nfor = \"2s\"\nevery = \"1s\"\ntimes = 2",
            vec!["d.toml:11", "before it has ended"],
        ),
        (
            "what = \"refused\"\nfor = \"2s\"\nevery = \"3s\"",
            vec!["fault.every", "how often"],
        ),
        (
            "what = \"half-open\"\nfor = \"2s\"\ndirection = \"both\"",
            vec!["d.toml:11", "black-hole"],
        ),
    ] {
        let said = fault(text);
        for word in words {
            assert!(said.contains(word), "{text}: {word} is not in\n{said}");
        }
    }
    assert!(drill("", &[]).unwrap_err().contains("breaks nothing"));
    let short = "[drill]\nsteady = \"1s\"\n[[fault]]\nwhat = \"refused\"\nfor = \"1s\"\n";
    assert!(drill(short, &[]).unwrap_err().contains("drill.steady"));
    let stray = drill(
        "[[fault]]\nwhat = \"refused\"\nfor = \"1s\"\n",
        &[("break", "x")],
    );
    assert!(stray.unwrap_err().contains("no fault is a hook"));
}

#[test]
fn hooks_come_from_the_file_or_from_flags() {
    let text = "[[fault]]\nwhat = \"hook\"\nfor = \"1s\"\nmend = \"from file\"\n";
    let resolved = drill(text, &[("break", "b"), ("check", "c")]).unwrap();
    let hook = What::Hook {
        r#break: "b".to_owned(),
        mend: "from file".to_owned(),
        check: "c".to_owned(),
        limit_ns: 30_000_000_000,
    };
    assert_eq!(resolved.drill.unwrap().plan.faults[0].what, hook);
}

#[test]
fn a_run_refuses_faults_and_a_closed_loop_is_warned_of() {
    let text = format!("{LOAD}duration = \"1s\"\n[[fault]]\nwhat = \"refused\"\nfor = \"1s\"\n");
    let file = WorkloadFile::parse("d.toml", &text).unwrap();
    let refused = resolve(&file, &Overrides::default(), &ResolveContext::default());
    assert!(
        refused
            .unwrap_err()
            .to_string()
            .contains("bucketload drill")
    );
    let closed = text.replace("rate = 100", "workers = 2");
    let file = WorkloadFile::parse("d.toml", &closed).unwrap();
    let flags = DrillFlags::default();
    let resolved = resolve_drill(
        &file,
        &Overrides::default(),
        &ResolveContext::default(),
        &flags,
    )
    .unwrap();
    assert!(
        resolved
            .notes
            .iter()
            .any(|note| note.contains("closed loop")),
        "{:?}",
        resolved.notes
    );
    assert!(
        resolved
            .notes
            .iter()
            .any(|note| note.contains("not `duration`")),
        "{:?}",
        resolved.notes
    );
}

#[test]
fn every_built_in_drill_resolves() {
    for (name, _) in BUILTIN_DRILLS {
        let file = WorkloadFile::drill(name).unwrap();
        let hooks = match *name {
            "node-kill" => vec![
                ("break".to_owned(), "b".to_owned()),
                ("mend".to_owned(), "m".to_owned()),
            ],
            _ => Vec::new(),
        };
        let flags = DrillFlags { hooks };
        let resolved = resolve_drill(
            &file,
            &Overrides::default(),
            &ResolveContext::default(),
            &flags,
        )
        .unwrap();
        assert!(resolved.notes.is_empty(), "{name}: {:?}", resolved.notes);
        assert!(file.spec().description.is_some());
    }
    assert!(
        WorkloadFile::drill("slow-lnk")
            .unwrap_err()
            .to_string()
            .contains("slow-link")
    );
}
