//! The key-value cache of a language model: the fields of the table `kvcache`, their defaults, and the model in words.

use bucketload_core::generate::LawError;
use bucketload_core::generate::users::{Expected, UserGen};
use bucketload_core::op::OpClass;
use bucketload_core::plan::{
    KeyLaw, KvClass, KvLookup, KvUsers, KvcachePlan, MixEntry, ModelPlan, Plan, SizeLaw,
};
use bucketload_core::units::{format_duration, format_size};

use crate::resolve::builder::PlanBuilder;
use crate::resolve::dryrun::Rates;
use crate::resolve::dryrun::text::bytes;
use crate::resolve::keysets::Keyset;
use crate::resolve::models::DescribedModel;
use crate::resolve::phases::RunPhase;
use crate::spec::{KvcacheSpec, WorkSpec, WorkloadSpec};

/// MLPerf Storage's first option (docs/spec/ai-kvcache.md section 5), and LMCache's width.
const MODEL: &str = "llama3.1-8b";
const BYTES_PER_TOKEN: u64 = 131_072;
const ALLOCATIONS: u32 = 16;
const WIDTH: u32 = 8;
/// Most bytes of an object that S3 takes in one request.
const MOST_BYTES: u64 = 5 << 30;
/// Most connections of all users together.
const MOST_CONNECTIONS: u64 = 100_000;
/// Objects on which calibration works.
const CALIBRATED: u64 = 1024;

