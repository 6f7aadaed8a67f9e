//! The file of models: what it may contain, and how a model is taken from it.

use std::sync::Arc;

use bucketload_core::plan::KeyNaming;

use super::Training;
use crate::spec::decode::{Cx, Decode, Fields, decode_variants, spec_table};
use crate::spec::node::Node;
use crate::spec::{ByteSize, Errors, Named, Nanos, ReadMode, Share, Source, SpecError, suggest};

/// Defaults of DLIO (docs/spec/ai-training.md section 4).
const READERS: u32 = 4;
const PREFETCH: u32 = 2;
const EPOCHS: u32 = 5;
const MARK: f64 = 0.9;
const ROW_GROUP: u64 = 6144;

/// Formats of objects.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    schemars::JsonSchema,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Format {
    /// Compressed NumPy arrays.
    Npz,
    /// TensorFlow's records.
    Tfrecord,
    /// Pictures.
    Jpeg,
    /// Apache Parquet.
    Parquet,
}

decode_variants!(Format);

spec_table! {
    /// What a model says of its samples, or an accelerator says otherwise.
    pub struct Parameters {
        /// Format of the objects.
        pub format: Option<Format>,
        /// Samples per object.
        pub samples_per_object: Option<u64>,
        /// Nominal bytes of a sample.
        pub record: Option<f64>,
        /// Their standard deviation.
        pub stdev: Option<f64>,
        /// Bytes that the format adds to an object.
        pub framing: Option<u64>,
        /// Samples per batch.
        pub batch: Option<u64>,
        /// Time that an accelerator computes on a batch.
        pub computation: Option<Nanos>,
        /// Readers per accelerator.
        pub readers: Option<u32>,
        /// Batches that the readers may be ahead.
        pub prefetch: Option<u32>,
        /// Passes over the data set.
        pub epochs: Option<u32>,
        /// Accelerator utilisation that passes.
        pub au: Option<Share>,
        /// How objects are read.
        pub read: Option<ReadMode>,
        /// Bytes per request, for ranges.
        pub range_size: Option<ByteSize>,
        /// Bytes of each column that is read.
        pub columns: Option<Vec<ByteSize>>,
        /// Bytes of a row with all its columns.
        pub row: Option<ByteSize>,
        /// Rows of a row group.
        pub row_group: Option<u64>,
    }
}

/// A model with its accelerators.
#[derive(Clone, Debug, Default, PartialEq)]
struct Model {
    common: Parameters,
    accelerators: Named<Parameters>,
}

impl Decode for Model {
    fn decode(node: &Node, cx: &mut Cx<'_>) -> Option<Self> {
        let table = cx.table(node)?;
        cx.deny_unknown(table, &[Parameters::FIELDS, &["accelerators"]]);
        Some(Self {
            common: Parameters::read(table, cx),
            accelerators: cx.field(table, "accelerators").unwrap_or_default(),
        })
    }
}

/// A file of models.
#[derive(Clone, Debug)]
pub struct TrainingModels {
    source: Arc<Source>,
    root: Node,
    models: Named<Model>,
}

impl TrainingModels {
    /// The models that the program has.
    ///
    /// # Errors
    /// Never, unless the file in the program is wrong.
    pub fn builtin() -> Result<Self, SpecError> {
        Self::parse("the built-in models", Self::TEXT)
    }

    /// The file of the built-in models.
    pub const TEXT: &str = include_str!("models.toml");

    /// Reads a file of models; error messages refer to it as `name`.
    ///
    /// # Errors
    /// All problems of syntax, field names and values found.
    pub fn parse(name: &str, text: &str) -> Result<Self, SpecError> {
        let source = Arc::new(Source {
            name: name.to_owned(),
            text: text.to_owned(),
        });
        let mut errors = Errors::new(Arc::clone(&source));
        let root = Node::parse(&mut errors);
        if !errors.is_empty() {
            return Err(errors.into_error());
        }
        let models = Named::decode(&root, &mut Cx::new(&mut errors)).unwrap_or_default();
        errors.finish(Self {
            source,
            root,
            models,
        })
    }

    /// Names of the models, each with the names of its accelerators.
    pub fn names(&self) -> impl Iterator<Item = (&str, Vec<&str>)> {
        self.models
            .0
            .iter()
            .map(|(name, model)| (name.as_str(), model.accelerators.names().collect()))
    }

