//! Known faults before the embedded server.

use std::path::Path;
use std::sync::Mutex;

use serde_json::Value;

use super::{Drill, INTERVAL_S, number, operations, span};
use crate::conformance::oracle::injected;
use crate::files::{self, TempDir};
use crate::machine::{TimeLimits, undisturbed};
use crate::program::{Env, Serve, bucketload, call, items, whole};
use crate::server::Clients;
use crate::sh::{Result, ensure, need_programs, root};

/// Drills with different seeds, and how many run side by side: each offers little load.
const SEEDS: u32 = 20;
const BESIDE: usize = 4;
/// Stages of a drill that is repeated often.
const STAGES: &str = "warm = \"2s\"\nsteady = \"15s\"\nrecover = \"8s\"\nhold = \"3s\"";
const LOGGED: &str = "--op-log=csv.zst";

/// Does a drill with each seed, and counts those whose figures `holds` accepts.
fn seeds(name: &str, faults: &str, holds: impl Fn(&Value) -> Result<bool> + Sync) -> Result<u32> {
    let dir = TempDir::new(name)?;
    let queue = Mutex::new(1..=SEEDS);
    let next = || queue.lock().map(|mut seeds| seeds.next()).ok().flatten();
    let lane = || {
        let mut kept = 0;
        while let Some(seed) = next() {
            let flags = format!("--seed {seed}");
            let drill = Drill {
                stages: STAGES,
                rate: 120,
                faults,
                flags: &flags,
            };
            let result = drill.result(&dir, &format!("{name}-{seed}"), &Env::new())?;
            let figures = &result["drill"];
            let kept_this = holds(figures)?;
            eprintln!(
                "{name}, seed {seed}: {}, detect {}, recover {}",
                if kept_this {
                    "as planned"
                } else {
                    "NOT as planned"
                },
                figures["detect"],
                figures["recover"]
            );
            kept += u32::from(kept_this);
        }
        Ok::<_, String>(kept)
    };
    std::thread::scope(|scope| {
        let lanes: Vec<_> = (0..BESIDE).map(|_| scope.spawn(lane)).collect();
        let kept = lanes
            .into_iter()
            .map(|lane| lane.join().map_err(|_| "a drill panicked".to_owned())?);
        kept.sum()
    })
}

/// At least `least` of the seeds have to be as planned; how a machine runs decides the rest.
fn at_least(name: &'static str, least: u32, count: impl Fn() -> Result<u32>) -> Result {
    undisturbed(name, 2, || {
        let kept = count()?;
        let line = format!("{name}: {kept} of {SEEDS} seeds are as planned, {least} are needed");
        Ok(match kept >= least {
            true => TimeLimits::Kept,
            false => TimeLimits::Missed(line),
        })
    })
}

/// Commands that do nothing: nothing may be noticed.
pub(super) fn quiet() -> Result {
    let fault = "[[fault]]\nwhat = \"hook\"\nfor = \"5s\"\nbreak = \"true\"\nmend = \"true\"";
    at_least("without a fault", SEEDS - 1, || {
        seeds("quiet", fault, |drill| Ok(drill["detect"].is_null()))
    })
}

/// Answers that arrive 20 ms late, give or take 5 ms, for 10 s.
pub(super) fn latency() -> Result {
    const LAST_S: f64 = 0.025;
    let fault = "[[fault]]\nwhat = \"latency\"\nfor = \"10s\"\ndelay = \"uniform(15ms, 25ms)\"";
    at_least("latency", SEEDS, || {
        seeds("latency", fault, |drill| {
            let (detect, recover) = (&drill["detect"], &drill["recover"]);
            if detect.is_null() || recover.is_null() {
                return Ok(false);
            }
            // The last answer that is late arrives its delay after the end.
            Ok(number(detect, "from_s")? <= INTERVAL_S
                && number(recover, "s")? <= INTERVAL_S + LAST_S)
        })
    })
}

/// A drill with an operation log: its result, and its operations.
fn logged(name: &str, rate: u32, faults: &str, flags: &str) -> Result<(Value, Vec<super::Logged>)> {
    need_programs(&[("zstd", "zstd")])?;
    let dir = TempDir::new(name)?;
    let flags = format!("{LOGGED} {flags}");
    let drill = Drill {
        stages: STAGES,
        rate,
        faults,
        flags: &flags,
    };
    let result = drill.result(&dir, name, &Env::new())?;
    let all = operations(Path::new(&dir.file(name)))?;
    Ok((result["drill"].clone(), all))
}

