//! The pictures of the manual's gallery: runs of today's program, and the tops of their pages as Chromium shows them.
//!
//! Look at each before you commit it: the verdict depends on what else the machine does. The pictures of studies of
//! other servers, the console and the terminal are made by hand.

use crate::conformance::browser::picture;
use crate::files::{self, TempDir};
use crate::program::{Serve, bucketload, call, done};
use crate::sh::{Result, ensure, need_programs, none_of, root, step};

/// A picture below `docs`, its height in pixels, and the command that makes its page. `{out}` stands for the directory
/// of the page, `{dir}` for one of the task, `{URL}`s for servers of [`SERVERS`].
const PICTURES: [(&str, u32, &str); 11] = [
    (
        "report",
        1720,
        "run online-service --target s3://bench/t --create-bucket --endpoint-url {plain} --objects 2000 --out {out}",
    ),
    (
        "gallery/comparison",
        1500,
        "compare s3://old/t s3://new/t --create-bucket --workload online-service --rate 50/s --duration 20s --runs 5 \
         --objects 200 --a-with '--endpoint-url {a}' --b-with '--endpoint-url {b}' --out {out}",
    ),
    (
        "gallery/file-backup",
        1620,
        "run file-backup --target s3://bench/t --create-bucket --endpoint-url {plain} --duration 60s --out {out}",
    ),
    (
        "gallery/hotspot",
        1060,
        "run hotspot --target s3://bench/t --create-bucket --endpoint-url {plain} --objects 2000 --rate 100/s \
         --duration 20s --out {out}",
    ),
    (
        "gallery/cosbench",
        1600,
        "run {dir}/workload.xml --endpoint-url {a} --out {out}",
    ),
    (
        "gallery/capacity",
        1010,
        "capacity get --target s3://bench/t --create-bucket --endpoint-url {queue} --slo 'p99<200ms' --size 1KiB \
         --objects 200 --start-rate 15/s --trial-duration 20s --quick --out {out}",
    ),
    (
        "gallery/md-workbench",
        2080,
        "md-workbench --ranks 4 -D 4 -P 100 -I 60 -R 2 --target s3://bench/t --create-bucket --endpoint-url {a} \
         --out {out}",
    ),
    (
        "gallery/train",
        1700,
        "train --model unet3d --accelerator h100 --accelerators 4 --scale 1/1000 --epochs 3 --steps 12 \
         --target s3://bench/t --create-bucket --endpoint-url {reads} --out {out}",
    ),
    (
        "gallery/checkpoint",
        1500,
        "checkpoint --scale 1/1000 --count 4 --pause 1s --latest --target s3://bench/t --create-bucket \
         --endpoint-url {a} --out {out}",
    ),
    (
        "gallery/kvcache",
        1700,
        "kvcache --trace {dir}/conversations.jsonl --bytes-per-token 64 --speed 10 --prefill-per-token 40us \
         --target s3://bench/t --create-bucket --endpoint-url {a} --out {out}",
    ),
    (
        "gallery/ai-study",
        1700,
        "study ai --quick --create-bucket --target near=s3://bench/t --target far=s3://bench/t \
         --endpoint-url near={a} --endpoint-url far={reads} --dir {out}",
    ),
];

/// Servers, by the name that stands for their URL, with the faults that make their pages interesting.
const SERVERS: [(&str, &str); 5] = [
    ("{plain}", "--store memory"),
    (
        "{a}",
        "--store memory --fault 'delay,dist=lognormal(mean=8ms,cv=0.3)'",
    ),
    (
        "{b}",
        "--store memory --fault 'delay,dist=lognormal(mean=10ms,cv=0.3),op=get' \
         --fault 'delay,dist=lognormal(mean=8ms,cv=0.3),op=put'",
    ),
    (
        "{queue}",
        "--store memory --fault queue,rate=120/s,service=exp,op=get",
    ),
    (
        "{reads}",
        "--store memory --fault 'delay,dist=lognormal(mean=180ms,cv=0.5),op=get' \
         --fault 'delay,dist=lognormal(mean=20ms,cv=0.3),op=put'",
    ),
];

