//! What the active faults do to one connection.

use bucketload_core::drill::{Direction, Fault, What};
use bucketload_core::plan::GapLaw;

use crate::draw::{Purpose, uniform};

/// A fault that is on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Active {
    /// Its index.
    pub(crate) fault: usize,
    /// How many times it came before.
    pub(crate) round: u32,
    /// When it began, nanoseconds.
    pub(crate) since_ns: u64,
}

impl Active {
    /// How far its ramp is, from 0 to 1.
    pub(crate) fn grown(&self, fault: &Fault, now: u64) -> f64 {
        match fault.ramp_ns {
            0 => 1.0,
            ramp => (now.saturating_sub(self.since_ns) as f64 / ramp as f64).min(1.0),
        }
    }
}

/// A law of delays and the fault that it belongs to, for its draws.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Delay {
    pub(crate) law: GapLaw,
    pub(crate) fault: usize,
    pub(crate) round: u32,
}

/// A forged answer for a share of the requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Forged {
    pub(crate) fault: usize,
    pub(crate) round: u32,
    pub(crate) share: f64,
}

/// What happens in one direction.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct LaneEffects {
    /// Nothing is carried.
    pub(crate) held: bool,
    pub(crate) delays: Vec<Delay>,
    /// Bytes per second; 0 = no limit.
    pub(crate) rate: u64,
    /// Largest piece and the pause after it; 0 = no pieces.
    pub(crate) slice: (u64, u64),
}

/// All that happens to a connection. [`Default`] means nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Effects {
    /// From the client.
    pub(crate) up: LaneEffects,
    /// To the client.
    pub(crate) down: LaneEffects,
    /// Before a new connection carries anything.
    pub(crate) open: Vec<Delay>,
    /// Before the end of a connection is passed on.
    pub(crate) close: Vec<Delay>,
    /// Reset after so many bytes.
    pub(crate) reset_bytes: Option<u64>,
    /// Reset after so long.
    pub(crate) reset_ns: Option<u64>,
    /// Closed after so many bytes.
    pub(crate) cut_bytes: Option<u64>,
    /// Requests that are answered without reaching the store.
    pub(crate) forged: Vec<Forged>,
}

/// The effects on connection `number` to endpoint number `endpoint` at instant `now`.
pub(crate) fn effects(
    setup: &crate::Setup,
    active: &[Active],
    endpoint: usize,
    number: u64,
    now: u64,
) -> Effects {
    let mut all = Effects::default();
    for on in active {
        let fault = &setup.faults[on.fault];
        let struck = &setup.struck[on.fault];
        if !struck.is_empty() && !struck.contains(&endpoint) {
            continue;
        }
        let share = fault.share * on.grown(fault, now);
        let delay = |law| Delay {
            law,
            fault: on.fault,
            round: on.round,
        };
        if let What::Answer { .. } = fault.what {
            // The share is one of requests.
            all.forged.push(Forged {
                fault: on.fault,
                round: on.round,
                share,
            });
            continue;
        }
        if uniform(setup.seed, Purpose::Strike, on.fault, on.round, number) >= share {
            continue;
        }
        let least = |known: Option<u64>, new: u64| Some(known.map_or(new, |known| known.min(new)));
        match &fault.what {
            What::SlowOpen { delay: law } => all.open.push(delay(*law)),
            What::SlowClose { delay: law } => all.close.push(delay(*law)),
            What::Reset {
                after_bytes,
                after_ns,
            } => {
                if *after_bytes > 0 {
                    all.reset_bytes = least(all.reset_bytes, *after_bytes);
                }
                if *after_ns > 0 || *after_bytes == 0 {
                    all.reset_ns = least(all.reset_ns, *after_ns);
                }
            }
            What::Cut { after_bytes } => all.cut_bytes = least(all.cut_bytes, *after_bytes),
            what => all.in_lanes(what, fault.direction, delay),
        }
    }
    all
}

impl Effects {
    fn in_lanes(&mut self, what: &What, direction: Direction, delay: impl Fn(GapLaw) -> Delay) {
        for (lane, up) in [(&mut self.up, true), (&mut self.down, false)] {
            if !direction.strikes(up) {
                continue;
            }
            match what {
                What::BlackHole => lane.held = true,
                What::Latency { delay: law } => lane.delays.push(delay(*law)),
                What::Bandwidth { bytes_per_s } => {
                    lane.rate = match lane.rate {
                        0 => *bytes_per_s,
                        known => known.min(*bytes_per_s),
                    };
                }
                What::Slice { bytes, pause_ns } => lane.slice = (*bytes, *pause_ns),
                _ => {}
            }
        }
    }
}
