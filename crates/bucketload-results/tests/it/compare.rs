//! Comparisons: decisions for runs of known truth, refusals, output.

use std::path::{Path, PathBuf};

use crate::support::{Noise, Shape, end, feed, manifest, plan};
use bucketload_core::histogram::Histogram;
use bucketload_core::plan::{ClosedPlan, KeyLaw, ModelPlan, Plan};
use bucketload_core::sink::PhaseEnd;
use bucketload_core::stats::decide::{Better, Decision};
use bucketload_core::tally::KvCounts;
use bucketload_results::compare::{
    Comparison, Effect, Meaning, Options, Quantity, Refusal, Run, Sample, Unit, compare, find,
    judge,
};
use bucketload_results::result::TrainResult;
use bucketload_results::result::train::MeanAndStdev;
use bucketload_results::result::{KvDuration, KvcacheResult, Latency};
use bucketload_results::rundir::{Manifest, RunDirSink, RunEnd, Status};
use bucketload_results::{output, report};

/// Quantities of an open loop over one class, as in a report.
const FIGURES: [&str; 8] = [
    "operations",
    "mean",
    "p50",
    "p90",
    "p95",
    "p99",
    "p99.9",
    "service p50",
];

/// Run-level values of `n` runs per side. `block`, `run` and `own` are standard deviations of logarithms: `block` is
/// shared by the runs of a pair (like the state of the machine), `run` is a run's own and shared by its durations,
/// `own` is that of each figure. The tail varies twice as much.
fn samples(
    noise: &mut Noise,
    n: usize,
    slow: f64,
    (block, run, own): (f64, f64, f64),
) -> Vec<Sample> {
    let weather: Vec<f64> = (0..n).map(|_| block * noise.normal()).collect();
    let mut side = |slow: f64| -> Vec<Vec<f64>> {
        let runs = weather.iter().map(|weather| {
            let level = 2e6 * slow * (weather + run * noise.normal()).exp();
            let figure = |(i, name): (usize, &&str)| match *name {
                "operations" => 1000.0 * (0.002 * noise.normal()).exp(),
                "p99" | "p99.9" => level * (4 + i) as f64 * (2.0 * own * noise.normal()).exp(),
                _ => level * (own * noise.normal()).exp(),
            };
            FIGURES.iter().enumerate().map(figure).collect()
        });
        runs.collect()
    };
    let (a, b) = (side(1.0), side(slow));
    let pick = |runs: &[Vec<f64>], i: usize| runs.iter().map(|run| run[i]).collect();
    FIGURES
        .iter()
        .enumerate()
        .map(|(i, name)| Sample {
            quantity: Quantity {
                id: (*name).to_owned(),
                name: (*name).to_owned(),
                unit: Unit::Ns,
                better: if *name == "operations" {
                    Better::Higher
                } else {
                    Better::Lower
                },
                effect: Effect::Ratio,
                primary: *name == "p50",
                gate: true,
            },
            a: pick(&a, i),
            b: pick(&b, i),
        })
        .collect()
}

/// Shares of 2000 comparisons that end with `faster` or `slower`, and with `slower` alone, in per cent. The standard
/// error of a share near 5 or 95 % is 0.5 %.
fn shares(seed: u64, slow: f64, noise_of: (f64, f64, f64), pairs: bool) -> (f64, f64) {
    const TRIALS: u32 = 2000;
    let mut noise = Noise::new(seed);
    let (mut different, mut slower) = (0, 0);
    for _ in 0..TRIALS {
        let (word, _) = judge(samples(&mut noise, 5, slow, noise_of), pairs, 0.05);
        different += u32::from(matches!(word, Decision::Faster | Decision::Slower));
        slower += u32::from(word == Decision::Slower);
    }
    let share = |n: u32| 100.0 * f64::from(n) / f64::from(TRIALS);
    (share(different), share(slower))
}

/// Independent runs with 3 % noise, and pairs with 5 % noise of which 4 % are shared by a pair.
const INDEPENDENT: (f64, f64, f64) = (0.0, 0.028, 0.011);
const PAIRED: (f64, f64, f64) = (0.04, 0.027, 0.013);

#[test]
fn identical_targets_differ_in_at_most_one_of_twenty_comparisons() {
    for (name, noise, pairs) in [
        ("independent", INDEPENDENT, false),
        ("independent, 5 % noise", (0.0, 0.047, 0.018), false),
        ("paired", PAIRED, true),
    ] {
        let (different, _) = shares(1, 1.0, noise, pairs);
        println!("{name}: {different} % of comparisons of equals");
        assert!(different <= 5.0, "{name}: {different} %");
    }
}

