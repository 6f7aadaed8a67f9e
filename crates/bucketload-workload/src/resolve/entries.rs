//! Mix entries: the fields that each operation class accepts and needs, and their defaults.

use super::builder::PlanBuilder;
use super::defaults;
use super::keysets::Keyset;
use crate::spec::{MixSpec, Weight, WorkSpec, check_weights, suggest};
use bucketload_core::op::OpClass;
use bucketload_core::plan::{KeyLaw, MixEntry, RangePlan, SizeLaw};

impl PlanBuilder<'_> {
    /// The mix of a work and the path of each entry.
    pub(super) fn mix(
        &mut self,
        path: &str,
        work: &WorkSpec,
        keysets: &[Keyset],
    ) -> (Vec<MixEntry>, Vec<String>) {
        let path = format!("{path}.mix");
        let Some(mix) = &work.mix else {
            let remedy = "add it, such as mix = { get = 70, put = 30 }";
            self.error(
                &path,
                "the work does not say which operations to perform",
                remedy,
            );
            return (Vec::new(), Vec::new());
        };
        let one = Weight {
            value: 1.0,
            percent: false,
        };
        let entries = &mix.0.0;
        let weights: Vec<Weight> = entries
            .iter()
            .map(|(_, entry)| entry.weight.unwrap_or(one))
            .collect();
        if let Err(message) = check_weights(&weights) {
            let remedy = "write weights such as { get = 70, put = 30 }, or percentages that add \
                          up to 100";
            self.error(&path, format!("the mix is invalid: {message}"), remedy);
        }
        let (mut plans, mut paths) = (Vec::new(), Vec::new());
        for ((name, entry), weight) in entries.iter().zip(weights) {
            let path = format!("{path}.{name}");
            let by_name = || OpClass::from_name(name).filter(|class| class.is_for_workloads());
            let Some(class) = entry.op.or_else(by_name) else {
                let classes = OpClass::ALL
                    .into_iter()
                    .filter(|class| class.is_for_workloads());
                let classes: Vec<&str> = classes.map(OpClass::name).collect();
                let remedy = format!(
                    "{}; any other name needs a field `op`",
                    suggest::advice(name, classes)
                );
                self.error(&path, format!("unknown operation `{name}`"), remedy);
                continue;
            };
            // An entry of weight 0 is switched off but may stay in the file.
            if weight.value > 0.0
                && let Some(plan) = self.entry(&path, class, weight.value, entry, work, keysets)
            {
                plans.push(plan);
                paths.push(path);
            }
        }
        (plans, paths)
    }

    fn entry(
        &mut self,
        path: &str,
        class: OpClass,
        weight: f64,
        entry: &MixSpec,
        work: &WorkSpec,
        keysets: &[Keyset],
    ) -> Option<MixEntry> {
        let keyset = self.keyset_of(path, class, entry, work, keysets)?;
        let set = &keysets[usize::from(keyset)];
        let own_buckets = set.plan.buckets.is_some() && class != OpClass::ListBuckets;
        self.deny_foreign_fields(path, class, entry, own_buckets);
        if matches!(class, OpClass::MakeBucket | OpClass::DeleteBucket) && !own_buckets {
            self.error(
                path,
                format!("`{class}` would act on the run's own bucket"),
                "name a key set with its own buckets (keysets.NAME.buckets); the run's bucket is created \
                 before the run and deleted after it if the run created it",
            );
        }
        let size = self.size(path, class, entry, work, set);
        let keys = match (&entry.keys, &work.keys) {
            (Some(keys), _) => keys.0.clone(),
            (None, Some(keys)) if inherits_keys(class) => keys.0.clone(),
            _ => defaults::bucket_keys(class, own_buckets),
        };
        if class.by_version() && matches!(keys, KeyLaw::Latest { .. }) {
            self.error(
                &format!("{path}.keys"),
                format!("`latest` also chooses new objects, but `{class}` knows the versions of initial objects only"),
                "use uniform, zipf or sequential",
            );
        }
        if class.bucket_needs().any() && set.plan.buckets.is_some() {
            self.error(
                path,
                format!(
                    "the buckets that the workload makes keep no versions, which `{class}` needs"
                ),
                "use a key set in the bucket of the target",
            );
        }
        if class == OpClass::Append && set.versions > 1 {
            self.error(
                path,
                "an append makes no version, and stores refuse it in buckets that keep versions",
                "use put, or a key set without `versions`",
            );
        }
        if class.on_bucket() && own_buckets && keys == KeyLaw::Fresh {
            self.error(
                &format!("{path}.keys"),
                format!("`fresh` names new objects, but the buckets of `{class}` are numbered"),
                "use sequential, uniform or chained",
            );
        }
        let largest = size.as_ref().map_or(set.plan.size.max, |size| size.max);
        if matches!(class, OpClass::Put | OpClass::PutIfAbsent)
            && largest > defaults::MAX_SINGLE_PUT
        {
            let owner = match &size {
                Some(_) => path.to_owned(),
                None => format!("keysets.{}", set.plan.name),
            };
            self.error(
                &format!("{owner}.size"),
                "objects above 5 GiB cannot be written by one PUT",
                "use multipart-put, or clamp the size law with max=5GiB",
            );
        }
        Some(MixEntry {
            class,
            weight,
            keyset,
            keys,
            size,
            range: self.range(path, class, entry),
            count: match class.by_part() {
                // A key set without parts is refused once all phases are known.
                true => set.part_size.unwrap_or(1),
                false => self.count(path, class, entry, largest),
            },
            // One page of versions is what the operation asks for unless told otherwise.
            pages: entry
                .pages
                .unwrap_or(u32::from(class == OpClass::ListVersions)),
            delimiter: entry.delimiter.clone().unwrap_or_default(),
        })
    }

    /// Rejects fields that do not apply to the class.
    fn deny_foreign_fields(
        &mut self,
        path: &str,
        class: OpClass,
        entry: &MixSpec,
        own_buckets: bool,
    ) {
        let list = class.lists();
        let on_objects = !class.on_bucket() || own_buckets;
        let given = [
            (
                "size",
                entry.size.is_some(),
                class.writes_body(),
                "writing operations",
            ),
            (
                "range",
                entry.range.is_some(),
                class == OpClass::RangeGet,
                "range-get",
            ),
            (
                "range-align",
                entry.range_align.is_some(),
                class == OpClass::RangeGet,
                "range-get",
            ),
            (
                "batch",
                entry.batch.is_some(),
                class == OpClass::DeleteMany,
                "delete-many",
            ),
            ("page-size", entry.page_size.is_some(), list, "lists"),
            ("pages", entry.pages.is_some(), list, "lists"),
            ("delimiter", entry.delimiter.is_some(), list, "lists"),
            (
                "part-size",
                entry.part_size.is_some(),
                class.is_multipart(),
                "multipart operations",
            ),
            (
                "days",
                entry.days.is_some(),
                class.has_days(),
                "restore and put-retention",
            ),
            (
                "keys",
                entry.keys.is_some(),
                on_objects,
                "operations on objects",
            ),
            (
                "keyset",
                entry.keyset.is_some(),
                on_objects,
                "operations on objects",
            ),
        ];
        for (field, is_given, fits, owner) in given {
            if is_given && !fits {
                self.error(
                    &format!("{path}.{field}"),
                    format!("`{class}` has no `{field}`: it applies to {owner}"),
                    "remove it",
                );
            }
        }
    }

    /// Index of the key set for an entry: its own, its work's, or the only one.
    fn keyset_of(
        &mut self,
        path: &str,
        class: OpClass,
        entry: &MixSpec,
        work: &WorkSpec,
        keysets: &[Keyset],
    ) -> Option<u16> {
        let names: Vec<&str> = keysets.iter().map(|set| set.plan.name.as_str()).collect();
        if class.on_bucket() {
            // Without a key set that has buckets, it acts on the target's bucket.
            let named = entry.keyset.as_ref().or(work.keyset.as_ref());
            let has_buckets = |set: &Keyset| set.plan.buckets.is_some();
            match named {
                Some(_) => {}
                None if class == OpClass::ListBuckets => return Some(0),
                None if keysets.len() == 1 || !keysets.iter().any(has_buckets) => return Some(0),
                None => {
                    let owners = keysets.iter().filter(|set| has_buckets(set));
                    let owners: Vec<&str> = owners.map(|set| set.plan.name.as_str()).collect();
                    self.error(
                        path,
                        format!("`{class}` needs a key set whose buckets it works on"),
                        format!("add `keyset`, one of {}", owners.join(", ")),
                    );
                    return None;
                }
            }
        }
        let defined = self.root.find("keysets").is_some();
        let work_path = path.split(".mix.").next().unwrap_or(path);
        let (name, field) = match (&entry.keyset, &work.keyset) {
            (Some(name), _) => (name, format!("{path}.keyset")),
            (None, Some(name)) => (name, format!("{work_path}.keyset")),
            (None, None) if names.len() == 1 && defined => return Some(0),
            (None, None) => {
                let (message, remedy) = if defined {
                    let all = names.join(", ");
                    let message = format!("`{class}` needs a key set to work on");
                    (message, format!("add `keyset`, one of {all}"))
                } else {
                    let message = format!("`{class}` works on objects, but there is no key set");
                    let remedy = "add a table [keysets.data] with `count` and `size`";
                    (message, remedy.to_owned())
                };
                self.error(path, message, remedy);
                return None;
            }
        };
        let index = names.iter().position(|candidate| candidate == name);
        if index.is_none() || !defined {
            let names = if defined { names } else { Vec::new() };
            let remedy = suggest::advice(name, names);
            self.error(&field, format!("there is no key set `{name}`"), remedy);
            return None;
        }
        index.and_then(|index| u16::try_from(index).ok())
    }

    /// The entry's own sizes, if they replace those of the key set.
    fn size(
        &mut self,
        path: &str,
        class: OpClass,
        entry: &MixSpec,
        work: &WorkSpec,
        set: &Keyset,
    ) -> Option<SizeLaw> {
        if !class.writes_body() {
            return None;
        }
        let size = entry.size.as_ref().or(work.size.as_ref());
        // If it has initial objects, the key set itself is incomplete and reported there.
        if size.is_none() && !set.sized && set.plan.count == 0 {
            let name = &set.plan.name;
            self.error(
                path,
                format!("the size of the objects that `{class}` writes is missing"),
                format!("add `size`, or keysets.{name}.size"),
            );
        }
        size.map(|size| self.scaled_size(&format!("{path}.size"), &size.0))
    }

    fn range(&mut self, path: &str, class: OpClass, entry: &MixSpec) -> Option<RangePlan> {
        if class != OpClass::RangeGet {
            return None;
        }
        let align = entry.range_align.map_or(1, |align| align.0);
        if align == 0 {
            let remedy = "write 1 for any offset, or a size such as \"4KiB\"";
            self.error(
                &format!("{path}.range-align"),
                "no offset is a multiple of 0",
                remedy,
            );
        }
        let Some(range) = &entry.range else {
            self.error(
                path,
                "the length of the ranges that `range-get` reads is missing",
                "add `range`, such as range = \"64KiB\"",
            );
            return None;
        };
        if range.0.min == 0 {
            let remedy = "clamp it with min=1";
            self.error(
                &format!("{path}.range"),
                "a range must have at least 1 byte",
                remedy,
            );
        }
        Some(RangePlan {
            len: range.0.clone(),
            align,
        })
    }

    /// The plan's `count`: keys per request or page, bytes per part, or days of a copy or retention.
    fn count(&mut self, path: &str, class: OpClass, entry: &MixSpec, largest: u64) -> u64 {
        if class == OpClass::DeleteMany {
            let batch = entry.batch.unwrap_or(0);
            match entry.batch {
                None => self.error(
                    path,
                    "the number of keys per `delete-many` request is missing",
                    "add `batch`, such as batch = 100",
                ),
                Some(1..=defaults::MAX_BATCH) => {}
                Some(_) => self.error(
                    &format!("{path}.batch"),
                    format!("{batch} keys per request lie outside 1 to 1000"),
                    "S3 deletes at most 1000 objects per request",
                ),
            }
            return batch;
        }
        if class.lists() {
            let size = entry.page_size.unwrap_or(defaults::PAGE_SIZE);
            if !(1..=defaults::PAGE_SIZE).contains(&size) {
                self.error(
                    &format!("{path}.page-size"),
                    format!("{size} keys per page lie outside 1 to 1000"),
                    "S3 lists at most 1000 keys per page",
                );
            }
            return size;
        }
        if class.is_multipart() {
            let part = entry.part_size.map_or(defaults::PART_SIZE, |part| part.0);
            self.check_parts(&format!("{path}.part-size"), part, largest);
            return part;
        }
        if class.has_days() {
            let days = entry.days.unwrap_or(1);
            let (most, remedy) = match class {
                OpClass::Restore => (
                    defaults::MAX_RESTORE_DAYS,
                    "S3 accepts a 32-bit number of days, at least 1",
                ),
                _ => (
                    defaults::MAX_RETENTION_DAYS,
                    "S3 retains objects for at most 100 years",
                ),
            };
            if !(1..=most).contains(&days) {
                let message = format!("{days} days lie outside 1 to {most}");
                self.error(&format!("{path}.days"), message, remedy);
            }
            return days;
        }
        0
    }
}

/// Whether the work's key law applies, which it does to operations on existing objects.
fn inherits_keys(class: OpClass) -> bool {
    defaults::keys(class) == KeyLaw::Uniform
}
