//! `slowest.jsonl`: the slowest requests, appended as they become known, so a killed run keeps them.
//!
//! Slower requests may displace a written one later; the reader keeps only those that count. When too many lines of a
//! phase have been displaced, the file is rewritten without them.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use bucketload_core::slowest::{KEPT, SlowRequest, Slowest};

use super::SLOWEST;
use super::read::{Damage, Lines};
use super::sink::{append, json_line};
use crate::error::ResultsError;

/// Number of lines of the current phase after which displaced ones are removed.
const MAX_LINES: usize = 20 * KEPT;

/// Writes the file.
pub(super) struct SlowLog {
    path: PathBuf,
    file: Option<File>,
    phase: u16,
    /// Offset at which the lines of the current phase start.
    phase_start: u64,
    len: u64,
    lines: usize,
    slowest: Slowest<SlowRequest>,
    buffer: Vec<u8>,
}

impl SlowLog {
    pub(super) fn new(dir: &Path) -> Self {
        Self {
            path: dir.join(SLOWEST),
            file: None,
            phase: 0,
            phase_start: 0,
            len: 0,
            lines: 0,
            slowest: Slowest::new(KEPT),
            buffer: Vec::new(),
        }
    }

    /// Appends those of `requests` that are among the slowest of their phase.
    pub(super) fn add(&mut self, requests: &[SlowRequest]) -> Result<(), ResultsError> {
        let mut entered = Vec::new();
        for request in requests {
            if request.phase != self.phase {
                self.append(&entered)?;
                entered.clear();
                self.phase = request.phase;
                self.phase_start = self.len;
                self.lines = 0;
                self.slowest = Slowest::new(KEPT);
            }
            if self.slowest.offer(request.response_ns, request.clone()) {
                entered.push(request);
            }
        }
        self.append(&entered)?;
        if self.lines > MAX_LINES {
            self.compact()
                .map_err(ResultsError::io(&self.path, "replace"))?;
        }
        Ok(())
    }

    fn append(&mut self, requests: &[&SlowRequest]) -> Result<(), ResultsError> {
        if requests.is_empty() {
            return Ok(());
        }
        self.buffer.clear();
        for request in requests {
            json_line(&mut self.buffer, request).map_err(ResultsError::io(&self.path, "encode"))?;
        }
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(append(&self.path)?),
        };
        file.write_all(&self.buffer)
            .map_err(ResultsError::io(&self.path, "write"))?;
        self.len += self.buffer.len() as u64;
        self.lines += requests.len();
        Ok(())
    }

    /// Rewrites the file with only the slowest requests of the current phase.
    fn compact(&mut self) -> io::Result<()> {
        let temporary = self.path.with_extension("jsonl.new");
        let mut new = File::create(&temporary)?;
        let earlier = File::open(&self.path)?;
        let copied = io::copy(&mut io::Read::take(earlier, self.phase_start), &mut new)?;
        self.buffer.clear();
        for (_, request) in self.slowest.sorted() {
            json_line(&mut self.buffer, request)?;
        }
        new.write_all(&self.buffer)?;
        fs::rename(&temporary, &self.path)?;
        self.file = Some(new);
        self.len = copied + self.buffer.len() as u64;
        self.lines = self.slowest.len();
        Ok(())
    }
}

/// The slowest requests of each phase, slowest first, and the unreadable parts of the file.
pub(super) fn read(dir: &Path) -> Result<(BTreeMap<u16, Vec<SlowRequest>>, Damage), ResultsError> {
    let mut lines = Lines::open(dir, SLOWEST)?;
    let mut damage = Damage::default();
    let mut phases: BTreeMap<u16, Slowest<SlowRequest>> = BTreeMap::new();
    while let Some(request) = lines.next::<SlowRequest>(&mut damage)? {
        phases
            .entry(request.phase)
            .or_insert_with(|| Slowest::new(KEPT))
            .offer(request.response_ns, request);
    }
    let sorted = |list: Slowest<SlowRequest>| {
        let all = list.sorted().into_iter();
        all.map(|(_, request)| request.clone()).collect()
    };
    let phases = phases
        .into_iter()
        .map(|(phase, list)| (phase, sorted(list)));
    Ok((phases.collect(), damage))
}

#[cfg(test)]
mod tests {
    use bucketload_core::op::OpClass;
    use bucketload_core::slowest::{KEPT, SlowRequest};

    use super::{MAX_LINES, SlowLog, read};
    use crate::rundir::SLOWEST;

    fn request(phase: u16, response_ns: u64) -> SlowRequest {
        SlowRequest {
            phase,
            work: 0,
            class: OpClass::Get,
            seq: response_ns,
            key: format!("key {response_ns}"),
            response_ns,
            parts: Vec::new(),
            due_ns: 0,
            started_ns: 0,
            first_byte_ns: 0,
            done_ns: response_ns,
            bytes: 0,
            worker: 0,
            endpoint: 0,
            connection: 0,
            local_port: 0,
            attempts: 1,
            status: 200,
            error: None,
            request_id: String::new(),
            extended_id: String::new(),
        }
    }

    #[test]
    fn the_file_stays_bounded_and_keeps_earlier_phases() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = SlowLog::new(dir.path());
        log.add(&[request(1, 5), request(1, 7)]).unwrap();
        let total = 3 * MAX_LINES as u64;
        for response_ns in (1..=total).step_by(500) {
            let batch: Vec<_> = (response_ns..response_ns + 500)
                .map(|ns| request(2, ns))
                .collect();
            log.add(&batch).unwrap();
        }
        let lines = std::fs::read_to_string(dir.path().join(SLOWEST))
            .unwrap()
            .lines()
            .count();
        assert!(lines <= MAX_LINES + 502, "{lines}");
        let (phases, damage) = read(dir.path()).unwrap();
        assert!(damage.is_none());
        let values = |phase| {
            phases[&phase]
                .iter()
                .map(|r| r.response_ns)
                .collect::<Vec<_>>()
        };
        assert_eq!(values(1), [7, 5]);
        let wanted: Vec<u64> = (0..KEPT as u64)
            .map(|i| total + 499 - (total - 1) % 500 - i)
            .collect();
        assert_eq!(values(2), wanted);
    }

    #[test]
    fn an_incomplete_last_line_loses_only_that_line() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = SlowLog::new(dir.path());
        log.add(&[request(0, 5), request(0, 7)]).unwrap();
        let path = dir.path().join(SLOWEST);
        let text = std::fs::read(&path).unwrap();
        std::fs::write(&path, &text[..text.len() - 9]).unwrap();
        let (phases, damage) = read(dir.path()).unwrap();
        assert_eq!(phases[&0].len(), 1);
        assert_eq!(damage.torn, [SLOWEST]);
    }
}
