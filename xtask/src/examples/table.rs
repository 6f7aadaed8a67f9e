//! Tables for the documents' examples: placeholders with their local replacements, and the commands that end
//! differently, take long, or cannot run on one machine.

/// How a command is run.
#[derive(Clone, Copy, Debug)]
pub(super) enum Handling {
    /// Run to its end in every run of the task.
    Quick,
    /// Takes minutes; run only by conformance.
    Long(&'static str),
    /// Never run here.
    Never(&'static str),
    /// A server, ended at the end of its page.
    Serves,
    /// May end with 0, or with this code if its standard error contains the text.
    Or(i32, &'static str),
}

/// A rule: the end of the page's path (empty for any), words of the command, and how to run it. The first match
/// counts; a command without a rule is quick.
pub(super) type Rule = (&'static str, &'static str, Handling);

use Handling::{Long, Never, Or, Serves};

const CLUSTER: &str = "needs a cluster: conformance parts slurm, mpi and k8s";
const OTHER_STEP: &str = "a step of CI of its own";
const MINUTES: &str = "measures for minutes";
const FULL_SIZE: &str =
    "writes 32 MiB and more per request for minutes; its tests ask for small entries";
const IO500: &str =
    "300 s a phase by IO500's rules, about an hour: conformance part io500 shortens them";

pub(super) const RULES: &[Rule] = &[
    // Third-party programs.
    ("", "sbatch ", Never(CLUSTER)),
    ("", "srun ", Never(CLUSTER)),
    ("", "kubectl ", Never(CLUSTER)),
    ("", "mpirun ", Never("needs IOR, conformance part libs3")),
    ("", "alias ", Never("stands for the program's own path")),
    (
        "howto/first-hour.md",
        "",
        Never("recorded sessions: conformance part first-hour types them"),
    ),
    (
        "commands/bucketload-init.md",
        "init",
        Or(2, "without a terminal"),
    ),
    ("", "cargo build", Never(OTHER_STEP)),
    ("", "cargo test", Never(OTHER_STEP)),
    ("", "cargo xtask", Never(OTHER_STEP)),
    (
        "libs3.md",
        "mkdir ",
        Never("copies what cargo builds, conformance part libs3"),
    ),
    (
        "servers/README.md",
        "./",
        Never("conformance starts each server by its script"),
    ),
    // Services that no script in servers/ provides.
    ("", "https://storage.googleapis.com", Never("a real cloud")),
    (
        "drivers/gcs.md",
        "",
        Never("a real cloud; conformance part gcs runs the driver"),
    ),
    (
        "drivers/azure.md",
        "",
        Never("a real cloud; conformance part azure runs the driver"),
    ),
    ("drivers/swift.md", "report out", Handling::Quick),
    (
        "drivers/swift.md",
        "",
        Never("a Swift cluster; conformance part swift runs driver and placement"),
    ),
    ("drivers/hdfs.md", "report out", Handling::Quick),
    (
        "drivers/hdfs.md",
        "",
        Never("an HDFS cluster; conformance part hdfs runs driver and placement"),
    ),
    ("drivers/seaweedfs.md", "report RUN", Handling::Quick),
    (
        "drivers/seaweedfs.md",
        "",
        Never("a SeaweedFS cluster; conformance part seaweedfs runs driver and placement"),
    ),
    (
        "",
        "placement ceph",
        Never("a Ceph cluster; conformance part servers starts one"),
    ),
    (
        "",
        "--engine aws-sdk",
        Never("another build; conformance part engines"),
    ),
    (
        "",
        "--engine cli:s3cmd",
        Never("needs s3cmd; conformance part programs"),
    ),
    (
        "",
        "--engine cli:rclone",
        Never("needs rclone; conformance part drills"),
    ),
    (
        "docs/drills.md",
        "compare native rclone",
        Never("compares what conformance part drills measures"),
    ),
    (
        "howto/drills.md",
        "servers/minio.sh",
        Never("conformance part drills-stores starts it"),
    ),
    (
        "",
        "libs3",
        Never("needs a library; conformance part libs3"),
    ),
    (
        "",
        "--controller head:7401",
        Never("needs a coordinator that waits; conformance part k8s"),
    ),
    (
        "study.md",
        "ostorebench",
        Never("installs Swift, Ceph and MinIO; conformance part study"),
    ),
    (
        "studies.md",
        "ostorebench",
        Never("installs Swift, Ceph and MinIO; conformance part study"),
    ),
    ("", "--time 30m", Never("takes half an hour, as it says")),
    (
        "",
        "study-grid --rows all --scale 1",
        Never("files of 10 GB by 16 processes"),
    ),
    // Small settings of a workload that takes long.
    ("data-sets.md", "online-service", Handling::Quick),
    // Commands that only print something.
    ("", "--dry-run", Handling::Quick),
    ("", "config show", Handling::Quick),
    ("", "slurm --nodes", Handling::Quick),
    ("", "k8s --name", Handling::Quick),
    ("", "bucketload submit", Handling::Quick),
    // Servers.
    ("", "bucketload agent --listen", Serves),
    ("", "bucketload serve", Serves),
    ("", "bucketload gateway", Serves),
    ("", "bucketload controller", Serves),
    ("", "top bucketload-runs/", Handling::Quick),
    ("", "top --controller", Serves),
    ("commands/bucketload-top.md", "bucketload top", Serves),
    // Long runs.
    ("", "io500 --config io500.ini", Long("IO500's sizes")),
    (
        "",
        "io500 --verify",
        Never("needs the directory of a run, which is named after its start time"),
    ),
    (
        "commands/bucketload-io500.md",
        "stonewall-time=1",
        Long("the same as that of docs/io500.md"),
    ),
    ("", "stonewall-time=1", Handling::Quick),
    ("", "io500 ", Never(IO500)),
    (
        "docs/README.md",
        "run online-service",
        Long("the same as README.md's"),
    ),
    ("README.md", "-- run online-service", Handling::Quick),
    (
        "howto/install.md",
        "-- run online-service",
        Long("the same as README.md's"),
    ),
    (
        "",
        "compare runs/",
        Or(2, "it says nothing about the store"),
    ),
    (
        "",
        "compare --a runs/",
        Or(2, "it says nothing about the store"),
    ),
    // On a busy machine the client is the limit, and the gate says so.
    (
        "howto/ci.md",
        "run mixed --duration 30s --slo",
        Or(1, "bucketload: --"),
    ),
    (
        "commands/bucketload-checkpoint.md",
        "--plan",
        Handling::Quick,
    ),
    (
        "commands/bucketload-checkpoint.md",
        "bucketload checkpoint --model",
        Never("writes up to a TiB; its tests write scaled checkpoints"),
    ),
    (
        "commands/bucketload-train.md",
        "--target s3://bench",
        Never("prepares 160 GB; its tests read scaled records"),
    ),
    (
        "kvcache.md",
        "--preset mlperf-1 --clients",
        Never(FULL_SIZE),
    ),
    (
        "kvcache.md",
        "--preset mlperf-1 --target s3://",
        Never(FULL_SIZE),
    ),
    ("", "--over users", Never(FULL_SIZE)),
    (
        "",
        "drill --mend",
        Never("needs the directory of a run, which is named after its start time"),
    ),
    (
        "",
        "drill node-kill",
        Never("its commands reach hosts of a cluster"),
    ),
    ("", "bucketload drill ", Long(MINUTES)),
    ("", "bucketload compare ", Long(MINUTES)),
    ("", "bucketload capacity ", Long(MINUTES)),
    ("", "bucketload sweep ", Long(MINUTES)),
    ("", "bucketload study ossperf", Long(MINUTES)),
    ("", "bucketload study ai --quick", Long(MINUTES)),
    ("", "bucketload study mine.toml", Long(MINUTES)),
    (
        "",
        "bucketload study report",
        Long("reports what the command before it measured"),
    ),
    ("", "bucketload study-grid", Long(MINUTES)),
    ("", "bucketload s3-hpc", Long(MINUTES)),
    ("", "bucketload md-workbench", Long(MINUTES)),
    (
        "",
        "bucketload run online-service",
        Long("75 s, and on a real store 12 GiB"),
    ),
    ("", "bucketload run hotspot", Long(MINUTES)),
    ("", "bucketload run list-consistency", Long(MINUTES)),
    ("", "bucketload run mixed", Long("30 s and more")),
    ("", "bucketload run get", Long("30 s and more")),
];

/// Placeholders of the documents and their replacements, in this order; the task fills in `{…}`.
pub(super) const PLACEHOLDERS: &[(&str, &str)] = &[
    ("cargo run --release -- ", "bucketload "),
    // Servers.
    ("http://node{1...4}:9000", "http://127.0.0.{1...4}:{PORT}"),
    ("http://host{1...4}:9000", "http://127.0.0.{1...4}:{PORT}"),
    ("http://new:9000", "http://{OTHER}"),
    ("http://127.0.0.1:9002", "http://{OTHER}"),
    ("http://127.0.0.1:9001", "http://{STORE}"),
    ("http://127.0.0.1:7070", "http://{STORE}"),
    ("http://store.example:9000", "http://{STORE}"),
    ("http://store:9000", "http://{STORE}"),
    ("http://host:9000", "http://{STORE}"),
    ("http://host1:9000", "http://{STORE}"),
    ("http://host2:9000", "http://{OTHER}"),
    ("http://store-1:9000", "http://{STORE}"),
    ("http://store-2:9000", "http://{OTHER}"),
    ("http://old:9000", "http://{STORE}"),
    ("--endpoint-url …", "--endpoint-url http://{STORE}"),
    ("h1:7400,h2:7400", "{AGENTS}"),
    // Listening addresses: loopback with a free port.
    ("0.0.0.0:7400", "127.0.0.1:0"),
    ("0.0.0.0:9000", "127.0.0.1:0"),
    ("0.0.0.0:9020", "127.0.0.1:0"),
    ("127.0.0.1:9020", "127.0.0.1:0"),
    // A page's second server cannot use the default port.
    (
        "serve --store null",
        "serve --listen 127.0.0.1:0 --store null",
    ),
    // A page's second controller needs its own port and directory.
    ("0.0.0.0:19088", "127.0.0.1:0 --data {DIR}/second"),
    (
        "controller --agents",
        "controller --listen 127.0.0.1:0 --data {DIR}/third --agents",
    ),
    (
        "controller --allow-root",
        "controller --listen 127.0.0.1:0 --data {DIR}/fourth --allow-root",
    ),
    // Keys.
    (
        "AWS_ACCESS_KEY_ID=… AWS_SECRET_ACCESS_KEY=…",
        "AWS_ACCESS_KEY_ID={ID} AWS_SECRET_ACCESS_KEY={SECRET}",
    ),
    (
        "AWS_ACCESS_KEY_ID=... AWS_SECRET_ACCESS_KEY=...",
        "AWS_ACCESS_KEY_ID={ID} AWS_SECRET_ACCESS_KEY={SECRET}",
    ),
    // Directories.
    ("/mnt/", "{DIR}/mnt/"),
    ("/dev/shm/", "{DIR}/shm/"),
    ("/srv/", "{DIR}/srv/"),
    ("/scratch/", "{DIR}/scratch/"),
    ("/tmp/", "{DIR}/"),
    ("/run/user/1000/", "{DIR}/"),
    ("unix:PATH", "unix:{DIR}/socket"),
    ("/etc/bash_completion.d/", "{DIR}/completions/"),
    (
        "bucketload-runs/online-service-...",
        "bucketload-runs/online-service-earlier",
    ),
    (" -l -", " -l - >page"),
];

/// Buckets of the examples.
pub(super) const BUCKETS: [&str; 7] = ["BUCKET", "bench", "bucket", "c", "my-bucket", "new", "old"];

/// Pages whose commands wait so long that the others run at the same time.
pub(super) const BESIDE: [&str; 1] = ["README.md"];

/// Pages whose commands need a controller that another page starts.
pub(super) const WITH_CONTROLLER: [&str; 2] = [
    "commands/bucketload-submit.md",
    "commands/bucketload-top.md",
];

/// Files that the surrounding text promises: page, words of the command, file.
pub(super) const FILES: &[(&str, &str, &str)] = &[
    ("", "bucketload run ossperf", "results.csv"),
    ("", "-L /tmp/latency", "latency*"),
];

/// The rule for a command of a page.
pub(super) fn rule(page: &str, command: &str) -> Option<usize> {
    RULES
        .iter()
        .position(|(of, words, _)| page_is(page, of) && command.contains(words))
}

/// True if `page` is named by `end`, the end of its path.
pub(super) fn page_is(page: &str, end: &str) -> bool {
    // Many directories have such a page; the bare name means the one in the root.
    if end == "README.md" {
        return page == end;
    }
    page.ends_with(end)
}

#[cfg(test)]
mod tests {
    use super::{page_is, rule};

    #[test]
    fn the_first_matching_rule_counts() {
        let dry = rule("docs/io500.md", "bucketload io500 --dry-run");
        let io500 = rule("docs/io500.md", "bucketload io500 --ranks 16");
        assert!(dry.is_some() && io500.is_some() && dry < io500);
        assert_eq!(rule("docs/x.md", "bucketload show get"), None);
    }

    #[test]
    fn a_bare_readme_means_the_root_page_only() {
        assert!(page_is("README.md", "README.md"));
        assert!(!page_is("servers/README.md", "README.md"));
        assert!(page_is("servers/README.md", "servers/README.md"));
        assert!(page_is(
            "docs/reference/commands/bucketload-top.md",
            "commands/bucketload-top.md"
        ));
    }
}
