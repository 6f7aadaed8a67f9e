//! Checkpoints of language models: which rank holds which objects, how large each is, and what it is called
//! (docs/spec/ai-checkpoints.md section "Checkpoints").
//!
//! ```text
//!  rank r of T·P·D ─ tensor r mod T, pipeline stage (r / T) mod P, data r / (T·P)
//!    weights    ZeRO 3: every rank, one object; ZeRO 1: data rank 0, one object per layer of its stage
//!    optimizer  every rank, one object
//! ```
//!
//! Everything is a function of rank and index, so a plan of a thousand ranks takes no more memory than one of eight.
//! Every division rounds down, in the order given, because the benchmark's sizes come from integer divisions.

use serde::{Deserialize, Serialize};

use crate::generate::LawError;
use crate::generate::checkpoint::{CheckpointGen, MARKER_BYTES};
use crate::generate::fingerprint::{HASHED_JOBS, hash_op};
use crate::plan::ranks::Fraction;
use crate::plan::{Model, Plan, is_default};

/// Most ranks of a job.
pub const MOST_RANKS: u64 = 1 << 20;
/// Most layers of a model: the index of an object within its rank has 16 bits.
const MOST_LAYERS: u64 = 60_000;

/// The shape of a language model and how its training job divides it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LanguageModel {
    /// Name.
    pub name: String,
    /// Transformer layers.
    pub layers: u64,
    /// Size of the hidden state.
    pub hidden: u64,
    /// Size of the feed-forward layer.
    pub ffn: u64,
    /// Attention heads.
    pub heads: u64,
    /// Heads that keys and values share.
    pub kv_heads: u64,
    /// Tokens in the vocabulary.
    pub vocabulary: u64,
    /// Ranks that share each tensor.
    pub tensor: u64,
    /// Stages into which the layers are divided.
    pub pipeline: u64,
    /// Copies of the model that train on different data.
    pub data: u64,
    /// Stage of ZeRO: 1 shards the optimizer over the copies, 3 also the weights.
    pub zero: u32,
    /// Bytes of a weight.
    pub weight_bytes: u64,
    /// Bytes of an element of the optimizer.
    pub optimizer_bytes: u64,
}

/// What a phase does with a checkpoint.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::Display, strum::IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum CheckpointAction {
    /// Every rank writes its objects.
    Write,
    /// Every rank reads objects.
    Read,
    /// Rank 0 writes the marker `latest`, which names the checkpoint that is complete.
    Commit,
}

/// One checkpoint, written or read by all ranks at the same time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckpointPlan {
    /// The model.
    pub model: LanguageModel,
    /// What is done.
    pub action: CheckpointAction,
    /// Number of the checkpoint, from 1.
    pub number: u32,
    /// Ranks that take part: the first ones of the job.
    pub ranks: u32,
    /// Factor on the number of elements of every tensor, at most 1.
    pub scale: Fraction,
    /// Extension of the objects' names, without the dot.
    pub extension: String,
    /// Writes: size of a part; smaller objects are written in one request. Reads: size of a range. 0 = whole objects.
    pub piece_bytes: u64,
    /// Reads: ranges that a rank requests at the same time.
    pub lanes: u32,
    /// Rank `r` reads what rank `r + shift` wrote (modulo the ranks that take part).
    #[serde(default, skip_serializing_if = "is_default")]
    pub shift: u32,
    /// Time of training between two checkpoints, for figures only, nanoseconds; 0 = not stated.
    #[serde(default, skip_serializing_if = "is_default")]
    pub interval_ns: u64,
}

/// What an object holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckpointPart {
    /// The weights of a rank.
    Weights,
    /// The weights of one layer.
    Layer(u64),
    /// The optimizer's state.
    Optimizer,
}

/// An object of a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckpointObject {
    /// What it holds.
    pub part: CheckpointPart,
    /// Its size.
    pub bytes: u64,
}

impl LanguageModel {
    /// Ranks of the job.
    #[must_use]
    pub const fn ranks(&self) -> u64 {
        self.tensor * self.pipeline * self.data
    }

