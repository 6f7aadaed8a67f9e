//! A load phase on agents, seen from the coordinator: nothing is lost, nothing hangs, and an incomplete load
//! is not called complete.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bucketload_agents::{
    Access, AgentOptions, Assignment, Conductor, Executor, Fleet, FleetWatch, GatherOptions,
    Problem, dial, simulate,
};
use bucketload_core::agent::{AgentState, AgentsFile};
use bucketload_core::driver::DriverFacts;
use bucketload_core::plan::{PhaseKind, Plan};
use bucketload_core::sink::{Event, PhaseEnd, RunSink};
use bucketload_core::tally::Interval;
use bucketload_run::{
    Order, Orders as _, PhaseSummary, PhaseTotals, RemoteLoad as _, RemotePhase, RunError,
    RunOptions, StartGate, StopHandle, now_ns,
};
use bucketload_workload::resolve::{Overrides, ResolveContext, resolve};
use bucketload_workload::spec::WorkloadFile;

/// Limit of every wait, far beyond the normal duration, so only a hang reaches it.
const PATIENCE: Duration = Duration::from_secs(60);

fn plan(seconds: u64) -> Plan {
    let text = format!(
        "name = \"course\"\n[keysets.o]\ncount = 10\nsize = \"1KiB\"\n[phases.run]\nrate = \"10/s\"\n\
         steady-state = false\nduration = \"{seconds}s\"\nmix = {{ get = 1 }}\n"
    );
    let file = WorkloadFile::parse("scale.toml", &text).unwrap();
    resolve(&file, &Overrides::default(), &ResolveContext::default())
        .unwrap()
        .plan
}

#[derive(Default)]
struct Seen {
    intervals: u64,
    ok: u64,
    sessions: u64,
    end: Option<PhaseEnd>,
    /// At the start of the phase, the sink blocks until the agents satisfy the condition.
    begun: Option<(FleetWatch, Condition)>,
}

/// A condition on the state of the agents.
type Condition = fn(&AgentsFile) -> bool;

impl RunSink for Seen {
    fn event(&mut self, event: &Event) {
        match (event, &self.begun) {
            (Event::PhaseEnded { end, .. }, _) => self.end = Some(*end),
            (Event::PhaseStarted { .. }, Some((watch, holds))) => {
                let begun = Instant::now();
                while !holds(&watch.snapshot()) {
                    assert!(begun.elapsed() < PATIENCE, "{:?}", watch.snapshot());
                    std::thread::yield_now();
                }
            }
            _ => {}
        }
    }

    fn interval(&mut self, interval: &Interval) {
        assert_eq!(interval.index, self.intervals, "in order");
        self.intervals += 1;
        self.ok += interval.tally.ok();
        self.sessions = interval.gauges.sessions;
    }
}

/// The outcome of a phase.
struct Outcome {
    summary: Result<PhaseSummary, RunError>,
    seen: Seen,
    agents: AgentsFile,
}

/// Runs the load phase of [`plan`] on `agents` that call `listener`. At its start, the coordinator blocks until
/// `begun` holds.
fn run_phase(
    listener: TcpListener,
    agents: u32,
    seconds: u64,
    begun: Option<Condition>,
) -> Outcome {
    let mut fleet = Fleet::gather(GatherOptions {
        children: Vec::new(),
        dial: Vec::new(),
        listen: Some((listener, agents)),
        access: access(),
        run_id: "17-ab".to_owned(),
        timeout: Duration::from_secs(60),
        deadline: Duration::from_secs(60),
        say: Arc::new(|_| {}),
    })
    .unwrap();
    let plan = plan(seconds);
    fleet
        .assign(|index| Assignment {
            run_id: "17-ab".to_owned(),
            bucket: "b".to_owned(),
            prefix: String::new(),
            index,
            of: agents,
            pins: bucketload_core::plan::crews::Pins::new(),
            interval_ns: 1_000_000_000,
            threads: None,
            cores: None,
            data: None,
            op_log: false,
            plan: plan.clone(),
            setup: serde_json::Value::Null,
        })
        .unwrap();
    let watch = fleet.watch();
    let mut remote = fleet.remote(&plan, Duration::from_secs(1));
    let (options, stop) = (RunOptions::default(), StopHandle::new());
    let mut seen = Seen {
        begun: begun.map(|holds| (watch.clone(), holds)),
        ..Seen::default()
    };
    let phase = RemotePhase {
        index: load_phase(&plan),
        generation: 0,
        filling: None,
    };
    let summary = remote.run_phase(phase, &options, &mut seen, &stop);
    drop(remote);
    Outcome {
        summary,
        seen,
        agents: watch.snapshot(),
    }
}

fn load_phase(plan: &Plan) -> usize {
    let mut phases = plan.phases.iter();
    phases.position(|p| p.kind == PhaseKind::Run).unwrap()
}

fn access() -> Access {
    Access::new("1", None, None)
}

/// An agent whose load `executor` runs.
fn agent(rank: u32, executor: impl Executor + 'static) -> AgentOptions {
    AgentOptions {
        access: access(),
        rank: Some(rank),
        executor: Arc::new(executor),
        say: Arc::new(|_| ()),
    }
}

