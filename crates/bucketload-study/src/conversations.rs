//! The trace of studies with a cache of a language model: conversations, in Mooncake's format.
//!
//! 120 people talk with a model for five minutes, ten turns each. Five system prompts of four blocks are shared by
//! 24 people each; every turn repeats what was said before and adds one block, or two in every other turn. So the
//! answer is known: of 14,400 blocks, 1,820 are distinct, and all others are hits of a cache without limits.

use std::fmt::Write as _;

use bucketload_core::generate::rng::mix64;

/// Its name in studies.
pub const NAME: &str = "conversations";
/// Its file in a study's directory.
pub const FILE: &str = "conversations.jsonl";

const PEOPLE: u64 = 120;
const TURNS: u64 = 10;
const PROMPTS: u64 = 5;
const PROMPT_BLOCKS: u64 = 4;
const BLOCK_TOKENS: u64 = 512;
/// Between two turns of a person, milliseconds.
const PAUSE_MS: u64 = 30_000;

/// Blocks that a person has added by the end of turn number `turn`, counted from 0.
const fn added(turn: u64) -> u64 {
    turn + 1 + turn.div_ceil(2)
}

/// The trace as JSON lines, by time; always the same.
#[must_use]
pub fn trace() -> String {
    let mut requests = Vec::new();
    for person in 0..PEOPLE {
        // People begin within the first pause, at instants that are no pattern.
        let begin = mix64(person) % PAUSE_MS;
        let requests_of = (0..TURNS).map(|turn| (begin + turn * PAUSE_MS, person, turn));
        requests.extend(requests_of);
    }
    requests.sort_unstable();
    let mut out = String::new();
    for (at_ms, person, turn) in requests {
        let prompt = (person % PROMPTS) * PROMPT_BLOCKS;
        let own = PROMPTS * PROMPT_BLOCKS + person * added(TURNS - 1);
        let blocks = (prompt..prompt + PROMPT_BLOCKS).chain(own..own + added(turn));
        let ids: Vec<String> = blocks.map(|block| block.to_string()).collect();
        let tokens = ids.len() as u64 * BLOCK_TOKENS;
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "{{\"timestamp\": {at_ms}, \"input_length\": {tokens}, \"output_length\": 256, \"hash_ids\": [{}]}}",
            ids.join(", ")
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    #[test]
    fn the_answer_is_known() {
        let (mut listed, mut requests, mut last) = (0, 0, 0);
        let mut distinct = BTreeSet::new();
        for line in super::trace().lines() {
            let request: serde_json::Value = serde_json::from_str(line).unwrap();
            let at = request["timestamp"].as_u64().unwrap();
            assert!(at >= last && at < 330_000);
            last = at;
            let ids = request["hash_ids"].as_array().unwrap();
            assert_eq!(request["input_length"], ids.len() as u64 * 512);
            requests += 1;
            listed += ids.len();
            distinct.extend(ids.iter().map(|id| id.as_u64().unwrap()));
        }
        assert_eq!((requests, listed, distinct.len()), (1200, 14_400, 1820));
    }
}