/// Nothing for 5 s: the longest gap is as long, and whatever falls due in it at t takes 5 s - t.
pub(super) fn black_hole() -> Result {
    const SHARE: f64 = 0.02;
    let fault = "[[fault]]\nwhat = \"black-hole\"\nfor = \"5s\"";
    undisturbed("black hole", 2, || {
        let (drill, all) = logged("hole", 120, fault, "")?;
        let (from, to) = span(&drill)?;
        let (length, gap) = (to - from, number(&drill["longest_gap"], "s")?);
        let allowed = SHARE * length;
        // Requests on their way when it began are answered when it ends, too.
        let inside: Vec<_> = all
            .iter()
            .filter(|op| op.due_s > from + 0.05 && op.due_s < to - 0.05)
            .collect();
        let early = inside
            .iter()
            .filter(|op| !op.ok || op.done_s < to - 0.001)
            .count();
        ensure(inside.len() > 500 && early == 0, || {
            format!(
                "{early} of {} arrivals did not wait for the end at {to} s",
                inside.len()
            )
        })?;
        let late = inside.iter().filter(|op| op.done_s > to + allowed).count();
        let line = format!(
            "the longest gap is {gap:.3} s of {length:.3} s; {late} of {} arrivals waited {allowed:.2} s too long",
            inside.len()
        );
        eprintln!("{line}");
        Ok(
            match (gap - length).abs() <= allowed && late * 20 <= inside.len() {
                true => TimeLimits::Kept,
                false => TimeLimits::Missed(line),
            },
        )
    })
}

/// Three in ten connections are reset: availability is the share that the operation log has.
pub(super) fn resets() -> Result {
    // The latency keeps a dozen connections in use, of which resets strike some.
    let faults = "[[fault]]\nwhat = \"latency\"\ndelay = \"100ms\"\nfor = \"6s\"\n\
                  [[fault]]\nwhat = \"reset\"\nat = \"500ms\"\nshare = \"30%\"\nafter = \"20ms\"\nfor = \"5s\"";
    let (drill, all) = logged("resets", 200, faults, "--set drill.deadline=20s")?;
    let (from, _) = span(&drill)?;
    let since: Vec<_> = all.iter().filter(|op| op.done_s >= from).collect();
    let failed = since.iter().filter(|op| !op.ok).count();
    let available = &drill["available_since"];
    let bad = number(available, "of")? - number(available, "good")?;
    let share = 1.0 - failed as f64 / since.len().max(1) as f64;
    let line = format!(
        "{failed} of {} operations failed; the result says {available}",
        since.len()
    );
    eprintln!("{line}");
    // The interval of the first break begins before it, with operations that did not fail.
    let holds =
        failed > 0 && bad == failed as f64 && (number(available, "share")? - share).abs() < 0.005;
    ensure(holds, || {
        format!("availability differs from the operation log: {line}")
    })
}

/// One request in ten is answered with 503.
pub(super) fn answers() -> Result {
    let fault = "[[fault]]\nwhat = \"answer\"\nstatus = 503\nshare = \"10%\"\nfor = \"10s\"";
    let (drill, all) = logged("answers", 200, fault, "")?;
    let (from, to) = span(&drill)?;
    let inside = all.iter().filter(|op| op.due_s > from && op.due_s < to);
    let (n, failed) = inside.fold((0.0, 0.0), |(n, failed), op| {
        (n + 1.0, failed + f64::from(u8::from(!op.ok)))
    });
    // Four standard deviations: one drill in 15,000 is outside by chance.
    let error = 4.0 * (n * 0.1 * 0.9_f64).sqrt();
    let counted: u64 = items(&drill["errors"])
        .map(|error| whole(&error["count"]))
        .sum();
    let line = format!("{failed} of {n} requests failed, the result counts {counted}");
    eprintln!("{line}");
    // The one at the very edge may be on either side.
    let counts_agree = (counted as f64 - failed).abs() <= 1.0;
    ensure(
        n > 1900.0 && (failed - n * 0.1).abs() <= error && counts_agree,
        || line.clone(),
    )
}

/// The load of `online-service` through a fault line that breaks nothing yet: a client that is no limit without it is none
/// with it.
pub(super) fn idle_line() -> Result {
    let stages = "[drill]\nwarm = \"5s\"\nsteady = \"30s\"\nrecover = \"2s\"\nhold = \"1s\"";
    let fault = "[[fault]]\nwhat = \"slow-close\"\nfor = \"100ms\"\ndelay = \"1ms\"";
    let text = files::read(root().join("workloads/online-service.toml"))?;
    // The stages say how long a drill lasts.
    let lines = text.lines().filter(|line| !line.starts_with("duration = "));
    let text = lines.collect::<Vec<_>>().join("\n");
    undisturbed("the idle fault line", 2, || {
        let dir = TempDir::new("idle-line")?;
        let server = Serve::start("--store memory")?;
        let file = dir.file("line.toml");
        files::write(&file, format!("{text}\n{stages}\n{fault}\n"))?;
        let run = |verb: &str, out: &str| {
            let line = format!(
                "{verb} --objects 2000 --out {} --output json --quiet --target s3://line/p --create-bucket \
                 --endpoint-url {}",
                dir.file(out),
                server.url()
            );
            call(bucketload(&line)?.envs(server.aws_env()))?.json()
        };
        let plain = run("run online-service --duration 35s", "plain")?["verdict"]
            .to_string()
            .to_lowercase();
        let through = run(&format!("drill {file}"), "line")?["drill"]["why"]
            .to_string()
            .to_lowercase();
        let line =
            format!("the baseline through the fault line is {through}, a run without it {plain}");
        eprintln!("{line}");
        let bound = |words: &str| words.contains("client-bound");
        Ok(match bound(&through) && !bound(&plain) {
            true => TimeLimits::Missed(line),
            false => TimeLimits::Kept,
        })
    })
}

