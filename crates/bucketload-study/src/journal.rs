//! The journal of a study: one line per event, on disk before anything else happens. It determines which cells are
//! done, so a killed study resumes where it stopped.

use std::collections::BTreeMap;
use std::path::Path;

use bucketload_results::ResultsError;
use bucketload_results::journal::{self, Journal};

use crate::layout::{CELLS, JOURNAL};
use crate::model::{Cell, JournalLine};

/// Opens the journal of the study in `dir` for appending.
///
/// # Errors
/// When the file cannot be read or written.
pub fn open(dir: &Path) -> Result<Journal<JournalLine>, ResultsError> {
    Journal::open(&dir.join(JOURNAL))
}

/// The lines of the study in `dir`; unreadable lines are skipped. A study that was never started has none.
///
/// # Errors
/// When the file cannot be read.
pub fn read(dir: &Path) -> Result<Vec<JournalLine>, ResultsError> {
    let path = dir.join(JOURNAL);
    match path.exists() {
        true => Ok(journal::read(&path)?.into_iter().flatten().collect()),
        false => Ok(Vec::new()),
    }
}

/// Progress of a cell.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CellState {
    /// How often it was started.
    pub attempts: u32,
    /// How it ended; `None` while it is pending, or if it was started and never ended.
    pub end: Option<End>,
}

/// How a cell ended.
#[derive(Clone, Debug, PartialEq)]
pub enum End {
    /// It was measured.
    Finished {
        /// Its directory below the study's.
        dir: String,
        /// Exit code.
        exit: i32,
        /// Verdict; empty for none.
        verdict: String,
        /// Its duration, nanoseconds.
        took_ns: u64,
    },
    /// It could not be measured.
    Failed {
        /// Its directory below the study's.
        dir: String,
        /// Exit code.
        exit: Option<i32>,
        /// The reason.
        reason: String,
    },
    /// It was skipped.
    Skipped {
        /// The reason.
        reason: String,
    },
}

/// Progress of a study.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    /// By cell; cells without a line are absent.
    pub cells: BTreeMap<String, CellState>,
    /// Total time of its sessions, nanoseconds.
    pub active_ns: u64,
}

impl State {
    /// The progress that the lines record.
    #[must_use]
    pub fn of(lines: &[JournalLine]) -> Self {
        let mut state = Self::default();
        let mut session: Option<(u64, u64)> = None;
        for line in lines {
            let at = instant(line);
            match line {
                JournalLine::Session { .. } => {
                    state.active_ns += session.map_or(0, |(from, to)| to.saturating_sub(from));
                    session = Some((at, at));
                }
                JournalLine::Started { cell, .. } => {
                    let known = state.cells.entry(cell.clone()).or_default();
                    known.attempts += 1;
                    known.end = None;
                }
                JournalLine::Finished {
                    cell,
                    dir,
                    exit,
                    verdict,
                    took_ns,
                    ..
                } => state.end(
                    cell,
                    End::Finished {
                        dir: dir.clone(),
                        exit: *exit,
                        verdict: verdict.clone(),
                        took_ns: *took_ns,
                    },
                ),
                JournalLine::Failed {
                    cell,
                    dir,
                    exit,
                    reason,
                    ..
                } => state.end(
                    cell,
                    End::Failed {
                        dir: dir.clone(),
                        exit: *exit,
                        reason: reason.clone(),
                    },
                ),
                JournalLine::Skipped { cell, reason, .. } => state.end(
                    cell,
                    End::Skipped {
                        reason: reason.clone(),
                    },
                ),
                JournalLine::Ready { .. }
                | JournalLine::Unplaced { .. }
                | JournalLine::Ended { .. } => {}
            }
            if let Some((_, to)) = &mut session {
                *to = at;
            }
        }
        state.active_ns += session.map_or(0, |(from, to)| to.saturating_sub(from));
        state
    }

    fn end(&mut self, cell: &str, end: End) {
        self.cells.entry(cell.to_owned()).or_default().end = Some(end);
    }

    /// The end of the cell, if it ended.
    #[must_use]
    pub fn end_of(&self, cell: &str) -> Option<&End> {
        self.cells.get(cell)?.end.as_ref()
    }

    /// True if the cell is still to be measured. With `retry`, this includes cells that failed or were skipped.
    #[must_use]
    pub fn is_open(&self, cell: &str, retry: bool) -> bool {
        match self.end_of(cell) {
            None => true,
            Some(End::Finished { .. }) => false,
            Some(End::Failed { .. } | End::Skipped { .. }) => retry,
        }
    }

