//! What is remembered, what is chosen, and what several threads see.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use bucketload_core::op::{Op, OpClass, VersionId};

use super::{VersionTable, Versions};

fn op(class: OpClass, key: u64, seq: u64) -> Op {
    Op {
        key,
        seq,
        ..Op::new(class)
    }
}

fn write(table: &VersionTable, key: u64, content: u32) {
    let put = Op {
        version: content,
        size: u64::from(content) * 10,
        ..op(OpClass::Put, key, 0)
    };
    let id = VersionId::new(format!("{key}-{content}").as_bytes()).unwrap();
    table.wrote(&put, id);
}

/// Identifier, content and size of the version that an operation gets.
fn choose(table: &VersionTable, class: OpClass, key: u64, seq: u64) -> Option<(String, u32, u64)> {
    let (mut op, id) = (op(class, key, seq), Cell::default());
    let chosen = table.choose(&mut op, &id)?;
    assert_eq!(chosen.id, id.get());
    Some((id.get().as_str().to_owned(), op.version, op.size))
}

#[test]
fn the_newest_versions_are_remembered_and_removed_oldest_first() {
    let table = VersionTable(vec![Versions::new(2, 3)]);
    assert!(table.tracks(&op(OpClass::Put, 1, 0)) && !table.tracks(&op(OpClass::Put, 2, 0)));
    assert_eq!(choose(&table, OpClass::GetVersion, 1, 0), None);
    for content in 1..=5 {
        write(&table, 1, content);
        write(&table, 9, content);
    }
    let seen: BTreeSet<_> = (0..100)
        .filter_map(|seq| choose(&table, OpClass::GetVersion, 1, seq))
        .collect();
    let of = |content: u32| (format!("1-{content}"), content, u64::from(content) * 10);
    assert_eq!(seen, [3, 4, 5].map(of).into());
    assert_eq!(choose(&table, OpClass::GetVersion, 0, 7), None);
    assert_eq!(choose(&table, OpClass::GetVersion, 9, 7), None);
    let mut read = op(OpClass::GetVersion, 1, 5);
    let chosen = table.choose(&mut read, &Cell::default()).unwrap();
    assert!(table.remembers(&read, chosen));
    for content in 3..=5 {
        assert_eq!(table.all().count(), 6 - content as usize);
        assert_eq!(
            choose(&table, OpClass::DeleteVersion, 1, 0),
            Some(of(content))
        );
    }
    assert!(!table.remembers(&read, chosen));
    assert_eq!(choose(&table, OpClass::DeleteVersion, 1, 0), None);
    write(&table, 1, 6);
    assert_eq!(choose(&table, OpClass::GetVersion, 1, 1), Some(of(6)));
}

/// Readers see whole versions only, and each version is removed once.
#[test]
fn threads_see_whole_versions() {
    let table = VersionTable(vec![Versions::new(1, 4)]);
    let writing = AtomicBool::new(true);
    let (read, removed) = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut read = 0;
            let mut seq = 0;
            while writing.load(Relaxed) {
                seq += 1;
                if let Some((id, content, size)) = choose(&table, OpClass::GetVersion, 0, seq) {
                    assert_eq!(
                        (id, size),
                        (format!("0-{content}"), u64::from(content) * 10)
                    );
                    read += 1;
                }
            }
            read
        });
        let removers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let mut removed = Vec::new();
                    while writing.load(Relaxed) {
                        removed.extend(choose(&table, OpClass::DeleteVersion, 0, 0));
                    }
                    removed
                })
            })
            .collect();
        for content in 1..=20_000 {
            write(&table, 0, content);
        }
        // Not before somebody has read something.
        while choose(&table, OpClass::GetVersion, 0, 1).is_some() {
            std::thread::yield_now();
        }
        writing.store(false, Relaxed);
        let removed = removers
            .into_iter()
            .flat_map(|thread| thread.join().unwrap());
        let removed: Vec<_> = removed.collect();
        (reader.join().unwrap(), removed)
    });
    let once: BTreeSet<_> = removed.iter().map(|version| version.1).collect();
    assert_eq!(once.len(), removed.len());
    assert!(!removed.is_empty());
    let _: u64 = read;
}
