//! Turns COSBench's operations into the entries of a work.

use bucketload_core::op::OpClass;
use bucketload_core::plan::named::{
    NamePattern, NamedEntry, NamedFile, NamedRange, NamedSizes, Numbers,
};
use bucketload_core::plan::{KeyLaw, MixEntry, SizeKind, SizeLaw};
use bucketload_cosbench::{Division, Operation, OperationKind, Selector, Sizes, Work, Workload};

use super::refuse;

/// Most files of a directory that a `filewrite` may write.
const MOST_FILES: usize = 100_000;
/// Keys that a listing asks for: S3's default.
const PAGE: u64 = 1000;

/// The sizes that the workload writes, as far as they are known.
pub(super) struct WrittenSizes {
    /// The sizes of all writes, if all writes have the same sizes.
    sizes: Option<Sizes>,
    /// Mean bytes of a write, for estimates.
    mean_bytes: f64,
    verifies: bool,
}

impl WrittenSizes {
    pub(super) fn of(workload: &Workload, notes: &mut Vec<String>) -> Self {
        let works = || workload.stages.iter().flat_map(|stage| &stage.works);
        let operations = || works().flat_map(|work| &work.operations);
        let written = || operations().filter(|o| o.kind.writes());
        let all = || written().filter_map(|o| o.target.sizes.as_ref());
        let files = written().any(|o| o.target.sizes.is_none());
        let first = all().next();
        let same = first.filter(|first| !files && all().all(|sizes| sizes == *first));
        let sequence = same.is_some_and(|s| {
            matches!(
                s.selector,
                Selector::Range { .. } | Selector::Sequential { .. }
            )
        });
        let sizes = same.filter(|_| !sequence).cloned();
        let checked = operations().any(|o| o.target.hash_check && !o.kind.writes());
        let trailed = written().any(|o| o.target.hash_check);
        // Without checksum trailers, every byte is compared with what the workload writes, if that is known.
        let verifies = checked && !trailed && sizes.is_some();
        if checked && !trailed && !verifies && first.is_some() {
            notes.push(
                "hashCheck: no writing operation sets it, and their sizes differ, so only objects of others that \
                 end with a checksum are checked"
                    .to_owned(),
            );
        }
        let count = all().count().max(1) as f64;
        let mean = |s: &Sizes| numbers(&s.selector).mean() * s.unit_bytes as f64;
        Self {
            mean_bytes: all().map(mean).sum::<f64>() / count,
            sizes,
            verifies,
        }
    }

    pub(super) const fn verifies(&self) -> bool {
        self.verifies
    }
}

pub(super) fn numbers(selector: &Selector) -> Numbers {
    match selector {
        Selector::Constant(n) => Numbers::Constant { n: *n },
        Selector::Uniform { lo, hi } => Numbers::Uniform { lo: *lo, hi: *hi },
        Selector::Range { lo, hi } => Numbers::Range { lo: *lo, hi: *hi },
        Selector::Sequential { lo, hi } => Numbers::Sequential { lo: *lo, hi: *hi },
        Selector::Histogram(buckets) => Numbers::Weighted {
            buckets: buckets
                .iter()
                .filter(|b| b.weight > 0)
                .map(|b| (b.lo, b.hi, b.weight))
                .collect(),
        },
        Selector::Empty => Numbers::Empty,
    }
}

fn class(operation: &Operation, work: &Work) -> Result<OpClass, String> {
    use OperationKind as K;
    let unsupported = |why: &str| {
        let remedy = format!("skip it with --skip-operations {}", operation.kind.name());
        Err(refuse(&operation.location, why, &remedy))
    };
    Ok(match operation.kind {
        K::Read if ranged(work) => OpClass::RangeGet,
        K::Read => OpClass::Get,
        K::Write | K::Prepare | K::FileWrite => OpClass::Put,
        K::Delete | K::Cleanup => OpClass::Delete,
        K::List => OpClass::List,
        K::Head => OpClass::Head,
        K::Init => OpClass::MakeBucket,
        K::Dispose => OpClass::DeleteBucket,
        K::MultipartWrite | K::MultipartPrepare | K::MultipartFileWrite => OpClass::MultipartPut,
        K::Restore => OpClass::Restore,
        K::LocalWrite => OpClass::LocalWrite,
        K::Delay => return unsupported("a delay is not an operation"),
    })
}

