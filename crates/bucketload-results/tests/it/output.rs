//! Every output format against its golden file. `UPDATE_GOLDEN=1 cargo test -p bucketload-results` rewrites the
//! files; review the difference before committing it.

mod sample;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::support::{SECOND, plan};
use bucketload_core::sink::Event;
use bucketload_results::kit::svg::Body;
use bucketload_results::kit::{Chart, Page, Section, Series};
use bucketload_results::output::live::LiveView;
use bucketload_results::output::prometheus::{Snapshot, render};
use bucketload_results::output::{TextOptions, csv, json, jsonl, objective_lines, text};
use bucketload_results::result::figure::{CLASS, CLIENT, DURATIONS, PROGRESS};
use bucketload_results::{RunResult, analyze};
use sample::{interval, result, write_run_with};
use serde_json::Value;

/// A run with objectives: every output says which were met, and the exit of a run depends on it.
#[test]
fn objectives_are_checked_phase_by_phase() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("run");
    write_run_with(&dir, |m| {
        m.slo = Some("get.p99<3ms,put.p50<1h,errors<1%".parse().unwrap())
    });
    let result = analyze(&dir).unwrap();
    let phase = result.measured().next().unwrap();
    let met: Vec<bool> = phase.objectives.iter().map(|o| o.holds).collect();
    assert_eq!(met, [false, true, true]);
    assert_eq!(result.summary.slo_met, Some(false));
    // Failures count with the timeout, so the p99 is above that of the successes.
    let p99 = phase.objectives[0].value.unwrap();
    assert!(p99 > 3e6, "{p99}");
    let shown = text(&result, TextOptions::default());
    assert!(
        shown.starts_with("DEGRADED  objectives MISSED · 120.7 ops/s as offered · get p99"),
        "{shown}"
    );
    let rows: Vec<Vec<&str>> = shown
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    for (objective, word) in [
        ("get.p99<3ms", "MISSED"),
        ("put.p50<1h", "met"),
        ("errors<1%", "met"),
    ] {
        assert!(
            rows.iter().any(|row| row.starts_with(&[objective, word])),
            "{shown}"
        );
    }
    let lines = objective_lines(&result);
    assert!(
        lines.len() == 3 && lines[0].starts_with("MISSED get.p99<3ms: "),
        "{lines:?}"
    );
    let document: Value = serde_json::from_str(&json(&result)).unwrap();
    assert_eq!(document["summary"]["slo_met"], false);
    assert_eq!(document["phases"][1]["objectives"][0]["holds"], false);
    // The flat summary stands at the head.
    let text = json(&result);
    assert!(text.find("\"summary\"").unwrap() < 40, "{text:.80}");
    assert!(text.find("\"get_p99_ns\"").unwrap() < 1500);
}

/// No line of a terminal of 80 columns wraps, and no table is broken.
#[test]
fn text_fits_the_terminal() {
    let result = result();
    for width in [60, 80, 100, 200] {
        let shown = text(
            &result,
            TextOptions {
                width: Some(width),
                ..TextOptions::default()
            },
        );
        for line in shown.lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
        let latency = shown.lines().find(|l| l.starts_with("  latency")).unwrap();
        for column in ["p50", "p99", "max"] {
            assert!(latency.contains(column), "{width}: {latency}");
        }
    }
}

#[test]
fn terms_are_explained_on_request() {
    let result = result();
    let plain = text(&result, TextOptions::default());
    let explained = text(
        &result,
        TextOptions {
            explain: true,
            ..TextOptions::default()
        },
    );
    assert!(!plain.contains("expected: ") && explained.contains("expected: at most 0.1 %"));
    let (_, words) = explained.split_once("What the words mean:\n").unwrap();
    for line in ["  lag: from due to started", "  first byte: from started"] {
        assert!(words.contains(line), "{words}");
    }
    assert!(!words.contains("stonewall"), "{words}");
}

/// Compares `text` with the golden file `name`.
fn golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, text).unwrap();
    }
    let wanted = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        text == wanted,
        "{name} differs from its golden file:\n{text}"
    );
}

#[test]
fn text_for_readers() {
    let result = result();
    let plain = text(&result, TextOptions::default());
    assert!(!plain.contains('\u{1b}'));
    golden("result.txt", &plain);
    let colour = text(
        &result,
        TextOptions {
            colour: true,
            ..TextOptions::default()
        },
    );
    let mut stripped = colour.clone();
    for code in ["1", "1;31", "1;32", "1;33", "0"] {
        stripped = stripped.replace(&format!("\u{1b}[{code}m"), "");
    }
    assert_ne!(colour, plain);
    assert_eq!(stripped, plain);
}

