//! Reads a sample of a data set and compares every byte.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use bucketload_core::driver::{AnyDriver, AnySession};
use bucketload_core::error::OpError;
use bucketload_core::generate::rng::mix64;
use bucketload_core::op::{Op, OpClass, Request};
use bucketload_core::plan::PhaseKind;
use bucketload_core::record::Probe;
use tokio::task::JoinSet;

use super::journal::Journal;
use super::keyset;
use crate::clock::now_ns;
use crate::error::RunError;
use crate::names::Names;
use crate::ownership::{open_control, timed};
use crate::phase::RunContext;
use crate::source::{Source, content};

/// Most reads under way at the same time.
const PARALLEL: u64 = 16;
/// Most attempts of each read.
const ATTEMPTS: u32 = 3;
/// Wrong objects that the error names.
const NAMED: usize = 5;

/// The objects to read, and what is known of them so far.
struct Sample {
    sources: Vec<(usize, Source)>,
    journal: Journal,
    count: u64,
    /// Objects that are there.
    there: u64,
    seed: u64,
    next: Cell<u64>,
    wrong: Cell<u64>,
    named: RefCell<Vec<String>>,
}

/// The number of the object that sample `n` of `count` draws from `there` objects: one of each of `count` equal parts.
fn draw(seed: u64, n: u64, count: u64, there: u64) -> u64 {
    let edge = |n: u64| (u128::from(there) * u128::from(n) / u128::from(count)) as u64;
    let (first, end) = (edge(n), edge(n + 1));
    first + mix64(seed ^ mix64(n)) % (end - first)
}

/// Reads `count` of the objects that the journal says are there, or all if they are fewer. Returns how many were read.
pub(super) async fn check(
    driver: &AnyDriver,
    context: &RunContext<'_>,
    journal: &Journal,
    count: u64,
) -> Result<u64, RunError> {
    let (plan, options) = (&context.plan, context.options);
    let mut sources = Vec::new();
    for (index, phase) in plan.phases.iter().enumerate() {
        if phase.kind == PhaseKind::Prepare {
            sources.push((keyset(phase), Source::new(plan, index, 0, options, 1)?));
        }
    }
    let there = journal.keysets.iter().map(|set| set.filled()).sum();
    let sample = Rc::new(Sample {
        sources,
        journal: journal.clone(),
        count: count.min(there),
        there,
        seed: mix64(plan.seed),
        next: Cell::new(0),
        wrong: Cell::new(0),
        named: RefCell::default(),
    });
    let mut readers = JoinSet::new();
    for _ in 0..PARALLEL.min(sample.count) {
        let mut session = open_control(driver, plan)
            .await
            .map_err(RunError::Unreachable)?;
        let (sample, plan) = (Rc::clone(&sample), Arc::clone(plan));
        let (arena, bucket) = (Arc::clone(&context.arena), options.bucket.clone());
        readers.spawn_local(async move {
            while sample.next.get() < sample.count {
                let n = sample.next.replace(sample.next.get() + 1);
                let (op, key) = sample.object(n);
                let mut request = Request::new(&op, &bucket, &key);
                request.content = content(&arena, &op);
                request.verify = true;
                if let Err(error) = read(&mut session, &request, plan.timeout_ns).await {
                    sample.wrong.set(sample.wrong.get() + 1);
                    let mut named = sample.named.borrow_mut();
                    if named.len() < NAMED {
                        named.push(format!("`{key}`: {error}"));
                    }
                }
            }
        });
    }
    while let Some(ended) = readers.join_next().await {
        if let Err(error) = ended
            && error.is_panic()
        {
            std::panic::resume_unwind(error.into_panic());
        }
    }
    match sample.wrong.get() {
        0 => Ok(sample.count),
        wrong => Err(RunError::Altered {
            wrong,
            read: sample.count,
            named: sample.named.borrow().join("; "),
        }),
    }
}

impl Sample {
    /// The operation that reads sample `n`, and the object's name.
    fn object(&self, n: u64) -> (Op, String) {
        let mut left = draw(self.seed, n, self.count, self.there);
        for set in &self.journal.keysets {
            for &(first, end) in &set.done {
                if left >= end - first {
                    left -= end - first;
                    continue;
                }
                let index = first + left;
                let mut sources = self.sources.iter();
                let source = sources.find(|(keyset, _)| *keyset == set.keyset);
                let (_, source) = source.expect("every key set of the journal is prepared");
                let written = source.op_on(0, index, index);
                let mut names = Names::with_capacity(source.max_key_len());
                source.render(&written, &mut names);
                let op = Op {
                    class: OpClass::Get,
                    range: None,
                    ..written
                };
                return (op, names.key().to_owned());
            }
        }
        unreachable!("every number below the sum of the ranges lies in one")
    }
}

/// Reads and compares an object, again if the failure may pass.
async fn read(
    session: &mut AnySession,
    request: &Request<'_>,
    timeout_ns: u64,
) -> Result<(), OpError> {
    let mut probe = Probe::new(now_ns);
    for _ in 1..ATTEMPTS {
        probe.reset();
        match timed(timeout_ns, session.execute(request, &mut probe)).await {
            Err(error) if error.kind.is_retryable() => {
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            }
            outcome => return outcome.map(|_| ()),
        }
    }
    probe.reset();
    let outcome = timed(timeout_ns, session.execute(request, &mut probe)).await;
    outcome.map(|_| ())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::draw;

    #[test]
    fn samples_are_distinct_and_spread() {
        for (count, there) in [(1, 1), (7, 7), (100, 12_345), (1_000, 1 << 40)] {
            let all: BTreeSet<u64> = (0..count).map(|n| draw(9, n, count, there)).collect();
            assert_eq!(all.len() as u64, count);
            assert!(all.iter().all(|index| *index < there));
            let half = all.iter().filter(|index| **index < there / 2).count() as u64;
            assert!(half.abs_diff(count / 2) <= 1, "{half} of {count}");
        }
    }
}
