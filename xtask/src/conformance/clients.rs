//! The embedded server, proven by clients that we did not write: boto3, the AWS CLI, s3cmd, rclone
//! and mc, against the memory and the POSIX store.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::own::{self, Serve};
use crate::server::parse_env;
use crate::sh::{Result, cmd, output, root, run, step};

/// Installs the clients and drives both stores with each of them.
pub(crate) fn all() -> Result {
    let script = root().join("servers/clients.sh");
    let script = script.to_string_lossy().into_owned();
    run(&mut cmd(&script, ["install"]))?;
    let tools = parse_env(&output(&mut cmd(&script, ["env"]))?);
    for store in ["memory", "posix"] {
        let dir = own::TempDir::new("clients")?;
        let place = dir.path().join("store");
        fs::create_dir_all(&place).map_err(|e| e.to_string())?;
        let spec = if store == "posix" {
            format!("posix:{}", place.display())
        } else {
            store.to_owned()
        };
        let server = Serve::start(&["--store", &spec])?;
        for (name, body) in CLIENTS {
            step(
                &format!("{name} against the embedded server ({store})"),
                || {
                    let work = dir.path().join(name);
                    fs::create_dir_all(&work).map_err(|e| e.to_string())?;
                    body(&Client {
                        server: &server,
                        tools: &tools,
                        dir: &work,
                    })
                },
            )?;
        }
    }
    Ok(())
}

type Check = fn(&Client<'_>) -> Result;
const CLIENTS: [(&str, Check); 5] = [
    ("boto3", boto3),
    ("aws", aws),
    ("s3cmd", s3cmd),
    ("rclone", rclone),
    ("mc", mc),
];

struct Client<'a> {
    server: &'a Serve,
    tools: &'a BTreeMap<String, String>,
    dir: &'a Path,
}

impl Client<'_> {
    fn tool(&self, key: &str) -> Result<&str> {
        self.tools
            .get(key)
            .map(String::as_str)
            .ok_or_else(|| format!("clients.sh names no {key}"))
    }

    fn command(&self, key: &str, args: &[&str]) -> Result<Command> {
        let mut command = cmd(self.tool(key)?, args);
        command
            .current_dir(self.dir)
            // A bundle for the package registries is none of the server's business.
            .env_remove("AWS_CA_BUNDLE")
            .envs(self.server.aws_env())
            .env("HOME", self.dir);
        Ok(command)
    }

    fn run(&self, key: &str, args: &[&str]) -> Result {
        run(&mut self.command(key, args)?)
    }

    fn output(&self, key: &str, args: &[&str]) -> Result<String> {
        output(&mut self.command(key, args)?)
    }

    /// A folder of files of various sizes and names; returns its path.
    fn files(&self) -> Result<String> {
        let source = self.dir.join("source");
        fs::create_dir_all(source.join("sub dir")).map_err(|e| e.to_string())?;
        for (name, len) in [
            ("empty", 0usize),
            ("small.txt", 11),
            ("sub dir/a+b%c.bin", 70_000),
            ("big", 17 << 20),
        ] {
            let bytes: Vec<u8> = (0..len)
                .map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8)
                .collect();
            fs::write(source.join(name), bytes).map_err(|e| e.to_string())?;
        }
        Ok(source.to_string_lossy().into_owned())
    }

    fn same(&self, a: &str, b: &str) -> Result {
        run(&mut cmd("diff", ["-r", a, b]))
    }

    fn back(&self) -> String {
        self.dir.join("back").to_string_lossy().into_owned()
    }
}

fn expect(what: &str, truth: bool) -> Result {
    if truth {
        Ok(())
    } else {
        Err(format!("{what} does not hold"))
    }
}

fn boto3(c: &Client<'_>) -> Result {
    let suite = root().join("xtask/conformance/boto3_suite.py");
    c.run("PYTHON", &[&suite.to_string_lossy()])
}

fn aws(c: &Client<'_>) -> Result {
    let (source, back) = (c.files()?, c.back());
    c.run("AWS", &["s3", "mb", "s3://conformance-aws"])?;
    c.run(
        "AWS",
        &["s3", "sync", "--quiet", &source, "s3://conformance-aws/pre"],
    )?;
    let listing = c.output("AWS", &["s3", "ls", "--recursive", "s3://conformance-aws"])?;
    expect("aws s3 ls shows four objects", listing.lines().count() == 4)?;
    c.run(
        "AWS",
        &["s3", "sync", "--quiet", "s3://conformance-aws/pre", &back],
    )?;
    c.same(&source, &back)?;
    c.run(
        "AWS",
        &[
            "s3",
            "cp",
            "--quiet",
            "s3://conformance-aws/pre/big",
            "s3://conformance-aws/copy",
        ],
    )?;
    c.run(
        "AWS",
        &["s3", "rm", "--quiet", "--recursive", "s3://conformance-aws"],
    )?;
    c.run("AWS", &["s3", "rb", "s3://conformance-aws"])
}

