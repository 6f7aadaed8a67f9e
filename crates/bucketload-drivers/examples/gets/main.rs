//! What a native driver costs per request, beside the S3 driver.
//!
//! ```text
//! cargo run --release -p bucketload-drivers --example gets -- REPETITIONS kept|closing|hdfs
//! ```
//!
//! Reads objects of 4 KiB; one repetition measures every row once, in turn, and ratios are taken inside the
//! repetition. Figures are CPU times of the client's threads.
//!
//! - `kept`: every API on 64 connections that stay open, from a thread that answers every request alike; HDFS's
//!   own protocol on as many to a name node and as many to a data node.
//! - `closing`: the same where the answer ends the connection; by WebHDFS that of the data node, as Hadoop's
//!   do. `floor` is connecting, sending, receiving and closing by plain sockets of the runtime.
//! - `hdfs`: Hadoop itself, by its own protocol (by the driver, and by the library alone) and by WebHDFS, and
//!   S3 from the embedded server: at full speed, and from one that takes as long as Hadoop (`s3-slow`).
//!   `HDFS_URI`, `ENDPOINT` and `HADOOP_USER_NAME` are what `servers/hdfs.sh` prints.
//!
//! A row costs so many times what its reference costs for as many requests: a GET by WebHDFS or by HDFS's own
//! protocol is two requests and is compared with two of S3; where the second ends its connection, with one of
//! S3 that does not and one that does. Prints a line per row: name, requests per object, reference, median and quartiles of
//! the ratio, median cost per object in nanoseconds; tabs between them.

mod answers;
mod cpu;
mod fakes;
mod floor;
mod hadoop;
#[cfg(feature = "hdfs")]
mod hdfs;
mod load;

use std::sync::OnceLock;
use std::time::Instant;

/// Bytes of an object.
const SIZE: usize = 4096;
/// Core of the client.
const CORE: usize = 0;

type Failure = Box<dyn std::error::Error>;

/// A line of the table: what it is called, its requests per object, and the rows that the cost of as many
/// requests by S3 is taken from.
struct Row {
    name: &'static str,
    requests: u32,
    /// Indices of rows, and how many requests each of them stands for.
    against: &'static [(usize, u32)],
}

const fn row(name: &'static str, requests: u32, against: &'static [(usize, u32)]) -> Row {
    Row {
        name,
        requests,
        against,
    }
}

const KEPT: &[Row] = &[
    row("s3", 1, &[(0, 1)]),
    row("swift", 1, &[(0, 1)]),
    row("azblob", 1, &[(0, 1)]),
    row("gcs", 1, &[(0, 1)]),
    row("seaweedfs", 1, &[(0, 1)]),
    row("webhdfs", 2, &[(0, 2)]),
    #[cfg(feature = "hdfs")]
    row("hdfs", 2, &[(0, 2)]),
];

const CLOSING: [Row; 4] = [
    row("s3", 1, &[(0, 1)]),
    row("floor", 1, &[(1, 1)]),
    row("s3-closing", 1, &[(1, 1)]),
    row("webhdfs-closing", 2, &[(0, 1), (2, 1)]),
];

const HDFS: [Row; 5] = [
    row("s3", 1, &[(0, 1)]),
    row("s3-slow", 1, &[(0, 1)]),
    row("hdfs", 2, &[(0, 2)]),
    row("hdfs-library", 2, &[(0, 2)]),
    row("webhdfs", 2, &[(0, 2)]),
];

fn clock() -> u64 {
    static EPOCH: OnceLock<Instant> = OnceLock::new();
    1 + EPOCH.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

fn main() -> Result<(), Failure> {
    let mut args = std::env::args().skip(1);
    let repetitions: usize = args.next().map_or(Ok(7), |text| text.parse())?;
    let set = args.next().unwrap_or_else(|| "kept".to_owned());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    match set.as_str() {
        "kept" => {
            let answers = answers::start()?;
            cpu::pin(CORE);
            table(KEPT, repetitions, |name| {
                let address = match name {
                    "hdfs" => &answers.name_node,
                    _ => &answers.kept,
                };
                runtime.block_on(fakes::measure(fakes::LOAD, name, address))
            })
        }
        "closing" => {
            cpu::pin(CORE);
            table(&CLOSING, repetitions, |name| {
                // At a port of its own: finished connections keep theirs for a minute.
                let answers = answers::start()?;
                let (api, address) = match name {
                    "floor" => {
                        return runtime.block_on(floor::measure(fakes::FEW, &answers.closing));
                    }
                    "s3-closing" => ("s3", &answers.closing),
                    "webhdfs-closing" => ("webhdfs", &answers.leading),
                    _ => ("s3", &answers.kept),
                };
                runtime.block_on(fakes::measure(fakes::FEW, api, address))
            })
        }
        #[cfg(feature = "hdfs")]
        "hdfs" => {
            let delay = args.next().unwrap_or_else(|| "1ms".to_owned());
            let hadoop = runtime.block_on(hdfs::Hadoop::prepare(&delay))?;
            table(&HDFS, repetitions, |name| {
                runtime.block_on(hadoop.measure(name))
            })
        }
        other => Err(format!("there is no set `{other}`: kept, closing, hdfs").into()),
    }
}

/// Measures all rows `repetitions` times, in turn, and prints the table.
fn table(
    rows: &[Row],
    repetitions: usize,
    mut measure: impl FnMut(&str) -> Result<f64, Failure>,
) -> Result<(), Failure> {
    let mut costs: Vec<Vec<f64>> = vec![Vec::new(); rows.len()];
    // The first round only warms up.
    for repetition in 0..=repetitions {
        for turn in 0..rows.len() {
            let at = (turn + repetition) % rows.len();
            let cost = measure(rows[at].name)?;
            if repetition > 0 {
                costs[at].push(cost);
            }
        }
    }
    for (row, own) in rows.iter().zip(&costs) {
        let reference = |i: usize| -> f64 {
            let parts = row.against.iter();
            parts
                .map(|&(at, requests)| costs[at][i] * f64::from(requests))
                .sum()
        };
        let mut ratios: Vec<f64> = (0..repetitions).map(|i| own[i] / reference(i)).collect();
        let mut own = own.clone();
        ratios.sort_by(f64::total_cmp);
        own.sort_by(f64::total_cmp);
        let against: Vec<String> = row
            .against
            .iter()
            .map(|&(at, requests)| format!("{requests} x {}", rows[at].name))
            .collect();
        let (quarter, middle) = (repetitions / 4, repetitions / 2);
        println!(
            "{}\t{}\t{}\t{:.3}\t{:.3}\t{:.3}\t{:.0}",
            row.name,
            row.requests,
            against.join(" + "),
            ratios[middle],
            ratios[quarter],
            ratios[repetitions - 1 - quarter],
            own[middle]
        );
    }
    Ok(())
}
