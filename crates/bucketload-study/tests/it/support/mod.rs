//! Synthetic studies: directories with real run directories, written by the same code as in a run.
#![allow(dead_code, reason = "each test binary uses a part")]

#[path = "../../../../bucketload-results/tests/support/mod.rs"]
pub(crate) mod runs;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use bucketload_core::plan::{ClosedPlan, GapLaw, ModelPlan};
use bucketload_core::sink::PhaseEnd;
use bucketload_results::RunDirSink;
use bucketload_results::rundir::{RunEnd, Status};
use bucketload_study::journal;
use bucketload_study::layout;
use bucketload_study::model::{
    Cell, Command, Experiment, Figure, FigureKind, JournalLine, Metric, Order, Placement, Plan,
    SCHEMA, Study, Table, TableKind, Target, TargetFacts,
};
use runs::{SECOND, Shape, end, feed, manifest, plan};

/// Parameters of a synthetic run.
pub(crate) struct Synthetic {
    /// Operations per second.
    pub(crate) rate: f64,
    /// Factor of all times.
    pub(crate) slowness: f64,
    /// Workers of a closed loop; 0 for an open one.
    pub(crate) workers: u32,
    /// Load of the client's threads, as a share of a core: near 1 makes a run CLIENT-BOUND.
    pub(crate) client: f64,
    /// Seed of the noise.
    pub(crate) seed: u64,
}

/// Writes a run directory.
pub(crate) fn run(dir: &Path, like: &Synthetic) {
    let shape = Shape {
        seconds: 10,
        rate: like.rate,
        slowness: like.slowness,
        closed: like.workers > 0,
        load_cpu_share: like.client,
        seed: like.seed,
        ..Shape::default()
    };
    let rate = if shape.closed { 0.0 } else { shape.rate };
    let mut plan = plan(rate, shape.seconds);
    if like.workers > 0 {
        for work in &mut plan.phases[1].works {
            work.model = ModelPlan::Closed(ClosedPlan {
                workers: like.workers,
                think: GapLaw::None,
            });
        }
    }
    let mut sink = RunDirSink::create(dir, manifest(plan)).unwrap();
    feed(&mut sink, &shape);
    end(&mut sink, &shape, PhaseEnd::TimeLimit);
    let ended_unix_ns = 1_767_323_045 * SECOND + 20 * SECOND;
    sink.finish(RunEnd {
        status: Status::Finished,
        ended_unix_ns,
        error: None,
    })
    .unwrap();
}

/// A study that is being written.
pub(crate) struct Builder {
    /// The request.
    pub(crate) study: Study,
    cells: Vec<Cell>,
    lines: Vec<JournalLine>,
    facts: Vec<TargetFacts>,
    at: u64,
}

impl Builder {
    /// A study of these targets without experiments.
    pub(crate) fn new(targets: &[(&str, &str)]) -> Self {
        let target = |(name, title): &(&str, &str)| Target {
            name: (*name).to_owned(),
            title: (*title).to_owned(),
            server: (*name).to_owned(),
            ..Target::default()
        };
        let facts = |(name, title): &(&str, &str)| TargetFacts {
            schema: SCHEMA,
            name: (*name).to_owned(),
            title: (*title).to_owned(),
            url: "s3://bench".to_owned(),
            endpoint: "http://127.0.0.1:9000".to_owned(),
            server: format!("servers/{name}.sh"),
            versions: BTreeMap::from([((*name).to_owned(), "1.2.3".to_owned())]),
            machine: BTreeMap::from([("kernel".to_owned(), "6.1.0".to_owned())]),
            ..TargetFacts::default()
        };
        Self {
            study: Study {
                name: "sample".to_owned(),
                title: "A sample & its <report>".to_owned(),
                description: "Synthetic runs.".to_owned(),
                source: "Nobody: Nothing, 2026".to_owned(),
                published: String::new(),
                quick: false,
                seed: 42,
                order: Order::Random,
                repetitions: 3,
                recovery_ns: 2 * SECOND,
                settle_ns: 0,
                programs: String::new(),
                baseline: String::new(),
                targets: targets.iter().map(target).collect(),
                experiments: Vec::new(),
            },
            cells: Vec::new(),
            lines: vec![JournalLine::Session {
                at_unix_ns: 1_767_323_000 * SECOND,
                version: "0.1.0".to_owned(),
                command_line: vec!["bucketload".to_owned(), "study".to_owned()],
            }],
            facts: targets.iter().map(facts).collect(),
            at: 1_767_323_000 * SECOND,
        }
    }

    /// Sets how the placement of a target's objects can be determined.
    pub(crate) fn placement(&mut self, target: &str, placement: Placement) {
        let facts = self.facts.iter_mut().find(|facts| facts.name == target);
        facts.unwrap().placement = placement;
    }

