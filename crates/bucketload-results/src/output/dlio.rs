//! The summary of a training with the fields that DLIO gives it (docs/spec/ai-training.md section 5).

use serde_json::json;

use crate::analyze::header::timestamp;
use crate::result::{RunResult, TrainResult};

/// Name of the file in the run directory.
pub const SUMMARY: &str = "summary.json";

const GIB: f64 = (1u64 << 30) as f64;

/// DLIO's `summary.json` of a training. `hosts` are the hosts of its agents; empty for a run without agents, whose host
/// the result does not name. Each host counts with the memory of the machine that coordinated the run.
#[must_use]
pub fn summary(result: &RunResult, train: &TrainResult, hosts: &[String]) -> String {
    let number = hosts.len().max(1);
    let memory = result.run.host.memory_bytes as f64 / GIB;
    let data = train.objects as f64 * train.samples_per_object as f64 * train.record_bytes / GIB;
    let share = data / number as f64;
    let per_epoch = |of: fn(&crate::result::train::EpochResult) -> Option<f64>| {
        train.epochs.iter().filter_map(of).collect::<Vec<f64>>()
    };
    let list = vec![memory; number];
    let value = json!({
        "num_accelerators": train.accelerators,
        "num_hosts": number,
        "hostname": hosts.first().map_or("", String::as_str),
        "start": result.run.started,
        "end": timestamp(result.run.ended_unix_ns),
        "epochs": train.epochs.len(),
        "num_files_train": train.objects,
        "num_samples_per_file": train.samples_per_object,
        "host_memory_GB": list,
        "data_size_per_host_GB": share,
        // 1 where the memory of a host exceeds its share of the data, which may then be cached.
        "potential_caching": list.iter().map(|m| u8::from(*m > share)).collect::<Vec<u8>>(),
        "metric": {
            "train_au_percentage": per_epoch(|e| e.au_percent),
            "train_au_mean_percentage": train.au.mean,
            "train_au_stdev_percentage": train.au.stdev,
            "train_au_meet_expectation": if train.passed { "success" } else { "fail" },
            "train_throughput_samples_per_second": per_epoch(|e| e.samples_per_s),
            "train_throughput_mean_samples_per_second": train.samples_per_s.mean,
            "train_throughput_stdev_samples_per_second": train.samples_per_s.stdev,
            "train_io_mean_MB_per_second": train.io_mib_per_s.mean,
            "train_io_stdev_MB_per_second": train.io_mib_per_s.stdev,
        },
    });
    // A tree of JSON can always be written.
    let mut text = serde_json::to_string_pretty(&value).unwrap_or_default();
    text.push('\n');
    text
}
