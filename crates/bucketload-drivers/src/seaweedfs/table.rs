//! The file IDs of the objects that a master's client wrote.
//!
//! A table of fixed size with open addressing, shared by all sessions without locks: 40 bytes per slot,
//! a third more slots than objects (rounded up to a power of two). Once taken, a slot belongs to the
//! hash of one name for good; deleting an object clears only the slot's file ID. Two of `n` names share
//! a 64-bit hash with a probability of about n²/2⁶⁵ (3·10⁻⁸ for a million objects); verification would
//! then report corrupt data.
//!
//! Clean-up lists names. The table stores a name as its folder, of which there are few, and a leaf: a
//! number in most workloads, which fits into the slot. Other leaves are stored beside the table.
//!
//! Memory is touched only as slots are taken.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::fid::Fid;

/// A slot; all zero while it is free.
#[derive(Debug)]
struct Slot {
    /// Hash of the object's name.
    name: AtomicU64,
    /// Key of the file ID.
    key: AtomicU64,
    /// Volume and cookie of the file ID; 0 while there is no object.
    volume_cookie: AtomicU64,
    /// Index of the object's folder, and above it the number of digits of the leaf (0: text).
    folder: AtomicU64,
    /// The leaf, if it is a number.
    leaf: AtomicU64,
}

/// File IDs by object name.
#[derive(Debug)]
pub(crate) struct Table {
    slots: Box<[Slot]>,
    /// Slots that may be taken.
    limit: u64,
    taken: AtomicU64,
    folders: Mutex<Folders>,
    /// Leaves that are not numbers, by hash of the name.
    texts: Mutex<HashMap<u64, Box<str>>>,
}

/// Position of the number of digits in [`Slot::folder`].
const DIGITS_SHIFT: u32 = 32;

/// Folders of the objects (names up to the last slash), for clean-up.
#[derive(Debug, Default)]
struct Folders {
    names: Vec<String>,
    indices: HashMap<String, u64>,
}

/// Most folders.
const MAX_FOLDERS: usize = 65_536;

/// Why the table cannot take an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TableFull {
    /// It already has the given number of names, its limit.
    Objects(u64),
    /// It already has [`MAX_FOLDERS`] folders.
    Folders,
}

/// The hash of an object's name; never 0.
pub(crate) fn hash(bucket: &str, key: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bucket.as_bytes());
    hasher.write_u8(0);
    hasher.write(key.as_bytes());
    hasher.finish().max(1)
}

/// The folder of `key`, with a trailing slash; empty at the top level.
pub(crate) fn folder_of(key: &str) -> &str {
    &key[..key.rfind('/').map_or(0, |at| at + 1)]
}

impl Table {
    /// A table for `objects` objects.
    pub(crate) fn new(objects: u64) -> Self {
        let slots = (objects + objects / 3 + 1).next_power_of_two().max(8);
        let slots = Box::<[Slot]>::new_zeroed_slice(usize::try_from(slots).unwrap_or(usize::MAX));
        Self {
            // SAFETY: a slot consists of atomic integers, for which all-zero bits are valid.
            slots: unsafe { slots.assume_init() },
            limit: objects,
            taken: AtomicU64::new(0),
            folders: Mutex::default(),
            texts: Mutex::default(),
        }
    }

