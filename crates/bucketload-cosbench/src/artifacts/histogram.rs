//! `wN-NAME-rt-histogram.csv`: successes in buckets of 10 ms.

use std::fmt::Write as _;

use super::text::ratio;
use super::{BUCKETS, Record, Row, cell};

pub(super) fn histogram(record: &Record) -> String {
    let stages = record.stages.iter().enumerate();
    let columns: Vec<(String, &Row)> = stages
        .flat_map(|(index, stage)| {
            let id = stage.id(index);
            // Operations with a custom name have no column.
            let plain = stage.rows.iter().filter(|row| row.name == row.sample);
            plain.map(move |row| {
                let title = format!("{id}-w{}-{}-{}", row.work + 1, row.work_name, row.name);
                (cell(&title), row)
            })
        })
        .collect();
    let mut out = "ResTime".to_owned();
    for (title, _) in &columns {
        let _ = write!(out, ",{title},(%)");
    }
    out.push('\n');
    let totals: Vec<u64> = columns
        .iter()
        .map(|(_, row)| row.histogram.iter().map(|b| b.1).sum())
        .collect();
    let mut at = vec![(0usize, 0u64); columns.len()];
    for bucket in 0..BUCKETS {
        let lo = bucket * 10;
        let _ = match bucket == BUCKETS - 1 {
            true => write!(out, "{lo}~+INF"),
            false => write!(out, "{lo}~{}", lo + 10),
        };
        for (column, (_, row)) in columns.iter().enumerate() {
            let (next, sum) = &mut at[column];
            let here = row.histogram.get(*next).filter(|b| b.0 as usize == bucket);
            let count = here.map_or(0, |b| b.1);
            *next += usize::from(here.is_some());
            *sum += count;
            let share = *sum as f64 / totals[column].max(1) as f64;
            let _ = write!(out, ",{count},{}", ratio(share));
        }
        out.push('\n');
    }
    out
}
