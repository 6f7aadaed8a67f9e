//! The differential test: the same random operations on every driver, compared with one model.
//!
//! A seed determines a sequence of operations on a few keys. The model, an ordered map from keys to bytes, predicts the
//! result of each: contents, sizes, listings, kinds of errors. [`Quirks`] list a service's documented differences. An
//! operation that a driver does not offer must be refused as unsupported and change nothing. Drivers that agree with the
//! model agree with each other.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use bucketload_core::driver::{Admin, Completion, Driver, Session, WorkerId};
use bucketload_core::error::{ErrorKind, OpResult};
use bucketload_core::op::{ByteRange, KeySource, Op, OpClass, Request, Watch};
use bucketload_core::payload::{Arena, PayloadKind};
use bucketload_core::record::Probe;

use super::{Outcome, Quirks, failed, same, worked};

/// The keys: inside and outside of directories, none below another.
const KEYS: [&str; 10] = [
    "a",
    "b b",
    "c+%41&<",
    "dir/deep/four",
    "dir/deep/three",
    "dir/one",
    "dir/two",
    "other/\u{e4}",
    "other/z",
    "z",
];
const PREFIXES: [&str; 7] = ["", "d", "dir/", "dir/deep/", "other/", "none/", "z"];
const SIZES: [u64; 7] = [0, 1, 31, 100, 4096, 5000, 70_000];
/// Operation classes, weighted by how often they are listed.
const MIX: [OpClass; 20] = [
    OpClass::Put,
    OpClass::Put,
    OpClass::Put,
    OpClass::PutIfAbsent,
    OpClass::MultipartPut,
    OpClass::Append,
    OpClass::Append,
    OpClass::Touch,
    OpClass::Copy,
    OpClass::Rename,
    OpClass::Delete,
    OpClass::Delete,
    OpClass::DeleteMany,
    OpClass::Get,
    OpClass::Get,
    OpClass::Get,
    OpClass::RangeGet,
    OpClass::RangeGet,
    OpClass::Head,
    OpClass::List,
];
/// Number of keys in a delete-many.
const MANY: usize = 3;
/// Maximum number of differences that are described.
const SHOWN: usize = 20;

/// A differential test.
#[derive(Clone, Debug)]
pub struct Differential {
    /// Name of a bucket that does not exist yet.
    pub bucket: String,
    /// Determines the operations.
    pub seed: u64,
    /// Number of operations.
    pub operations: u32,
    /// The server's documented differences.
    pub quirks: Quirks,
    /// Monotonic clock for the probes, in nanoseconds; must not return 0.
    pub clock: fn() -> u64,
}

/// The result of a differential test.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Number of performed operations by class, of the classes that the driver offers.
    pub performed: BTreeMap<OpClass, u32>,
    /// Descriptions of the first 20 operations with another result than the model's.
    pub differences: Vec<String>,
    /// Number of all such operations.
    pub different: u32,
}

/// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }
}

/// One operation. Every class draws every field, so a class that is not offered does not change the operations after it.
#[derive(Clone, Copy, Debug)]
struct Step {
    class: OpClass,
    /// Index in [`KEYS`].
    key: usize,
    /// Index of another key.
    source: usize,
    size: u64,
    range: ByteRange,
    prefix: &'static str,
    delimiter: &'static str,
}

impl Step {
    fn draw(random: &mut Random) -> Self {
        let key = random.below(KEYS.len());
        Self {
            class: random.of(&MIX),
            key,
            source: (key + 1 + random.below(KEYS.len() - 1)) % KEYS.len(),
            size: random.of(&SIZES),
            range: ByteRange {
                offset: random.of(&[0, 0, 1, 50, 4000, 80_000]),
                len: random.of(&[1, 10, 5000, 100_000]),
            },
            prefix: random.of(&PREFIXES),
            delimiter: random.of(&["", "/"]),
        }
    }

    fn key(&self) -> &'static str {
        KEYS[self.key]
    }

    fn source(&self) -> &'static str {
        KEYS[self.source]
    }
}

#[derive(Clone, Default)]
struct Object {
    bytes: Vec<u8>,
    /// Whether an append created it; `None` for copies.
    appended: Option<bool>,
}

/// The bytes and keys that a session reported.
#[derive(Default)]
struct Seen {
    bytes: RefCell<Vec<u8>>,
    keys: RefCell<Vec<String>>,
}

impl Watch for Seen {
    fn body(&self, bytes: &[u8]) {
        self.bytes.borrow_mut().extend_from_slice(bytes);
    }

    fn listed(&self, key: &str) {
        self.keys.borrow_mut().push(key.to_owned());
    }

    fn cut_short(&self) {}
}

/// [`MANY`] consecutive keys from an index on, wrapping around.
struct KeysFrom(usize);

impl KeysFrom {
    fn keys(&self) -> impl Iterator<Item = &'static str> + use<> {
        let first = self.0;
        (0..MANY).map(move |i| KEYS[(first + i) % KEYS.len()])
    }
}