    /// Checks that the numbers describe a model whose checkpoint can be computed.
    ///
    /// # Errors
    /// The field and what is wrong with it.
    pub fn check(&self) -> Result<(), LawError> {
        let fields = [
            ("layers", self.layers, MOST_LAYERS),
            ("hidden", self.hidden, 1 << 20),
            ("ffn", self.ffn, 1 << 24),
            ("heads", self.heads, 1 << 20),
            ("kv-heads", self.kv_heads, 1 << 20),
            ("vocabulary", self.vocabulary, 1 << 28),
            ("tensor", self.tensor, MOST_RANKS),
            ("pipeline", self.pipeline, MOST_RANKS),
            ("data", self.data, MOST_RANKS),
            ("weight-bytes", self.weight_bytes, 16),
            ("optimizer-bytes", self.optimizer_bytes, 16),
        ];
        for (field, value, most) in fields {
            if value == 0 || value > most {
                return Err(LawError::new(
                    field,
                    format!("{value} lies outside 1 to {most}"),
                ));
            }
        }
        let error = |field: &str, reason: String| Err(LawError::new(field, reason));
        if self.tensor * self.pipeline > MOST_RANKS || self.ranks() > MOST_RANKS {
            let reason = format!("tensor x pipeline x data is more than {MOST_RANKS} ranks");
            return error("data", reason);
        }
        if self.heads > self.hidden {
            let reason = format!(
                "{} heads are more than the hidden size of {}",
                self.heads, self.hidden
            );
            return error("heads", reason);
        }
        if self.kv_heads > self.heads {
            let reason = format!(
                "{} are more than the {} attention heads",
                self.kv_heads, self.heads
            );
            return error("kv-heads", reason);
        }
        if self.pipeline > self.layers {
            let reason = format!(
                "{} stages cannot share {} layers",
                self.pipeline, self.layers
            );
            return error("pipeline", reason);
        }
        let per_param = u128::from(self.weight_bytes + 3 * self.optimizer_bytes);
        if self.params() * per_param > 1 << 62 {
            return error(
                "layers",
                "the checkpoint would be larger than 4 EiB".to_owned(),
            );
        }
        if !matches!(self.zero, 1 | 3) {
            let reason = format!("stage {} is not known; write 1 or 3", self.zero);
            return error("zero", reason);
        }
        Ok(())
    }

    /// Size of keys or values of a layer.
    const fn kv_size(&self) -> u64 {
        self.hidden / self.heads * self.kv_heads
    }

    /// Parameters of the model.
    #[must_use]
    pub fn params(&self) -> u128 {
        let wide = u128::from;
        let (h, f) = (wide(self.hidden), wide(self.ffn));
        let layer = h + h * (h + 2 * wide(self.kv_size())) + h * h + h + 2 * f * h + f * h;
        2 * wide(self.vocabulary) * h + wide(self.layers) * layer + h
    }

    /// Factor by which the weights are sharded over the copies.
    const fn weight_shards(&self) -> u64 {
        if self.zero == 3 { self.data } else { 1 }
    }

    /// Bytes of layer `layer` on one rank: 0 is the embedding, `layers` + 1 the output layer, `layers` + 2 the final norm.
    fn layer_bytes(&self, layer: u64, scale: Fraction) -> u64 {
        let (h, f, t, s) = (self.hidden, self.ffn, self.tensor, self.weight_shards());
        let elements = |counts: &[u64]| counts.iter().map(|count| scale.take(*count)).sum::<u64>();
        let all = match layer {
            layer if layer == 0 || layer == self.layers + 1 => {
                elements(&[h * self.vocabulary / t / s])
            }
            layer if layer == self.layers + 2 => elements(&[h / s]),
            _ => elements(&[
                h / s,
                h * (h + 2 * self.kv_size()) / t / s,
                h * h / t / s,
                h / s,
                h * 2 * f / t / s,
                h * f / t / s,
            ]),
        };
        all * self.weight_bytes
    }

