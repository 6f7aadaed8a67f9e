//! Every package of `cargo xtask dist` on a system without a toolchain: a minimal Debian in a directory, with
//! separate mounts and processes. Each package is installed as users do it, and must measure with nothing but its own
//! contents.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::dist;
use crate::files;
use crate::program::{Outcome, call, done, items, target, text};
use crate::sh::{Result, cmd, ensure, line, need_programs, run, steps, words};

/// Programs of a toolchain; the system must have none of them.
const TOOLS: [&str; 8] = ["cc", "gcc", "clang", "ld", "make", "rustc", "cargo", "go"];
/// `PATH` inside the system.
const PATH: &str = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Mounts `/dev` and `/proc`, and starts the remaining arguments in the system. The mounts end with the process.
const ENTER: &str = "root=$1; home=$2; user=$3; shift 3; \
    mount --bind /dev \"$root/dev\"; mount -t proc proc \"$root/proc\"; \
    exec unshare --root=\"$root\" --wd=\"$home\" --setuid=\"$user\" --setgid=\"$user\" -- \"$@\"";

/// Checks a wheel as Python does: every file is in the record with its hash.
const RECORD: &str = "import base64, csv, hashlib, sys, zipfile\n\
    wheel = zipfile.ZipFile(sys.argv[1])\n\
    assert wheel.testzip() is None\n\
    record = [name for name in wheel.namelist() if name.endswith('.dist-info/RECORD')][0]\n\
    rows = list(csv.reader(wheel.read(record).decode().splitlines()))\n\
    assert sorted(row[0] for row in rows) == sorted(wheel.namelist()), rows\n\
    for name, digest, size in rows:\n\
    \x20   data = wheel.read(name)\n\
    \x20   own = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()\n\
    \x20   assert name == record or (digest, size) == ('sha256=' + own, str(len(data))), name\n";

/// Makes the packages twice, compares them, and installs each.
pub(super) fn all() -> Result {
    need_programs(&[
        ("debootstrap", "debootstrap"),
        ("skopeo", "skopeo"),
        ("unshare", "util-linux"),
    ])?;
    let place = target().join("packages-conformance");
    let out = place.join("packages");
    let paths = dist::make(&out)?;
    let again = dist::make(&place.join("again"))?;
    for (one, other) in paths.iter().zip(&again) {
        ensure(files::bytes(one)? == files::bytes(other)?, || {
            format!("{} differs when it is made again", one.display())
        })?;
    }
    run(line("sha256sum --quiet --check SHA256SUMS").current_dir(&out))?;
    let packages = Packages(paths);
    let base = base(&place)?;
    let root = place.join("root");
    files::remove_dir(&root)?;
    run(cmd("cp", ["-a", "--reflink=auto"]).args([&base, &root]))?;
    run(cmd("cp", ["-r"]).arg(&out).arg(root.join("packages")))?;
    let debian = System {
        root: root.clone(),
        home: "/root".to_owned(),
        user: 0,
        env: vec![PATH.to_owned(), "HOME=/root".to_owned()],
    };
    let outcome = steps(&[
        ("the archive", &|| archive(&debian, &packages)),
        ("the Debian packages", &|| debs(&debian, &packages)),
        ("the wheel", &|| wheel(&debian, &packages)),
        ("the image", &|| image(&place, &packages)),
        ("the bills of materials", &|| bills(&packages)),
    ]);
    files::remove_dir(&root)?;
    outcome
}

/// Paths of the packages.
struct Packages(Vec<PathBuf>);

impl Packages {
    /// The only package whose name has this start and this end.
    fn one(&self, start: &str, end: &str) -> Result<&Path> {
        let is = |path: &&PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with(start) && name.ends_with(end)
        };
        let mut found = self.0.iter().filter(is);
        match (found.next(), found.next()) {
            (Some(path), None) => Ok(path),
            _ => Err(format!(
                "not exactly one package {start}…{end}: {:?}",
                self.0
            )),
        }
    }

    /// Path of that package inside the system.
    fn inside(&self, start: &str, end: &str) -> Result<String> {
        let path = self.one(start, end)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        Ok(format!("/packages/{name}"))
    }
}

/// The smallest Debian with a Python that can install packages; made once.
fn base(place: &Path) -> Result<PathBuf> {
    let (base, made) = (place.join("bookworm"), place.join("bookworm.made"));
    if !made.exists() {
        files::remove_dir(&base)?;
        let make = "debootstrap --variant=minbase --include=python3-venv bookworm";
        run(line(make).arg(&base).stdout(std::process::Stdio::null()))?;
        files::write(&made, "")?;
    }
    for tool in TOOLS {
        let has = |dir: &str| base.join(dir).join(tool).exists();
        ensure(!has("usr/bin") && !has("usr/local/bin"), || {
            format!(
                "{} has {tool}; it must not have a toolchain",
                base.display()
            )
        })?;
    }
    Ok(base)
}

