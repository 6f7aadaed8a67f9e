//! A connection through the fault line: two sockets, a lane in each direction, and what faults do to them.

use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use bucketload_core::drill::What;
use bucketload_core::generate::rng::mix64;

use crate::Setup;
use crate::answer::{Requests, answer};
use crate::draw::{Purpose, delay, uniform};
use crate::effects::{Delay, Effects};
use crate::lane::{Broken, End, Lane, Shape};

/// How long a connection that was cut may take to go away.
const CUT_NS: u64 = 5_000_000_000;

/// What becomes of a connection after it was served.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It goes on; it wants to be served again at this instant (`u64::MAX`: when the kernel says so).
    Until(u64),
    /// Both sides are through.
    Over,
    /// Both sides get a reset.
    Reset,
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Link {
    /// Its number among all, for draws.
    pub(crate) number: u64,
    /// Index of the endpoint.
    pub(crate) endpoint: usize,
    pub(crate) client: End,
    pub(crate) store: End,
    up: Lane,
    down: Lane,
    effects: Effects,
    /// Whether nothing happens to it: the short way.
    plain: bool,
    requests: Requests,
    connected: bool,
    /// Nothing is carried before.
    open_at: u64,
    reset_at: Option<u64>,
    /// Bytes carried since a limit on bytes struck.
    struck: u64,
    /// Set once it was cut: whatever arrives is dropped.
    cut_at: Option<u64>,
    /// Bytes carried that the proxy has not counted yet.
    pub(crate) carried: u64,
}

impl Link {
    pub(crate) fn new(number: u64, endpoint: usize, client: TcpStream, store: TcpStream) -> Self {
        Self {
            number,
            endpoint,
            client: End::new(client),
            store: End::new(store),
            up: Lane::default(),
            down: Lane::default(),
            effects: Effects::default(),
            plain: true,
            requests: Requests::fresh(),
            connected: false,
            open_at: 0,
            reset_at: None,
            struck: 0,
            cut_at: None,
            carried: 0,
        }
    }

    /// Applies the effects of a new connection.
    pub(crate) fn opened(&mut self, effects: Effects, setup: &Setup, now: u64) {
        self.open_at = now + total(&effects.open, setup, self.number);
        self.affect(effects, now);
    }

    /// Changes what happens to it.
    pub(crate) fn affect(&mut self, effects: Effects, now: u64) {
        let limited = |e: &Effects| e.reset_bytes.is_some() || e.cut_bytes.is_some();
        if limited(&effects) && !limited(&self.effects) {
            self.struck = 0;
        }
        self.reset_at = match (effects.reset_ns, self.effects.reset_ns) {
            (Some(_), Some(_)) => self.reset_at,
            (Some(after), None) => Some(now + after),
            (None, _) => None,
        };
        self.plain = effects == Effects::default();
        self.effects = effects;
    }

    /// Resets both sides when its sockets are dropped.
    pub(crate) fn break_off(&self) {
        for end in [&self.client, &self.store] {
            // Fails only for sockets that are gone.
            let _ = rustix::net::sockopt::set_socket_linger(&end.socket, Some(Duration::ZERO));
        }
    }

    /// Carries what can be carried at instant `now`.
    pub(crate) fn serve(&mut self, setup: &Setup, scratch: &mut [u8], now: u64) -> Fate {
        match self.carry(setup, scratch, now) {
            Ok(fate) => fate,
            Err(Broken) => Fate::Reset,
        }
    }

    fn carry(&mut self, setup: &Setup, scratch: &mut [u8], now: u64) -> Result<Fate, Broken> {
        if let Some(at) = self.cut_at {
            return self.drain(at, scratch, now);
        }
        let mut next = self.reset_at.unwrap_or(u64::MAX);
        if next <= now {
            return Ok(Fate::Reset);
        }
        if !self.connected {
            if !self.store.writable {
                return Ok(Fate::Until(next));
            }
            if !matches!(self.store.socket.take_error(), Ok(None)) {
                return Err(Broken);
            }
            self.connected = true;
        }
        if self.open_at > now {
            return Ok(Fate::Until(next.min(self.open_at)));
        }
        for up in [true, false] {
            next = next.min(self.lane(up, setup, scratch, now)?);
            if let Some(at) = self.cut_at {
                return self.drain(at, scratch, now);
            }
            if self
                .effects
                .reset_bytes
                .is_some_and(|most| self.struck >= most)
            {
                return Ok(Fate::Reset);
            }
        }
        match self.up.shut && self.down.shut {
            true => Ok(Fate::Over),
            false => Ok(Fate::Until(next)),
        }
    }