#[test]
fn parts_add_up_to_the_response_time_and_endpoints_to_the_total() {
    let result = result();
    let phase = result.measured().next().unwrap();
    for class in &phase.classes {
        let sum: f64 = class.anatomy.iter().map(|p| p.time.mean_ns).sum();
        assert!((sum - class.response.mean_ns).abs() < 1e-3 * sum, "{sum}");
        let shares: f64 = class.anatomy.iter().map(|p| p.share).sum();
        assert!((shares - 1.0).abs() < 1e-9);
        assert!(class.anatomy.iter().all(|p| p.time.n == class.ok));
    }
    let balance = phase.endpoints.as_ref().unwrap();
    let requests: u64 = balance.endpoints.iter().map(|e| e.requests).sum();
    let ended: u64 = phase.classes.iter().map(|c| c.ok + c.failed).sum();
    assert_eq!(requests, ended);
    // Every third request goes to the second endpoint: 2/3 to 1/3, the same in each second.
    let indices = balance.requests.unwrap();
    assert!((indices.peak - 4.0 / 3.0).abs() < 0.01, "{indices:?}");
    assert!(balance.null.unwrap().p_value < 1e-6);
    let over = balance.over_time.unwrap();
    assert_eq!((over.windows, over.persistence), (4, Some(1.0)));
    let slowest: Vec<u64> = phase.slowest.top.iter().map(|r| r.response_ns).collect();
    assert_eq!(slowest, [9_000_000, 5_000_000, 4_000_000]);
}

#[test]
fn csv_table() {
    let text = csv(&result());
    golden("result.csv", &text);
    let columns: Vec<usize> = text.lines().map(|l| l.split(',').count()).collect();
    assert!(columns.iter().all(|&n| n == columns[0]), "{columns:?}");
}

/// Collects every path of the document with the type found there.
fn paths(value: &Value, at: &str, out: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                paths(value, &format!("{at}.{key}"), out);
            }
        }
        Value::Array(items) => {
            for item in items {
                paths(item, &format!("{at}[]"), out);
            }
        }
        Value::Null => drop(out.insert(format!("{at}: null"))),
        Value::Bool(_) => drop(out.insert(format!("{at}: boolean"))),
        Value::Number(_) => drop(out.insert(format!("{at}: number"))),
        Value::String(_) => drop(out.insert(format!("{at}: string"))),
    }
}

fn schema<'a>(documents: impl Iterator<Item = &'a str>) -> String {
    let mut all = BTreeSet::new();
    for document in documents {
        let value: Value = serde_json::from_str(document).unwrap();
        let record = value["record"].as_str().unwrap_or_default().to_owned();
        paths(&value, &record, &mut all);
    }
    all.into_iter().map(|path| path + "\n").collect()
}

#[test]
fn json_documents_keep_their_format_and_values() {
    let result = result();
    let text = json(&result);
    golden("result.json.paths", &schema([text.as_str()].into_iter()));
    let back: RunResult = serde_json::from_str(&text).unwrap();
    assert_eq!(back, result);
}

#[test]
fn json_lines_keep_their_format() {
    let text = jsonl(&result());
    golden("result.jsonl.paths", &schema(text.lines()));
    let of = |record: &str| {
        let field = format!("\"record\":\"{record}\"");
        text.lines().filter(|l| l.contains(&field)).count()
    };
    let counts = ["run", "phase", "class", "realised", "point", "failure"].map(of);
    assert_eq!(counts, [1, 2, 4, 2, 41, 1]);
}

