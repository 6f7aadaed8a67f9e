//! Jobs on one thread: arrivals, stages, deletions (docs/spec/scenarios.md section 4.1).
//!
//! ```text
//!  arrivals (this thread's jobs) ─▶ begin ─▶ flow of stage 0 ─ last end ─▶ flow of stage 1 … ─▶ done
//!                                              └▶ flow of deletions (nobody waits for it)
//!  arrivals, `retain` jobs later ───────────▶ flow that deletes the job's results
//!  flows ─▶ queue by due instant ─▶ take
//! ```
//!
//! A job's number decides on which thread it runs, so barriers between stages are local, and the operations do not
//! depend on the number of threads. The thread that wrote a job's results deletes them when a later job arrives,
//! perhaps on another thread; every thread can compute that arrival. Memory grows with the jobs under way. Their
//! number is bounded, and a job beyond the bound waits.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use bucketload_core::error::ErrorKind;
use bucketload_core::generate::arrivals::{Arrival, Arrivals, Schedule, Shard as Part};
use bucketload_core::generate::jobs::JobGen;
use bucketload_core::op::Op;
use bucketload_core::plan::{JobStart, JobsPlan};
use bucketload_core::record::Outcome;

use super::stage::{Flow, Kind, NOBODY};
use super::{Next, Offer};
use crate::due::{DueOp, OpEnd};
use crate::shard::Shard;

/// A job under way.
#[derive(Clone, Copy, Debug)]
struct Job {
    number: u64,
    /// Its arrival, nanoseconds since the epoch.
    arrived_ns: u64,
    failed: bool,
    /// When its results became old, if that was before its end; else 0.
    retire_ns: u64,
}

/// Where jobs come from.
#[expect(
    clippy::large_enum_variant,
    reason = "there is one per work and thread"
)]
enum Begin {
    /// Jobs arrive by a schedule.
    Open {
        /// The next arrival of a job of this thread.
        jobs: Walk,
        /// The next arrival that makes results of this thread old.
        retire: Walk,
        /// The next arrival of this thread that is not counted in `arrived`.
        counted: Walk,
        arrived: u64,
    },
    /// A job begins when its predecessor ends.
    Closed {
        /// Instant and number of the jobs that may begin.
        ready: VecDeque<(u64, u64)>,
        /// Jobs at a time, over all threads and agents.
        of: u64,
    },
}

/// A walk over a share of the arrivals of jobs.
struct Walk {
    arrivals: Arrivals,
    head: Option<Arrival>,
    limit: u64,
}

impl Walk {
    fn new(schedule: &Schedule, part: Part, from: u64, limit: u64) -> Self {
        let mut walk = Self {
            arrivals: schedule.shard(part),
            head: None,
            limit,
        };
        walk.step();
        while walk.head.is_some_and(|arrival| arrival.seq < from) {
            walk.step();
        }
        walk
    }

    fn step(&mut self) {
        self.head = self.arrivals.next().filter(|a| a.seq < self.limit);
    }
}

/// The jobs of one work on one thread.
pub(crate) struct Jobs {
    work: u16,
    plan: JobsPlan,
    ops: JobGen,
    begin: Begin,
    start_ns: u64,
    /// Most jobs at a time on this thread.
    cap: usize,
    /// Whether a job waits because the cap is reached.
    waiting: bool,
    /// Latest end of a job, which made room for another.
    freed_ns: u64,
    slots: Vec<Option<Job>>,
    free_slots: Vec<u32>,
    running: usize,
    begun: u64,
    ended: u64,
    /// Number of the latest job that has begun.
    latest: Option<u64>,
    flows: Vec<Flow>,
    free_flows: Vec<u32>,
    live: usize,
    queue: BinaryHeap<Reverse<(u64, u32)>>,
}

