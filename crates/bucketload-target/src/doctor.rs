//! The vocabulary of `bucketload doctor`: what a driver may touch, and what it reports.

use bucketload_core::op::OpClass;
use serde::{Serialize, Serializer};

use crate::{OpenError, OpenRequest};

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// The target does what was asked.
    Ok,
    /// Not asked, because something that the check needs does not work, or does not apply.
    NotTried,
    /// The target does something else. A run works, perhaps with other settings or without some operations.
    Differs,
    /// No run can work until this is repaired.
    Failed,
}

impl State {
    /// The name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::NotTried => "not tried",
            Self::Differs => "differs",
            Self::Failed => "failed",
        }
    }
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Name of the check; stable, for scripts.
    pub id: &'static str,
    /// What was asked.
    pub asked: &'static str,
    /// How it ended.
    pub state: State,
    /// What was found, in the server's own words where it said some.
    pub found: String,
    /// What to do; empty if there is nothing to do.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub remedy: String,
    /// Operations that workloads must not use.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "names")]
    pub refuses: Vec<OpClass>,
    /// A setting that makes it work, or makes use of it: flag without dashes, and value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setting: Option<(&'static str, String)>,
}

fn names<S: Serializer>(classes: &[OpClass], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(classes.iter().map(|class| class.name()))
}

impl Finding {
    /// A finding of check `id`, which asked `asked`.
    #[must_use]
    pub fn new(
        id: &'static str,
        asked: &'static str,
        state: State,
        found: impl Into<String>,
    ) -> Self {
        Self {
            id,
            asked,
            state,
            found: found.into(),
            remedy: String::new(),
            refuses: Vec::new(),
            setting: None,
        }
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = remedy.into();
        self
    }
}

/// One examination of a target: where the doctor may write, and what it found.
pub struct Examination<'a> {
    /// The bucket.
    pub bucket: &'a str,
    /// The doctor's own prefix, with a trailing slash. It writes and deletes only below.
    pub prefix: &'a str,
    /// Key of the ownership marker, which is the first object written and the last one deleted.
    pub marker: &'a str,
    /// Content of the marker; the argument says whether the doctor created the bucket.
    pub marker_body: &'a dyn Fn(bool) -> Vec<u8>,
    /// Whether a missing bucket may be created.
    pub create_bucket: bool,
    /// The findings so far, in the order of the report.
    pub findings: Vec<Finding>,
    /// What could not be removed, each with the reason.
    pub left: Vec<String>,
}

impl Examination<'_> {
    /// Whether a check failed, so that nothing further can work.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.findings.iter().any(|f| f.state == State::Failed)
    }
}

/// How much of an examination a driver did itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Examined {
    /// At most the way to the service: operations remain to be checked through the driver.
    Way,
    /// Everything.
    All,
}

/// Examines a target. Blocks; every wait has a deadline.
pub type Doctor = fn(&OpenRequest<'_>, &mut Examination<'_>) -> Result<Examined, OpenError>;

/// A driver without checks of its own: operations are checked through its sessions.
///
/// # Errors
/// Never.
pub const fn no_doctor(
    _: &OpenRequest<'_>,
    _: &mut Examination<'_>,
) -> Result<Examined, OpenError> {
    Ok(Examined::Way)
}
