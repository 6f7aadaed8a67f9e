//! Separated values whose columns are named by a header or by the user: Bucketload's native CSV
//! (docs/spec/traces.md section 1), Meta's CacheLib layouts (3.2), generic CSV with a mapping (3.3),
//! Bucketload's operation log and warp's operation dump. They differ only in their [`Layout`].

use bucketload_core::op::OpClass;
use bucketload_core::trace::TraceOp;

use super::{Emit, Importer, SECOND};
use crate::hash::hash64;
use crate::parsed::{DropReason, ParsedRecord};
use crate::text::fields::{percent_decode, signed, split_csv, unquote, unsigned};
use crate::text::time::{common_log, decimal, rfc3339};

/// The meaning of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Column {
    /// Start of the request.
    Ts,
    /// End of the request; the start is the end minus the duration.
    End,
    /// Operation.
    Op,
    /// Bucket.
    Bucket,
    /// Key.
    Key,
    /// Size of the object, or of the value, in bytes.
    Size,
    /// Start of the range.
    Off,
    /// Length of the range.
    Len,
    /// Client.
    Client,
    /// HTTP status.
    Status,
    /// Duration, in the same unit as the instants.
    Dur,
    /// Part number of a multipart upload.
    Part,
    /// Id of a multipart upload.
    Upload,
    /// How many times the request was made.
    Repeat,
    /// Source of a copy.
    Source,
    /// Empty or `ok` unless the request failed.
    Error,
    /// Instant at which the duration begins, if only its end is given.
    Started,
}

impl Column {
    const COUNT: usize = 17;

    /// The column names of `--map`.
    pub const NAMES: [(&'static str, Self); Self::COUNT] = [
        ("ts", Self::Ts),
        ("end", Self::End),
        ("op", Self::Op),
        ("bucket", Self::Bucket),
        ("key", Self::Key),
        ("size", Self::Size),
        ("off", Self::Off),
        ("len", Self::Len),
        ("client", Self::Client),
        ("status", Self::Status),
        ("dur", Self::Dur),
        ("part", Self::Part),
        ("upload", Self::Upload),
        ("repeat", Self::Repeat),
        ("source", Self::Source),
        ("error", Self::Error),
        ("started", Self::Started),
    ];

    /// The column with this name in `--map`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMES
            .iter()
            .find(|row| row.0 == name)
            .map(|row| row.1)
    }
}

/// The format of instants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeForm {
    /// A decimal number of units; the value is the unit in nanoseconds.
    Unit(i64),
    /// RFC 3339, or `dd/Mon/yyyy:HH:MM:SS +0000`.
    Text,
}

/// The layout of a file of separated values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The separator of values.
    pub delimiter: u8,
    /// The index of each [`Column`], from 0; `None` if absent.
    pub columns: [Option<usize>; Column::COUNT],
    /// The format of instants.
    pub time: TimeForm,
    /// Operations by their names in the file, in lower case; other names are unknown.
    pub ops: Vec<(String, TraceOp)>,
    /// Whether a read of size 0 is a miss (key-value caches).
    pub zero_is_miss: bool,
    /// Whether keys are percent-encoded.
    pub encoded_keys: bool,
}

impl Layout {
    /// Makes a layout without columns, with the native operation names.
    #[must_use]
    pub fn new(delimiter: u8, time: TimeForm) -> Self {
        let native = TraceOp::ALL.map(|op| (op.name().to_ascii_lowercase(), op));
        Self {
            delimiter,
            columns: [None; Column::COUNT],
            time,
            ops: native.into(),
            zero_is_miss: false,
            encoded_keys: false,
        }
    }

    /// Sets the index of `column`, from 0.
    #[must_use]
    pub fn with(mut self, column: Column, index: usize) -> Self {
        self.columns[column as usize] = Some(index);
        self
    }

    /// Adds a name for the operation `op`.
    #[must_use]
    pub fn with_op(mut self, name: &str, op: TraceOp) -> Self {
        self.ops.insert(0, (name.to_ascii_lowercase(), op));
        self
    }

    fn at(&self, column: Column) -> Option<usize> {
        self.columns[column as usize]
    }
}

/// The source of the layout.
#[derive(Clone, Debug)]
pub(super) enum Header {
    /// The layout is given.
    Known(Box<Layout>),
    /// The first line names the columns; the function returns the layout, or `None` if the line is not such a header.
    FromFirstLine(fn(&[&[u8]], u8) -> Option<Layout>, u8),
}

/// The importer.
#[derive(Debug)]
pub(super) struct Columns {
    record: ParsedRecord,
    layout: Option<Layout>,
    header: Header,
    /// Number of lines to skip at the start of each file.
    skip: usize,
    skipped: usize,
    spans: Vec<(usize, usize)>,
    scratch: Vec<u8>,
}

