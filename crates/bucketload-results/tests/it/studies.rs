//! Studies: written trial by trial, read after an interruption, analysed and rendered.

use std::path::{Path, PathBuf};

use bucketload_core::capacity::{
    Judgement, Limit, Recovery, Search, Settings, Trial, TrialMeaning,
};
use bucketload_core::verdict::Word;
use bucketload_results::capacity::{self, CapacityResult, CapacityStudy, Percentile};
use bucketload_results::journal::Journal;
use bucketload_results::study;
use bucketload_results::sweep::{self, Axis, SweepResult, SweepStudy};

struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("bucketload-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }
}

impl std::ops::Deref for Dir {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn header() -> capacity::Header {
    capacity::Header {
        schema: capacity::SCHEMA,
        version: "0".to_owned(),
        workload: "get".to_owned(),
        profile: String::new(),
        target: "a store".to_owned(),
        started: "2026-01-01T00:00:00Z".to_owned(),
        slo: "p99<50ms".parse().unwrap(),
        settings: Settings {
            start_rate: 100.0,
            max_rate: None,
            precision: 1.05,
            confirm: 5,
            reference_rate: 50.0,
            recovery: Recovery::AfterFailure,
            seed: 1,
            stop_at_client: true,
            whole: false,
        },
        trial_s: None,
        quick: false,
        command_line: vec!["bucketload".to_owned(), "</script>".to_owned()],
        unit: String::new(),
    }
}

/// A store whose p99 is 10.3 ms/(1 - rate/1000): 50 ms are reached at 794/s.
fn record(trial: Trial, limit: Option<f64>) -> capacity::Record {
    let ns = |q: f64| (q / (1.0 - trial.rate / 1000.0).max(0.001)) as u64;
    let point = |ns: u64| Percentile {
        ns,
        ci_ns: Some((ns - ns / 20, ns + ns / 20)),
    };
    let p99 = ns(10.3e6);
    let meaning = if limit.is_some_and(|limit| trial.rate > limit) {
        TrialMeaning::Client {
            reason: "V4: the machine was busy".to_owned(),
        }
    } else if p99 < 50_000_000 {
        TrialMeaning::Pass
    } else {
        TrialMeaning::Fail {
            reason: "p99<50ms is not kept".to_owned(),
        }
    };
    capacity::Record {
        trial,
        dir: format!("{:03}", trial.number + 1),
        window_s: 100.0,
        offered_per_s: trial.rate,
        ok_per_s: trial.rate.min(750.0),
        n: 10_000,
        p50: point(ns(2e6)),
        p99: point(p99),
        primary: point(p99),
        verdict: Word::Valid,
        rules: Vec::new(),
        judgement: Judgement {
            checked: Vec::new(),
            meaning,
        },
    }
}

/// Runs a search into `dir`, with at most `most` trials.
fn search(dir: &Path, most: usize, limit: Option<f64>) {
    let header = header();
    let mut writer = study::create::<CapacityStudy>(dir, &header).unwrap();
    let mut search = Search::new(header.settings);
    for _ in 0..most {
        let Some(trial) = search.ask() else { return };
        let record = record(trial, limit);
        writer.append(&record).unwrap();
        search.record(record.finding());
    }
}

fn read(dir: &Path) -> CapacityResult {
    CapacityResult::new(study::read(dir).unwrap())
}

#[test]
fn a_search_is_reported_from_its_directory() {
    let dir = Dir::new("study-search");
    search(&dir, usize::MAX, None);
    assert!(study::is_study::<CapacityStudy>(&dir) && !study::is_study::<SweepStudy>(&dir));
    let result = read(&dir);
    let outcome = result.outcome.clone().unwrap();
    assert_eq!(outcome.limit, Limit::Store);
    let (low, high) = (outcome.low.unwrap().rate, outcome.high.unwrap().rate);
    assert!(low < 794.0 && 794.0 <= high && high / low <= 1.05);
    let threshold = result.threshold.unwrap();
    assert!(
        threshold.ci.0 <= 794.0 && 794.0 <= threshold.ci.1,
        "{threshold:?}"
    );
    assert!(result.curve.is_sorted_by(|a, b| a.rate < b.rate));
    assert_eq!(result.curve[0].band_ns, (10_872_222, 12_016_666));
    // The trials at 800/s, one from the search and five confirmations, achieved 750/s, less than 95 %.
    assert_eq!(
        result.saturation.map(|s| (s.per_s, s.trials)),
        Some((750.0, 6))
    );
    let text = capacity::text::text(&result, true);
    for part in [
        "capacity between",
        "the store is the limit",
        "5 of 5 trials passed",
        "p99<50ms",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let page = capacity::page::html(&result);
    assert!(page.contains("CAPACITY") && page.contains("&lt;/script&gt;"));
    assert!(page.contains("Latency against load") && !page.contains("NaN"));
    study::write_result(&dir, "{}", &page).unwrap();
    // The files of a study are never overwritten.
    assert!(study::create::<CapacityStudy>(&dir, &header()).is_err());
}

#[test]
fn an_interrupted_search_has_no_capacity_but_its_trials() {
    let dir = Dir::new("study-interrupted");
    search(&dir, 7, None);
    let path = dir.join(study::TRIALS);
    let mut text = std::fs::read_to_string(&path).unwrap();
    text.truncate(text.len() - 40);
    std::fs::write(&path, text).unwrap();
    let result = read(&dir);
    assert_eq!(
        (
            result.outcome.is_none(),
            result.trials.len(),
            result.damaged
        ),
        (true, 6, 1)
    );
    assert!(capacity::text::text(&result, false).contains("interrupted after 6 trials"));
    assert!(capacity::page::html(&result).contains("INTERRUPTED"));
    // The next session cuts the unfinished line off and appends after it.
    let trial = result.trials[0].clone();
    Journal::open(&path).unwrap().append(&trial).unwrap();
    let resumed = read(&dir);
    assert_eq!((resumed.trials.len(), resumed.damaged), (7, 0));
    assert_eq!(resumed.trials[6], trial);
    assert!(serde_json::to_string(&result).is_ok());
}

#[test]
fn a_client_limit_is_reported_as_such() {
    let dir = Dir::new("study-client");
    search(&dir, usize::MAX, Some(500.0));
    let result = read(&dir);
    assert_eq!(result.outcome.as_ref().unwrap().limit, Limit::Client);
    let text = capacity::text::text(&result, false);
    assert!(
        text.contains("at least 400.0/s: above that the client is the limit"),
        "{text}"
    );
    assert!(text.contains("V4: the machine was busy"), "{text}");
}

#[test]
fn a_client_bound_baseline_ends_the_search_and_still_has_a_chart() {
    let dir = Dir::new("study-client-baseline");
    search(&dir, usize::MAX, Some(10.0));
    let result = read(&dir);
    assert_eq!(result.trials.len(), 3, "no trial after the baseline");
    let text = capacity::text::text(&result, false);
    assert!(
        text.contains("the client is the limit already in the baseline at 50.0/s"),
        "{text}"
    );
    assert!(text.contains("V4: the machine was busy"), "{text}");
    let page = capacity::page::html(&result);
    assert!(page.contains("CLIENT LIMIT") && page.contains("Throughput against load"));
    // Each of the trials is a point of both charts, in both drawings of each, with a key per drawing.
    assert_eq!(page.matches("class=\"mk c7 hollow\"").count(), 3 * 4);
    assert!(!page.contains("NaN"));
}

#[test]
fn a_client_bound_sweep_says_so_and_claims_nothing() {
    let mut result = sweep(&[1.0, 2.0, 4.0], Axis::Concurrency, |n, repetition| {
        // The runs at a value differ by far more than their mean allows for.
        100.0 * n * (1.0 + f64::from(repetition) * 5.0)
    });
    let page = sweep::page::html(&result);
    assert!(page.contains("<div class=\"verdict good\"") && page.contains("± ?"));
    for trial in &mut result.trials {
        trial.verdict = Word::ClientBound;
    }
    for point in &mut result.points {
        point.verdict = Word::ClientBound;
    }
    result.efficiency.clear();
    let page = sweep::page::html(&result);
    assert!(
        page.contains("<div class=\"verdict bad\""),
        "no green banner"
    );
    assert!(page.contains("CLIENT-BOUND</strong>") && page.contains("say nothing about the store"));
    assert!(!page.contains("highest throughput") && !page.contains("Efficiency"));
    assert!(!page.contains("<tbody>\n</tbody>"), "an empty table");
    // An interval wider than its mean is no interval, so nothing is drawn below 0.
    assert_eq!(result.points[0].ok_per_s.interval(), None);
    let negative = |digit: u8| page.contains(&format!(">-{digit}"));
    assert!(!(0..10).any(negative), "a negative tick");
}

fn sweep(values: &[f64], axis: Axis, x: impl Fn(f64, u32) -> f64) -> SweepResult {
    let dir = Dir::new(&format!("study-sweep-{axis:?}-{}", values.len()));
    let names: Vec<String> = values.iter().map(ToString::to_string).collect();
    let header = sweep::Header {
        schema: sweep::SCHEMA,
        version: "0".to_owned(),
        workload: "get".to_owned(),
        profile: String::new(),
        target: "a store".to_owned(),
        started: "2026-01-01T00:00:00Z".to_owned(),
        field: "workers".to_owned(),
        axis,
        values: names.clone(),
        repetitions: 3,
        command_line: Vec::new(),
    };
    let mut writer = study::create::<SweepStudy>(&dir, &header).unwrap();
    for repetition in 0..3 {
        for (name, &number) in names.iter().zip(values) {
            let ok_per_s = x(number, repetition);
            let record = sweep::Record {
                value: name.clone(),
                number: Some(number),
                repetition,
                dir: String::new(),
                offered_per_s: number,
                ok_per_s,
                bytes_per_s: ok_per_s * 1e3,
                n: 1000,
                failed: 0,
                mean_ns: 1e9 * number / ok_per_s,
                p50_ns: 1_000_000,
                p99_ns: (1e9 * number / ok_per_s) as u64,
                verdict: Word::Valid,
                ai: std::collections::BTreeMap::new(),
            };
            writer.append(&record).unwrap();
        }
    }
    SweepResult::new(study::read(&dir).unwrap())
}

#[test]
fn a_sweep_over_workers_has_a_law() {
    let values = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0];
    // alpha 0.05, beta 0.001: a peak at sqrt(950) = 30.8.
    let x = |n: f64, repetition: u32| {
        1000.0 * n / (1.0 + 0.05 * (n - 1.0) + 0.001 * n * (n - 1.0))
            * (1.0 + 0.01 * (f64::from(repetition) - 1.0))
    };
    let result = sweep(&values, Axis::Concurrency, x);
    let fit = result.usl.clone().unwrap();
    assert!(
        (fit.alpha.value - 0.05).abs() < 0.005 && fit.alpha.is_distinct(),
        "{fit:?}"
    );
    assert!((fit.peak_n.value - 30.8).abs() < 1.0, "{fit:?}");
    assert_eq!(fit.runs, 21);
    assert_eq!((result.points.len(), result.points[0].runs), (7, 3));
    // t(0.975, 2) = 4.303 over sd 10 of three runs.
    let half = result.points[0].ok_per_s.half_width.unwrap();
    assert!((half - 4.303 * 10.0 / 3f64.sqrt()).abs() < 0.1, "{half}");
    let text = sweep::text::text(&result);
    assert!(
        text.contains("Universal Scalability Law over 21 runs"),
        "{text}"
    );
    assert!(text.contains("highest throughput"), "{text}");
    let page = sweep::page::html(&result);
    assert!(page.contains("coherency") && page.contains("SWEEP"));
}

#[test]
fn few_workers_have_efficiencies_and_rates_a_knee() {
    let few = sweep(&[1.0, 2.0, 4.0], Axis::Concurrency, |n, _| {
        100.0 * n / (1.0 + 0.5 * (n - 1.0))
    });
    assert_eq!(few.usl, None);
    let text = sweep::text::text(&few);
    assert!(
        text.contains("too few values for the Universal Scalability Law"),
        "{text}"
    );
    assert!(text.contains("66.7 % at 2"), "{text}");
    let rates: Vec<f64> = (1..20).map(|i| 50.0 * f64::from(i)).collect();
    let result = sweep(&rates, Axis::Rate, |rate, _| rate.min(900.0));
    assert_eq!((result.usl.clone(), result.efficiency.len()), (None, 0));
    assert!(
        sweep::text::text(&result).contains("saturation throughput") == result.saturation.is_some()
    );
    assert!(result.power.is_some());
}
