//! The options of IO500's configuration with their defaults (docs/spec/io500-mdworkbench.md section A.4), and ours.

use OptionUse::{Ignored, Only, Read};

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

const ONE_TARGET: OptionUse = Only(
    "",
    "all phases use the same target, as the rules of IO500 require; set `api` in [global]",
);
const NO_COMMANDS: OptionUse = Only("", "commands from a file are not run");
const NO_COLLECTIVE: OptionUse = Only(
    "FALSE",
    "collective buffering between ranks is not supported",
);
const NO_MPI: OptionUse = Only("", "the ranks themselves perform the search");
const ALL_SEARCH: OptionUse = Only("", "all ranks search");

/// The options of both modes.
pub(super) const OPTIONS: &[Opt] = &[
    ("global", "datadir", "./datafiles", Read),
    ("global", "timestamp-datadir", "TRUE", Read),
    ("global", "resultdir", "./results", Read),
    ("global", "timestamp-resultdir", "TRUE", Read),
    ("global", "api", "POSIX", Read),
    ("global", "drop-caches", "FALSE", Read),
    ("global", "drop-caches-cmd", "", NO_COMMANDS),
    (
        "global",
        "io-buffers-on-gpu",
        "FALSE",
        Only("FALSE", "buffers are in main memory"),
    ),
    ("global", "verbosity", "1", Ignored),
    ("global", "scc", "FALSE", Read),
    ("global", "dataPacketType", "timestamp", Read),
    ("debug", "stonewall-time", "300", Read),
    (
        "debug",
        "pause-dir",
        "",
        Only("", "a run does not pause between phases"),
    ),
    ("ior-easy", "API", "", ONE_TARGET),
    ("ior-easy", "transferSize", "2m", Read),
    ("ior-easy", "blockSize", "9920000m", Read),
    (
        "ior-easy",
        "filePerProc",
        "TRUE",
        Only("TRUE", "each rank writes a file of its own"),
    ),
    (
        "ior-easy",
        "uniqueDir",
        "FALSE",
        Only("FALSE", "all files of ior-easy are in one directory"),
    ),
    ("ior-easy", "run", "TRUE", Read),
    ("ior-easy", "verbosity", "", Ignored),
    ("ior-easy-write", "API", "", ONE_TARGET),
    ("ior-easy-write", "run", "TRUE", Read),
    ("mdtest-easy", "API", "", ONE_TARGET),
    ("mdtest-easy", "n", "1000000", Read),
    ("mdtest-easy", "run", "TRUE", Read),
    ("mdtest-easy-write", "API", "", ONE_TARGET),
    ("mdtest-easy-write", "run", "TRUE", Read),
    ("ior-hard", "API", "", ONE_TARGET),
    ("ior-hard", "segmentCount", "10000000", Read),
    ("ior-hard", "collective", "", NO_COLLECTIVE),
    ("ior-hard", "run", "TRUE", Read),
    ("ior-hard", "verbosity", "", Ignored),
    ("ior-hard-write", "API", "", ONE_TARGET),
    ("ior-hard-write", "collective", "", NO_COLLECTIVE),
    ("ior-hard-write", "run", "TRUE", Read),
    ("mdtest-hard", "API", "", ONE_TARGET),
    ("mdtest-hard", "n", "1000000", Read),
    (
        "mdtest-hard",
        "files-per-dir",
        "",
        Only("", "it makes a run invalid; all files are in one directory"),
    ),
    ("mdtest-hard", "run", "TRUE", Read),
    ("mdtest-hard-write", "API", "", ONE_TARGET),
    ("mdtest-hard-write", "run", "TRUE", Read),
    ("find", "external-script", "", NO_COMMANDS),
    ("find", "external-mpi-args", "", NO_MPI),
    ("find", "external-extra-args", "", NO_MPI),
    ("find", "nproc", "", ALL_SEARCH),
    ("find", "run", "TRUE", Read),
    ("find", "pfind-queue-length", "10000", Ignored),
    ("find", "pfind-steal-next", "FALSE", Ignored),
    (
        "find",
        "pfind-parallelize-single-dir-access-using-hashing",
        "FALSE",
        Ignored,
    ),
    ("ior-easy-read", "API", "", ONE_TARGET),
    ("ior-easy-read", "run", "TRUE", Read),
    ("mdtest-easy-stat", "API", "", ONE_TARGET),
    ("mdtest-easy-stat", "run", "TRUE", Read),
    ("ior-hard-read", "API", "", ONE_TARGET),
    ("ior-hard-read", "collective", "", NO_COLLECTIVE),
    ("ior-hard-read", "run", "TRUE", Read),
    ("mdtest-hard-stat", "API", "", ONE_TARGET),
    ("mdtest-hard-stat", "run", "TRUE", Read),
    ("mdtest-easy-delete", "API", "", ONE_TARGET),
    ("mdtest-easy-delete", "run", "TRUE", Read),
    ("mdtest-hard-read", "API", "", ONE_TARGET),
    ("mdtest-hard-read", "run", "TRUE", Read),
    ("mdtest-hard-delete", "API", "", ONE_TARGET),
    ("mdtest-hard-delete", "run", "TRUE", Read),
    ("ior-rnd4K-easy-read", "API", "", ONE_TARGET),
    ("ior-rnd4K-easy-read", "run", "TRUE", Read),
    // Not IO500's: there, mpirun, the command line and the environment say these.
    ("bucketload", "mode", "standard", Read),
    ("bucketload", "ranks", "", Read),
    ("bucketload", "mapping", "", Read),
    ("bucketload", "part-size", "8MiB", Read),
    ("bucketload", "delete", "list", Read),
];

