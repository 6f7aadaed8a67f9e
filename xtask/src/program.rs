//! The program under test: building it, running it, and running `bucketload serve` as a child process.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::files::{self, TempDir};
use crate::process::Process;
use crate::sh::{Result, cargo, cmd, ensure, line, output, root, run, show, words};

/// Credentials of the servers that the tasks start.
const ACCESS_KEY: &str = "testaccesskey0001";
const SECRET_KEY: &str = "testsecretkey00000000000000000000001";

/// Environment variable that names a program to test instead of the release build, which takes minutes to make. For
/// work on a driver, not for measurements.
pub(crate) const INSTEAD: &str = "BUCKETLOAD_PROGRAM";

/// The packages of `cargo build --release` and `cargo run --release`: the program and libs3-bucketload. cargo
/// resolves features per choice of packages, and compiles again what differs; `deps` compares the choices.
const RELEASE: &str = "build --release --locked";

/// The same features plus the examples, without the console: its tests enable a feature of tokio for a clock that can
/// be stopped, which a release build must not have.
pub(crate) const RELEASE_EXAMPLES: &str =
    "--workspace --exclude bucketload-console --no-default-features --features bucketload/default";

/// The packages of `cargo test --workspace`, which also builds the examples.
const TESTED: &str = "build --quiet --locked --workspace";

/// The release build of the program, built on first use.
pub(crate) fn program() -> Result<&'static Path> {
    static PROGRAM: OnceLock<Result<PathBuf>> = OnceLock::new();
    PROGRAM
        .get_or_init(|| {
            if let Some(instead) = std::env::var_os(INSTEAD) {
                return std::path::absolute(&instead).map_err(|e| format!("{INSTEAD}: {e}"));
            }
            run(&mut cargo(RELEASE))?;
            Ok(target().join("release/bucketload"))
        })
        .as_deref()
        .map_err(Clone::clone)
}

/// Quotes a path as one word of a command line.
pub(crate) fn quoted(path: &Path) -> Result<String> {
    let path = path.to_string_lossy();
    let quoted = shlex::try_quote(&path).map_err(|e| format!("{path}: {e}"))?;
    Ok(quoted.into_owned())
}

/// libs3-bucketload for version 2 or 4 of the interface, from the release build. A copy, because the next build may
/// make the other version.
pub(crate) fn libs3(version: u32) -> Result<PathBuf> {
    let mut build = cargo(RELEASE);
    if version == 2 {
        build.args(["--features", "libs3-bucketload/abi2"]);
    }
    run(&mut build)?;
    let copy = target().join(format!("libs3/libs3.so.{version}"));
    files::copy(&target().join("release/libs3.so"), &copy)?;
    Ok(copy)
}

/// A call of the drivers' `conformance` example in the test build.
pub(crate) fn suite(line: &str) -> Result<Command> {
    let program = tested_example("conformance")?;
    Ok(cmd(&program.to_string_lossy(), words(line)))
}

/// The example `name` in the test build: for tests, not measurements.
pub(crate) fn tested_example(name: &str) -> Result<PathBuf> {
    run(cargo(TESTED).args(["--example", name]))?;
    Ok(target().join("debug/examples").join(name))
}

/// cargo's target directory.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// The release build of an example; if another program is named, the example next to it.
pub(crate) fn example(name: &str) -> Result<PathBuf> {
    example_with(name, "")
}

/// Like [`example`], with additional cargo options.
pub(crate) fn example_with(name: &str, options: &str) -> Result<PathBuf> {
    let program = program()?;
    let choice = format!("{RELEASE_EXAMPLES} {options} --example {name}");
    if std::env::var_os(INSTEAD).is_none() {
        run(&mut cargo(&format!("{RELEASE} {choice}")))?;
    }
    let path = program.with_file_name("examples").join(name);
    ensure(path.exists(), || {
        let path = path.display();
        format!(
            "{path} is missing: build it next to the program with `cargo build --release {choice}`"
        )
    })?;
    Ok(path)
}

/// The release build with every client engine, built on first use next to the usual one.
pub(crate) fn program_with_engines() -> Result<&'static Path> {
    static PROGRAM: OnceLock<Result<PathBuf>> = OnceLock::new();
    PROGRAM
        .get_or_init(|| program_with("engines"))
        .as_deref()
        .map_err(Clone::clone)
}

/// The release build with `feature`, in a separate directory so that it does not replace the usual one.
pub(crate) fn program_with(feature: &str) -> Result<PathBuf> {
    let target = target().join(feature);
    let choice = format!("{RELEASE} -p bucketload --features {feature} --target-dir");
    run(cargo(&choice).arg(&target))?;
    Ok(target.join("release/bucketload"))
}

