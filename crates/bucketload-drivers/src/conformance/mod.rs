//! One suite for every driver and every server. It checks what each operation must do, through the public traits only.
//!
//! The suite creates its own bucket and deletes it at the end. [`Quirks`] list a server's documented differences. The
//! suite then demands the documented refusal, so no check is skipped silently and a lifted limitation is noticed.
//! Likewise, a class that is missing in a driver's capabilities must be refused as unsupported.

mod bucket;
mod differential;
mod list;
mod multipart;
mod object;
mod quirks;
mod versions;

use std::collections::BTreeSet;

use bucketload_core::driver::{
    Admin, Driver, ErrorKind, OpClass, OpResult, Probe, Request, Session, WorkerId,
};
use bucketload_core::op::{ByteRange, Op};
use bucketload_core::payload::{Arena, Content, PayloadKind};

pub use differential::{Differential, Verdict};
pub use quirks::{Expect, Quirks};

/// The settings of the suite.
#[derive(Clone, Debug)]
pub struct Suite {
    /// Name of a bucket that does not exist yet; further buckets get a suffix.
    pub bucket: String,
    /// The server's documented differences.
    pub quirks: Quirks,
    /// Monotonic clock for the probes, in nanoseconds; must not return 0.
    pub clock: fn() -> u64,
}

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckResult {
    /// Name of the check.
    pub name: &'static str,
    /// The failure, if any.
    pub failure: Option<String>,
}

/// The result of a check: the text says what was expected and what happened.
type Outcome = Result<(), String>;

impl Suite {
    /// Runs every check against `driver`.
    ///
    /// # Errors
    /// When no session or bucket can be created.
    pub async fn run<D: Driver>(&self, driver: &D) -> OpResult<Vec<CheckResult>> {
        Ok(self.survey(driver).await?.checks)
    }

    /// Runs every check against `driver`, and reports which operations work at all.
    ///
    /// # Errors
    /// When no session or bucket can be created.
    pub async fn survey<D: Driver>(&self, driver: &D) -> OpResult<Survey> {
        let mut probe = Probe::new(self.clock);
        let session = driver.open(WorkerId::default(), &mut probe).await?;
        let mut context = Context {
            session,
            classes: driver.capabilities().classes,
            bucket: self.bucket.clone(),
            quirks: self.quirks.clone(),
            arena: Arena::new(PayloadKind::Random, 0x00c0_ffee),
            probe,
            worked: BTreeSet::new(),
        };
        context.session.ensure_bucket(&self.bucket).await?;
        let mut results = Vec::new();
        // The macro only saves writing each name twice.
        macro_rules! check {
            ($($module:ident :: $name:ident),+ $(,)?) => {
                $(
                    let failure = $module::$name(&mut context).await.err();
                    results.push(CheckResult { name: stringify!($name), failure });
                )+
            };
        }
        check!(
            object::content_round_trips,
            object::acknowledged_writes_are_complete,
            object::puts_overwrite,
            object::heads_return_sizes,
            object::absent_objects_are_not_found,
            object::deletes_remove,
            object::ranges_are_exact,
            object::ranges_past_the_end_are_refused,
            object::wrong_content_is_found,
            object::wrong_lengths_are_found,
            object::odd_keys_work,
            object::doubled_slashes,
            object::dot_segments,
            object::keys_ending_in_a_slash,
            object::objects_below_objects,
            object::long_keys,
            object::copies_are_equal,
            object::tags_round_trip,
            object::writes_if_absent_happen_once,
            object::appends_extend_objects,
            object::renames_move,
            object::touches_keep_content,
            object::probes_are_marked,
            list::prefixes_and_pages,
            list::delimiters_group,
            list::deletes_of_many,
            list::control_plane_pages,
            multipart::parts_make_an_object,
            multipart::parts_are_read_by_number,
            multipart::small_parts,
            multipart::aborted_uploads_are_gone,
            multipart::parts_are_copied,
            bucket::buckets_come_and_go,
            bucket::existing_buckets,
            bucket::full_buckets_are_kept,
            bucket::absent_buckets_are_not_found,
            versions::versions_are_kept,
            versions::writes_name_their_version,
            versions::locks_hold_until_they_are_lifted,
            versions::access_lists_are_read_and_set,
            versions::attributes_state_the_size,
            versions::deletes_if_present,
        );
        let failure = context.clean_up(&self.bucket).await.err();
        results.push(CheckResult {
            name: "nothing_is_left",
            failure: failure.map(|e| e.to_string()),
        });
        let support = |class: OpClass| {
            if context.worked.contains(&class) {
                Support::Works
            } else if context.classes.contains(&class) {
                Support::Refused
            } else {
                Support::NotOffered
            }
        };
        Ok(Survey {
            checks: results,
            classes: OpClass::ALL
                .into_iter()
                .filter(|class| class.is_for_workloads())
                .map(|class| (class, support(class)))
                .collect(),
        })
    }
}

/// The result of a run of the suite.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survey {
    /// The result of each check.
    pub checks: Vec<CheckResult>,
    /// Every operation class, and whether it works.
    pub classes: Vec<(OpClass, Support)>,
}

/// Whether an operation class works on a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// It worked at least once.
    Works,
    /// The driver offers it, but the server never performed it.
    Refused,
    /// The driver does not offer it for this API.
    NotOffered,
}

/// The state that checks share.
struct Context<S> {
    session: S,
    /// The driver's capabilities.
    classes: Vec<OpClass>,
    bucket: String,
    quirks: Quirks,
    arena: Arena,
    probe: Probe,
    /// Classes of which an operation has worked.
    worked: BTreeSet<OpClass>,
}

