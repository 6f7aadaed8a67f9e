//! The controller for Prometheus: what is in the queue, and the run under way in sum.

use std::fmt::Write as _;
use std::sync::Arc;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};

use super::Console;
use crate::course::view::RunView;
use crate::queue::State as JobState;

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
        .and_then(|live| live.with(|course| course.run()));
    (
        [(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")],
        text(counts, run.as_ref()) + &agents(console.config.fleet.ready()),
    )
        .into_response()
}

/// How many of the configured agents answer; nothing without agents.
fn agents((ready, all): (usize, usize)) -> String {
    if all == 0 {
        return String::new();
    }
    format!(
        "# HELP bucketload_agents Agents that runs use.\n# TYPE bucketload_agents gauge\nbucketload_agents {all}\n\
         # HELP bucketload_agents_ready Agents that answered when they were asked last.\n\
         # TYPE bucketload_agents_ready gauge\nbucketload_agents_ready {ready}\n"
    )
}

fn text(counts: [usize; 6], run: Option<&RunView>) -> String {
    let mut out = String::from(
        "# HELP bucketload_workloads Workloads in the list, by state.\n# TYPE bucketload_workloads gauge\n",
    );
    // Writing to a string cannot fail.
    for (state, n) in STATES.iter().zip(counts) {
        let _ = writeln!(out, "bucketload_workloads{{state=\"{state}\"}} {n}");
    }
    let Some(run) = run else {
        return out;
    };
    type Field = fn(&crate::course::view::PhaseView) -> u64;
    let families: [(&str, &str, Field); 3] = [
        (
            "bucketload_run_operations_total",
            "Operations that succeeded in the run under way.",
            |p| p.ok,
        ),
        (
            "bucketload_run_failures_total",
            "Operations that failed in the run under way.",
            |p| p.failed,
        ),
        (
            "bucketload_run_bytes_total",
            "Object bytes of the operations that succeeded.",
            |p| p.bytes,
        ),
    ];
    for (name, help, field) in families {
        let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} counter");
        for phase in &run.phases {
            let label = phase
                .name
                .replace('\\', "\\\\")
                .replace('"', "\\\"")
                .replace('\n', "\\n");
            let _ = writeln!(out, "{name}{{phase=\"{label}\"}} {}", field(phase));
        }
    }
    let _ = writeln!(
        out,
        "# HELP bucketload_run_in_flight Operations under way.\n# TYPE bucketload_run_in_flight gauge\nbucketload_run_in_flight {}",
        run.in_flight
    );
    out
}

#[cfg(test)]
mod tests {
    use super::{agents, text};
    use crate::course::view::{PhaseView, RunView};

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
