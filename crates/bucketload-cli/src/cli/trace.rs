//! Flags of `replay` and `model` for reading log files.

use std::path::PathBuf;

use bucketload_core::trace::TraceOp;
use bucketload_core::units;
use bucketload_trace::{
    Ambiguous, Column, Format, FormatOptions, Layout, PrepareOptions, RangePlacement, Sample,
    SampleBy, Ticks, TimeForm, Untimed,
};
use clap::{Args, ValueHint};

use super::values::{Choices, choice, size};

/// How to read the input, and which part of it to use.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Trace options")]
pub(crate) struct TraceArgs {
    /// Log files (plain, gzip or zstd), which are merged by time; `-` is standard input
    #[arg(value_name = "FILE", required = true, value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,

    /// Format of the files (default: recognised by their first lines)
    #[arg(long, value_name = "NAME", value_parser = format, help = format_help())]
    pub(crate) format: Option<Format>,

    /// csv: the meaning of the columns, counted from 1, such as ts=1,op=2,key=3,size=4
    #[arg(long, value_name = "NAME=N,...", value_parser = columns)]
    pub(crate) map: Option<Columns>,

    /// csv: separator of columns: a character, `tab` or `space`
    #[arg(long, value_name = "CHAR", default_value = ",", value_parser = delimiter)]
    pub(crate) delimiter: Byte,

    /// csv: number of lines before the first record, such as a header
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) skip_lines: usize,

    /// csv: unit of timestamps (s, ms, us, ns), or `text` for RFC 3339
    #[arg(long, value_name = "UNIT", default_value = "s", value_parser = time_unit)]
    pub(crate) time_unit: Unit,

    /// csv: additional names of operations, such as R=GET,W=PUT
    #[arg(long, value_name = "NAME=OP,...", value_delimiter = ',', value_parser = op_name)]
    pub(crate) op_map: Vec<(String, TraceOp)>,

    /// swift: the log's template, such as "{client_ip} {remote_addr} ..."
    #[arg(long, value_name = "TEMPLATE")]
    pub(crate) swift_template: Option<String>,

    /// swift: keep requests that Swift made on behalf of another request
    #[arg(long)]
    pub(crate) subrequests: bool,

    /// twitter: skip append, prepend, incr and decr instead of replaying them as a read and a write
    #[arg(long)]
    pub(crate) skip_updates: bool,

    /// twitter: delete objects when their time to live expires
    #[arg(long)]
    pub(crate) expire: bool,

    /// Timestamps for records without them: 1000/s, poisson:1000/s or span:5h
    #[arg(long, value_name = "RATE", value_parser = untimed)]
    pub(crate) untimed: Option<Untimed>,

    /// Keep only these operations, such as GET,PUT
    #[arg(long, value_name = "OP,...", value_delimiter = ',', value_parser = op)]
    pub(crate) only_ops: Vec<TraceOp>,

    /// Keep only requests with these recorded statuses, such as 200-299,503
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = status)]
    pub(crate) only_status: Vec<(u16, u16)>,

    /// Keep only these buckets
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub(crate) only_buckets: Vec<String>,

    /// Use only a part of the trace, such as 1h-2h; the earlier part still determines which objects exist
    #[arg(long, value_name = "FROM-TO", value_parser = window)]
    pub(crate) window: Option<Window>,

    /// Keep only a share of the keys, each with all its requests, such as 10%
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub(crate) sample: Option<f64>,

    /// What --sample selects, by its hash
    #[arg(long, value_name = "WHAT", default_value = "key", value_parser = choice(SAMPLE_BY))]
    pub(crate) sample_by: SampleBy,

    /// How to time records in the same tick of a clock of 1 ms or coarser
    #[arg(long, value_name = "HOW", default_value = "spread", value_parser = choice(TICKS))]
    pub(crate) ticks: Ticks,

    /// Where to place ranges of which only the length was recorded
    #[arg(long, value_name = "WHERE", default_value = "uniform", value_parser = choice(RANGES))]
    pub(crate) ranges: RangePlacement,

    /// How to treat reads of objects that the trace deleted before
    #[arg(long, value_name = "HOW", default_value = "insert", value_parser = choice(AMBIGUOUS))]
    pub(crate) ambiguous: Ambiguous,

    /// Size of objects whose size the trace does not reveal
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) default_size: Option<u64>,

    /// Replace bucket names and keys by hashes, salted with this text
    #[arg(long, value_name = "SALT", num_args = 0..=1, default_missing_value = "")]
    pub(crate) anonymise: Option<String>,

    /// Continue even if more than 0.1 % of the lines cannot be parsed
    #[arg(long)]
    pub(crate) lenient: bool,

    /// File for samples of lines that cannot be parsed, if there are any
    #[arg(long, value_name = "FILE", default_value = "bucketload-unparsable.txt")]
    pub(crate) unparsable: PathBuf,

    /// Directory for temporary files, which are about as large as the compressed input (default: the system's)
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) temp: Option<PathBuf>,

    /// Save the prepared trace to this file, which can be given as FILE later
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) save: Option<PathBuf>,
}