/// The embedded server forgets writes that it acknowledged, some of them while answers are held: the oracle names every one.
pub(super) fn forgotten() -> Result {
    const COUNT: u64 = 20;
    let dir = TempDir::new("forgotten")?;
    // After the objects that are read, which the drill prepares.
    let server = Serve::start(&format!(
        "--store memory --stats-page --fault lost,op=put,after=200,every=40,count={COUNT}"
    ))?;
    let flags = format!(
        "--oracle --target s3://forgotten/p --create-bucket --endpoint-url {}",
        server.url()
    );
    let fault = "[[fault]]\nwhat = \"half-open\"\nshare = \"50%\"\nfor = \"3s\"";
    let drill = Drill {
        stages: STAGES,
        rate: 120,
        faults: fault,
        flags: &flags,
    };
    let outcome = drill.run(&dir, "forgotten", &server.aws_env())?;
    outcome.expect_code(1)?;
    let result = outcome.json()?;
    let found = &result["oracle"]["found"];
    let data = &result["drill"]["data"];
    let staged: u64 = items(&data["by_stage"])
        .map(|row| whole(&row["count"]))
        .sum();
    let ids = items(&result["oracle"]["findings"]).filter(|f| {
        f["missed"]["request_id"]
            .as_str()
            .is_some_and(|id| !id.is_empty())
            && f["key"] != ""
    });
    let line = format!(
        "{found}; {data}; {} with key and request",
        ids.clone().count()
    );
    eprintln!("{line}");
    let injected = injected(server.endpoint().0)?;
    let holds = injected == [COUNT]
        && found["lost"]["findings"] == COUNT
        && found.as_object().is_some_and(|kinds| kinds.len() == 1)
        && staged == COUNT
        && items(&data["by_stage"]).any(|row| row["acknowledged"] == "broken")
        && ids.count() as u64 == COUNT;
    ensure(holds, || {
        format!("{injected:?} writes were forgotten, and the drill says {line}")
    })
}

/// A client of others through the same fault: what it makes of forged answers stands beside what the native client sees.
pub(super) fn engines() -> Result {
    let tools = Clients::install("")?;
    let rclone = tools.get("RCLONE")?;
    let folder = Path::new(rclone)
        .parent()
        .unwrap_or(Path::new("/"))
        .display();
    let dir = TempDir::new("engines")?;
    let server = Serve::start("--store memory")?;
    let mut env = server.aws_env();
    env.insert("PATH".to_owned(), format!("{folder}:/usr/bin:/bin"));
    // A process for each operation, so the rate is low and the baseline long.
    let stages =
        "warm = \"5s\"\nsteady = \"200s\"\nrecover = \"10s\"\nhold = \"3s\"\ninterval = \"1s\"";
    let fault = "[[fault]]\nwhat = \"answer\"\nstatus = 503\nshare = \"30%\"\nfor = \"20s\"";
    let mut failed = Vec::new();
    for (out, engine) in [
        ("native", "native"),
        ("rclone", "cli:rclone --engine-retries 3"),
    ] {
        let flags = format!(
            "--engine {engine} --target s3://engines/p --create-bucket --endpoint-url {}",
            server.url()
        );
        let drill = Drill {
            stages,
            rate: 6,
            faults: fault,
            flags: &flags,
        };
        let result = drill.result(&dir, out, &env)?;
        let figures = &result["drill"];
        let count: u64 = items(&figures["errors"])
            .map(|error| whole(&error["count"]))
            .sum();
        eprintln!(
            "{out}: {count} failed, p99 times {}, {}",
            figures["p99_ratio"], figures["line"]
        );
        ensure(number(&figures["line"], "bytes")? > 0.0, || {
            format!("{out} did not use the fault line")
        })?;
        failed.push(count);
    }
    let line = format!(
        "compare {} {} --allow-different workload --allow-different driver --allow-different verdict --fail-on never",
        dir.file("native"),
        dir.file("rclone")
    );
    let outcome = call(&mut bucketload(&line)?)?;
    eprintln!("{}", outcome.stdout);
    outcome.expect(
        0,
        &[
            "failed since the first break",
            "longest time without a success",
        ],
    )?;
    ensure(failed[0] > failed[1], || {
        format!("retries hid nothing: {failed:?}")
    })
}