    /// Carries one direction; returns when to come back.
    fn lane(
        &mut self,
        up: bool,
        setup: &Setup,
        scratch: &mut [u8],
        now: u64,
    ) -> Result<u64, Broken> {
        let mut next = u64::MAX;
        loop {
            let effects = if up {
                &self.effects.up
            } else {
                &self.effects.down
            };
            if effects.held {
                return Ok(u64::MAX);
            }
            let shape = Shape {
                rate: effects.rate,
                slice: effects.slice,
            };
            let (lane, from, to) = match up {
                true => (&mut self.up, &mut self.client, &mut self.store),
                false => (&mut self.down, &mut self.store, &mut self.client),
            };
            if !lane.is_empty() {
                let most = self
                    .effects
                    .reset_bytes
                    .into_iter()
                    .chain(self.effects.cut_bytes)
                    .min();
                let budget = most.map_or(u64::MAX, |most| most.saturating_sub(self.struck));
                let (written, again) = lane.flush(to, shape, budget, now)?;
                self.carried += written;
                self.struck += written;
                next = again;
                if self
                    .effects
                    .cut_bytes
                    .is_some_and(|most| self.struck >= most)
                {
                    self.cut(now);
                    return Ok(u64::MAX);
                }
                if most.is_some_and(|most| self.struck >= most) {
                    return Ok(u64::MAX);
                }
            }
            next = next.min(lane.finish(to, now));
            if lane.end_at.is_some() || lane.is_full() {
                return Ok(next);
            }
            let n = match from.read(scratch)? {
                None => return Ok(next),
                Some(0) => {
                    lane.end_at = Some(now + total(&self.effects.close, setup, self.number));
                    continue;
                }
                Some(n) => n,
            };
            let bytes = &scratch[..n];
            lane.chunks += 1;
            if !up {
                self.requests.answered();
            }
            if self.plain && lane.is_empty() && (!up || self.requests.idle()) {
                if up {
                    self.requests.skipped();
                }
                let sent = to.write(bytes)?;
                self.carried += sent as u64;
                lane.push(bytes[sent..].to_vec(), now);
                continue;
            }
            self.queue(up, bytes.to_vec(), setup, now);
        }
    }

    /// Queues bytes that something happens to.
    fn queue(&mut self, up: bool, bytes: Vec<u8>, setup: &Setup, now: u64) {
        let (lane, effects) = match up {
            true => (&mut self.up, &self.effects.up),
            false => (&mut self.down, &self.effects.down),
        };
        // Draws of a chunk depend on its connection, direction and position.
        let n = mix64(self.number ^ mix64(lane.chunks << 1 | u64::from(up)));
        let due = now + total(&effects.delays, setup, n);
        if !up || (self.effects.forged.is_empty() && self.requests.idle()) {
            if up {
                self.requests.skipped();
            }
            lane.push(bytes, due);
            return;
        }
        let forged = &self.effects.forged;
        let mut request = 0u64;
        let decision = self.requests.pass(&bytes, &mut || {
            request += 1;
            let n = mix64(n ^ request);
            let taken = |f: &&crate::effects::Forged| {
                uniform(setup.seed, Purpose::Answer, f.fault, f.round, n) < f.share
            };
            forged.iter().find(taken).map(|f| f.fault)
        });
        lane.push(decision.forward, due);
        for forged in decision.answers {
            if let What::Answer {
                status,
                body,
                retry_after,
            } = &setup.faults[forged.fault].what
            {
                let bytes = answer(*status, body, *retry_after, forged.close, forged.bodiless);
                self.down.push(bytes, now);
            }
            if forged.close {
                self.down.end_at = Some(now);
            }
        }
    }

    /// Closes both sides in order, and drops what still arrives.
    fn cut(&mut self, now: u64) {
        for end in [&self.client, &self.store] {
            // Fails if the other side is gone already.
            let _ = end.socket.shutdown(Shutdown::Write);
        }
        self.cut_at = Some(now);
    }

    /// Drops what arrives on a connection that was cut at `at`, until its client is gone.
    fn drain(&mut self, at: u64, scratch: &mut [u8], now: u64) -> Result<Fate, Broken> {
        while let Some(n) = self.client.read(scratch)? {
            if n == 0 {
                return Ok(Fate::Over);
            }
        }
        match now >= at + CUT_NS {
            true => Ok(Fate::Over),
            false => Ok(Fate::Until(at + CUT_NS)),
        }
    }
}

/// The sum of one draw of each law.
fn total(delays: &[Delay], setup: &Setup, n: u64) -> u64 {
    let draw = |d: &Delay| {
        delay(
            d.law,
            uniform(setup.seed, Purpose::Delay, d.fault, d.round, n),
        )
    };
    delays.iter().map(draw).sum()
}
