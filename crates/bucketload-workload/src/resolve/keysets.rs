//! Key sets: populations of objects, and what phases may do with them.

use super::builder::PlanBuilder;
use super::defaults;
use super::phases::RunPhase;
use super::sizes;
use crate::spec::{KeysetSpec, Named, WorkloadSpec};
use bucketload_core::op::OpClass;
use bucketload_core::plan::{KeyLaw, KeysetPlan, MixEntry, SizeAssign, SizeLaw, WorkPlan};

/// A key set with the data that preparation needs.
pub(super) struct Keyset {
    pub(super) plan: KeysetPlan,
    /// Whether its object count follows the scale.
    pub(super) scaled: bool,
    /// Whether its objects are written before the run.
    pub(super) prepare: bool,
    /// Part size of prepared multipart uploads.
    pub(super) part_size: Option<u64>,
    /// Number of versions that preparation writes of each object.
    pub(super) versions: u32,
    /// Whether the workload states the object sizes.
    pub(super) sized: bool,
    /// Whether the workload requests preparation explicitly, needed or not.
    pub(super) insisted: bool,
    /// Whether any operation works on its objects.
    pub(super) used: bool,
}

impl Keyset {
    /// Whether its initial objects will ever exist.
    pub(super) fn occupies(&self) -> bool {
        self.used || self.insisted
    }

    /// Whether objects are written before the run.
    pub(super) fn is_prepared(&self) -> bool {
        self.prepare && self.plan.count > 0 && self.occupies()
    }
}

