//! OSSperf's six steps on a real server: every step succeeds, the line has the 13 columns of OSSperf's formula, and
//! an invalid bucket name is refused.

use crate::files::{self, TempDir};
use crate::program::{bucketload, call, items, measured};
use crate::server::Server;
use crate::sh::Result;

/// Runs the six steps through `api` against `server`.
pub(super) fn six_steps(server: &Server, api: &str) -> Result {
    let dir = TempDir::new("ossperf")?;
    let (out, lines) = (dir.file("run"), dir.file("results.csv"));
    let target = format!("{api}://shared-bucket/ossperf");
    let result = measured(
        &format!(
            "run ossperf --objects 6 --size 100001 --parallel 3 --target {target} --create-bucket \
             --results-csv {lines} --out {out}"
        ),
        &server.env,
    )?;
    let steps = items(&result["ossperf"]["steps"]);
    let done: Vec<u64> = steps.filter_map(|step| step["ok"].as_u64()).collect();
    if done != [1, 6, 1, 6, 6, 1] {
        return Err(format!("the steps did {done:?} operations"));
    }
    let text = files::read(&lines)?;
    let line = text.lines().nth(1).unwrap_or_default();
    eprintln!("{}: {line}", server.name);
    formula(line, 6.0, 100_001.0)?;
    refused_name(server, &target)
}

/// Fails unless the line has 13 columns whose sum and bandwidths follow from its times: seconds truncated to
/// milliseconds, and `size · files · 8 / T` in 10^6 bits per second, truncated at each of three divisions.
fn formula(line: &str, files: f64, size: f64) -> Result {
    let columns: Vec<&str> = line.split(' ').collect();
    if columns.len() != 13 {
        return Err(format!("the line does not have 13 columns: {line}"));
    }
    let figures: Vec<f64> = columns[4..].iter().filter_map(|c| c.parse().ok()).collect();
    let [times @ .., sum, up, down] = &figures[..] else {
        return Err(format!("columns that are no numbers: {line}"));
    };
    let milli = |seconds: &f64| (seconds * 1000.0).round();
    if times.iter().map(milli).sum::<f64>() != milli(sum) {
        return Err(format!("the sum is not that of the six times: {line}"));
    }
    for (bandwidth, step) in [(up, 1), (down, 3)] {
        let exact = size * files * 8.0 / times[step] / 1e6;
        if *bandwidth > exact || exact - bandwidth > 0.003 {
            return Err(format!("{bandwidth} Mbit/s instead of {exact}: {line}"));
        }
    }
    Ok(())
}

/// No service accepts a slash in a bucket name, so the run must end before it sends anything.
fn refused_name(server: &Server, target: &str) -> Result {
    let line = format!(
        "run ossperf --target {target} --set keysets.files.buckets.name=a/b --set keysets.files.buckets.exact=true"
    );
    call(bucketload(&line)?.envs(&server.env))?.complains(2, &[])
}
