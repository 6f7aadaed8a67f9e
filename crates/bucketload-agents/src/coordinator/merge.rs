//! Merges the intervals of all agents as they arrive.
//!
//! ```text
//!  agent 0: 0 1 2 3        each message is added to the tally of its index and dropped;
//!  agent 1: 0 1            an interval is reported once every agent that still owes it has
//!  agent 2: 0 1 2          delivered it
//! ```
//!
//! Agents merge their own load threads first, so memory and work depend on the histograms' buckets and,
//! linearly, on the number of agents, never on the length of the run. If an agent delivers nothing, later
//! intervals of the others are merged into one.
//!
//! Machine counters are cumulative, and each agent has its own. Reported values come from their increments:
//! the sum where values add up (CPU time of the clients), the busiest machine's where they do not
//! (utilisation), so one saturated host among many is not averaged away.

use std::collections::VecDeque;

use bucketload_core::agent::{AgentTotals, LastInterval};
use bucketload_core::tally::{Gauges, Interval, Tally};

use crate::tally::{self, Head, shifted};
use crate::varint::Reader;

/// Maximum number of intervals kept apart while waiting for the slowest agent.
pub(crate) const INTERVALS_AHEAD: usize = 16;

/// An interval that not all agents have delivered yet.
#[derive(Default)]
struct Pending {
    tally: Tally,
    /// Increments and levels of all agents: the sum, or the worst where a sum means nothing.
    gauges: Gauges,
    /// Increments of the machine that was busiest.
    busiest: Gauges,
    end_ns: u64,
}

/// How far an agent has delivered, and its latest readings.
struct AgentProgress {
    /// Index of the next interval; `u64::MAX` when it owes none.
    owed: u64,
    /// Its clock minus ours in this phase, nanoseconds.
    offset_ns: i64,
    /// Its latest readings, the base of increments; `None` before the first.
    last: Option<Gauges>,
}

/// The agents' intervals of a run, one phase at a time.
pub(crate) struct Merger {
    phase: u16,
    start_ns: u64,
    interval_ns: u64,
    base: u64,
    pending: VecDeque<Pending>,
    pool: Vec<Pending>,
    sources: Vec<AgentProgress>,
    /// Readings in the last report: the sum of all increments.
    reported: Gauges,
    /// Sums of the current phase.
    pub(crate) totals: AgentTotals,
}

impl Merger {
    pub(crate) fn new(agents: usize, interval_ns: u64) -> Self {
        let agent_progress = || AgentProgress {
            owed: u64::MAX,
            offset_ns: 0,
            last: None,
        };
        Self {
            phase: 0,
            start_ns: 0,
            interval_ns: interval_ns.max(1),
            base: 0,
            pending: VecDeque::new(),
            pool: Vec::new(),
            sources: std::iter::repeat_with(agent_progress)
                .take(agents)
                .collect(),
            reported: Gauges::default(),
            totals: AgentTotals::default(),
        }
    }

    /// Begins phase `phase` at `start_ns` on all agents with a clock offset.
    pub(crate) fn begin(&mut self, phase: u16, start_ns: u64, offsets: &[Option<i64>]) {
        self.phase = phase;
        self.start_ns = start_ns;
        self.base = 0;
        self.totals = AgentTotals::default();
        // A reused tally keeps its cells; those of an earlier phase would show as idle.
        self.pending.clear();
        self.pool.clear();
        for (agent_progress, offset) in self.sources.iter_mut().zip(offsets) {
            agent_progress.owed = offset.map_or(u64::MAX, |_| 0);
            agent_progress.offset_ns = offset.unwrap_or(0);
        }
    }

    /// Adds an interval of `agent`; `None` if it is damaged or not part of the phase.
    pub(crate) fn add(
        &mut self,
        agent: usize,
        bytes: &[u8],
    ) -> Option<(LastInterval, AgentTotals)> {
        let mut reader = Reader(bytes);
        let head = tally::head(&mut reader)?;
        let agent_progress = self.sources.get_mut(agent)?;
        if head.phase != self.phase
            || agent_progress.owed == u64::MAX
            || head.index < agent_progress.owed
        {
            return None;
        }
        let at = usize::try_from(head.index.saturating_sub(self.base)).unwrap_or(usize::MAX);
        let at = at.min(INTERVALS_AHEAD - 1);
        while self.pending.len() <= at {
            self.pending.push_back(self.pool.pop().unwrap_or_default());
        }
        let pending = &mut self.pending[at];
        let sums = tally::add(&mut reader, &mut pending.tally)?;
        agent_progress.owed = head.index + 1;
        let end_ns = shifted(head.end_ns, agent_progress.offset_ns);
        pending.end_ns = pending.end_ns.max(end_ns);
        read_gauges(pending, agent_progress, &head);
        self.totals.add(&sums);
        let last = LastInterval {
            phase: head.phase,
            index: head.index,
            end_ns,
        };
        Some((last, sums))
    }

