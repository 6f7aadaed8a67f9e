//! The hash in IO500's files. It detects typing errors and protects against nothing else
//! (docs/spec/io500-mdworkbench.md section A.5).

use super::Group;
use super::score::{PhaseScore, Scores};

/// A hash over pairs that does not depend on their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PairHash(u32);

impl PairHash {
    /// Adds a pair: per character of key and value, rotate left by 2 and add. Characters are signed, as in C on x86.
    pub fn add(&mut self, key: &str, value: &str) {
        let bytes = key.bytes().chain(value.bytes());
        let pair = bytes.fold(0u32, |hash, byte| {
            hash.rotate_left(2)
                .wrapping_add_signed(i32::from(byte as i8))
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
    let mut hash = PairHash::default();
    hash.add("version", version);
    hash.add_result(scored.map(figure), figures(scores), scores.valid);
    hash
}

/// The hash of the extended score: over the scored phases of the extended mode alone, and scores.
#[must_use]
pub fn of_extended(phases: &[PhaseScore], scores: &Scores) -> PairHash {
    let scored = phases
        .iter()
        .filter(|phase| phase.group() == Group::None && phase.extended_group() != Group::None);
    let mut hash = PairHash::default();
    hash.add_result(scored.map(figure), figures(scores), scores.valid);
    hash
}

fn figure(phase: &PhaseScore) -> (&str, String) {
    (phase.name.as_str(), format!("{:.6}", phase.score))
}

fn figures(scores: &Scores) -> [String; 3] {
    [scores.md, scores.bw, scores.total].map(|score| format!("{score:.6}"))
}

impl PairHash {
    /// Adds phases with the texts of their scores, the texts of MD, BW and total, and whether the result is valid.
    pub fn add_result<'a>(
        &mut self,
        phases: impl Iterator<Item = (&'a str, String)>,
        [md, bw, total]: [String; 3],
        valid: bool,
    ) {
        phases.for_each(|(name, score)| self.add(name, &score));
        self.add("MD", &md);
        self.add("BW", &bw);
        self.add("SCORE", &total);
        if !valid {
            self.add("valid", "NO");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{PairHash, PhaseScore, Scores, of_extended};
    use crate::io500::phases;

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
        // U+00E4 is C3 A4: -61, then -61 * 4 + 3 (the upper bits come round) - 92.
        assert_eq!(of(&[("\u{e4}", "")]), "FFFFFEB3");
    }

    /// The hash that IO500 wrote below the scores of its extended mode.
    #[test]
    fn the_extended_score_has_a_hash_of_its_own() {
        let text = include_str!("../../tests/io500/extended/result.txt");
        let value = |section: &str, key: &str| {
            let section = text.split_once(&format!("[{section}]\n")).unwrap().1;
            let mut pairs = section.lines().filter_map(|line| line.split_once(" = "));
            pairs
                .find(|(name, _)| name.trim() == key)
                .unwrap()
                .1
                .to_owned()
        };
        let number = |section: &str, key: &str| -> f64 {
            let value = value(section, key);
            value.trim_end_matches(" [INVALID]").parse().unwrap()
        };
        let phases: Vec<PhaseScore> = phases(true)
            .iter()
            .filter(|phase| phase.name != "timestamp")
            .map(|phase| PhaseScore {
                name: phase.name.to_owned(),
                score: number(phase.name, "score"),
                ..PhaseScore::default()
            })
            .collect();
        let scores = Scores {
            md: number("SCOREX", "MD"),
            bw: number("SCOREX", "BW"),
            total: number("SCOREX", "SCORE"),
            valid: false,
        };
        let hash = of_extended(&phases, &scores).to_string();
        assert_eq!(hash, value("SCOREX", "hash"));
    }
}
