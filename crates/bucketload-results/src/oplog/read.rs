//! Reads operation logs, column by column and a bounded number of rows at a time.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::path::Path;

use parquet::column::reader::get_typed_column_reader;
use parquet::data_type::{ByteArrayType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader as _, RowGroupReader, SerializedFileReader};

use super::columns::{COLUMNS, Kind};
use super::{OpLogFormat, csv, files};
use crate::error::ResultsError;

/// Number of CSV lines passed on at a time.
const LINES: usize = 65_536;

/// Cells of one column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Column {
    /// Whole numbers or null.
    Ints(Vec<Option<i64>>),
    /// Texts or null.
    Texts(Vec<Option<String>>),
}

impl Column {
    fn new(kind: Kind) -> Self {
        match kind {
            Kind::Int | Kind::OptInt => Self::Ints(Vec::new()),
            Kind::Name | Kind::Text | Kind::OptText => Self::Texts(Vec::new()),
        }
    }

    /// The number in row `i`; `None` if there is none.
    #[must_use]
    pub fn int(&self, i: usize) -> Option<i64> {
        match self {
            Self::Ints(values) => *values.get(i)?,
            Self::Texts(_) => None,
        }
    }

    /// The text in row `i`; `None` if there is none.
    #[must_use]
    pub fn text(&self, i: usize) -> Option<&str> {
        match self {
            Self::Ints(_) => None,
            Self::Texts(values) => values.get(i)?.as_deref(),
        }
    }
}

/// Some rows, with the requested columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rows {
    /// Number of rows.
    pub len: usize,
    /// The columns, in the requested order.
    pub columns: Vec<Column>,
}

/// Calls `each` for the rows of all complete files of the operation log in `dir`, in the order in which they were
/// written, with the columns called `names` (see [`COLUMNS`]). Returns the number of rows; 0 if there is no log.
///
/// # Errors
/// When a file cannot be read or is not an operation log.
///
/// # Panics
/// If a name is not that of a column.
pub fn read(dir: &Path, names: &[&str], mut each: impl FnMut(&Rows)) -> Result<u64, ResultsError> {
    let wanted: Vec<(usize, Kind)> = names
        .iter()
        .map(|name| {
            let at = COLUMNS.iter().position(|(column, _)| column == name);
            let at = at.unwrap_or_else(|| panic!("the operation log has no column `{name}`"));
            (at, COLUMNS[at].1)
        })
        .collect();
    let mut total = 0;
    let mut count = |rows: &Rows| {
        total += rows.len as u64;
        each(rows);
    };
    for format in [OpLogFormat::Parquet, OpLogFormat::CsvZst] {
        let paths = files::list(dir, format.extension()).map_err(ResultsError::io(dir, "list"))?;
        for path in paths {
            let outcome = match format {
                OpLogFormat::Parquet => {
                    read_parquet(&path, &wanted, &mut count).map_err(io::Error::other)
                }
                OpLogFormat::CsvZst => read_csv(&path, &wanted, &mut count),
            };
            outcome.map_err(ResultsError::io(&path, "read"))?;
        }
    }
    Ok(total)
}

fn read_parquet(
    path: &Path,
    wanted: &[(usize, Kind)],
    each: &mut impl FnMut(&Rows),
) -> Result<(), ParquetError> {
    let reader = SerializedFileReader::new(File::open(path)?)?;
    for group in 0..reader.num_row_groups() {
        let group = reader.get_row_group(group)?;
        let len = usize::try_from(group.metadata().num_rows())?;
        let columns = wanted
            .iter()
            .map(|&(at, kind)| column(&*group, at, kind, len))
            .collect::<Result<_, _>>()?;
        each(&Rows { len, columns });
    }
    Ok(())
}

fn column(
    group: &dyn RowGroupReader,
    at: usize,
    kind: Kind,
    len: usize,
) -> Result<Column, ParquetError> {
    let schema = group.metadata().column(at).column_descr().name();
    if schema != COLUMNS[at].0 {
        let text = format!("column {at} is `{schema}` instead of `{}`", COLUMNS[at].0);
        return Err(ParquetError::General(text));
    }
    let reader = group.get_column_reader(at)?;
    let mut levels = Vec::new();
    let optional = matches!(kind, Kind::OptInt | Kind::OptText);
    Ok(match kind {
        Kind::Int | Kind::OptInt => {
            let mut values = Vec::new();
            get_typed_column_reader::<Int64Type>(reader).read_records(
                len,
                optional.then_some(&mut levels),
                None,
                &mut values,
            )?;
            Column::Ints(spread(values, optional.then_some(&levels)))
        }
        Kind::Name | Kind::Text | Kind::OptText => {
            let mut values = Vec::new();
            get_typed_column_reader::<ByteArrayType>(reader).read_records(
                len,
                optional.then_some(&mut levels),
                None,
                &mut values,
            )?;
            let texts = values
                .iter()
                .map(|value| value.as_utf8().map(str::to_owned))
                .collect::<Result<Vec<_>, _>>()?;
            Column::Texts(spread(texts, optional.then_some(&levels)))
        }
    })
}

/// Inserts nulls where `levels` say that there is no value.
fn spread<T>(values: Vec<T>, levels: Option<&Vec<i16>>) -> Vec<Option<T>> {
    let mut values = values.into_iter();
    match levels {
        None => values.map(Some).collect(),
        Some(levels) => levels
            .iter()
            .map(|&level| if level > 0 { values.next() } else { None })
            .collect(),
    }
}

fn read_csv(path: &Path, wanted: &[(usize, Kind)], each: &mut impl FnMut(&Rows)) -> io::Result<()> {
    let bad = |number: u64, what: &str| {
        io::Error::new(io::ErrorKind::InvalidData, format!("line {number}: {what}"))
    };
    let empty = || Rows {
        len: 0,
        columns: wanted.iter().map(|(_, kind)| Column::new(*kind)).collect(),
    };
    let text = BufReader::new(zstd::Decoder::new(File::open(path)?)?);
    let mut rows = empty();
    for (line, number) in text.lines().zip(1..) {
        let line = line?;
        let cells = csv::split(&line).ok_or_else(|| bad(number, "unclosed quote"))?;
        if cells.len() != COLUMNS.len() {
            return Err(bad(number, "the columns are not those of an operation log"));
        }
        if number == 1 {
            continue;
        }
        for (&(at, _), column) in wanted.iter().zip(&mut rows.columns) {
            let cell = Some(&cells[at]).filter(|cell| !cell.is_empty());
            match column {
                Column::Ints(values) => {
                    let value = cell.map(|cell| cell.parse()).transpose();
                    values.push(value.map_err(|_| bad(number, "invalid number"))?);
                }
                Column::Texts(values) => {
                    let required = COLUMNS[at].1 != Kind::OptText;
                    values.push(cell.cloned().or_else(|| required.then(String::new)));
                }
            }
        }
        rows.len += 1;
        if rows.len == LINES {
            each(&rows);
            rows = empty();
        }
    }
    if rows.len > 0 {
        each(&rows);
    }
    Ok(())
}
