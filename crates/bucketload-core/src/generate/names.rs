//! Key names as text.
//!
//! ```text
//! {run prefix}{key set prefix}{shard}/{index}      with several shards
//! {run prefix}{key set prefix}{index}              with one
//! {run prefix}{key set prefix}{hash}-{index}       with hashed names
//! {run prefix}{key set prefix}img_{index}_of_{count}.{ending}   as DLIO names files
//!
//! bench-7f3a/r/03/0000000000103
//! bench-7f3a/r/5c1f09aa3e-0000000000103
//! bench-7f3a/train/img_0103_of_1024.npz
//! ```
//!
//! `index` is the object's index in decimal, zero-padded to [`INDEX_DIGITS`] digits (indices of 10^13 and
//! more are longer), so within a shard names sort by index. `hash` is the first ten hexadecimal digits of a
//! hash of the index ([`mix64`]), so the names of consecutive objects are spread evenly over the whole key
//! range. DLIO pads the index to the width of the count. `shard` is `index mod shards`, zero-padded to the width of the largest shard number, at least 2
//! digits. Only digits and `/` are added to the prefixes, so nothing needs escaping in a URL path.

use super::LawError;
use super::rng::mix64;
use crate::op::KeySource;
use crate::plan::{KeyNaming, KeysetPlan};

/// Number of digits to which an index is padded.
pub const INDEX_DIGITS: usize = 13;
/// Number of digits of the hash in hashed names.
pub const HASH_DIGITS: usize = 10;

/// Renders the keys of one key set. Allocates nothing once the buffer is large enough
/// ([`KeyNames::max_len`]).
#[derive(Clone, Debug)]
pub struct KeyNames {
    prefix: Box<str>,
    shards: u64,
    shard_digits: usize,
    count: u64,
    hashed: bool,
    files: Option<Files>,
}

/// Names of files that count up to the number of objects.
#[derive(Clone, Debug)]
struct Files {
    digits: usize,
    /// What follows the index.
    tail: Box<str>,
}

impl Files {
    const HEAD: &str = "img_";

    fn of(keyset: &KeysetPlan) -> Option<Self> {
        let ending = keyset.naming.file_ending()?;
        let count = keyset.count.to_string();
        Some(Self {
            digits: count.len(),
            tail: format!("_of_{count}.{ending}").into(),
        })
    }

    fn index_of(&self, name: &str) -> Option<u64> {
        let digits = name.strip_prefix(Self::HEAD)?.strip_suffix(&*self.tail)?;
        let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
        (plain && digits.len() >= self.digits).then(|| digits.parse().ok())?
    }
}

/// The index of the file called `name`, without its directories, in a key set whose files count up to the number of
/// objects; `None` if the key set gives no such name.
#[must_use]
pub fn file_index(keyset: &KeysetPlan, name: &str) -> Option<u64> {
    Files::of(keyset)?.index_of(name)
}

impl KeyNames {
    /// Names of `keyset` below the run's prefix (which may be empty and otherwise ends with its separator,
    /// such as `bench-7f3a/`).
    ///
    /// # Errors
    /// If the key set has no shards.
    pub fn new(run_prefix: &str, keyset: &KeysetPlan) -> Result<Self, LawError> {
        if keyset.shards == 0 {
            let reason = "is 0, must be at least 1 (1 = keys are not spread over prefixes)";
            return Err(LawError::new("shards", reason));
        }
        let digits = (keyset.shards - 1).checked_ilog10().unwrap_or(0) as usize + 1;
        Ok(Self {
            prefix: format!("{run_prefix}{}", keyset.prefix).into(),
            shards: u64::from(keyset.shards),
            shard_digits: digits.max(2),
            count: keyset.count,
            hashed: keyset.naming == KeyNaming::Hashed,
            files: Files::of(keyset),
        })
    }

    /// Length of the longest name, bytes.
    #[must_use]
    pub fn max_len(&self) -> usize {
        let tail = self.files.as_ref().map_or(0, |files| files.tail.len());
        // A u64 has at most 20 digits.
        tail + self.prefix.len() + self.shard_digits + 1 + HASH_DIGITS + 1 + 20
    }

    /// Writes the name of object `key` into `out`, replacing its contents.
    #[inline]
    pub fn render(&self, key: u64, out: &mut String) {
        if let Some(files) = &self.files {
            return self.render_file(files, key, out);
        }
        let mut text = Digits::new();
        text.push_front(key, INDEX_DIGITS);
        if self.hashed {
            text.push_hash_front(mix64(key));
        }
        self.push_shard_front(key, &mut text);
        out.clear();
        out.push_str(&self.prefix);
        out.push_str(text.as_str());
    }

