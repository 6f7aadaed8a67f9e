use super::{Ending, Origin, ReadMark, Register, RequestLabel, Ruling, State};

const OBJECT: State = State::Object { size: 10 };

fn begin(register: &mut Register, state: State, at: u64) -> u32 {
    register.begin(state, false, Origin::default(), at)
}

fn acknowledge(register: &mut Register, version: u32, attempt_ns: u64, at_ns: u64) {
    let ending = Ending::Acknowledged {
        attempt_ns,
        at_ns,
        stray: false,
    };
    register.end(version, ending, RequestLabel::new("id"), 0);
}

/// A put from `from` to `to`.
fn put(register: &mut Register, from: u64, to: u64) -> u32 {
    let version = begin(register, OBJECT, from);
    acknowledge(register, version, from, to);
    version
}

fn delete(register: &mut Register, from: u64, to: u64) -> u32 {
    let version = begin(register, State::Absent, from);
    acknowledge(register, version, from, to);
    version
}

#[test]
fn a_read_may_return_overlapping_writes_and_the_latest_before() {
    let mut r = Register::default();
    let old = put(&mut r, 10, 20);
    let latest = put(&mut r, 30, 40);
    let mark = r.begin_read();
    let during = begin(&mut r, OBJECT, 50);
    assert_eq!(r.rule_version(latest, mark), Ruling::Allowed);
    assert_eq!(r.rule_version(during, mark), Ruling::Allowed);
    let stale = Ruling::Superseded { by: latest };
    assert_eq!(r.rule_version(old, mark), stale);
    assert_eq!(r.rule_absent(mark), stale);
    acknowledge(&mut r, during, 50, 60);
    assert_eq!(r.rule_version(latest, mark), Ruling::Allowed, "it overlaps");
    assert_eq!(r.rule_version(9, mark), Ruling::Phantom);
    assert_eq!(r.rule_version(0, mark), Ruling::Phantom);
}

#[test]
fn concurrent_writes_do_not_supersede_each_other() {
    let mut r = Register::default();
    let a = begin(&mut r, OBJECT, 10);
    let b = begin(&mut r, OBJECT, 20);
    acknowledge(&mut r, b, 20, 30);
    acknowledge(&mut r, a, 10, 40);
    let mark = r.begin_read();
    // The store decides which one came last.
    assert_eq!(r.rule_version(a, mark), Ruling::Allowed);
    assert_eq!(r.rule_version(b, mark), Ruling::Allowed);
    assert!(matches!(r.rule_absent(mark), Ruling::Superseded { .. }));
}

#[test]
fn unknown_outcomes_are_accepted_either_way_forever() {
    let mut r = Register::default();
    let first = put(&mut r, 10, 20);
    let lost = begin(&mut r, OBJECT, 30);
    r.end(lost, Ending::Unknown, RequestLabel::new(""), 0);
    let mark = r.begin_read();
    assert_eq!(r.rule_version(first, mark), Ruling::Allowed);
    assert_eq!(r.rule_version(lost, mark), Ruling::Allowed);
    r.end_read();
    let last = put(&mut r, 100, 110);
    let mark = r.begin_read();
    assert_eq!(r.rule_version(first, mark), Ruling::Superseded { by: last });
    assert_eq!(r.rule_version(lost, mark), Ruling::Allowed);
    // A write whose first attempt timed out may take effect again.
    let twice = begin(&mut r, OBJECT, 120);
    let ending = Ending::Acknowledged {
        attempt_ns: 140,
        at_ns: 150,
        stray: true,
    };
    r.end(twice, ending, RequestLabel::new(""), 0);
    put(&mut r, 160, 170);
    assert_eq!(r.rule_version(twice, r.mark()), Ruling::Allowed);
}

#[test]
fn refused_writes_never_happened() {
    let mut r = Register::default();
    let first = put(&mut r, 10, 20);
    let refused = begin(&mut r, OBJECT, 30);
    r.end(refused, Ending::Refused, RequestLabel::new(""), 0);
    assert_eq!(r.rule_version(first, r.mark()), Ruling::Allowed);
    assert_ne!(r.rule_version(refused, r.mark()), Ruling::Allowed);
}