    /// Marks that the agent owes no more intervals in this phase: it has finished or is lost.
    pub(crate) fn done(&mut self, agent: usize) {
        if let Some(agent_progress) = self.sources.get_mut(agent) {
            agent_progress.owed = u64::MAX;
        }
    }

    /// The index that `agent` owes next; `None` when it owes nothing.
    pub(crate) fn owed(&self, agent: usize) -> Option<u64> {
        let owed = self.sources.get(agent)?.owed;
        (owed != u64::MAX).then_some(owed)
    }

    /// Passes every interval that all agents have delivered to `out`.
    pub(crate) fn emit(&mut self, mut out: impl FnMut(&Interval)) {
        while self
            .sources
            .iter()
            .all(|agent_progress| agent_progress.owed > self.base)
            && let Some(mut pending) = self.pending.pop_front()
        {
            let index = self.base;
            self.base += 1;
            let start_ns = self.start_ns + index * self.interval_ns;
            let full_ns = start_ns + self.interval_ns;
            // Only the last interval is shorter; the others end as planned, whatever the agents' clocks say.
            let all_done = self
                .sources
                .iter()
                .all(|agent_progress| agent_progress.owed == u64::MAX);
            let is_last = all_done && self.pending.is_empty();
            let end_ns = match is_last {
                true => pending.end_ns.clamp(start_ns + 1, full_ns),
                false => full_ns,
            };
            self.advance(&pending);
            let interval = Interval {
                phase: self.phase,
                index,
                start_ns,
                end_ns,
                tally: std::mem::take(&mut pending.tally),
                gauges: self.reported,
            };
            out(&interval);
            pending.tally = interval.tally;
            self.recycle(pending);
        }
    }

    /// Adds the increments of an interval to the reported readings.
    fn advance(&mut self, pending: &Pending) {
        let (reported, now, busiest) = (&mut self.reported, &pending.gauges, &pending.busiest);
        reported.in_flight = now.in_flight;
        reported.backlog_ns = now.backlog_ns;
        reported.sessions = now.sessions;
        reported.jobs = now.jobs;
        reported.rss_bytes = now.rss_bytes;
        reported.load_cpu_ns += now.load_cpu_ns;
        reported.process_cpu_ns += now.process_cpu_ns;
        reported.busiest_thread_cpu_ns += now.busiest_thread_cpu_ns;
        reported.wall_offset_ns += now.wall_offset_ns;
        reported.machine_busy_ns += busiest.machine_busy_ns;
        reported.machine_total_ns += busiest.machine_total_ns;
        reported.machine_softirq_ns += busiest.machine_softirq_ns;
        reported.machine_steal_ns += now.machine_steal_ns;
        reported.nic_rx_bytes += now.nic_rx_bytes;
        reported.nic_tx_bytes += now.nic_tx_bytes;
    }

    fn recycle(&mut self, mut pending: Pending) {
        pending.tally.clear();
        pending.gauges = Gauges::default();
        pending.busiest = Gauges::default();
        pending.end_ns = 0;
        self.pool.push(pending);
    }
}