/// Whether the storage reads ranges.
fn ranged(work: &Work) -> bool {
    work.storage.config.truth("is_range_request") == Ok(Some(true))
}

/// The numeric value of a key of the work's storage, or its default.
fn number(work: &Work, key: &str) -> Result<u64, String> {
    let storage = &work.storage;
    let text = storage
        .adapter
        .value(&storage.config, key)
        .unwrap_or_default();
    text.parse().map_err(|_| {
        let problem = format!("{key}: `{text}` is not a whole number");
        refuse(&storage.location, &problem, "write a number of bytes")
    })
}

/// The number of days that `restore` asks for: `Days` of S3's RestoreObject, a 32-bit number.
fn days(work: &Work) -> Result<u64, String> {
    let storage = &work.storage;
    // A storage without this key asks for one day, the default of COSBench's storages that have the key.
    let text = storage.adapter.value(&storage.config, "restore_days");
    let text = text.as_deref().unwrap_or("1");
    let days = text
        .parse()
        .ok()
        .filter(|days| (1..=i32::MAX).contains(days));
    days.map(|days: i32| days as u64).ok_or_else(|| {
        let problem = format!("restore_days: `{text}` is not a number of days");
        refuse(
            &storage.location,
            &problem,
            "write a whole number of at least 1",
        )
    })
}

/// The entries of a work's mix with the names they work on.
///
/// # Errors
/// Operations that are not supported, with their place in the file.
pub(super) fn entries(
    work: &Work,
    known: &WrittenSizes,
) -> Result<Vec<(MixEntry, NamedEntry)>, String> {
    let mut out = Vec::new();
    for operation in &work.operations {
        out.push(entry(work, operation, known)?);
        let beside = match operation.kind {
            OperationKind::Prepare | OperationKind::MultipartPrepare => OpClass::MakeBucket,
            OperationKind::Cleanup => OpClass::DeleteBucket,
            _ => continue,
        };
        if operation.target.containers_too {
            let (mix, named) = &out[0];
            let mix = MixEntry {
                class: beside,
                weight: 0.0,
                size: None,
                count: 0,
                ..mix.clone()
            };
            let named = NamedEntry {
                title: String::new(),
                object: None,
                sizes: None,
                range: None,
                ..named.clone()
            };
            out.push((mix, named));
        }
    }
    Ok(out)
}

