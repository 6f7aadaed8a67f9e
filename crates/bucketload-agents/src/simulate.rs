//! Simulated agents, to measure the coordinator's cost for a thousand agents on one machine. They answer
//! like real ones and send an interval with eight classes once a second, but run no load.

use std::sync::LazyLock;
use std::time::Duration;

use bucketload_core::op::OpClass;
use bucketload_core::record::OpRecord;
use bucketload_core::sink::PhaseEnd;
use bucketload_core::tally::{Gauges, Interval, Tally};
use bucketload_run::now_ns;
use bytes::Bytes;

use crate::access::Access;
use crate::agent::call_until;
use crate::error::{AgentsError, status_text};
use crate::message::{
    AgentPhaseEnd, Frame, Greeting, ToAgent, ToCoordinator, control, parse, raw_interval,
};
use crate::service::Outbox;
use crate::tally;

/// Operations of each class in an interval.
const OPERATIONS: u64 = 40;

/// The interval that every simulated agent sends: eight classes with all their histograms, log-uniform
/// latencies from 0.1 to 100 ms.
#[must_use]
pub fn interval() -> Interval {
    let mut tally = Tally::new();
    tally.fine.begin(1, 1_000_000_000);
    for (work, class) in OpClass::ALL.into_iter().take(8).enumerate() {
        for n in 0..OPERATIONS {
            // Any fixed walk over the range would do.
            let share = ((n * 37 + work as u64 * 11) % OPERATIONS) as f64 / OPERATIONS as f64;
            let ns = (1e5 * 1000f64.powf(share)) as u64;
            tally.offered += 1;
            tally.issued += 1;
            tally.record(&OpRecord {
                class,
                due_ns: 1_000,
                taken_ns: 1_000 + ns / 100,
                started_ns: 1_000 + ns / 50,
                sent_ns: 1_000 + ns / 40,
                first_byte_ns: 1_000 + ns / 2,
                done_ns: 1_000 + ns,
                bytes: 4096,
                attempts: 1,
                ..OpRecord::BLANK
            });
        }
    }
    Interval {
        phase: 0,
        index: 0,
        start_ns: 0,
        end_ns: 0,
        tally,
        gauges: Gauges {
            sessions: 8,
            machine_total_ns: 1_000_000_000,
            ..Gauges::default()
        },
    }
}

/// Calls the coordinator at `address` as one agent, and simulates its run.
///
/// # Errors
/// When the coordinator cannot be reached or ends the session without `Bye`.
pub async fn agent(address: &str, access: &Access) -> Result<(), AgentsError> {
    let mut link = call_until(address, access, Duration::from_secs(60), &|_| {}).await?;
    let out = link.out.clone();
    say(
        &out,
        &ToCoordinator::Hello(Greeting {
            host: "simulated".to_owned(),
            ..Greeting::new(access)
        }),
    )
    .await;
    let mut durations: Vec<u64> = Vec::new();
    loop {
        let message = link.incoming.message().await;
        let message = message.map_err(|status| AgentsError::aborted(status_text(&status)))?;
        let Some(Frame::Control(bytes)) = message.and_then(Frame::of) else {
            return Err(AgentsError::aborted("the coordinator is gone"));
        };
        match parse(&bytes).map_err(AgentsError::aborted)? {
            ToAgent::Ping { t0 } => {
                let t1 = now_ns();
                let pong = ToCoordinator::Pong {
                    t0,
                    t1,
                    t2: t1,
                    wall_ns: 0,
                };
                say(&out, &pong).await;
            }
            ToAgent::Assign(assignment) => {
                let phases = assignment.plan.phases.iter();
                durations = phases.map(|phase| phase.limits.duration_ns).collect();
                let accepted = ToCoordinator::Accepted {
                    threads: 1,
                    facts: Default::default(),
                };
                say(&out, &accepted).await;
            }
            ToAgent::Phase { phase, .. } => say(&out, &ToCoordinator::Ready { phase }).await,
            ToAgent::Start { phase, at_ns, .. } => {
                let duration_ns = durations.get(usize::from(phase)).copied().unwrap_or(0);
                tokio::spawn(load(out.clone(), phase, at_ns, duration_ns));
            }
            ToAgent::Bye => return Ok(()),
            ToAgent::Hello(_)
            | ToAgent::Calibrate { .. }
            | ToAgent::Agreed { .. }
            | ToAgent::Converged { .. }
            | ToAgent::Stop { .. } => {}
        }
    }
}

/// Simulates a phase from `at_ns` on: one interval each second, then the end.
async fn load(out: Outbox, phase: u16, at_ns: u64, duration_ns: u64) {
    // Encoded once, because the cost of encoding is not under test.
    static SENT: LazyLock<(Gauges, Vec<u8>)> = LazyLock::new(|| {
        let interval = interval();
        let mut body = Vec::new();
        tally::encode_tally(&interval.tally, &mut body);
        (interval.gauges, body)
    });
    let (gauges, body) = &*SENT;
    let mut interval = Interval {
        phase,
        index: 0,
        start_ns: 0,
        end_ns: 0,
        tally: Tally::new(),
        gauges: *gauges,
    };
    let seconds = duration_ns / 1_000_000_000;
    for index in 0..seconds {
        interval.index = index;
        interval.start_ns = at_ns + index * 1_000_000_000;
        interval.end_ns = interval.start_ns + 1_000_000_000;
        interval.gauges.machine_total_ns += 1_000_000_000;
        let wait = interval.end_ns.saturating_sub(now_ns());
        tokio::time::sleep(Duration::from_nanos(wait)).await;
        // The reading side notices a lost coordinator.
        let _ = out.control.send(raw_interval(&interval, body)).await;
    }
    let end_ns = at_ns + duration_ns;
    let done = ToCoordinator::PhaseDone {
        phase,
        outcome: Ok(AgentPhaseEnd {
            at_ns: end_ns,
            drained_ns: end_ns,
            end: PhaseEnd::TimeLimit,
        }),
        dropped: 0,
    };
    say(&out, &done).await;
}

async fn say(out: &Outbox, what: &ToCoordinator) {
    let message: Bytes = control(what);
    let _ = out.control.send(message).await;
}