/// A declared figure reaches every output: this test looks for it in each.
#[test]
fn every_figure_is_in_every_output() {
    let result = result();
    let (csv, page) = (csv(&result), bucketload_results::report::html(&result));
    let text = text(&result, TextOptions::default());
    let json: Value = serde_json::from_str(&json(&result)).unwrap();
    let mut snapshot = Snapshot::new("id", "0.1.0", &plan(120.0, 40));
    snapshot.interval(&interval(3));
    let metrics = render(&snapshot);
    let manual = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/result.md");
    let manual = fs::read_to_string(manual).unwrap();
    let documented = |structure: &str, id: &str| {
        let (_, rest) = manual.split_once(&format!("\n## {structure}\n")).unwrap();
        let section = rest.split("\n## ").next().unwrap_or_default();
        section.contains(&format!("| `{id}` |"))
    };
    let columns: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
    let heads: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("  operation"))
        .flat_map(|line| line.split("  ").map(str::trim))
        .collect();
    let cell = |title: &str| page.contains(&format!(">{title}</th>"));
    let phase = &json["phases"][1];
    let has = |at: &Value, id: &str| at.get(id).is_some();
    for f in CLASS {
        let id = f.id;
        assert!(columns.contains(&id), "{id} is no column of CSV");
        assert!(has(&phase["classes"][0], id), "{id} is not in JSON");
        assert!(documented("ClassResult", id), "{id} is not in the manual");
        let titled = f.title.is_empty() || heads.contains(&f.title) && cell(f.title);
        assert!(titled, "{id} is in no table");
        let metric = format!("\nbucketload_{id}{{phase=");
        assert!(
            !f.computed || metrics.contains(&metric),
            "{id} is no metric"
        );
        assert!(!f.computed || !f.doc.is_empty(), "{id} has no meaning");
    }
    for d in DURATIONS {
        let id = d.id;
        assert!(columns.contains(&format!("{id}_mean_ns").as_str()), "{id}");
        assert!(
            has(&phase["classes"][0], id) && documented("ClassResult", id),
            "{id}"
        );
        assert!(
            text.contains(d.title) && page.contains(&format!("get {}", d.title)),
            "{id}"
        );
    }
    for f in CLIENT {
        let id = f.id;
        assert!(
            has(&phase["client"], id) && documented("ClientUse", id),
            "{id}"
        );
        let client = &result.phases[1].client;
        // This run's client drove no null target and has no network.
        if f.value(client).is_some() {
            assert!(cell(f.title) && text.contains(f.brief), "{id}");
        }
    }
    for f in PROGRESS {
        let metric = format!("\nbucketload_{}_total{{phase=", f.id);
        assert!(metrics.contains(&metric), "{} is no metric", f.id);
        assert!(
            has(&phase["totals"], f.id) && documented("Totals", f.id),
            "{}",
            f.id
        );
    }
}

/// The report page: its first screen, then sections with their parts, tables and charts, and the size of each.
fn outline(page: &Page) -> String {
    let mut out = format!("{} [{}]\n\nfirst screen\n", page.title, page.verdict.word);
    out.extend(page.first.iter().map(chart));
    for section in &page.sections {
        out.push('\n');
        outline_of(section, 1, &mut out);
    }
    out
}

fn outline_of(section: &Section, level: usize, out: &mut String) {
    let folded = if section.folded { " (folded)" } else { "" };
    *out += &format!("{} {}{folded}\n", "#".repeat(level), section.title);
    for table in &section.tables {
        *out += &format!("table {:?}: {} rows\n", table.title, table.rows.len());
    }
    if !section.source.is_empty() {
        *out += &format!("source of {} lines\n", section.source.lines().count());
    }
    out.extend(section.charts.iter().map(chart));
    for part in &section.parts {
        outline_of(part, level + 1, out);
    }
}

fn chart(chart: &Chart) -> String {
    let (mut lines, mut columns, mut bars) = (Vec::new(), 0, 0);
    match &chart.body {
        Body::Lines(all) => {
            let line = |s: &Series| format!("{} ({})", s.name, s.points.len());
            lines.extend(all.iter().map(line));
        }
        Body::Heat(heat) => columns = heat.columns.len(),
        Body::Bars(all) => bars = all.groups.len(),
        Body::Stack(stack) => bars = stack.rows.len(),
    }
    let (title, lines) = (&chart.title, lines.join(", "));
    let out = format!("chart {title:?}: {lines} columns {columns}");
    out + &match bars {
        0 => "\n".to_owned(),
        n => format!(" bars {n}\n"),
    }
}

#[test]
fn report_page() {
    let (result, page) = (result(), bucketload_results::report::page(&result()));
    golden("report-outline.txt", &outline(&page));
    // Everything in the model is drawn in the file, without a script.
    let html = bucketload_results::report::html(&result);
    assert_eq!(html, page.clone().render());
    let (mut tables, mut charts) = (0, page.first.len());
    for section in &page.sections {
        section.each(&mut |section| {
            tables += section.tables.len();
            charts += section.charts.len();
        });
    }
    assert_eq!(html.matches("<table>").count(), tables);
    assert_eq!(html.matches("<svg class=\"chart\"").count(), charts);
    // Each chart is drawn for phones too, because nothing is scaled.
    assert_eq!(html.matches("<svg class=\"narrow chart\"").count(), charts);
    assert!(!html.contains("NaN"));
}

