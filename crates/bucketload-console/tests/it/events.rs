//! Event streams: their contents, and slow or stuck browsers.

use std::time::Duration;

use axum::body::Body;
use axum::http::StatusCode;
use bucketload_console::queue::{JobState, ProcessExit};
use http_body_util::BodyExt as _;
use tower::ServiceExt as _;

use crate::support::{Site, request, site, until};

/// The console's maximum number of streams.
const MAX_STREAMS: usize = 64;
/// Virtual time after which a browser that accepts no data must have been dropped.
const GIVEN_UP: Duration = Duration::from_secs(90);

async fn open(site: &Site) -> (StatusCode, Body) {
    let path = "/events?lists=true";
    let answer = site
        .router
        .clone()
        .oneshot(request("GET", path, &[], ""))
        .await
        .unwrap();
    (answer.status(), answer.into_body())
}

/// The next message of a stream; `None` at its end.
async fn next(body: &mut Body) -> Option<String> {
    let frame = body.frame().await?.unwrap();
    Some(String::from_utf8_lossy(frame.data_ref().unwrap()).into_owned())
}

#[tokio::test]
async fn events_send_the_state_and_the_lists() {
    let site = site(false);
    let id = site.submit("x.toml", "name = \"x\"").await;
    let driving = {
        let controller = site.controller.clone();
        tokio::spawn(async move { controller.drive().await })
    };
    let process = site.script.process(0).await;
    let answer = site
        .router
        .clone()
        .oneshot(request("GET", "/events?job=w1&lists=true", &[], ""))
        .await
        .unwrap();
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    let mut body = answer.into_body();
    let mut text = String::new();
    while !text.contains("event: lists") {
        let frame = body.frame().await.unwrap().unwrap();
        text += &String::from_utf8_lossy(frame.data_ref().unwrap());
    }
    assert!(text.contains("[\"w1\",\"processing\",false]"), "{text}");
    process.end(ProcessExit::Code(0));
    until(&site.controller, id, JobState::Finished).await;
    while !text.contains("[\"w1\",\"finished\",false]") {
        let frame = body.frame().await.unwrap().unwrap();
        text += &String::from_utf8_lossy(frame.data_ref().unwrap());
    }
    site.controller.stop();
    driving.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_stuck_browser_is_dropped_and_costs_one_message() {
    let site = site(false);
    let mut stuck = Vec::new();
    for _ in 0..MAX_STREAMS {
        let (status, body) = open(&site).await;
        assert_eq!(status, StatusCode::OK);
        stuck.push(body);
    }
    assert_eq!(open(&site).await.0, StatusCode::SERVICE_UNAVAILABLE);
    // Many changes happen that nobody reads.
    let begin = tokio::time::Instant::now();
    for n in 0..40 {
        site.submit("x.toml", &format!("name = \"job-{n}\"")).await;
        tokio::time::advance(Duration::from_secs(1)).await;
    }
    // All streams are free again.
    let mut others = Vec::new();
    while others.len() < MAX_STREAMS {
        assert!(begin.elapsed() < GIVEN_UP, "stuck streams are not released");
        match open(&site).await {
            (StatusCode::OK, body) => others.push(body),
            _ => tokio::time::advance(Duration::from_secs(1)).await,
        }
        tokio::task::yield_now().await;
    }
    // For each of them, only the one waiting message was kept.
    for mut body in stuck {
        let mut messages = 0;
        while let Some(text) = next(&mut body).await {
            assert!(
                text.contains("event: ") && !text.contains("job-39"),
                "{text}"
            );
            messages += 1;
        }
        assert_eq!(messages, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_browser_gets_fewer_states_and_the_latest() {
    let site = site(false);
    let (_, mut body) = open(&site).await;
    for n in 0..30 {
        site.submit("x.toml", &format!("name = \"job-{n}-\"")).await;
        tokio::time::advance(Duration::from_secs(1)).await;
    }
    let mut messages = 1;
    while !next(&mut body).await.unwrap().contains("job-29-") {
        messages += 1;
        assert!(messages < 6, "old states are not kept");
    }
}