fn entry(
    work: &Work,
    operation: &Operation,
    known: &WrittenSizes,
) -> Result<(MixEntry, NamedEntry), String> {
    use OperationKind as K;
    let target = &operation.target;
    let class = class(operation, work)?;
    let files = match operation.kind {
        K::FileWrite | K::MultipartFileWrite => files(operation)?,
        _ => Vec::new(),
    };
    let bounds = |selector: &Option<Selector>| selector.as_ref().and_then(|s| numbers(s).bounds());
    let wide = |selector: &Option<Selector>| {
        bounds(selector).is_some_and(|(lo, hi)| hi - lo + 1 >= work.workers)
    };
    let lists_all = operation.kind == K::List && target.objects.is_none();
    let bucket_divided = match operation.kind {
        // A list either always divides its containers, or never (docs/spec/cosbench.md section 1.7).
        K::List => lists_all && wide(&target.containers),
        _ => operation.division == Division::Container,
    };
    let Some(containers) = &target.containers else {
        return Err(refuse(
            &operation.location,
            "the operation names no container, and listing all containers is not supported",
            "add containers=…",
        ));
    };
    let bucket = NamePattern {
        prefix: target.cprefix.clone(),
        suffix: target.csuffix.clone(),
        numbers: numbers(containers),
        divided: bucket_divided,
    };
    let object = match &target.objects {
        _ if class.on_bucket() => None,
        _ if !files.is_empty() => Some(NamePattern {
            prefix: String::new(),
            suffix: String::new(),
            numbers: file_numbers(target.file_selection, files.len() as u32),
            divided: false,
        }),
        None => None,
        Some(objects) => Some(NamePattern {
            prefix: target.oprefix.clone(),
            suffix: target.osuffix.clone(),
            numbers: numbers(objects),
            divided: operation.division == Division::Object && operation.kind != K::List,
        }),
    };
    let sizes = if class.writes_body() && files.is_empty() {
        target.sizes.as_ref()
    } else if class == OpClass::Get && target.hash_check && known.verifies {
        known.sizes.as_ref()
    } else {
        None
    };
    let range = match class {
        OpClass::RangeGet => Some(NamedRange {
            object_bytes: number(work, "file_length")?,
            len: number(work, "chunk_length")?,
        }),
        _ => None,
    };
    let mix = MixEntry {
        class,
        weight: f64::from(operation.ratio),
        keyset: 0,
        keys: KeyLaw::Uniform,
        size: (class == OpClass::Get && known.mean_bytes > 0.0).then(|| {
            let bytes = known.mean_bytes as u64;
            SizeLaw {
                law: SizeKind::Const { bytes },
                min: bytes,
                max: bytes,
            }
        }),
        range: None,
        count: match class {
            OpClass::MultipartPut => number(work, "part_size")?,
            OpClass::Restore => days(work)?,
            OpClass::List => PAGE,
            _ => 0,
        },
        pages: u32::from(class == OpClass::List),
        delimiter: String::new(),
    };
    let named = NamedEntry {
        id: operation.id.clone(),
        title: operation.display_name.clone(),
        bucket,
        object,
        sizes: sizes.map(|sizes| NamedSizes {
            numbers: numbers(&sizes.selector),
            unit_bytes: sizes.unit_bytes,
            by_name: known.verifies,
        }),
        range,
        trailer: target.hash_check
            && (class.writes_body() || class == OpClass::Get && !known.verifies),
        files,
    };
    Ok((mix, named))
}

/// The selector of files, of which only the letter matters (docs/spec/cosbench.md section 1.6).
fn file_numbers(letter: Option<char>, files: u32) -> Numbers {
    let (lo, hi) = (1, files);
    match letter {
        Some('c') => Numbers::Constant { n: 1 },
        Some('r') => Numbers::Range { lo, hi },
        Some('s') => Numbers::Sequential { lo, hi },
        _ => Numbers::Uniform { lo, hi },
    }
}

/// The files in an operation's directory, sorted by name.
fn files(operation: &Operation) -> Result<Vec<NamedFile>, String> {
    let dir = operation.target.files.as_deref().unwrap_or_default();
    let wrong = |problem: String| {
        refuse(
            &operation.location,
            &format!("files: {dir}: {problem}"),
            "name a directory that contains files",
        )
    };
    let mut files = Vec::new();
    for found in std::fs::read_dir(dir).map_err(|e| wrong(e.to_string()))? {
        let found = found.map_err(|e| wrong(e.to_string()))?;
        let facts = std::fs::metadata(found.path()).map_err(|e| wrong(e.to_string()))?;
        if !facts.is_file() {
            continue;
        }
        let name = found.file_name().into_string();
        files.push(NamedFile {
            name: name
                .map_err(|name| wrong(format!("the name {} is not UTF-8", name.display())))?,
            bytes: facts.len(),
        });
        if files.len() > MOST_FILES {
            return Err(wrong(format!(
                "the directory holds more than {MOST_FILES} files"
            )));
        }
    }
    files.sort_by(|a, b| a.name.cmp(&b.name));
    match files.is_empty() {
        true => Err(wrong("the directory holds no file".to_owned())),
        false => Ok(files),
    }
}
