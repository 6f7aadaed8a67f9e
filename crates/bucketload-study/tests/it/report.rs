//! The report of synthetic studies: its figures are those of the runs, nothing is hidden, and equal files give an equal
//! report.

use std::fs;
use std::path::Path;

use crate::support::{Builder, Synthetic, figure, run, table};
use bucketload_results::analyze;
use bucketload_study::model::{FigureKind, Metric, TableKind};
use bucketload_study::report::{Rendered, render, write};

const WORKERS: [&str; 7] = ["4", "8", "16", "32", "64", "128", "256"];

/// Throughput of the law that the synthetic stores follow.
fn law(n: f64) -> f64 {
    4.0 * n / (1.0 + 0.05 * (n - 1.0) + 2e-5 * n * (n - 1.0))
}

/// Two stores over numbers of workers, the second half as fast and with failed cells; a third store is absent. Plus an
/// open-loop experiment with distributions and multiples.
fn sample(root: &Path) {
    let mut study = Builder::new(&[
        ("a", "Store A"),
        ("b", "Store |B| & co_1"),
        ("c", "Store C"),
    ]);
    let workers = study.experiment("workers", "workers", &WORKERS);
    workers.figures = vec![
        figure(FigureKind::Scaling, None, ""),
        figure(FigureKind::Curve, Some(Metric::P50), "get"),
        figure(FigureKind::Efficiency, None, ""),
    ];
    workers.tables = vec![
        table(TableKind::Ladder, Some(Metric::Throughput), ""),
        table(TableKind::Scaling, None, ""),
    ];
    let open = study.experiment("open", "", &[]);
    open.figures = vec![
        figure(FigureKind::Bars, Some(Metric::P50), "get"),
        figure(FigureKind::Multiples, None, ""),
        figure(FigureKind::ThroughputPdf, None, ""),
        figure(FigureKind::LatencyCdf, None, ""),
        figure(FigureKind::LatencyDensity, None, "get"),
        figure(FigureKind::LoadBalance, None, ""),
        figure(FigureKind::Capacity, None, ""),
    ];
    open.tables = vec![
        table(TableKind::Summary, None, ""),
        table(TableKind::Latency, None, ""),
        table(TableKind::Multiples, None, ""),
        table(TableKind::LoadBalance, None, ""),
        table(TableKind::Clients, None, ""),
    ];
    for repetition in 1..=3 {
        for (i, value) in WORKERS.iter().enumerate() {
            let n: f64 = value.parse().unwrap();
            let seed = u64::from(repetition) * 100 + i as u64;
            let noise = 1.0 + 0.03 * ((seed * 7 % 5) as f64 - 2.0) / 2.0;
            for (target, factor) in [("a", 1.0), ("b", 0.5)] {
                let key = ("workers", target, *value, repetition);
                if target == "b" && *value == "256" {
                    study.failed(
                        key.0,
                        key.1,
                        key.2,
                        key.3,
                        "exit code 3: connection refused | \"by <peer>\"",
                    );
                    continue;
                }
                study.measured(root, key, |dir| {
                    run(
                        dir,
                        &Synthetic {
                            rate: law(n) * factor * noise,
                            slowness: n / 8.0 / factor,
                            workers: n as u32,
                            client: if *value == "128" { 0.97 } else { 0.2 },
                            seed,
                        },
                    );
                });
            }
            study.skipped(
                "workers",
                "c",
                value,
                repetition,
                "`weed` is not on the PATH",
            );
        }
        for (target, slowness) in [("a", 1.0), ("b", 2.0)] {
            study.measured(root, ("open", target, "", repetition), |dir| {
                run(
                    dir,
                    &Synthetic {
                        rate: 150.0,
                        slowness: slowness * (1.0 + 0.02 * f64::from(repetition)),
                        workers: 0,
                        client: 0.2,
                        seed: 1000 + u64::from(repetition),
                    },
                );
            });
        }
        study.skipped("open", "c", "", repetition, "`weed` is not on the PATH");
    }
    study.write(root);
}