/// Columns by their meaning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Columns(Vec<(Column, usize)>);

/// A delimiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Byte(u8);

/// How timestamps are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unit(TimeForm);

/// A part of the trace, in nanoseconds since its first record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window(pub(crate) i64, pub(crate) i64);

const SAMPLE_BY: &Choices<SampleBy> = &[
    ("key", "Keys, each with its whole history", SampleBy::Key),
    ("client", "Clients", SampleBy::Client),
    ("bucket", "Buckets", SampleBy::Bucket),
];

const TICKS: &Choices<Ticks> = &[
    ("spread", "Evenly over the tick, in order", Ticks::Spread),
    (
        "burst",
        "All at the start of the tick; creates false spikes, for worst cases only",
        Ticks::Burst,
    ),
    (
        "jitter",
        "At random times within the tick, in order",
        Ticks::Jitter,
    ),
];

const RANGES: &Choices<RangePlacement> = &[
    (
        "uniform",
        "Anywhere, at multiples of 4 KiB",
        RangePlacement::Uniform,
    ),
    ("head", "At the start of the object", RangePlacement::Head),
    (
        "sequential",
        "After the previous range of the object",
        RangePlacement::Sequential,
    ),
];

const AMBIGUOUS: &Choices<Ambiguous> = &[
    (
        "insert",
        "Insert a write just before the read; inserted writes are counted",
        Ambiguous::Insert,
    ),
    ("drop", "Drop the read", Ambiguous::Drop),
];

fn format_help() -> String {
    let names = Format::names();
    format!("Format of the files (default: recognised by their first lines): {names}")
}

fn format(text: &str) -> Result<Format, String> {
    Format::from_name(text).ok_or_else(|| format!("use one of {}", Format::names()))
}

fn columns(text: &str) -> Result<Columns, String> {
    let mut columns = Vec::new();
    for part in text.split(',') {
        let (name, number) = part
            .split_once('=')
            .ok_or("write NAME=N,... such as ts=1,key=2")?;
        let column = Column::named(name.trim()).ok_or_else(|| {
            let names = Column::NAMES.map(|row| row.0).join(", ");
            format!("there is no column {name:?}; use {names}")
        })?;
        let number: usize = number
            .trim()
            .parse()
            .map_err(|_| format!("{number:?} is not a number"))?;
        let index = number.checked_sub(1).ok_or("columns are counted from 1")?;
        columns.push((column, index));
    }
    if !columns.iter().any(|row| row.0 == Column::Key) {
        return Err("the column `key` is missing".to_owned());
    }
    Ok(Columns(columns))
}

fn delimiter(text: &str) -> Result<Byte, String> {
    match (text, text.as_bytes()) {
        ("tab", _) => Ok(Byte(b'\t')),
        ("space", _) => Ok(Byte(b' ')),
        (_, [one]) => Ok(Byte(*one)),
        _ => Err("use one character, tab or space".to_owned()),
    }
}

fn time_unit(text: &str) -> Result<Unit, String> {
    Ok(Unit(match text {
        "s" => TimeForm::Unit(1_000_000_000),
        "ms" => TimeForm::Unit(1_000_000),
        "us" => TimeForm::Unit(1_000),
        "ns" => TimeForm::Unit(1),
        "text" => TimeForm::Text,
        _ => return Err("use s, ms, us, ns or text".to_owned()),
    }))
}

fn op(text: &str) -> Result<TraceOp, String> {
    TraceOp::from_name(&text.to_ascii_uppercase()).ok_or_else(|| {
        let names = TraceOp::ALL.map(TraceOp::name).join(", ");
        format!("there is no operation {text:?}; use {names}")
    })
}

fn op_name(text: &str) -> Result<(String, TraceOp), String> {
    let (name, known) = text.split_once('=').ok_or("write NAME=OP such as R=GET")?;
    Ok((name.to_owned(), op(known)?))
}

/// Reads a rate such as `200/s`.
pub(crate) fn rate(text: &str) -> Result<f64, String> {
    let rate = units::parse_rate(text).map_err(|invalid| invalid.to_string())?;
    if rate > 0.0 {
        Ok(rate)
    } else {
        Err("use a rate above 0".to_owned())
    }
}

