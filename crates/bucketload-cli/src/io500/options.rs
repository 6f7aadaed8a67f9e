//! The options of IO500's configuration with their defaults (docs/spec/io500-mdworkbench.md section A.4), and ours.

/// What becomes of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// It is followed.
    Read,
    /// Only this value is followed (in any case of letters; empty for none); others are refused for the
    /// reason.
    Only(&'static str, &'static str),
    /// It changes nothing that is measured.
    Ignored,
}

/// An option: section, name, default, use.
pub(super) type Opt = (&'static str, &'static str, &'static str, Use);

const ONE_TARGET: Use = Use::Only(
    "",
    "all phases work on one target, as the rules of IO500 want it; set `api` in [global]",
);
const NO_COMMANDS: Use = Use::Only("", "commands from a file are not run");
const NO_COLLECTIVE: Use = Use::Only("FALSE", "there is no collective buffering between ranks");
const NO_MPI: Use = Use::Only("", "the search is made by the ranks themselves");

/// The options of both modes.
pub(super) const OPTIONS: &[Opt] = &[
    ("global", "datadir", "./datafiles", Use::Read),
    ("global", "timestamp-datadir", "TRUE", Use::Read),
    ("global", "resultdir", "./results", Use::Read),
    ("global", "timestamp-resultdir", "TRUE", Use::Read),
    ("global", "api", "POSIX", Use::Read),
    ("global", "drop-caches", "FALSE", Use::Read),
    ("global", "drop-caches-cmd", "", NO_COMMANDS),
    (
        "global",
        "io-buffers-on-gpu",
        "FALSE",
        Use::Only("FALSE", "buffers are in main memory"),
    ),
    ("global", "verbosity", "1", Use::Ignored),
    ("global", "scc", "FALSE", Use::Read),
    ("global", "dataPacketType", "timestamp", Use::Read),
    ("debug", "stonewall-time", "300", Use::Read),
    (
        "debug",
        "pause-dir",
        "",
        Use::Only("", "a run is not halted between phases"),
    ),
    ("ior-easy", "API", "", ONE_TARGET),
    ("ior-easy", "transferSize", "2m", Use::Read),
    ("ior-easy", "blockSize", "9920000m", Use::Read),
    (
        "ior-easy",
        "filePerProc",
        "TRUE",
        Use::Only("TRUE", "each rank writes a file of its own"),
    ),
    (
        "ior-easy",
        "uniqueDir",
        "FALSE",
        Use::Only("FALSE", "all files of ior-easy are in one directory"),
    ),
    ("ior-easy", "run", "TRUE", Use::Read),
    ("ior-easy", "verbosity", "", Use::Ignored),
    ("ior-easy-write", "API", "", ONE_TARGET),
    ("ior-easy-write", "run", "TRUE", Use::Read),
    ("mdtest-easy", "API", "", ONE_TARGET),
    ("mdtest-easy", "n", "1000000", Use::Read),
    ("mdtest-easy", "run", "TRUE", Use::Read),
    ("mdtest-easy-write", "API", "", ONE_TARGET),
    ("mdtest-easy-write", "run", "TRUE", Use::Read),
    ("ior-hard", "API", "", ONE_TARGET),
    ("ior-hard", "segmentCount", "10000000", Use::Read),
    ("ior-hard", "collective", "", NO_COLLECTIVE),
    ("ior-hard", "run", "TRUE", Use::Read),
    ("ior-hard", "verbosity", "", Use::Ignored),
    ("ior-hard-write", "API", "", ONE_TARGET),
    ("ior-hard-write", "collective", "", NO_COLLECTIVE),
    ("ior-hard-write", "run", "TRUE", Use::Read),
    ("mdtest-hard", "API", "", ONE_TARGET),
    ("mdtest-hard", "n", "1000000", Use::Read),
    (
        "mdtest-hard",
        "files-per-dir",
        "",
        Use::Only("", "it makes a run invalid; files are in one directory"),
    ),
    ("mdtest-hard", "run", "TRUE", Use::Read),
    ("mdtest-hard-write", "API", "", ONE_TARGET),
    ("mdtest-hard-write", "run", "TRUE", Use::Read),
    ("find", "external-script", "", NO_COMMANDS),
    ("find", "external-mpi-args", "", NO_MPI),
    ("find", "external-extra-args", "", NO_MPI),
    ("find", "nproc", "", Use::Only("", "all ranks search")),
    ("find", "run", "TRUE", Use::Read),
    ("find", "pfind-queue-length", "10000", Use::Ignored),
    ("find", "pfind-steal-next", "FALSE", Use::Ignored),
    (
        "find",
        "pfind-parallelize-single-dir-access-using-hashing",
        "FALSE",
        Use::Ignored,
    ),
    ("ior-easy-read", "API", "", ONE_TARGET),
    ("ior-easy-read", "run", "TRUE", Use::Read),
    ("mdtest-easy-stat", "API", "", ONE_TARGET),
    ("mdtest-easy-stat", "run", "TRUE", Use::Read),
    ("ior-hard-read", "API", "", ONE_TARGET),
    ("ior-hard-read", "collective", "", NO_COLLECTIVE),
    ("ior-hard-read", "run", "TRUE", Use::Read),
    ("mdtest-hard-stat", "API", "", ONE_TARGET),
    ("mdtest-hard-stat", "run", "TRUE", Use::Read),
    ("mdtest-easy-delete", "API", "", ONE_TARGET),
    ("mdtest-easy-delete", "run", "TRUE", Use::Read),
    ("mdtest-hard-read", "API", "", ONE_TARGET),
    ("mdtest-hard-read", "run", "TRUE", Use::Read),
    ("mdtest-hard-delete", "API", "", ONE_TARGET),
    ("mdtest-hard-delete", "run", "TRUE", Use::Read),
    ("ior-rnd4K-easy-read", "API", "", ONE_TARGET),
    ("ior-rnd4K-easy-read", "run", "TRUE", Use::Read),
    // Not IO500's: what mpirun, the command line and the environment say there.
    ("bucketload", "mode", "standard", Use::Read),
    ("bucketload", "ranks", "", Use::Read),
    ("bucketload", "mapping", "", Use::Read),
    ("bucketload", "part-size", "8MiB", Use::Read),
    ("bucketload", "delete", "list", Use::Read),
];

/// Options of the phases of the extended mode.
pub(super) const EXTENDED: &[Opt] = &[
    ("mdworkbench", "API", "", ONE_TARGET),
    ("mdworkbench", "waitingTime", "0.0", Use::Read),
    ("mdworkbench", "precreatePerSet", "", Use::Read),
    ("mdworkbench", "filesPerProc", "", Use::Read),
    ("mdworkbench", "run", "TRUE", Use::Read),
    ("mdworkbench", "verbosity", "", Use::Ignored),
    ("mdworkbench-create", "API", "", ONE_TARGET),
    ("mdworkbench-create", "run", "TRUE", Use::Read),
    ("find-easy", "external-script", "", NO_COMMANDS),
    ("find-easy", "external-mpi-args", "", NO_MPI),
    ("find-easy", "external-extra-args", "", NO_MPI),
    ("find-easy", "nproc", "", Use::Only("", "all ranks search")),
    ("find-easy", "run", "TRUE", Use::Read),
    ("find-easy", "pfind-queue-length", "10000", Use::Ignored),
    ("find-easy", "pfind-steal-next", "FALSE", Use::Ignored),
    (
        "find-easy",
        "pfind-parallelize-single-dir-access-using-hashing",
        "FALSE",
        Use::Ignored,
    ),
    ("find-hard", "external-script", "", NO_COMMANDS),
    ("find-hard", "external-mpi-args", "", NO_MPI),
    ("find-hard", "external-extra-args", "", NO_MPI),
    ("find-hard", "nproc", "", Use::Only("", "all ranks search")),
    ("find-hard", "run", "TRUE", Use::Read),
    ("find-hard", "pfind-queue-length", "10000", Use::Ignored),
    ("find-hard", "pfind-steal-next", "FALSE", Use::Ignored),
    (
        "find-hard",
        "pfind-parallelize-single-dir-access-using-hashing",
        "FALSE",
        Use::Ignored,
    ),
    ("mdworkbench-bench", "API", "", ONE_TARGET),
    ("mdworkbench-bench", "run", "TRUE", Use::Read),
    ("mdworkbench-delete", "API", "", ONE_TARGET),
    ("mdworkbench-delete", "run", "TRUE", Use::Read),
];

/// Every option of a mode, in the order of `config.ini`.
pub(super) fn options(extended: bool) -> impl Iterator<Item = &'static Opt> {
    let more = if extended { EXTENDED } else { &[] };
    OPTIONS.iter().chain(more)
}
