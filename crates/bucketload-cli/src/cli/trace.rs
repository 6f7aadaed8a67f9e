//! What `replay` and `model` have in common: how log files are read.

use std::path::PathBuf;

use bucketload_core::trace::TraceOp;
use bucketload_core::units;
use bucketload_trace::{
    Ambiguous, Column, Format, FormatOptions, Layout, PrepareOptions, RangePlacement, Sample,
    SampleBy, Ticks, TimeForm, Untimed,
};
use clap::{Args, ValueEnum, ValueHint};

use super::values::size;

/// How the input is read and what of it is used.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Trace options")]
pub(crate) struct TraceArgs {
    /// Log files, plain, gzip or zstd, merged by time; `-` is standard input
    #[arg(value_name = "FILE", required = true, value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,

    /// Format of the files; recognised by their first lines unless given
    #[arg(long, value_name = "NAME", value_parser = format, help = format_help())]
    pub(crate) format: Option<Format>,

    /// csv: what the columns hold, counted from 1, such as ts=1,op=2,key=3,size=4
    #[arg(long, value_name = "NAME=N,...", value_parser = columns)]
    pub(crate) map: Option<Columns>,

    /// csv: what stands between columns: a character, `tab` or `space`
    #[arg(long, value_name = "CHAR", default_value = ",", value_parser = delimiter)]
    pub(crate) delimiter: Byte,

    /// csv: lines before the first record, such as a header
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) skip_lines: usize,

    /// csv: unit of instants (s, ms, us, ns), or `text` for RFC 3339
    #[arg(long, value_name = "UNIT", default_value = "s", value_parser = time_unit)]
    pub(crate) time_unit: Unit,

    /// csv: further names of operations, such as R=GET,W=PUT
    #[arg(long, value_name = "NAME=OP,...", value_delimiter = ',', value_parser = op_name)]
    pub(crate) op_map: Vec<(String, TraceOp)>,

    /// swift: the log's template, such as "{client_ip} {remote_addr} ..."
    #[arg(long, value_name = "TEMPLATE")]
    pub(crate) swift_template: Option<String>,

    /// swift: keep requests that Swift made on behalf of another request
    #[arg(long)]
    pub(crate) subrequests: bool,

    /// twitter: leave out append, prepend, incr and decr instead of reading and writing
    #[arg(long)]
    pub(crate) skip_updates: bool,

    /// twitter: delete objects when their time to live is over
    #[arg(long)]
    pub(crate) expire: bool,

    /// Instants for records without any: 1000/s, poisson:1000/s or span:5h
    #[arg(long, value_name = "RATE", value_parser = untimed)]
    pub(crate) untimed: Option<Untimed>,

    /// Keep only these operations, such as GET,PUT
    #[arg(long, value_name = "OP,...", value_delimiter = ',', value_parser = op)]
    pub(crate) only_ops: Vec<TraceOp>,

    /// Keep only these recorded statuses, such as 200-299,503
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = status)]
    pub(crate) only_status: Vec<(u16, u16)>,

    /// Keep only these buckets
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub(crate) only_buckets: Vec<String>,

    /// Use only a part of the trace, such as 1h-2h; what comes before tells what exists
    #[arg(long, value_name = "FROM-TO", value_parser = window)]
    pub(crate) window: Option<Window>,

    /// Keep only a share of the keys, each with all its requests, such as 10%
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub(crate) sample: Option<f64>,

    /// What --sample chooses by its hash
    #[arg(long, value_enum, value_name = "WHAT", default_value_t)]
    pub(crate) sample_by: By,

    /// Records in the same tick of a clock of 1 ms or coarser
    #[arg(long, value_enum, value_name = "HOW", default_value_t)]
    pub(crate) ticks: TicksArg,

    /// Where ranges lie when only their length was recorded
    #[arg(long, value_enum, value_name = "WHERE", default_value_t)]
    pub(crate) ranges: Ranges,

    /// Reads of objects that the trace had deleted: write them before, or drop the read
    #[arg(long, value_enum, value_name = "HOW", default_value_t)]
    pub(crate) ambiguous: AmbiguousArg,

    /// Size of objects about which the trace says nothing
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) default_size: Option<u64>,

    /// Replace the names of buckets and keys by hashes, salted with this text
    #[arg(long, value_name = "SALT", num_args = 0..=1, default_missing_value = "")]
    pub(crate) anonymise: Option<String>,

    /// Go on when more than 0.1 % of the lines cannot be read
    #[arg(long)]
    pub(crate) lenient: bool,

    /// Where samples of unreadable lines are written, if there are any
    #[arg(long, value_name = "FILE", default_value = "bucketload-unparsable.txt")]
    pub(crate) unparsable: PathBuf,

    /// Directory for temporary files, about as large as the compressed input; the system's unless
    /// given
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) temp: Option<PathBuf>,

    /// Keep the prepared trace in this file; it can be given as FILE later
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) save: Option<PathBuf>,
}

/// Columns by their meaning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Columns(Vec<(Column, usize)>);

/// A delimiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Byte(u8);

/// How instants are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unit(TimeForm);

/// A part of the trace, nanoseconds since its first record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window(i64, i64);

/// What is sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum By {
    /// Keys, each with its whole history
    #[default]
    Key,
    /// Clients
    Client,
    /// Buckets
    Bucket,
}

/// Records in one tick.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum TicksArg {
    /// Evenly over the tick, in their order
    #[default]
    Spread,
    /// All at its start: false spikes, for worst cases only
    Burst,
    /// At random instants of it, in their order
    Jitter,
}

/// Where ranges lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Ranges {
    /// Anywhere, at multiples of 4 KiB
    #[default]
    Uniform,
    /// At the start
    Head,
    /// Behind the last one of the object
    Sequential,
}

/// Reads of deleted objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum AmbiguousArg {
    /// Write the object just before; the writes are counted
    #[default]
    Insert,
    /// Leave the read out
    Drop,
}

fn format_help() -> String {
    let names = Format::names();
    format!("Format of the files; recognised by their first lines unless given: {names}")
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
            .map_err(|_| format!("{number:?} is no number"))?;
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

fn window(text: &str) -> Result<Window, String> {
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
        Err("the window ends before it begins".to_owned())
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
    /// The options of the preparation, with temporaries in `temp`.
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
                by: match self.sample_by {
                    By::Key => SampleBy::Key,
                    By::Client => SampleBy::Client,
                    By::Bucket => SampleBy::Bucket,
                },
            }),
            ticks: match self.ticks {
                TicksArg::Spread => Ticks::Spread,
                TicksArg::Burst => Ticks::Burst,
                TicksArg::Jitter => Ticks::Jitter,
            },
            untimed: self.untimed,
            ranges: match self.ranges {
                Ranges::Uniform => RangePlacement::Uniform,
                Ranges::Head => RangePlacement::Head,
                Ranges::Sequential => RangePlacement::Sequential,
            },
            ambiguous: match self.ambiguous {
                AmbiguousArg::Insert => Ambiguous::Insert,
                AmbiguousArg::Drop => Ambiguous::Drop,
            },
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