/// Adds an agent's readings to those of an interval.
fn read_gauges(pending: &mut Pending, agent_progress: &mut AgentProgress, head: &Head) {
    let now = head.gauges;
    // Without an earlier reading, the run's counters began at 0; clock offset and network counters start here.
    let last = agent_progress.last.replace(now).unwrap_or(Gauges {
        wall_offset_ns: now.wall_offset_ns,
        nic_rx_bytes: now.nic_rx_bytes,
        nic_tx_bytes: now.nic_tx_bytes,
        ..Gauges::default()
    });
    let by = |pick: fn(&Gauges) -> u64| pick(&now).saturating_sub(pick(&last));
    let all = &mut pending.gauges;
    all.in_flight += now.in_flight;
    all.sessions += now.sessions;
    all.jobs += now.jobs;
    all.backlog_ns = all.backlog_ns.max(now.backlog_ns);
    all.rss_bytes = all.rss_bytes.max(now.rss_bytes);
    all.load_cpu_ns += by(|g| g.load_cpu_ns);
    all.process_cpu_ns += by(|g| g.process_cpu_ns);
    let thread = by(|g| g.busiest_thread_cpu_ns);
    all.busiest_thread_cpu_ns = all.busiest_thread_cpu_ns.max(thread);
    let step = now.wall_offset_ns.saturating_sub(last.wall_offset_ns);
    if step.unsigned_abs() > all.wall_offset_ns.unsigned_abs() {
        all.wall_offset_ns = step;
    }
    let (rx, tx) = (by(|g| g.nic_rx_bytes), by(|g| g.nic_tx_bytes));
    if rx + tx > all.nic_rx_bytes + all.nic_tx_bytes {
        (all.nic_rx_bytes, all.nic_tx_bytes) = (rx, tx);
    }
    all.machine_steal_ns = all.machine_steal_ns.max(by(|g| g.machine_steal_ns));
    let machine = Gauges {
        machine_busy_ns: by(|g| g.machine_busy_ns),
        machine_total_ns: by(|g| g.machine_total_ns),
        machine_softirq_ns: by(|g| g.machine_softirq_ns),
        ..Gauges::default()
    };
    // Compares shares by cross multiplication; a machine without readings has no share.
    let share =
        |a: &Gauges, b: &Gauges| u128::from(a.machine_busy_ns) * u128::from(b.machine_total_ns);
    if pending.busiest.machine_total_ns == 0
        || share(&machine, &pending.busiest) > share(&pending.busiest, &machine)
    {
        pending.busiest = machine;
    }
}

#[cfg(test)]
mod tests {
    use bucketload_core::op::OpClass;
    use bucketload_core::tally::{Gauges, Interval, Tally};

    use super::{INTERVALS_AHEAD, Merger};

    const SECOND: u64 = 1_000_000_000;

    fn message(phase: u16, index: u64, ops: u64, gauges: Gauges) -> Vec<u8> {
        let mut tally = Tally::new();
        tally.offered = ops;
        let cell = tally.cell_mut(0, OpClass::Get);
        for n in 0..ops {
            cell.ok += 1;
            cell.response.record(1_000 * (n + 1));
        }
        let interval = Interval {
            phase,
            index,
            // The agent's clock is 3 s ahead.
            start_ns: (8 + index) * SECOND,
            end_ns: (9 + index) * SECOND - 1,
            tally,
            gauges,
        };
        let mut out = Vec::new();
        crate::tally::encode(&interval, &mut out);
        out
    }

    fn reported(merger: &mut Merger) -> Vec<Interval> {
        let mut out = Vec::new();
        merger.emit(|interval| out.push(interval.clone()));
        out
    }

    fn merger(agents: usize) -> Merger {
        let mut merger = Merger::new(agents, SECOND);
        merger.begin(2, 5 * SECOND, &vec![Some(3 * SECOND as i64); agents]);
        merger
    }

    #[test]
    fn an_interval_waits_for_all_agents_and_sums_them() {
        let mut m = merger(2);
        let none = Gauges::default();
        assert!(m.add(0, &message(2, 0, 3, none)).is_some());
        assert!(reported(&mut m).is_empty());
        let (last, sums) = m.add(1, &message(2, 0, 4, none)).unwrap();
        assert_eq!((last.index, last.end_ns), (0, 6 * SECOND - 1));
        assert_eq!((sums.offered, sums.ok), (4, 4));
        let first = &reported(&mut m)[0];
        assert_eq!((first.start_ns, first.end_ns), (5 * SECOND, 6 * SECOND));
        assert_eq!((first.tally.offered, first.tally.ok()), (7, 7));
        let cell = &first.tally.cells[0];
        assert_eq!(cell.response.count(), 7);
        assert_eq!(cell.response.max_ns(), 4_000);
        // Agent 1 is lost; the rest of agent 0 is reported, with its own end.
        m.done(1);
        m.add(0, &message(2, 1, 1, none)).unwrap();
        m.done(0);
        let rest = reported(&mut m);
        assert_eq!((rest.len(), rest[0].end_ns), (1, 7 * SECOND - 1));
        assert_eq!(m.totals.ok, 8, "the run's total is the sum of the agents");
    }

    #[test]
    fn operations_of_one_phase_do_not_show_in_the_next() {
        let mut m = merger(1);
        m.add(0, &message(2, 0, 3, Gauges::default())).unwrap();
        assert_eq!(reported(&mut m)[0].tally.cells.len(), 1);
        let mut other = Tally::new();
        other.cell_mut(5, OpClass::Put).ok = 1;
        let interval = Interval {
            phase: 4,
            index: 0,
            start_ns: 0,
            end_ns: SECOND,
            tally: other,
            gauges: Gauges::default(),
        };
        let mut out = Vec::new();
        crate::tally::encode(&interval, &mut out);
        m.begin(4, 11 * SECOND, &[Some(0)]);
        m.add(0, &out).unwrap();
        let cells: Vec<_> = reported(&mut m)[0]
            .tally
            .cells
            .iter()
            .map(|c| (c.work, c.class))
            .collect();
        assert_eq!(cells, [(5, OpClass::Put)]);
    }