impl KeySource for KeysFrom {
    fn render(&self, i: u64, out: &mut String) {
        out.clear();
        out.push_str(KEYS[(self.0 + i as usize) % KEYS.len()]);
    }
}

type Model = BTreeMap<&'static str, Object>;
type Answer = OpResult;

fn fails(what: &str, answer: &Answer, kind: ErrorKind) -> Outcome {
    failed(what, answer.clone(), &[kind])
}

fn works(answer: &Answer) -> Result<Completion, String> {
    worked("the operation", answer.clone())
}

fn same_bytes(got: &[u8], wanted: &[u8]) -> Outcome {
    same("bytes", got.len(), wanted.len())?;
    match got.iter().zip(wanted).position(|(a, b)| a != b) {
        None => Ok(()),
        Some(at) => Err(format!("the byte at offset {at} differs")),
    }
}

impl Differential {
    /// Performs the operations with `driver` and compares every result with the model.
    ///
    /// # Errors
    /// When no session or bucket can be created, or the bucket cannot be emptied.
    pub async fn run<D: Driver>(&self, driver: &D) -> OpResult<Verdict> {
        let mut probe = Probe::new(self.clock);
        let mut session = driver.open(WorkerId::default(), &mut probe).await?;
        session.ensure_bucket(&self.bucket).await?;
        let classes: BTreeSet<OpClass> = driver.capabilities().classes.into_iter().collect();
        let arena = Arena::new(PayloadKind::Random, self.seed);
        let mut random = Random(self.seed);
        let mut model = Model::new();
        let mut verdict = Verdict::default();
        // At the end, read every key once more.
        let last = KEYS.iter().enumerate().map(|(key, _)| Step {
            class: OpClass::Get,
            key,
            ..Step::draw(&mut Random(0))
        });
        let steps = (0..self.operations).map(|_| Step::draw(&mut random));
        for (number, step) in (0u32..).zip(steps.chain(last)) {
            let content = arena.content(0, step.key as u64, number, step.size);
            let mut bytes = vec![0; step.size as usize];
            content.fill(0, &mut bytes);
            let seen = Seen::default();
            let many = KeysFrom(step.key);
            let op = self.op(&step, number);
            let mut request = Request::new(&op, &self.bucket, step.key());
            request.content = step.class.writes_body().then_some(content);
            request.watch = Some(&seen);
            match step.class {
                OpClass::Copy | OpClass::Rename => request.source = step.source(),
                OpClass::DeleteMany => request.keys = Some(&many),
                OpClass::List => (request.key, request.delimiter) = (step.prefix, step.delimiter),
                _ => {}
            }
            probe.reset();
            let answer = session.execute(&request, &mut probe).await;
            let judged = if classes.contains(&step.class) {
                *verdict.performed.entry(step.class).or_default() += 1;
                self.judge(&mut model, &step, bytes, &answer, &seen)
            } else {
                fails(step.class.name(), &answer, ErrorKind::Unsupported)
            };
            if let Err(difference) = judged {
                verdict.different += 1;
                if verdict.differences.len() < SHOWN {
                    let text = format!("operation {number}, {step:?}: {difference}");
                    verdict.differences.push(text);
                }
            }
        }
        session.abort_uploads(&self.bucket, "").await?;
        let keys = KEYS.map(str::to_owned);
        session.delete_keys(&self.bucket, &keys).await?;
        session.delete_bucket(&self.bucket).await?;
        Ok(verdict)
    }

    /// The operation of `step`; `number` is the version of the content that it writes.
    fn op(&self, step: &Step, number: u32) -> Op {
        let mut op = Op {
            version: number,
            ..Op::new(step.class)
        };
        match step.class {
            OpClass::RangeGet => op.range = Some(step.range),
            OpClass::DeleteMany => op.count = MANY as u64,
            class if class.writes_body() => {
                op.size = step.size;
                if class == OpClass::MultipartPut {
                    // Several parts, if small parts are allowed.
                    op.count = (step.size / 3).max(1000).max(self.quirks.min_part);
                }
            }
            _ => {}
        }
        op
    }

