//! Small mutations of the sample workloads.

use std::path::Path;

/// Texts to insert: elements of the grammar, and numbers at its limits.
const PIECES: [&str; 30] = [
    "<",
    ">",
    "/>",
    "\"",
    "=",
    ";",
    "${",
    "}",
    "(",
    ")",
    ",",
    "|",
    "0",
    "-1",
    "2147483647",
    "2147483648",
    "99999999999999999999",
    "c(1)",
    "u(1,2)",
    "r(0,0)",
    "s(2,1)",
    "h(1|2|3)",
    "KB",
    "TB",
    "type=\"",
    "ratio=\"",
    "<work>",
    "</workflow>",
    "&#0;",
    "\u{0}",
];

/// The sample workloads.
pub(crate) fn seeds() -> Vec<String> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples");
    let mut names: Vec<_> = std::fs::read_dir(dir)
        .expect("the samples exist")
        .map(|entry| entry.expect("a sample").path())
        .collect();
    names.sort();
    let read = |path| std::fs::read_to_string(path).expect("a sample is text");
    names.into_iter().map(read).collect()
}

/// Creates mutated texts (SplitMix64; Steele, Lea, Flood 2014).
pub(crate) struct Mutator(u64);

impl Mutator {
    /// The mutator for `seed`.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n.max(1) as u64) as usize
    }

    /// A text with one to four changes.
    pub(crate) fn next(&mut self, seeds: &[String]) -> String {
        let mut text: Vec<char> = seeds[self.below(seeds.len())].chars().collect();
        for _ in 0..=self.below(4) {
            let at = self.below(text.len() + 1);
            let end = (at + self.below(12)).min(text.len());
            match self.below(4) {
                0 => drop(text.drain(at..end)),
                1 => {
                    let piece = PIECES[self.below(PIECES.len())];
                    text.splice(at..at, piece.chars());
                }
                2 => {
                    let piece = PIECES[self.below(PIECES.len())];
                    text.splice(at..end, piece.chars());
                }
                _ => {
                    let copy: Vec<char> = text[at..end].to_vec();
                    let to = self.below(text.len() + 1);
                    text.splice(to..to, copy);
                }
            }
        }
        text.into_iter().collect()
    }
}