fn s3cmd(c: &Client<'_>) -> Result {
    let (source, back) = (c.files()?, c.back());
    let (address, access, secret) = c.server.endpoint();
    let config = c.dir.join("s3cfg");
    let text = format!(
        "[default]\naccess_key = {access}\nsecret_key = {secret}\nhost_base = {address}\nhost_bucket = {address}\n\
         use_https = False\nbucket_location = us-east-1\nmultipart_chunk_size_mb = 5\n"
    );
    fs::write(&config, text).map_err(|e| e.to_string())?;
    let config = config.to_string_lossy().into_owned();
    let call = |args: &[&str]| {
        c.run(
            "S3CMD",
            &[&["-c", &config, "--no-progress", "-q"], args].concat(),
        )
    };
    call(&["mb", "s3://conformance-s3cmd"])?;
    call(&["sync", &format!("{source}/"), "s3://conformance-s3cmd/pre/"])?;
    let listing = c.output(
        "S3CMD",
        &["-c", &config, "ls", "-r", "s3://conformance-s3cmd"],
    )?;
    expect("s3cmd ls shows four objects", listing.lines().count() == 4)?;
    fs::create_dir_all(&back).map_err(|e| e.to_string())?;
    call(&["sync", "s3://conformance-s3cmd/pre/", &format!("{back}/")])?;
    c.same(&source, &back)?;
    call(&[
        "cp",
        "s3://conformance-s3cmd/pre/small.txt",
        "s3://conformance-s3cmd/copy",
    ])?;
    call(&["del", "-r", "-f", "s3://conformance-s3cmd/"])?;
    call(&["rb", "s3://conformance-s3cmd"])
}

fn rclone(c: &Client<'_>) -> Result {
    let (source, back) = (c.files()?, c.back());
    let (address, access, secret) = c.server.endpoint();
    let call = |args: &[&str]| -> Result<Command> {
        let mut command = c.command("RCLONE", args)?;
        command
            .env("RCLONE_CONFIG_B_TYPE", "s3")
            .env("RCLONE_CONFIG_B_PROVIDER", "Other")
            .env("RCLONE_CONFIG_B_ENDPOINT", format!("http://{address}"))
            .env("RCLONE_CONFIG_B_ACCESS_KEY_ID", access)
            .env("RCLONE_CONFIG_B_SECRET_ACCESS_KEY", secret)
            .env("RCLONE_S3_UPLOAD_CUTOFF", "6M");
        Ok(command)
    };
    run(&mut call(&["mkdir", "b:conformance-rclone"])?)?;
    run(&mut call(&["copy", &source, "b:conformance-rclone/pre"])?)?;
    run(&mut call(&["check", &source, "b:conformance-rclone/pre"])?)?;
    let listing = output(&mut call(&[
        "lsf",
        "-R",
        "--files-only",
        "b:conformance-rclone",
    ])?)?;
    expect(
        "rclone lsf shows four objects",
        listing.lines().count() == 4,
    )?;
    run(&mut call(&["copy", "b:conformance-rclone/pre", &back])?)?;
    c.same(&source, &back)?;
    run(&mut call(&["purge", "b:conformance-rclone"])?)
}

fn mc(c: &Client<'_>) -> Result {
    let (source, back) = (c.files()?, c.back());
    let (address, access, secret) = c.server.endpoint();
    let call = |args: &[&str]| -> Result<Command> {
        let mut command = c.command("MC", &[&["--quiet", "--disable-pager"], args].concat())?;
        command.env("MC_HOST_b", format!("http://{access}:{secret}@{address}"));
        Ok(command)
    };
    run(&mut call(&["mb", "b/conformance-mc"])?)?;
    run(&mut call(&["mirror", &source, "b/conformance-mc/pre"])?)?;
    let listing = output(&mut call(&["ls", "--recursive", "b/conformance-mc"])?)?;
    expect("mc ls shows four objects", listing.lines().count() == 4)?;
    run(&mut call(&["mirror", "b/conformance-mc/pre", &back])?)?;
    c.same(&source, &back)?;
    run(&mut call(&["stat", "b/conformance-mc/pre/big"])?)?;
    run(&mut call(&[
        "rm",
        "--recursive",
        "--force",
        "b/conformance-mc/pre",
    ])?)?;
    run(&mut call(&["rb", "b/conformance-mc"])?)
}