impl Columns {
    pub(super) fn new(header: Header, skip: usize) -> Self {
        let layout = match &header {
            Header::Known(layout) => Some(Layout::clone(layout)),
            Header::FromFirstLine(..) => None,
        };
        Self {
            record: ParsedRecord::default(),
            layout,
            header,
            skip,
            skipped: 0,
            spans: Vec::new(),
            scratch: Vec::new(),
        }
    }

    fn first_line(&mut self, line: &[u8]) -> Result<(), DropReason> {
        let Header::FromFirstLine(find, delimiter) = &self.header else {
            return Ok(());
        };
        if !split_csv(line, *delimiter, &mut self.spans) {
            return Err(DropReason::Malformed);
        }
        let names: Vec<&[u8]> = self
            .spans
            .iter()
            .map(|&(a, b)| line[a..b].trim_ascii())
            .collect();
        let layout = find(&names, *delimiter).ok_or(DropReason::Malformed)?;
        self.layout = Some(layout);
        Ok(())
    }
}

fn instant(text: &[u8], form: TimeForm) -> Result<i64, DropReason> {
    match form {
        TimeForm::Unit(ns) => decimal(text, ns),
        TimeForm::Text => rfc3339(text).or_else(|| common_log(text)),
    }
    .ok_or(DropReason::BadTimestamp)
}

impl Importer for Columns {
    fn start_file(&mut self) {
        self.skipped = 0;
        if matches!(self.header, Header::FromFirstLine(..)) {
            self.layout = None;
        }
    }

    fn read(&mut self, line: &[u8], emit: &mut Emit<'_>) -> Result<(), DropReason> {
        if self.skipped < self.skip {
            self.skipped += 1;
            return Ok(());
        }
        let Some(layout) = &self.layout else {
            return self.first_line(line);
        };
        if !split_csv(line, layout.delimiter, &mut self.spans) {
            // A quoted field is not closed.
            return Err(DropReason::Truncated);
        }
        let spans = &self.spans;
        let needed = layout.columns.iter().flatten().max().copied().unwrap_or(0);
        if spans.len() <= needed {
            return Err(DropReason::Truncated);
        }
        let value = |column| {
            layout
                .at(column)
                .map(|i| line[spans[i].0..spans[i].1].trim_ascii())
        };
        let number = |column| match value(column) {
            None | Some(b"" | b"-") => Ok(-1),
            Some(text) => signed(text).ok_or(DropReason::BadNumber),
        };
        let r = &mut self.record;
        r.clear();
        if let Some(text) = value(Column::Dur).filter(|&text| !matches!(text, b"" | b"-" | b"-1")) {
            let unit = match layout.time {
                TimeForm::Unit(ns) => ns,
                TimeForm::Text => 1,
            };
            r.dur_ns = decimal(text, unit).ok_or(DropReason::BadNumber)?;
        }
        if let (Some(from), Some(to)) = (value(Column::Started), value(Column::End)) {
            r.dur_ns = (instant(to, layout.time)? - instant(from, layout.time)?).max(0);
        }
        match (value(Column::Ts), value(Column::End)) {
            (Some(text), _) => r.ts_ns = instant(text, layout.time)?,
            (None, Some(text)) => r.started_before(instant(text, layout.time)?),
            (None, None) => {}
        }
        let name = value(Column::Op).unwrap_or(b"get");
        let op = layout
            .ops
            .iter()
            .find(|(known, _)| name.eq_ignore_ascii_case(known.as_bytes()));
        r.op = op.ok_or(DropReason::UnknownOp)?.1;
        if let Some(key) = value(Column::Key) {
            if layout.encoded_keys {
                self.scratch.clear();
                unquote(key, &mut self.scratch);
                percent_decode(&self.scratch, &mut r.key);
            } else {
                unquote(key, &mut r.key);
            }
        }
        r.need_key()?;
        for (column, to) in [
            (Column::Bucket, &mut r.bucket),
            (Column::Client, &mut r.client),
            (Column::Source, &mut r.source),
        ] {
            unquote(value(column).unwrap_or(b""), to);
        }
        r.size = number(Column::Size)?.max(-1);
        if layout.zero_is_miss && r.op == TraceOp::Get && r.size == 0 {
            r.size = -1;
        }
        r.off = number(Column::Off)?.max(0);
        r.len = number(Column::Len)?.max(-1);
        r.status = number(Column::Status)?.clamp(0, 999) as u16;
        let part = number(Column::Part)?.max(0);
        r.part = u16::try_from(part).map_err(|_| DropReason::BadNumber)?;
        if let Some(upload) = value(Column::Upload).filter(|&text| !matches!(text, b"" | b"0")) {
            r.upload = hash64(&[upload]);
        }
        if let Some(repeat) = value(Column::Repeat) {
            let repeat = unsigned(repeat).and_then(|n| u32::try_from(n).ok());
            r.repeat = repeat.filter(|&n| n > 0).ok_or(DropReason::BadNumber)?;
        }
        if r.status == 0 && value(Column::Error).is_some_and(|text| !matches!(text, b"" | b"ok")) {
            // A failure of unknown kind: it was load, but says nothing about the key.
            r.status = 500;
        }
        emit(r);
        Ok(())
    }
}