impl Jobs {
    /// The jobs of share `index` of `of`. Open works have a `schedule`.
    pub(crate) fn new(
        work: u16,
        plan: &JobsPlan,
        ops: &JobGen,
        schedule: Option<&Schedule>,
        (index, of): (u32, u32),
    ) -> Self {
        let limit = match plan.limit {
            0 => u64::MAX,
            limit => limit,
        };
        let begin = match (&plan.start, schedule) {
            (JobStart::Open { .. }, Some(schedule)) => {
                let retain = u64::from(plan.retain);
                let part = Part { index, of };
                // The share of the jobs whose arrivals make this thread's results old.
                let older = Part {
                    index: ((u64::from(index) + retain) % u64::from(of)) as u32,
                    of,
                };
                let none = if retain == 0 { 0 } else { limit };
                Begin::Open {
                    jobs: Walk::new(schedule, part, 0, limit),
                    retire: Walk::new(schedule, older, retain, none),
                    counted: Walk::new(schedule, part, 0, limit),
                    arrived: 0,
                }
            }
            (JobStart::Closed { jobs }, _) => Begin::Closed {
                ready: (u64::from(index)..u64::from(*jobs).min(limit))
                    .step_by(of as usize)
                    .map(|job| (0, job))
                    .collect(),
                of: u64::from(*jobs),
            },
            (JobStart::Open { .. }, None) => unreachable!("an open work has a schedule"),
        };
        let cap = plan.max_jobs / of + u32::from(index < plan.max_jobs % of);
        Self {
            work,
            plan: plan.clone(),
            ops: ops.clone(),
            begin,
            start_ns: 0,
            cap: cap.max(1) as usize,
            waiting: false,
            freed_ns: 0,
            slots: Vec::new(),
            free_slots: Vec::new(),
            running: 0,
            begun: 0,
            ended: 0,
            latest: None,
            flows: Vec::new(),
            free_flows: Vec::new(),
            live: 0,
            queue: BinaryHeap::new(),
        }
    }

    pub(super) fn start(&mut self, start_ns: u64) {
        self.start_ns = start_ns;
        if let Begin::Closed { ready, .. } = &mut self.begin {
            ready.iter_mut().for_each(|job| job.0 = start_ns);
        }
    }

    /// When the next job begins or the next results become old, if that is before `cutoff_ns`.
    fn next_event(&self, cutoff_ns: u64) -> Option<u64> {
        let absolute = |arrival: &Arrival| self.start_ns.saturating_add(arrival.due_ns);
        let (begin, retire) = match &self.begin {
            Begin::Open { jobs, retire, .. } => {
                let older = retire.head.as_ref().filter(|a| self.has_begun(a.seq));
                (jobs.head.as_ref().map(absolute), older.map(absolute))
            }
            Begin::Closed { ready, .. } => (ready.front().map(|job| job.0), None),
        };
        let begin = begin.filter(|_| self.running < self.cap);
        let all = [begin, retire].into_iter().flatten();
        all.filter(|&at| at < cutoff_ns).min()
    }

    /// Whether the job whose results become old at the arrival of job `later` has begun.
    fn has_begun(&self, later: u64) -> bool {
        let old = later - u64::from(self.plan.retain);
        self.latest.is_some_and(|latest| old <= latest)
    }

    /// Whether more jobs may begin.
    fn is_expecting(&self) -> bool {
        match &self.begin {
            Begin::Open { jobs, retire, .. } => jobs.head.is_some() || retire.head.is_some(),
            Begin::Closed { ready, .. } => !ready.is_empty(),
        }
    }

    /// Due instant of the next operation.
    pub(super) fn head_ns(&self) -> Option<u64> {
        self.queue.peek().map(|first| first.0.0)
    }

    pub(super) fn next(&self, cutoff_ns: u64) -> Next {
        match self
            .head_ns()
            .into_iter()
            .chain(self.next_event(cutoff_ns))
            .min()
        {
            Some(at) => Next::At(at),
            None if self.running > 0 || self.live > 0 => Next::Later,
            None if self.is_expecting() => Next::At(cutoff_ns),
            None => Next::Over,
        }
    }

    pub(super) fn take(&mut self, now_ns: u64, shard: &Shard) -> Offer {
        self.begin_due(now_ns, shard);
        let Some(&Reverse((due_ns, flow))) = self.queue.peek() else {
            return Offer::Nothing;
        };
        if due_ns > now_ns {
            return Offer::Nothing;
        }
        self.queue.pop();
        let (op, uncounted) = self.flows[flow as usize].take(&self.ops);
        self.enqueue(flow);
        Offer::Perform(DueOp {
            feed_tag: flow,
            uncounted,
            ..DueOp::new(op, due_ns, now_ns)
        })
    }

