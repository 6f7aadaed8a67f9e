//! Requests of a context behind a gateway: sent as a batch, reported one by one.

use std::ffi::CString;
use std::ptr;
use std::sync::Arc;

use bucketload_gateway::{Server, ServerOptions};
use bucketload_store::{PosixOptions, PosixStore, Store as _};
use s3::S3RequestContext;
use s3::exports::*;

use crate::calls::{Request, Store};
use crate::{NO_SUCH_BUCKET, NO_SUCH_KEY};

const NOT_FOUND: i32 = 132;
const INTERRUPTED: i32 = 3;
const ABORTED: i32 = 47;

/// A bucket behind a gateway, the store of the gateway, and a context.
struct Fixture {
    remote: Store,
    served: PosixStore,
    context: *mut S3RequestContext,
    _server: Server,
    _directory: tempfile::TempDir,
}

impl Fixture {
    fn new(scheme: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let served = PosixStore::open(PosixOptions::new(path("root"))).unwrap();
        let address = match scheme {
            "unix" => format!("unix:{}", path("socket").display()),
            _ => "127.0.0.1:0".to_owned(),
        };
        let options = ServerOptions::new(address.parse().unwrap());
        let server = Server::start(options, Arc::new(served.clone())).unwrap();
        let host = CString::new(server.address().to_string()).unwrap();
        let mut context = ptr::null_mut();
        // SAFETY: the place for the context is valid.
        assert_eq!(unsafe { S3_create_request_context(&raw mut context) }, 0);
        Self {
            remote: Store::made(&host, "bucket"),
            served,
            context,
            _server: server,
            _directory: directory,
        }
    }

    /// Drives the context once. Returns how many requests are left.
    fn once(&self) -> i32 {
        let mut left = -1;
        // SAFETY: the context lives, as do the requests in it.
        let code = unsafe { S3_runonce_request_context(self.context, &raw mut left) };
        assert_eq!(code, 0);
        left
    }

    fn holds(&self, key: &str) -> bool {
        self.served.head("bucket", key).is_ok()
    }

    fn destroy(&self) {
        // SAFETY: the context lives, and is not used any more.
        unsafe { S3_destroy_request_context(self.context) };
    }
}

#[test]
fn requests_of_a_context_are_sent_as_a_batch_and_complete_one_by_one() {
    for scheme in ["tcp", "unix"] {
        let fixture = Fixture::new(scheme);
        let (remote, context) = (&fixture.remote, fixture.context);
        remote.put("old", b"old");
        let (mut first, mut second) = (Request::with_body(b"first"), Request::with_body(b"second"));
        let (mut got, mut gone, mut last) = <(Request, Request, Request)>::default();
        // SAFETY: the requests outlive the context.
        unsafe {
            remote.put_in(context, "a", &mut first);
            remote.put_in(context, "b", &mut second);
            remote.get_in(context, "a", 1, 3, &mut got);
            remote.delete_in(context, "old", &mut gone);
            remote.head_in(context, "b", &mut last);
        }
        assert!(!fixture.holds("a") && first.events.is_empty());
        assert_eq!(fixture.once(), 4);
        // All requests have run by now, in order, but only the first has completed.
        assert!(fixture.holds("a") && fixture.holds("b") && !fixture.holds("old"));
        assert_eq!((first.end(), second.end()), (("DPC", 0), ("D", 0)));
        assert_eq!(
            (got.end(), gone.end(), last.end()),
            (("", 0), ("", 0), ("", 0))
        );
        assert_eq!(fixture.once(), 3);
        assert_eq!((second.end(), got.end()), (("DPC", 0), ("", 0)));
        assert_eq!(fixture.once(), 2);
        assert_eq!((got.end(), &got.received[..]), (("PDC", 0), &b"irs"[..]));
        assert_eq!((got.content_length, gone.events.as_str()), (3, ""));
        // SAFETY: as above.
        assert_eq!(unsafe { S3_runall_request_context(context) }, 0);
        assert_eq!((gone.end(), last.end()), (("PC", 0), ("PC", 0)));
        assert_eq!(last.content_length, 6);
        fixture.destroy();
    }
}