/// The layout of a native CSV header, with columns in any order.
pub(super) fn native(names: &[&[u8]], delimiter: u8) -> Option<Layout> {
    let mut layout = Layout::new(delimiter, TimeForm::Unit(1));
    for (i, name) in names.iter().enumerate() {
        let name = std::str::from_utf8(name).ok()?;
        let column = match name {
            "ts_ns" => Column::Ts,
            "dur_ns" => Column::Dur,
            "ts" | "end" | "dur" => return None,
            other => Column::named(other)?,
        };
        layout = layout.with(column, i);
    }
    let has = |column| layout.at(column).is_some();
    (has(Column::Ts) && has(Column::Op) && has(Column::Key)).then_some(layout)
}

/// The layout of Meta's traces, which have four different headers.
pub(super) fn cachelib(names: &[&[u8]], delimiter: u8) -> Option<Layout> {
    let at = |name: &[u8]| names.iter().position(|n| *n == name);
    let mut layout = Layout::new(delimiter, TimeForm::Unit(SECOND))
        .with(Column::Key, at(b"key")?)
        .with(Column::Op, at(b"op")?)
        .with(Column::Size, at(b"size")?)
        .with(Column::Repeat, at(b"op_count")?);
    at(b"key_size")?;
    if let Some(i) = at(b"op_time") {
        layout = layout.with(Column::Ts, i);
    }
    if let Some(i) = at(b"usecase") {
        layout = layout.with(Column::Client, i);
    }
    layout.ops = [
        ("get", TraceOp::Get),
        ("get_lease", TraceOp::Get),
        ("set", TraceOp::Put),
        ("set_lease", TraceOp::Put),
        ("delete", TraceOp::Delete),
    ]
    .map(|(name, op)| (name.to_owned(), op))
    .into();
    layout.zero_is_miss = true;
    Some(layout)
}

/// warp's operation dump: tab-separated, one line per operation.
pub(super) fn warp(names: &[&[u8]], delimiter: u8) -> Option<Layout> {
    let at = |name: &[u8]| names.iter().position(|n| *n == name);
    let mut layout = Layout::new(delimiter, TimeForm::Text)
        .with(Column::Ts, at(b"start")?)
        .with(Column::Op, at(b"op")?)
        .with(Column::Key, at(b"file")?)
        .with(Column::Size, at(b"bytes")?)
        .with(Column::Client, at(b"client_id")?)
        .with(Column::Dur, at(b"duration_ns")?)
        .with(Column::Error, at(b"error")?);
    layout = layout
        .with_op("stat", TraceOp::Head)
        .with_op("putpart", TraceOp::MpuPart);
    Some(layout)
}

/// Bucketload's operation log as CSV, with requests at the instants when they were due.
pub(super) fn op_log(names: &[&[u8]], delimiter: u8) -> Option<Layout> {
    let at = |name: &[u8]| names.iter().position(|n| *n == name);
    let mut layout = Layout::new(delimiter, TimeForm::Unit(1))
        .with(Column::Ts, at(b"due_ns")?)
        .with(Column::Started, at(b"started_ns")?)
        .with(Column::End, at(b"done_ns")?)
        .with(Column::Op, at(b"class")?)
        .with(Column::Key, at(b"key")?)
        .with(Column::Size, at(b"size")?)
        .with(Column::Off, at(b"range_offset")?)
        .with(Column::Len, at(b"range_length")?)
        .with(Column::Client, at(b"worker")?)
        .with(Column::Status, at(b"status")?)
        .with(Column::Error, at(b"outcome")?)
        .with(Column::Source, at(b"source_key")?);
    let op = |class| match class {
        OpClass::Get | OpClass::RangeGet | OpClass::GetPart => TraceOp::Get,
        OpClass::Put => TraceOp::Put,
        OpClass::MultipartPut => TraceOp::MpuComplete,
        OpClass::Head | OpClass::HeadPart => TraceOp::Head,
        OpClass::Delete => TraceOp::Delete,
        OpClass::DeleteMany => TraceOp::MultiDelete,
        OpClass::List | OpClass::ListV1 => TraceOp::List,
        OpClass::Copy => TraceOp::Copy,
        OpClass::MultipartAbort => TraceOp::MpuAbort,
        _ => TraceOp::Other,
    };
    layout.ops = OpClass::ALL
        .map(|class| (class.name().to_owned(), op(class)))
        .into();
    Some(layout)
}
