//! Many agents: nothing is lost, and nothing hangs.

use std::net::TcpListener;
use std::time::Duration;

use bucketload_agents::{Access, Assignment, Fleet, Gather, simulate};
use bucketload_core::plan::{PhaseKind, Plan};
use bucketload_core::resolve::{Overrides, ResolveContext, resolve};
use bucketload_core::sink::{Event, PhaseEnd, RunSink};
use bucketload_core::spec::WorkloadFile;
use bucketload_core::tally::Interval;
use bucketload_run::{RemoteLoad, RunOptions, StopHandle};

const AGENTS: u32 = 40;
const SECONDS: u64 = 3;

fn plan() -> Plan {
    let text = format!(
        "name = \"scale\"\n[keysets.o]\ncount = 10\nsize = \"1KiB\"\n[phases.run]\nrate = \"10/s\"\n\
         steady-state = false\nduration = \"{SECONDS}s\"\nmix = {{ get = 1 }}\n"
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
}

impl RunSink for Seen {
    fn event(&mut self, event: &Event) {
        if let Event::PhaseEnded { end, .. } = event {
            self.end = Some(*end);
        }
    }

    fn interval(&mut self, interval: &Interval) {
        assert_eq!(interval.index, self.intervals, "in order");
        self.intervals += 1;
        self.ok += interval.tally.ok();
        self.sessions = interval.gauges.sessions;
    }
}

#[test]
fn every_interval_of_every_agent_is_in_the_result_once() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let access = Access::new("1", None, None);
    let caller = access.clone();
    let agents = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let mut all = tokio::task::JoinSet::new();
            for _ in 0..AGENTS {
                let (address, access) = (address.clone(), caller.clone());
                all.spawn(async move { simulate::agent(&address, &access).await });
            }
            while let Some(ended) = all.join_next().await {
                ended.unwrap().unwrap();
            }
        });
    });
    let mut fleet = Fleet::gather(Gather {
        children: Vec::new(),
        dial: Vec::new(),
        listen: Some((listener, AGENTS)),
        access,
        run_id: "17-ab".to_owned(),
        timeout: Duration::from_secs(60),
        deadline: Duration::from_secs(60),
    })
    .unwrap();
    let plan = plan();
    fleet
        .assign(|index| Assignment {
            run_id: "17-ab".to_owned(),
            bucket: "b".to_owned(),
            prefix: String::new(),
            index,
            of: AGENTS,
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
    let phase = plan
        .phases
        .iter()
        .position(|p| p.kind == PhaseKind::Run)
        .unwrap();
    let (options, stop) = (RunOptions::default(), StopHandle::new());
    let mut seen = Seen::default();
    let summary = remote.run_phase(phase, &options, &mut seen, &stop).unwrap();
    drop(remote);
    agents.join().unwrap();
    let each = simulate::interval().tally.ok();
    assert_eq!(seen.intervals, SECONDS);
    assert_eq!(seen.ok, u64::from(AGENTS) * SECONDS * each);
    assert_eq!(seen.sessions, u64::from(AGENTS) * 8);
    assert_eq!(
        (summary.end, seen.end),
        (PhaseEnd::TimeLimit, Some(PhaseEnd::TimeLimit))
    );
    let file = watch.snapshot();
    let ok: u64 = file.agents.iter().map(|agent| agent.totals.ok).sum();
    assert_eq!(ok, seen.ok, "the sum of the agents is that of the run");
}
