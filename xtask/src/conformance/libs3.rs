//! The libs3 library as C programs use it: its exports, test vectors of the C interface in the process and behind a
//! gateway, memory errors and races under valgrind and sanitizers, crashes and forks, a client built against the
//! original library, and a bucket of a million objects.
//!
//! The programs are those of `crates/libs3-bucketload/tests/c`, compiled against their own declaration of the
//! interface.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::files::{self, TempDir};
use crate::process::Process;
use crate::program::{self, bucketload, call, done};
use crate::sh::{
    Result, cargo, cmd, ensure, line, need_programs, none_of, output, root, run, steps, words,
};

/// The functions of libs3 4.1; the library must export exactly these.
const EXPORTS: &str = "S3_abort_multipart_upload S3_complete_multipart_upload S3_convert_acl S3_copy_object \
    S3_copy_object_range S3_create_bucket S3_create_request_context S3_create_request_context_ex \
    S3_deinitialize S3_delete_bucket S3_delete_object S3_destroy_request_context \
    S3_generate_authenticated_query_string S3_get_acl S3_get_lifecycle S3_get_object \
    S3_get_request_context_fdsets S3_get_request_context_timeout S3_get_server_access_logging \
    S3_get_status_name S3_head_object S3_initialize S3_initiate_multipart S3_list_bucket \
    S3_list_multipart_uploads S3_list_parts S3_list_service S3_process_request_context S3_put_object \
    S3_runall_request_context S3_runonce_request_context S3_set_acl S3_set_lifecycle \
    S3_set_request_context_verify_peer S3_set_server_access_logging S3_status_is_retryable \
    S3_test_bucket S3_upload_part S3_validate_bucket_name";

/// Number of functions of libs3 2.0.
const EXPORTS_2: usize = 27;

/// Objects in the large bucket, and in the small bucket for comparison.
const MANY: u64 = 1_000_000;
const FEW: u64 = 1_000;

/// Largest cost of listing the same 100 keys in the large bucket, relative to the small one.
const LIST_GOAL: f64 = 2.0;
/// Largest growth of the cost of a put, head or delete in the large bucket, relative to the growth for plain files in
/// such a directory. It should be flat; the margin is for caches that no longer hold everything. (ext4 takes 1.4
/// times as long to remove one file of a million.)
const FLAT_GOAL: f64 = 1.3;

/// Largest cost of a removal relative to a directory of half the size.
const REMOVAL_GOAL: f64 = 1.5;

/// All parts; one failure does not hide the next.
pub(super) fn all() -> Result {
    need_programs(&[
        ("gcc", "gcc"),
        ("nm", "binutils"),
        ("valgrind", "valgrind"),
        ("s3", "libs3-2"),
    ])?;
    let work = TempDir::new("libs3")?;
    let library = library(work.path(), 4)?;
    let bench = Bench {
        work: work.path(),
        library: &library,
    };
    steps(&[
        ("libs3: exports and soname", &|| exports(&library)),
        ("libs3: vectors in the process", &|| {
            bench.vectors(&bench.embedded("vectors"))
        }),
        ("libs3: vectors with MD5 tags", &|| {
            let mut environment = bench.embedded("vectors-md5");
            environment.push(("BUCKETLOAD_S3_ETAG", "md5".to_owned()));
            bench.run(&mut Command::new(bench.program("vectors")), &environment)
        }),
        ("libs3: vectors behind a gateway", &|| bench.remote()),
        ("libs3: threads", &|| {
            bench.threads(&bench.embedded("threads"))
        }),
        ("libs3: races under ThreadSanitizer", &|| bench.races()),
        ("libs3: crashes and forks", &|| bench.crashes()),
        ("libs3: the s3 tool of version 2", &|| bench.tool()),
        ("libs3: a million objects", &|| bench.scale()),
        ("libs3: removals", &|| bench.removals()),
    ])
}