    /// Begins the jobs and the deletions of results that are due at `now_ns`.
    fn begin_due(&mut self, now_ns: u64, shard: &Shard) {
        let cutoff_ns = shard.cutoff_ns.get();
        let start_ns = self.start_ns;
        loop {
            let due = |walk: &Walk| {
                let head = walk.head?;
                let at = start_ns.saturating_add(head.due_ns);
                (at <= now_ns && at < cutoff_ns).then_some((at, head.seq))
            };
            let retain = u64::from(self.plan.retain);
            let (begin, retire) = match &self.begin {
                Begin::Open { jobs, retire, .. } => (due(jobs), due(retire)),
                Begin::Closed { ready, .. } => {
                    let front = ready.front().copied();
                    (
                        front.filter(|job| job.0 <= now_ns && job.0 < cutoff_ns),
                        None,
                    )
                }
            };
            if let Some((at, later)) = retire.filter(|&(_, later)| self.has_begun(later)) {
                if let Begin::Open { retire, .. } = &mut self.begin {
                    retire.step();
                }
                self.retire(later - retain, at);
            } else if let Some((at, number)) = begin {
                if self.running >= self.cap {
                    self.waiting = true;
                    break;
                }
                match &mut self.begin {
                    Begin::Open { jobs, .. } => jobs.step(),
                    Begin::Closed { ready, .. } => drop(ready.pop_front()),
                }
                self.begin_job(number, at, shard);
            } else {
                break;
            }
        }
        if now_ns >= cutoff_ns {
            let after = |a: &Arrival| start_ns.saturating_add(a.due_ns) >= cutoff_ns;
            match &mut self.begin {
                Begin::Open { jobs, retire, .. } => {
                    for walk in [jobs, retire] {
                        walk.head = walk.head.filter(|a| !after(a));
                    }
                }
                Begin::Closed { ready, .. } => ready.retain(|job| job.0 < cutoff_ns),
            }
        }
    }

    fn begin_job(&mut self, number: u64, arrived_ns: u64, shard: &Shard) {
        let delayed = std::mem::take(&mut self.waiting);
        let ready_ns = if delayed {
            arrived_ns.max(self.freed_ns)
        } else {
            arrived_ns
        };
        {
            let mut tally = shard.recorder.tally();
            tally.jobs.begun += 1;
            tally.jobs.delayed += u64::from(delayed);
            tally.capped += u64::from(delayed);
        }
        self.begun += 1;
        self.running += 1;
        self.latest = Some(self.latest.map_or(number, |latest| latest.max(number)));
        let job = Job {
            number,
            arrived_ns,
            failed: false,
            retire_ns: 0,
        };
        let slot = match self.free_slots.pop() {
            Some(slot) => slot,
            None => {
                self.slots.push(None);
                (self.slots.len() - 1) as u32
            }
        };
        self.slots[slot as usize] = Some(job);
        if let Begin::Closed { of, .. } = &self.begin {
            // The job that many numbers ago has ended: `of` chains of jobs run one job at a time each.
            let back = u64::from(self.plan.retain).div_ceil(*of) * of;
            if let Some(old) = number.checked_sub(back).filter(|_| back > 0) {
                self.delete(old, self.ops.result_stage(), ready_ns);
            }
        }
        self.begin_stage(slot, number, 0, ready_ns);
    }

    /// The results of job `number` are old at `at_ns`.
    fn retire(&mut self, number: u64, at_ns: u64) {
        let mut jobs = self.slots.iter_mut().flatten();
        match jobs.find(|job| job.number == number) {
            Some(job) => job.retire_ns = at_ns,
            None => self.delete(number, self.ops.result_stage(), at_ns),
        }
    }

    fn begin_stage(&mut self, slot: u32, job: u64, stage: usize, ready_ns: u64) {
        if let Some(old) = self.ops.deletes(stage) {
            self.delete(job, old, ready_ns);
        }
        self.flow((Kind::Stage, slot), (job, stage), ready_ns);
    }

    fn delete(&mut self, job: u64, stage: usize, ready_ns: u64) {
        self.flow((Kind::Deletion, NOBODY), (job, stage), ready_ns);
    }

