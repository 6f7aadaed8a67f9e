//! The hash in IO500's files. It detects typing errors and protects against nothing else
//! (docs/spec/io500-mdworkbench.md section A.5).

use super::Group;
use super::score::{PhaseScore, Scores};

/// A hash over pairs that does not depend on their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PairHash(u32);

impl PairHash {
    /// Adds a pair: per character of key and value, rotate left by 2 and add.
    pub fn add(&mut self, key: &str, value: &str) {
        let bytes = key.bytes().chain(value.bytes());
        let pair = bytes.fold(0u32, |hash, byte| {
            hash.rotate_left(2).wrapping_add(u32::from(byte))
        });
        self.0 ^= pair;
    }
}

impl std::fmt::Display for PairHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:X}", self.0)
    }
}

/// The hash of a result: over version, scored phases, and scores.
#[must_use]
pub fn of_scores(version: &str, phases: &[PhaseScore], scores: &Scores) -> PairHash {
    let scored = phases.iter().filter(|phase| phase.group() != Group::None);
    let pairs = scored.map(|phase| (phase.name.as_str(), format!("{:.6}", phase.score)));
    of_pairs(
        version,
        pairs,
        [
            format!("{:.6}", scores.md),
            format!("{:.6}", scores.bw),
            format!("{:.6}", scores.total),
        ],
        scores.valid,
    )
}

/// The same hash from the texts in a file.
pub fn of_pairs<'a>(
    version: &str,
    phases: impl Iterator<Item = (&'a str, String)>,
    [md, bw, total]: [String; 3],
    valid: bool,
) -> PairHash {
    let mut hash = PairHash::default();
    hash.add("version", version);
    phases.for_each(|(name, score)| hash.add(name, &score));
    hash.add("MD", &md);
    hash.add("BW", &bw);
    hash.add("SCORE", &total);
    if !valid {
        hash.add("valid", "NO");
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::PairHash;

    #[test]
    fn a_pair_is_hashed_from_zero_and_order_does_not_matter() {
        let of = |pairs: &[(&str, &str)]| {
            let mut hash = PairHash::default();
            pairs.iter().for_each(|(key, value)| hash.add(key, value));
            hash.to_string()
        };
        // 'a' = 0x61; then rotl(0x61, 2) + 'b' = 0x184 + 0x62.
        assert_eq!(of(&[("a", "")]), "61");
        assert_eq!(of(&[("a", "b")]), "1E6");
        assert_eq!(of(&[("ab", "")]), "1E6");
        assert_eq!(of(&[("a", "1"), ("b", "2")]), of(&[("b", "2"), ("a", "1")]));
        assert_ne!(of(&[("a", "1")]), of(&[("a", "2")]));
    }
}