#[test]
fn only_an_open_loop_offers_something() {
    let mut result = result();
    let shows = |result: &RunResult| {
        let first = bucketload_results::report::page(result).first;
        let offers = first.iter().any(|of| chart(of).contains("offered"));
        (
            offers,
            bucketload_results::report::html(result).contains("Throughput offered and completed"),
        )
    };
    assert_eq!(shows(&result), (true, true));
    for phase in &mut result.phases {
        phase.open_loop = false;
    }
    assert_eq!(shows(&result), (false, false));
}

/// A reader finds the answer first, then the questions, and each link of the list leads to its section.
#[test]
fn the_report_answers_first_and_then_by_question() {
    let (page, html) = (
        bucketload_results::report::page(&result()),
        bucketload_results::report::html(&result()),
    );
    let questions = [
        "How fast?",
        "How steady?",
        "Where does the time go?",
        "Can I believe it?",
        "What exactly was run?",
    ];
    let titles: Vec<&str> = page.sections.iter().map(|s| s.title.as_str()).collect();
    assert_eq!(titles, questions);
    let place = |text: &str| html.find(text).unwrap_or_else(|| panic!("{text}"));
    let order = [
        "DEGRADED",
        "operations per second",
        "<nav",
        ">Operations completed<",
        ">Response time over the phase<",
        ">Response time, distribution<",
        "<h2>How fast?",
        "<h2>What exactly was run?",
        ">Popularity",
    ];
    let places = order.map(place);
    assert!(places.is_sorted(), "{places:?}");
    for target in html.split("href=\"#").skip(1) {
        let target = target.split('"').next().unwrap();
        assert_eq!(
            html.matches(&format!(" id=\"{target}\"")).count(),
            1,
            "{target}"
        );
    }
    // The workload can be copied, and hosts have their names.
    assert!(html.contains("<pre tabindex=\"0\">"));
    assert!(html.contains("127.0.0.1:9001") && !html.contains("endpoint 1"));
}

#[test]
fn live_view_of_a_run() {
    let mut view = LiveView::new(&plan(120.0, 40));
    assert_eq!(view.line(), "prepare 0.0 s, 0 of 1,000 operations");
    view.event(&Event::PhaseStarted {
        phase: 1,
        at_ns: SECOND,
    });
    let mut shown = String::new();
    for s in 0..14 {
        view.interval(&interval(s));
        shown += &view.line();
        shown.push('\n');
    }
    shown += "\n";
    shown += &view.lines(200).join("\n");
    shown += "\n\n";
    shown += &view.lines(30).join("\n");
    shown += "\n";
    assert!(view.lines(30).iter().all(|l| l.chars().count() <= 30));
    golden("live.txt", &shown);
}

#[test]
fn prometheus_page() {
    let mut snapshot = Snapshot::new("id \"quoted\"", "0.1.0", &plan(120.0, 40));
    let before = render(&snapshot);
    assert!(before.contains("bucketload_run_info{run_id=\"id \\\"quoted\\\"\""));
    (0..12).for_each(|s| snapshot.interval(&interval(s)));
    let page = render(&snapshot);
    // The hash changes with every new field of a plan.
    let hash = plan(120.0, 40).scenario_hash();
    golden("metrics.prom", &page.replace(&hash, "0123456789abcdef"));
    check_exposition(&page);
}

/// Checks the rules of the exposition format: each sample follows its family's type, buckets are cumulative, and the
/// last one equals the count.
fn check_exposition(page: &str) {
    let (mut family, mut last, mut inf) = (String::new(), 0.0, 0.0);
    for line in page.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(["counter", "gauge", "histogram"].contains(&kind));
            assert_eq!(name.ends_with("_total"), kind == "counter", "{name}");
            family = name.to_owned();
        } else if !line.starts_with('#') {
            let (name, value) = line.rsplit_once(' ').unwrap();
            let value: f64 = value.parse().unwrap();
            assert!(name.starts_with(&family), "{line}");
            if name.contains("_bucket{") {
                assert!(value >= last, "{line}");
                last = value;
                if name.contains("le=\"+Inf\"") {
                    (inf, last) = (value, 0.0);
                }
            }
            if name.contains("_count{") {
                assert_eq!(value, inf, "{line}");
            }
        }
    }
}