/// Builds the library for a version of the interface and puts it under its soname into a folder below `work`; returns
/// the folder.
pub(crate) fn library(work: &Path, version: u32) -> Result<PathBuf> {
    install(&program::libs3(version)?, work, version)
}

/// Copies a library to `work/libVERSION/libs3.so.VERSION`.
fn install(built: &Path, work: &Path, version: u32) -> Result<PathBuf> {
    let folder = work.join(format!("lib{version}"));
    files::copy(built, &folder.join(format!("libs3.so.{version}")))?;
    Ok(folder)
}

/// Compiles test programs into `to` and links them with the library in `folder`.
pub(crate) fn compile(sources: &[&str], options: &str, folder: &Path, to: &Path) -> Result {
    let at = root().join("crates/libs3-bucketload/tests/c");
    run(line("gcc -std=gnu11 -g -Wall -Wextra -Werror")
        .args(words(options))
        .args(sources.iter().map(|source| at.join(source)))
        .arg(folder.join("libs3.so.4"))
        .arg("-o")
        .arg(to))
}

fn exports(folder: &Path) -> Result {
    let library = folder.join("libs3.so.4");
    let symbols = output(cmd("nm", ["-D", "--defined-only"]).arg(&library))?;
    let found: BTreeSet<&str> = symbols
        .lines()
        .filter_map(|line| line.split_whitespace().last())
        .collect();
    let wanted: BTreeSet<&str> = EXPORTS.split_whitespace().collect();
    ensure(found == wanted, || {
        let differ: Vec<_> = found.symmetric_difference(&wanted).collect();
        format!("exported or missing: {differ:?}")
    })?;
    let dynamic = output(cmd("readelf", ["-d"]).arg(&library))?;
    ensure(dynamic.contains("soname: [libs3.so.4]"), || {
        format!("no soname libs3.so.4\n{dynamic}")
    })?;
    let mut needed = dynamic.lines().filter(|line| line.contains("(NEEDED)"));
    let known = ["libc.so", "libgcc_s.so", "ld-linux"];
    match needed.find(|line| !known.iter().any(|name| line.contains(name))) {
        Some(line) => Err(format!("needs more than the C library: {line}")),
        None => Ok(()),
    }
}

/// Environment variables of a program.
type Environment = Vec<(&'static str, String)>;

struct Bench<'a> {
    work: &'a Path,
    /// Folder of the library under test.
    library: &'a Path,
}

