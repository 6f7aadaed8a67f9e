//! The program under test: building it, running it, and its `serve` command as a child process.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use serde_json::Value;

use crate::sh::{Result, cargo, cmd, root, run, show};

/// Credentials of the servers that tests start.
const ACCESS_KEY: &str = "testaccesskey0001";
const SECRET_KEY: &str = "testsecretkey00000000000000000000001";

/// Names a program to test in place of the release build, which takes minutes to make: for those who work
/// on a driver, not for measurements.
pub(crate) const INSTEAD: &str = "BUCKETLOAD_PROGRAM";

/// The choice of packages of `cargo build --release` and `cargo run --release`: the program and libs3-bucketload.
/// cargo resolves features anew for each choice, and what differs is compiled again: `deps` compares the choices.
const RELEASE: [&str; 3] = ["build", "--release", "--locked"];

/// The same features with the examples beside. Without the console, whose tests have a clock of tokio's that can be
/// stopped: a release build must not have it.
pub(crate) const RELEASE_EXAMPLES: [&str; 6] = [
    "--workspace",
    "--exclude",
    "bucketload-console",
    "--no-default-features",
    "--features",
    "bucketload/default",
];

/// The choice of packages of `cargo test --workspace`, which builds the examples too.
const TESTED: [&str; 4] = ["build", "--quiet", "--locked", "--workspace"];

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

/// libs3-bucketload for version 2 or 4 of the interface, as the release build makes it; a copy, for the next build
/// may make the other version.
pub(crate) fn libs3(version: u32) -> Result<PathBuf> {
    let mut build = cargo(RELEASE);
    if version == 2 {
        build.args(["--features", "libs3-bucketload/abi2"]);
    }
    run(&mut build)?;
    let copy = target().join(format!("libs3/libs3.so.{version}"));
    let at = |e: std::io::Error| format!("{}: {e}", copy.display());
    std::fs::create_dir_all(copy.with_file_name("")).map_err(at)?;
    std::fs::copy(target().join("release/libs3.so"), &copy).map_err(at)?;
    Ok(copy)
}

/// A call of the drivers' `conformance` example, in the build that `cargo test --workspace` makes.
pub(crate) fn suite(args: &[&str]) -> Result<Command> {
    let program = tested_example("conformance")?;
    Ok(cmd(&program.to_string_lossy(), args))
}

/// The example `name` in the build that `cargo test --workspace` makes: for what is tested and not measured.
pub(crate) fn tested_example(name: &str) -> Result<PathBuf> {
    run(cargo(TESTED).args(["--example", name]))?;
    Ok(target().join("debug/examples").join(name))
}

/// Where cargo puts what it builds.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// The release build of example `name` of `package`; the one beside the program where that is another.
pub(crate) fn example(package: &str, name: &str) -> Result<PathBuf> {
    example_with(package, name, &[])
}

/// The same with further options of cargo.
pub(crate) fn example_with(package: &str, name: &str, options: &[&str]) -> Result<PathBuf> {
    let program = program()?;
    if std::env::var_os(INSTEAD).is_none() {
        run(cargo(RELEASE)
            .args(RELEASE_EXAMPLES)
            .args(options)
            .args(["--example", name]))?;
    }
    let path = program.with_file_name("examples").join(name);
    if !path.exists() {
        let path = path.display();
        return Err(format!(
            "{path}, an example of {package}, is missing: build it beside the program with `cargo build --release {} \
             --example {name}`",
            RELEASE_EXAMPLES.join(" ")
        ));
    }
    Ok(path)
}

/// The release build with every client engine, built on first use beside the usual one.
pub(crate) fn program_with_engines() -> Result<&'static Path> {
    static PROGRAM: OnceLock<Result<PathBuf>> = OnceLock::new();
    PROGRAM
        .get_or_init(|| program_with("engines"))
        .as_deref()
        .map_err(Clone::clone)
}

/// The release build with `feature`, in a directory of its own, so that it does not take the usual one's place.
pub(crate) fn program_with(feature: &str) -> Result<PathBuf> {
    let target = target().join(feature);
    let choice = ["-p", "bucketload", "--features", feature, "--target-dir"];
    run(cargo(RELEASE).args(choice).arg(&target))?;
    Ok(target.join("release/bucketload"))
}

/// A call of the program, in the root of the workspace.
pub(crate) fn bucketload(args: &[&str]) -> Result<Command> {
    Ok(clean_call(program()?, args))
}

/// The same with every client engine built in.
pub(crate) fn bucketload_with_engines(args: &[&str]) -> Result<Command> {
    Ok(clean_call(program_with_engines()?, args))
}

/// A call of `program`, a build of ours, in the root of the workspace.
pub(crate) fn clean_call(program: &Path, args: &[&str]) -> Command {
    let mut command = cmd(&program.to_string_lossy(), args);
    // Only what a test states may reach the program.
    for name in [
        "AWS_CA_BUNDLE",
        "AWS_PROFILE",
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_ENDPOINT_URL",
        "AWS_REGION",
    ] {
        command.env_remove(name);
    }
    command
}

