//! Active fault rules: deciding which requests each rule hits.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use super::{FaultRule, FaultStats, Kind, Trigger};
use crate::router::Operation;

/// The faults injected before a request is carried out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RequestFaults {
    /// Reset the connection.
    pub(crate) reset: bool,
    /// Answer with this status instead of doing anything.
    pub(crate) status: Option<u16>,
    /// Rate limit of the request's or response's body, in bytes per second.
    pub(crate) rate: Option<u64>,
}

/// The faults injected into an object's body while it is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BodyFaults {
    /// End the connection after this many bytes.
    pub(crate) truncate: Option<u64>,
    /// Invert the bits of the byte at this offset of the body.
    pub(crate) corrupt: Option<u64>,
}

/// A server's fault rules with their counters, shared by its threads.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    rules: Vec<ActiveRule>,
}

#[derive(Debug)]
struct ActiveRule {
    rule: FaultRule,
    /// Makes the random choices of each rule independent.
    salt: u64,
    matched: AtomicU64,
    injected: AtomicU64,
    /// For `full`: bytes accepted. For `stall`: time of the first match plus 1; for `queue`: time of
    /// the last departure; both in nanoseconds since `started`.
    state: AtomicU64,
    started: Instant,
}

impl Faults {
    /// Activates `rules` with zeroed counters.
    pub(crate) fn new(rules: &[FaultRule]) -> Self {
        let started = Instant::now();
        let rules = rules.iter().enumerate().map(|(number, rule)| ActiveRule {
            salt: mix(rule.seed ^ mix(number as u64 + 1)),
            rule: rule.clone(),
            matched: AtomicU64::new(0),
            injected: AtomicU64::new(0),
            state: AtomicU64::new(0),
            started,
        });
        Self {
            rules: rules.collect(),
        }
    }

    /// Whether there are no rules. Servers without faults then skip everything else.
    pub(crate) fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Whether stale reads of `key` need its previous versions.
    pub(crate) fn keeps_history(&self, key: &str) -> bool {
        self.rules
            .iter()
            .any(|a| matches!(a.rule.kind, Kind::Stale(_)) && a.rule.concerns(key))
    }

    /// The longest lag of any listing; `None` if all listings are current.
    pub(crate) fn longest_lag(&self) -> Option<Duration> {
        let kinds = self.rules.iter().map(|active| active.rule.kind);
        kinds.filter_map(stale_list).max()
    }

    fn matching(&self, operation: Operation, key: &str) -> impl Iterator<Item = &ActiveRule> {
        self.rules
            .iter()
            .filter(move |active| active.rule.matches(operation, key))
    }

    /// Decides the faults to inject before a request is carried out.
    pub(crate) fn before(&self, operation: Operation, key: &str) -> RequestFaults {
        let mut before = RequestFaults::default();
        for active in self.matching(operation, key) {
            match active.rule.kind {
                Kind::Reset => before.reset |= active.strikes().is_some(),
                Kind::Status(status) if active.strikes().is_some() => before.status = Some(status),
                Kind::Slow(bytes_per_s) if active.strikes().is_some() => {
                    before.rate = Some(
                        before
                            .rate
                            .map_or(bytes_per_s, |rate| rate.min(bytes_per_s)),
                    );
                }
                _ => {}
            }
        }
        before
    }

    /// Whether an upload of `bytes` still fits; counts it if it does.
    pub(crate) fn has_room(&self, operation: Operation, key: &str, bytes: u64) -> bool {
        let mut fits = true;
        for active in self.matching(operation, key) {
            if let Kind::Full(limit) = active.rule.kind {
                active.matched.fetch_add(1, Relaxed);
                let add = |taken: u64| taken.checked_add(bytes).filter(|sum| *sum <= limit);
                if active.state.fetch_update(Relaxed, Relaxed, add).is_err() {
                    active.injected.fetch_add(1, Relaxed);
                    fits = false;
                }
            }
        }
        fits
    }