    /// Model `model` on accelerators of the kind `accelerator`.
    ///
    /// # Errors
    /// If there is no such model, it has no time for this accelerator, or a parameter is missing or out of range.
    pub fn training(&self, model: &str, accelerator: &str) -> Result<Training, SpecError> {
        let Some(found) = self.models.get(model) else {
            let message = format!("{} has no such model", self.source.name);
            let remedy = suggest::advice(model, self.models.names());
            return Err(SpecError::flag(format!("--model {model}"), message, remedy));
        };
        let mut errors = Errors::new(Arc::clone(&self.source));
        let path = |field: &str| format!("{model}.{field}");
        let Some(special) = found.accelerators.get(accelerator) else {
            let at = path("accelerators");
            let names: Vec<&str> = found.accelerators.names().collect();
            let message =
                format!("`{model}` has no computation time for accelerators `{accelerator}`");
            let remedy = format!(
                "use --accelerator with one of {}, or give a file with a time of yours with --models",
                names.join(", ")
            );
            errors.push(self.root.origin_of(&at), at.clone(), message, remedy);
            return Err(errors.into_error());
        };
        let one = format!("accelerators.{accelerator}");
        let common = &found.common;
        // A field of the accelerator, or else of the model, with its place in the file.
        macro_rules! field {
            ($name:ident) => {
                special.$name.clone().or_else(|| common.$name.clone())
            };
        }
        let place = |name: &str, special: bool| match special {
            true => path(&format!("{one}.{name}")),
            false => path(name),
        };
        let mut need = |name: &str, given: Option<f64>, special: bool| {
            let at = place(name, special);
            let (message, remedy) = match given {
                Some(value) if value > 0.0 => return value,
                Some(_) => (format!("`{name}` must be above 0"), String::new()),
                None => (
                    format!("`{name}` is missing"),
                    format!("add {name} to [{model}] or to its accelerator `{accelerator}`"),
                ),
            };
            errors.push(self.root.origin_of(&at), at.clone(), message, remedy);
            1.0
        };
        let record = need("record", field!(record), special.record.is_some());
        let batch = field!(batch);
        need("batch", batch.map(|n| n as f64), special.batch.is_some());
        let computation = field!(computation);
        let seconds = computation.map(|time| time.0 as f64);
        need("computation", seconds, special.computation.is_some());
        let samples = field!(samples_per_object).unwrap_or(1);
        need(
            "samples-per-object",
            Some(samples as f64),
            special.samples_per_object.is_some(),
        );
        let readers = field!(readers).unwrap_or(READERS);
        need(
            "readers",
            Some(f64::from(readers)),
            special.readers.is_some(),
        );
        let epochs = field!(epochs).unwrap_or(EPOCHS);
        need("epochs", Some(f64::from(epochs)), special.epochs.is_some());
        let format = field!(format);
        need("format", format.map(|_| 1.0), special.format.is_some());
        let read = field!(read).unwrap_or(ReadMode::Whole);
        let widths: Option<Vec<u64>> =
            field!(columns).map(|columns| columns.iter().map(|width| width.0).collect());
        let columns = widths.filter(|_| read == ReadMode::Columns).map(|widths| {
            let row = field!(row).map_or(record.round() as u64, |row| row.0);
            (widths, row, field!(row_group).unwrap_or(ROW_GROUP))
        });
        errors.finish(Training {
            model: model.to_owned(),
            accelerator: accelerator.to_owned(),
            naming: match format {
                None | Some(Format::Npz) => KeyNaming::DlioNpz,
                Some(Format::Tfrecord) => KeyNaming::DlioTfrecord,
                Some(Format::Jpeg) => KeyNaming::DlioJpeg,
                Some(Format::Parquet) => KeyNaming::DlioParquet,
            },
            samples,
            record,
            stdev: field!(stdev).unwrap_or(0.0),
            framing: field!(framing).unwrap_or(0),
            batch: batch.unwrap_or(1),
            computation_ns: computation.map_or(1, |time| time.0),
            readers,
            prefetch: field!(prefetch).unwrap_or(PREFETCH),
            epochs,
            mark: field!(au).map_or(MARK, |mark| mark.0),
            read,
            range_size: field!(range_size).map(|size| size.0),
            columns,
        })
    }
}