/// Reads a duration such as `5m`, in nanoseconds.
pub(crate) fn duration(text: &str) -> Result<u64, String> {
    units::parse_duration(text).map_err(|invalid| invalid.to_string())
}

fn signed(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}

fn untimed(text: &str) -> Result<Untimed, String> {
    match text.split_once(':') {
        Some(("poisson", given)) => rate(given).map(Untimed::Poisson),
        Some(("span", span)) => duration(span).map(|ns| Untimed::Span(signed(ns))),
        Some(_) => Err("use RATE, poisson:RATE or span:TIME".to_owned()),
        None => rate(text).map(Untimed::Constant),
    }
}

fn status(text: &str) -> Result<(u16, u16), String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (first.parse(), last.parse()) {
        (Ok(first), Ok(last)) if first <= last => Ok((first, last)),
        _ => Err("use statuses and ranges such as 200-299,503".to_owned()),
    }
}

pub(crate) fn window(text: &str) -> Result<Window, String> {
    let (from, to) = text
        .split_once('-')
        .ok_or("use FROM-TO such as 1h-2h; either may be empty")?;
    let instant = |text: &str, otherwise| match text.trim() {
        "" => Ok(otherwise),
        text => duration(text).map(signed),
    };
    let window = Window(instant(from, 0)?, instant(to, i64::MAX)?);
    if window.0 < window.1 {
        Ok(window)
    } else {
        Err("the window ends before it starts".to_owned())
    }
}

fn share(text: &str) -> Result<f64, String> {
    let share = units::parse_share(text).map_err(|invalid| invalid.to_string())?;
    if share > 0.0 && share <= 1.0 {
        Ok(share)
    } else {
        Err("use a share above 0 and at most 1".to_owned())
    }
}

impl TraceArgs {
    /// The options for preparing the trace, with temporary files in `temp`.
    pub(crate) fn prepare(&self, temp: PathBuf, seed: u64, replay_errors: bool) -> PrepareOptions {
        let layout = self.map.as_ref().map(|columns| {
            let mut layout = Layout::new(self.delimiter.0, self.time_unit.0);
            for &(column, index) in &columns.0 {
                layout = layout.with(column, index);
            }
            for (name, op) in &self.op_map {
                layout = layout.with_op(name, *op);
            }
            layout
        });
        PrepareOptions {
            format: self.format.or(layout.is_some().then_some(Format::Csv)),
            formats: FormatOptions {
                swift_template: self.swift_template.clone(),
                subrequests: self.subrequests,
                skip_updates: self.skip_updates,
                expire: self.expire,
                layout,
                skip_lines: self.skip_lines,
            },
            ops: (!self.only_ops.is_empty()).then(|| self.only_ops.clone()),
            statuses: self.only_status.clone(),
            buckets: self
                .only_buckets
                .iter()
                .map(|name| name.clone().into_bytes())
                .collect(),
            window: self
                .window
                .map_or((0, i64::MAX), |window| (window.0, window.1)),
            sample: self.sample.map(|fraction| Sample {
                fraction,
                by: self.sample_by,
            }),
            ticks: self.ticks,
            untimed: self.untimed,
            ranges: self.ranges,
            ambiguous: self.ambiguous,
            replay_errors,
            default_size: self.default_size,
            anonymise: self.anonymise.clone(),
            lenient: self.lenient,
            samples: self.unparsable.clone(),
            seed,
            ..PrepareOptions::new(temp)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{columns, delimiter, share, status, time_unit, untimed, window};

    #[test]
    fn values_are_read_or_explained() {
        assert!(columns("ts=1,key=2").is_ok());
        assert!(columns("ts=1").unwrap_err().contains("key"));
        assert!(columns("ts=0,key=1").unwrap_err().contains("from 1"));
        assert!(columns("what=1,key=1").unwrap_err().contains("size"));
        assert_eq!(delimiter("tab").unwrap().0, b'\t');
        assert!(delimiter("ab").is_err() && time_unit("h").is_err());
        assert_eq!(status("200-299"), Ok((200, 299)));
        assert!(status("299-200").is_err() && status("x").is_err());
        assert_eq!(
            window("1s-").map(|w| (w.0, w.1)),
            Ok((1_000_000_000, i64::MAX))
        );
        assert!(window("2s-1s").is_err() && window("1s").is_err());
        assert_eq!(share("10%"), Ok(0.1));
        assert!(share("0").is_err());
        assert!(untimed("poisson:5/s").is_ok() && untimed("span:5h").is_ok());
        assert!(untimed("5/s").is_ok() && untimed("when:5").is_err());
    }
}
