//! A record during preparation, and its binary form: variable-length integers, so a typical record takes some 30
//! bytes plus its key.

use bucketload_core::trace::{TraceOp, TraceRecord, key_hash};

/// A record with its key names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedRecord {
    /// The canonical fields.
    pub(crate) base: TraceRecord,
    /// The key, exactly as recorded.
    pub(crate) key: Vec<u8>,
    /// Further keys: the source of a copy, the rest of a multi-object delete.
    pub(crate) more: Vec<Vec<u8>>,
    /// Whether the trace creates, overwrites or deletes the object, or copies from it.
    pub(crate) changed: bool,
    /// Identity of the key: hash of bucket name and key.
    pub(crate) key_id: [u8; 16],
    /// Number of body bytes in the response; -1 unknown.
    pub(crate) sent: i64,
    /// Hash of the log's request id; 0 for none.
    pub(crate) id: u64,
    /// Whether this is only evidence that the source of a copy existed.
    pub(crate) ghost: bool,
}

impl Default for NamedRecord {
    fn default() -> Self {
        Self {
            base: TraceRecord::default(),
            key: Vec::new(),
            more: Vec::new(),
            changed: false,
            key_id: [0; 16],
            sent: -1,
            id: 0,
            ghost: false,
        }
    }
}

const GHOST: u8 = 1;
const ABSENT: u8 = 2;
/// The fields that only the preparation needs follow.
const INNER: u8 = 4;
const CHANGED: u8 = 8;

impl NamedRecord {
    /// The sort key: instant, line, and the position within a line that has several records.
    pub(crate) fn order(&self) -> (i64, u64) {
        let base = &self.base;
        (base.ts_ns, base.src << 16 | u64::from(base.part))
    }

    /// Appends the binary form; with `inner`, including the fields that only the preparation needs.
    pub(crate) fn encode(&self, inner: bool, out: &mut Vec<u8>) {
        let r = &self.base;
        let flags = if self.ghost { GHOST } else { 0 }
            | if r.absent { ABSENT } else { 0 }
            | if self.changed { CHANGED } else { 0 }
            | if inner { INNER } else { 0 };
        out.push(flags);
        out.push(r.op as u8);
        put_signed(r.ts_ns, out);
        for value in [
            u64::from(r.bucket),
            u64::from(r.client),
            u64::from(r.status),
            u64::from(r.part),
            r.upload,
            u64::from(r.repeat),
            r.src,
        ] {
            put(value, out);
        }
        for value in [r.size, r.off, r.len, r.dur_ns] {
            put_signed(value, out);
        }
        put(self.key.len() as u64, out);
        out.extend_from_slice(&self.key);
        put(self.more.len() as u64, out);
        for key in &self.more {
            put(key.len() as u64, out);
            out.extend_from_slice(key);
        }
        if inner {
            out.extend_from_slice(&self.key_id);
            put_signed(self.sent, out);
            put(self.id, out);
        }
    }

    /// Decodes the binary form from the front of `input` and advances it. `None` if it is damaged.
    pub(crate) fn decode(&mut self, input: &mut &[u8]) -> Option<()> {
        let (flags, op) = (byte(input)?, byte(input)?);
        let r = &mut self.base;
        r.op = TraceOp::from_number(op)?;
        r.ts_ns = get_signed(input)?;
        r.bucket = get(input)?.try_into().ok()?;
        r.client = get(input)?.try_into().ok()?;
        r.status = get(input)?.try_into().ok()?;
        r.part = get(input)?.try_into().ok()?;
        r.upload = get(input)?;
        r.repeat = get(input)?.try_into().ok()?;
        r.src = get(input)?;
        for value in [&mut r.size, &mut r.off, &mut r.len, &mut r.dur_ns] {
            *value = get_signed(input)?;
        }
        r.absent = flags & ABSENT != 0;
        r.lap = 0;
        name(input, &mut self.key)?;
        let more = usize::try_from(get(input)?).ok()?;
        // Each key takes at least one byte for its length, so more keys than bytes mean damage.
        if more > input.len() {
            return None;
        }
        self.more.clear();
        for _ in 0..more {
            let mut key = Vec::new();
            name(input, &mut key)?;
            self.more.push(key);
        }
        self.base.key_hash = key_hash(self.base.bucket, &self.key);
        self.ghost = flags & GHOST != 0;
        self.changed = flags & CHANGED != 0;
        (self.key_id, self.sent, self.id) = ([0; 16], -1, 0);
        if flags & INNER != 0 {
            let (id, rest) = input.split_first_chunk::<16>()?;
            self.key_id = *id;
            *input = rest;
            self.sent = get_signed(input)?;
            self.id = get(input)?;
        }
        Some(())
    }
}