    /// The index of `folder`.
    pub(crate) fn folder(&self, folder: &str) -> Result<u64, TableFull> {
        let mut folders = self.folders.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&index) = folders.indices.get(folder) {
            return Ok(index);
        }
        if folders.names.len() == MAX_FOLDERS {
            return Err(TableFull::Folders);
        }
        let index = folders.names.len() as u64;
        folders.names.push(folder.to_owned());
        folders.indices.insert(folder.to_owned(), index);
        Ok(index)
    }

    /// The slot of `name`, taking a free one if `take`.
    fn slot(&self, name: u64, take: bool) -> Result<Option<&Slot>, TableFull> {
        let mask = self.slots.len() - 1;
        let mut at = name as usize & mask;
        loop {
            let slot = &self.slots[at];
            let found = slot.name.load(Ordering::Acquire);
            if found == name {
                return Ok(Some(slot));
            }
            if found == 0 {
                if !take {
                    return Ok(None);
                }
                // Count before taking the slot, so the table never fills up.
                if self.taken.fetch_add(1, Ordering::Relaxed) >= self.limit {
                    self.taken.fetch_sub(1, Ordering::Relaxed);
                    return Err(TableFull::Objects(self.limit));
                }
                let order = (Ordering::AcqRel, Ordering::Acquire);
                match slot.name.compare_exchange(0, name, order.0, order.1) {
                    Ok(_) => return Ok(Some(slot)),
                    Err(other) => {
                        self.taken.fetch_sub(1, Ordering::Relaxed);
                        if other == name {
                            return Ok(Some(slot));
                        }
                    }
                }
            }
            at = (at + 1) & mask;
        }
    }

    /// The file ID of `name`, if there is an object.
    pub(crate) fn get(&self, name: u64) -> Option<Fid> {
        self.slot(name, false).ok().flatten()?.fid()
    }

    /// Takes a slot for `name`. Call it before writing the object.
    pub(crate) fn reserve(&self, name: u64) -> Result<(), TableFull> {
        self.slot(name, true).map(drop)
    }

    /// Stores the file ID of the object with the hash `name`: `leaf` in the folder with the index
    /// `folder`.
    pub(crate) fn set(
        &self,
        name: u64,
        fid: Fid,
        folder: u64,
        leaf: &str,
    ) -> Result<(), TableFull> {
        let Some(slot) = self.slot(name, true)? else {
            return Ok(());
        };
        let digits = match number(leaf) {
            Some(number) => {
                slot.leaf.store(number, Ordering::Relaxed);
                leaf.len() as u64
            }
            None => {
                let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
                texts.entry(name).or_insert_with(|| leaf.into());
                0
            }
        };
        let place = digits << DIGITS_SHIFT | folder;
        slot.folder.store(place, Ordering::Relaxed);
        slot.key.store(fid.key, Ordering::Relaxed);
        let volume_cookie = u64::from(fid.volume) << 32 | u64::from(fid.cookie);
        slot.volume_cookie.store(volume_cookie, Ordering::Release);
        Ok(())
    }

    /// Removes the file ID of `name`.
    pub(crate) fn remove(&self, name: u64) {
        if let Ok(Some(slot)) = self.slot(name, false) {
            slot.volume_cookie.store(0, Ordering::Release);
        }
    }

    /// Up to `most` names that begin with `prefix`, from slot `from` on, and the slot of the next page.
    pub(crate) fn page(
        &self,
        prefix: &str,
        from: usize,
        most: usize,
    ) -> (Vec<String>, Option<usize>) {
        let folders = self.folders.lock().unwrap_or_else(PoisonError::into_inner);
        let texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        let mut found = Vec::new();
        for (at, slot) in self.slots.iter().enumerate().skip(from) {
            if found.len() == most {
                return (found, Some(at));
            }
            if slot.volume_cookie.load(Ordering::Acquire) == 0 {
                continue;
            }
            let place = slot.folder.load(Ordering::Relaxed);
            let digits = (place >> DIGITS_SHIFT) as usize;
            let folder = folders.names.get(place as u32 as usize);
            let folder = folder.map_or("", String::as_str);
            let name = match digits {
                0 => {
                    let text = texts.get(&slot.name.load(Ordering::Relaxed));
                    format!("{folder}{}", text.map_or("", |text| text))
                }
                _ => {
                    let leaf = slot.leaf.load(Ordering::Relaxed);
                    format!("{folder}{leaf:0digits$}")
                }
            };
            if name.starts_with(prefix) {
                found.push(name);
            }
        }
        (found, None)
    }
}

/// The number that `leaf` spells: up to 19 decimal digits, which always fit into 64 bits.
fn number(leaf: &str) -> Option<u64> {
    let digits = (1..=19).contains(&leaf.len()) && leaf.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| leaf.parse().ok())?
}