impl Bench<'_> {
    /// A separate store in the process.
    fn embedded(&self, name: &str) -> Environment {
        let root = self.work.join(format!("root-{name}"));
        vec![("BUCKETLOAD_S3_ROOT", root.display().to_string())]
    }

    fn program(&self, name: &str) -> PathBuf {
        self.work.join(name)
    }

    /// Runs a program that finds the library as applications do, and expects success.
    fn run(&self, command: &mut Command, environment: &Environment) -> Result {
        command.env("LD_LIBRARY_PATH", self.library);
        done(command.envs(environment.iter().cloned())).map(drop)
    }

    /// valgrind's memory checker; fails on errors and leaks.
    fn memcheck(program: &Path) -> Command {
        let mut command = line(
            "valgrind --quiet --error-exitcode=9 --leak-check=full --show-leak-kinds=all \
             --errors-for-leak-kinds=definite,indirect,possible",
        );
        command.arg(program);
        command
    }

    fn vectors(&self, environment: &Environment) -> Result {
        let sources = ["vectors.c", "multipart.c"];
        let plain = self.program("vectors");
        compile(&sources, "-O1", self.library, &plain)?;
        self.run(&mut Self::memcheck(&plain), environment)?;
        let sanitized = self.program("vectors.asan");
        let options = "-O1 -fsanitize=address,undefined -fno-sanitize-recover=all";
        compile(&sources, options, self.library, &sanitized)?;
        self.run(&mut Command::new(&sanitized), environment)?;
        // Passes the directory as the host name, as clients of S3Embedded do.
        if let Some((_, root)) = environment.first() {
            self.run(Command::new(&plain).arg(root), &Vec::new())?;
        }
        Ok(())
    }

    fn threads(&self, environment: &Environment) -> Result {
        let plain = self.program("threads");
        compile(&["threads.c"], "-O1 -pthread", self.library, &plain)?;
        self.run(Command::new(&plain).args(["8", "300"]), environment)?;
        self.run(Self::memcheck(&plain).args(["3", "20"]), environment)
    }

    fn remote(&self) -> Result {
        let socket = self.work.join("gateway.sock");
        let served = self.work.join("root-gateway");
        let gateway = Gateway::start(&served, &format!("--listen unix:{}", socket.display()))?;
        let environment = vec![("BUCKETLOAD_S3_REMOTE", gateway.address.clone())];
        self.vectors(&environment)?;
        self.threads(&environment)?;
        drop(gateway);
        let gateway = Gateway::start(&served, "--listen 127.0.0.1:0")?;
        let environment = vec![("BUCKETLOAD_S3_REMOTE", gateway.address.clone())];
        self.run(&mut Command::new(self.program("vectors")), &environment)
    }

    /// ThreadSanitizer in the library and in the program. RUSTC_BOOTSTRAP makes the stable compiler instrument the
    /// code; the standard library remains as built. So ThreadSanitizer sees neither the order that its contended
    /// locks impose nor the fence before the last owner of an `Arc` frees it. Code that needs these and has no
    /// `unsafe` is left out, because the compiler rules out races there: the store, and the library's state. The rest
    /// is the code that could race: the C functions and everything that C pointers reach.
    fn races(&self) -> Result {
        const TRIPLE: &str = "x86_64-unknown-linux-gnu";
        let target = root().join("target/libs3-tsan");
        let flags = "-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer";
        run(cargo(&format!(
            "build --locked -p libs3-bucketload --target {TRIPLE}"
        ))
        .arg("--target-dir")
        .arg(&target)
        .env("RUSTC_BOOTSTRAP", "1")
        .env("RUSTFLAGS", flags))?;
        let built = target.join(TRIPLE).join("debug/libs3.so");
        let folder = install(&built, &self.work.join("tsan"), 4)?;
        let suppressions = self.work.join("suppressions");
        let left_out = "race:*bucketload_store*\nrace:*2s37library*\nrace:*alloc/src/sync.rs\n";
        files::write(&suppressions, left_out)?;
        let judge = |source: &str, code: i32| {
            let program = self.program(&format!("{source}.tsan"));
            let options = "-O1 -pthread -fsanitize=thread";
            compile(&[source, "tsan_names.c"], options, &folder, &program)?;
            let suppressions = suppressions.display();
            let mut command = Command::new(&program);
            command
                .args(["8", "100"])
                .env(
                    "TSAN_OPTIONS",
                    format!("halt_on_error=1 exitcode=66 suppressions={suppressions}"),
                )
                .env("LD_LIBRARY_PATH", &folder)
                .envs(self.embedded("races"));
            call(&mut command)?.expect_code(code)
        };
        judge("threads.c", 0)?;
        // An intentional race must be found.
        judge("misuse.c", 66)
    }

    fn crashes(&self) -> Result {
        let program = self.program("crash");
        compile(&["crash.c"], "-O1", self.library, &program)?;
        let root = self.work.join("root-crash");
        self.run(Command::new(&program).arg(root), &Vec::new())
    }

    /// A client built against the original library, with ours in its place.
    fn tool(&self) -> Result {
        let folder = library(self.work, 2)?;
        let ours = folder.join("libs3.so.2");
        let symbols = output(cmd("nm", ["-D", "--defined-only"]).arg(&ours))?;
        ensure(symbols.lines().count() == EXPORTS_2, || {
            format!("not the {EXPORTS_2} functions of version 2:\n{symbols}")
        })?;
        for (variable, value) in [("LD_LIBRARY_PATH", &folder), ("LD_PRELOAD", &ours)] {
            let mut environment = self.embedded(variable);
            environment.extend([
                (variable, value.display().to_string()),
                ("S3_ACCESS_KEY_ID", "access".to_owned()),
                ("S3_SECRET_ACCESS_KEY", "secret-of-the-tool".to_owned()),
                ("S3_HOSTNAME", "unused.example".to_owned()),
            ]);
            let tool = Tool { environment };
            tool.session(self.work)?;
        }
        Ok(())
    }

    fn scale(&self) -> Result {
        let program = self.program("scale");
        compile(&["scale.c"], "-O2", self.library, &program)?;
        let environment = self.embedded("scale");
        let measure = |objects: u64| -> Result<BTreeMap<String, f64>> {
            let mut command = Command::new(&program);
            command.args([format!("scale-{objects}"), objects.to_string()]);
            command.env("LD_LIBRARY_PATH", self.library);
            let outcome = done(command.envs(environment.iter().cloned()))?;
            eprintln!("{}", outcome.stdout.trim());
            let words: Vec<&str> = outcome.stdout.split_whitespace().collect();
            let figures = words
                .chunks_exact(2)
                .filter_map(|pair| Some((pair[0].to_owned(), pair[1].parse().ok()?)));
            Ok(figures.collect())
        };
        let (few, many) = (measure(FEW)?, measure(MANY)?);
        let growth = |name: &str| -> Result<f64> {
            let figure = |of: &BTreeMap<String, f64>| of.get(name).copied();
            let ratio = figure(&many).zip(figure(&few)).map(|(m, f)| m / f);
            ratio.ok_or_else(|| format!("no figure for {name}"))
        };
        let mut missed = Vec::new();
        for (name, files, goal) in [
            ("put", growth("file-put")?, FLAT_GOAL),
            ("head", growth("file-head")?, FLAT_GOAL),
            ("delete", growth("file-delete")?, FLAT_GOAL),
            ("list", 1.0, LIST_GOAL),
        ] {
            let ratio = growth(name)?;
            // The library need not match an improvement of plain files.
            let beyond = ratio / files.max(1.0);
            let line = format!(
                "{name}: {ratio:.2} times the cost among {FEW} objects, files {files:.2}: {beyond:.2} (goal {goal})"
            );
            eprintln!("{line}");
            if beyond > goal {
                missed.push(line);
            }
        }
        none_of(&missed)
    }

    /// Removals as IOR makes them, in directories of 2^4 to 2^20 objects. In memory, so that the disk does not count.
    fn removals(&self) -> Result {
        let root = TempDir::in_memory("removals")?;
        let program = self.program("removal");
        compile(&["removal.c"], "-O2", self.library, &program)?;
        let mut command = Command::new(&program);
        command.arg("removals");
        command.args((4..=20).map(|power| (1u64 << power).to_string()));
        command.env("LD_LIBRARY_PATH", self.library);
        let outcome = done(command.env("BUCKETLOAD_S3_ROOT", root.path()))?;
        eprint!("{}", outcome.stdout);
        let costs: Vec<f64> = outcome
            .stdout
            .lines()
            .filter_map(|line| line.split_once(' ')?.1.parse().ok())
            .collect();
        ensure(costs.len() == 17, || "no figures of all sizes".to_owned())?;
        let steepest = costs
            .windows(2)
            .map(|pair| pair[1] / pair[0])
            .fold(0.0, f64::max);
        ensure(steepest <= REMOVAL_GOAL, || {
            format!(
                "a removal costs {steepest:.2} times as much in a directory of twice the size (goal {REMOVAL_GOAL})"
            )
        })
    }
}

