//! Everything known about one operation, for the operation log and the list of the slowest requests.

use crate::driver::RequestRoute;
use crate::op::Op;
use crate::record::{AnswerIds, OpRecord, Probe};

/// Longest key that a [`KeyText`] keeps whole, bytes.
const KEY_BYTES: usize = 192;

/// A key in a fixed amount of memory. Longer keys are cut off.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct KeyText {
    len: u16,
    bytes: [u8; KEY_BYTES],
}

impl std::fmt::Debug for KeyText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.text())
    }
}

impl KeyText {
    /// Keeps the first 192 bytes of `key`.
    #[must_use]
    pub fn new(key: &str) -> Self {
        let mut bytes = [0; KEY_BYTES];
        let kept = key.len().min(KEY_BYTES);
        bytes[..kept].copy_from_slice(&key.as_bytes()[..kept]);
        Self {
            // S3 allows 1024 bytes. The exact length of a cut key does not matter.
            len: u16::try_from(key.len()).unwrap_or(u16::MAX),
            bytes,
        }
    }

    /// The key. If it was cut off, it ends in an ellipsis.
    #[must_use]
    pub fn text(&self) -> String {
        let whole = usize::from(self.len) <= KEY_BYTES;
        let kept = &self.bytes[..usize::from(self.len).min(KEY_BYTES)];
        if whole {
            return String::from_utf8_lossy(kept).into_owned();
        }
        // The cut may have split a character.
        let mut text = String::from_utf8_lossy(kept).into_owned();
        text.truncate(text.trim_end_matches('\u{fffd}').len());
        text.push('…');
        text
    }
}

/// Everything known about one operation except its names, as a plain value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trail {
    /// Its times and outcome.
    pub record: OpRecord,
    /// What was to be done.
    pub op: Op,
    /// Where its last request went.
    pub route: RequestRoute,
    /// Status of the last answer; 0 if there was none or the API has no statuses.
    pub status: u16,
    /// The store's identifiers of the request; empty if they were not kept.
    pub ids: AnswerIds,
}

impl Trail {
    /// The trail of an operation that `probe` has observed.
    #[must_use]
    pub fn new(record: &OpRecord, op: &Op, route: RequestRoute, probe: &Probe) -> Self {
        Self {
            record: *record,
            op: *op,
            route,
            status: probe.status(),
            ids: probe.ids().copied().unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::KeyText;

    #[test]
    fn long_keys_are_cut_off() {
        for key in ["", "a/b", &"k".repeat(192)] {
            assert_eq!(KeyText::new(key).text(), key);
        }
        let long = KeyText::new(&"k".repeat(193)).text();
        assert_eq!(long, "k".repeat(192) + "…");
        let cut = KeyText::new(&("k".repeat(191) + "äb")).text();
        assert_eq!(cut, "k".repeat(191) + "…");
    }
}