/// A workload as COSBench's users write it.
const COSBENCH: &str = r#"<workload name="mixed-64k" description="80 % reads, 20 % writes of 64 KiB">
  <storage type="s3" config="accesskey={id};secretkey={secret};endpoint={a}"/>
  <workflow>
    <workstage name="init"><work type="init" workers="1" config="cprefix=gallery-;containers=r(1,2)"/></workstage>
    <workstage name="prepare">
      <work type="prepare" workers="2" config="cprefix=gallery-;containers=r(1,2);objects=r(1,100);sizes=c(64)KB"/>
    </workstage>
    <workstage name="main">
      <work name="main" workers="8" rampup="10" runtime="50">
        <operation type="read" ratio="80" config="cprefix=gallery-;containers=u(1,2);objects=u(1,100)"/>
        <operation type="write" ratio="20" config="cprefix=gallery-;containers=u(1,2);objects=u(101,200);sizes=c(64)KB"/>
      </work>
    </workstage>
    <workstage name="cleanup"><work type="cleanup" workers="1" config="cprefix=gallery-;containers=r(1,2);objects=r(1,200)"/></workstage>
    <workstage name="dispose"><work type="dispose" workers="1" config="cprefix=gallery-;containers=r(1,2)"/></workstage>
  </workflow>
</workload>
"#;

/// Makes the named pictures, or all.
///
/// # Errors
/// All failures.
pub(crate) fn main(names: &[String]) -> Result {
    need_programs(&[("chromium", "chromium")])?;
    let known = |name: &str| PICTURES.iter().any(|(path, ..)| path.ends_with(name));
    if let Some(unknown) = names.iter().find(|name| !known(name)) {
        let all: Vec<&str> = PICTURES.iter().map(|(path, ..)| *path).collect();
        return Err(format!(
            "no picture is called {unknown:?}: {}",
            all.join(", ")
        ));
    }
    let chosen = |path: &str| names.is_empty() || names.iter().any(|name| path.ends_with(name));
    let dir = TempDir::new("gallery")?;
    let failures = PICTURES
        .iter()
        .filter(|(path, ..)| chosen(path))
        .filter_map(|picture| step(picture.0, || make(picture, &dir)).err());
    none_of(&failures.collect::<Vec<_>>())
}

fn make(&(path, height, command): &(&str, u32, &str), dir: &TempDir) -> Result {
    let out = dir.file(&path.replace('/', "-"));
    let mut line = command
        .replace("{out}", &out)
        .replace("{dir}", &dir.path().to_string_lossy());
    let mut servers = Vec::new();
    for (name, args) in SERVERS {
        if line.contains(name) {
            let server = Serve::start(args)?;
            line = line.replace(name, &server.url());
            servers.push(server);
        }
    }
    let server = servers.first().ok_or("no server")?;
    let (_, id, secret) = server.endpoint();
    let values = [("{id}", id), ("{secret}", secret), ("{a}", &server.url())];
    let workload = values
        .iter()
        .fold(COSBENCH.to_owned(), |text, (name, value)| {
            text.replace(name, value)
        });
    files::write(dir.path().join("workload.xml"), workload)?;
    let trace = done(&mut bucketload("study show conversations")?)?;
    files::write(dir.path().join("conversations.jsonl"), trace.stdout)?;
    let outcome = call(
        bucketload(&line)?
            .env("AWS_ACCESS_KEY_ID", id)
            .env("AWS_SECRET_ACCESS_KEY", secret),
    )?;
    eprint!("{}", outcome.said());
    ensure(outcome.code == 0, || {
        format!("{}: exit code {}", outcome.shown, outcome.code)
    })?;
    let png = root().join(format!("docs/{path}.png"));
    picture(
        &dir.path().join(format!("{out}/report.html")),
        &png,
        1240,
        height,
    )
}