/// The fields of a table by column name, row by row.
fn csv(rendered: &Rendered, name: &str) -> Vec<Vec<(String, String)>> {
    let text = &rendered[&format!("tables/{name}.csv")];
    let mut lines = text.split("\r\n").filter(|line| !line.is_empty());
    let head: Vec<&str> = lines.next().unwrap().split(',').collect();
    lines
        .map(|line| {
            // Quoted texts with commas occur only in columns that the tests do not read.
            let fields = line.split(',');
            head.iter()
                .zip(fields)
                .map(|(h, f)| ((*h).to_owned(), f.to_owned()))
                .collect()
        })
        .collect()
}

fn field(row: &[(String, String)], name: &str) -> f64 {
    let found = row.iter().find(|(key, _)| key == name);
    found
        .unwrap_or_else(|| panic!("no {name} in {row:?}"))
        .1
        .parse()
        .unwrap()
}

/// One test, since the sample has 45 runs.
#[test]
fn the_report_of_a_sample() {
    let root = tempfile::tempdir().unwrap();
    sample(root.path());
    let rendered = render(root.path()).unwrap();
    figures_match_the_runs(root.path(), &rendered);
    nothing_is_hidden_and_everything_is_escaped(&rendered);
    equal_files_give_an_equal_report(root.path(), &rendered);
}

fn figures_match_the_runs(root: &Path, rendered: &Rendered) {
    // Independently: the throughput of each run by its own analysis, the geometric mean by its definition.
    let mut runs: Vec<f64> = Vec::new();
    for entry in fs::read_dir(root.join("cells")).unwrap() {
        let path = entry.unwrap().path();
        if path.to_string_lossy().contains("-workers-a-16-") {
            let result = analyze(&path).unwrap();
            runs.push(result.measured().next().unwrap().rates.ops_per_s.mean);
        }
    }
    assert_eq!(runs.len(), 3);
    let geometric = runs.iter().product::<f64>().cbrt();
    let ladder = csv(rendered, "workers-ladder-ops-per-s");
    let row = ladder.iter().find(|row| row[0].1 == "16").unwrap();
    assert!((field(row, "a_ops_per_s") / geometric - 1.0).abs() < 1e-9);
    assert!(
        field(row, "a_ops_per_s_low") < geometric && geometric < field(row, "a_ops_per_s_high")
    );

    // The law behind the runs is recovered, with its parameters inside the intervals; runs that the client limited are
    // not part of the fit.
    let usl = csv(rendered, "workers-scaling");
    let row = &usl[0];
    assert!((field(row, "gamma") / 4.0 - 1.0).abs() < 0.1, "{row:?}");
    assert!(
        field(row, "alpha_low") < 0.05 && 0.05 < field(row, "alpha_high"),
        "{row:?}"
    );
    assert_eq!(field(row, "runs") as u32, 18);

    // Twice the slowness doubles the median service time, up to noise and the constant lag of 50 µs.
    let multiples = csv(rendered, "open-multiples");
    let row = multiples
        .iter()
        .find(|row| row[0].1 == "get: median response time")
        .unwrap();
    let twice = field(row, "b_multiple");
    assert!((1.85..2.1).contains(&twice), "{row:?}");
    assert!(field(row, "b_multiple_low") < twice && twice < field(row, "b_multiple_high"));
    let row = multiples
        .iter()
        .find(|row| row[0].1 == "throughput")
        .unwrap();
    assert!((field(row, "b_multiple") - 1.0).abs() < 0.01, "{row:?}");
}

