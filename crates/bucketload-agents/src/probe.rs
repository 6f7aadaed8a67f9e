//! Asking an agent who it is, without a run: version, host, what it is busy with, and its clock.
//!
//! The wall clock is compared over a few exchanges on one connection, by the arithmetic of [`crate::clock`]: the
//! exchange with the shortest round trip counts.

use std::time::Duration;

use crate::access::Access;
use crate::agent::ProbeAnswer;
use crate::clock::{Offset, OffsetEstimate};
use crate::error::AgentsError;
use crate::{host, service};

/// Exchanges of one probe: the first one also pays for the start of the connection.
const EXCHANGES: usize = 4;

/// What a probe found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probed {
    /// What the agent says of itself.
    pub answer: ProbeAnswer,
    /// Its wall clock minus the one here.
    pub clock: Offset,
    /// The shortest round trip.
    pub round_trip: Duration,
}

/// Asks who listens at `address` (`HOST:PORT`), within `timeout`. Blocks; not to be called inside a
/// runtime.
///
/// # Errors
/// When nobody answers, or does not want to: the message says why.
pub fn probe(address: &str, access: &Access, timeout: Duration) -> Result<Probed, AgentsError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| AgentsError::aborted(e.to_string()))?;
    runtime.block_on(probe_async(address, access, timeout))
}

/// As [`probe`], inside a runtime.
///
/// # Errors
/// As [`probe`].
pub async fn probe_async(
    address: &str,
    access: &Access,
    timeout: Duration,
) -> Result<Probed, AgentsError> {
    let aborted = |text: String| AgentsError::aborted(format!("{address}: {text}"));
    let (mut estimate, mut latest, mut round_trip_ns) = (OffsetEstimate::default(), None, u64::MAX);
    let mut sent_ns = None;
    let asking = service::probe(address, access, EXCHANGES, |bytes| {
        let now_ns = host::unix_ns();
        latest = serde_json::from_slice::<ProbeAnswer>(&bytes).ok();
        // The first exchange has no known beginning: the connection was made meanwhile.
        if let (Some(sent_ns), Some(answer)) = (sent_ns, &latest) {
            let there_ns = answer.wall_unix_ns;
            round_trip_ns = round_trip_ns.min(estimate.add(sent_ns, there_ns, there_ns, now_ns));
        }
        sent_ns = Some(host::unix_ns());
    });
    match tokio::time::timeout(timeout, asking).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => return Err(aborted(error.message().to_owned())),
        Err(_) => {
            let text = format!("no answer within {} s", timeout.as_secs_f64());
            return Err(aborted(text));
        }
    }
    let answer = latest.ok_or_else(|| aborted("no sensible answer".to_owned()))?;
    let clock = estimate.at(host::unix_ns());
    Ok(Probed {
        answer,
        clock: clock.ok_or_else(|| aborted("no sensible answer".to_owned()))?,
        round_trip: Duration::from_nanos(round_trip_ns),
    })
}