    #[test]
    fn unexpected_intervals_are_refused() {
        let mut m = merger(1);
        let none = Gauges::default();
        assert!(m.add(0, &message(1, 0, 1, none)).is_none(), "another phase");
        assert!(m.add(1, &message(2, 0, 1, none)).is_none(), "no such agent");
        assert!(m.add(0, &message(2, 0, 1, none)).is_some());
        assert!(m.add(0, &message(2, 0, 1, none)).is_none(), "twice");
        assert!(m.add(0, &message(2, 1, 1, none)[..9]).is_none(), "cut off");
        m.done(0);
        assert!(
            m.add(0, &message(2, 1, 1, none)).is_none(),
            "after the agent's end"
        );
    }

    #[test]
    fn behind_a_silent_agent_memory_is_bounded_and_nothing_is_lost() {
        let mut m = merger(2);
        for index in 0..200 {
            m.add(0, &message(2, index, 1, Gauges::default())).unwrap();
        }
        assert_eq!(m.pending.len(), INTERVALS_AHEAD);
        assert_eq!((m.owed(0), m.owed(1)), (Some(200), Some(0)));
        assert!(reported(&mut m).is_empty());
        m.done(0);
        m.done(1);
        let reported = reported(&mut m);
        assert_eq!(reported.iter().map(|i| i.tally.offered).sum::<u64>(), 200);
    }

    /// CPU time of this thread for merging three intervals of `agents` agents with 8 classes.
    fn cost(agents: usize) -> f64 {
        let interval = crate::simulate::interval();
        let messages: Vec<Vec<u8>> = (0..3)
            .map(|index| {
                let mut out = Vec::new();
                let at = Interval {
                    phase: 2,
                    index,
                    ..interval.clone()
                };
                crate::tally::encode(&at, &mut out);
                out
            })
            .collect();
        let mut m = merger(agents);
        let cpu = || {
            let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
            now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
        };
        let begun = cpu();
        for message in &messages {
            for agent in 0..agents {
                m.add(agent, message).unwrap();
            }
            assert_eq!(reported(&mut m).len(), 1);
        }
        cpu() - begun
    }

    #[test]
    fn the_cost_of_merging_is_linear_in_the_number_of_agents() {
        cost(20);
        // The minimum of alternating measurements, since noise only adds. A quadratic merge would cost 16 times.
        let (mut some, mut more) = (f64::MAX, f64::MAX);
        for _ in 0..8 {
            some = some.min(cost(60));
            more = more.min(cost(240));
        }
        let ratio = more / some;
        assert!(ratio < 8.0, "four times the agents cost {ratio:.2} times");
    }

    #[test]
    fn one_saturated_host_is_not_averaged_away() {
        let mut m = merger(2);
        let at = |busy: u64, total: u64, cpu: u64, thread: u64| Gauges {
            machine_busy_ns: busy,
            machine_total_ns: total,
            process_cpu_ns: cpu,
            busiest_thread_cpu_ns: thread,
            in_flight: 2,
            ..Gauges::default()
        };
        m.add(0, &message(2, 0, 1, at(100, 1_000, 30, 9))).unwrap();
        m.add(1, &message(2, 0, 1, at(900, 1_000, 40, 8))).unwrap();
        let first = reported(&mut m).remove(0).gauges;
        assert_eq!(
            (first.machine_busy_ns, first.machine_total_ns),
            (900, 1_000)
        );
        assert_eq!((first.process_cpu_ns, first.busiest_thread_cpu_ns), (70, 9));
        assert_eq!(first.in_flight, 4);
        // Equal totals, but the other agent's increment is larger.
        m.add(0, &message(2, 1, 1, at(1_000, 2_000, 60, 10)))
            .unwrap();
        m.add(1, &message(2, 1, 1, at(1_000, 2_000, 80, 19)))
            .unwrap();
        let second = reported(&mut m).remove(0).gauges;
        assert_eq!(second.machine_busy_ns - first.machine_busy_ns, 900);
        assert_eq!(second.process_cpu_ns, 140);
        assert_eq!(second.busiest_thread_cpu_ns, 9 + 11);
    }
}
