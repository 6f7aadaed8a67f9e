//! A known workload becomes a trace, and the trace a model: mix, sizes, dispersion and popularity are recovered within
//! stated errors, and the model's workload generates them again.

use std::collections::HashMap;
use std::fmt::Write as _;

use crate::support::prepared;
use bucketload_core::generate::arrivals::Schedule;
use bucketload_core::generate::ops::OpGen;
use bucketload_core::op::{Op, OpClass};
use bucketload_core::plan::{ModelPlan, OpenPlan, PhaseKind, Plan};
use bucketload_trace::{Model, model};
use bucketload_workload::resolve::{Overrides, ResolveContext, resolve};
use bucketload_workload::spec::WorkloadFile;

const SOURCE: &str = r#"
name = "known"
[keysets.read]
count = 20_000
size = "lognormal(10.5, 1.2, min=1, max=16MiB)"
assign = "low-discrepancy"
[keysets.write]
size = "4k/70:1m/30"
[phases.run]
duration = "600s"
arrival = "lognormal-rate(200/s, cv=0.5, slot=1s)"
[phases.run.mix]
get = { weight = 65, keyset = "read", keys = "zipf(0.9)" }
head = { weight = 10, keyset = "read", keys = "zipf(0.9)" }
put = { weight = 25, keyset = "write", keys = "fresh" }
"#;