/// A Linux system in a directory.
struct System {
    root: PathBuf,
    /// Working directory of programs.
    home: String,
    user: u32,
    env: Vec<String>,
}

impl System {
    fn call(&self, args: &[&str]) -> Result<Outcome> {
        let mut command = line("unshare --mount --pid --fork --kill-child sh -ec");
        command
            .args([ENTER, "sh"])
            .arg(&self.root)
            .args([&self.home, &self.user.to_string()])
            .args(args)
            .env_clear();
        for pair in &self.env {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            command.env(name, value);
        }
        call(&mut command)
    }

    fn must(&self, line: &str) -> Result<Outcome> {
        let words = words(line);
        let outcome = self.call(&words.iter().map(String::as_str).collect::<Vec<_>>())?;
        outcome.expect_code(0)?;
        Ok(outcome)
    }

    /// The host's path for a path inside the system.
    fn path(&self, inside: &str) -> PathBuf {
        self.root.join(inside.trim_start_matches('/'))
    }

    /// Runs `smoke`, `online-service` and a study with nothing but `program`; each must end with a verdict.
    fn measures(&self, program: &str) -> Result {
        for args in [
            "run smoke --verify --out smoke",
            "run online-service --duration 5s --out online",
        ] {
            let result = self
                .must(&format!("{program} {args} --output json"))?
                .json()?;
            let verdict = &result["verdict"];
            let word = text(&verdict["word"]);
            ensure(!word.is_empty() && word != "INCOMPLETE", || {
                format!("{program} {args}: verdict {verdict}")
            })?;
        }
        // MinIO has no Go here, so it is skipped, and the study says how to add stores.
        self.must(&format!(
            "{program} study ossperf --quick --only sequential --repetitions 1 --dir study"
        ))?
        .complains(0, &["skipped", "--retry", "--target NAME=s3://BUCKET"])?;
        self.cells("study", 15)?;
        self.forget(&["smoke", "online", "study"])
    }

    /// Removes run directories.
    fn forget(&self, dirs: &[&str]) -> Result {
        let home = self.path(&self.home);
        dirs.iter()
            .try_for_each(|dir| files::remove_dir(&home.join(dir)))
    }

    /// Fails unless the study in `dir` measured `wanted` cells, each with a verdict.
    fn cells(&self, dir: &str, wanted: usize) -> Result {
        let journal = self.path(&self.home).join(dir).join("journal.jsonl");
        let text = files::read(&journal)?;
        let lines = text
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let good = lines.filter(|line| {
            line["event"] == "finished" && line["verdict"].as_str().is_some_and(|v| !v.is_empty())
        });
        match good.count() {
            count if count == wanted => Ok(()),
            count => Err(format!("{count} of {wanted} cells were measured:\n{text}")),
        }
    }

    /// A study of the libs3 library, which `program` must find by itself.
    fn library_measures(&self, program: &str) -> Result {
        self.must(&format!(
            "{program} study ossperf --quick --only sequential --repetitions 1 --target libs3:objects --dir library"
        ))?;
        self.cells("library", 15)?;
        self.forget(&["library", "objects"])
    }
}

fn archive(debian: &System, packages: &Packages) -> Result {
    files::make_dir(debian.path("/opt/prefix"))?;
    for name in ["bucketload-0", "libs3-bucketload-0"] {
        let file = packages.inside(name, ".tar.gz")?;
        debian.must(&format!(
            "tar -xzf {file} --strip-components=1 -C /opt/prefix"
        ))?;
    }
    for file in [
        "share/man/man1/bucketload-run.1.gz",
        "share/bash-completion/completions/bucketload",
        "share/zsh/site-functions/_bucketload",
        "share/fish/vendor_completions.d/bucketload.fish",
        "share/doc/bucketload/LICENSE-MIT",
        "share/doc/bucketload/THIRD-PARTY-LICENSES.txt",
    ] {
        if !debian.path("/opt/prefix").join(file).is_file() {
            return Err(format!("the archive has no {file}"));
        }
    }
    debian.measures("/opt/prefix/bin/bucketload")?;
    debian.library_measures("/opt/prefix/bin/bucketload")?;
    files::remove_dir(&debian.path("/opt/prefix"))
}