/// Waits until the coordinator announces the start.
fn agreed_start(gate: &dyn StartGate, phase: usize) -> u64 {
    let begun = Instant::now();
    loop {
        if let Some(start_ns) = gate.start_ns(phase as u16) {
            return start_ns;
        }
        assert!(begun.elapsed() < PATIENCE, "no start is announced");
        std::thread::yield_now();
    }
}

/// Runs `agents` on a separate thread.
fn beside(agents: impl Future<Output = ()> + Send + 'static) -> std::thread::JoinHandle<()> {
    std::thread::spawn(|| {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
            .block_on(agents);
    })
}

#[test]
fn every_interval_of_every_agent_is_in_the_result_once() {
    const AGENTS: u32 = 40;
    const SECONDS: u64 = 3;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let agents = beside(async move {
        let mut all = tokio::task::JoinSet::new();
        for _ in 0..AGENTS {
            let address = address.clone();
            all.spawn(async move { simulate::agent(&address, &access()).await });
        }
        while let Some(ended) = all.join_next().await {
            ended.unwrap().unwrap();
        }
    });
    let Outcome {
        summary,
        seen,
        agents: file,
    } = run_phase(listener, AGENTS, SECONDS, None);
    agents.join().unwrap();
    let each = simulate::interval().tally.ok();
    assert_eq!(seen.intervals, SECONDS);
    assert_eq!(seen.ok, u64::from(AGENTS) * SECONDS * each);
    assert_eq!(seen.sessions, u64::from(AGENTS) * 8);
    assert_eq!(
        (summary.unwrap().end, seen.end),
        (PhaseEnd::TimeLimit, Some(PhaseEnd::TimeLimit))
    );
    let ok: u64 = file.agents.iter().map(|agent| agent.totals.ok).sum();
    assert_eq!(ok, seen.ok, "the run's total is the sum of the agents");
}

/// Stops its load right after the start, like an agent that takes the coordinator for lost.
struct GivesUp;

impl Executor for GivesUp {
    fn execute(&self, assignment: Assignment, conductor: &mut Conductor) -> Result<(), Problem> {
        let phase = load_phase(&assignment.plan);
        conductor.accepted(1, DriverFacts::default());
        let gate = conductor.gate();
        let (_, mut orders) = conductor.parts();
        while let Some(order) = orders.next() {
            assert!(matches!(order, Order::Phase(o) if o.phase == phase));
            let start_ns = agreed_start(&*gate, phase);
            let summary = PhaseSummary {
                phase: phase as u16,
                start_ns,
                at_ns: now_ns(),
                drained_ns: now_ns(),
                end: PhaseEnd::Aborted,
                totals: PhaseTotals::default(),
            };
            orders.phase_done(phase, Ok(summary));
        }
        Ok(())
    }
}

#[test]
fn a_load_that_an_agent_gave_up_unasked_is_not_complete() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let agents = beside(async move {
        let options = agent(1, GivesUp);
        let access = access();
        let (whole, gave_up) = tokio::join!(
            simulate::agent(&address, &access),
            dial(options, &address, Duration::from_secs(60))
        );
        whole.unwrap();
        gave_up.unwrap();
    });
    let outcome = run_phase(listener, 2, 1, None);
    agents.join().unwrap();
    let error = outcome.summary.unwrap_err().to_string();
    assert!(
        error.contains("agent 1") && error.contains("without being told"),
        "{error}"
    );
    assert_eq!(outcome.seen.end, Some(PhaseEnd::Aborted));
    let states: Vec<_> = outcome.agents.agents.iter().map(|a| a.state).collect();
    assert_eq!(states, [AgentState::Finished, AgentState::Failed]);
}

/// Signals that its load has begun, and does nothing more.
struct Begins(tokio::sync::mpsc::UnboundedSender<()>);

impl Executor for Begins {
    fn execute(&self, assignment: Assignment, conductor: &mut Conductor) -> Result<(), Problem> {
        let phase = load_phase(&assignment.plan);
        conductor.accepted(1, DriverFacts::default());
        let gate = conductor.gate();
        let (_, mut orders) = conductor.parts();
        while orders.next().is_some() {
            agreed_start(&*gate, phase);
            self.0.send(()).unwrap();
        }
        Ok(())
    }
}

#[test]
fn agents_that_are_lost_while_the_coordinator_is_busy_are_missed() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let agents = beside(async move {
        let (begins, mut begun) = tokio::sync::mpsc::unbounded_channel();
        let options = agent(0, Begins(begins));
        // The connection is dropped together with `dial`.
        tokio::select! {
            ended = dial(options, &address, Duration::from_secs(60)) => panic!("{ended:?}"),
            _ = begun.recv() => {}
        }
    });
    let lost: Condition = |known| known.agents[0].state == AgentState::Lost;
    let outcome = run_phase(listener, 1, 1, Some(lost));
    agents.join().unwrap();
    let error = outcome.summary.unwrap_err().to_string();
    assert!(error.contains("agent 0"), "{error}");
    assert_eq!(outcome.seen.end, Some(PhaseEnd::Aborted));
}