    /// Not inlined, because few key sets have such names.
    #[inline(never)]
    fn render_file(&self, files: &Files, key: u64, out: &mut String) {
        self.render_prefix(key, out);
        out.push_str(Files::HEAD);
        push_decimal(key, files.digits, out);
        out.push_str(&files.tail);
    }

    /// The index of the object called `name`; `None` if the name does not belong to this key set.
    #[must_use]
    pub fn index_of(&self, name: &str) -> Option<u64> {
        let mut rest = name.strip_prefix(&*self.prefix)?;
        if self.shards > 1 {
            rest = rest.split_once('/')?.1;
        }
        if let Some(files) = &self.files {
            return files.index_of(rest);
        }
        let digits = rest.bytes().all(|byte| byte.is_ascii_digit());
        (digits && rest.len() >= INDEX_DIGITS).then(|| rest.parse().ok())?
    }

    /// Whether two objects have the same prefix ([`KeyNames::render_prefix`]).
    #[must_use]
    pub const fn same_shard(&self, a: u64, b: u64) -> bool {
        a % self.shards == b % self.shards
    }

    /// Writes the common prefix of all names in object `key`'s shard into `out`, replacing its contents. List
    /// operations list this prefix.
    #[inline]
    pub fn render_prefix(&self, key: u64, out: &mut String) {
        let mut text = Digits::new();
        self.push_shard_front(key, &mut text);
        out.clear();
        out.push_str(&self.prefix);
        out.push_str(text.as_str());
    }

    #[inline]
    fn push_shard_front(&self, key: u64, text: &mut Digits) {
        if self.shards > 1 {
            text.push_slash_front();
            text.push_front(key % self.shards, self.shard_digits);
        }
    }

    /// The names for a request about the `n` objects starting at `first` (delete-many). Among initial objects
    /// the range wraps around from the last to the first.
    #[must_use]
    pub const fn batch(&self, first: u64) -> KeyBatch<'_> {
        KeyBatch { names: self, first }
    }
}

/// The keys of a request about several consecutive objects.
#[derive(Clone, Copy, Debug)]
pub struct KeyBatch<'a> {
    names: &'a KeyNames,
    first: u64,
}

impl KeySource for KeyBatch<'_> {
    fn render(&self, i: u64, out: &mut String) {
        let mut key = self.first + i;
        if self.first < self.names.count {
            key %= self.names.count;
        }
        self.names.render(key, out);
    }
}

/// Appends `n` in decimal, zero-padded to `digits`. Allocates nothing once the buffer is large enough.
#[inline]
pub(crate) fn push_decimal(n: u64, digits: usize, out: &mut String) {
    let mut text = Digits::new();
    text.push_front(n, digits);
    out.push_str(text.as_str());
}

/// The decimal digits of 0 to 99.
const PAIRS: &[u8; 200] = b"\
0001020304050607080910111213141516171819\
2021222324252627282930313233343536373839\
4041424344454647484950515253545556575859\
6061626364656667686970717273747576777879\
8081828384858687888990919293949596979899";

/// Digits and slashes, written from back to front.
struct Digits {
    /// Room for two numbers of up to 20 digits, a hash and two separators.
    text: [u8; 64],
    start: usize,
}

impl Digits {
    #[inline]
    fn new() -> Self {
        let text = [b'0'; 64];
        Self {
            start: text.len(),
            text,
        }
    }

    /// Prepends `value` in decimal, zero-padded to `digits`.
    #[inline]
    fn push_front(&mut self, mut value: u64, digits: usize) {
        // The buffer is filled with zeros, so padding only moves the start.
        let padded = self.start - digits;
        while value >= 10 {
            let pair = (value % 100) as usize * 2;
            value /= 100;
            self.start -= 2;
            self.text[self.start..self.start + 2].copy_from_slice(&PAIRS[pair..pair + 2]);
        }
        if value > 0 {
            self.start -= 1;
            self.text[self.start] = b'0' + value as u8;
        }
        self.start = self.start.min(padded);
    }

    /// Prepends the highest hexadecimal digits of `hash` and a dash.
    #[inline]
    fn push_hash_front(&mut self, hash: u64) {
        self.start -= 1;
        self.text[self.start] = b'-';
        for digit in (0..HASH_DIGITS).rev() {
            let value = (hash >> (60 - 4 * digit)) as usize & 15;
            self.start -= 1;
            self.text[self.start] = b"0123456789abcdef"[value];
        }
    }

    #[inline]
    fn push_slash_front(&mut self) {
        self.start -= 1;
        self.text[self.start] = b'/';
    }