    fn flow(&mut self, what: (Kind, u32), of: (u64, usize), ready_ns: u64) {
        let index = match self.free_flows.pop() {
            Some(index) => index,
            None => {
                self.flows.push(Flow::idle());
                (self.flows.len() - 1) as u32
            }
        };
        self.flows[index as usize].begin(what, of, ready_ns, self.plan.pace, &self.ops);
        self.live += 1;
        self.enqueue(index);
    }

    fn enqueue(&mut self, flow: u32) {
        if let Some(due) = self.flows[flow as usize].next_due() {
            self.queue.push(Reverse((due, flow)));
        }
    }

    /// An operation of flow number `flow_index` has ended.
    pub(super) fn ended(&mut self, flow_index: u32, end: &OpEnd, shard: &Shard) -> bool {
        let failed = match end.outcome {
            Outcome::Ok => false,
            // The phase is being given up: a cancelled operation starts nothing new.
            Outcome::Failed(ErrorKind::Cancelled) => return false,
            Outcome::Failed(_) => true,
        };
        let flow = &mut self.flows[flow_index as usize];
        let waits = flow.next_due().is_none();
        flow.end_one(end.done_ns, failed);
        if flow.is_live() {
            let follows = waits && flow.next_due().is_some();
            if follows {
                self.enqueue(flow_index);
            }
            return follows;
        }
        self.live -= 1;
        self.free_flows.push(flow_index);
        let flow = &self.flows[flow_index as usize];
        let (owner, job, stage) = (flow.owner, flow.job, flow.stage);
        let (ready_ns, done_ns, failed) = (flow.ready_ns, flow.done_ns, flow.failed);
        if flow.kind == Kind::Stage {
            self.record(
                stage as u16,
                done_ns.saturating_sub(ready_ns),
                failed,
                shard,
            );
            if let Some(job) = &mut self.slots[owner as usize] {
                job.failed |= failed;
            }
            if stage + 1 < self.ops.stages() {
                self.begin_stage(owner, job, stage + 1, done_ns);
            } else {
                self.end_job(owner, done_ns, shard);
            }
        }
        true
    }

    fn end_job(&mut self, slot: u32, done_ns: u64, shard: &Shard) {
        let Some(job) = self.slots[slot as usize].take() else {
            return;
        };
        self.free_slots.push(slot);
        self.running -= 1;
        self.ended += 1;
        self.freed_ns = self.freed_ns.max(done_ns);
        let makespan = done_ns.saturating_sub(job.arrived_ns);
        self.record(self.ops.stages() as u16, makespan, job.failed, shard);
        shard.recorder.tally().jobs.ended += 1;
        if job.retire_ns > 0 {
            let at = job.retire_ns.max(done_ns);
            self.delete(job.number, self.ops.result_stage(), at);
        }
        let limit = self.plan.limit;
        if let Begin::Closed { ready, of } = &mut self.begin {
            let next = job.number + *of;
            if limit == 0 || next < limit {
                ready.push_back((done_ns, next));
            }
        }
    }

    fn record(&self, part: u16, makespan_ns: u64, failed: bool, shard: &Shard) {
        let mut tally = shard.recorder.tally();
        let span = tally.span_mut(self.work, part);
        span.makespan.record(makespan_ns);
        span.failed += u64::from(failed);
    }

    pub(super) fn count_until(
        &mut self,
        until_ns: u64,
        cutoff_ns: u64,
        offer: &mut dyn FnMut(u64, &Op),
    ) {
        for flow in self.flows.iter_mut().filter(|flow| flow.is_live()) {
            flow.count_until(until_ns, &self.ops, offer);
        }
        if let Begin::Open {
            counted, arrived, ..
        } = &mut self.begin
        {
            let until_ns = until_ns.min(cutoff_ns);
            while let Some(head) = counted.head
                && self.start_ns.saturating_add(head.due_ns) < until_ns
            {
                *arrived += 1;
                counted.step();
            }
        }
    }

    /// Jobs that have arrived and not ended.
    pub(super) fn under_way(&self) -> u64 {
        match &self.begin {
            Begin::Open { arrived, .. } => (*arrived).max(self.begun) - self.ended,
            Begin::Closed { .. } => self.running as u64,
        }
    }
}
