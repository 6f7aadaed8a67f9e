//! Buckets that a workload creates and deletes: how many there are, how they are named, and which names
//! services accept.
//!
//! Object `i` of the key set lives in bucket number `i mod count`. Names carry the run's identifier, so they
//! cannot clash with somebody else's buckets and the name alone identifies a bucket of the run:
//!
//! ```text
//! {name}-{run id}-{number}      ossperf-1769903999-5c1f09aa-0
//! {name}                        with `exact`, for a single bucket whose name the user chose
//! ```
//!
//! The rules of [`BucketService`] come from the table "Bucket name case" in docs/spec/ossperf.md section 6
//! and from the services' documentation: Amazon S3 "Bucket naming rules", Google Cloud Storage "Bucket
//! names", Azure "Naming and referencing containers", OpenStack Swift's API reference (containers).

use serde::{Deserialize, Serialize};
use strum::VariantArray;

use super::is_default;
use super::ranks::split_key;
use crate::generate::names::push_decimal;

/// Maximum number of buckets per key set. More would need the consent of the service's administrator.
pub const MOST_BUCKETS: u64 = 10_000;
/// Longest name before the run's identifier, bytes: with 19 bytes of identifier and 5 of number, the whole
/// name stays within the 63 bytes that services allow.
pub const LONGEST_STEM: usize = 32;

/// The buckets of a key set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BucketsPlan {
    /// Number of buckets, at least 1.
    pub count: u64,
    /// What names begin with, or with `exact` the whole name.
    pub name: String,
    /// Whether `name` is the whole name of a single bucket.
    #[serde(default, skip_serializing_if = "is_default")]
    pub exact: bool,
    /// The service whose naming rules apply.
    #[serde(default)]
    pub service: BucketService,
    /// Buckets per rank if the objects belong to ranks ([`crate::plan::ranks::key_of`]); otherwise 0.
    #[serde(default, skip_serializing_if = "is_default")]
    pub per_rank: u64,
}

impl BucketsPlan {
    /// Number of the bucket that holds object `key`.
    #[inline]
    #[must_use]
    pub const fn number_of(&self, key: u64) -> u64 {
        if self.per_rank == 0 {
            return key % self.count;
        }
        let (rank, index) = split_key(key);
        (rank as u64 * self.per_rank + index % self.per_rank) % self.count
    }

    /// Name of bucket `number` of run `run_id`.
    #[must_use]
    pub fn bucket_name(&self, run_id: &str, number: u64) -> String {
        let stem = self.stem(run_id);
        let mut out = String::with_capacity(stem.len() + 20);
        self.render(&stem, number, &mut out);
        out
    }

    /// Common beginning of the names of all buckets of run `run_id`.
    #[must_use]
    pub fn stem(&self, run_id: &str) -> String {
        if self.exact {
            return self.name.clone();
        }
        // Services allow letters, digits and hyphens everywhere.
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        let stem: String = format!("{}-{run_id}-", self.name)
            .chars()
            .map(plain)
            .collect();
        match self.service.case() {
            NameCase::Upper => stem.to_ascii_uppercase(),
            NameCase::Lower | NameCase::Either => stem.to_ascii_lowercase(),
        }
    }

    /// Writes the name of bucket `number` into `out`, replacing its contents. `stem` comes from
    /// [`BucketsPlan::stem`]. Allocates nothing once the buffer is large enough.
    #[inline]
    pub fn render(&self, stem: &str, number: u64, out: &mut String) {
        out.clear();
        out.push_str(stem);
        if !self.exact {
            push_decimal(number, 1, out);
        }
    }
}

/// A service with its own rules for bucket names.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum BucketService {
    /// Unknown: names that all services accept except those that require upper case.
    #[default]
    Any,
    /// Amazon S3.
    AmazonS3,
    /// Google Cloud Storage.
    GoogleCloudStorage,
    /// Azure Blob Storage (containers).
    AzureBlob,
    /// OpenStack Swift (containers).
    Swift,
    /// MinIO.
    Minio,
    /// Riak CS.
    RiakCs,
    /// S3rver.
    S3rver,
    /// Scality S3 (CloudServer).
    Scality,
    /// Nimbus Cumulus.
    NimbusCumulus,
    /// S3ninja.
    S3ninja,
    /// Fake S3.
    FakeS3,
}

