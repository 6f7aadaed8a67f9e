//! Ended runs in lists, on their pages and in comparisons.

#[path = "../../../bucketload-results/tests/support/mod.rs"]
mod runs;

use std::path::Path;

use axum::http::StatusCode;
use bucketload_console::outcome;
use bucketload_console::queue::{JobId, JobState, ProcessExit};
use bucketload_core::sink::PhaseEnd;
use bucketload_results::rundir::{self, RunDirSink, RunEnd, Status};
use bucketload_results::{analyze, report};

use crate::support::{Site, site, until};
use runs::{SECOND, Shape};

const HTML: (&str, &str) = ("accept", "text/html");

/// Writes the run directory of an ended run, as `bucketload run` does.
fn write_run(run: &Path, seconds: u64, slowness: f64, target: &str) {
    let shape = Shape {
        seconds,
        slowness,
        ..Shape::default()
    };
    let mut manifest = runs::manifest(runs::plan(shape.rate, shape.seconds));
    manifest.run_id = run.display().to_string();
    target.clone_into(&mut manifest.target);
    let mut sink = RunDirSink::create(run, manifest).unwrap();
    runs::feed(&mut sink, &shape);
    runs::end(&mut sink, &shape, PhaseEnd::TimeLimit);
    sink.finish(RunEnd {
        status: Status::Finished,
        ended_unix_ns: 1_767_323_200 * SECOND,
        error: None,
    })
    .unwrap();
    let result = analyze(run).unwrap();
    rundir::write_verdict(run, &result.verdict).unwrap();
    std::fs::write(run.join("report.html"), report::html(&result)).unwrap();
    outcome::write(run, &result).unwrap();
}

/// Runs of two workloads; the last one is cancelled.
async fn ended_runs() -> Site {
    let site = site(false);
    let driving = site.controller.clone();
    tokio::spawn(async move { driving.drive().await });
    let list = [
        ("store", 60, 1.0, "s3://alpha/p", false),
        ("store", 60, 1.5, "s3://beta/p", false),
        ("other", 61, 1.0, "s3://alpha/p", false),
        ("store", 60, 1.0, "s3://alpha/p", true),
    ];
    for (n, (name, seconds, slowness, target, cancelled)) in list.into_iter().enumerate() {
        let id = site.submit("x.toml", &format!("name = \"{name}\"")).await;
        let process = site.script.process(n).await;
        write_run(&process.task.dir.join("run"), seconds, slowness, target);
        let state = match cancelled {
            true => {
                site.controller.cancel(id).unwrap();
                JobState::Cancelled
            }
            false => {
                process.end(ProcessExit::Code(0));
                JobState::Finished
            }
        };
        until(&site.controller, id, state).await;
    }
    site
}

/// The ids of a table's rows, in order.
fn ids(page: &str) -> Vec<String> {
    let rows = page.split("<td><a href=\"/jobs/").skip(1);
    rows.map(|row| row.split('"').next().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn the_history_has_figures_search_and_order() {
    let site = ended_runs().await;
    let page = site.get("/history", &[HTML]).await.text;
    assert_eq!(ids(&page), ["w4", "w3", "w2", "w1"], "{page}");
    let job = |n| {
        site.controller
            .with_queue(|queue| queue.get(JobId(n)).cloned().unwrap())
    };
    let figures = job(1).figures.unwrap();
    let ops = figures.ops_per_s.unwrap();
    assert!((ops.0 - 200.0).abs() < 10.0 && ops.0 == ops.1, "{ops:?}");
    assert!(
        page.contains(&format!("<td class=\"num\">{:.1}</td>", ops.0)),
        "{page}"
    );
    assert!(page.contains(" ms to ") && page.contains("s3:&#x2f;&#x2f;beta&#x2f;p"));
    let found = |query: &str| {
        let path = format!("/history?{query}");
        let site = &site;
        async move { ids(&site.get(&path, &[HTML]).await.text) }
    };
    assert_eq!(found("q=BETA").await, ["w2"]);
    assert_eq!(found("q=store+cancelled").await, ["w4"]);
    assert!(found("q=nothing").await.is_empty());
    assert_eq!(found("sort=ended&order=up").await, ["w1", "w2", "w3", "w4"]);
    assert_eq!(found("sort=p99&order=down").await[0], "w2", "the slowest");
    assert_eq!(found("sort=workload").await[0], "w3", "`other` is first");
    // The figures survive a restart, as JSON.
    let list = site.get("/api/jobs/w1", &[]).await.text;
    assert!(list.contains("\"ops_per_s\":["), "{list}");
}

#[tokio::test]
async fn the_page_of_an_ended_run_shows_its_result_and_the_usual_baseline() {
    let site = ended_runs().await;
    let page = site.get("/jobs/w2", &[HTML]).await.text;
    for words in [
        "id=\"result\"",
        "operations per second",
        "response p99",
        "<a class=\"button primary\" id=\"report\" href=\"/jobs/w2/report\">",
        "<option value=\"w1\" selected>",
        "<optgroup label=\"Other workloads\">",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
    assert!(
        !page.contains("<iframe") && !page.contains("value=\"w4\""),
        "{page}"
    );
    // There was no run of the other workload before.
    let page = site.get("/jobs/w3", &[HTML]).await.text;
    assert!(
        page.contains("choose a run") && !page.contains(" selected"),
        "{page}"
    );
    let page = site.get("/compare", &[HTML]).await.text;
    assert_eq!(ids(&page), ["w3", "w2", "w1"], "only runs with a result");
    for chosen in [
        "name=\"a\" value=\"w1\" aria-label=\"w1 on side A\" checked",
        "name=\"b\" value=\"w2\" aria-label=\"w2 on side B\" checked",
    ] {
        assert!(page.contains(chosen), "{chosen}: {page}");
    }
    assert_eq!(page.matches(" checked").count(), 2);
    let page = site.get("/compare?a=w1&b=w3", &[HTML]).await;
    assert_eq!(page.status, StatusCode::OK);
    let text = page.text;
    assert!(
        text.contains("w1") && text.contains("duration of phase"),
        "{text}"
    );
    assert!(text.contains("60 s vs 61 s"), "{text}");
    assert!(!text.contains("_ns") && !text.contains("--allow"), "{text}");
}

#[tokio::test]
async fn cancelling_asks_first() {
    let site = site(false);
    site.submit("x.toml", "name = \"x\"").await;
    for path in ["/jobs/w1", "/"] {
        let page = site.get(path, &[HTML]).await.text;
        assert!(page.contains("href=\"/jobs/w1/cancel"), "{page}");
        assert!(!page.contains("action=\"/jobs/w1/cancel\""), "{page}");
    }
    let page = site.get("/jobs/w1/cancel?to=list", &[HTML]).await.text;
    assert!(page.contains("will not run") && page.contains("action=\"/jobs/w1/cancel\""));
    let id = "w1".parse().unwrap();
    assert_eq!(
        crate::support::state(&site.controller, id),
        JobState::Queuing
    );
    site.controller.cancel(id).unwrap();
    let over = site.get("/jobs/w1/cancel", &[HTML]).await;
    assert_eq!(over.header("location"), "/jobs/w1");
}