/// `bucketload gateway` as a child process, ended when dropped.
pub(crate) struct Gateway {
    _process: Process,
    /// The gateway's address, as clients write it.
    pub(crate) address: String,
}

impl Gateway {
    /// Serves `directory` with the additional flags in `line`.
    pub(crate) fn start(directory: &Path, line: &str) -> Result<Self> {
        let line = format!("gateway --announce --exit-with-stdin {line} --root");
        let (process, address) = Process::announced(bucketload(&line)?.arg(directory))?;
        Ok(Self {
            _process: process.ending_with_input(),
            address,
        })
    }
}

/// The `s3` program of libs3 2.0. It exits with 0 once it has understood its command line, so failures are found in
/// its output.
struct Tool {
    environment: Environment,
}

impl Tool {
    fn call(&self, args: &str) -> Result<String> {
        let mut command = cmd("s3", ["-u"]);
        command.args(words(args));
        let said = done(command.envs(self.environment.iter().cloned()))?.said();
        ensure(
            !said.contains("secret-of-the-tool"),
            || "the program printed the secret key",
        )?;
        Ok(said)
    }

    fn good(&self, args: &str) -> Result<String> {
        let said = self.call(args)?;
        ensure(!said.contains("ERROR"), || format!("s3 {args}: {said}"))?;
        Ok(said)
    }