fn plan(name: &str, text: &str) -> Plan {
    let file = WorkloadFile::parse(name, text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let context = ResolveContext {
        memory_budget: None,
    };
    resolve(&file, &Overrides::default(), &context)
        .unwrap_or_else(|e| panic!("{e}\n{text}"))
        .plan
}

/// The operations of the plan's measured phase over `seconds`, with their instants.
fn operations(plan: &Plan, seconds: u64) -> Vec<(u64, Op)> {
    let phase = plan
        .phases
        .iter()
        .position(|p| p.kind == PhaseKind::Run)
        .unwrap();
    let ModelPlan::Open(OpenPlan { arrival, .. }) = &plan.phases[phase].works[0].model else {
        panic!("not an open loop");
    };
    let schedule = Schedule::new(plan.seed, phase as u16, 0, arrival).unwrap();
    let ops = OpGen::new(plan, phase, 0).unwrap();
    let arrivals = schedule
        .arrivals()
        .take_while(|a| a.due_ns < seconds * 1_000_000_000);
    arrivals.map(|a| (a.due_ns, ops.op(a.seq))).collect()
}

/// Formats operations as a trace in the native form.
fn trace(operations: &[(u64, Op)]) -> Vec<u8> {
    let mut text = "ts_ns,op,bucket,key,size,off,len,client,status\n".to_owned();
    for (ts, op) in operations {
        let name = match op.class {
            OpClass::Get => "GET",
            OpClass::Head => "HEAD",
            OpClass::Put => "PUT",
            other => panic!("{other}"),
        };
        let set = op.keyset;
        let _ = writeln!(
            text,
            "{ts},{name},b,{set}/{},{},0,-1,c,200",
            op.key, op.size
        );
    }
    text.into_bytes()
}

/// Share of each class, p10 to p99 of the sizes read and written, dispersion of 1-s counts, and the
/// shares of the ten and hundred most frequent keys read.
struct Facts {
    mix: HashMap<OpClass, f64>,
    read: Vec<u64>,
    written: Vec<u64>,
    idc: f64,
    top: [f64; 2],
}

fn facts(operations: &[(u64, Op)]) -> Facts {
    let n = operations.len() as f64;
    let mut mix = HashMap::new();
    let (mut read, mut written, mut keys) = (Vec::new(), Vec::new(), HashMap::new());
    let mut counts: Vec<f64> = Vec::new();
    for (ts, op) in operations {
        *mix.entry(op.class).or_insert(0.0) += 1.0 / n;
        let second = (ts / 1_000_000_000) as usize;
        if counts.len() <= second {
            counts.resize(second + 1, 0.0);
        }
        counts[second] += 1.0;
        match op.class {
            OpClass::Get => read.push(op.size),
            OpClass::Put => written.push(op.size),
            _ => {}
        }
        if op.class != OpClass::Put {
            *keys.entry(op.key).or_insert(0u64) += 1;
        }
    }
    let quantiles = |mut sizes: Vec<u64>| {
        sizes.sort_unstable();
        [0.1, 0.25, 0.5, 0.75, 0.9, 0.99]
            .map(|p| sizes[(p * sizes.len() as f64) as usize])
            .to_vec()
    };
    let mut often: Vec<u64> = keys.values().copied().collect();
    often.sort_unstable_by(|a, b| b.cmp(a));
    let all: u64 = often.iter().sum();
    let share = |k: usize| often[..k].iter().sum::<u64>() as f64 / all as f64;
    Facts {
        mix,
        read: quantiles(read),
        written: quantiles(written),
        idc: bucketload_core::stats::moments::index_of_dispersion(&counts, 1).unwrap(),
        top: [share(10), share(100)],
    }
}

fn fitted(operations: &[(u64, Op)]) -> Model {
    let text = trace(operations);
    let p = prepared(&[("t.csv", &text)], |_| {}).unwrap();
    model(&p.canonical, "fitted", p.dir.path(), 1).unwrap()
}

#[test]
fn a_known_workload_is_recovered() {
    let truth = operations(&plan("known", SOURCE), 600);
    let expected = facts(&truth);
    let model = fitted(&truth);
    println!("{model}");
    // The report has the recorded values.
    assert!(
        model.arrivals.law.starts_with("lognormal-rate("),
        "{}",
        model.arrivals.law
    );
    let second = model
        .arrivals
        .dispersion
        .iter()
        .find(|row| row.window_ns == 1_000_000_000);
    let second = second.unwrap();
    assert!(
        (second.recorded / expected.idc - 1.0).abs() < 0.02,
        "{second:?} {}",
        expected.idc
    );
    let reads = model.reads.as_ref().unwrap();
    assert!((reads.theta.unwrap() - 0.9).abs() < 0.05, "{reads:?}");
    assert!(
        (reads.objects as f64 / 20_000.0 - 1.0).abs() < 0.15,
        "{reads:?}"
    );
    assert_eq!(model.write_sizes.as_ref().unwrap().ks, 0.0);
    // The workload can be loaded, and generates the same values again.
    let found = facts(&operations(&plan("fitted", &model.workload), 600));
    for (class, share) in &expected.mix {
        // 120 000 operations: four standard errors are below 0.006.
        assert!(
            (found.mix[class] - share).abs() < 0.008,
            "{class}: {share} {:?}",
            found.mix
        );
    }
    for (found, truth, tolerance) in [
        // The skew gives single objects much weight: a quantile is the size of one popular object.
        (&found.read, &expected.read, 0.15),
        (&found.written, &expected.written, 0.0),
    ] {
        for (a, b) in found.iter().zip(truth) {
            let error = (*a as f64 / *b as f64 - 1.0).abs();
            assert!(error <= tolerance, "{found:?} {truth:?}");
        }
    }
    // 600 slots of a log-normal rate: the standard error of the dispersion is some 10 % on each side.
    assert!(
        (found.idc / expected.idc).ln().abs() < 0.4,
        "{} {}",
        found.idc,
        expected.idc
    );
    for (a, b) in found.top.iter().zip(expected.top) {
        assert!((a - b).abs() < 0.03, "{:?} {:?}", found.top, expected.top);
    }
}

#[test]
fn all_kinds_of_requests_make_a_valid_workload() {
    let mut text = "ts_ns,op,bucket,key,size,off,len,source,part,upload,status\n".to_owned();
    for i in 0..4000u64 {
        let ts = i * 1_000_000;
        let key = bucketload_core::generate::rng::mix64(i) % 100;
        text += &match i % 10 {
            0 => format!("{ts},GET,b,o{key},90000,4096,8192,,,,206\n"),
            1 => format!("{ts},HEAD,b,o{key},90000,0,-1,,,,200\n"),
            2 => format!("{ts},DELETE,b,d{i},-1,0,-1,,,,204\n"),
            3 => format!("{ts},LIST,b,o,-1,0,-1,,,,200\n"),
            4 => format!("{ts},COPY,b,c{i},-1,0,-1,b/o{key},,,200\n"),
            5 => format!("{ts},PUT,b,n{i},1000,0,-1,,,,200\n"),
            6 => format!("{ts},PUT,b,o{key},90000,0,-1,,,,200\n"),
            7 => format!("{ts},MPU_PART,b,m{i},8388608,0,-1,,1,u{i},200\n"),
            8 => format!("{ts},MPU_COMPLETE,b,m{},-1,0,-1,,,u{},200\n", i - 1, i - 1),
            _ => format!("{ts},MULTI_DELETE,b,x{i},-1,0,-1,,,r{i},200\n"),
        };
    }
    let p = prepared(&[("t.csv", text.as_bytes())], |_| {}).unwrap();
    let model = model(&p.canonical, "all", p.dir.path(), 1).unwrap();
    let names: Vec<&str> = model.mix.iter().map(|row| row.0.as_str()).collect();
    for name in [
        "range-get",
        "head",
        "delete",
        "list",
        "copy",
        "put",
        "overwrite",
        "multipart-put",
        "delete-many",
    ] {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    assert!((model.mix.iter().map(|row| row.1).sum::<f64>() - 1.0).abs() < 1e-9);
    let plan = plan("all", &model.workload);
    // Parts of uploads are not separate requests: 900 of the 1000 lines per second are left.
    let n = operations(&plan, 4).len();
    assert!((3400..3800).contains(&n), "{n}");
    assert!(
        model
            .notes
            .iter()
            .any(|note| note.contains("deletes select")),
        "{:?}",
        model.notes
    );
    assert!(model.to_string().contains("Arrivals: "), "{model}");
    assert!(!model.workload.contains("o1"), "names of the trace leak");
}

#[test]
fn short_traces_are_refused() {
    let rows = crate::support::native(&["0,PUT,b,k,5,0,-1,c,200", "9,GET,b,k,5,0,-1,c,200"]);
    let p = prepared(&[("t.csv", &rows)], |_| {}).unwrap();
    let error = model(&p.canonical, "x", p.dir.path(), 1)
        .unwrap_err()
        .to_string();
    assert!(error.contains("100 are needed"), "{error}");
}
