//! Comparisons in real time against the embedded server: the same server twice, and one whose
//! answers take 10 % longer. The words have to be right in 19 of 20 and 9 of 10 comparisons.
//!
//! Each comparison makes three pairs of one-second runs, so that all 30 of them take under four
//! minutes; the statistics of five runs are tested by simulation (`cargo test`).

use crate::own::{Serve, TempDir, bucketload, call};
use crate::sh::Result;

/// Comparisons of a server with itself, and how many of them have to be right.
const SAME: (u32, u32) = (20, 19);
/// Comparisons with the slower server.
const SLOWER: (u32, u32) = (10, 9);

const WORKLOAD: &str = r#"
name = "steady"
description = "reads that take as long as the server was told"
[keysets.objects]
count = 20
size = "1KiB"
[phases.run]
duration = "1s"
rate = "200/s"
arrival = "constant"
steady-state = false
mix = { get = 100 }
"#;

pub(crate) fn words() -> Result {
    let dir = TempDir::new("compare")?;
    let file = dir.file("steady.toml");
    std::fs::write(&file, WORKLOAD).map_err(|e| e.to_string())?;
    let serve = |fault: &str| Serve::start(&["--store", "memory", "--fault", fault]);
    let base = serve("delay,ms=20,op=get")?;
    let same = serve("delay,ms=20,op=get")?;
    let slow = serve("delay,ms=22,op=get")?;
    let right = tally(
        &dir,
        &file,
        &base,
        &same,
        SAME.0,
        &["equivalent", "inconclusive"],
    )?;
    let found = tally(&dir, &file, &base, &slow, SLOWER.0, &["slower"])?;
    eprintln!(
        "the same server: {right} of {} right; 10 % slower: {found} of {}",
        SAME.0, SLOWER.0
    );
    if right >= SAME.1 && found >= SLOWER.1 {
        Ok(())
    } else {
        Err(format!(
            "at least {} of {} and {} of {} have to be right",
            SAME.1, SAME.0, SLOWER.1, SLOWER.0
        ))
    }
}

/// Number of comparisons that end with one of `words`.
fn tally(
    dir: &TempDir,
    file: &str,
    a: &Serve,
    b: &Serve,
    trials: u32,
    words: &[&str],
) -> Result<u32> {
    let mut right = 0;
    for trial in 0..trials {
        let out = dir.file(&format!("{}-{trial}", words[0]));
        let side = |server: &Serve| format!("--endpoint-url http://{}", server.endpoint().0);
        let (a_with, b_with) = (side(a), side(b));
        let args = [
            "compare",
            "s3://compare/t",
            "s3://compare/t",
            "--workload",
            file,
            "--a-with",
            &a_with,
            "--b-with",
            &b_with,
            "--create-bucket",
            "--runs",
            "3",
            "--pause",
            "0s",
            "--no-calibration",
            "--fail-on",
            "never",
            "--quiet",
            "--out",
            &out,
            "--output",
            "json",
        ];
        let outcome = call(bucketload(&args)?.envs(a.aws_env()))?;
        outcome.expect_code(0)?;
        let comparison = outcome.json()?;
        let word = comparison["decision"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let p50 = comparison["quantities"][0]["interval"]["estimate"].as_f64();
        eprintln!("{word}: p50 of B over A {:.4}", p50.unwrap_or(f64::NAN));
        right += u32::from(words.contains(&word.as_str()));
    }
    Ok(right)
}
