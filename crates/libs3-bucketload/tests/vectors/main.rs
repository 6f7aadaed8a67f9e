//! Conformance tests that need no C compiler: they call the exported functions directly. The complete
//! set is the C program in `tests/c`, which `cargo xtask conformance libs3` runs.
#![cfg(not(feature = "abi2"))]
#![allow(missing_docs)]

mod batch;
mod calls;

use std::ptr;

use calls::{Request, Store};
use s3::exports::*;

const NO_SUCH_BUCKET: i32 = 101;
const NO_SUCH_KEY: i32 = 102;

#[test]
fn callbacks_come_in_the_order_of_libs3() {
    let store = Store::new("order");
    assert_eq!(store.put("empty", b"").end(), ("PC", 0));
    let small = store.put("small", &[7; 3901]);
    assert_eq!(small.end(), ("DPC", 0));
    assert_eq!(small.data_calls, [3901]);
    let big = store.put("big", &vec![8; 5 << 20]);
    assert_eq!(big.data_calls, [65_536; 80]);
    assert_eq!(store.head("small").end(), ("PC", 0));
    assert_eq!(store.get("small", 0, 0).end(), ("PDC", 0));
    assert_eq!(store.get("empty", 0, 0).end(), ("PC", 0));
    assert_eq!(store.delete("small").end(), ("PC", 0));
    assert_eq!(store.delete("small").end(), ("PC", 0));
    assert_eq!(store.head("small").end(), ("C", 132));
    assert_eq!(store.get("small", 0, 0).end(), ("C", NO_SUCH_KEY));
    assert_eq!(
        Store::other(&store, "missing").get("k", 0, 0).end(),
        ("C", NO_SUCH_BUCKET)
    );
    assert_eq!(store.put(&"k".repeat(1099), b"x").end(), ("C", 30));
}

#[test]
fn ranges_are_clipped_to_the_object() {
    let store = Store::new("ranges");
    let body: Vec<u8> = (0..3901_u32).map(|i| i as u8).collect();
    store.put("k", &body);
    for (start, count, expected) in [
        (0, 0, 0..3901),
        (100, 50, 100..150),
        (3000, 0, 3000..3901),
        (0, 10_000, 0..3901),
        (3900, u64::MAX, 3900..3901),
    ] {
        let got = store.get("k", start, count);
        assert_eq!(got.end(), ("PDC", 0));
        assert_eq!(got.received, body[expected]);
        assert_eq!(got.content_length, got.received.len() as u64);
    }
    assert_eq!(store.get("k", 3901, 1).end(), ("C", 79));
    store.put("empty", b"");
    assert_eq!(store.get("empty", 0, 1).end(), ("C", 79));
}

#[test]
fn a_callback_that_aborts_ends_the_request() {
    let store = Store::new("aborts");
    store.put("k", &[1; 100_000]);
    let mut aborted = Request::with_body(&[2; 200_000]);
    aborted.abort_at = Some(2);
    store.put_request("k", &mut aborted);
    assert_eq!(aborted.end(), ("DC", 47));
    assert_eq!(store.get("k", 0, 0).received, [1; 100_000]);
    let mut aborted = Request::default();
    aborted.abort_at = Some(1);
    store.get_request("k", 0, 0, &mut aborted);
    assert_eq!(aborted.end(), ("PDC", 47));
}

#[test]
fn listings_come_in_batches_and_callbacks_may_delete() {
    let store = Store::new("lists");
    for i in 0..100 {
        store.put(&format!("l/{i:03}"), b"x");
    }
    for i in 0..20 {
        store.put(&format!("t/{i:02}/leaf"), b"x");
    }
    let listed = store.list("l/", "", 0, false);
    assert_eq!(listed.end(), ("PLC", 0));
    assert_eq!(listed.batches, [32, 32, 32, 4]);
    assert!(listed.keys.is_sorted() && listed.keys.len() == 100);
    assert_eq!(store.list("t/", "/", 0, false).batches, [8, 8, 4]);
    assert_eq!(store.list("none", "", 0, false).end(), ("PC", 0));
    let page = store.list("l/", "", 10, false);
    assert!(page.truncated && page.keys.len() == 10 && page.next_marker == "l/009");
    assert_eq!(store.list("", "", i32::MAX, true).keys.len(), 120);
    assert_eq!(store.list("", "", 0, false).end(), ("PC", 0));
}