fn byte(input: &mut &[u8]) -> Option<u8> {
    let (&first, rest) = input.split_first()?;
    *input = rest;
    Some(first)
}

fn name(input: &mut &[u8], out: &mut Vec<u8>) -> Option<()> {
    let len = usize::try_from(get(input)?).ok()?;
    let (name, rest) = input.split_at_checked(len)?;
    out.clear();
    out.extend_from_slice(name);
    *input = rest;
    Some(())
}

/// Seven bits per byte, lowest first; a set high bit means that more bytes follow (LEB128).
pub(crate) fn put(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

pub(crate) fn get(input: &mut &[u8]) -> Option<u64> {
    let (mut value, mut shift) = (0u64, 0);
    loop {
        let byte = byte(input)?;
        if shift == 63 && byte > 1 {
            return None;
        }
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
        shift += 7;
    }
}

/// Zigzag encoding: small magnitudes of either sign are short.
fn put_signed(value: i64, out: &mut Vec<u8>) {
    put(((value << 1) ^ (value >> 63)) as u64, out);
}

fn get_signed(input: &mut &[u8]) -> Option<i64> {
    let value = get(input)?;
    Some((value >> 1) as i64 ^ -((value & 1) as i64))
}

#[cfg(test)]
mod tests {
    use bucketload_core::trace::{TraceOp, TraceRecord, key_hash};
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::NamedRecord;

    prop_compose! {
        fn records()(
            op in 0u8..12, numbers in any::<[i64; 5]>(), small in any::<[u32; 3]>(),
            status in any::<u16>(), part in any::<u16>(), big in any::<[u64; 3]>(),
            key in vec(any::<u8>(), 0..40), more in vec(vec(any::<u8>(), 0..9), 0..4),
            flags in any::<[bool; 3]>(), key_id in any::<[u8; 16]>(), sent in any::<i64>(),
        ) -> NamedRecord {
            let [ts_ns, size, off, len, dur_ns] = numbers;
            let base = TraceRecord {
                ts_ns, op: TraceOp::ALL[usize::from(op)], bucket: small[0], size, off, len,
                client: small[1], status, dur_ns, part, upload: big[0], repeat: small[2],
                src: big[1], lap: 0, absent: flags[0], key_hash: key_hash(small[0], &key),
            };
            NamedRecord { base, key, more, key_id, sent, id: big[2], ghost: flags[1], changed: flags[2] }
        }
    }

    proptest! {
        #[test]
        fn encoding_is_reversible(rec in records(), inner in any::<bool>()) {
            let mut bytes = Vec::new();
            rec.encode(inner, &mut bytes);
            let mut input = &bytes[..];
            let mut back = NamedRecord::default();
            prop_assert!(back.decode(&mut input).is_some());
            prop_assert!(input.is_empty());
            let mut expected = rec.clone();
            if !inner {
                (expected.key_id, expected.sent, expected.id) = ([0; 16], -1, 0);
            }
            prop_assert_eq!(back, expected);
            for cut in 0..bytes.len() {
                prop_assert!(NamedRecord::default().decode(&mut &bytes[..cut]).is_none());
            }
        }

        #[test]
        fn arbitrary_bytes_do_not_panic(bytes in vec(any::<u8>(), 0..200)) {
            let mut input = &bytes[..];
            let mut rec = NamedRecord::default();
            while !input.is_empty() && rec.decode(&mut input).is_some() {}
        }
    }
}