    /// Bytes of the optimizer's state on one rank.
    fn optimizer_bytes_of_rank(&self, scale: Fraction) -> u64 {
        let shard = self.params() / u128::from(self.ranks());
        // `check` refuses models whose shard does not fit.
        let shard = u64::try_from(shard).unwrap_or(0);
        3 * (scale.take(shard) + scale.take(5 * self.hidden)) * self.optimizer_bytes
    }

    /// Pipeline stage and data rank of rank `rank`.
    const fn place(&self, rank: u64) -> (u64, u64) {
        (
            rank / self.tensor % self.pipeline,
            rank / (self.tensor * self.pipeline),
        )
    }

    /// Number of the rank within its copy of the model.
    #[must_use]
    pub const fn model_rank(&self, rank: u64) -> u64 {
        rank % (self.tensor * self.pipeline)
    }

    /// Number of the copy of the model that rank `rank` belongs to.
    #[must_use]
    pub const fn data_rank(&self, rank: u64) -> u64 {
        self.place(rank).1
    }

    /// The layers of a stage: the number of the first, and how many.
    fn stage(&self, stage: u64) -> (u64, u64) {
        let (base, rem) = (self.layers / self.pipeline, self.layers % self.pipeline);
        let (mut first, mut count) = (
            1 + stage * base + stage.min(rem),
            base + u64::from(stage < rem),
        );
        if stage == 0 {
            (first, count) = (0, count + 1);
        }
        if stage + 1 == self.pipeline {
            count += 2;
        }
        (first, count)
    }

    /// Number of objects with weights that rank `rank` writes.
    fn weight_objects(&self, rank: u64) -> u64 {
        let (stage, data) = self.place(rank);
        match (self.zero, data) {
            (3, _) => 1,
            (_, 0) if self.pipeline == 1 => 1,
            (_, 0) => self.stage(stage).1,
            _ => 0,
        }
    }

    /// Number of objects of rank `rank`.
    #[must_use]
    pub fn objects(&self, rank: u64) -> u64 {
        self.weight_objects(rank) + 1
    }

    /// Object number `index` of rank `rank`, weights first; `None` behind the last.
    #[must_use]
    pub fn object(&self, rank: u64, index: u64, scale: Fraction) -> Option<CheckpointObject> {
        let weights = self.weight_objects(rank);
        if index > weights {
            return None;
        }
        if index == weights {
            return Some(CheckpointObject {
                part: CheckpointPart::Optimizer,
                bytes: self.optimizer_bytes_of_rank(scale),
            });
        }
        let (first, count) = self.stage(self.place(rank).0);
        let by_layer = self.zero != 3 && self.pipeline > 1;
        Some(match by_layer {
            true => CheckpointObject {
                part: CheckpointPart::Layer(first + index),
                bytes: self.layer_bytes(first + index, scale),
            },
            false => CheckpointObject {
                part: CheckpointPart::Weights,
                bytes: (first..first + count)
                    .map(|layer| self.layer_bytes(layer, scale))
                    .sum(),
            },
        })
    }

    /// Appends the name of `part` of rank `rank`, without folder and extension, to `out`.
    pub fn push_name(&self, rank: u64, part: CheckpointPart, out: &mut String) {
        use crate::generate::names::push_decimal;
        let (data, model) = (self.data_rank(rank), self.model_rank(rank));
        let mut sharded = |what: &str| {
            out.push_str("zero_pp_rank_");
            push_decimal(data, 1, out);
            out.push_str("_mp_rank_");
            push_decimal(model, 1, out);
            out.push_str(what);
        };
        match part {
            CheckpointPart::Optimizer => sharded("_optim_states"),
            CheckpointPart::Weights if self.zero == 3 => sharded("_model_states"),
            CheckpointPart::Weights => {
                out.push_str("model_");
                push_decimal(model, 1, out);
                out.push_str("_model_states");
            }
            CheckpointPart::Layer(layer) => {
                out.push_str("layer_");
                push_decimal(layer, 1, out);
                out.push_str("-model_");
                push_decimal(model, 1, out);
                out.push_str("_model_states");
            }
        }
    }
}