/// Performs a request and records whether its class works. A macro, because the request may borrow other fields of the
/// context.
macro_rules! perform {
    ($context:expr, $request:expr) => {{
        $context.probe.reset();
        let done = $context
            .session
            .execute($request, &mut $context.probe)
            .await;
        if done.is_ok() {
            $context.worked.insert($request.op.class);
        }
        done
    }};
}
use perform;

impl<S: Session> Context<S> {
    /// The content of version `version` of `key`.
    fn content<'a>(arena: &'a Arena, key: &str, version: u32, size: u64) -> Content<'a> {
        let id = key.bytes().fold(7, |id: u64, b| {
            id.wrapping_mul(0x0100_0000_01b3) ^ u64::from(b)
        });
        arena.content(0, id, version, size)
    }

    /// True if the driver offers `class`. If not, checks that it refuses the operation as unsupported.
    async fn offers(&mut self, class: OpClass) -> Result<bool, String> {
        if self.classes.contains(&class) {
            return Ok(true);
        }
        let result = self.simple(class, "not/offered").await;
        failed(class.name(), result, &[ErrorKind::Unsupported])?;
        Ok(false)
    }

    /// The `classes` that the driver offers.
    async fn offered(&mut self, classes: &[OpClass]) -> Result<Vec<OpClass>, String> {
        let mut offered = Vec::new();
        for &class in classes {
            if self.offers(class).await? {
                offered.push(class);
            }
        }
        Ok(offered)
    }

    async fn execute(&mut self, request: &Request<'_>) -> OpResult {
        perform!(self, request)
    }

    /// Performs an operation on `key` of the suite's bucket without further parameters.
    async fn simple(&mut self, class: OpClass, key: &str) -> OpResult {
        let request = Request::plain(class, &self.bucket, key);
        perform!(self, &request)
    }

    /// Writes `size` bytes of version `version`; as a multipart upload if `part` is not 0.
    async fn put(&mut self, key: &str, version: u32, size: u64, part: u64) -> OpResult {
        let class = match part {
            0 => OpClass::Put,
            _ => OpClass::MultipartPut,
        };
        let op = Op {
            size,
            version,
            count: part,
            ..Op::new(class)
        };
        let mut request = Request::new(&op, &self.bucket, key);
        request.content = Some(Self::content(&self.arena, key, version, size));
        perform!(self, &request)
    }

    /// Reads `key` and compares it with the content that was written to the key `written_as`.
    async fn get(
        &mut self,
        key: &str,
        written_as: &str,
        version: u32,
        size: u64,
        range: Option<ByteRange>,
    ) -> OpResult {
        let class = match range {
            None => OpClass::Get,
            Some(_) => OpClass::RangeGet,
        };
        let op = Op {
            size,
            range,
            ..Op::new(class)
        };
        let mut request = Request::new(&op, &self.bucket, key);
        request.content = Some(Self::content(&self.arena, written_as, version, size));
        request.verify = true;
        perform!(self, &request)
    }

    /// Writes an object and reads it back.
    async fn round_trip(&mut self, key: &str, size: u64) -> Outcome {
        let put = worked("put", self.put(key, 0, size, 0).await)?;
        same("bytes put", put.bytes, size)?;
        let got = worked("get", self.get(key, key, 0, size, None).await)?;
        same("bytes got", got.bytes, size)
    }

    /// As [`Context::round_trip`], for keys that some servers are documented to refuse; deletes the object at the end.
    async fn round_trip_as(&mut self, key: &str, size: u64, expect: Expect) -> Outcome {
        let what = format!("put of `{key}`");
        if expect
            .check(&what, self.put(key, 0, size, 0).await)?
            .is_some()
        {
            worked("get", self.get(key, key, 0, size, None).await)?;
            worked("delete", self.simple(OpClass::Delete, key).await)?;
            let gone = self.simple(OpClass::Head, key).await;
            failed("head after delete", gone, &[ErrorKind::NotFound])?;
        }
        Ok(())
    }

    /// Every key of `bucket` under `prefix`.
    async fn keys(&mut self, bucket: &str, prefix: &str) -> OpResult<Vec<String>> {
        let mut all = Vec::new();
        let mut after: Option<String> = None;
        loop {
            let from = after.as_deref();
            let page = self.session.list_keys(bucket, prefix, from).await?;
            all.extend(page.keys);
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(all),
            }
        }
    }

    /// Empties and deletes `bucket`.
    async fn clean_up(&mut self, bucket: &str) -> OpResult<()> {
        self.session.abort_uploads(bucket, "").await?;
        // Repeatedly, because a server may hide objects behind others (MinIO: `a/b` behind `a`).
        loop {
            let keys = self.keys(bucket, "").await?;
            if keys.is_empty() {
                break;
            }
            for keys in keys.chunks(1000) {
                self.session.delete_keys(bucket, keys).await?;
            }
        }
        self.session.delete_bucket(bucket).await
    }
}

/// The value of an operation that must succeed.
fn worked<T>(what: &str, result: OpResult<T>) -> Result<T, String> {
    result.map_err(|error| format!("{what} failed: {error}"))
}

/// Checks that an operation failed with one of `kinds`.
fn failed<T>(what: &str, result: OpResult<T>, kinds: &[ErrorKind]) -> Outcome {
    match result {
        Ok(_) => Err(format!("{what} worked, expected a failure ({kinds:?})")),
        Err(error) if kinds.contains(&error.kind) => Ok(()),
        Err(error) => Err(format!("{what} failed, but not as {kinds:?}: {error}")),
    }
}

/// Checks that two values are equal.
fn same<T: PartialEq + std::fmt::Debug>(what: &str, got: T, wanted: T) -> Outcome {
    if got == wanted {
        Ok(())
    } else {
        Err(format!("{what}: {got:?} instead of {wanted:?}"))
    }
}
