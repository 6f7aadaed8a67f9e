//! The descriptor of the file system driver.

use bucketload_core::units;
use bucketload_target::{
    Descriptor, Flag, OpenError, OpenRequest, Origin, Scope, Semantics, Service, Source, UrlForm,
    Value, any_bucket, any_cleanup, flags,
};

use super::doctor;
use super::{Cache, Fsync, Io, Layout, PosixConfig, PosixDriver, Write};

static IO: Flag = Flag::new(
    "--posix-io",
    Value::Checked("ENGINE", Value::parses::<Io>),
    Scope::Files,
    "How system calls are made: uring, threads or sync",
)
.with_more(
    "uring: io_uring for file data, threads for the rest. threads: a pool that may block. sync: the load thread \
     itself, which blocks during the call; for closed loops with as many workers as load threads. Default: uring, \
     or threads if there is no io_uring; for the ranks of io500 and md-workbench sync, with a load thread for each.",
);

static DIRECT: Flag = Flag::new(
    "--posix-direct",
    Value::Switch,
    Scope::Files,
    "Bypass the page cache (O_DIRECT)",
);

static FSYNC: Flag = Flag::new(
    "--posix-fsync",
    Value::Checked("WHEN", Value::parses::<Fsync>),
    Scope::Files,
    "When data must be on the device: never, close (before the file is closed) or write (with each write); default \
     `never`",
);

static WRITE: Flag = Flag::new(
    "--posix-write",
    Value::Checked("HOW", Value::parses::<Write>),
    Scope::Files,
    "How objects are written: in-place, or rename (a temporary file is renamed); default `in-place`",
);

static CACHE: Flag = Flag::new(
    "--posix-cache",
    Value::Checked("POLICY", Value::parses::<Cache>),
    Scope::Files,
    "Page cache: keep, or drop (the pages of a file after each operation on it); default `keep`",
);

static LAYOUT: Flag = Flag::new(
    "--posix-layout",
    Value::Checked("LAYOUT", Value::parses::<Layout>),
    Scope::Files,
    "One file per object (files), or objects at fixed offsets in one file (shared-file); default `files`",
);

static BLOCK: Flag = Flag::new(
    "--posix-block",
    Value::Checked("SIZE", check_size),
    Scope::Files,
    "Most bytes per system call; default 1MiB",
);

static SLOT: Flag = Flag::new(
    "--posix-slot",
    Value::Checked("SIZE", check_size),
    Scope::Files,
    "Shared file: distance between objects, and their largest size; default 1MiB",
);

static THREADS: Flag = Flag::new(
    "--posix-threads",
    Value::Checked("N", Value::parses::<usize>),
    Scope::Files,
    "Most pool threads per load thread; default 64",
);

/// The driver of `file://`.
pub static DESCRIPTOR: Descriptor = Descriptor {
    name: "posix",
    schemes: &["file"],
    form: UrlForm::Directory,
    page: "drivers/posix.md",
    semantics: Semantics {
        write: "open, write, close; fsync if configured",
        overwrite: "in place: readers may see a partial new file; or by rename, which is atomic",
        parts: "the parts are written into the file, one after the other",
        append: "1 write at the end of the file",
        rename: "1 call; atomic, no bytes move",
        list: "directory by directory; empty directories stay",
        delete_nothing: Semantics::MISSED,
        delete_many: "1 call for each file",
    },
    flags: &[&[
        &IO,
        &DIRECT,
        &FSYNC,
        &WRITE,
        &CACHE,
        &flags::DROP_CACHES,
        &LAYOUT,
        &BLOCK,
        &SLOT,
        &THREADS,
    ]],
    dialect: &[],
    endpoint_variables: &[],
    files: &[],
    secret: None,
    check_bucket: any_bucket,
    open: |request| {
        Ok(Service {
            driver: driver(request)?.into(),
            endpoints: Vec::new(),
        })
    },
    origins: |request| origins(request),
    check_cleanup: any_cleanup,
    doctor: |request, exam| doctor::examine(&driver(request)?, exam),
};

fn check_size(text: &str) -> Result<(), String> {
    let size = units::parse_size(text);
    size.map(drop).map_err(|invalid| invalid.to_string())
}

fn driver(request: &OpenRequest<'_>) -> Result<PosixDriver, OpenError> {
    let settings = request.settings;
    let size = |flag: &Flag, usual: u64| {
        let text = settings.get(flag);
        let size = text.map_or(Ok(usual), units::parse_size);
        size.map_err(|e| OpenError::Usage(format!("{}: {e}", flag.name)))
    };
    let mut config = PosixConfig::new(request.directory);
    config.io = settings.parse(&IO)?;
    config.direct = settings.has(&DIRECT);
    config.fsync = settings.parse(&FSYNC)?.unwrap_or(config.fsync);
    config.write = settings.parse(&WRITE)?.unwrap_or(config.write);
    config.cache = settings.parse(&CACHE)?.unwrap_or(config.cache);
    config.layout = settings.parse(&LAYOUT)?.unwrap_or(config.layout);
    config.block = size(&BLOCK, config.block)?;
    config.slot = size(&SLOT, config.slot)?;
    config.threads = settings.parse(&THREADS)?.unwrap_or(config.threads);
    let root = request.directory.display();
    PosixDriver::new(config).map_err(|e| OpenError::Usage(format!("file://{root}: {e}")))
}

fn origins(request: &OpenRequest<'_>) -> Result<Vec<Origin>, OpenError> {
    let driver = driver(request)?;
    let config = driver.config();
    let origin = |name: &'static str, flag: &'static Flag, value: String| Origin {
        name,
        value,
        source: match request.settings.has(flag) {
            true => Source::Flag(flag.name),
            false => Source::Default,
        },
    };
    Ok(vec![
        origin("engine", &IO, driver.io().to_string()),
        origin("O_DIRECT", &DIRECT, config.direct.to_string()),
        origin("fsync", &FSYNC, config.fsync.to_string()),
        origin("write", &WRITE, config.write.to_string()),
        origin("page cache", &CACHE, config.cache.to_string()),
        origin("layout", &LAYOUT, config.layout.to_string()),
        origin("block", &BLOCK, config.block.to_string()),
        origin("slot", &SLOT, config.slot.to_string()),
        origin("threads", &THREADS, config.threads.to_string()),
    ])
}