#[test]
fn failed_and_large_requests_do_not_affect_the_others() {
    let fixture = Fixture::new("tcp");
    let (remote, context) = (&fixture.remote, fixture.context);
    let nowhere = remote.other("nowhere");
    let large: Vec<u8> = (0..300_000_u32).map(|i| (i >> 3) as u8).collect();
    remote.put("large", &large);
    remote.put("small", b"small");
    let mut refused = Request::with_body(b"never");
    refused.abort_at = Some(1);
    let mut given_up = Request::default();
    given_up.abort_at = Some(1);
    let (mut missing, mut no_bucket, mut behind) = <(Request, Request, Request)>::default();
    let (mut whole, mut small, mut empty) = <(Request, Request, Request)>::default();
    let mut put = Request::with_body(&[7; 20_000]);
    // SAFETY: the requests outlive the context.
    unsafe {
        remote.head_in(context, "missing", &mut missing);
        nowhere.get_in(context, "k", 0, 0, &mut no_bucket);
        remote.put_in(context, "never", &mut refused);
        remote.get_in(context, "small", 0, 0, &mut given_up);
        remote.get_in(context, "large", 0, 0, &mut whole);
        remote.get_in(context, "small", 5, 1, &mut behind);
        // Too large for a batch: it runs in its turn.
        remote.put_in(context, "put", &mut put);
        remote.get_in(context, "small", 0, 0, &mut small);
        remote.put_in(context, "empty", &mut empty);
        assert_eq!(S3_runall_request_context(context), 0);
    }
    assert_eq!(missing.end(), ("C", NOT_FOUND));
    assert_eq!(no_bucket.end(), ("C", NO_SUCH_BUCKET));
    assert_eq!(refused.end(), ("DC", ABORTED));
    assert!(!fixture.holds("never"));
    assert_eq!(given_up.end(), ("PDC", ABORTED));
    assert_eq!(whole.end(), ("PDC", 0));
    assert!(whole.received == large);
    assert_eq!(behind.end(), ("C", 79));
    assert_eq!((put.end(), small.end()), (("DPC", 0), ("PDC", 0)));
    assert_eq!(small.received, b"small");
    assert_eq!(empty.end(), ("PC", 0));
    assert_eq!(remote.get("never", 0, 0).end(), ("C", NO_SUCH_KEY));
    fixture.destroy();
}

#[test]
fn a_callback_may_drive_the_context_and_a_context_may_be_destroyed_before_its_requests() {
    let fixture = Fixture::new("unix");
    let (remote, context) = (&fixture.remote, fixture.context);
    remote.put("k", b"content");
    let (mut driver, mut between) = <(Request, Request)>::default();
    let mut rest: Vec<Request> = (0..100).map(|_| Request::default()).collect();
    // SAFETY: the requests outlive the context.
    unsafe {
        remote.head_and_drive_in(context, "k", &mut driver);
        remote.head_in(context, "k", &mut between);
        for request in &mut rest {
            remote.get_in(context, "k", 0, 0, request);
        }
    }
    // The completion of the first request runs all the others.
    assert_eq!(fixture.once(), 0);
    assert_eq!((driver.end(), between.end()), (("PC", 0), ("PC", 0)));
    for request in &rest {
        assert_eq!(
            (request.end(), &request.received[..]),
            (("PDC", 0), &b"content"[..])
        );
    }
    let (mut told, mut untold) = (Request::with_body(b"1"), Request::with_body(b"2"));
    // SAFETY: as above.
    unsafe {
        remote.put_in(context, "told", &mut told);
        remote.put_in(context, "untold", &mut untold);
    }
    assert_eq!(fixture.once(), 1);
    fixture.destroy();
    assert_eq!(
        (told.end(), untold.end()),
        (("DPC", 0), ("DC", INTERRUPTED))
    );
}

#[test]
fn a_missing_gateway_fails_the_whole_batch() {
    let fixture = Fixture::new("unix");
    let (remote, context) = (&fixture.remote, fixture.context);
    let (mut put, mut head) = (Request::with_body(b"x"), Request::default());
    // SAFETY: the requests outlive the context.
    unsafe {
        remote.put_in(context, "k", &mut put);
        remote.head_in(context, "k", &mut head);
    }
    let Fixture {
        _server: server, ..
    } = fixture;
    server.stop(std::time::Duration::ZERO);
    // SAFETY: as above; nobody uses the context afterwards.
    unsafe {
        assert_eq!(S3_runall_request_context(context), 0);
        S3_destroy_request_context(context);
    }
    assert_eq!((put.events.as_str(), head.events.as_str()), ("DC", "C"));
    assert!(put.status != 0 && head.status != 0);
}