#[test]
fn a_slow_down_of_ten_per_cent_is_found_in_nine_of_ten_comparisons() {
    for (name, noise, pairs) in [
        ("independent", INDEPENDENT, false),
        ("paired", PAIRED, true),
    ] {
        let (different, slower) = shares(2, 1.10, noise, pairs);
        println!("{name}: {slower} % of slow-downs found");
        assert!(slower >= 90.0, "{name}: {slower} %");
        assert!(different - slower <= 0.5, "{name}: the wrong direction");
    }
}

#[test]
fn under_shared_noise_pairs_find_what_independent_intervals_miss() {
    let weather = (0.10, 0.01, 0.01);
    let (_, paired) = shares(3, 1.10, weather, true);
    let (_, independent) = shares(3, 1.10, weather, false);
    assert!(
        paired > 99.0 && independent < 30.0,
        "{paired} {independent}"
    );
}

/// Writes a run directory.
fn write(
    dir: &Path,
    name: &str,
    plan: Plan,
    shape: &Shape,
    change: impl FnOnce(&mut Manifest),
) -> PathBuf {
    let path = dir.join(name);
    let mut m = manifest(plan);
    m.run_id = name.to_owned();
    change(&mut m);
    let mut sink = RunDirSink::create(&path, m).unwrap();
    feed(&mut sink, shape);
    end(&mut sink, shape, PhaseEnd::TimeLimit);
    sink.finish(RunEnd {
        status: Status::Finished,
        ended_unix_ns: 1,
        error: None,
    })
    .unwrap();
    path
}

/// A side of `n` runs of one minute, each at most 2 % off.
fn runs(dir: &Path, side: &str, n: u64, slowness: f64) -> Vec<Run> {
    for i in 0..n {
        let seed = i + 100 * side.len() as u64 + u64::from(side.as_bytes()[0]);
        let shape = Shape {
            seconds: 60,
            slowness: slowness * (1.0 + 0.01 * ((seed * 7) % 5) as f64 - 0.02),
            seed,
            ..Shape::default()
        };
        write(
            dir,
            &format!("{side}/{i:03}"),
            plan(200.0, 60),
            &shape,
            |_| {},
        );
    }
    load(&dir.join(side))
}

fn load(path: &Path) -> Vec<Run> {
    let found = find(path).unwrap();
    found.iter().map(|dir| Run::load(dir).unwrap()).collect()
}

fn with(allow: &[&str]) -> Options {
    Options {
        allow: allow.iter().map(|s| (*s).to_owned()).collect(),
        ..Options::default()
    }
}

fn quantity<'a>(c: &'a Comparison, id: &str) -> &'a bucketload_results::compare::Compared {
    c.quantities
        .iter()
        .find(|q| q.sample.quantity.id == id)
        .unwrap_or_else(|| {
            panic!(
                "no {id} in {:?}",
                c.quantities
                    .iter()
                    .map(|q| &q.sample.quantity.id)
                    .collect::<Vec<_>>()
            )
        })
}

/// The utilisation decides, not the throughput of the phase; what follows from the utilisation is only shown.
#[test]
fn trainings_are_compared_by_their_utilisation() {
    let dir = tempfile::tempdir().unwrap();
    let of = |side: &str, percent: f64| {
        let mut runs = runs(dir.path(), side, 4, 1.0);
        for (run, noise) in runs.iter_mut().zip([0.0, 0.3, -0.2, 0.1]) {
            let name = run.result.measured().next().unwrap().name.clone();
            let mean = |value| MeanAndStdev {
                mean: Some(value),
                stdev: Some(0.0),
            };
            run.result.train.push(TrainResult {
                phase: name,
                au: mean(percent + noise),
                samples_per_s: mean(7.0 * (percent + noise)),
                ..TrainResult::default()
            });
        }
        runs
    };
    let (a, b) = (of("a", 95.0), of("b", 50.0));
    let compared = compare(&a, &b, &Options::default()).unwrap();
    let au = quantity(&compared, "main/au");
    assert_eq!(au.decision, Decision::Slower);
    assert!(au.sample.quantity.primary && au.sample.quantity.gate);
    assert_eq!(au.sample.quantity.name, "accelerator utilisation");
    assert!((au.sample.a[0] - 0.95).abs() < 1e-12);
    let samples = quantity(&compared, "main/samples");
    assert!(!samples.sample.quantity.gate && !samples.sample.quantity.primary);
    let others = compared
        .quantities
        .iter()
        .filter(|q| q.sample.quantity.primary);
    assert_eq!(others.count(), 1);
    let text = output::comparison_text(&compared, output::TextOptions::default());
    assert!(text.contains("accelerator utilisation"), "{text}");
}