    /// Whether a GET of `key` returns the previous version, which was replaced `ago`.
    pub(crate) fn is_stale(&self, operation: Operation, key: &str, ago: Duration) -> bool {
        let stale = |kind| matches!(kind, Kind::Stale(age) if age <= ago).then_some(());
        self.strike(operation, key, stale).is_some()
    }

    /// Whether to acknowledge an upload and then forget it.
    pub(crate) fn loses(&self, operation: Operation, key: &str) -> bool {
        let lost = |kind| (kind == Kind::Lost).then_some(());
        self.strike(operation, key, lost).is_some()
    }

    /// Whether any rule could tear an overwrite of `key`.
    pub(crate) fn may_tear(&self, operation: Operation, key: &str) -> bool {
        self.matching(operation, key)
            .any(|active| active.rule.kind == Kind::Torn)
    }

    /// Whether to tear an overwrite. Counts the request, so call this only if tearing is possible.
    pub(crate) fn tears(&self, operation: Operation, key: &str) -> bool {
        let torn = |kind| (kind == Kind::Torn).then_some(());
        self.strike(operation, key, torn).is_some()
    }

    /// Whether any rule could bring back an object that a delete of `key` removes.
    pub(crate) fn may_resurrect(&self, operation: Operation, key: &str) -> bool {
        self.matching(operation, key)
            .any(|active| matches!(active.rule.kind, Kind::Resurrect(_)))
    }

    /// How long after its delete an object comes back, if it does. Counts the request, so call this
    /// only if there was an object.
    pub(crate) fn resurrects(&self, operation: Operation, key: &str) -> Option<Duration> {
        self.strike(operation, key, |kind| match kind {
            Kind::Resurrect(age) => Some(age),
            _ => None,
        })
    }

    /// How far a page of a listing under `prefix` lags behind, if it does.
    pub(crate) fn lag(&self, operation: Operation, prefix: &str) -> Option<Duration> {
        self.strike(operation, prefix, stale_list)
    }

    /// Counts the request for every matching rule whose kind `wanted` accepts. Returns what `wanted`
    /// gives for the first rule that strikes.
    fn strike<T>(
        &self,
        operation: Operation,
        key: &str,
        wanted: impl Fn(Kind) -> Option<T>,
    ) -> Option<T> {
        let mut first = None;
        for active in self.matching(operation, key) {
            if let Some(found) = wanted(active.rule.kind)
                && active.strikes().is_some()
            {
                first.get_or_insert(found);
            }
        }
        first
    }

    /// Decides the faults in an object body of `len` bytes (at least 1) that is about to be sent.
    pub(crate) fn on_body(&self, operation: Operation, key: &str, len: u64) -> BodyFaults {
        let mut on_body = BodyFaults::default();
        for active in self.matching(operation, key) {
            match active.rule.kind {
                Kind::Truncate if active.strikes().is_some() => on_body.truncate = Some(len / 2),
                Kind::Corrupt => {
                    if let Some(number) = active.strikes() {
                        on_body.corrupt = Some(active.random(number, 1) % len);
                    }
                }
                _ => {}
            }
        }
        on_body
    }

    /// Until when `queue` and `delay` rules, applied in their order, hold back a response that is
    /// ready at `now`.
    pub(crate) fn held_until(&self, operation: Operation, key: &str, now: Instant) -> Instant {
        let mut until = now;
        for active in self.matching(operation, key) {
            let distribution = match active.rule.kind {
                Kind::Delay(distribution) | Kind::Queue(distribution) => distribution,
                _ => continue,
            };
            let Some(number) = active.strikes() else {
                continue;
            };
            let time = distribution.sample(|stream| active.uniform(number, stream));
            until = match active.rule.kind {
                Kind::Queue(_) => active.departure(until, time),
                _ => until + time,
            };
        }
        until
    }

