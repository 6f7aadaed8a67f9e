//! The embedded server with third-party clients: boto3, the AWS CLI, s3cmd, rclone and mc, against the memory and the
//! POSIX store.

use std::path::Path;
use std::process::Command;

use crate::files::{self, TempDir};
use crate::program::{Serve, store_in};
use crate::server::Clients;
use crate::sh::{Result, cmd, ensure, output, root, run, show, step, words};

/// Installs the clients and drives both stores with each of them.
pub(crate) fn all() -> Result {
    let tools = Clients::install("")?;
    for store in ["memory", "posix"] {
        let dir = TempDir::new("clients")?;
        let server = Serve::start(&format!("--store {}", store_in(&dir, store)?))?;
        for (name, body) in CLIENTS {
            let what = format!("{name} against the embedded server ({store})");
            step(&what, || {
                let work = dir.path().join(name);
                files::make_dir(&work)?;
                body(&Client {
                    server: &server,
                    tools: &tools,
                    dir: &work,
                })
            })?;
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
    tools: &'a Clients,
    dir: &'a Path,
}

impl Client<'_> {
    fn command(&self, key: &str, args: &str) -> Result<Command> {
        let mut command = cmd(self.tools.get(key)?, words(args));
        command
            .current_dir(self.dir)
            // A bundle for the package registries does not concern the server.
            .env_remove("AWS_CA_BUNDLE")
            .envs(self.server.aws_env())
            .env("HOME", self.dir);
        Ok(command)
    }

    fn run(&self, key: &str, args: &str) -> Result {
        run(&mut self.command(key, args)?)
    }

    /// Fails unless a listing has a line for each object.
    fn shows_all(&self, listing: &mut Command) -> Result {
        let printed = output(listing)?;
        ensure(printed.lines().count() == 4, || {
            format!("{}: not four objects: {printed}", show(listing))
        })
    }

    /// Makes a folder of files of various sizes and names, and returns its path.
    fn files(&self) -> Result<String> {
        let source = self.dir.join("source");
        for (name, len) in [
            ("empty", 0usize),
            ("small.txt", 11),
            ("sub dir/a+b%c.bin", 70_000),
            ("big", 17 << 20),
        ] {
            let byte = |i: usize| (i.wrapping_mul(2_654_435_761) >> 13) as u8;
            files::write(source.join(name), (0..len).map(byte).collect::<Vec<_>>())?;
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

fn boto3(c: &Client<'_>) -> Result {
    let suite = root().join("xtask/conformance/boto3_suite.py");
    run(c.command("PYTHON", "")?.arg(suite))
}

fn aws(c: &Client<'_>) -> Result {
    let (source, back) = (c.files()?, c.back());
    let s3 = |line: &str| c.run("AWS", &format!("s3 {line}"));
    s3("mb s3://conformance-aws")?;
    s3(&format!("sync --quiet {source} s3://conformance-aws/pre"))?;
    c.shows_all(&mut c.command("AWS", "s3 ls --recursive s3://conformance-aws")?)?;
    s3(&format!("sync --quiet s3://conformance-aws/pre {back}"))?;
    c.same(&source, &back)?;
    s3("cp --quiet s3://conformance-aws/pre/big s3://conformance-aws/copy")?;
    s3("rm --quiet --recursive s3://conformance-aws")?;
    s3("rb s3://conformance-aws")
}

fn s3cmd(c: &Client<'_>) -> Result {
    let (source, back) = (c.files()?, c.back());
    let (address, access, secret) = c.server.endpoint();
    let config = c.dir.join("s3cfg");
    let text = format!(
        "[default]\naccess_key = {access}\nsecret_key = {secret}\nhost_base = {address}\nhost_bucket = {address}\n\
         use_https = False\nbucket_location = us-east-1\nmultipart_chunk_size_mb = 5\n"
    );
    files::write(&config, text)?;
    let config = config.display();
    let call = |line: &str| c.run("S3CMD", &format!("-c {config} --no-progress -q {line}"));
    call("mb s3://conformance-s3cmd")?;
    call(&format!("sync {source}/ s3://conformance-s3cmd/pre/"))?;
    let list = format!("-c {config} ls -r s3://conformance-s3cmd");
    c.shows_all(&mut c.command("S3CMD", &list)?)?;
    files::make_dir(&back)?;
    call(&format!("sync s3://conformance-s3cmd/pre/ {back}/"))?;
    c.same(&source, &back)?;
    call("cp s3://conformance-s3cmd/pre/small.txt s3://conformance-s3cmd/copy")?;
    call("del -r -f s3://conformance-s3cmd/")?;
    call("rb s3://conformance-s3cmd")
}

fn rclone(c: &Client<'_>) -> Result {
    let (source, back) = (c.files()?, c.back());
    let (address, access, secret) = c.server.endpoint();
    let call = |line: &str| -> Result<Command> {
        let mut command = c.command("RCLONE", line)?;
        command
            .env("RCLONE_CONFIG_B_TYPE", "s3")
            .env("RCLONE_CONFIG_B_PROVIDER", "Other")
            .env("RCLONE_CONFIG_B_ENDPOINT", format!("http://{address}"))
            .env("RCLONE_CONFIG_B_ACCESS_KEY_ID", access)
            .env("RCLONE_CONFIG_B_SECRET_ACCESS_KEY", secret)
            .env("RCLONE_S3_UPLOAD_CUTOFF", "6M");
        Ok(command)
    };
    run(&mut call("mkdir b:conformance-rclone")?)?;
    run(&mut call(&format!(
        "copy {source} b:conformance-rclone/pre"
    ))?)?;
    run(&mut call(&format!(
        "check {source} b:conformance-rclone/pre"
    ))?)?;
    c.shows_all(&mut call("lsf -R --files-only b:conformance-rclone")?)?;
    run(&mut call(&format!("copy b:conformance-rclone/pre {back}"))?)?;
    c.same(&source, &back)?;
    run(&mut call("purge b:conformance-rclone")?)
}

fn mc(c: &Client<'_>) -> Result {
    let (source, back) = (c.files()?, c.back());
    let (address, access, secret) = c.server.endpoint();
    let call = |line: &str| -> Result<Command> {
        let mut command = c.command("MC", &format!("--quiet --disable-pager {line}"))?;
        command.env("MC_HOST_b", format!("http://{access}:{secret}@{address}"));
        Ok(command)
    };
    run(&mut call("mb b/conformance-mc")?)?;
    run(&mut call(&format!("mirror {source} b/conformance-mc/pre"))?)?;
    c.shows_all(&mut call("ls --recursive b/conformance-mc")?)?;
    run(&mut call(&format!("mirror b/conformance-mc/pre {back}"))?)?;
    c.same(&source, &back)?;
    run(&mut call("stat b/conformance-mc/pre/big")?)?;
    run(&mut call("rm --recursive --force b/conformance-mc/pre")?)?;
    run(&mut call("rb b/conformance-mc")?)
}