impl PlanBuilder<'_> {
    /// Model and mix (with the path of each entry) of a work in which users ask.
    pub(in crate::resolve) fn kvcache(
        &mut self,
        path: &str,
        work: &WorkSpec,
        spec: &KvcacheSpec,
    ) -> (ModelPlan, Vec<MixEntry>, Vec<String>) {
        let foreign = [
            ("model", work.model.is_some()),
            ("jobs", work.jobs.is_some()),
            ("rounds", work.rounds.is_some()),
            ("train", work.train.is_some()),
            ("workers", work.workers.is_some()),
            ("think", work.think.is_some()),
            ("arrival", work.arrival.is_some()),
            ("rate", work.rate.is_some()),
            ("max-in-flight", work.max_in_flight.is_some()),
            ("mix", work.mix.is_some()),
            ("keyset", work.keyset.is_some()),
            ("keys", work.keys.is_some()),
            ("size", work.size.is_some()),
        ];
        for (field, _) in foreign.into_iter().filter(|(_, given)| *given) {
            self.error(
                &format!("{path}.{field}"),
                format!("`kvcache` defines who reads and writes what, so `{field}` does not apply"),
                "remove it, or `kvcache`",
            );
        }
        let field = |name: &str| format!("{path}.kvcache.{name}");
        if spec.users.is_none() {
            self.error(
                &field("users"),
                "`users` is missing",
                "add the users of each client, such as users = 200",
            );
        }
        let users = KvUsers {
            allocations: spec.allocations.unwrap_or(ALLOCATIONS),
            tier_bytes: spec.memory.map_or(0, |memory| memory.0),
            generation_ns_per_token: spec.generation.map_or(0, |time| time.0),
            ..KvUsers::mlperf(spec.clients.unwrap_or(1), spec.users.unwrap_or(1))
        };
        let model = spec.model.clone().unwrap_or_else(|| MODEL.to_owned());
        let plain = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
        if model.is_empty() || model.len() > 64 || !model.chars().all(plain) {
            let message = format!("{model:?} becomes part of names");
            let remedy = "use at most 64 letters, digits, dots and dashes";
            self.error(&field("model"), message, remedy);
        }
        let per_token = spec.bytes_per_token.map_or(BYTES_PER_TOKEN, |size| size.0);
        let layers = spec.layers.unwrap_or(1);
        let largest = users.most_tokens().saturating_mul(per_token);
        let least_ranks = largest
            .div_ceil(u64::from(layers.max(1)))
            .div_ceil(MOST_BYTES);
        let ranks = spec
            .ranks
            .unwrap_or_else(|| u32::try_from(least_ranks.max(1)).unwrap_or(u32::MAX));
        let parts = u64::from(ranks) * u64::from(layers);
        let width = spec.gets.unwrap_or(WIDTH).max(spec.puts.unwrap_or(WIDTH));
        let each = u64::from(users.users) * parts.min(u64::from(width));
        let bounds = [
            ("clients", u64::from(users.clients), 10_000),
            ("users", u64::from(users.users), 100_000),
            ("bytes-per-token", per_token, 1 << 30),
            ("ranks", u64::from(ranks), 1024),
            ("layers", u64::from(layers), 1024),
            ("gets", u64::from(spec.gets.unwrap_or(WIDTH)), 4096),
            ("puts", u64::from(spec.puts.unwrap_or(WIDTH)), 4096),
        ];
        for (name, value, most) in bounds {
            if value == 0 || value > most {
                let message = format!("{value} lies outside 1 to {most}");
                self.error(&field(name), message, "");
            }
        }
        if u64::from(ranks) < least_ranks && ranks > 0 {
            let message = format!(
                "an entry has up to {}, so an object would have more than the 5 GiB of one PUT",
                bytes(largest as f64)
            );
            self.error(
                &field("ranks"),
                message,
                format!("use at least {least_ranks}"),
            );
        }
        let most = u64::from(users.clients).saturating_mul(each);
        if most > MOST_CONNECTIONS {
            let message =
                format!("all users together need {most} connections, more than {MOST_CONNECTIONS}");
            self.error(
                &field("users"),
                message,
                "use fewer users, clients, ranks or layers",
            );
        }
        let plan = KvcachePlan {
            trace: String::new(),
            speed: 0.0,
            model,
            trace_block_tokens: 1,
            block_tokens: 1,
            block_bytes: per_token,
            ranks,
            layers,
            partial_last: true,
            lookup: KvLookup::Index,
            gets: spec.gets.unwrap_or(WIDTH),
            puts: spec.puts.unwrap_or(WIDTH),
            prefill_ns_per_token: 0,
            budget_bytes: 0,
            if_absent: false,
            classes: KvClass::mlperf(),
            max_in_flight: u32::try_from(most.min(MOST_CONNECTIONS))
                .unwrap_or(u32::MAX)
                .max(1),
            users: Some(users),
        };
        // Only calibration draws from the mix.
        let expected = plan.expected().unwrap_or_default();
        let entry = |class, keys, weight: f64| MixEntry {
            weight: weight.max(1e-3),
            ..MixEntry::new(class, 0, keys)
        };
        let mix = vec![
            entry(OpClass::Get, KeyLaw::Uniform, expected.reads),
            entry(plan.put_class(), KeyLaw::Fresh, 1.0),
        ];
        let paths = vec![format!("{path}.kvcache"); mix.len()];
        (plan.into(), mix, paths)
    }

    /// Gives calibration objects like those of the caches, and refuses what the embedded server could not hold.
    pub(in crate::resolve) fn fit_caches(
        &mut self,
        spec: &WorkloadSpec,
        keysets: &mut [Keyset],
        runs: &[RunPhase],
        memory_budget: Option<u64>,
    ) {
        let works = runs.iter().flat_map(|run| &run.plan.works);
        let caches = works.clone().filter(|work| work.model.kvcache().is_some());
        if caches.count() == 0 {
            return;
        }
        if spec.keysets.is_some() || works.count() > 1 {
            self.error(
                "phases",
                "`kvcache` names its objects itself and shares a run with nothing else",
                "remove `keysets` and all other works",
            );
            return;
        }
        let Some((run, cache)) = runs.iter().find_map(|run| {
            let work = run.plan.works.first()?;
            Some((run, work.model.kvcache()?))
        }) else {
            return;
        };
        let (Some(expected), Some(users)) = (cache.expected(), &cache.users) else {
            return;
        };
        let entry = expected.written_tokens * cache.block_bytes as f64;
        let set = &mut keysets[0].plan;
        set.name = "entries".to_owned();
        set.prefix = "kv/".to_owned();
        set.count = CALIBRATED;
        set.size = SizeLaw::constant((entry / cache.parts() as f64).ceil() as u64);
        let seconds = run.plan.limits.duration_ns as f64 / 1e9;
        let written = users.all() as f64 * expected.per_s * seconds * entry;
        if let Some(budget) = memory_budget
            && written > budget as f64
        {
            self.error(
                run.work_path(0),
                format!(
                    "the users could write {}, but the embedded server over memory has room for {}",
                    bytes(written),
                    format_size(budget)
                ),
                "use fewer bytes-per-token or users, a shorter `duration`, or another --target",
            );
        }
    }
}