    /// Until when `stall` rules hold back a response that is ready at `now`.
    pub(crate) fn stalled_until(
        &self,
        operation: Operation,
        key: &str,
        now: Instant,
    ) -> Option<Instant> {
        let mut until = None;
        for active in self.matching(operation, key) {
            let Kind::Stall { at, length, period } = active.rule.kind else {
                continue;
            };
            let first = active.origin(now) + at;
            let Some(since) = now.checked_duration_since(first) else {
                continue;
            };
            let passed = period.map_or(0, |period| since.as_nanos() / period.as_nanos());
            let windows = u32::try_from(passed).unwrap_or(u32::MAX);
            let end = first + period.unwrap_or_default() * windows + length;
            if now < end && active.strikes().is_some() {
                until = until.max(Some(end));
            }
        }
        until
    }

    /// Starts the clock of `stall` rules. Call this when a request arrives.
    pub(crate) fn arrived(&self, operation: Operation, key: &str) {
        for active in self.matching(operation, key) {
            if matches!(active.rule.kind, Kind::Stall { .. }) {
                active.origin(Instant::now());
            }
        }
    }

    /// The counters, in the order of the rules.
    pub(crate) fn stats(&self) -> Vec<FaultStats> {
        let stats = |active: &ActiveRule| FaultStats {
            rule: active.rule.text.clone(),
            matched: active.matched.load(Relaxed),
            injected: active.injected.load(Relaxed),
        };
        self.rules.iter().map(stats).collect()
    }
}

impl ActiveRule {
    /// Counts one matching request. Returns its number if the rule strikes it.
    fn strikes(&self) -> Option<u64> {
        let number = self.matched.fetch_add(1, Relaxed);
        let past = number.checked_sub(self.rule.after)?;
        let chosen = match self.rule.trigger {
            Trigger::Always => true,
            Trigger::Every(n) => (past + 1) % n == 0,
            Trigger::Probability(p) => self.uniform(number, 0) < p,
        };
        let below = |n: u64| (n < self.rule.count).then_some(n + 1);
        (chosen && self.injected.fetch_update(Relaxed, Relaxed, below).is_ok()).then_some(number)
    }

    /// Random bits for request `number`; each `stream` is independent.
    fn random(&self, number: u64, stream: u64) -> u64 {
        mix(self.salt ^ mix(number.wrapping_mul(4) + stream))
    }

