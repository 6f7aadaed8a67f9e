//! `sI-STAGE.csv`: the figures over time. Every snapshot has every column, so none is misaligned
//! (specification section 7, B8).

use std::fmt::Write as _;

use super::text::{number, present, ratio, time};
use super::{Figures, Record, StageRecord, cell};

type Column = (&'static str, fn(&Figures) -> String);

const GROUPS: [Column; 7] = [
    ("Op-Count", |f| f.ops.to_string()),
    ("Byte-Count", |f| f.bytes.to_string()),
    ("Avg-ResTime", |f| present(f.response_ms)),
    ("Avg-ProcTime", |f| present(f.processing_ms)),
    ("Throughput", |f| number(f.throughput)),
    ("Bandwidth", |f| number(f.bandwidth)),
    ("Succ-Ratio", |f| {
        f.success.map_or_else(|| "N/A".to_owned(), ratio)
    }),
];

pub(super) fn timeline(record: &Record, stage: &StageRecord) -> String {
    let Some(first) = stage.snapshots.first().filter(|s| !s.names.is_empty()) else {
        return String::new();
    };
    let names = &first.names;
    let mut out = "Timestamp,".to_owned();
    for (title, _) in GROUPS {
        out.push_str(title);
        out.push_str(&",".repeat(names.len()));
    }
    out.push_str("Version-Info,,\n,");
    for _ in GROUPS {
        names.iter().for_each(|name| {
            let _ = write!(out, "{},", cell(name));
        });
    }
    out.push_str("Min-Version,Version,Max-Version\n");
    for (version, snapshot) in stage.snapshots.iter().enumerate() {
        let _ = write!(out, "{},", time(snapshot.at_ms, record.utc_offset_s));
        let none = Figures::default();
        for (_, of) in GROUPS {
            for column in 0..names.len() {
                let figures = snapshot.figures.get(column).unwrap_or(&none);
                let _ = write!(out, "{},", of(figures));
            }
        }
        let version = version + 1;
        let _ = writeln!(out, "{version},{version},{version}");
    }
    out
}