/// A call of the program with the arguments in `line`, in the root of the workspace.
pub(crate) fn bucketload(line: &str) -> Result<Command> {
    Ok(clean_call(program()?, line))
}

/// Like [`bucketload`], with every client engine built in.
pub(crate) fn bucketload_with_engines(line: &str) -> Result<Command> {
    Ok(clean_call(program_with_engines()?, line))
}

/// A call of `program`, a build of ours, in the root of the workspace.
pub(crate) fn clean_call(program: &Path, line: &str) -> Command {
    let mut command = cmd(&program.to_string_lossy(), words(line));
    // Only variables that a test sets may reach the program.
    for name in words(
        "AWS_CA_BUNDLE AWS_PROFILE AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_ENDPOINT_URL AWS_REGION",
    ) {
        command.env_remove(name);
    }
    command
}

/// Runs the program to its end, whatever the exit code.
pub(crate) fn try_bucketload(line: &str) -> Result<Outcome> {
    call(&mut bucketload(line)?)
}

/// Runs the program with `env`; it must end with exit code 0.
pub(crate) fn run_bucketload(line: &str, env: &Env) -> Result<Outcome> {
    done(bucketload(line)?.envs(env))
}

/// Runs the program with `env` and `--output json`, and returns the result.
pub(crate) fn measured(line: &str, env: &Env) -> Result<Value> {
    run_bucketload(&format!("{line} --output json"), env)?.json()
}

/// Environment variables that clients read.
pub(crate) type Env = BTreeMap<String, String>;

/// The measured phase of a JSON result.
pub(crate) fn run_phase(result: &Value) -> Result<&Value> {
    let mut phases = result["phases"].as_array().into_iter().flatten();
    phases
        .find(|phase| phase["kind"] == "run")
        .ok_or_else(|| "the result has no measured phase".to_owned())
}

/// The percentile `q` of a distribution in a JSON result, in nanoseconds.
pub(crate) fn percentile_ns(distribution: &Value, q: f64) -> Result<f64> {
    let percentiles = distribution["percentiles"].as_array();
    percentiles
        .into_iter()
        .flatten()
        .find(|p| p["q"] == q)
        .and_then(|p| p["value_ns"].as_f64())
        .ok_or_else(|| format!("no p{} in {distribution}", q * 100.0))
}

/// Outcome of a call: exit code, standard output and standard error.
pub(crate) struct Outcome {
    /// The command line, for messages.
    pub(crate) shown: String,
    /// Exit code; -1 if a signal ended the call.
    pub(crate) code: i32,
    /// Standard output.
    pub(crate) stdout: String,
    /// Standard error.
    pub(crate) stderr: String,
    /// Run time.
    pub(crate) took: Duration,
}

/// Runs a command to its end, whatever the exit code.
pub(crate) fn call(command: &mut Command) -> Result<Outcome> {
    let shown = show(command);
    eprintln!("$ {shown}");
    let begun = Instant::now();
    let out = command.output().map_err(|e| format!("{shown}: {e}"))?;
    Ok(Outcome {
        shown,
        took: begun.elapsed(),
        code: out.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&out.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&out.stderr).into_owned(),
    })
}

/// Runs a command to its end; it must exit with code 0.
pub(crate) fn done(command: &mut Command) -> Result<Outcome> {
    let outcome = call(command)?;
    outcome.expect_code(0)?;
    Ok(outcome)
}

impl Outcome {
    /// Standard output followed by standard error.
    pub(crate) fn said(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }

    /// Fails unless the call ended with `code`.
    pub(crate) fn expect_code(&self, code: i32) -> Result {
        self.expect(code, &[])
    }

    /// Fails unless the call ended with `code` and printed all of `words`.
    pub(crate) fn expect(&self, code: i32, words: &[&str]) -> Result {
        let (shown, said) = (&self.shown, self.said());
        ensure(self.code == code, || {
            format!("{shown}: exit code {} instead of {code}\n{said}", self.code)
        })?;
        match words.iter().find(|word| !said.contains(**word)) {
            Some(word) => Err(format!(
                "{shown}: {word:?} is missing in the output: {said}"
            )),
            None => Ok(()),
        }
    }