#[test]
fn deletes_make_the_key_absent() {
    let mut r = Register::default();
    assert_eq!(r.rule_absent(r.mark()), Ruling::Allowed);
    let written = put(&mut r, 10, 20);
    let gone = delete(&mut r, 30, 40);
    let mark = r.begin_read();
    assert_eq!(r.rule_absent(mark), Ruling::Allowed);
    assert_eq!(
        r.rule_version(written, mark),
        Ruling::Superseded { by: gone }
    );
    assert_eq!(r.rule_present(mark, 0), Ruling::Superseded { by: gone });
    r.end_read();
    let again = put(&mut r, 50, 60);
    assert_eq!(r.rule_absent(r.mark()), Ruling::Superseded { by: again });
}

#[test]
fn history_is_forgotten_except_what_a_read_may_return() {
    let mut r = Register::default();
    put(&mut r, 10, 20);
    let mark = r.begin_read();
    let during: Vec<u32> = (0..10)
        .map(|i| put(&mut r, 30 + 20 * i, 40 + 20 * i))
        .collect();
    for &version in &during {
        assert_eq!(r.rule_version(version, mark), Ruling::Allowed);
    }
    r.end_read();
    assert_eq!(r.history().len(), 1);
    assert!(matches!(
        r.rule_version(during[0], r.mark()),
        Ruling::Superseded { .. }
    ));
    // The old mark demands more than is remembered.
    assert_eq!(r.rule_version(during[0], mark), Ruling::Unjudged);
    // Many overwrites during one read: judged by the remaining history, never wrongly.
    let mark = r.begin_read();
    for i in 0..100 {
        let version = put(&mut r, 1_000 + 20 * i, 1_010 + 20 * i);
        assert_ne!(
            r.rule_version(version - 1, mark),
            Ruling::Superseded { by: version }
        );
    }
    assert!(r.history().len() <= 20 && !r.is_given_up());
}

#[test]
fn the_key_is_given_up_after_too_many_unknown_outcomes() {
    let mut r = Register::default();
    for i in 0..100 {
        let version = begin(&mut r, OBJECT, 10 + i);
        r.end(version, Ending::Unknown, RequestLabel::new(""), 0);
    }
    assert!(r.is_given_up());
    assert_eq!(r.rule_absent(ReadMark::default()), Ruling::Unjudged);
}

#[test]
fn listings_are_judged_by_earlier_acknowledgements() {
    let mut r = Register::default();
    put(&mut r, 10, 20);
    assert_eq!(r.rule_absent(r.mark_at(20)), Ruling::Allowed);
    assert!(matches!(
        r.rule_absent(r.mark_at(21)),
        Ruling::Superseded { by: 1 }
    ));
    let gone = delete(&mut r, 30, 40);
    assert_eq!(
        r.rule_present(r.mark_at(35), 0),
        Ruling::Unjudged,
        "forgotten"
    );
    assert_eq!(r.rule_absent(r.mark_at(35)), Ruling::Allowed);
    assert_eq!(
        r.rule_present(r.mark_at(41), 0),
        Ruling::Superseded { by: gone }
    );
}

#[test]
fn conditional_writes_have_one_winner() {
    let mut r = Register::default();
    let conditional = |r: &mut Register, at| r.begin(OBJECT, true, Origin::default(), at);
    let a = conditional(&mut r, 10);
    let b = conditional(&mut r, 11);
    acknowledge(&mut r, a, 10, 20);
    assert_eq!(r.other_winner(a), None);
    acknowledge(&mut r, b, 11, 21);
    assert_eq!(r.other_winner(b).map(|m| m.version), Some(a));
    // With a delete in between both may have won.
    let mut r = Register::default();
    let a = conditional(&mut r, 10);
    let gone = begin(&mut r, State::Absent, 12);
    let b = conditional(&mut r, 13);
    acknowledge(&mut r, a, 10, 20);
    acknowledge(&mut r, b, 13, 21);
    assert_eq!(r.other_winner(b), None);
    acknowledge(&mut r, gone, 12, 22);
    assert_eq!(r.other_winner(b), None);
    // A winner whose earlier attempt may still take effect is remembered longer than the delete after it.
    let mut r = Register::default();
    let a = conditional(&mut r, 10);
    let ending = Ending::Acknowledged {
        attempt_ns: 15,
        at_ns: 20,
        stray: true,
    };
    r.end(a, ending, RequestLabel::new("id"), 0);
    delete(&mut r, 30, 40);
    put(&mut r, 50, 60);
    delete(&mut r, 70, 80);
    let b = conditional(&mut r, 90);
    acknowledge(&mut r, b, 90, 100);
    assert_eq!(r.other_winner(b), None);
}