/// Which letters a service accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameCase {
    /// Lower case only.
    Lower,
    /// Upper case only.
    Upper,
    /// Both.
    Either,
}

impl BucketService {
    /// Every service.
    pub const ALL: [Self; Self::VARIANTS.len()] = *Self::VARIANTS.first_chunk().unwrap();

    /// The service that the driver called `driver` talks to, if that is certain.
    #[must_use]
    pub fn of_driver(driver: &str) -> Self {
        match driver {
            "azblob" => Self::AzureBlob,
            "gcs" => Self::GoogleCloudStorage,
            "swift" => Self::Swift,
            _ => Self::Any,
        }
    }

    /// The name in workload files.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Which letters it accepts.
    #[must_use]
    pub const fn case(self) -> NameCase {
        match self {
            Self::NimbusCumulus | Self::S3ninja => NameCase::Upper,
            Self::Swift | Self::FakeS3 => NameCase::Either,
            // Amazon and Google once allowed upper case (legacy regions); their current rules do not.
            Self::Any
            | Self::AmazonS3
            | Self::GoogleCloudStorage
            | Self::AzureBlob
            | Self::Minio
            | Self::RiakCs
            | Self::S3rver
            | Self::Scality => NameCase::Lower,
        }
    }

    /// Checks whether the service accepts `name` for a bucket.
    ///
    /// # Errors
    /// The rule that the name breaks, phrased to complete "the name …".
    pub fn check(self, name: &str) -> Result<(), String> {
        let of = match self {
            Self::Any => "services",
            other => other.name(),
        };
        let refuse = |rule: &str| Err(format!("{rule} ({of})"));
        if self == Self::Swift {
            // Any UTF-8 of at most 256 bytes without a slash.
            return match name {
                "" => refuse("is empty"),
                _ if name.len() > 256 => refuse("is longer than 256 bytes"),
                _ if name.contains('/') => refuse("contains a slash"),
                _ => Ok(()),
            };
        }
        if !(3..=63).contains(&name.len()) {
            return refuse("must have 3 to 63 characters");
        }
        let upper = name.bytes().any(|byte| byte.is_ascii_uppercase());
        let lower = name.bytes().any(|byte| byte.is_ascii_lowercase());
        match self.case() {
            NameCase::Lower if upper => {
                return refuse("has upper-case letters, which are rejected");
            }
            NameCase::Upper if lower => {
                return refuse("has lower-case letters, which are rejected");
            }
            _ => {}
        }
        let dots = !matches!(self, Self::AzureBlob);
        let allowed =
            |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || dots && byte == b'.';
        if !name.bytes().all(allowed) {
            return refuse("may only contain letters, digits and hyphens");
        }
        let edge = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
        if !edge(name.bytes().next()) || !edge(name.bytes().last()) {
            return refuse("must begin and end with a letter or a digit");
        }
        if ["..", ".-", "-."].iter().any(|pair| name.contains(pair)) {
            return refuse("has a period next to a period or a hyphen");
        }
        let parts: Vec<&str> = name.split('.').collect();
        if parts.len() == 4 && parts.iter().all(|part| part.parse::<u8>().is_ok()) {
            return refuse("looks like an IP address");
        }
        match self {
            Self::AzureBlob if name.contains("--") => refuse("has two hyphens in a row"),
            Self::AmazonS3
                if name.starts_with("xn--")
                    || name.starts_with("sthree-")
                    || name.ends_with("-s3alias")
                    || name.ends_with("--ol-s3") =>
            {
                refuse("has a reserved prefix or suffix")
            }
            Self::GoogleCloudStorage if name.starts_with("goog") || name.contains("google") => {
                refuse("begins with `goog` or contains `google`")
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::ranks::key_of;
    use super::{BucketService, BucketsPlan, LONGEST_STEM, MOST_BUCKETS, NameCase};

    fn plan(name: &str, service: BucketService) -> BucketsPlan {
        BucketsPlan {
            count: MOST_BUCKETS,
            name: name.to_owned(),
            exact: false,
            service,
            per_rank: 0,
        }
    }

    #[test]
    fn generated_names_follow_every_services_rules() {
        let stem = "a".repeat(LONGEST_STEM);
        for service in BucketService::ALL {
            for name in ["OSSperf", &stem] {
                let plan = plan(name, service);
                for number in [0, 7, 10, 9_999] {
                    let made = plan.bucket_name("1769903999-5c1f09aa", number);
                    assert_eq!(service.check(&made), Ok(()), "{}: {made}", service.name());
                    assert!(made.ends_with(&format!("-{number}")), "{made}");
                }
            }
        }
        let name = |service| plan("Ossperf", service).bucket_name("17-5c", 3);
        assert_eq!(name(BucketService::Any), "ossperf-17-5c-3");
        assert_eq!(name(BucketService::S3ninja), "OSSPERF-17-5C-3");
    }

    /// The table "Bucket name case" of docs/spec/ossperf.md section 6.
    #[test]
    fn services_differ_in_case() {
        use BucketService::*;
        for (service, lower, upper) in [
            (Minio, true, false),
            (RiakCs, true, false),
            (S3rver, true, false),
            (Scality, true, false),
            (NimbusCumulus, false, true),
            (S3ninja, false, true),
            (FakeS3, true, true),
            (Swift, true, true),
            (AzureBlob, true, false),
        ] {
            let accepts = |name: &str| service.check(name).is_ok();
            assert_eq!(accepts("ossperf-testbucket"), lower, "{service:?}");
            assert_eq!(accepts("OSSPERF-TESTBUCKET"), upper, "{service:?}");
        }
        assert_eq!(AmazonS3.case(), NameCase::Lower);
    }

    #[test]
    fn names_that_no_service_accepts_are_rejected_with_the_rule() {
        for (service, name, rule) in [
            (BucketService::Any, "ab", "3 to 63"),
            (
                BucketService::Any,
                "under_score",
                "letters, digits and hyphens",
            ),
            (BucketService::Any, "-dash", "begin and end"),
            (BucketService::Any, "dash-", "begin and end"),
            (BucketService::Any, "a.-b", "next to"),
            (BucketService::Any, "192.168.0.1", "IP address"),
            (BucketService::AzureBlob, "two--hyphens", "two hyphens"),
            (
                BucketService::AzureBlob,
                "with.period",
                "letters, digits and hyphens",
            ),
            (BucketService::AmazonS3, "xn--bucket", "reserved"),
            (BucketService::GoogleCloudStorage, "my-google-1", "google"),
            (BucketService::Swift, "with/slash", "slash"),
        ] {
            let refusal = service.check(name).unwrap_err();
            assert!(refusal.contains(rule), "{name}: {refusal}");
        }
        assert_eq!(BucketService::Swift.check("Anything_goes here"), Ok(()));
    }

    #[test]
    fn objects_are_spread_over_the_buckets() {
        let mut plan = plan("b", BucketService::Any);
        plan.count = 3;
        assert_eq!(
            [0, 1, 2, 3, 7].map(|key| plan.number_of(key)),
            [0, 1, 2, 0, 1]
        );
        // Two ranks with three files each; two ranks with one file each; one file shared by all.
        let of = |count, per_rank| BucketsPlan {
            count,
            per_rank,
            ..plan.clone()
        };
        let keys = [(0, 0), (0, 2), (1, 0), (1, 2)].map(|(rank, index)| key_of(rank, index));
        assert_eq!(keys.map(|key| of(6, 3).number_of(key)), [0, 2, 3, 5]);
        assert_eq!(keys.map(|key| of(2, 1).number_of(key)), [0, 0, 1, 1]);
        assert_eq!(keys.map(|key| of(1, 1).number_of(key)), [0; 4]);
        plan.exact = true;
        assert_eq!(plan.bucket_name("run", 0), "b");
    }

    #[test]
    fn drivers_name_their_service() {
        assert_eq!(BucketService::of_driver("azblob"), BucketService::AzureBlob);
        assert_eq!(BucketService::of_driver("s3"), BucketService::Any);
    }
}
