//! The whole page of a small study against its golden file. `UPDATE_GOLDEN=1 cargo test -p bucketload-study --test it`
//! rewrites it; review the difference, and the page in a browser, before committing it.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::support::{Builder, Synthetic, figure, run, table};
use bucketload_core::driver::RequestRoute;
use bucketload_core::op::{Op, OpClass};
use bucketload_core::oplog::OpLog;
use bucketload_core::record::{AnswerIds, OpRecord, Outcome};
use bucketload_core::trail::Trail;
use bucketload_results::oplog::{OpLogFormat, OpLogHeader, write as write_log};
use bucketload_results::rundir::RunDir;
use bucketload_study::model::{FigureKind, Metric, Placement, TableKind};
use bucketload_study::report::{Rendered, render};

/// Two stores: reads with two numbers of workers and a failed cell, and an open loop with a placement.
fn sample(root: &Path) {
    let mut study = Builder::new(&[("alpha", "Store A"), ("beta", "Store |B| & \"co_1\"")]);
    study.study.published = "ostorebench".to_owned();
    study.placement("beta", Placement::OneNode);
    let sweep = study.experiment("sweep", "workers", &["4", "16"]);
    sweep.figures = vec![figure(FigureKind::Curve, Some(Metric::Throughput), "get")];
    sweep.tables = vec![table(TableKind::Ladder, Some(Metric::Throughput), "get")];
    let open = study.experiment("open", "", &[]);
    open.figures = vec![
        figure(FigureKind::Multiples, Some(Metric::Mean), "get"),
        figure(FigureKind::LatencyCdf, None, "get"),
        figure(FigureKind::LoadBalance, None, ""),
    ];
    open.tables = vec![
        table(TableKind::Summary, None, ""),
        table(TableKind::Latency, None, ""),
        table(TableKind::LoadBalance, None, ""),
    ];
    let like = |rate: f64, slowness: f64, workers: u32, seed: u64| Synthetic {
        rate,
        slowness,
        workers,
        client: 0.2,
        seed,
    };
    for repetition in 1..=3 {
        let seed = u64::from(repetition);
        for (value, workers) in [("4", 4), ("16", 16)] {
            let rate = 40.0 * f64::from(workers).sqrt() + f64::from(repetition);
            study.measured(root, ("sweep", "alpha", value, repetition), |dir| {
                run(dir, &like(rate, 1.0, workers, seed));
            });
            match value {
                "4" => study.measured(root, ("sweep", "beta", value, repetition), |dir| {
                    run(dir, &like(rate / 2.0, 2.0, workers, 50 + seed));
                }),
                _ => study.failed(
                    "sweep",
                    "beta",
                    value,
                    repetition,
                    "exit code 3: <refused> | 50 %",
                ),
            }
        }
        study.measured(root, ("open", "alpha", "", repetition), |dir| {
            run(dir, &like(150.0, 1.0, 0, 100 + seed));
            placed(dir, repetition);
        });
        study.measured(root, ("open", "beta", "", repetition), |dir| {
            run(dir, &like(150.0, 2.0, 0, 200 + seed));
        });
    }
    study.write(root);
}

/// Gives the run in `dir` an operation log and a placement on three devices. Their names change between repetitions, like
/// those of a cluster on free ports.
fn placed(dir: &Path, repetition: u32) {
    let (log, batches) = OpLog::new(1);
    let mut main = log.producer(1, 0);
    let mut lines = String::from("key,node\n");
    for key in 0..30u64 {
        let name = format!("r/{key:013}");
        // The first key is as hot as ten others together.
        for _ in 0..if key == 0 { 10 } else { 1 } {
            main.push(read_of(key), &name, "");
        }
        let _ = writeln!(
            lines,
            "{name},127.0.0.1:{}/d{}",
            6200 + repetition,
            1 + key % 3
        );
    }
    drop(main);
    let dropped = log.dropped();
    drop(log);
    let header = OpLogHeader {
        run_id: "r".into(),
        bucket: "b".into(),
        epoch_unix_ns: 0,
        endpoints: Vec::new(),
    };
    let plan = RunDir::open(dir).unwrap().manifest().plan.clone();
    let form = OpLogFormat::CsvZst;
    write_log(dir, form, &header, &plan, &batches, &dropped).unwrap();
    fs::write(dir.join("placement.csv"), lines).unwrap();
}