#[test]
fn run_directories_are_compared_in_every_format() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = (runs(dir.path(), "a", 3, 1.0), runs(dir.path(), "b", 3, 1.2));
    let c = compare(&a, &b, &Options::default()).unwrap();
    assert_eq!(c.decision, Decision::Slower, "{c:?}");
    for (id, unit) in [
        ("operations", Unit::PerS),
        ("throughput", Unit::BytesPerS),
        ("client/CPU/per/operation", Unit::Ns),
        ("error/share", Unit::Share),
    ] {
        let q = quantity(&c, &format!("main/{id}"));
        assert_eq!(q.sample.quantity.unit, unit);
    }
    let p50 = quantity(&c, "main/get/response/p50");
    assert!(p50.sample.quantity.primary && p50.decision == Decision::Slower);
    let i = p50.interval.unwrap();
    assert!((1.1..1.3).contains(&i.estimate) && i.low > 1.0, "{i:?}");
    assert_eq!(
        quantity(&c, "main/operations").decision,
        Decision::Equivalent
    );
    assert_eq!(
        quantity(&c, "main/error/share").decision,
        Decision::Equivalent
    );
    // p99.9 of about 3600 writes has too few values beyond it.
    assert!(
        !c.quantities
            .iter()
            .any(|q| q.sample.quantity.id == "main/put/response/p99.9")
    );
    let shift = &c.shifts[0];
    assert_eq!(shift.name, "get response");
    assert!(shift.points.iter().all(|p| p.b_ns > p.a_ns), "{shift:?}");

    let text = output::comparison_text(&c, output::TextOptions::default());
    for expected in [
        "SLOWER  B is slower than A: ",
        "* get response p50",
        "95 % interval",
        "3 runs",
    ] {
        assert!(text.contains(expected), "{expected:?} in\n{text}");
    }
    let csv = output::comparison_csv(&c);
    assert_eq!(csv.lines().count(), c.quantities.len() + 1);
    let columns = |line: &str| line.split(',').count();
    assert!(csv.lines().all(|line| columns(line) == 17), "{csv}");
    let markdown = output::comparison_markdown(&c);
    assert!(markdown.contains("| **get response p50** |"), "{markdown}");
    let json: serde_json::Value = serde_json::from_str(&output::comparison_json(&c)).unwrap();
    assert_eq!(json["decision"], "slower");
    assert_eq!(json["quantities"][0]["unit"], "ns");
    let page = report::comparison_html(&c, &a, &b);
    // For manual inspection.
    std::fs::write(
        Path::new(env!("CARGO_TARGET_TMPDIR")).join("comparison.html"),
        &page,
    )
    .unwrap();
    for expected in [
        "SLOWER",
        "Shift of the distributions",
        "get response B",
        "Both sides of phase main",
    ] {
        assert!(page.contains(expected), "{expected}");
    }
}

/// The cache of a run: this share of hits, loads of this time, and first tokens that come earlier by as much.
fn cache(hits: f64, load_ns: u64) -> KvcacheResult {
    let mut times = Histogram::new();
    (0..2000).for_each(|i| times.record(load_ns + i));
    KvcacheResult {
        trace: "t".to_owned(),
        counts: KvCounts {
            blocks: 1000,
            ..KvCounts::default()
        },
        block_hit_ratio: hits,
        token_hit_ratio: hits,
        durations: vec![KvDuration {
            name: "load".to_owned(),
            time: Latency::of(&times),
        }],
        classes: Vec::new(),
        mlperf: None,
    }
}

#[test]
fn caches_of_language_models_are_compared_by_hits_and_times() {
    let dir = tempfile::tempdir().unwrap();
    let with_cache = |side: &str, hits: f64, load_ns: u64| {
        let mut runs = runs(dir.path(), side, 3, 1.0);
        for (i, run) in runs.iter_mut().enumerate() {
            let phase = run.result.phases.iter_mut();
            let measured = phase.rev().find(|phase| phase.name == "main").unwrap();
            measured.kvcache = Some(cache(hits + i as f64 / 1e5, load_ns + i as u64 * 1000));
        }
        runs
    };
    let a = with_cache("a", 0.5, 10_000_000);
    let b = with_cache("b", 0.4, 12_000_000);
    let c = compare(&a, &b, &Options::default()).unwrap();
    let decision = |id: &str| quantity(&c, &format!("main/{id}")).decision;
    assert_eq!(decision("hit-ratio"), Decision::Slower);
    assert_eq!(decision("token-hit-ratio"), Decision::Slower);
    assert_eq!(decision("load-p99"), Decision::Slower);
}