    #[inline]
    fn as_str(&self) -> &str {
        // SAFETY: only ASCII digits, letters, dashes and slashes are ever written.
        unsafe { std::str::from_utf8_unchecked(&self.text[self.start..]) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::KeyNames;
    use crate::op::KeySource;
    use crate::plan::{KeyNaming, KeysetPlan, SizeAssign, SizeKind, SizeLaw};

    fn keyset(shards: u32, count: u64) -> KeysetPlan {
        KeysetPlan {
            name: "read".into(),
            prefix: "r/".into(),
            shards,
            count,
            size: SizeLaw {
                law: SizeKind::Const { bytes: 1 },
                min: 1,
                max: 1,
            },
            assign: SizeAssign::Random,
            overwritten: false,
            naming: KeyNaming::Index,
            existing: false,
            buckets: None,
        }
    }

    fn names(shards: u32, count: u64) -> KeyNames {
        KeyNames::new("run-1/", &keyset(shards, count)).unwrap()
    }

    fn name(names: &KeyNames, key: u64) -> String {
        let mut out = "old".to_owned();
        names.render(key, &mut out);
        out
    }

    #[test]
    fn the_documented_format() {
        assert_eq!(name(&names(1, 10), 0), "run-1/r/0000000000000");
        assert_eq!(name(&names(4, 10), 103), "run-1/r/03/0000000000103");
        assert_eq!(name(&names(1000, 10), 999), "run-1/r/999/0000000000999");
        assert_eq!(name(&names(101, 10), 100), "run-1/r/100/0000000000100");
        let mut out = String::new();
        names(4, 10).render_prefix(7, &mut out);
        assert_eq!(out, "run-1/r/03/");
        names(1, 10).render_prefix(7, &mut out);
        assert_eq!(out, "run-1/r/");
    }

    #[test]
    fn hashed_names_are_spread_and_keep_their_index() {
        let hashed = KeyNames {
            hashed: true,
            ..names(1, 10)
        };
        let all: Vec<String> = (0..1600).map(|key| name(&hashed, key)).collect();
        let mut first = [0u32; 16];
        for (key, text) in all.iter().enumerate() {
            let (hash, index) = text["run-1/r/".len()..].split_once('-').unwrap();
            assert_eq!((hash.len(), index.parse::<usize>().unwrap()), (10, key));
            assert!(text.len() <= hashed.max_len());
            first[usize::from_str_radix(&hash[..1], 16).unwrap()] += 1;
        }
        // Binomial(1600, 1/16): 100 ± 4 · 9.7.
        assert!(first.iter().all(|n| (61..=139).contains(n)), "{first:?}");
    }

    /// The format of docs/spec/ai-training.md section 3.
    #[test]
    fn files_count_up_to_the_number_of_objects() {
        let of = |shards, count| {
            let keyset = KeysetPlan {
                naming: KeyNaming::DlioNpz,
                prefix: "train/".into(),
                ..keyset(shards, count)
            };
            KeyNames::new("run-1/", &keyset).unwrap()
        };
        assert_eq!(name(&of(1, 168), 7), "run-1/train/img_007_of_168.npz");
        let names = of(4, 7200);
        assert_eq!(name(&names, 1234), "run-1/train/02/img_1234_of_7200.npz");
        for key in [0, 1, 99, 7199] {
            let text = name(&names, key);
            assert_eq!(names.index_of(&text), Some(key));
            assert!(text.len() <= names.max_len());
            assert_eq!(names.index_of(&text.replace("npz", "npy")), None);
        }
    }

    #[test]
    fn a_batch_wraps_around_among_initial_objects_only() {
        let names = names(1, 10);
        let mut out = String::new();
        names.batch(8).render(3, &mut out);
        assert_eq!(out, "run-1/r/0000000000001");
        names.batch(12).render(3, &mut out);
        assert_eq!(out, "run-1/r/0000000000015");
    }

    proptest! {
        #[test]
        fn names_are_padded_decimals_within_the_stated_length(key in any::<u64>(), shift in 0u32..64, shards in 1u32..2000) {
            let key = key >> shift;
            let names = names(shards, 10);
            let text = name(&names, key);
            prop_assert!(text.ends_with(&format!("/{key:013}")), "{text} {key}");
            prop_assert!(text.len() <= names.max_len());
            prop_assert_eq!(names.index_of(&text), Some(key));
            prop_assert_eq!(names.index_of(&text[1..]), None);
            if shards > 1 {
                let width = (shards - 1).to_string().len().max(2);
                prop_assert_eq!(text, format!("run-1/r/{:0width$}/{key:013}", key % u64::from(shards)));
            }
        }
    }
}
