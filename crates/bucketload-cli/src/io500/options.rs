//! The options of IO500's configuration with their defaults (docs/spec/io500-mdworkbench.md section A.4), and ours.

/// How an option is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OptionUse {
    /// It has its effect.
    Read,
    /// Only this value is accepted (case-insensitive; empty for no value); others are refused for the reason.
    Only(&'static str, &'static str),
    /// It has no effect on what is measured.
    Ignored,
}

/// An option: section, name, default, use.
pub(super) type Opt = (&'static str, &'static str, &'static str, OptionUse);

const ONE_TARGET: OptionUse = OptionUse::Only(
    "",
    "all phases use the same target, as the rules of IO500 require; set `api` in [global]",
);
const NO_COMMANDS: OptionUse = OptionUse::Only("", "commands from a file are not run");
const NO_COLLECTIVE: OptionUse = OptionUse::Only(
    "FALSE",
    "collective buffering between ranks is not supported",
);
const NO_MPI: OptionUse = OptionUse::Only("", "the ranks themselves perform the search");

/// The options of both modes.
pub(super) const OPTIONS: &[Opt] = &[
    ("global", "datadir", "./datafiles", OptionUse::Read),
    ("global", "timestamp-datadir", "TRUE", OptionUse::Read),
    ("global", "resultdir", "./results", OptionUse::Read),
    ("global", "timestamp-resultdir", "TRUE", OptionUse::Read),
    ("global", "api", "POSIX", OptionUse::Read),
    ("global", "drop-caches", "FALSE", OptionUse::Read),
    ("global", "drop-caches-cmd", "", NO_COMMANDS),
    (
        "global",
        "io-buffers-on-gpu",
        "FALSE",
        OptionUse::Only("FALSE", "buffers are in main memory"),
    ),
    ("global", "verbosity", "1", OptionUse::Ignored),
    ("global", "scc", "FALSE", OptionUse::Read),
    ("global", "dataPacketType", "timestamp", OptionUse::Read),
    ("debug", "stonewall-time", "300", OptionUse::Read),
    (
        "debug",
        "pause-dir",
        "",
        OptionUse::Only("", "a run does not pause between phases"),
    ),
    ("ior-easy", "API", "", ONE_TARGET),
    ("ior-easy", "transferSize", "2m", OptionUse::Read),
    ("ior-easy", "blockSize", "9920000m", OptionUse::Read),
    (
        "ior-easy",
        "filePerProc",
        "TRUE",
        OptionUse::Only("TRUE", "each rank writes a file of its own"),
    ),
    (
        "ior-easy",
        "uniqueDir",
        "FALSE",
        OptionUse::Only("FALSE", "all files of ior-easy are in one directory"),
    ),
    ("ior-easy", "run", "TRUE", OptionUse::Read),
    ("ior-easy", "verbosity", "", OptionUse::Ignored),
    ("ior-easy-write", "API", "", ONE_TARGET),
    ("ior-easy-write", "run", "TRUE", OptionUse::Read),
    ("mdtest-easy", "API", "", ONE_TARGET),
    ("mdtest-easy", "n", "1000000", OptionUse::Read),
    ("mdtest-easy", "run", "TRUE", OptionUse::Read),
    ("mdtest-easy-write", "API", "", ONE_TARGET),
    ("mdtest-easy-write", "run", "TRUE", OptionUse::Read),
    ("ior-hard", "API", "", ONE_TARGET),
    ("ior-hard", "segmentCount", "10000000", OptionUse::Read),
    ("ior-hard", "collective", "", NO_COLLECTIVE),
    ("ior-hard", "run", "TRUE", OptionUse::Read),
    ("ior-hard", "verbosity", "", OptionUse::Ignored),
    ("ior-hard-write", "API", "", ONE_TARGET),
    ("ior-hard-write", "collective", "", NO_COLLECTIVE),
    ("ior-hard-write", "run", "TRUE", OptionUse::Read),
    ("mdtest-hard", "API", "", ONE_TARGET),
    ("mdtest-hard", "n", "1000000", OptionUse::Read),
    (
        "mdtest-hard",
        "files-per-dir",
        "",
        OptionUse::Only("", "it makes a run invalid; all files are in one directory"),
    ),
    ("mdtest-hard", "run", "TRUE", OptionUse::Read),
    ("mdtest-hard-write", "API", "", ONE_TARGET),
    ("mdtest-hard-write", "run", "TRUE", OptionUse::Read),
    ("find", "external-script", "", NO_COMMANDS),
    ("find", "external-mpi-args", "", NO_MPI),
    ("find", "external-extra-args", "", NO_MPI),
    ("find", "nproc", "", OptionUse::Only("", "all ranks search")),
    ("find", "run", "TRUE", OptionUse::Read),
    ("find", "pfind-queue-length", "10000", OptionUse::Ignored),
    ("find", "pfind-steal-next", "FALSE", OptionUse::Ignored),
    (
        "find",
        "pfind-parallelize-single-dir-access-using-hashing",
        "FALSE",
        OptionUse::Ignored,
    ),
    ("ior-easy-read", "API", "", ONE_TARGET),
    ("ior-easy-read", "run", "TRUE", OptionUse::Read),
    ("mdtest-easy-stat", "API", "", ONE_TARGET),
    ("mdtest-easy-stat", "run", "TRUE", OptionUse::Read),
    ("ior-hard-read", "API", "", ONE_TARGET),
    ("ior-hard-read", "collective", "", NO_COLLECTIVE),
    ("ior-hard-read", "run", "TRUE", OptionUse::Read),
    ("mdtest-hard-stat", "API", "", ONE_TARGET),
    ("mdtest-hard-stat", "run", "TRUE", OptionUse::Read),
    ("mdtest-easy-delete", "API", "", ONE_TARGET),
    ("mdtest-easy-delete", "run", "TRUE", OptionUse::Read),
    ("mdtest-hard-read", "API", "", ONE_TARGET),
    ("mdtest-hard-read", "run", "TRUE", OptionUse::Read),
    ("mdtest-hard-delete", "API", "", ONE_TARGET),
    ("mdtest-hard-delete", "run", "TRUE", OptionUse::Read),
    ("ior-rnd4K-easy-read", "API", "", ONE_TARGET),
    ("ior-rnd4K-easy-read", "run", "TRUE", OptionUse::Read),
    // Not IO500's: there, mpirun, the command line and the environment say these.
    ("bucketload", "mode", "standard", OptionUse::Read),
    ("bucketload", "ranks", "", OptionUse::Read),
    ("bucketload", "mapping", "", OptionUse::Read),
    ("bucketload", "part-size", "8MiB", OptionUse::Read),
    ("bucketload", "delete", "list", OptionUse::Read),
];

/// Options of the phases of the extended mode.
pub(super) const EXTENDED: &[Opt] = &[
    ("mdworkbench", "API", "", ONE_TARGET),
    ("mdworkbench", "waitingTime", "0.0", OptionUse::Read),
    ("mdworkbench", "precreatePerSet", "", OptionUse::Read),
    ("mdworkbench", "filesPerProc", "", OptionUse::Read),
    ("mdworkbench", "run", "TRUE", OptionUse::Read),
    ("mdworkbench", "verbosity", "", OptionUse::Ignored),
    ("mdworkbench-create", "API", "", ONE_TARGET),
    ("mdworkbench-create", "run", "TRUE", OptionUse::Read),
    ("find-easy", "external-script", "", NO_COMMANDS),
    ("find-easy", "external-mpi-args", "", NO_MPI),
    ("find-easy", "external-extra-args", "", NO_MPI),
    (
        "find-easy",
        "nproc",
        "",
        OptionUse::Only("", "all ranks search"),
    ),
    ("find-easy", "run", "TRUE", OptionUse::Read),
    (
        "find-easy",
        "pfind-queue-length",
        "10000",
        OptionUse::Ignored,
    ),
    ("find-easy", "pfind-steal-next", "FALSE", OptionUse::Ignored),
    (
        "find-easy",
        "pfind-parallelize-single-dir-access-using-hashing",
        "FALSE",
        OptionUse::Ignored,
    ),
    ("find-hard", "external-script", "", NO_COMMANDS),
    ("find-hard", "external-mpi-args", "", NO_MPI),
    ("find-hard", "external-extra-args", "", NO_MPI),
    (
        "find-hard",
        "nproc",
        "",
        OptionUse::Only("", "all ranks search"),
    ),
    ("find-hard", "run", "TRUE", OptionUse::Read),
    (
        "find-hard",
        "pfind-queue-length",
        "10000",
        OptionUse::Ignored,
    ),
    ("find-hard", "pfind-steal-next", "FALSE", OptionUse::Ignored),
    (
        "find-hard",
        "pfind-parallelize-single-dir-access-using-hashing",
        "FALSE",
        OptionUse::Ignored,
    ),
    ("mdworkbench-bench", "API", "", ONE_TARGET),
    ("mdworkbench-bench", "run", "TRUE", OptionUse::Read),
    ("mdworkbench-delete", "API", "", ONE_TARGET),
    ("mdworkbench-delete", "run", "TRUE", OptionUse::Read),
];

/// The options of a mode, in the order of `config.ini`.
pub(super) fn options(extended: bool) -> impl Iterator<Item = &'static Opt> {
    let more = if extended { EXTENDED } else { &[] };
    OPTIONS.iter().chain(more)
}