#[test]
fn the_same_store_is_equivalent() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = (runs(dir.path(), "a", 5, 1.0), runs(dir.path(), "b", 5, 1.0));
    let c = compare(&a, &b, &Options::default()).unwrap();
    assert_eq!(
        c.decision,
        Decision::Equivalent,
        "{}",
        output::comparison_text(&c, output::TextOptions::default())
    );
    let strict = Options {
        margin: 0.001,
        ..Options::default()
    };
    assert_eq!(
        compare(&a, &b, &strict).unwrap().decision,
        Decision::Inconclusive
    );
    // A single run on a side allows no conclusion.
    let single = compare(&a, &b[..1], &Options::default()).unwrap();
    assert_eq!(single.decision, Decision::Inconclusive);
    assert!(
        single.notes.iter().any(|note| note.contains("one run")),
        "{:?}",
        single.notes
    );
}

#[test]
fn differences_are_named_and_refused_unless_permitted() {
    let dir = tempfile::tempdir().unwrap();
    let a = runs(dir.path(), "a", 2, 1.0);
    let shape = Shape::default();
    let refuse = |name: &str, plan: Plan, change: &dyn Fn(&mut Manifest), allow: &[&str]| {
        write(dir.path(), &format!("{name}/1"), plan, &shape, change);
        compare(&a, &load(&dir.path().join(name)), &with(allow)).map(|c| c.differences)
    };
    let base = || plan(200.0, 60);
    let faster = refuse("rate", plan(300.0, 60), &|_| {}, &[])
        .unwrap_err()
        .to_string();
    assert!(
        faster.contains(
            "arrival rate of work mixed in phase main: 200.0 vs 300.0  (field phases.main.works.mixed.model.arrival.rate)"
        ),
        "{faster}"
    );
    let allowed = refuse("rate2", plan(300.0, 60), &|_| {}, &["phases.main.works"]).unwrap();
    assert_eq!(allowed.len(), 1);
    assert!(refuse("rate3", plan(300.0, 60), &|_| {}, &["workload"]).is_ok());

    let mut popular = base();
    popular.phases[1].works[0].mix[0].keys = KeyLaw::Uniform;
    let text = refuse("keys", popular, &|_| {}, &[])
        .unwrap_err()
        .to_string();
    assert!(text.contains("mix.get.keys"), "{text}");

    let mut scaled = base();
    scaled.scale = 0.5;
    let text = refuse("scale", scaled, &|_| {}, &["workload"])
        .unwrap_err()
        .to_string();
    assert!(text.contains("scale: 1.0 vs 0.5"), "{text}");

    let checksum = |m: &mut Manifest| m.driver.settings.push(("checksum".into(), "crc32".into()));
    let text = refuse("sum", base(), &checksum, &["workload"])
        .unwrap_err()
        .to_string();
    assert!(text.contains("driver checksum: – vs crc32"), "{text}");
    assert!(refuse("sum2", base(), &checksum, &["driver.settings"]).is_ok());
    // The target may differ: it is what is compared.
    let elsewhere = |m: &mut Manifest| {
        m.target = "s3://other".into();
        m.driver
            .settings
            .push(("region".into(), "eu-north-1".into()));
    };
    assert!(refuse("target", base(), &elsewhere, &[]).is_ok());
    let mut closed = base();
    closed.phases[1].works[0].model = ModelPlan::Closed(ClosedPlan {
        workers: 3,
        think: bucketload_core::plan::GapLaw::None,
    });
    assert!(refuse("closed", closed, &|_| {}, &[]).is_err());
}

