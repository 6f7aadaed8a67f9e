//! The table `checkpoint` of a workload file, and files of language models.

use std::borrow::Cow;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::decode::{Cx, Decode, decode_variants, spec_table};
use super::error::{Errors, SpecError};
use super::named::Named;
use super::node::{Node, Value};
use super::quantity::{ByteSize, Nanos};
use super::source::Source;
use bucketload_core::plan::checkpoint::LanguageModel;
use bucketload_core::plan::ranks::Fraction;

/// The models that the program knows.
const MODELS: &str = include_str!("../../../../models/checkpoint/models.toml");
/// Vocabulary of the models of the benchmark.
const VOCABULARY: u64 = 128_256;

spec_table! {
    /// Checkpoints of a language model, written and read by all ranks of its training job. Takes the place of
    /// `keysets` and `phases`.
    pub struct CheckpointSpec {
        /// The model: "llama3-8b", "llama3-70b", "llama3-405b", "llama3-1t", or a table with its numbers.
        pub model: Option<ModelSpec>,
        /// What to measure: "write", "read" (the checkpoints are written before, unmeasured) or "both" (the default:
        /// all writes, then all reads).
        pub phase: Option<CheckpointPhase>,
        /// Read the checkpoints that an earlier run with `keep` has written (run --objects-of DIR); only with
        /// phase = "read". Default: false.
        pub existing: Option<bool>,
        /// Number of checkpoints. Default: 10.
        pub count: Option<u32>,
        /// Pause before each checkpoint. Default: 5s.
        pub pause: Option<Nanos>,
        /// Factor on the number of elements of every tensor, at most 1, such as "1/1000". Names and numbers of objects
        /// stay. Default: 1.
        pub scale: Option<FractionSpec>,
        /// Ranks of the job, a multiple of the model's tensor x pipeline: changes the number of copies of the model.
        pub ranks: Option<u64>,
        /// Only the first ranks take part; they write what they would write in the whole job. Default: all.
        pub subset: Option<u32>,
        /// Rank r reads what rank r + this wrote, so that no host reads its own writes. Default: 0.
        pub rank_shift: Option<u32>,
        /// Size of the parts in which larger objects are written; 0 = every object in one request. Default: 32MiB.
        pub part_size: Option<ByteSize>,
        /// Parts of an object that a rank sends at the same time. Default: 16. Only S3 takes more than 1.
        pub parts_in_flight: Option<u32>,
        /// Size of the ranges in which objects are read; 0 = every object in one request. Default: 128MiB.
        pub range_size: Option<ByteSize>,
        /// Ranges that a rank requests at the same time. Default: 8.
        pub ranges_in_flight: Option<u32>,
        /// Whether rank 0 writes an object `latest` once a checkpoint is complete: "none" (the default), "plain", or
        /// "conditional" (only if nobody else has changed it).
        pub latest: Option<LatestSpec>,
        /// Extension of the objects' names: "pt" (the default) or "pts3".
        pub extension: Option<ExtensionSpec>,
        /// Time of training between two checkpoints, for the figures that need it. Default: 30m.
        pub interval: Option<Nanos>,
    }
}

spec_table! {
    /// The numbers of a language model and of its training job.
    pub struct LanguageModelSpec {
        /// Name. Default: "custom".
        pub name: Option<String>,
        /// Transformer layers.
        pub layers: Option<u64>,
        /// Size of the hidden state.
        pub hidden: Option<u64>,
        /// Size of the feed-forward layer.
        pub ffn: Option<u64>,
        /// Attention heads.
        pub heads: Option<u64>,
        /// Heads that keys and values share. Default: `heads`.
        pub kv_heads: Option<u64>,
        /// Tokens in the vocabulary. Default: 128256.
        pub vocabulary: Option<u64>,
        /// Ranks that share each tensor. Default: 1.
        pub tensor: Option<u64>,
        /// Stages into which the layers are divided. Default: 1.
        pub pipeline: Option<u64>,
        /// Copies of the model that train on different data.
        pub data: Option<u64>,
        /// Stage of ZeRO: 1 (the optimizer is divided among the copies) or 3 (also the weights).
        pub zero: Option<u32>,
        /// Bytes of a weight. Default: 2.
        pub weight_bytes: Option<u64>,
        /// Bytes of an element of the optimizer. Default: 4.
        pub optimizer_bytes: Option<u64>,
    }
}

