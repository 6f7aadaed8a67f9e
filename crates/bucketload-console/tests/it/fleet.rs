//! The agents of a controller, with a scripted prober in virtual time.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::http::StatusCode;
use bucketload_console::agents::AgentAddress;
use bucketload_console::fleet::{Fleet, Health, ProbeAnswer, Prober};
use bucketload_console::launcher::BoxFuture;
use bucketload_console::queue::{JobState, ProcessExit};
use http_body_util::BodyExt as _;
use tower::ServiceExt as _;

use crate::support::{request, site_with, until};

const HTML: (&str, &str) = ("accept", "text/html");

/// Returns the test's answers and counts the probes.
#[derive(Default)]
struct Scripted {
    answers: Mutex<BTreeMap<String, Result<ProbeAnswer, String>>>,
    asked: AtomicUsize,
}

impl Scripted {
    fn say(&self, address: &str, answer: Result<ProbeAnswer, String>) {
        self.answers
            .lock()
            .unwrap()
            .insert(address.to_owned(), answer);
    }
}

impl Prober for Scripted {
    fn probe<'a>(&'a self, agent: &'a AgentAddress) -> BoxFuture<'a, Result<ProbeAnswer, String>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let answer = self.answers.lock().unwrap()[&agent.to_string()].clone();
        Box::pin(async move { answer })
    }
}

fn answer(offset_ns: i64) -> ProbeAnswer {
    ProbeAnswer {
        version: "1.2.3".to_owned(),
        host: "<b>node</b>".to_owned(),
        busy: None,
        clock_offset_ns: offset_ns,
        clock_bound_ns: 40_000,
        round_trip_ns: 80_000,
    }
}

#[tokio::test(start_paused = true)]
async fn agents_are_probed_while_no_run_is_in_progress() {
    let script = Arc::new(Scripted::default());
    let refusal = "h2:7400: one side is bucketload 1.2.3, the other is bucketload 1.0.0";
    script.say("h1:7400", Ok(answer(-1_500_000)));
    script.say("h2:7400", Err(refusal.to_owned()));
    let agents = ["h1:7400", "h2:7400"].map(|text| text.parse().unwrap());
    let prober = Arc::clone(&script) as Arc<dyn Prober>;
    let fleet = Arc::new(Fleet::new(agents.to_vec(), prober));
    let site = site_with(false, Arc::clone(&fleet));
    let page = site.get("/agents", &[HTML]).await.text;
    assert_eq!(page.matches("not checked yet").count(), 2, "{page}");
    let looking = tokio::spawn(Arc::clone(&fleet).poll(site.controller.clone()));
    let mut changes = fleet.watch();
    changes.changed().await.unwrap();
    assert_eq!(fleet.ready(), (1, 2));
    // The page, the API's list, COSBench's list, the overview, the metrics.
    let page = site.get("/agents", &[HTML]).await.text;
    for words in [
        "-1.5 ms ± 40 µs",
        "80 µs",
        "1.2.3",
        "&lt;b&gt;node",
        "bucketload 1.0.0",
    ] {
        assert!(page.contains(words), "{words} in {page}");
    }
    let list = site.get("/api/agents", &[]).await;
    assert_eq!(list.status, StatusCode::OK);
    let list: serde_json::Value = serde_json::from_str(&list.text).unwrap();
    assert_eq!(list[0]["health"], "ready");
    assert_eq!(list[0]["clock_offset_ns"], -1_500_000);
    assert_eq!(list[1]["reason"], refusal);
    let drivers = site.get("/controller/cli/index.action", &[]).await.text;
    assert!(
        drivers.starts_with("Drivers:\ndriver1\th1:7400\ndriver2\th2:7400\nTotal: 2 drivers\n"),
        "{drivers}"
    );
    let overview = site.get("/", &[HTML]).await.text;
    assert!(overview.contains("1 of 2"), "{overview}");
    let metrics = site.get("/metrics", &[]).await.text;
    assert!(metrics.contains("bucketload_agents_ready 1\n"), "{metrics}");
    // An open page gets an update.
    let stream = site
        .router
        .clone()
        .oneshot(request("GET", "/events?agents=true", &[], ""))
        .await
        .unwrap();
    let mut stream = stream.into_body();
    let mut told = String::new();
    script.say("h2:7400", Ok(answer(3_000)));
    while !told.contains("3 µs") {
        let frame = stream.frame().await.unwrap().unwrap();
        told += &String::from_utf8_lossy(frame.data_ref().unwrap());
    }
    assert_eq!(fleet.ready(), (2, 2));
    // No probes during a run; the next one comes right after it.
    let id = site.submit("x.toml", "name = \"x\"").await;
    let driving = {
        let controller = site.controller.clone();
        tokio::spawn(async move { controller.drive().await })
    };
    let process = site.script.process(0).await;
    tokio::time::advance(Duration::from_secs(11)).await;
    tokio::task::yield_now().await;
    let before = script.asked.load(Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(script.asked.load(Ordering::Relaxed), before);
    script.say("h1:7400", Err("h1:7400: connection refused".to_owned()));
    changes.borrow_and_update();
    process.end(ProcessExit::Code(0));
    until(&site.controller, id, JobState::Finished).await;
    let ended = tokio::time::Instant::now();
    changes.changed().await.unwrap();
    assert!(ended.elapsed() < Duration::from_secs(1));
    assert!(
        matches!(&fleet.statuses()[0].health, Health::Absent { reason } if reason.contains("refused"))
    );
    site.controller.stop();
    driving.await.unwrap();
    looking.await.unwrap();
}