/// Options of the phases of the extended mode.
pub(super) const EXTENDED: &[Opt] = &[
    ("mdworkbench", "API", "", ONE_TARGET),
    ("mdworkbench", "waitingTime", "0.0", Read),
    ("mdworkbench", "precreatePerSet", "", Read),
    ("mdworkbench", "filesPerProc", "", Read),
    ("mdworkbench", "run", "TRUE", Read),
    ("mdworkbench", "verbosity", "", Ignored),
    ("mdworkbench-create", "API", "", ONE_TARGET),
    ("mdworkbench-create", "run", "TRUE", Read),
    ("find-easy", "external-script", "", NO_COMMANDS),
    ("find-easy", "external-mpi-args", "", NO_MPI),
    ("find-easy", "external-extra-args", "", NO_MPI),
    ("find-easy", "nproc", "", ALL_SEARCH),
    ("find-easy", "run", "TRUE", Read),
    ("find-easy", "pfind-queue-length", "10000", Ignored),
    ("find-easy", "pfind-steal-next", "FALSE", Ignored),
    (
        "find-easy",
        "pfind-parallelize-single-dir-access-using-hashing",
        "FALSE",
        Ignored,
    ),
    ("find-hard", "external-script", "", NO_COMMANDS),
    ("find-hard", "external-mpi-args", "", NO_MPI),
    ("find-hard", "external-extra-args", "", NO_MPI),
    ("find-hard", "nproc", "", ALL_SEARCH),
    ("find-hard", "run", "TRUE", Read),
    ("find-hard", "pfind-queue-length", "10000", Ignored),
    ("find-hard", "pfind-steal-next", "FALSE", Ignored),
    (
        "find-hard",
        "pfind-parallelize-single-dir-access-using-hashing",
        "FALSE",
        Ignored,
    ),
    ("mdworkbench-bench", "API", "", ONE_TARGET),
    ("mdworkbench-bench", "run", "TRUE", Read),
    ("mdworkbench-delete", "API", "", ONE_TARGET),
    ("mdworkbench-delete", "run", "TRUE", Read),
];

/// The options of a mode, in the order of `config.ini`.
pub(super) fn options(extended: bool) -> impl Iterator<Item = &'static Opt> {
    let more = if extended { EXTENDED } else { &[] };
    OPTIONS.iter().chain(more)
}
