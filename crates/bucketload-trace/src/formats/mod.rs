//! Importers, one per format: each converts a line or a JSON object to records.
//!
//! ```text
//! bytes ─ Frames ─▶ line or object ─ Importer::read ─▶ Parsed records, or a Reason
//! ```
//!
//! An importer's state does not grow with the input. [`detect`] tries all importers on the first lines.

mod cloudtrail;
mod columns;
mod detect;
mod hint;
mod ibm_cos;
mod llm_csv;
mod minio_audit;
mod minio_ops;
mod minio_trace;
mod mooncake;
mod rgw;
mod s3_access;
mod s3_access_json;
mod s3_ops;
mod swift;
mod twitter;

pub use columns::{Column, Layout, TimeForm};
pub use detect::detect;
pub(crate) use hint::hint;
pub use mooncake::MOONCAKE_BLOCK_TOKENS;
pub use swift::SWIFT_TEMPLATE;

use crate::error::TraceError;
use crate::parsed::{DropReason, ParsedRecord};
use columns::{Columns, Header};

/// Nanoseconds of a millisecond.
const MS: i64 = 1_000_000;
/// Nanoseconds of a second.
const SECOND: i64 = 1_000_000_000;

/// Receives the records of a line.
pub type Emit<'e> = dyn FnMut(&ParsedRecord) + 'e;

/// How a byte stream is split into frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// At line ends.
    Lines,
    /// Into JSON objects: one per line or not, bare, in an array, or in the array `Records` or
    /// `log_entries` of an object.
    Json,
}

/// An importer of one format.
pub trait Importer: Send {
    /// Reads a frame and emits its records: none for a header, several for a multi-object delete.
    ///
    /// # Errors
    /// Why the frame has no record.
    fn read(&mut self, frame: &[u8], emit: &mut Emit<'_>) -> Result<(), DropReason>;

    /// Begins a new file, which may have a header again.
    fn start_file(&mut self) {}

    /// How the input is split.
    fn framing(&self) -> Framing {
        Framing::Lines
    }
}

/// The formats, in the order in which they are tried.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    strum::EnumString,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[strum(serialize_all = "kebab-case")]
pub enum Format {
    /// Bucketload's CSV with a header.
    Native,
    /// Bucketload's operation log as CSV.
    OpLog,
    /// warp's operation dump.
    Warp,
    /// Meta's CacheLib traces.
    #[strum(serialize = "cachelib")]
    CacheLib,
    /// IBM Cloud Object Storage.
    IbmCos,
    /// S3 server access log.
    S3Access,
    /// S3 server access log as JSON.
    S3AccessJson,
    /// AWS CloudTrail.
    #[strum(serialize = "cloudtrail")]
    CloudTrail,
    /// MinIO audit log.
    MinioAudit,
    /// MinIO live trace.
    MinioTrace,
    /// Ceph RGW ops log.
    Rgw,
    /// OpenStack Swift proxy log.
    Swift,
    /// Twitter's cache traces.
    Twitter,
    /// Mooncake's traces of a key-value cache for language models.
    Mooncake,
    /// Azure's traces of language models.
    AzureLlm,
    /// Traces of language models from BurstGPT.
    #[strum(serialize = "burstgpt")]
    BurstGpt,
    /// Separated values with a mapping.
    Csv,
}

impl Format {
    /// Every format, in the order in which they are tried.
    pub const ALL: &'static [Self] = <Self as strum::VariantArray>::VARIANTS;

    /// The name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The names of all formats, separated by commas.
    #[must_use]
    pub fn names() -> String {
        Self::ALL
            .iter()
            .map(|format| format.name())
            .collect::<Vec<_>>()
            .join(", ")
    }

    /// The format with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        name.parse().ok()
    }

    /// Makes an importer of the format.
    ///
    /// # Errors
    /// When an option is missing or contradicts the format.
    pub fn importer(self, options: &FormatOptions) -> Result<Box<dyn Importer>, TraceError> {
        let wrong = |reason: String| TraceError::Option(reason);
        Ok(match self {
            Self::Native => header(columns::native, b','),
            Self::OpLog => header(columns::op_log, b','),
            Self::Warp => header(columns::warp, b'\t'),
            Self::CacheLib => header(columns::cachelib, b','),
            Self::IbmCos => Box::new(ibm_cos::IbmCos::default()),
            Self::S3Access => Box::new(s3_access::S3Access::default()),
            Self::S3AccessJson => Box::new(s3_access_json::S3AccessJson::default()),
            Self::CloudTrail => Box::new(cloudtrail::CloudTrail::default()),
            Self::MinioAudit => Box::new(minio_audit::MinioAudit::default()),
            Self::MinioTrace => Box::new(minio_trace::MinioTrace::default()),
            Self::Rgw => Box::new(rgw::Rgw::default()),
            Self::Swift => {
                let template = options.swift_template.as_deref().unwrap_or(SWIFT_TEMPLATE);
                Box::new(swift::Swift::new(template, options.subrequests).map_err(wrong)?)
            }
            Self::Twitter => Box::new(twitter::Twitter::new(options.skip_updates, options.expire)),
            Self::Mooncake => Box::new(mooncake::Mooncake::default()),
            Self::AzureLlm => Box::new(llm_csv::LlmCsv::new(llm_csv::AZURE)),
            Self::BurstGpt => Box::new(llm_csv::LlmCsv::new(llm_csv::BURSTGPT)),
            Self::Csv => {
                let layout = options.layout.clone().ok_or_else(|| {
                    let example = "--map ts=1,op=2,key=3,size=4 (columns count from 1)";
                    wrong(format!(
                        "the format csv needs a mapping, for example {example}"
                    ))
                })?;
                Box::new(Columns::new(
                    Header::Known(Box::new(layout)),
                    options.skip_lines,
                ))
            }
        })
    }
}

fn header(find: fn(&[&[u8]], u8) -> Option<Layout>, delimiter: u8) -> Box<dyn Importer> {
    Box::new(Columns::new(Header::FromFirstLine(find, delimiter), 0))
}

/// Options of formats.
#[derive(Clone, Debug, Default)]
pub struct FormatOptions {
    /// Swift: the log's template, `{client_ip} {remote_addr} …`.
    pub swift_template: Option<String>,
    /// Swift: keep requests that Swift made on behalf of other requests.
    pub subrequests: bool,
    /// Twitter: leave out appends and increments instead of replaying them as a read and a write.
    pub skip_updates: bool,
    /// Twitter: delete objects when their time to live has expired.
    pub expire: bool,
    /// CSV: the layout of the columns.
    pub layout: Option<Layout>,
    /// CSV: number of lines before the first record of each file.
    pub skip_lines: usize,
}

/// Parses a JSON object. An error at its end means that it is truncated.
fn from_json<'de, T: serde::Deserialize<'de>>(object: &'de [u8]) -> Result<T, DropReason> {
    serde_json::from_slice(object).map_err(|e| {
        if e.is_eof() {
            DropReason::Truncated
        } else {
            DropReason::Malformed
        }
    })
}