/// What plans of users expect.
trait Outlook {
    /// Means per request; `None` for a trace, or for users that the plan refuses.
    fn expected(&self) -> Option<Expected>;

    /// Who asks which model.
    fn asking(&self, users: &KvUsers) -> String;
}

impl Outlook for KvcachePlan {
    fn expected(&self) -> Option<Expected> {
        let users = self.users.as_ref().filter(|users| users.all() > 0)?;
        // Means over many users hardly depend on the seed.
        Some(UserGen::new(users, 0, 0, 0).expected())
    }

    fn asking(&self, users: &KvUsers) -> String {
        let clients = match users.clients {
            1 => "users".to_owned(),
            n => format!("users of each of {n} clients"),
        };
        format!(
            "key-value cache of {}, {} {clients}",
            self.model, users.users
        )
    }
}

impl DescribedModel for KvcachePlan {
    fn in_outlook(&self) -> String {
        if let (Some(users), Some(expected)) = (&self.users, self.expected()) {
            let size = |tokens: f64| bytes(tokens * self.block_bytes as f64);
            let per_s = users.all() as f64 * expected.per_s;
            let parts = self.parts() as f64;
            return format!(
                "{}; a request writes {} in {} object{} and reads {} in {:.1}, on average; if the store took no time, {per_s:.1} \
                 requests/s, {}/s in {:.1} objects/s written, {}/s in {:.1} objects/s read",
                self.asking(users),
                size(expected.written_tokens),
                self.parts(),
                if self.parts() == 1 { "" } else { "s" },
                size(expected.read_tokens),
                expected.reads * parts,
                size(per_s * expected.written_tokens),
                per_s * parts,
                size(per_s * expected.read_tokens),
                per_s * parts * expected.reads,
            );
        }
        let pace = match self.speed {
            0.0 => "one request after another".to_owned(),
            1.0 => "at its own times".to_owned(),
            speed => format!("{speed} times as fast as recorded"),
        };
        format!("key-value cache of {}, trace {pace}", self.model)
    }

    fn in_results(&self) -> String {
        if let Some(users) = &self.users {
            let memory = match users.tier_bytes {
                0 => "no memory".to_owned(),
                bytes => format!("memory of {}", format_size(bytes)),
            };
            let most = match users.allocations {
                0 => "all may write".to_owned(),
                n => format!("at most {n} write"),
            };
            let generation = match users.generation_ns_per_token {
                0 => String::new(),
                ns => format!(", {} to generate a token", format_duration(ns)),
            };
            return format!(
                "{}; {} per token in {} object{}, per client {memory}, {most} at a time{generation}",
                self.asking(users),
                bytes(self.block_bytes as f64),
                self.parts(),
                if self.parts() == 1 { "" } else { "s" },
            );
        }
        let budget = match self.budget_bytes {
            0 => "no budget".to_owned(),
            bytes => format!("budget {}", format_size(bytes)),
        };
        format!(
            "{} ({}): blocks of {} tokens and {} in {} objects, lookup by {}, {budget}, at most {} in flight",
            self.in_outlook(),
            self.trace,
            self.block_tokens,
            format_size(self.block_bytes),
            self.parts(),
            self.lookup,
            self.max_in_flight
        )
    }

    fn rates(&self, plan: &Plan, phase: usize, work: usize) -> Result<Rates, LawError> {
        let Some(expected) = self.expected() else {
            return crate::resolve::dryrun::mix_rates(plan, phase, work);
        };
        let parts = self.parts() as f64;
        let ops = (expected.reads + 1.0) * parts;
        let per_op = |tokens: f64| tokens * self.block_bytes as f64 / ops;
        Ok(Rates {
            read: per_op(expected.read_tokens),
            written: per_op(expected.written_tokens),
            mix: vec![
                (OpClass::Get, expected.reads * parts / ops),
                (self.put_class(), parts / ops),
            ],
        })
    }
}