#[test]
fn a_listing_longer_than_a_page_is_not_truncated() {
    let store = Store::new("pages");
    for i in 0..2_100 {
        store.put(&format!("{i:05}"), b"");
    }
    let all = store.list("", "", i32::MAX, false);
    assert_eq!(all.keys.len(), 2_100);
    assert!(!all.truncated && all.keys.is_sorted());
}

#[test]
fn contexts_call_back_only_when_driven() {
    let store = Store::new("contexts");
    let mut context = ptr::null_mut();
    // SAFETY: the arguments are valid; the requests outlive the context.
    unsafe {
        assert_eq!(S3_create_request_context(&raw mut context), 0);
        let (mut put, mut head) = (Request::with_body(b"abc"), Request::default());
        store.put_in(context, "k", &mut put);
        store.head_in(context, "k", &mut head);
        assert_eq!((put.events.as_str(), head.events.as_str()), ("", ""));
        let mut left = 9;
        assert_eq!(S3_runonce_request_context(context, &raw mut left), 0);
        assert!(left <= 2);
        assert_eq!(S3_runall_request_context(context), 0);
        assert_eq!((put.end(), head.end()), (("DPC", 0), ("PC", 0)));
        let mut pending = Request::default();
        store.head_in(context, "k", &mut pending);
        S3_destroy_request_context(context);
        assert_eq!(pending.end(), ("C", 3));
    }
}

#[test]
fn without_a_directory_requests_name_the_variable_to_set() {
    let store = Store::at(c"s3.example.com", "bucket");
    let refused = store.head("k");
    assert_eq!(refused.end(), ("C", 43));
    assert!(
        refused.message.contains("BUCKETLOAD_S3_ROOT"),
        "{}",
        refused.message
    );
    assert!(!refused.message.contains("secret"));
}

/// Makes requests that fail or are answered with "no", then ends without `S3_deinitialize` if the environment says so.
#[test]
#[ignore = "runs in a process of its own, which the test below starts"]
fn speaker() {
    // SAFETY: the arguments are valid.
    if unsafe { S3_initialize(ptr::null(), 0, ptr::null()) } != 0 {
        return;
    }
    let store = Store::new("speaker");
    store.put("k", b"x");
    assert_eq!(store.head("missing").end(), ("C", 132));
    assert_eq!(store.get("missing", 0, 0).end(), ("C", NO_SUCH_KEY));
    assert_eq!(store.put(&"k".repeat(1099), b"x").end(), ("C", 30));
    assert_eq!(store.get("k", 7, 1).end(), ("C", 79));
    if std::env::var_os("SPEAKER_EXITS").is_none() {
        S3_deinitialize();
    }
}

#[test]
fn refusals_and_failures_are_seen_on_standard_error() {
    let said = |variables: &[(&str, &str)]| {
        let mut speaker = std::process::Command::new(std::env::current_exe().unwrap());
        speaker.args(["--ignored", "--exact", "speaker", "--nocapture"]);
        let output = speaker.envs(variables.iter().copied()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        let lines = said.lines().filter(|line| line.starts_with("libs3 "));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let summary = "libs3 (Bucketload): 2 requests failed, the first with ";
    for ends in [&[][..], &[("SPEAKER_EXITS", "1")]] {
        let lines = said(ends);
        assert!(
            lines.len() == 1 && lines[0].starts_with(summary),
            "{lines:?}"
        );
    }
    let wrong = [("BUCKETLOAD_S3_ETAG", "foo")];
    let both = [
        ("BUCKETLOAD_S3_ETAG", "md5"),
        ("BUCKETLOAD_S3_REMOTE", "tcp://node7:9020"),
    ];
    for (variables, remedy) in [(&wrong[..], "change or unset it"), (&both, "unset it")] {
        let lines = said(variables);
        assert!(
            lines.len() == 1
                && lines[0].contains("S3_initialize failed: BUCKETLOAD_S3_ETAG")
                && lines[0].contains(remedy),
            "{lines:?}"
        );
    }
}

#[test]
fn creating_an_existing_bucket_succeeds() {
    let store = Store::new("again");
    store.put("k", b"x");
    let again = Store::made(&store.host, "again");
    assert_eq!(again.get("k", 0, 0).received, b"x");
}