    /// Compares a result with the model and updates the model.
    fn judge(
        &self,
        model: &mut Model,
        step: &Step,
        bytes: Vec<u8>,
        answer: &Answer,
        seen: &Seen,
    ) -> Result<(), String> {
        let key = step.key();
        let absent = |model: &Model, key| !model.contains_key(key);
        match step.class {
            OpClass::Get | OpClass::RangeGet | OpClass::Head if absent(model, key) => {
                fails("a read of nothing", answer, ErrorKind::NotFound)
            }
            OpClass::Get => {
                let wanted = &model[key].bytes;
                same("bytes", works(answer)?.bytes, wanted.len() as u64)?;
                same_bytes(&seen.bytes.borrow(), wanted)
            }
            OpClass::RangeGet => {
                let all = &model[key].bytes;
                let from = step.range.offset as usize;
                if self.quirks.reads_at_end && from == all.len() && answer.is_ok() {
                    return same("bytes", seen.bytes.borrow().len(), 0);
                }
                if from >= all.len() {
                    return fails("a range past the end", answer, ErrorKind::Rejected);
                }
                works(answer)?;
                let to = all.len().min(from + step.range.len as usize);
                same_bytes(&seen.bytes.borrow(), &all[from..to])
            }
            OpClass::Head => {
                let size = model[key].bytes.len() as u64;
                same("size", works(answer)?.object_size, size)
            }
            OpClass::List => self.judge_list(model, step, answer, seen),
            OpClass::Put => put(model, key, bytes, answer),
            OpClass::MultipartPut => {
                let appended = model.get(key).map(|o| o.appended);
                match (self.quirks.append_kind, appended, answer) {
                    (true, Some(Some(true)), _) => {
                        fails("parts over an appended object", answer, ErrorKind::Conflict)
                    }
                    (true, Some(None), Err(e)) if e.kind == ErrorKind::Conflict => Ok(()),
                    _ => put(model, key, bytes, answer),
                }
            }
            OpClass::PutIfAbsent => {
                // A server that ignores the condition replaces the object.
                let new = absent(model, key) || !self.quirks.if_absent;
                same("objects written", works(answer)?.items, u64::from(new))?;
                match new {
                    true => put(model, key, bytes, answer),
                    false => Ok(()),
                }
            }
            OpClass::Append => {
                let kind = self.quirks.append_kind;
                let object = model.get(key);
                match (kind, object.map(|o| o.appended), answer) {
                    // An empty append changes nothing; the server may refuse or accept it.
                    (true, Some(Some(false)), _) if step.size > 0 => {
                        return fails("an append to what was put", answer, ErrorKind::Conflict);
                    }
                    (true, Some(None), Err(e)) if e.kind == ErrorKind::Conflict => return Ok(()),
                    _ => same("bytes", works(answer)?.bytes, step.size)?,
                }
                let object = model.entry(key).or_default();
                object.bytes.extend(bytes);
                if object.appended.is_none() || step.size > 0 {
                    object.appended = Some(true);
                }
                Ok(())
            }
            OpClass::Touch => {
                works(answer)?;
                model.entry(key).or_default();
                Ok(())
            }
            OpClass::Copy | OpClass::Rename => {
                let Some(source) = model.get(step.source()).cloned() else {
                    return fails("a copy of nothing", answer, ErrorKind::NotFound);
                };
                works(answer)?;
                if step.class == OpClass::Rename {
                    model.remove(step.source());
                }
                let bytes = source.bytes;
                let appended = match source.appended {
                    Some(true) => None,
                    known => known,
                };
                model.insert(key, Object { bytes, appended });
                Ok(())
            }
            OpClass::Delete => match model.remove(key) {
                None => {
                    let expect = self.quirks.delete_absent;
                    expect
                        .check("a deletion of nothing", answer.clone())
                        .map(drop)
                }
                Some(_) => works(answer).map(drop),
            },
            OpClass::DeleteMany => {
                for key in KeysFrom(step.key).keys() {
                    model.remove(key);
                }
                same("items", works(answer)?.items, MANY as u64)
            }
            class => Err(format!("{class} is not part of this test")),
        }
    }

    fn judge_list(
        &self,
        model: &Model,
        step: &Step,
        answer: &Answer,
        seen: &Seen,
    ) -> Result<(), String> {
        let items = works(answer)?.items;
        let below = model.keys().filter_map(|key| key.strip_prefix(step.prefix));
        let mut keys = BTreeSet::new();
        let mut groups = BTreeSet::new();
        for rest in below {
            match rest.split_once('/') {
                Some((group, _)) if !step.delimiter.is_empty() => groups.insert(group),
                _ => keys.insert(format!("{}{rest}", step.prefix)),
            };
        }
        let mut listed = seen.keys.borrow().clone();
        listed.sort();
        same("keys", listed, keys.iter().cloned().collect())?;
        let entries = (keys.len() + groups.len()) as u64;
        if !self.quirks.empty_groups || step.delimiter.is_empty() {
            return same("entries", items, entries);
        }
        // Any folder may be left whose keys were deleted.
        let rests = KEYS.iter().filter_map(|key| key.strip_prefix(step.prefix));
        let groups = rests.filter_map(|rest| Some(rest.split_once('/')?.0));
        let folders: BTreeSet<&str> = groups.collect();
        match (entries..=(keys.len() + folders.len()) as u64).contains(&items) {
            true => Ok(()),
            false => same("entries", items, entries),
        }
    }
}

fn put(
    model: &mut Model,
    key: &'static str,
    bytes: Vec<u8>,
    answer: &Answer,
) -> Result<(), String> {
    same("bytes", works(answer)?.bytes, bytes.len() as u64)?;
    let appended = Some(false);
    model.insert(key, Object { bytes, appended });
    Ok(())
}