/// What a workload does with checkpoints.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, JsonSchema, strum::IntoStaticStr, strum::VariantArray,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum CheckpointPhase {
    /// Writes are measured.
    Write,
    /// Reads are measured.
    Read,
    /// All writes, then all reads.
    Both,
}

/// Whether the marker `latest` is written.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, JsonSchema, strum::IntoStaticStr, strum::VariantArray,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum LatestSpec {
    /// It is not.
    None,
    /// It is, whatever it held.
    Plain,
    /// It is, unless somebody else has changed it.
    Conditional,
}

/// Extension of the objects' names.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, JsonSchema, strum::IntoStaticStr, strum::VariantArray,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum ExtensionSpec {
    /// As files of PyTorch.
    Pt,
    /// As the S3 connector for PyTorch names them.
    Pts3,
}

decode_variants!(CheckpointPhase, LatestSpec, ExtensionSpec);

/// A model by its name or its numbers.
#[derive(Clone, Debug, PartialEq)]
pub enum ModelSpec {
    /// The name of a model that the program knows.
    Name(String),
    /// Its numbers.
    Numbers(Box<LanguageModelSpec>),
}

impl Decode for ModelSpec {
    fn decode(node: &Node, cx: &mut Cx<'_>) -> Option<Self> {
        match &node.value {
            Value::Str(name) => Some(Self::Name(name.clone())),
            Value::Table(_) => {
                LanguageModelSpec::decode(node, cx).map(|numbers| Self::Numbers(Box::new(numbers)))
            }
            _ => {
                cx.mismatch(
                    node,
                    "a model",
                    "write a name such as \"llama3-8b\", or a table of its numbers",
                );
                None
            }
        }
    }
}

impl JsonSchema for ModelSpec {
    fn schema_name() -> Cow<'static, str> {
        "LanguageModel".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let numbers = generator.subschema_for::<LanguageModelSpec>();
        json_schema!({
            "description": "A language model by its name, or by its numbers",
            "anyOf": [{ "type": "string" }, numbers]
        })
    }
}

/// An exact fraction above 0 and at most 1, written `"1/1000"` or `0.001`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FractionSpec(pub Fraction);

/// The fraction that `text` states; `None` unless it is above 0 and at most 1.
#[must_use]
pub fn fraction(text: &str) -> Option<Fraction> {
    let text = text.trim();
    let (parts, of) = match text.split_once('/') {
        Some((parts, of)) => (parts.trim().parse().ok()?, of.trim().parse().ok()?),
        None => {
            let (whole, rest) = text.split_once('.').unwrap_or((text, ""));
            let of = 10u64.checked_pow(u32::try_from(rest.len()).ok()?)?;
            (format!("{whole}{rest}").parse().ok()?, of)
        }
    };
    (0 < parts && parts <= of).then_some(Fraction { parts, of })
}

impl Decode for FractionSpec {
    fn decode(node: &Node, cx: &mut Cx<'_>) -> Option<Self> {
        let text = cx.quantity_text(node, "a fraction", "write it such as \"1/1000\" or 0.001")?;
        let found = fraction(&text);
        if found.is_none() {
            cx.error(
                &node.origin,
                format!("{text} is not a fraction above 0 and at most 1"),
                "write it such as \"1/1000\" or 0.001",
            );
        }
        found.map(Self)
    }
}

impl JsonSchema for FractionSpec {
    fn schema_name() -> Cow<'static, str> {
        "Fraction".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A fraction above 0 and at most 1, such as 0.001 or \"1/1000\"",
            "anyOf": [
                { "type": "number", "exclusiveMinimum": 0, "maximum": 1 },
                { "type": "string", "pattern": "^\\s*[0-9.]+\\s*(/\\s*[0-9]+\\s*)?$" }
            ]
        })
    }
}

