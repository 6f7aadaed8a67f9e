//! The second pass: completes each record from the facts about its key, and lists the objects that must exist.

use bucketload_core::generate::rng::mix64;
use bucketload_core::trace::TraceOp;

use super::{
    Evidence, KeyHistory, Liveness, Presence, SizeOrigin, creates, deletes, evidence, reads,
};
use crate::error::TraceError;
use crate::hash::first64;
use crate::named_record::NamedRecord;
use crate::parsed::DropReason;
use crate::prepare::options::{Ambiguous, RangePlacement};
use crate::spill::Stream;

impl Liveness<'_> {
    /// Second pass: completes a record and writes it.
    pub(super) fn walk(
        &mut self,
        key: &mut KeyHistory,
        rec: &mut NamedRecord,
        out: &mut Stream,
    ) -> Result<(), TraceError> {
        let inside = (self.window.0..self.window.1).contains(&rec.base.ts_ns);
        rec.changed = key.changed;
        if rec.ghost {
            return self.place_preload(key, rec, inside);
        }
        if !inside {
            self.found.dropped[DropReason::OutsideWindow as usize] += 1;
            return Ok(());
        }
        self.place_preload(key, rec, true)?;
        let r = &rec.base;
        let seen = evidence(r.status);
        if (400..500).contains(&r.status) && !self.options.replay_errors {
            self.found.dropped[DropReason::RecordedError as usize] += 1;
            return Ok(());
        }
        if r.op == TraceOp::Copy && rec.more.is_empty() {
            // The source is not recorded, so the copy cannot be replayed.
            self.found.dropped[DropReason::NotReplayed as usize] += 1;
            return Ok(());
        }
        rec.base.absent = key.state == Presence::Absent
            || key.state == Presence::Unknown && seen == Evidence::Missing;
        if creates(rec.base.op) {
            self.found.changes_population = true;
            self.written(key, rec);
            if seen != Evidence::Missing {
                key.state = Presence::Exists;
                (key.size, key.source) = (rec.base.size.max(0) as u64, SizeOrigin::Key);
            }
        } else if deletes(rec.base.op) {
            self.found.changes_population = true;
            key.state = Presence::Absent;
        } else if reads(rec.base.op) {
            if rec.base.absent && seen == Evidence::There {
                match self.options.ambiguous {
                    Ambiguous::Drop => {
                        self.found.dropped[DropReason::Ambiguous as usize] += 1;
                        return Ok(());
                    }
                    Ambiguous::Insert => self.insert(key, rec, out)?,
                }
            }
            self.read_size(key, rec);
        } else if rec.base.op == TraceOp::MpuPart {
            self.size_of(key, rec);
        }
        self.out.push(out, rec)
    }

    /// Adds the object to the preload list at its first request in the window.
    fn place_preload(
        &mut self,
        key: &mut KeyHistory,
        rec: &NamedRecord,
        inside: bool,
    ) -> Result<(), TraceError> {
        if !key.preload || !inside {
            return Ok(());
        }
        key.preload = false;
        if key.source == SizeOrigin::None {
            // The key is only the source of a copy, so its size has not been guessed yet.
            self.guess(&rec.key_id, key);
            self.no_size |= key.source == SizeOrigin::None;
        }
        let mut object = rec.clone();
        object.ghost = false;
        object.more.clear();
        let r = &mut object.base;
        (r.op, r.ts_ns, r.size, r.off, r.len) = (TraceOp::Put, 0, key.size as i64, 0, -1);
        (r.status, r.dur_ns, r.repeat, r.absent) = (0, -1, 1, false);
        self.found.preload_objects += 1;
        self.found.preload_bytes += key.size;
        self.out.push(&mut self.preload, &object)
    }

    /// Inserts a write of the object before a read that no record explains.
    fn insert(
        &mut self,
        key: &mut KeyHistory,
        rec: &mut NamedRecord,
        out: &mut Stream,
    ) -> Result<(), TraceError> {
        let mut write = rec.clone();
        let r = &mut write.base;
        if r.size < 0 {
            r.size = key.size as i64;
        }
        (r.op, r.off, r.len) = (TraceOp::Put, 0, -1);
        (r.status, r.dur_ns, r.repeat, r.absent) = (0, -1, 1, false);
        self.found.inserted += 1;
        key.state = Presence::Exists;
        (key.size, key.source) = (r.size as u64, SizeOrigin::Key);
        rec.base.absent = false;
        self.out.push(out, &write)
    }

    fn count(&mut self, source: SizeOrigin) {
        let sizes = &mut self.found.sizes;
        let counter = match source {
            SizeOrigin::Record => &mut sizes.record,
            SizeOrigin::Key => &mut sizes.key,
            SizeOrigin::Extent => &mut sizes.extent,
            SizeOrigin::Sent => &mut sizes.sent,
            SizeOrigin::Drawn => &mut sizes.drawn,
            SizeOrigin::Default => &mut sizes.default,
            SizeOrigin::None => {
                self.no_size = true;
                return;
            }
        };
        *counter += 1;
    }

    /// Completes the size of a write.
    fn written(&mut self, key: &mut KeyHistory, rec: &mut NamedRecord) {
        let own = self.size_of(key, rec);
        let r = &mut rec.base;
        if r.op == TraceOp::MpuComplete
            && let Some(at) = key.uploads.iter().position(|open| open.0 == r.upload)
        {
            r.len = key.uploads[at].2 as i64;
            key.uploads.remove(at);
        }
        if own > 0 {
            r.size = own as i64 - 1;
            self.count(SizeOrigin::Record);
        } else if r.op != TraceOp::Copy {
            r.size = key.size as i64;
            self.count(key.source);
        }
    }

    /// Completes size and range of a read.
    fn read_size(&mut self, key: &mut KeyHistory, rec: &mut NamedRecord) {
        let r = &mut rec.base;
        let mut source = SizeOrigin::Record;
        if r.size < 0 {
            if key.source != SizeOrigin::Key && r.op == TraceOp::Get && r.len < 0 && rec.sent >= 0 {
                (r.size, source) = (rec.sent, SizeOrigin::Sent);
            } else {
                (r.size, source) = (key.size as i64, key.source);
            }
        }
        self.count(source);
        let r = &mut rec.base;
        if r.op != TraceOp::Get || r.len < 0 && r.off == 0 {
            return;
        }
        if r.off < 0 {
            self.place_range(key, rec);
        }
        let r = &mut rec.base;
        if r.off >= r.size || r.len >= 0 && r.off.saturating_add(r.len) > r.size {
            self.found.clamped += 1;
            if r.off >= r.size {
                r.off = 0;
            }
            r.len = r.len.min(r.size - r.off);
        }
    }

    /// Chooses the position of a range of which only the length is known.
    fn place_range(&self, key: &mut KeyHistory, rec: &mut NamedRecord) {
        const ALIGN: u64 = 4096;
        let (size, len) = (rec.base.size.max(0) as u64, rec.base.len.max(0) as u64);
        let room = size.saturating_sub(len);
        rec.base.off = match self.options.ranges {
            RangePlacement::Head => 0,
            RangePlacement::Uniform => {
                let hash = mix64(first64(&rec.key_id) ^ rec.base.src ^ self.options.seed << 32);
                (hash % (room / ALIGN + 1) * ALIGN) as i64
            }
            RangePlacement::Sequential => {
                let off = if key.cursor > room { 0 } else { key.cursor };
                key.cursor = off + len;
                off as i64
            }
        };
    }
}