#[test]
fn sides_may_use_different_apis_and_the_output_explains_them() {
    let dir = tempfile::tempdir().unwrap();
    let side = |name: &str, driver: &str, settings: &[(&str, &str)]| {
        let shape = Shape::default();
        write(
            dir.path(),
            &format!("{name}/1"),
            plan(200.0, 60),
            &shape,
            |m| {
                m.target = format!("{driver}://place");
                m.driver.driver = driver.to_owned();
                let pairs = settings
                    .iter()
                    .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()));
                m.driver.settings = pairs.collect();
            },
        );
        load(&dir.path().join(name))
    };
    let s3 = side("s3", "s3", &[("signing", "SigV4"), ("checksum", "none")]);
    let settings = [
        ("signing", "Shared Key"),
        ("api version", "1"),
        ("checksum", "none"),
    ];
    let azure = side("azure", "azblob", &settings);
    let knowing = Options {
        meanings: |a, b| {
            assert_eq!((a, b), ("s3", "azblob"));
            let row = |topic, a, b| Meaning { topic, a, b };
            vec![
                row("append", "not in the API", "1 request"),
                row("delete of nothing", "success", "not-found"),
            ]
        },
        ..Options::default()
    };
    let c = compare(&s3, &azure, &knowing).unwrap();
    assert_eq!(c.differences.len(), 1, "{:?}", c.differences);
    assert_eq!(c.differences[0].field, "driver.name");
    let text = output::comparison_text(&c, output::TextOptions::default());
    for part in [
        "append\n      A  not in the API",
        "and B (azblob (",
        "delete of nothing",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let markdown = output::comparison_markdown(&c);
    assert!(
        markdown.contains("| delete of nothing | success | not-found |"),
        "{markdown}"
    );
    assert!(output::comparison_json(&c).contains("\"semantics\""));
    // Settings that both have must be equal as usual.
    let other = [("signing", "Shared Key"), ("checksum", "md5")];
    let refusal = compare(&s3, &side("md5", "azblob", &other), &Options::default());
    let text = refusal.unwrap_err().to_string();
    assert!(
        text.contains("driver checksum: none vs md5  (field driver.settings.checksum)"),
        "{text}"
    );
    // The native driver's engine follows from its API; another client does not.
    let with_engine = |name: &str, engine: &str| {
        let mut runs = side(name, "azblob", &settings);
        runs[0].manifest.driver.engine = engine.to_owned();
        compare(&s3, &runs, &Options::default())
    };
    assert_eq!(
        with_engine("library", "hdfs-native 0.14")
            .unwrap()
            .differences
            .len(),
        1
    );
    let refusal = with_engine("client", "cli:az").unwrap_err().to_string();
    assert!(
        refusal.contains("driver engine: native vs cli:az"),
        "{refusal}"
    );
    // With the same API there is nothing to explain.
    let again = side("again", "s3", &[("signing", "SigV4"), ("checksum", "none")]);
    let c = compare(&s3, &again, &Options::default()).unwrap();
    assert!(c.semantics.is_empty());
    assert!(!output::comparison_json(&c).contains("\"semantics\""));
}

#[test]
fn runs_that_are_not_valid_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let a = runs(dir.path(), "a", 2, 1.0);
    let other = |name: &str, shape: Shape| {
        write(
            dir.path(),
            &format!("{name}/1"),
            plan(200.0, 60),
            &shape,
            |_| {},
        );
        load(&dir.path().join(name))
    };
    let failing = other(
        "errors",
        Shape {
            failed_share: 0.05,
            ..Shape::default()
        },
    );
    let refused = compare(&a, &failing, &with(&[])).unwrap_err();
    assert!(matches!(refused, Refusal::Verdict { .. }), "{refused}");
    assert!(refused.to_string().contains("DEGRADED (V7)"), "{refused}");
    assert!(compare(&a, &failing, &with(&["verdict"])).is_ok());
    let bound = other(
        "bound",
        Shape {
            load_cpu_share: 0.97,
            ..Shape::default()
        },
    );
    let refused = compare(&a, &bound, &with(&["verdict"]))
        .unwrap_err()
        .to_string();
    assert!(
        refused.contains("CLIENT-BOUND") && refused.contains("says nothing"),
        "{refused}"
    );
}

#[test]
fn each_run_appears_once_and_pairs_are_complete() {
    let dir = tempfile::tempdir().unwrap();
    let a = runs(dir.path(), "a", 3, 1.0);
    let twice = compare(&a, &a[..1], &Options::default()).unwrap_err();
    assert!(matches!(twice, Refusal::Twice(_)));
    let pairs = Options {
        paired: true,
        ..Options::default()
    };
    assert_eq!(
        compare(&a[..2], &a[2..], &pairs).unwrap_err(),
        Refusal::Unpaired { a: 2, b: 1 }
    );
    assert_eq!(compare(&a, &[], &pairs).unwrap_err(), Refusal::Empty("B"));
}
