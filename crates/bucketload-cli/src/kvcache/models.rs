//! Language models and classes of requests: the built-in table, or a file of the user.

use std::path::Path;

use bucketload_core::plan::KvClass;
use bucketload_core::units;
use bucketload_workload::spec::closest;
use serde::Deserialize;

const BUILT_IN: &str = include_str!("models.toml");

/// The models and classes of a file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Models {
    #[serde(default)]
    model: Vec<ModelShape>,
    #[serde(default)]
    class: Vec<ClassRow>,
}

/// The numbers of a language model from which its bytes per token follow.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct ModelShape {
    pub(crate) name: String,
    pub(crate) layers: u32,
    /// Heads of keys and values, and elements of a head.
    #[serde(default)]
    kv_heads: u64,
    #[serde(default)]
    head_dim: u64,
    /// Elements per token and layer of latent attention, in place of the two.
    #[serde(default)]
    latent: u64,
    #[serde(default = "fp16")]
    bytes_per_element: u64,
}

const fn fp16() -> u64 {
    2
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ClassRow {
    name: String,
    share: f64,
    p95: String,
    p99: String,
    p999: String,
    p9999: String,
}

impl ModelShape {
    /// Bytes per token of all layers and heads (docs/spec/ai-kvcache.md section 1).
    pub(crate) fn bytes_per_token(&self) -> u64 {
        let elements = match self.latent {
            0 => self
                .kv_heads
                .saturating_mul(self.head_dim)
                .saturating_mul(2),
            latent => latent,
        };
        elements
            .saturating_mul(u64::from(self.layers))
            .saturating_mul(self.bytes_per_element)
    }

    fn check(&self) -> Result<(), String> {
        let name = &self.name;
        let plain = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
        if name.is_empty() || !name.chars().all(plain) {
            return Err(format!(
                "model {name:?}: the name becomes part of keys; use letters, digits, dots and dashes"
            ));
        }
        let heads = self.kv_heads > 0 && self.head_dim > 0;
        if heads == (self.latent > 0) {
            return Err(format!(
                "model {name}: give kv-heads and head-dim, or latent in their place"
            ));
        }
        match self.bytes_per_token() {
            1..=0x4000_0000 => Ok(()),
            bytes => Err(format!(
                "model {name}: its numbers make {bytes} bytes per token; use 1 to 1 GiB"
            )),
        }
    }
}

impl Models {
    /// The built-in table, or that of `file`. A file without classes has those of the table.
    ///
    /// # Errors
    /// When the file cannot be read, or a row is wrong.
    pub(crate) fn load(file: Option<&Path>) -> Result<Self, String> {
        let built_in = Self::parse(BUILT_IN)?;
        let Some(path) = file else {
            return Ok(built_in);
        };
        let wrong = |text: String| format!("--models {}: {text}", path.display());
        let text = std::fs::read_to_string(path).map_err(|e| wrong(e.to_string()))?;
        let mut own = Self::parse(&text).map_err(wrong)?;
        if own.class.is_empty() {
            own.class = built_in.class;
        }
        let known: Vec<String> = own.model.iter().map(|model| model.name.clone()).collect();
        let others = built_in.model.into_iter();
        own.model
            .extend(others.filter(|model| !known.contains(&model.name)));
        Ok(own)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let models: Self = toml::from_str(text).map_err(|e| e.to_string())?;
        models.model.iter().try_for_each(ModelShape::check)?;
        models.classes()?;
        Ok(models)
    }

    /// The model called `name`.
    ///
    /// # Errors
    /// When there is none.
    pub(crate) fn get(&self, name: &str) -> Result<&ModelShape, String> {
        let names = || self.model.iter().map(|model| model.name.as_str());
        let found = self.model.iter().find(|model| model.name == name);
        found.ok_or_else(|| {
            let advice = closest(name, names()).map(|name| format!("did you mean {name}? "));
            format!(
                "--model {name}: there is no such model; {}known are {}; --models FILE adds others",
                advice.unwrap_or_default(),
                names().collect::<Vec<_>>().join(", ")
            )
        })
    }

    /// The classes of requests.
    ///
    /// # Errors
    /// When a share or a target is wrong.
    pub(crate) fn classes(&self) -> Result<Vec<KvClass>, String> {
        let class = |row: &ClassRow| {
            let wrong = |text: String| format!("class {}: {text}", row.name);
            if !(row.share.is_finite() && row.share > 0.0) {
                return Err(wrong(format!("share {}: use a number above 0", row.share)));
            }
            let mut targets_ns = [0; 4];
            for (target, text) in targets_ns
                .iter_mut()
                .zip([&row.p95, &row.p99, &row.p999, &row.p9999])
            {
                *target = units::parse_duration(text).map_err(|e| wrong(e.to_string()))?;
            }
            if !targets_ns.is_sorted() {
                return Err(wrong(
                    "a higher percentile has a lower target; write them in rising order".to_owned(),
                ));
            }
            Ok(KvClass {
                name: row.name.clone(),
                share: row.share,
                targets_ns,
            })
        };
        self.class.iter().map(class).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Models;

    /// docs/spec/ai-kvcache.md section 1.
    #[test]
    fn bytes_per_token_are_those_of_the_specification() {
        let models = Models::load(None).unwrap();
        for (name, bytes) in [
            ("tiny-1b", 24_576),
            ("llama2-7b", 524_288),
            ("llama3.1-8b", 131_072),
            ("mistral-7b", 131_072),
            ("llama3.1-70b", 327_680),
            ("qwen3-32b", 262_144),
            ("deepseek-v3", 70_272),
            ("gpt-oss-120b", 73_728),
            ("gpt-oss-20b", 49_152),
        ] {
            assert_eq!(models.get(name).unwrap().bytes_per_token(), bytes, "{name}");
        }
        let classes = models.classes().unwrap();
        assert_eq!(classes.len(), 3);
        assert_eq!(classes[2].targets_ns[2], 7_500_000_000);
        let error = models.get("llama3.1-8").unwrap_err();
        assert!(error.contains("did you mean llama3.1-8b?"), "{error}");
    }

    #[test]
    fn a_file_adds_models_and_a_wrong_row_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("models.toml");
        let load = |text: &str| {
            std::fs::write(&path, text).unwrap();
            Models::load(Some(&path))
        };
        let own = "[[model]]\nname = \"mine\"\nlayers = 2\nkv-heads = 1\nhead-dim = 8\nbytes-per-element = 1\n";
        let models = load(own).unwrap();
        assert_eq!(models.get("mine").unwrap().bytes_per_token(), 32);
        assert!(models.get("tiny-1b").is_ok());
        assert_eq!(models.classes().unwrap().len(), 3);
        for (text, word) in [
            ("[[model]]\nname = \"x\"\n", "layers"),
            (
                "[[model]]\nname = \"x/y\"\nlayers = 1\nlatent = 1\n",
                "letters",
            ),
            (
                "[[model]]\nname = \"x\"\nlayers = 1\nkv-heads = 3\n",
                "head-dim",
            ),
            (
                "[[model]]\nname = \"x\"\nlayers = 1\nlatent = 4\nheads = 3\n",
                "heads",
            ),
            (
                "[[class]]\nname = \"c\"\nshare = 1\np95 = \"2s\"\np99 = \"1s\"\np999 = \"3s\"\np9999 = \"3s\"\n",
                "rising",
            ),
            (
                "[[class]]\nname = \"c\"\nshare = 0\np95 = \"2s\"\np99 = \"2s\"\np999 = \"3s\"\np9999 = \"3s\"\n",
                "above 0",
            ),
        ] {
            let error = load(text).unwrap_err();
            assert!(
                error.contains(word) && error.contains("models.toml"),
                "{error}"
            );
        }
    }
}
