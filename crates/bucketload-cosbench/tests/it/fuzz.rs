//! No input makes the parser panic: mutated samples, and text from their alphabet. The example `fuzz` runs
//! the same for longer.

#[path = "../../examples/fuzz/mutate.rs"]
mod mutate;

use bucketload_cosbench::{parse, workload_config};
use mutate::{Mutator, seeds};
use proptest::prelude::*;

#[test]
fn changed_samples_never_panic() {
    let seeds = seeds();
    assert!(seeds.len() > 20);
    let mut mutator = Mutator::new(1);
    let mut accepted = 0;
    for _ in 0..3_000 {
        let text = mutator.next(&seeds);
        if let Ok(parsed) = parse(&text) {
            accepted += 1;
            let _ = workload_config(&parsed.workload, true);
        }
    }
    // Mutations that leave a valid workload are intended.
    assert!(accepted > 30, "{accepted}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// An accepted workload is accepted again in its expanded form.
    #[test]
    fn expanded_workloads_are_workloads(seed in any::<u64>()) {
        let text = Mutator::new(seed).next(&seeds());
        if let Ok(parsed) = parse(&text) {
            let expanded = workload_config(&parsed.workload, false);
            let again = parse(&expanded);
            prop_assert!(again.is_ok(), "{text}\n{expanded}\n{again:?}");
        }
    }

    #[test]
    fn rejections_have_a_location(text in "[<>/\"= a-z0-9;(),|]{0,80}") {
        if let Err(refused) = parse(&text) {
            prop_assert!(refused.location.line > 0, "{refused}");
        }
    }
}