    /// A number in [0, 1).
    fn uniform(&self, number: u64, stream: u64) -> f64 {
        (self.random(number, stream) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// When a request leaves the queue that arrives at `arrival` and takes `service`.
    fn departure(&self, arrival: Instant, service: Duration) -> Instant {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let arrival = ns(arrival.saturating_duration_since(self.started));
        let leave = |last: u64| last.max(arrival).saturating_add(ns(service));
        let last = self
            .state
            .fetch_update(Relaxed, Relaxed, |last| Some(leave(last)));
        // Both variants carry the previous departure.
        let (Ok(last) | Err(last)) = last;
        self.started + Duration::from_nanos(leave(last))
    }

    /// The instant of the first match, which is `now` if there was none before.
    fn origin(&self, now: Instant) -> Instant {
        let ns = u64::try_from((now - self.started).as_nanos()).unwrap_or(u64::MAX - 1);
        let first = match self.state.compare_exchange(0, ns + 1, Relaxed, Relaxed) {
            Ok(_) => ns,
            Err(first) => first - 1,
        };
        self.started + Duration::from_nanos(first)
    }
}

/// The lag of a stale-list rule.
fn stale_list(kind: Kind) -> Option<Duration> {
    match kind {
        Kind::StaleList(lag) => Some(lag),
        _ => None,
    }
}

/// SplitMix64's output function (Steele, Lea, Flood 2014): a bijection that mixes all bits.
const fn mix(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(rules: &[&str]) -> Faults {
        Faults::new(
            &rules
                .iter()
                .map(|rule| rule.parse().unwrap())
                .collect::<Vec<_>>(),
        )
    }

    #[test]
    fn counts_are_exact() {
        let f = faults(&[
            "corrupt,every=100,count=7",
            "status=503,every=10,after=5,op=put",
            "reset,prob=0.25",
        ]);
        let mut corrupt = 0;
        for _ in 0..1000 {
            corrupt += usize::from(
                f.on_body(Operation::Get, "k", 10)
                    .corrupt
                    .is_some_and(|at| at < 10),
            );
        }
        assert_eq!(corrupt, 7);
        let statuses: Vec<_> = (1..=40)
            .filter(|_| f.before(Operation::Put, "k").status == Some(503))
            .collect();
        assert_eq!(statuses, [15, 25, 35]);
        let resets = (0..10_000)
            .filter(|_| f.before(Operation::Head, "k").reset)
            .count();
        // Four standard errors of a binomial count.
        assert!((2500 - 174..2500 + 174).contains(&resets), "{resets}");
        let stats = f.stats();
        assert_eq!((stats[0].matched, stats[0].injected), (1000, 7));
        assert_eq!((stats[1].matched, stats[1].injected), (40, 3));
    }

    #[test]
    fn filters_select_operations_and_keys() {
        let f = faults(&["status=500,op=get+head,prefix=a/"]);
        assert_eq!(f.before(Operation::Get, "a/x").status, Some(500));
        assert_eq!(f.before(Operation::Head, "a/x").status, Some(500));
        assert_eq!(f.before(Operation::Get, "b/x").status, None);
        assert_eq!(f.before(Operation::Put, "a/x").status, None);
        assert_eq!(f.stats()[0].matched, 2);
    }

    /// How long delay and queue rules hold back a response that is ready now.
    fn delay(f: &Faults) -> Duration {
        let now = Instant::now();
        f.held_until(Operation::Get, "k", now) - now
    }

    #[test]
    fn contains_filters_by_a_part_of_the_key() {
        let f = faults(&["lost,prefix=a/,contains=/x/"]);
        let struck = ["a/x/1", "a/y/1", "b/x/1"].map(|key| f.loses(Operation::Put, key));
        assert_eq!(struck, [true, false, false]);
    }

    #[test]
    fn choices_repeat_with_the_seed() {
        let run = |rule: &str| {
            let f = faults(&[rule]);
            (0..200).map(|_| delay(&f)).collect::<Vec<_>>()
        };
        let rule = "delay,dist=exp(mean=5ms),seed=1";
        assert_eq!(run(rule), run(rule));
        assert_ne!(run(rule), run("delay,dist=exp(mean=5ms),seed=2"));
    }

    #[test]
    fn delays_have_their_means() {
        let n = 20_000;
        for (rule, mean, sd) in [
            ("delay,dist=lognormal(mean=5ms,cv=1)", 5e-3, 5e-3),
            ("delay,dist=exp(mean=2ms)", 2e-3, 2e-3),
            (
                "delay,dist=uniform(min=1ms,max=3ms)",
                2e-3,
                2e-3 / 12f64.sqrt(),
            ),
            ("delay,ms=10", 10e-3, 0.0),
            // Variance of a two-point distribution: share (1 - share) (high - low)^2.
            (
                "delay,dist=bimodal(low=2ms,high=50ms,share=0.1)",
                6.8e-3,
                0.3 * 48e-3,
            ),
            (
                "delay,dist=bimodal(low=2ms,high=50ms,share=0.1,cv=0.2)",
                6.8e-3,
                0.31 * 48e-3,
            ),
        ] {
            let f = faults(&[rule]);
            let sum: f64 = (0..n).map(|_| delay(&f).as_secs_f64()).sum();
            let error = (sum / f64::from(n) - mean).abs();
            // Four standard errors; durations are truncated to nanoseconds.
            assert!(
                error <= 4.0 * sd / f64::from(n).sqrt() + 1e-9,
                "{rule}: {error}"
            );
        }
    }

    #[test]
    fn stalls_count_from_the_first_match() {
        let f = faults(&["stall,at=10s,for=1s,op=get"]);
        let start = Instant::now() + Duration::from_secs(100);
        let at = |ms| start + Duration::from_millis(ms);
        assert_eq!(f.stalled_until(Operation::Put, "k", at(10_500)), None);
        assert_eq!(f.stalled_until(Operation::Get, "k", at(0)), None);
        assert_eq!(f.stalled_until(Operation::Get, "k", at(9_999)), None);
        assert_eq!(
            f.stalled_until(Operation::Get, "k", at(10_000)),
            Some(at(11_000))
        );
        assert_eq!(
            f.stalled_until(Operation::Get, "k", at(10_900)),
            Some(at(11_000))
        );
        assert_eq!(f.stalled_until(Operation::Get, "k", at(11_000)), None);
        assert_eq!(f.stats()[0].injected, 2);
    }

    #[test]
    fn stalls_may_repeat() {
        let f = faults(&["stall,at=10s,for=1s,period=5s"]);
        let start = Instant::now() + Duration::from_secs(100);
        let at = |ms| start + Duration::from_millis(ms);
        let until = |ms| f.stalled_until(Operation::Get, "k", at(ms));
        assert_eq!((until(0), until(9_999)), (None, None));
        assert_eq!(until(10_500), Some(at(11_000)));
        assert_eq!((until(11_000), until(14_999)), (None, None));
        assert_eq!(until(15_000), Some(at(16_000)));
        assert_eq!((until(16_000), until(25_999)), (None, Some(at(26_000))));
    }

    #[test]
    fn queues_serve_one_request_at_a_time() {
        let start = Instant::now() + Duration::from_secs(100);
        let at = |ms| start + Duration::from_millis(ms);
        let f = faults(&["queue,rate=100/s,service=const,op=get"]);
        let until = |ms| f.held_until(Operation::Get, "k", at(ms));
        // 10 ms each: the first three arrive together, the fourth after they have left.
        assert_eq!([until(0), until(0), until(5)], [at(10), at(20), at(30)]);
        assert_eq!((until(100), until(101)), (at(110), at(120)));
        assert_eq!(f.held_until(Operation::Put, "k", at(101)), at(101));
        assert_eq!(f.stats()[0].injected, 5);
    }

    #[test]
    fn a_queue_under_poisson_arrivals_is_mm1_or_md1() {
        // The mean response times of the theory: 1/(mu-lambda) and D + rho D/(2 (1-rho)).
        let (n, lambda, mu) = (200_000u64, 80.0, 100.0);
        for (rule, mean) in [
            ("queue,rate=100/s", 1.0 / 20.0),
            ("queue,rate=100/s,service=const", 0.01 + 0.8 * 0.01 / 0.4),
        ] {
            let f = faults(&[rule]);
            let start = Instant::now();
            let (mut now, mut sum) = (0.0, 0.0);
            for i in 0..n {
                let u = (mix(mix(i)) >> 11) as f64 / (1u64 << 53) as f64;
                now += -(1.0 - u).ln() / lambda;
                let arrival = start + Duration::from_secs_f64(now);
                sum += (f.held_until(Operation::Get, "k", arrival) - arrival).as_secs_f64();
            }
            let error = sum / n as f64 / mean - 1.0;
            // Responses are correlated over about 2/(1-rho)^2 = 50 arrivals. That leaves 4000
            // independent ones of relative deviation 1; the bound is four standard errors.
            assert!(
                error.abs() < 4.0 / 4000f64.sqrt(),
                "{rule}: {error} of {mu}"
            );
        }
    }

    #[test]
    fn a_full_store_accepts_what_fits() {
        let f = faults(&["full,after=100"]);
        assert!(f.has_room(Operation::Put, "k", 60));
        assert!(!f.has_room(Operation::Put, "k", 41));
        assert!(f.has_room(Operation::Put, "k", 40));
        assert!(!f.has_room(Operation::Put, "k", 1));
        assert_eq!(
            f.stats()[0],
            FaultStats {
                rule: "full,after=100".into(),
                matched: 4,
                injected: 2
            }
        );
    }
}