impl CheckpointPlan {
    /// The rank whose objects rank `rank` works on.
    #[must_use]
    pub fn owner(&self, rank: u32) -> u32 {
        match self.action {
            CheckpointAction::Read => {
                ((u64::from(rank) + u64::from(self.shift)) % u64::from(self.ranks.max(1))) as u32
            }
            _ => rank,
        }
    }

    /// The objects of rank `rank`, weights first.
    pub fn objects(&self, rank: u32) -> impl Iterator<Item = CheckpointObject> {
        (0..).map_while(move |index| self.model.object(u64::from(rank), index, self.scale))
    }

    /// The bytes that rank `rank` writes: weights and optimizer.
    #[must_use]
    pub fn bytes(&self, rank: u32) -> (u64, u64) {
        self.objects(rank)
            .fold((0, 0), |(weights, optimizer), object| match object.part {
                CheckpointPart::Optimizer => (weights, optimizer + object.bytes),
                _ => (weights + object.bytes, optimizer),
            })
    }

    /// The bytes that rank `rank` transfers in this phase.
    #[must_use]
    pub fn transfers(&self, rank: u32) -> u64 {
        let (weights, optimizer) = self.bytes(self.owner(rank));
        weights + optimizer
    }

    /// Objects and bytes of the ranks that take part.
    #[must_use]
    pub fn total(&self) -> (u64, u64) {
        let ranks = 0..self.ranks;
        let objects = ranks
            .clone()
            .map(|rank| self.model.objects(u64::from(rank)));
        (
            objects.sum(),
            ranks
                .map(|rank| self.bytes(rank).0 + self.bytes(rank).1)
                .sum(),
        )
    }

    /// The largest object of the ranks that take part.
    #[must_use]
    pub fn largest(&self) -> u64 {
        let objects = (0..self.ranks).flat_map(|rank| self.objects(rank));
        objects.map(|object| object.bytes).max().unwrap_or(0)
    }

    /// Requests for data that rank `rank` makes.
    #[must_use]
    pub fn operations(&self, rank: u32) -> u64 {
        let pieces = |object: CheckpointObject| match (self.action, self.piece_bytes) {
            (CheckpointAction::Read, piece) if piece > 0 => object.bytes.div_ceil(piece),
            _ => 1,
        };
        match self.action {
            CheckpointAction::Commit => u64::from(rank == 0),
            _ => self.objects(self.owner(rank)).map(pieces).sum(),
        }
    }

    /// Operations and bytes of the whole phase.
    #[must_use]
    pub fn load(&self) -> (u64, u64) {
        let ranks = 0..self.active();
        let bytes = match self.action {
            CheckpointAction::Commit => MARKER_BYTES,
            _ => self.total().1,
        };
        (ranks.map(|rank| self.operations(rank)).sum(), bytes)
    }

    /// Ranks that have something to do.
    #[must_use]
    pub const fn active(&self) -> u32 {
        match self.action {
            CheckpointAction::Commit => 1,
            _ => self.ranks,
        }
    }
}

impl Model for CheckpointPlan {
    fn max_sessions(&self) -> u32 {
        self.active().saturating_mul(self.lanes.max(1))
    }

    fn ends_by_itself(&self) -> bool {
        true
    }

    fn is_cut_short(&self) -> bool {
        true
    }

    fn has_indexed_names(&self) -> bool {
        false
    }

    fn fingerprint(
        &self,
        plan: &Plan,
        (phase, work): (usize, usize),
        put: &mut dyn FnMut(u64),
    ) -> Result<(), LawError> {
        let ops = CheckpointGen::new(plan, phase, work, "")?;
        put(u64::from(self.ranks));
        for rank in 0..self.active().min(HASHED_JOBS as u32) {
            let all = (0..).map_while(|turn| ops.op(rank, turn));
            all.take(HASHED_JOBS as usize)
                .for_each(|op| hash_op(&op, put));
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
