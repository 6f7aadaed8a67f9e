//! Judges listings: every tracked key of the listed prefix, against the writes that were acknowledged before the
//! listing began.
//!
//! Judging a listing visits every tracked key of its key set, after the last byte has arrived.

use std::sync::PoisonError;
use std::sync::atomic::Ordering::Relaxed;

use bucketload_core::op::Op;
use bucketload_core::oracle::FindingKind;
use bucketload_core::oracle::register::Ruling;

use super::judge::in_listing;
use super::{AnswerContext, OnFinding, Oracle, Ticket};

impl Ticket<'_> {
    /// Judges a successful listing.
    pub(super) fn judge_listing(
        &self,
        oracle: &Oracle,
        op: &Op,
        start_ns: u64,
        context: AnswerContext<'_>,
        on_finding: OnFinding<'_>,
    ) {
        let mut listed = self.listed.borrow_mut();
        listed.sort_unstable();
        // A listing that was cut short says nothing about keys after its last one.
        let last = match (self.cut_short.get(), listed.last()) {
            (false, _) => u64::MAX,
            (true, Some(&last)) => last,
            (true, None) => return,
        };
        oracle.lists.fetch_add(1, Relaxed);
        let names = &oracle.names[usize::from(op.keyset)];
        let mut wrong = Vec::new();
        for shard in &oracle.shards {
            let shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            for (&(keyset, key), register) in &*shard {
                if keyset != op.keyset || key > last || !names.same_shard(key, op.key) {
                    continue;
                }
                let mark = register.mark_at(start_ns);
                let there = listed.binary_search(&key).is_ok();
                let (ruling, kind) = if there {
                    (register.rule_present(mark, 0), FindingKind::ListGhost)
                } else {
                    (register.rule_absent(mark), FindingKind::ListMissing)
                };
                if let Ruling::Superseded { by } = ruling {
                    wrong.push((key, in_listing(kind, by)));
                }
            }
        }
        let mut name = String::new();
        for (key, wrong) in wrong {
            names.render(key, &mut name);
            let context = AnswerContext {
                key: &name,
                ..context
            };
            oracle.report((op.keyset, key), op, wrong, start_ns, context, on_finding);
        }
    }
}
