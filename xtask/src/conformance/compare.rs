//! Comparisons in real time against the embedded server: a server with itself, and with one whose answers take 10 %
//! longer. The verdict must be right in 19 of 20 and in 9 of 10 comparisons.
//!
//! Each comparison makes three pairs of one-second runs, so that all 30 take under four minutes. Simulations test the
//! statistics of five runs (`cargo test`).

use crate::files::{self, TempDir};
use crate::program::{Serve, measured, text};
use crate::sh::{Result, ensure};

/// Comparisons of a server with itself, and how many must be right.
const SAME: (u32, u32) = (20, 19);
/// Comparisons with the slower server, and how many must be right.
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
    files::write(&file, WORKLOAD)?;
    let serve = |fault: &str| Serve::start(&format!("--store memory --fault {fault}"));
    let base = serve("delay,ms=20,op=get")?;
    let same = serve("delay,ms=20,op=get")?;
    let slow = serve("delay,ms=22,op=get")?;
    let pair = |b, trials, words| tally(&dir, &file, [&base, b], trials, words);
    let right = pair(&same, SAME.0, &["equivalent", "inconclusive"])?;
    let found = pair(&slow, SLOWER.0, &["slower"])?;
    eprintln!(
        "the same server: {right} of {} right; 10 % slower: {found} of {}",
        SAME.0, SLOWER.0
    );
    ensure(right >= SAME.1 && found >= SLOWER.1, || {
        format!(
            "at least {} of {} and {} of {} must be right",
            SAME.1, SAME.0, SLOWER.1, SLOWER.0
        )
    })
}

/// Number of comparisons of two servers whose verdict is one of `words`.
fn tally(
    dir: &TempDir,
    file: &str,
    [a, b]: [&Serve; 2],
    trials: u32,
    words: &[&str],
) -> Result<u32> {
    let mut right = 0;
    for trial in 0..trials {
        let out = dir.file(&format!("{}-{trial}", words[0]));
        let (a_url, b_url) = (a.url(), b.url());
        let line = format!(
            "compare s3://compare/t s3://compare/t --workload {file} --a-with '--endpoint-url {a_url}' \
             --b-with '--endpoint-url {b_url}' --create-bucket --runs 3 --pause 0s --no-calibration \
             --fail-on never --quiet --out {out}"
        );
        let comparison = measured(&line, &a.aws_env())?;
        let word = text(&comparison["decision"]);
        let p50 = comparison["quantities"][0]["interval"]["estimate"].as_f64();
        eprintln!("{word}: p50 of B over A {:.4}", p50.unwrap_or(f64::NAN));
        right += u32::from(words.contains(&word));
    }
    Ok(right)
}
