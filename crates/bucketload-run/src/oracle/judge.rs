//! From an answer to a finding.

use std::sync::atomic::Ordering::Relaxed;

use bucketload_core::error::ErrorKind;
use bucketload_core::inspect::Seen;
use bucketload_core::op::{Op, OpClass};
use bucketload_core::oracle::identify::{Identity, identify};
use bucketload_core::oracle::register::Ruling;
use bucketload_core::oracle::{
    Evidence, Finding, FindingKind, Mutation, ReadMark, Register, State,
};
use bucketload_core::record::Outcome;

use super::{AnswerContext, KeyId, OnFinding, Oracle};

/// The answer to a read.
#[derive(Clone, Copy, Debug)]
pub(super) enum Answer {
    /// There is no object.
    Absent,
    /// An object of this size, from a head.
    Size(u64),
    /// A body.
    Body(Seen),
}

/// A wrong answer, before it is reported.
#[derive(Clone, Debug)]
pub(super) struct WrongAnswer {
    pub(super) kind: FindingKind,
    /// What the answer was, in words.
    observed: String,
    offset: Option<u64>,
    /// The mutation that the answer shows.
    shown: Option<u32>,
    /// The mutation that the answer had to show or be newer than.
    by: Option<u32>,
}

impl WrongAnswer {
    /// What is wrong with the answer to a read of the version with content `content`; `missing` if the store says that
    /// there is none although nobody removed it.
    pub(super) fn of_version(outcome: Outcome, content: u32, missing: bool) -> Option<Self> {
        let (kind, observed) = match outcome {
            Outcome::Failed(ErrorKind::Corrupt) => (FindingKind::Corrupt, "other bytes"),
            Outcome::Failed(ErrorKind::NotFound) if missing => {
                (FindingKind::Lost, "no such version")
            }
            _ => return None,
        };
        Some(Self {
            kind,
            observed: observed.to_owned(),
            offset: None,
            shown: Some(content),
            by: None,
        })
    }
}

fn version_text(version: Option<u32>) -> String {
    version.map_or_else(
        || "an unknown version".to_owned(),
        |v| format!("version {v}"),
    )
}

impl Oracle {
    /// Judges the answer to a read of a tracked key that began at `mark`.
    pub(super) fn judge(
        &self,
        id: KeyId,
        answer: Answer,
        range: Option<u64>,
        mark: ReadMark,
    ) -> Option<WrongAnswer> {
        let ruled = self.with(id, |register| match answer {
            _ if register.is_given_up() => (Ruling::Unjudged, absent()),
            Answer::Absent => (register.rule_absent(mark), absent()),
            Answer::Size(size) => rule_size(register, size, mark),
            Answer::Body(seen) => {
                let identity = identify(register, &self.arena, id, &seen, range, mark);
                rule_body(register, identity, mark)
            }
        });
        let (ruling, mut wrong) = ruled?;
        match ruling {
            Ruling::Allowed => {
                // The write that was missing a moment ago is there: it was late, not lost.
                self.with(id, |register| {
                    if register.mark() == mark {
                        register.lacking = (0, 0);
                    }
                });
                None
            }
            Ruling::Unjudged => {
                self.unjudged.fetch_add(1, Relaxed);
                None
            }
            Ruling::Phantom => Some(wrong),
            Ruling::Superseded { by } => {
                wrong.by = Some(by);
                if wrong.kind == FindingKind::Phantom {
                    let missed = self.with(id, |register| {
                        register.mutation(by).map(|m| m.state == State::Absent)
                    });
                    wrong.kind = match missed.flatten() {
                        Some(true) => FindingKind::Resurrected,
                        _ => FindingKind::Stale,
                    };
                }
                Some(wrong)
            }
        }
    }

    /// Counts a wrong answer. Reports it in full unless the same one was seen before or the budget of its kind is used
    /// up.
    pub(super) fn report(
        &self,
        id: KeyId,
        op: &Op,
        wrong: WrongAnswer,
        start_ns: u64,
        context: AnswerContext<'_>,
        on_finding: OnFinding<'_>,
    ) {
        let kind = wrong.kind;
        let mut explains = (0, 0);
        let known = self.with(id, |register| {
            let this = Some((kind, wrong.shown.unwrap_or(0)));
            let new = register.last != this;
            register.last = this;
            match kind {
                FindingKind::Stale
                    if wrong.by == register.missed(register.mark()).map(|m| m.version) =>
                {
                    register.lacking.0 += u64::from(new);
                    register.lacking.1 += 1;
                }
                FindingKind::Lost if op.class != OpClass::GetVersion => {
                    explains = std::mem::take(&mut register.lacking)
                }
                _ => {}
            }
            let evidence = |version: Option<u32>| {
                let mutation = register.mutation(version?)?;
                Some((mutation.state, evidence(mutation)))
            };
            (new, evidence(wrong.shown), evidence(wrong.by))
        });
        let Some((new, shown, missed)) = known else {
            return;
        };
        self.count(kind, new);
        let [stale, answers] = &self.found[FindingKind::Stale as usize];
        stale.fetch_sub(explains.0, Relaxed);
        answers.fetch_sub(explains.1, Relaxed);
        self.found[kind as usize][1].fetch_add(explains.1, Relaxed);
        if !new || !self.keeps(kind) {
            return;
        }
        let expected = match (&missed, kind) {
            (_, FindingKind::Race) => "exactly one winner".to_owned(),
            _ if op.class == OpClass::GetVersion => {
                format!("exactly the bytes of version {}", op.version)
            }
            (Some((State::Absent, m)), _) => {
                format!("no object (deleted by {}) or something newer", m.version)
            }
            (Some((_, m)), _) => format!("version {} or something newer", m.version),
            (None, _) => "the bytes of one version that was written".to_owned(),
        };
        on_finding(Finding {
            kind,
            class: op.class,
            key: context.key.to_owned(),
            phase: context.phase,
            audit: context.audit,
            seq: op.seq,
            start_ns,
            end_ns: context.done_ns,
            request_id: context.request_id.to_owned(),
            endpoint: context.endpoint,
            observed: wrong.observed,
            expected,
            offset: wrong.offset,
            shown: shown.map(|(_, evidence)| evidence),
            missed: missed.map(|(_, evidence)| evidence),
            explains: explains.1,
        });
    }

