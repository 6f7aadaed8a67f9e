//! The null target: every operation succeeds at once. It shows the client's own cost, and runs are
//! calibrated against it.
//!
//! Only the control plane keeps data: the few small objects that mark ownership, so a run against the
//! null target takes the same steps as any other.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bucketload_core::driver::{
    Admin, Capabilities, Completion, Driver, DriverFacts, ErrorKind, KeyPage, OpClass, OpError,
    OpResult, Probe, Request, Session, WorkerId,
};
use bucketload_core::op::{BucketNeeds, Op, VersionId};
use bucketload_core::record::ConnectTimes;

/// Keys per page of a listing.
const PAGE: usize = 1000;

#[derive(Debug, Default)]
struct Marks {
    buckets: BTreeSet<String>,
    objects: BTreeMap<(String, String), Vec<u8>>,
}

/// A driver whose operations do nothing.
#[derive(Clone, Debug, Default)]
pub struct NullDriver {
    marks: Arc<Mutex<Marks>>,
}

bucketload_core::any_driver!(NullDriver);

impl NullDriver {
    /// A null target without buckets.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl Driver for NullDriver {
    type Session = NullSession;

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            classes: OpClass::ALL.to_vec(),
            verify: false,
            connections: false,
            // It sends nothing, however many at a time.
            parts_in_flight: true,
        }
    }

    fn facts(&self) -> DriverFacts {
        DriverFacts {
            driver: "null".to_owned(),
            engine: "native".to_owned(),
            ..DriverFacts::default()
        }
    }

    async fn open(&self, _worker: WorkerId, probe: &mut Probe) -> OpResult<NullSession> {
        probe.connected(ConnectTimes::default());
        Ok(NullSession {
            marks: Arc::clone(&self.marks),
        })
    }
}

/// A session of the null target.
#[derive(Debug)]
pub struct NullSession {
    marks: Arc<Mutex<Marks>>,
}

impl NullSession {
    fn marks(&self) -> MutexGuard<'_, Marks> {
        // A panic elsewhere cannot leave the marks inconsistent.
        self.marks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check_bucket(&self, bucket: &str) -> OpResult<()> {
        if self.marks().buckets.contains(bucket) {
            Ok(())
        } else {
            Err(OpError::new(
                ErrorKind::NotFound,
                format!("NoSuchBucket: there is no bucket `{bucket}`"),
            ))
        }
    }
}

/// Bytes that the operation would have transferred.
const fn bytes_of(op: &Op) -> u64 {
    match op.class {
        OpClass::RangePut => match op.range {
            Some(range) => range.len,
            None => 0,
        },
        class if class.writes_body() => op.size,
        OpClass::Get if op.size != Op::UNKNOWN_SIZE => op.size,
        OpClass::RangeGet | OpClass::GetPart => match op.range {
            Some(range) => range.len,
            None => 0,
        },
        _ => 0,
    }
}

impl Session for NullSession {
    #[inline]
    async fn execute(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        probe.started();
        probe.first_byte_and_done();
        if let (Some(version), true) = (request.version, request.op.class.writes_body()) {
            version.set(VersionId::new(b"null").unwrap_or_default());
        }
        Ok(Completion {
            bytes: bytes_of(request.op),
            items: 0,
            object_size: 0,
        })
    }
}

impl Admin for NullSession {
    async fn check_needs(&mut self, _: &str, _: BucketNeeds) -> OpResult<()> {
        Ok(())
    }

    async fn ensure_bucket(&mut self, bucket: &str) -> OpResult<bool> {
        Ok(self.marks().buckets.insert(bucket.to_owned()))
    }

    async fn head_bucket(&mut self, bucket: &str) -> OpResult<()> {
        self.check_bucket(bucket)
    }

    async fn delete_bucket(&mut self, bucket: &str) -> OpResult<()> {
        self.check_bucket(bucket)?;
        let mut marks = self.marks();
        if marks.objects.keys().any(|(b, _)| b == bucket) {
            let detail = format!("BucketNotEmpty: `{bucket}` contains objects");
            return Err(OpError::new(ErrorKind::Conflict, detail));
        }
        marks.buckets.remove(bucket);
        Ok(())
    }

    async fn list_keys(
        &mut self,
        bucket: &str,
        prefix: &str,
        after: Option<&str>,
    ) -> OpResult<KeyPage> {
        self.check_bucket(bucket)?;
        let from = match after {
            Some(after) => Bound::Excluded((bucket.to_owned(), after.to_owned())),
            None => Bound::Included((bucket.to_owned(), prefix.to_owned())),
        };
        let marks = self.marks();
        let mut keys: Vec<String> = marks
            .objects
            .range((from, Bound::Unbounded))
            .map(|((b, key), _)| (b, key))
            .take_while(|(b, key)| *b == bucket && key.starts_with(prefix))
            .take(PAGE + 1)
            .map(|(_, key)| key.clone())
            .collect();
        let more = keys.len() > PAGE;
        keys.truncate(PAGE);
        Ok(KeyPage::up_to_last(keys, more))
    }

