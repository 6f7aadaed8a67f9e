//! What the events of a run say: marks of phases, calibration, warnings, failures, what models reported.

use std::collections::BTreeMap;

use bucketload_core::oracle::OracleSummary;
use bucketload_core::ranks::PhaseRanks;
use bucketload_core::rows::PhaseRows;
use bucketload_core::sink::{Calibration, Event, Round, StreamSum};
use bucketload_core::train::TrainEpoch;

use super::window::Marks;
use crate::result::FailureExample;

/// The content of a run's events.
#[derive(Default)]
pub(super) struct EventSummary {
    pub(super) marks: BTreeMap<u16, Marks>,
    pub(super) calibration: Option<Calibration>,
    /// The calibration that was known when each phase ended.
    calibrations: BTreeMap<u16, Calibration>,
    pub(super) warnings: Vec<String>,
    pub(super) failures: Vec<FailureExample>,
    pub(super) oracle: Option<OracleSummary>,
    pub(super) rounds: Vec<Round>,
    pub(super) epochs: Vec<TrainEpoch>,
    pub(super) streams: BTreeMap<u16, Vec<StreamSum>>,
    pub(super) rows: BTreeMap<u16, PhaseRows>,
    pub(super) ranks: BTreeMap<u16, PhaseRanks>,
}

impl EventSummary {
    pub(super) fn of(events: Vec<Event>) -> Self {
        let mut summary = Self::default();
        for event in events {
            match event {
                Event::PhaseStarted { phase, at_ns } => {
                    summary.marks.entry(phase).or_default().started_ns = Some(at_ns);
                }
                Event::PhaseEnded {
                    phase,
                    at_ns,
                    end,
                    drained_ns,
                } => {
                    summary.marks.entry(phase).or_default().ended = Some((at_ns, end, drained_ns));
                    if let Some(known) = summary.calibration {
                        summary.calibrations.insert(phase, known);
                    }
                }
                Event::Calibrated(calibration) => summary.calibration = Some(calibration),
                Event::Warning { message } => summary.warnings.push(message),
                Event::Round(round) => summary.rounds.push(round),
                Event::Oracle(oracle) => summary.oracle = Some(oracle),
                // Findings have their own file.
                Event::Finding(_) => {}
                Event::Ranks(ranks) => {
                    summary.ranks.entry(ranks.phase).or_default().merge(ranks);
                }
                Event::Train(epoch) => summary.epochs.push(epoch),
                Event::Rows(rows) => summary.rows.entry(rows.phase).or_default().merge(rows),
                Event::Streams { phase, streams } => {
                    summary.streams.entry(phase).or_default().extend(streams);
                }
                Event::Failure {
                    phase,
                    class,
                    key,
                    error,
                    at_ns,
                } => summary.failures.push(FailureExample {
                    phase,
                    class,
                    key,
                    error,
                    at_ns,
                }),
            }
        }
        summary
    }

    pub(super) fn marks(&self, phase: u16) -> Marks {
        self.marks.get(&phase).copied().unwrap_or_default()
    }

    pub(super) fn calibration(&self, phase: u16) -> Option<Calibration> {
        self.calibrations.get(&phase).copied().or(self.calibration)
    }
}