fn read_of(key: u64) -> Trail {
    let record: OpRecord = crate::support::runs::record(OpClass::Get, 1000, 1000, Outcome::Ok);
    Trail {
        record,
        op: Op {
            seq: 0,
            class: OpClass::Get,
            entry: 0,
            keyset: 0,
            key,
            source_key: 0,
            source_keyset: 0,
            version: 0,
            size: 4096,
            range: None,
            count: 0,
            pages: 0,
        },
        route: RequestRoute::default(),
        status: 200,
        ids: AnswerIds::default(),
    }
}

#[test]
fn the_page_matches_the_golden_file() {
    let root = tempfile::tempdir().unwrap();
    sample(root.path());
    let rendered = render(root.path()).unwrap();
    let page = &rendered["report.html"];
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/report.html");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, page).unwrap();
    }
    let wanted = fs::read_to_string(&path).unwrap_or_default();
    if *page != wanted {
        let lines = page.lines().zip(wanted.lines()).zip(1..);
        let first = lines.clone().find(|((ours, theirs), _)| ours != theirs);
        panic!(
            "the page differs from its golden file, first here: {first:?} ({} and {} lines)",
            page.lines().count(),
            wanted.lines().count()
        );
    }
    // Ten reads of the hot key and nine others on its device, ten on each of the other devices.
    let balance = &rendered["tables/open-load-balance.csv"];
    let line = balance
        .lines()
        .find(|line| line.contains("requests, expected"))
        .unwrap();
    let figures: Vec<&str> = line.rsplit_once('"').unwrap().1.split(',').collect();
    let peak: f64 = figures[2].parse().unwrap();
    assert!((peak - 19.0 / 13.0).abs() < 1e-12, "{line}");
    assert!(page.contains("co_1&quot;: a single node, nothing to balance"));
    latex_is_well_formed(&rendered);
}

/// Checks every LaTeX table: commands of plain LaTeX, matching braces and environments, as many cells in
/// each row as columns.
fn latex_is_well_formed(rendered: &Rendered) {
    const KNOWN: [&str; 24] = [
        "begin",
        "end",
        "centering",
        "caption",
        "label",
        "hline",
        "par",
        "smallskip",
        "footnotesize",
        "textbackslash",
        "textasciicircum",
        "textasciitilde",
        "textless",
        "textgreater",
        "textbar",
        "ensuremath",
        "mu",
        "times",
        "pm",
        "leq",
        "geq",
        "cdot",
        "infty",
        "ldots",
    ];
    let tables = rendered.iter().filter(|(name, _)| name.ends_with(".tex"));
    assert!(tables.clone().count() >= 5);
    for (name, text) in tables {
        assert!(text.is_ascii(), "{name}");
        let (mut open, mut cells, mut columns) = (Vec::<String>::new(), 1, 0);
        let (mut depth, mut inside) = (0i32, false);
        let mut rest = text.as_str();
        while let Some(c) = rest.chars().next() {
            rest = &rest[1..];
            match c {
                '\\' => {
                    let length = rest.chars().take_while(char::is_ascii_alphabetic).count();
                    let (command, after) = rest.split_at(length);
                    match command {
                        "begin" | "end" => {
                            let (of, after) = after[1..].split_once('}').unwrap();
                            rest = after;
                            if command == "begin" {
                                open.push(of.to_owned());
                            } else {
                                assert_eq!(open.pop().as_deref(), Some(of), "{name}");
                            }
                            inside = of == "tabular" && command == "begin";
                            if inside {
                                let (align, after) = rest[1..].split_once('}').unwrap();
                                assert!(align.chars().all(|c| "lr".contains(c)), "{name}: {align}");
                                (columns, rest) = (align.len(), after);
                            }
                        }
                        "" => {
                            // An escaped character, an accent, or the end of a row.
                            let next = rest.chars().next().unwrap();
                            assert!("\\{}$&#%_\"'`".contains(next), "{name}: \\{next}");
                            rest = &rest[1..];
                            if next == '\\' {
                                assert!(inside && depth == 0, "{name}: a row outside of the table");
                                assert_eq!(cells, columns, "{name}: a row of {cells} cells");
                                cells = 1;
                            }
                        }
                        known => {
                            assert!(KNOWN.contains(&known), "{name}: \\{known}");
                            rest = after;
                        }
                    }
                }
                '{' => depth += 1,
                '}' => depth -= 1,
                '&' => {
                    assert!(inside && depth == 0, "{name}: & outside of a row");
                    cells += 1;
                }
                '$' | '#' | '%' | '_' | '^' | '"' => panic!("{name}: an active {c} in\n{text}"),
                _ => {}
            }
            assert!(depth >= 0, "{name}");
        }
        assert!(depth == 0 && open.is_empty(), "{name}: {open:?}");
    }
}