/// The measured phase of a JSON result.
pub(crate) fn run_phase(result: &Value) -> Result<&Value> {
    let mut phases = result["phases"].as_array().into_iter().flatten();
    phases
        .find(|phase| phase["kind"] == "run")
        .ok_or_else(|| "the result has no measured phase".to_owned())
}

/// The percentile `q` of a distribution of a JSON result, nanoseconds.
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
    /// Exit code; -1 when ended by a signal.
    pub(crate) code: i32,
    /// Standard output.
    pub(crate) stdout: String,
    /// Standard error.
    pub(crate) stderr: String,
}

/// Runs to the end, whatever the exit code.
pub(crate) fn call(command: &mut Command) -> Result<Outcome> {
    let shown = show(command);
    eprintln!("$ {shown}");
    let out = command.output().map_err(|e| format!("{shown}: {e}"))?;
    Ok(Outcome {
        shown,
        code: out.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&out.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&out.stderr).into_owned(),
    })
}

impl Outcome {
    /// Fails unless the call ended with `code`.
    pub(crate) fn expect_code(&self, code: i32) -> Result {
        if self.code == code {
            return Ok(());
        }
        Err(format!(
            "{}: exit code {} instead of {code}\n{}{}",
            self.shown, self.code, self.stdout, self.stderr
        ))
    }

    /// Standard output as JSON.
    pub(crate) fn json(&self) -> Result<Value> {
        serde_json::from_str(&self.stdout).map_err(|e| {
            format!(
                "{}: no JSON: {e}\n{}{}",
                self.shown, self.stdout, self.stderr
            )
        })
    }
}

/// A folder that is removed when dropped.
pub(crate) struct TempDir(PathBuf);

impl TempDir {
    /// A new folder under the system's temporary directory.
    pub(crate) fn new(name: &str) -> Result<Self> {
        let path = std::env::temp_dir().join(format!("bucketload-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(Self(path))
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// A path inside it, as text.
    pub(crate) fn file(&self, name: &str) -> String {
        self.0.join(name).to_string_lossy().into_owned()
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            eprintln!("xtask: {}: {error}", self.0.display());
        }
    }
}

/// Writes a certificate for loopback and its key.
pub(crate) fn self_signed(cert: &str, key: &str) -> Result {
    let names = "subjectAltName=DNS:localhost,IP:127.0.0.1";
    let args = [
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=localhost",
        "-addext",
        names,
        // rustls refuses a CA's certificate as a server's own
        "-addext",
        "basicConstraints=critical,CA:FALSE",
        "-keyout",
        key,
        "-out",
        cert,
    ];
    crate::sh::output(cmd("openssl", args).stderr(Stdio::null())).map(drop)
}

/// `bucketload serve` as a child process; ended when dropped.
pub(crate) struct Serve {
    child: Child,
    address: String,
}

impl Serve {
    /// Starts `bucketload serve ARGS` on a free loopback port and waits until it listens.
    pub(crate) fn start(args: &[&str]) -> Result<Self> {
        Self::start_with(&[], args)
    }

    /// The same behind a launcher such as `taskset -c 1`.
    pub(crate) fn start_with(launcher: &[&str], args: &[&str]) -> Result<Self> {
        let program = program()?.to_string_lossy();
        let line: Vec<&str> = [
            launcher,
            &[
                &program,
                "serve",
                "--listen",
                "127.0.0.1:0",
                "--announce",
                "--exit-with-stdin",
            ],
            args,
        ]
        .concat();
        let mut command = cmd(line[0], &line[1..]);
        command
            .env("BUCKETLOAD_SERVE_ACCESS_KEY", ACCESS_KEY)
            .env("BUCKETLOAD_SERVE_SECRET_KEY", SECRET_KEY)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let shown = show(&command);
        eprintln!("$ {shown} &");
        let mut child = command.spawn().map_err(|e| format!("{shown}: {e}"))?;
        let mut text = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout)
                .read_line(&mut text)
                .map_err(|e| format!("{shown}: {e}"))?;
        }
        let announced: Option<Value> = serde_json::from_str(&text).ok();
        match announced
            .as_ref()
            .and_then(|value| value["listening"].as_str())
        {
            Some(address) => Ok(Self {
                child,
                address: address.to_owned(),
            }),
            None => {
                let _ = child.kill();
                let _ = child.wait();
                Err(format!("{shown}: ended before it listened"))
            }
        }
    }

    /// Address, access key and secret key.
    pub(crate) fn endpoint(&self) -> (&str, &'static str, &'static str) {
        (&self.address, ACCESS_KEY, SECRET_KEY)
    }

    /// The environment that AWS clients read.
    pub(crate) fn aws_env(&self) -> Vec<(String, String)> {
        [
            ("AWS_ENDPOINT_URL", format!("http://{}", self.address)),
            ("AWS_ACCESS_KEY_ID", ACCESS_KEY.to_owned()),
            ("AWS_SECRET_ACCESS_KEY", SECRET_KEY.to_owned()),
            ("AWS_REGION", "us-east-1".to_owned()),
            ("AWS_DEFAULT_REGION", "us-east-1".to_owned()),
            ("AWS_EC2_METADATA_DISABLED", "true".to_owned()),
        ]
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value))
        .collect()
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