    async fn delete_keys(&mut self, bucket: &str, keys: &[String]) -> OpResult<()> {
        self.check_bucket(bucket)?;
        let mut marks = self.marks();
        for key in keys {
            marks.objects.remove(&(bucket.to_owned(), key.clone()));
        }
        Ok(())
    }

    async fn abort_uploads(&mut self, bucket: &str, _prefix: &str) -> OpResult<u64> {
        self.check_bucket(bucket)?;
        Ok(0)
    }

    async fn put_small(&mut self, bucket: &str, key: &str, body: &[u8]) -> OpResult<()> {
        self.check_bucket(bucket)?;
        let key = (bucket.to_owned(), key.to_owned());
        self.marks().objects.insert(key, body.to_vec());
        Ok(())
    }

    async fn get_small(&mut self, bucket: &str, key: &str) -> OpResult<Vec<u8>> {
        self.check_bucket(bucket)?;
        let found = self
            .marks()
            .objects
            .get(&(bucket.to_owned(), key.to_owned()))
            .cloned();
        found.ok_or_else(|| {
            OpError::new(
                ErrorKind::NotFound,
                format!("NoSuchKey: there is no `{key}`"),
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use bucketload_core::driver::{Admin, Driver, Session, WorkerId};
    use bucketload_core::error::ErrorKind;
    use bucketload_core::op::{ByteRange, Op, OpClass, Request};
    use bucketload_core::record::Probe;

    use super::NullDriver;

    fn run<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap()
            .block_on(future)
    }

    const WORKER: WorkerId = WorkerId {
        thread: 0,
        worker: 0,
    };

    fn op(class: OpClass, size: u64) -> Op {
        Op {
            size,
            range: Some(ByteRange { offset: 1, len: 7 }),
            ..Op::new(class)
        }
    }

    #[test]
    fn operations_mark_the_probe_and_count_their_bytes() {
        run(async {
            let mut probe = Probe::new(|| 7);
            let mut session = NullDriver::new().open(WORKER, &mut probe).await.unwrap();
            for (class, size, bytes) in [
                (OpClass::Put, 10, 10),
                (OpClass::Get, 10, 10),
                (OpClass::Get, Op::UNKNOWN_SIZE, 0),
                (OpClass::RangeGet, 10, 7),
                (OpClass::Head, 10, 0),
            ] {
                probe.reset();
                let done = session
                    .execute(&Request::new(&op(class, size), "b", "k"), &mut probe)
                    .await;
                assert_eq!(done.unwrap().bytes, bytes, "{class}");
                assert_eq!((probe.started_ns(), probe.done_ns()), (7, 7));
                assert_eq!((probe.first_byte_ns(), probe.requests()), (7, 1));
            }
        });
    }

    #[test]
    fn ownership_marks_are_shared_by_sessions() {
        run(async {
            let driver = NullDriver::new();
            let mut probe = Probe::untimed();
            let mut one = driver.open(WORKER, &mut probe).await.unwrap();
            assert!(one.ensure_bucket("b").await.unwrap());
            assert!(!one.ensure_bucket("b").await.unwrap());
            for i in 0..1001 {
                one.put_small("b", &format!("p/{i:04}"), b"x")
                    .await
                    .unwrap();
            }
            one.put_small("b", "q", b"mark").await.unwrap();
            let mut two = driver.open(WORKER, &mut probe).await.unwrap();
            assert_eq!(two.get_small("b", "q").await.unwrap(), b"mark");
            let page = two.list_keys("b", "p/", None).await.unwrap();
            assert_eq!(page.keys.len(), 1000);
            let rest = two
                .list_keys("b", "p/", page.next.as_deref())
                .await
                .unwrap();
            assert_eq!((rest.keys, rest.next), (vec!["p/1000".to_owned()], None));
            let error = two.delete_bucket("b").await.unwrap_err();
            assert_eq!(error.kind, ErrorKind::Conflict);
            for keys in [page.keys, vec!["p/1000".to_owned(), "q".to_owned()]] {
                two.delete_keys("b", &keys).await.unwrap();
            }
            two.delete_bucket("b").await.unwrap();
            assert_eq!(
                one.head_bucket("b").await.unwrap_err().kind,
                ErrorKind::NotFound
            );
            assert_eq!(
                one.get_small("b", "q").await.unwrap_err().kind,
                ErrorKind::NotFound
            );
        });
    }
}