impl PlanBuilder<'_> {
    pub(super) fn keysets(&mut self, spec: &WorkloadSpec) -> Vec<Keyset> {
        let empty = Named::default();
        let specs = spec.keysets.as_ref().unwrap_or(&empty);
        if specs.0.len() > usize::from(u16::MAX) {
            self.error("keysets", "there are more than 65535 key sets", "");
        }
        let mut keysets: Vec<Keyset> = specs
            .0
            .iter()
            .map(|(name, keyset)| self.keyset(name, keyset))
            .collect();
        self.check_prefixes(&keysets);
        if keysets.is_empty() {
            // Bucket operations use no objects, but every entry belongs to a key set.
            keysets.push(self.keyset("objects", &KeysetSpec::default()));
        }
        keysets
    }

    fn keyset(&mut self, name: &str, spec: &KeysetSpec) -> Keyset {
        let path = |field: &str| format!("keysets.{name}.{field}");
        let count = spec.count.unwrap_or(0);
        let existing = spec.existing.unwrap_or(false);
        let prepare = spec.prepare.unwrap_or(!existing);
        if existing && prepare {
            self.error(
                &path("prepare"),
                "objects of an earlier run are not prepared",
                "remove `prepare` or `existing`",
            );
        }
        if count > 0 && spec.size.is_none() {
            let remedy = "add it, such as size = \"64KiB\"";
            self.error(&path("size"), "the size of the objects is missing", remedy);
        }
        // The upper limit leaves room for written objects in ranks and indices.
        if count > 1 << 48 {
            self.error(
                &path("count"),
                format!("{count} objects are too many"),
                "at most 2^48",
            );
        }
        let shards = spec.shards.unwrap_or(1);
        if !(1..=10_000).contains(&shards) {
            let message = format!("{shards} shards lie outside 1 to 10000");
            self.error(&path("shards"), message, "write 1 to use a single prefix");
        }
        let size = spec.size.as_ref();
        let size = size.map_or(SizeLaw::constant(0), |size| size.0.clone());
        let size = self.scaled_size(&path("size"), &size);
        let part_size = spec.part_size.map(|part| part.0);
        match part_size {
            Some(part) => self.check_parts(&path("part-size"), part, size.max),
            None if prepare && count > 0 && size.max > defaults::MAX_SINGLE_PUT => self.error(
                &path("size"),
                "objects above 5 GiB cannot be prepared by one PUT",
                "add `part-size` to prepare them as multipart uploads, or clamp the law with max=5GiB",
            ),
            None => {}
        }
        let versions = spec.versions.unwrap_or(1);
        if !(1..=defaults::MAX_VERSIONS).contains(&versions) {
            self.error(
                &path("versions"),
                format!(
                    "{versions} versions of an object lie outside 1 to {}",
                    defaults::MAX_VERSIONS
                ),
                "write 1 for objects that are written once",
            );
        } else if versions > 1 && (!prepare || spec.buckets.is_some()) {
            self.error(
                &path("versions"),
                "only preparation writes several versions, and only in the bucket of the target",
                "remove `versions`, or `existing`, `buckets` and prepare = false",
            );
        }
        let prefix = spec.prefix.clone().unwrap_or_else(|| format!("{name}/"));
        if prefix.len() > 512 || prefix.contains(char::is_control) {
            let remedy = "use at most 512 bytes without control characters";
            self.error(&path("prefix"), "this prefix cannot be used", remedy);
        }
        Keyset {
            plan: KeysetPlan {
                name: name.to_owned(),
                prefix,
                shards,
                count,
                size,
                assign: spec.assign.unwrap_or(SizeAssign::Random),
                // Which version a plain read returns is not in the plan.
                overwritten: versions > 1,
                naming: spec.naming.unwrap_or_default(),
                existing,
                buckets: self.buckets(name, spec),
            },
            scaled: spec.scaled.unwrap_or(true),
            prepare,
            part_size,
            versions,
            sized: spec.size.is_some(),
            insisted: spec.prepare == Some(true),
            used: false,
        }
    }

    /// A size law multiplied by the workload's size factor.
    pub(super) fn scaled_size(&mut self, path: &str, law: &SizeLaw) -> SizeLaw {
        match sizes::scaled(law, self.size_scale) {
            Ok(law) => law,
            Err(message) => {
                self.error(path, message, "choose another `size-scale`");
                law.clone()
            }
        }
    }

    /// Checks part sizes against S3's limits, and that the largest object fits into the maximum number of
    /// parts.
    pub(super) fn check_parts(&mut self, path: &str, part: u64, largest: u64) {
        use bucketload_core::units::format_size;
        if !(defaults::MIN_PART_SIZE..=defaults::MAX_PART_SIZE).contains(&part) {
            self.error(
                path,
                format!(
                    "parts of {} lie outside S3's limits, 5 MiB to 5 GiB",
                    format_size(part)
                ),
                "write at least part-size = \"5MiB\"",
            );
        } else if largest.div_ceil(part) > defaults::MAX_PARTS {
            let least = largest.div_ceil(defaults::MAX_PARTS);
            self.error(
                path,
                format!(
                    "an object of {} takes {} parts of {}; S3 allows 10000",
                    format_size(largest),
                    largest.div_ceil(part),
                    format_size(part)
                ),
                format!("use parts of at least {least} bytes"),
            );
        }
    }

    /// Checks that no key set's prefix begins with another's, which would mix their objects.
    fn check_prefixes(&mut self, keysets: &[Keyset]) {
        for (i, a) in keysets.iter().enumerate() {
            for (j, b) in keysets.iter().enumerate() {
                let (a, b) = (&a.plan, &b.plan);
                let clash = a.prefix == b.prefix && i < j;
                let inside = a.prefix != b.prefix && b.prefix.starts_with(&a.prefix);
                if clash || inside {
                    self.error(
                        &format!("keysets.{}.prefix", b.name),
                        format!(
                            "the prefix `{}` lies within the prefix of key set `{}`, `{}`",
                            b.prefix, a.name, a.prefix
                        ),
                        "give each key set a different prefix",
                    );
                }
            }
        }
    }

    /// Checks that objects exist before they are read, and determines which key sets are overwritten.
    pub(super) fn check_populations(&mut self, keysets: &mut [Keyset], runs: &[RunPhase]) {
        let mut used = vec![false; keysets.len()];
        // Key sets that an earlier phase writes to.
        let mut written = vec![false; keysets.len()];
        for phase in runs {
            let mut written_now = written.clone();
            for (entry, _) in phase.entries() {
                let index = usize::from(entry.keyset);
                used[index] |= uses_initial(entry);
                written_now[index] |= entry.class.creates_object() || entry.class == OpClass::Touch;
                if overwrites(entry, &keysets[index]) {
                    keysets[index].plan.overwritten = true;
                }
            }
            let rounds = |w: &WorkPlan| w.model.rounds().is_some();
            if phase.plan.works.iter().any(rounds) {
                written = written_now;
                continue;
            }
            for (entry, path) in phase.entries() {
                let index = usize::from(entry.keyset);
                let keyset = &keysets[index];
                if keyset.plan.existing && !entry.class.only_reads() {
                    self.error(
                        path,
                        format!(
                            "`{}` would change key set `{}`, whose objects belong to an earlier run",
                            entry.class, keyset.plan.name
                        ),
                        "only read them",
                    );
                }
                let state = State {
                    name: &keyset.plan.name,
                    count: keyset.plan.count,
                    // The entries of a chain work on the objects that its first entries wrote.
                    exist: keyset.prepare
                        || keyset.plan.existing
                        || written[index]
                        || entry.keys == KeyLaw::Chained && written_now[index],
                    written: written_now[index],
                    overwritten: keyset.plan.overwritten,
                };
                self.check_use(entry, path, &state);
            }
            for work in &phase.plan.works {
                if let Some(jobs) = work.model.jobs() {
                    used[usize::from(jobs.temp)] = true;
                    used[usize::from(jobs.results)] = true;
                }
            }
            self.note_vanishing_objects(phase, keysets);
            written = written_now;
        }
        self.check_parts_read(keysets, runs);
        for (keyset, used) in keysets.iter_mut().zip(used) {
            keyset.used = used;
            if !used && keyset.is_prepared() {
                let name = &keyset.plan.name;
                self.note(format!(
                    "key set `{name}` is prepared although no operation uses it"
                ));
            }
        }
    }

    /// Warns that deleting objects that others read makes reads fail.
    fn note_vanishing_objects(&mut self, phase: &RunPhase, keysets: &[Keyset]) {
        let deletes = OpClass::removes_objects;
        let deleted: Vec<u16> = phase
            .entries()
            .filter(|(entry, _)| deletes(entry.class))
            .map(|(entry, _)| entry.keyset)
            .collect();
        let victim = phase.entries().find(|(entry, _)| {
            deleted.contains(&entry.keyset) && entry.class.needs_object() && !deletes(entry.class)
        });
        if let Some((entry, _)) = victim {
            let name = &keysets[usize::from(entry.keyset)].plan.name;
            self.note(format!(
                "phase `{}` removes objects of key set `{name}` while `{}` uses them: expect \
                 not-found answers (not-found = \"expected\" does not count them as failures)",
                phase.plan.name, entry.class
            ));
        }
    }

    fn check_use(&mut self, entry: &MixEntry, path: &str, state: &State<'_>) {
        let (class, name) = (entry.class, state.name);
        let keys_path = format!("{path}.keys");
        let law = <&'static str>::from(&entry.keys);
        let needs_objects = class.needs_object();
        match entry.keys {
            KeyLaw::Fresh if needs_objects => self.error(
                &keys_path,
                format!("`fresh` names new objects, but `{class}` needs existing ones"),
                "use a law such as uniform, zipf(0.99) or latest",
            ),
            KeyLaw::Fresh => {}
            KeyLaw::Latest { .. } if class.writes_body() => self.error(
                &keys_path,
                format!("`latest` follows written objects; it cannot choose where `{class}` writes"),
                "use fresh or sequential",
            ),
            _ if state.count == 0 && needs_objects && !state.written => self.error(
                path,
                format!(
                    "`{class}` needs objects, but key set `{name}` is empty and nothing writes to it"
                ),
                format!("add keysets.{name}.count"),
            ),
            _ if state.count == 0 => self.error(
                &keys_path,
                format!(
                    "the law `{law}` chooses among the initial objects, but key set `{name}` has \
                     none"
                ),
                if needs_objects {
                    format!("add keysets.{name}.count")
                } else {
                    format!("add keysets.{name}.count, or use `fresh`")
                },
            ),
            _ if needs_objects && !state.exist => self.error(
                path,
                format!("key set `{name}` is not prepared, and no earlier phase writes it"),
                format!("remove keysets.{name}.prepare, or write its objects in an earlier phase"),
            ),
            _ if class.writes_body() && entry.size.is_some() && !state.overwritten => self.error(
                path,
                format!(
                    "`{class}` writes the initial objects of key set `{name}`, whose sizes the \
                     key set states, but the entry has its own size"
                ),
                format!("move `size` to keysets.{name}"),
            ),
            _ => {}
        }
    }

    /// Checks that operations that name a part know the parts of every object.
    fn check_parts_read(&mut self, keysets: &[Keyset], runs: &[RunPhase]) {
        for (entry, path) in runs.iter().flat_map(RunPhase::entries) {
            let keyset = &keysets[usize::from(entry.keyset)];
            let (class, name) = (entry.class, &keyset.plan.name);
            if !class.by_part() {
                continue;
            }
            if keyset.part_size.is_none() || !keyset.prepare && !keyset.plan.existing {
                self.error(
                    path,
                    format!("`{class}` needs objects that preparation uploads in parts, and key set `{name}` has none"),
                    format!("add keysets.{name}.part-size, such as part-size = \"8MiB\""),
                );
            } else if keyset.plan.overwritten {
                self.error(
                    path,
                    format!("the run overwrites objects of key set `{name}`, so `{class}` does not know their parts"),
                    "write to fresh keys, or to another key set",
                );
            } else if matches!(entry.keys, KeyLaw::Latest { .. }) {
                self.error(
                    &format!("{path}.keys"),
                    format!("`latest` also chooses new objects, but `{class}` knows the parts of initial objects only"),
                    "use uniform, zipf or sequential",
                );
            }
        }
    }

    /// Checks that verification knows the version of every object it reads.
    pub(super) fn check_verification(&mut self, keysets: &[Keyset], runs: &[RunPhase]) {
        for (entry, path) in runs.iter().flat_map(RunPhase::entries) {
            let keyset = &keysets[usize::from(entry.keyset)].plan;
            let unknown = entry.class.reads_body() && !entry.class.by_version();
            if unknown && keyset.overwritten {
                self.error(
                    path,
                    format!(
                        "reads of key set `{}` cannot be verified: the run overwrites its \
                         objects, so the version that a read returns is unknown",
                        keyset.name
                    ),
                    "write to fresh keys, or turn verification off",
                );
            }
        }
    }
}

/// A key set's state when an entry uses it.
struct State<'a> {
    name: &'a str,
    count: u64,
    /// Whether its initial objects exist.
    exist: bool,
    /// Whether this or an earlier phase writes to it.
    written: bool,
    /// Whether its initial objects are overwritten.
    overwritten: bool,
}

/// Whether an entry works on initial objects; writing fresh ones does not.
fn uses_initial(entry: &MixEntry) -> bool {
    let writes = entry.class.writes_body() || entry.class == OpClass::Touch;
    !(entry.class.on_bucket() || writes && entry.keys == KeyLaw::Fresh)
}

/// Whether an entry writes to existing objects. Copies go to fresh keys. Two appends to the same key leave
/// content that no plan knows.
fn overwrites(entry: &MixEntry, keyset: &Keyset) -> bool {
    entry.class.writes_body()
        && match entry.keys {
            KeyLaw::Fresh => false,
            _ if entry.class == OpClass::Append => keyset.plan.count > 0,
            // The first pass over an unprepared key set creates its objects.
            KeyLaw::Sequential | KeyLaw::Chained => keyset.prepare && keyset.plan.count > 0,
            _ => keyset.plan.count > 0,
        }
}
