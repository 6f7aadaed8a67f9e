//! Asks an agent for its version, host, current run and clock, outside a run.
//!
//! A few exchanges on one connection compare the wall clocks, as [`crate::clock`] describes: the exchange
//! with the shortest round trip counts.

use std::time::Duration;

use crate::access::Access;
use crate::agent::ProbeAnswer;
use crate::clock::{Offset, OffsetEstimate};
use crate::error::AgentsError;
use crate::{host, service};

/// Exchanges of one probe. The first also pays for connecting.
const EXCHANGES: usize = 4;

/// The result of a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeResult {
    /// The agent's description of itself.
    pub answer: ProbeAnswer,
    /// Its wall clock minus ours.
    pub clock: Offset,
    /// The shortest round trip.
    pub round_trip: Duration,
}

/// Asks who listens at `address` (`HOST:PORT`), within `timeout`. Blocks, so it must not be called inside a
/// tokio runtime.
///
/// # Errors
/// When nobody answers, or the agent refuses.
pub fn probe(
    address: &str,
    access: &Access,
    timeout: Duration,
) -> Result<ProbeResult, AgentsError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| AgentsError::aborted(e.to_string()))?;
    runtime.block_on(probe_async(address, access, timeout))
}

/// Like [`probe`], for callers inside a runtime.
///
/// # Errors
/// As [`probe`].
pub async fn probe_async(
    address: &str,
    access: &Access,
    timeout: Duration,
) -> Result<ProbeResult, AgentsError> {
    let aborted = |text: String| AgentsError::aborted(format!("{address}: {text}"));
    let (mut estimate, mut latest, mut round_trip_ns) = (OffsetEstimate::default(), None, u64::MAX);
    let mut sent_ns = None;
    let asking = service::probe(address, access, EXCHANGES, |bytes| {
        let now_ns = host::unix_ns();
        latest = serde_json::from_slice::<ProbeAnswer>(&bytes).ok();
        // The start of the first exchange is unknown: it includes connecting.
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
    Ok(ProbeResult {
        answer,
        clock: clock.ok_or_else(|| aborted("no sensible answer".to_owned()))?,
        round_trip: Duration::from_nanos(round_trip_ns),
    })
}
