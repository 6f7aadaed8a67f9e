//! The operation log as Apache Parquet.

use std::collections::HashMap;
use std::fs::File;
use std::sync::Arc;

use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, Type};

use super::columns::{COLUMNS, Kind, Value};

/// Rows per row group. One group, about 20 MB, is held in memory.
pub(super) const GROUP_ROWS: usize = 65_536;

/// The rows of a row group, column by column.
pub(super) struct Group {
    columns: Vec<Buffer>,
    rows: usize,
    /// Shared copies of recurring texts.
    names: HashMap<String, ByteArray>,
}

struct Buffer {
    kind: Kind,
    ints: Vec<i64>,
    texts: Vec<ByteArray>,
    /// 1 where there is a value; only used for columns with nulls.
    levels: Vec<i16>,
}

impl Group {
    pub(super) fn new() -> Self {
        let columns = COLUMNS.map(|(_, kind)| Buffer {
            kind,
            ints: Vec::new(),
            texts: Vec::new(),
            levels: Vec::new(),
        });
        Self {
            columns: columns.into(),
            rows: 0,
            names: HashMap::new(),
        }
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Adds the cell of column `at`; the last column ends the row.
    pub(super) fn put(&mut self, at: usize, value: Value<'_>) {
        let column = &mut self.columns[at];
        let optional = matches!(column.kind, Kind::OptInt | Kind::OptText);
        if optional {
            column.levels.push(i16::from(value != Value::Null));
        }
        match value {
            Value::Int(value) => column.ints.push(value),
            Value::Text(text) if column.kind == Kind::Name => {
                let shared = match self.names.get(text) {
                    Some(shared) => shared.clone(),
                    None => {
                        let shared = ByteArray::from(text.as_bytes().to_vec());
                        self.names.insert(text.to_owned(), shared.clone());
                        shared
                    }
                };
                column.texts.push(shared);
            }
            Value::Text(text) => column.texts.push(text.as_bytes().to_vec().into()),
            Value::Null => {}
        }
        self.rows += usize::from(at + 1 == COLUMNS.len());
    }

    fn clear(&mut self) {
        self.rows = 0;
        for column in &mut self.columns {
            column.ints.clear();
            column.texts.clear();
            column.levels.clear();
        }
    }
}

/// One file.
pub(super) struct ParquetFile {
    writer: SerializedFileWriter<File>,
}

impl ParquetFile {
    /// Starts `file` with the metadata `facts`.
    pub(super) fn new(file: File, facts: &[(&str, String)]) -> Result<Self, ParquetError> {
        let fact =
            |(name, value): &(&str, String)| KeyValue::new((*name).to_owned(), value.clone());
        let mut properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
            .set_created_by(format!("bucketload {}", env!("CARGO_PKG_VERSION")))
            .set_key_value_metadata(Some(facts.iter().map(fact).collect()));
        for (name, kind) in COLUMNS {
            // Numbers and keys hardly repeat: a dictionary would be built and thrown away.
            let path = ColumnPath::from(name);
            match kind {
                Kind::Int | Kind::OptInt => {
                    properties = properties
                        .set_column_dictionary_enabled(path.clone(), false)
                        .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
                }
                Kind::Text => {
                    properties = properties
                        .set_column_dictionary_enabled(path.clone(), false)
                        .set_column_encoding(path, Encoding::DELTA_BYTE_ARRAY);
                }
                Kind::Name | Kind::OptText => {}
            }
        }
        let writer =
            SerializedFileWriter::new(file, Arc::new(schema()?), Arc::new(properties.build()))?;
        Ok(Self { writer })
    }

    /// Writes the rows of `group` and empties it.
    pub(super) fn write(&mut self, group: &mut Group) -> Result<(), ParquetError> {
        if group.rows == 0 {
            return Ok(());
        }
        let mut out = self.writer.next_row_group()?;
        let mut columns = group.columns.iter();
        while let (Some(mut writer), Some(column)) = (out.next_column()?, columns.next()) {
            let optional = matches!(column.kind, Kind::OptInt | Kind::OptText);
            let levels = optional.then_some(column.levels.as_slice());
            match column.kind {
                Kind::Int | Kind::OptInt => {
                    writer
                        .typed::<Int64Type>()
                        .write_batch(&column.ints, levels, None)?;
                }
                Kind::Name | Kind::Text | Kind::OptText => {
                    writer
                        .typed::<ByteArrayType>()
                        .write_batch(&column.texts, levels, None)?;
                }
            }
            writer.close()?;
        }
        out.close()?;
        group.clear();
        Ok(())
    }

    /// Ends the file and adds the metadata `facts`.
    pub(super) fn finish(mut self, facts: &[(&str, String)]) -> Result<(), ParquetError> {
        for (name, value) in facts {
            let fact = KeyValue::new((*name).to_owned(), value.clone());
            self.writer.append_key_value_metadata(fact);
        }
        self.writer.close()?;
        Ok(())
    }
}

fn schema() -> Result<Type, ParquetError> {
    let mut fields = Vec::with_capacity(COLUMNS.len());
    for (name, kind) in COLUMNS {
        let (physical, logical) = match kind {
            Kind::Int | Kind::OptInt => (Physical::INT64, None),
            Kind::Name | Kind::Text | Kind::OptText => {
                (Physical::BYTE_ARRAY, Some(LogicalType::String))
            }
        };
        let repetition = match kind {
            Kind::OptInt | Kind::OptText => Repetition::OPTIONAL,
            _ => Repetition::REQUIRED,
        };
        let field = Type::primitive_type_builder(name, physical)
            .with_logical_type(logical)
            .with_repetition(repetition)
            .build()?;
        fields.push(Arc::new(field));
    }
    Type::group_type_builder("operation")
        .with_fields(fields)
        .build()
}