fn debs(debian: &System, packages: &Packages) -> Result {
    let program = packages.inside("bucketload_", ".deb")?;
    let library = packages.inside("libs3-bucketload_", ".deb")?;
    debian.must(&format!("dpkg --install {program} {library}"))?;
    debian.must("dpkg --verify bucketload libs3-bucketload")?;
    debian.must("bash -n /usr/share/bash-completion/completions/bucketload")?;
    debian.measures("bucketload")?;
    debian.library_measures("bucketload")?;
    debian.must("dpkg --purge bucketload libs3-bucketload")?;
    for left in ["/usr/bin/bucketload", "/usr/share/doc/bucketload"] {
        if debian.path(left).exists() {
            return Err(format!("{left} is still there"));
        }
    }
    Ok(())
}

fn wheel(debian: &System, packages: &Packages) -> Result {
    let file = packages.inside("bucketload-", ".whl")?;
    debian.must(&format!("python3 -c {RECORD} {file}"))?;
    debian.must("python3 -m venv /opt/venv")?;
    let pip = "/opt/venv/bin/pip";
    debian.must(&format!("{pip} install --no-index {file}"))?;
    debian.must(&format!("{pip} check"))?;
    debian.measures("/opt/venv/bin/bucketload")?;
    debian.must(&format!("{pip} uninstall --yes bucketload"))?;
    match debian.path("/opt/venv/bin/bucketload").exists() {
        true => Err("pip left the program behind".to_owned()),
        false => files::remove_dir(&debian.path("/opt/venv")),
    }
}

/// Reads the image as container engines do, and runs it as its configuration says.
fn image(place: &Path, packages: &Packages) -> Result {
    let file = packages.one("bucketload-", ".tar")?.display().to_string();
    // The form that `docker load` reads.
    let seen = done(&mut cmd(
        "skopeo",
        ["inspect", &format!("docker-archive:{file}")],
    ))?
    .json()?;
    ensure(items(&seen["Layers"]).count() == 1, || {
        format!("the image is not one layer: {seen}")
    })?;
    let (copy, root) = (place.join("image"), place.join("image-root"));
    for dir in [&copy, &root] {
        files::remove_dir(dir)?;
    }
    // skopeo checks every digest.
    let to = format!("dir:{}", copy.display());
    run(line("skopeo --insecure-policy copy --quiet").args([&format!("oci-archive:{file}"), &to]))?;
    let blob = |described: &Value| {
        let digest = described["digest"].as_str().unwrap_or_default();
        copy.join(digest.trim_start_matches("sha256:"))
    };
    let manifest = files::json(copy.join("manifest.json"))?;
    let config = &files::json(blob(&manifest["config"]))?["config"];
    files::make_dir(&root)?;
    run(cmd("tar", ["--numeric-owner", "-xzpf"])
        .arg(blob(&manifest["layers"][0]))
        .arg("-C")
        .arg(&root))?;
    // Container engines make these directories.
    for dir in ["dev", "proc"] {
        files::make_dir(root.join(dir))?;
    }
    let word = |value: &Value| text(value).to_owned();
    let user = text(&config["User"]).split(':').next();
    let user = user.and_then(|user| user.parse().ok()).unwrap_or(0);
    ensure(user != 0, || format!("the image runs as root: {config}"))?;
    let system = System {
        root: root.clone(),
        home: word(&config["WorkingDir"]),
        user,
        // The entering script itself runs programs of the host, hence PATH.
        env: [PATH.to_owned()]
            .into_iter()
            .chain(items(&config["Env"]).map(word))
            .collect(),
    };
    system.measures(&word(&config["Entrypoint"][0]))?;
    for file in [
        "etc/ssl/certs/ca-certificates.crt",
        "usr/share/doc/libc6/copyright",
    ] {
        if !root.join(file).is_file() {
            return Err(format!("the image has no {file}"));
        }
    }
    files::remove_dir(&copy)?;
    files::remove_dir(&root)
}

/// Fails unless every component of a bill of materials has a licence.
fn bills(packages: &Packages) -> Result {
    for name in ["bucketload-0", "libs3-bucketload-0"] {
        let path = packages.one(name, ".cdx.json")?;
        let bill = files::json(path)?;
        let components = items(&bill["components"]);
        let foreign = components.clone().filter(|known| known["purl"].is_string());
        let bare = components
            .clone()
            .find(|known| !known["licenses"][0].is_object());
        ensure(foreign.count() >= 5 && bare.is_none(), || {
            format!(
                "{}: too few components or no licence: {bare:?}",
                path.display()
            )
        })?;
    }
    Ok(())
}
