//! Prometheus metrics of the controller: the queue, and a summary of the current run.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use bucketload_results::output::prometheus::{Page, escape};

use super::Console;
use crate::monitor::view::{PhaseView, RunView};
use crate::queue::JobState;

const STATES: [JobState; 6] = [
    JobState::Queuing,
    JobState::Processing,
    JobState::Finished,
    JobState::Failed,
    JobState::Terminated,
    JobState::Cancelled,
];

pub(super) async fn page(State(console): State<Arc<Console>>) -> Response {
    let (counts, running) = console.controller.with_queue(|queue| {
        let all = || {
            queue
                .running()
                .into_iter()
                .chain(queue.waiting())
                .chain(queue.history())
        };
        let counts = STATES.map(|state| all().filter(|job| job.state == state).count());
        (counts, queue.running().map(|job| job.id))
    });
    let run = running
        .and_then(|id| console.controller.live(id))
        .and_then(|live| live.with(|monitor| monitor.run()));
    (
        [(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")],
        text(counts, run.as_ref()) + &agents(console.config.fleet.ready()),
    )
        .into_response()
}

/// The number of configured agents that answer; empty without agents.
fn agents((ready, all): (usize, usize)) -> String {
    let mut page = Page::default();
    if all > 0 {
        page.family("agents", "gauge", "Configured agents.")
            .sample("", all);
        let help = "Agents that answered the last probe.";
        page.family("agents_ready", "gauge", help).sample("", ready);
    }
    page.0
}

fn text(counts: [usize; 6], run: Option<&RunView>) -> String {
    let mut page = Page::default();
    let mut workloads = page.family("workloads", "gauge", "Listed workloads by state.");
    for (state, n) in STATES.iter().zip(counts) {
        workloads.sample(&format!("state=\"{state}\""), n);
    }
    let Some(run) = run else {
        return page.0;
    };
    type Field = fn(&PhaseView) -> u64;
    let families: [(&str, &str, Field); 3] = [
        (
            "run_operations_total",
            "Successful operations of the current run.",
            |p| p.ok,
        ),
        (
            "run_failures_total",
            "Failed operations of the current run.",
            |p| p.failed,
        ),
        (
            "run_bytes_total",
            "Object bytes of the successful operations.",
            |p| p.bytes,
        ),
    ];
    for (name, help, field) in families {
        let mut family = page.family(name, "counter", help);
        for phase in &run.phases {
            family.sample(&format!("phase=\"{}\"", escape(&phase.name)), field(phase));
        }
    }
    page.family("run_in_flight", "gauge", "Operations in flight.")
        .sample("", run.in_flight);
    page.0
}

#[cfg(test)]
mod tests {
    use super::{agents, text};
    use crate::monitor::view::{PhaseView, RunView};

    #[test]
    fn names_of_phases_cannot_break_the_format() {
        let run = RunView {
            phases: vec![PhaseView {
                name: "a\"} 1\nb\\".into(),
                ok: 7,
                ..PhaseView::default()
            }],
            ..RunView::default()
        };
        let page = text([1, 0, 0, 0, 0, 2], Some(&run));
        assert!(page.contains("bucketload_workloads{state=\"cancelled\"} 2\n"));
        assert!(page.contains("bucketload_run_operations_total{phase=\"a\\\"} 1\\nb\\\\\"} 7\n"));
        assert!(text([0; 6], None).lines().count() == 8);
        assert_eq!(agents((0, 0)), "");
        assert!(agents((1, 2)).ends_with("\nbucketload_agents_ready 1\n"));
    }
}
