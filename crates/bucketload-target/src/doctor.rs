//! The vocabulary of `bucketload doctor`: what a driver may touch, and what it reports.

use bucketload_core::driver::Room;
use bucketload_core::op::OpClass;
use serde::{Serialize, Serializer};

use crate::{Flag, OpenError, OpenRequest};

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

/// Judges the finding on whether connections stay open again, by the operations that found theirs open or closed: some
/// servers close connections after requests without credentials only.
pub fn judge_connections(finding: &mut Finding, kept: u32, closed: u32) {
    if kept + closed < 10 {
        return;
    }
    if finding.state == State::Differs && kept > closed {
        finding.state = State::Ok;
        finding.remedy.clear();
        finding.found = format!(
            "{kept} of {} requests with credentials found the connection open (those without did not)",
            kept + closed
        );
    }
    if finding.state == State::Ok && closed > kept {
        finding.state = State::Differs;
        finding.found = format!(
            "{closed} of {} requests with credentials found the connection closed",
            kept + closed
        );
        "let the server (or the proxy before it) keep connections open"
            .clone_into(&mut finding.remedy);
    }
}

/// Least room that is worth no word, in bytes: what a doctor and a short run write.
const LEAST_ROOM: u64 = 64 << 20;

/// What room a store has left, as a finding; `None` if its interface has no call for that.
#[must_use]
pub fn room(room: Option<&Room>) -> Finding {
    const ASKED: &str = "the room left for objects";
    let Some(room) = room else {
        let found = "the interface has no call for it: ask the store's operator, or its console";
        return Finding::new("room", ASKED, State::NotTried, found);
    };
    let bytes = room.free_bytes.map(|free| match room.total_bytes {
        Some(total) => format!("{} of {}", about(free), about(total)),
        None => about(free),
    });
    let objects = room.free_objects.map(|free| format!("{free} objects"));
    let volumes = room.free_volumes.map(|free| format!("{free} volumes"));
    let parts: Vec<String> = bytes.into_iter().chain(objects).chain(volumes).collect();
    if parts.is_empty() {
        return Finding::new("room", ASKED, State::NotTried, room.of.clone());
    }
    let found = format!("{} free: {}", parts.join(" and "), room.of);
    let full = room.free_bytes.is_some_and(|free| free < LEAST_ROOM)
        || room.free_objects.is_some_and(|free| free < 1000);
    match full {
        true => Finding::new("room", ASKED, State::Differs, found).remedy(
            "make room, raise the quota, or run with fewer or smaller objects (--objects, --size)",
        ),
        false => Finding::new("room", ASKED, State::Ok, found),
    }
}

/// A number of bytes with a binary unit and at most one decimal.
fn about(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let power = (bytes.max(1).ilog2() / 10) as usize;
    match power {
        0 => format!("{bytes} B"),
        _ => format!(
            "{:.1} {}",
            bytes as f64 / 1024_f64.powi(power as i32),
            units[power]
        ),
    }
}

/// A setting that may make up for what a store does not do.
#[derive(Clone, Copy, Debug)]
pub struct Repair {
    /// The check that fails without it.
    pub check: &'static str,
    /// The flag, which a dialect may set.
    pub flag: &'static Flag,
    /// The values to try, in this order.
    pub values: &'static [&'static str],
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
    /// Settings to try when a check that the driver leaves to its sessions fails.
    pub repairs: &'static [Repair],
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

#[cfg(test)]
mod tests {
    use bucketload_core::driver::Room;

    use super::{Finding, State, judge_connections, room};

    #[test]
    fn room_is_told_as_far_as_it_is_known() {
        let of = |free_bytes, free_objects| Room {
            free_bytes,
            total_bytes: Some(3 << 40),
            free_objects,
            of: "the quota".to_owned(),
            ..Room::default()
        };
        let much = room(Some(&of(Some(3 << 39), Some(70_000))));
        assert_eq!(much.state, State::Ok);
        assert_eq!(
            much.found,
            "1.5 TiB of 3.0 TiB and 70000 objects free: the quota"
        );
        for little in [of(Some(1 << 20), None), of(Some(1 << 40), Some(3))] {
            assert_eq!(room(Some(&little)).state, State::Differs, "{little:?}");
        }
        let unknown = Room {
            of: "nobody says".to_owned(),
            ..Room::default()
        };
        let unknown = room(Some(&unknown));
        assert_eq!(
            (unknown.state, &*unknown.found),
            (State::NotTried, "nobody says")
        );
        assert_eq!(room(None).state, State::NotTried);
    }

    #[test]
    fn connections_are_judged_by_most_of_the_operations() {
        let judged = |state, kept, closed| {
            let mut finding = Finding::new("keep-alive", "", state, "");
            judge_connections(&mut finding, kept, closed);
            finding.state
        };
        assert_eq!(judged(State::Differs, 20, 1), State::Ok);
        assert_eq!(judged(State::Ok, 1, 20), State::Differs);
        assert_eq!(judged(State::Differs, 5, 1), State::Differs, "too few");
    }
}