    /// The directory of the next attempt at a cell, below the study's. No earlier attempt used it.
    #[must_use]
    pub fn next_dir(&self, cell: &Cell) -> String {
        match self.cells.get(&cell.id).map_or(0, |known| known.attempts) {
            0 => format!("{CELLS}/{}", cell.id),
            before => format!("{CELLS}/{}.{}", cell.id, before + 1),
        }
    }
}

/// When a line was written, nanoseconds since 1970.
#[must_use]
pub const fn instant(line: &JournalLine) -> u64 {
    match line {
        JournalLine::Session { at_unix_ns, .. }
        | JournalLine::Ready { at_unix_ns, .. }
        | JournalLine::Started { at_unix_ns, .. }
        | JournalLine::Finished { at_unix_ns, .. }
        | JournalLine::Failed { at_unix_ns, .. }
        | JournalLine::Unplaced { at_unix_ns, .. }
        | JournalLine::Skipped { at_unix_ns, .. }
        | JournalLine::Ended { at_unix_ns, .. } => *at_unix_ns,
    }
}

#[cfg(test)]
mod tests {
    use super::{End, State, open, read};
    use crate::layout::JOURNAL;
    use crate::model::{Cell, Command, JournalLine};

    fn started(cell: &str, at: u64) -> JournalLine {
        JournalLine::Started {
            at_unix_ns: at,
            cell: cell.to_owned(),
            dir: format!("cells/{cell}"),
            pause_ns: 0,
            busy: None,
        }
    }

    fn finished(cell: &str, at: u64) -> JournalLine {
        JournalLine::Finished {
            at_unix_ns: at,
            cell: cell.to_owned(),
            dir: format!("cells/{cell}"),
            exit: 0,
            verdict: "VALID".to_owned(),
            took_ns: 5,
        }
    }

    fn session(at: u64) -> JournalLine {
        JournalLine::Session {
            at_unix_ns: at,
            version: String::new(),
            command_line: Vec::new(),
        }
    }

    fn cell(id: &str) -> Cell {
        Cell {
            id: id.to_owned(),
            experiment: String::new(),
            target: String::new(),
            command: Command::Run,
            workload: String::new(),
            field: String::new(),
            value: String::new(),
            repetition: 1,
            block: 1,
            args: Vec::new(),
            estimate_ns: 0,
        }
    }

    #[test]
    fn an_incomplete_line_is_cut_and_a_started_cell_runs_again_elsewhere() {
        let dir = tempfile::tempdir().unwrap();
        let mut journal = open(dir.path()).unwrap();
        for line in [
            session(10),
            started("a", 11),
            finished("a", 20),
            started("b", 21),
        ] {
            journal.append(&line).unwrap();
        }
        drop(journal);
        let path = dir.path().join(JOURNAL);
        let mut text = std::fs::read(&path).unwrap();
        // The line ends within a character.
        text.extend(b"{\"event\":\"failed\",\"reason\":\"\xc3");
        std::fs::write(&path, text).unwrap();

        assert_eq!(read(dir.path()).unwrap().len(), 4);
        let mut journal = open(dir.path()).unwrap();
        let state = State::of(&read(dir.path()).unwrap());
        assert!(!state.is_open("a", true));
        assert!(state.is_open("b", false) && state.is_open("c", false));
        assert_eq!(state.next_dir(&cell("b")), "cells/b.2");
        assert_eq!(state.next_dir(&cell("c")), "cells/c");
        assert_eq!(state.active_ns, 11);
        for line in [session(100), started("b", 101), finished("b", 104)] {
            journal.append(&line).unwrap();
        }
        let state = State::of(&read(dir.path()).unwrap());
        assert!(matches!(
            state.end_of("b"),
            Some(End::Finished { took_ns: 5, .. })
        ));
        // The pause between two sessions is not active time.
        assert_eq!(state.active_ns, 11 + 4);
    }

    #[test]
    fn failed_and_skipped_cells_are_done_unless_retried() {
        let lines = [
            started("a", 1),
            JournalLine::Failed {
                at_unix_ns: 2,
                cell: "a".to_owned(),
                dir: "cells/a".to_owned(),
                exit: Some(3),
                reason: "no answer".to_owned(),
            },
            JournalLine::Skipped {
                at_unix_ns: 3,
                cell: "b".to_owned(),
                reason: "no weed".to_owned(),
            },
        ];
        let state = State::of(&lines);
        for id in ["a", "b"] {
            assert!(!state.is_open(id, false) && state.is_open(id, true), "{id}");
        }
        // A skipped cell has no directory yet.
        assert_eq!(state.next_dir(&cell("b")), "cells/b");
    }
}