    /// An experiment of `run` cells over `values` of `field`.
    pub(crate) fn experiment(
        &mut self,
        name: &str,
        field: &str,
        values: &[&str],
    ) -> &mut Experiment {
        self.study.experiments.push(Experiment {
            name: name.to_owned(),
            title: format!("Experiment {name}"),
            command: Command::Run,
            workload: "get".to_owned(),
            field: field.to_owned(),
            values: values.iter().map(|v| (*v).to_owned()).collect(),
            ..Experiment::default()
        });
        self.study.experiments.last_mut().unwrap()
    }

    fn plan_cell(
        &mut self,
        experiment: &str,
        target: &str,
        value: &str,
        repetition: u32,
    ) -> String {
        let id = format!(
            "{:04}-{experiment}-{target}-{value}-r{repetition}",
            self.cells.len() + 1
        );
        let found = self
            .study
            .experiments
            .iter()
            .find(|e| e.name == experiment)
            .unwrap();
        self.cells.push(Cell {
            id: id.clone(),
            experiment: experiment.to_owned(),
            target: target.to_owned(),
            command: found.command,
            workload: found.workload.clone(),
            field: found.field.clone(),
            value: value.to_owned(),
            repetition,
            block: repetition,
            args: Vec::new(),
            estimate_ns: 15 * SECOND,
        });
        self.at += 2 * SECOND;
        id
    }

    fn start(&mut self, id: &str) -> String {
        let dir = format!("{}/{id}", layout::CELLS);
        self.lines.push(JournalLine::Started {
            at_unix_ns: self.at,
            cell: id.to_owned(),
            dir: dir.clone(),
            pause_ns: 2 * SECOND,
            busy: Some(0.02),
        });
        self.at += 15 * SECOND;
        dir
    }

    /// A cell that was measured; `make` fills its directory.
    pub(crate) fn measured(
        &mut self,
        root: &Path,
        (experiment, target, value, repetition): (&str, &str, &str, u32),
        make: impl FnOnce(&Path),
    ) {
        let id = self.plan_cell(experiment, target, value, repetition);
        let dir = self.start(&id);
        fs::create_dir_all(root.join(layout::CELLS)).unwrap();
        make(&root.join(&dir));
        self.lines.push(JournalLine::Finished {
            at_unix_ns: self.at,
            cell: id,
            dir,
            exit: 0,
            verdict: "VALID".to_owned(),
            took_ns: 15 * SECOND,
        });
    }

    /// A cell that failed.
    pub(crate) fn failed(
        &mut self,
        experiment: &str,
        target: &str,
        value: &str,
        repetition: u32,
        reason: &str,
    ) {
        let id = self.plan_cell(experiment, target, value, repetition);
        let dir = self.start(&id);
        self.lines.push(JournalLine::Failed {
            at_unix_ns: self.at,
            cell: id,
            dir,
            exit: Some(3),
            reason: reason.to_owned(),
        });
    }

    /// A cell that was skipped.
    pub(crate) fn skipped(
        &mut self,
        experiment: &str,
        target: &str,
        value: &str,
        repetition: u32,
        reason: &str,
    ) {
        let cell = self.plan_cell(experiment, target, value, repetition);
        self.lines.push(JournalLine::Skipped {
            at_unix_ns: self.at,
            cell,
            reason: reason.to_owned(),
        });
    }

    /// Writes the study's files.
    pub(crate) fn write(mut self, root: &Path) {
        self.lines.push(JournalLine::Ended {
            at_unix_ns: self.at,
            reason: "complete".to_owned(),
        });
        fs::create_dir_all(root.join(layout::TARGETS)).unwrap();
        fs::write(
            root.join(layout::STUDY),
            toml::to_string(&self.study).unwrap(),
        )
        .unwrap();
        let plan = Plan {
            schema: SCHEMA,
            study: self.study.name.clone(),
            version: "0.1.0".to_owned(),
            seed: 42,
            order: Order::Random,
            budget_ns: None,
            estimate_ns: 0,
            notes: vec!["Three repetitions fit".to_owned()],
            cells: self.cells,
        };
        fs::write(
            root.join(layout::PLAN),
            serde_json::to_string(&plan).unwrap(),
        )
        .unwrap();
        for facts in &self.facts {
            let path = layout::target(root, &facts.name);
            fs::write(path, serde_json::to_string(facts).unwrap()).unwrap();
        }
        let mut journal = journal::open(root).unwrap();
        for line in &self.lines {
            journal.append(line).unwrap();
        }
    }
}

/// A figure.
pub(crate) fn figure(kind: FigureKind, metric: Option<Metric>, class: &str) -> Figure {
    Figure {
        kind,
        metric,
        class: class.to_owned(),
        ..Figure::default()
    }
}

/// A table.
pub(crate) fn table(kind: TableKind, metric: Option<Metric>, class: &str) -> Table {
    Table {
        kind,
        metric,
        class: class.to_owned(),
        ..Table::default()
    }
}