    /// Judges a conditional write with a clear answer: `refused` or carried out.
    pub(super) fn judge_race(
        &self,
        id: KeyId,
        op: &Op,
        (version, mark, refused): (u32, ReadMark, bool),
        start_ns: u64,
        context: AnswerContext<'_>,
        on_finding: OnFinding<'_>,
    ) {
        let wrong = self.with(id, |register| {
            let race = |observed: &str, by| WrongAnswer {
                kind: FindingKind::Race,
                observed: observed.to_owned(),
                offset: None,
                shown: Some(version),
                by,
            };
            if refused {
                let there = register.rule_present(mark, version);
                let none = matches!(there, Ruling::Phantom | Ruling::Superseded { .. });
                return none.then(|| race("refused although the key had no object", None));
            }
            if let Ruling::Superseded { by } = register.rule_absent(mark) {
                return Some(race("carried out although the key had an object", Some(by)));
            }
            let other = register.other_winner(version)?;
            Some(race(
                "carried out, and so was another one",
                Some(other.version),
            ))
        });
        if let Some(wrong) = wrong.flatten() {
            self.report(id, op, wrong, start_ns, context, on_finding);
        }
    }
}

fn absent() -> WrongAnswer {
    WrongAnswer {
        kind: FindingKind::Stale,
        observed: "no object".to_owned(),
        offset: None,
        shown: None,
        by: None,
    }
}

/// The wrong answer of a listing that shows or lacks a key although mutation `by` was acknowledged.
pub(super) fn in_listing(kind: FindingKind, by: u32) -> WrongAnswer {
    let there = kind == FindingKind::ListGhost;
    WrongAnswer {
        kind,
        observed: if there { "listed" } else { "not listed" }.to_owned(),
        offset: None,
        shown: None,
        by: Some(by),
    }
}

fn rule_size(register: &Register, size: u64, mark: ReadMark) -> (Ruling, WrongAnswer) {
    let sized = register
        .history()
        .iter()
        .rev()
        .filter(|m| m.state == State::Object { size });
    let mut ruling = register.rule_present(mark, 0);
    let mut shown = None;
    for mutation in sized {
        shown = Some(mutation.version);
        ruling = register.rule_version(mutation.version, mark);
        if ruling == Ruling::Allowed {
            break;
        }
    }
    if shown.is_none() && ruling == Ruling::Allowed {
        // No remembered version has this size; an older one may.
        ruling = match register.missed(mark) {
            Some(missed) => Ruling::Superseded { by: missed.version },
            None => Ruling::Unjudged,
        };
    }
    let wrong = WrongAnswer {
        kind: FindingKind::Phantom,
        observed: format!("an object of {size} bytes"),
        offset: None,
        shown,
        by: None,
    };
    (ruling, wrong)
}

fn rule_body(register: &Register, identity: Identity, mark: ReadMark) -> (Ruling, WrongAnswer) {
    let wrong = |kind, observed, offset, shown| WrongAnswer {
        kind,
        observed,
        offset,
        shown,
        by: None,
    };
    match identity {
        Identity::Version(version) => (
            register.rule_version(version, mark),
            wrong(
                FindingKind::Phantom,
                version_text(Some(version)),
                None,
                Some(version),
            ),
        ),
        Identity::Torn { first, then, at } => {
            let observed = match then {
                Some(then) => format!("{}, from byte {at} on version {then}", version_text(first)),
                None => format!("{}, wrong from byte {at} on", version_text(first)),
            };
            let wrong = wrong(FindingKind::Torn, observed, Some(at), first);
            (Ruling::Phantom, wrong)
        }
        Identity::Corrupt { first, at } => {
            let observed = format!(
                "{}, from byte {at} on bytes that nobody wrote",
                version_text(first)
            );
            let wrong = wrong(FindingKind::Corrupt, observed, Some(at), first);
            (Ruling::Phantom, wrong)
        }
        Identity::OtherRun => {
            let observed = "the content of another run".to_owned();
            let wrong = wrong(FindingKind::Phantom, observed, None, Some(0));
            (register.rule_version(0, mark), wrong)
        }
        Identity::Nothing => (
            Ruling::Unjudged,
            wrong(FindingKind::Phantom, String::new(), None, None),
        ),
    }
}

fn evidence(mutation: &Mutation) -> Evidence {
    let (what, size) = match mutation.state {
        State::Object { size } => ("put", size),
        State::Absent => ("delete", 0),
    };
    Evidence {
        what: what.to_owned(),
        version: mutation.version,
        size,
        seq: mutation.origin.seq,
        phase: mutation.origin.phase,
        work: mutation.origin.work,
        start_ns: mutation.start_ns,
        acknowledged_ns: mutation.acknowledged_ns(),
        request_id: mutation.label.as_str().to_owned(),
        endpoint: mutation.endpoint,
    }
}