impl LanguageModelSpec {
    /// The model, with defaults.
    ///
    /// # Errors
    /// The field that is missing or impossible, what is wrong, and the remedy.
    pub(crate) fn model(&self, name: &str) -> Result<LanguageModel, (String, String, String)> {
        let need = |field: &str, value: Option<u64>| {
            value.ok_or_else(|| {
                let message = format!("the model lacks `{field}`");
                (field.to_owned(), message, format!("add `{field}`"))
            })
        };
        let heads = need("heads", self.heads)?;
        let model = LanguageModel {
            name: self.name.clone().unwrap_or_else(|| name.to_owned()),
            layers: need("layers", self.layers)?,
            hidden: need("hidden", self.hidden)?,
            ffn: need("ffn", self.ffn)?,
            heads,
            kv_heads: self.kv_heads.unwrap_or(heads),
            vocabulary: self.vocabulary.unwrap_or(VOCABULARY),
            tensor: self.tensor.unwrap_or(1),
            pipeline: self.pipeline.unwrap_or(1),
            data: need("data", self.data)?,
            zero: need("zero", self.zero.map(u64::from))? as u32,
            weight_bytes: self.weight_bytes.unwrap_or(2),
            optimizer_bytes: self.optimizer_bytes.unwrap_or(4),
        };
        match model.check() {
            Ok(()) => Ok(model),
            Err(e) => Err((
                e.field,
                e.reason,
                "docs/checkpoint.md explains the numbers".to_owned(),
            )),
        }
    }
}

/// The language models that the program knows.
///
/// # Errors
/// Never: a test reads them.
pub fn known_models() -> Result<Vec<LanguageModel>, SpecError> {
    language_models("models.toml", MODELS)
}

/// The language models of a file; error messages refer to it as `name`.
///
/// # Errors
/// All problems of syntax, field names and values found, each with its line and remedy.
pub fn language_models(name: &str, text: &str) -> Result<Vec<LanguageModel>, SpecError> {
    let mut errors = Errors::new(Arc::new(Source {
        name: name.to_owned(),
        text: text.to_owned(),
    }));
    let root = Node::parse(&mut errors);
    if !errors.is_empty() {
        return Err(errors.into_error());
    }
    let specs = Named::<LanguageModelSpec>::decode(&root, &mut Cx::new(&mut errors));
    let mut models = Vec::new();
    for (name, spec) in specs.unwrap_or_default().0 {
        match spec.model(&name) {
            Ok(model) => models.push(model),
            Err((field, message, remedy)) => {
                let path = format!("{name}.{field}");
                errors.push(root.origin_of(&path), path, message, remedy);
            }
        }
    }
    errors.finish(models)
}

#[cfg(test)]
mod tests {
    use super::{Fraction, fraction, known_models, language_models};

    #[test]
    fn fractions_are_exact() {
        let of = |parts, of| Some(Fraction { parts, of });
        assert_eq!(fraction("1/1000"), of(1, 1000));
        assert_eq!(fraction("0.001"), of(1, 1000));
        assert_eq!(fraction(" 1 "), of(1, 1));
        for wrong in ["0", "0/5", "2", "3/2", "-1", "1/0", "x", "", "0.0", "1e-3"] {
            assert_eq!(fraction(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_known_models_are_those_of_the_benchmark() {
        let models = known_models().unwrap();
        let params: Vec<(&str, u128, u64)> = models
            .iter()
            .map(|model| (model.name.as_str(), model.params(), model.ranks()))
            .collect();
        assert_eq!(
            params,
            [
                ("llama3-8b", 8_030_261_248, 8),
                ("llama3-70b", 69_882_617_856, 64),
                ("llama3-405b", 405_853_388_800, 512),
                ("llama3-1t", 1_183_035_102_480, 1024),
            ]
        );
    }

    #[test]
    fn a_wrong_file_of_models_names_line_field_and_remedy() {
        let text = "[mine]\nlayers = 2\nhidden = 64\nffn = 128\nheads = 65\ndata = 1\nzero = 1\n";
        let error = language_models("mine.toml", text).unwrap_err().to_string();
        for word in ["mine.toml:5", "mine.heads", "65 heads are more"] {
            assert!(error.contains(word), "{word}: {error}");
        }
        let error = language_models("mine.toml", "[mine]\nlayer = 2\n")
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("mine.toml:2") && error.contains("layers"),
            "{error}"
        );
    }
}