    /// Like [`Outcome::expect`], but looks only at standard error, which is shown.
    pub(crate) fn complains(&self, code: i32, words: &[&str]) -> Result {
        self.expect_code(code)?;
        let stderr = self.stderr.trim_end();
        let missing = words.iter().find(|word| !stderr.contains(**word));
        missing.map_or(Ok(()), |word| {
            Err(format!("{word:?} is missing in the messages: {stderr}"))
        })?;
        eprintln!("{stderr}");
        Ok(())
    }

    /// Standard output as JSON.
    pub(crate) fn json(&self) -> Result<Value> {
        let said = self.said();
        serde_json::from_str(&self.stdout)
            .map_err(|e| format!("{}: invalid JSON: {e}\n{said}", self.shown))
    }
}

/// The items of a JSON list; none if it is something else.
pub(crate) fn items(list: &Value) -> impl Iterator<Item = &Value> + Clone {
    list.as_array().into_iter().flatten()
}

/// A JSON text; empty if it is something else.
pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// A whole number in JSON; 0 if it is something else.
pub(crate) fn whole(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

/// Runs `online-service` with `flags` and `env`, and fails unless every offered operation worked. `name` is shown.
pub(crate) fn online_service(name: &str, flags: &str, env: &Env) -> Result {
    let dir = TempDir::new("scenario")?;
    let out = dir.file("run");
    let line = format!(
        "run online-service --rate 20/s --size 'loguniform(1KiB, 1MiB)' --out {out} {flags}"
    );
    let result = measured(&line, env)?;
    let totals = &run_phase(&result)?["totals"];
    eprintln!("{name}: {} {totals}", result["verdict"]["word"]);
    ensure(
        totals["failed"] == 0 && totals["ok"] == totals["offered"],
        || format!("operations failed: {totals} {}", result["failures"]),
    )
}

/// The value of `--store` for the store `memory` or `posix`, whose directory is made in `dir`.
pub(crate) fn store_in(dir: &TempDir, store: &str) -> Result<String> {
    files::make_dir(dir.file("store"))?;
    Ok(match store {
        "posix" => format!("posix:{}", dir.file("store")),
        other => other.to_owned(),
    })
}

/// Writes a certificate for loopback and its key.
pub(crate) fn self_signed(cert: &str, key: &str) -> Result {
    // rustls refuses a CA certificate as a server's own.
    let text = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost \
                -addext subjectAltName=DNS:localhost,IP:127.0.0.1 -addext basicConstraints=critical,CA:FALSE";
    let paths = ["-keyout", key, "-out", cert];
    output(line(text).args(paths).stderr(Stdio::null())).map(drop)
}

/// `bucketload serve` as a child process; ended when dropped.
pub(crate) struct Serve {
    _process: Process,
    address: String,
}

impl Serve {
    /// Starts `bucketload serve` with the arguments in `line` on a free loopback port, and waits until it listens.
    pub(crate) fn start(line: &str) -> Result<Self> {
        Self::start_with("", line)
    }

    /// Like [`Serve::start`], through a launcher such as `taskset -c 1`.
    pub(crate) fn start_with(launcher: &str, args: &str) -> Result<Self> {
        let program = quoted(program()?)?;
        let mut command = line(&format!(
            "{launcher} {program} serve --listen 127.0.0.1:0 --announce --exit-with-stdin {args}"
        ));
        command
            .env("BUCKETLOAD_SERVE_ACCESS_KEY", ACCESS_KEY)
            .env("BUCKETLOAD_SERVE_SECRET_KEY", SECRET_KEY);
        let (process, address) = Process::announced(&mut command)?;
        Ok(Self {
            _process: process,
            address,
        })
    }

    /// Address, access key and secret key.
    pub(crate) fn endpoint(&self) -> (&str, &'static str, &'static str) {
        (&self.address, ACCESS_KEY, SECRET_KEY)
    }

    /// URL for clients.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Runs `line` against the server and returns the result; adds the address and `--output json`.
    pub(crate) fn measured(&self, line: &str) -> Result<Value> {
        let line = format!("{line} --endpoint-url {}", self.url());
        measured(&line, &self.aws_env())
    }

    /// The environment that AWS clients read.
    pub(crate) fn aws_env(&self) -> Env {
        let url = self.url();
        let pairs = [
            ("AWS_ENDPOINT_URL", url.as_str()),
            ("AWS_ACCESS_KEY_ID", ACCESS_KEY),
            ("AWS_SECRET_ACCESS_KEY", SECRET_KEY),
            ("AWS_REGION", "us-east-1"),
            ("AWS_DEFAULT_REGION", "us-east-1"),
            ("AWS_EC2_METADATA_DISABLED", "true"),
        ];
        pairs
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into()
    }
}