fn nothing_is_hidden_and_everything_is_escaped(rendered: &Rendered) {
    let page = &rendered["report.html"];
    // Failed and skipped cells are listed with their reasons.
    assert!(page.contains("failed: exit code 3: connection refused | &quot;by &lt;peer&gt;&quot;"));
    assert!(page.contains("skipped: `weed` is not on the PATH"));
    assert!(page.contains("CLIENT-BOUND") && page.contains("(C)") && page.contains("hollow"));
    // 7 values, 3 targets, 3 repetitions, plus 3 targets with 3 repetitions.
    assert!(page.contains("45 of 72"), "counts");
    // A figure without data says so.
    assert!(page.contains("Figure &quot;capacity&quot; has no data"));
    // Self-contained: nothing is loaded, nothing runs.
    for forbidden in [
        "<script",
        "http-equiv=\"refresh",
        "@import",
        "url(",
        "src=\"",
        "href=\"http",
    ] {
        assert!(!page.contains(forbidden), "{forbidden}");
    }
    assert!(page.contains("A sample &amp; its &lt;report&gt;"));
    for (name, text) in rendered {
        assert!(!text.contains("NaN"), "{name}");
        if name.ends_with(".tex") {
            assert!(text.is_ascii(), "{name}");
            let rows = text.lines().filter(|line| line.ends_with("\\\\"));
            let columns = text
                .split("\\begin{tabular}{")
                .nth(1)
                .unwrap()
                .split('}')
                .next()
                .unwrap()
                .len();
            for row in rows {
                let cells = row.replace("\\&", "").matches('&').count() + 1;
                assert_eq!(cells, columns, "{name}: {row}");
            }
        }
        if name.ends_with(".md") {
            let lines: Vec<&str> = text.lines().filter(|line| line.starts_with('|')).collect();
            let bars = |line: &str| line.replace("\\|", "").matches('|').count();
            assert!(
                lines.iter().all(|line| bars(line) == bars(lines[0])),
                "{name}"
            );
        }
    }
    // Every kind of figure that has data is there.
    for kind in [
        "scaling",
        "curve",
        "efficiency",
        "bars",
        "multiples",
        "throughput-pdf",
        "latency-cdf",
        "latency-density",
        "load-balance",
    ] {
        let found = rendered
            .keys()
            .any(|name| name.starts_with("figures/") && name.contains(kind));
        assert!(found, "{kind}: {:?}", rendered.keys());
    }
}

fn equal_files_give_an_equal_report(root: &Path, first: &Rendered) {
    let page = write(root).unwrap();
    assert_eq!(fs::read_to_string(page).unwrap(), first["report.html"]);
    // Obsolete files of an earlier report are removed; other files remain.
    fs::write(root.join("figures/old.svg"), "<svg/>").unwrap();
    fs::write(root.join("figures/notes.txt"), "mine").unwrap();
    write(root).unwrap();
    assert!(!root.join("figures/old.svg").exists());
    assert!(root.join("figures/notes.txt").exists());
    for (name, text) in first {
        assert_eq!(
            &fs::read_to_string(root.join(name)).unwrap(),
            text,
            "{name}"
        );
    }
}

#[test]
fn a_study_that_has_only_started_has_a_report() {
    let root = tempfile::tempdir().unwrap();
    let mut study = Builder::new(&[("a", "Store A")]);
    let experiment = study.experiment("e", "size", &["1KiB", "1MiB"]);
    experiment.figures = FigureKind::ALL
        .iter()
        .map(|kind| figure(*kind, None, ""))
        .collect();
    experiment.tables = TableKind::ALL
        .iter()
        .map(|kind| table(*kind, None, ""))
        .collect();
    study.failed("e", "a", "1KiB", 1, "no answer");
    study.write(root.path());
    let rendered = render(root.path()).unwrap();
    assert!(rendered["report.html"].contains("no answer"));
    // A missing directory is a failure of its cell, not of the report.
    let root = tempfile::tempdir().unwrap();
    let mut study = Builder::new(&[("a", "Store A")]);
    study.experiment("e", "", &[]);
    study.measured(root.path(), ("e", "a", "", 1), |_| {});
    study.write(root.path());
    assert!(render(root.path()).unwrap()["report.html"].contains("failed: "));
}
