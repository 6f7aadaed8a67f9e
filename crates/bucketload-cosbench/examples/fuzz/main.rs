//! Parses ten million mutated samples, or the number given by the first argument; none may panic.
//!
//! ```text
//! cargo run --release -p bucketload-cosbench --example fuzz [INPUTS] [SEED]
//! ```

mod mutate;

use std::time::Instant;

use bucketload_cosbench::parse;
use mutate::{Mutator, seeds};

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u64>());
    let mut next = |default| arguments.next().and_then(Result::ok).unwrap_or(default);
    let (inputs, seed) = (next(10_000_000), next(1));
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get) as u64;
    let begun = Instant::now();
    let accepted: u64 = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|thread| {
                scope.spawn(move || {
                    let seeds = seeds();
                    let mut mutator = Mutator::new(seed + thread);
                    let share = inputs / threads + u64::from(thread < inputs % threads);
                    (0..share)
                        .filter(|_| parse(&mutator.next(&seeds)).is_ok())
                        .count() as u64
                })
            })
            .collect();
        workers
            .into_iter()
            .map(|worker| worker.join().expect("no input panics"))
            .sum()
    });
    println!(
        "{inputs} inputs in {:.0} s, {accepted} of them workloads, none panicked",
        begun.elapsed().as_secs_f64()
    );
}