impl Slot {
    /// The file ID. A writer may be replacing it, so this rereads until both halves belong together:
    /// cookies are random, so `volume_cookie` does not return to an old value by chance.
    fn fid(&self) -> Option<Fid> {
        loop {
            let volume_cookie = self.volume_cookie.load(Ordering::Acquire);
            if volume_cookie == 0 {
                return None;
            }
            let key = self.key.load(Ordering::Acquire);
            if self.volume_cookie.load(Ordering::Acquire) == volume_cookie {
                return Some(Fid {
                    volume: (volume_cookie >> 32) as u32,
                    key,
                    cookie: volume_cookie as u32,
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Fid, Table, TableFull, folder_of, hash};

    fn fid(n: u64) -> Fid {
        Fid {
            volume: 7,
            key: n,
            cookie: 99,
        }
    }

    #[test]
    fn objects_can_be_added_and_removed() {
        let table = Table::new(100);
        let folder = table.folder("a/").unwrap();
        let other = table.folder("b/c/").unwrap();
        for n in 0..100 {
            let name = hash("bucket", &n.to_string());
            let folder = if n % 2 == 0 { folder } else { other };
            let leaf = format!("{n:05}");
            assert_eq!(table.get(name), None);
            table.set(name, fid(n), folder, &leaf).unwrap();
            table.set(name, fid(n + 1000), folder, &leaf).unwrap();
            assert_eq!(table.get(name), Some(fid(n + 1000)));
        }
        let full = table.set(hash("bucket", "x"), fid(1), 0, "x");
        assert_eq!(full, Err(TableFull::Objects(100)));
        table.remove(hash("bucket", "5"));
        assert_eq!(table.get(hash("bucket", "5")), None);
        assert_eq!(table.page("b/", 0, 1000).0.len(), 49);
        assert_eq!(table.page("b/c/00007", 0, 1000).0, ["b/c/00007"]);
        let (mut all, mut from) = (0, Some(0));
        while let Some(at) = from {
            let (page, next) = table.page("", at, 10);
            all += page.len();
            from = next;
        }
        assert_eq!(all, 99);
        // A known name reuses its slot.
        table.set(hash("bucket", "5"), fid(5), folder, "5").unwrap();
    }

    #[test]
    fn listed_names_match_written_names() {
        let table = Table::new(100);
        let folder = table.folder("f/").unwrap();
        let leaves = [
            "",
            "0",
            "007",
            "9999999999999999999",
            "18446744073709551615",
            "5c-01",
            "\u{e4}",
            "+5",
        ];
        for leaf in leaves {
            table.set(hash("b", leaf), fid(1), folder, leaf).unwrap();
        }
        let mut names = table.page("", 0, 100).0;
        let mut wanted = leaves.map(|leaf| format!("f/{leaf}")).to_vec();
        names.sort();
        wanted.sort();
        assert_eq!(names, wanted);
    }

    #[test]
    fn folders_and_hashes() {
        assert_eq!(folder_of("a/b/c"), "a/b/");
        assert_eq!(folder_of("a"), "");
        assert_ne!(hash("a", "bc"), hash("ab", "c"));
        let table = Table::new(1);
        assert_eq!(table.folder("x/"), Ok(0));
        assert_eq!(table.folder("y/"), Ok(1));
        assert_eq!(table.folder("x/"), Ok(0));
    }

    #[test]
    fn threads_share_it() {
        let table = Table::new(4000);
        std::thread::scope(|scope| {
            for t in 0..4 {
                let table = &table;
                scope.spawn(move || {
                    // Every name is written by two threads.
                    for n in 0..2000 {
                        let n = n + t / 2 * 2000;
                        table
                            .set(hash("b", &n.to_string()), fid(n), 0, "1")
                            .unwrap();
                    }
                });
            }
        });
        for n in 0..4000 {
            assert_eq!(table.get(hash("b", &n.to_string())), Some(fid(n)));
        }
    }
}