    fn bad(&self, args: &str, status: &str) -> Result {
        let said = self.call(args)?;
        ensure(said.contains(&format!("ERROR: {status}")), || {
            format!("s3 {args}: no {status}: {said}")
        })
    }

    /// Fails unless the call succeeds and prints all of `wanted`.
    fn tells(&self, args: &str, wanted: &[&str]) -> Result {
        let said = self.good(args)?;
        match wanted.iter().find(|word| !said.contains(**word)) {
            Some(word) => Err(format!("s3 {args}: lacks {word:?}: {said}")),
            None => Ok(()),
        }
    }

    /// A user's session with the program; deletes its buckets at the end.
    fn session(&self, work: &Path) -> Result {
        let body: Vec<u8> = (0..30_u32 << 20).map(|i| (i ^ (i >> 11)) as u8).collect();
        let (source, back) = (work.join("source"), work.join("back"));
        files::write(&source, &body)?;
        let from = format!("filename={}", source.display());
        let to = format!("filename={}", back.display());
        let same = |what: &str| {
            ensure(files::bytes(&back)? == body, || {
                format!("{what} differs from what was put")
            })
        };
        self.good("create tool")?;
        self.good("create other")?;
        self.good("test tool")?;
        self.good(&format!(
            "put tool/dir/a {from} contentType=text/x x-amz-meta-colour=blue"
        ))?;
        self.tells(
            "head tool/dir/a",
            &[
                "Content-Type: text/x",
                "Content-Length: 31457280",
                "colour: blue",
            ],
        )?;
        self.good(&format!("get tool/dir/a {to}"))?;
        same("the object")?;
        self.good("copy tool/dir/a other/b")?;
        self.good(&format!("get other/b {to}"))?;
        same("the copy")?;
        self.good(&format!("get tool/dir/a {to}"))?;
        same("the source of the copy")?;
        self.good("put tool/empty filename=/dev/null")?;
        self.tells("list tool", &["dir/a", "empty"])?;
        self.tells("getacl tool/dir/a", &["FULL_CONTROL"])?;
        self.bad("head tool/none", "HttpErrorNotFound")?;
        self.bad(&format!("get tool/none {to}"), "ErrorNoSuchKey")?;
        self.bad("list missing", "ErrorNoSuchBucket")?;
        self.bad("delete tool", "ErrorBucketNotEmpty")?;
        for place in ["tool/dir/a", "tool/empty", "other/b", "tool", "other"] {
            self.good(&format!("delete {place}"))?;
        }
        // Version 2 may show a missing bucket as a row of its table.
        self.bad("test tool", "ErrorNoSuchBucket")
            .or_else(|_| self.tells("test tool", &["Does Not Exist"]))
    }
}
