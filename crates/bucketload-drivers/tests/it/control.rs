//! Listings, multipart uploads, restoring and the control plane against a scripted responder, which does what the
//! embedded server never does.

use crate::support::{Answer, Received, Responder, op, open, probe, request, run};
use bucketload_core::driver::{Admin, Session};
use bucketload_core::error::ErrorKind;
use bucketload_core::op::{KeySource, Op, OpClass, Request};
use bucketload_core::payload::{Arena, PayloadKind};

fn document(text: &str) -> Answer {
    Answer::ok(format!("<?xml version=\"1.0\"?>\n{text}"))
}

fn page(entries: &str, truncated: bool) -> Answer {
    document(&format!(
        "<R><IsTruncated>{truncated}</IsTruncated>{entries}</R>"
    ))
}

fn keys(names: &[&str]) -> String {
    let one = |name: &&str| format!("<Contents><Key>{name}</Key></Contents>");
    names.iter().map(one).collect()
}

#[test]
fn listings_follow_tokens_and_markers() {
    run(async {
        let server = Responder::start(|r| {
            let more = "<NextContinuationToken>t/1=&amp;</NextContinuationToken>";
            if r.target.contains("continuation-token") || r.target.contains("marker=") {
                page(&keys(&["c"]), false)
            } else {
                page(&format!("{more}{}", keys(&["a", "b &amp; c"])), true)
            }
        })
        .await;
        let mut session = server.session().await;
        let second = Op {
            count: 2,
            ..op(OpClass::List, 0)
        };
        let mut list = request(&second);
        list.key = "p q/";
        list.delimiter = "/";
        let done = session.execute(&list, &mut probe()).await.unwrap();
        assert_eq!(done.items, 3);
        let first = Op {
            class: OpClass::ListV1,
            ..second
        };
        list.op = &first;
        let done = session.execute(&list, &mut probe()).await.unwrap();
        assert_eq!(done.items, 3);
        let a_page = Op { pages: 1, ..first };
        list.op = &a_page;
        list.delimiter = "";
        let done = session.execute(&list, &mut probe()).await.unwrap();
        assert_eq!(done.items, 2);
        assert_eq!(
            server.lines(),
            [
                "GET /bucket?delimiter=%2F&list-type=2&max-keys=2&prefix=p%20q%2F",
                "GET /bucket?continuation-token=t%2F1%3D%26&delimiter=%2F&list-type=2&max-keys=2\
                 &prefix=p%20q%2F",
                "GET /bucket?delimiter=%2F&max-keys=2&prefix=p%20q%2F",
                "GET /bucket?delimiter=%2F&marker=b%20%26%20c&max-keys=2&prefix=p%20q%2F",
                "GET /bucket?max-keys=2&prefix=p%20q%2F",
            ]
        );
    });
}

#[test]
fn small_objects_are_replaced_only_if_nobody_else_has() {
    run(async {
        let server = Responder::start(|r| match (r.method.as_str(), r.header("if-match")) {
            ("GET", _) => Answer::with_fields(200, "ETag: \"one\"\r\n", "body"),
            ("PUT", Some("\"one\"")) if r.target.ends_with("plain") => {
                Answer::error(501, "NotImplemented")
            }
            ("PUT", Some("\"one\"")) => Answer::error(412, "PreconditionFailed"),
            _ => Answer::ok(""),
        })
        .await;
        let mut session = server.session().await;
        let (body, version) = session.get_small_version("bucket", "k").await.unwrap();
        let version = version.as_deref();
        assert_eq!((body.as_slice(), version), (&b"body"[..], Some("\"one\"")));
        let late = session.put_small_if("bucket", "k", b"x", version).await;
        assert_eq!(late.unwrap_err().kind, ErrorKind::Conflict);
        session
            .put_small_if("bucket", "k", b"x", None)
            .await
            .unwrap();
        // A server that has no conditional writes gets another one.
        let put = session.put_small_if("bucket", "plain", b"x", version);
        put.await.unwrap();
        assert_eq!(server.lines()[3..], ["PUT /bucket/plain"; 2]);
    });
}

#[test]
fn endless_listings_are_errors() {
    run(async {
        let server = Responder::start(|r| {
            let token = "<NextContinuationToken>same</NextContinuationToken>";
            match r.target.contains("prefix=loop") {
                true => page(&format!("{token}{}", keys(&["a"])), true),
                false => page("", true),
            }
        })
        .await;
        let mut session = server.session().await;
        for (key, class, requests) in [
            ("loop", OpClass::List, 2),
            ("loop", OpClass::ListV1, 2),
            ("none", OpClass::List, 1),
            ("none", OpClass::ListUploads, 1),
        ] {
            let list_op = op(class, 0);
            let mut list = request(&list_op);
            list.key = key;
            let mut probe = probe();
            let error = session.execute(&list, &mut probe).await.unwrap_err();
            assert_eq!(error.kind, ErrorKind::Protocol, "{error}");
            assert_eq!(probe.requests(), requests);
        }
        let error = session.list_keys("b", "none", None).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Protocol, "{error}");
    });
}

#[test]
fn documents_that_cannot_be_read_are_protocol_errors() {
    run(async {
        let server = Responder::start(|_| Answer::ok("<html><body>login</html>")).await;
        let mut session = server.session().await;
        for class in [
            OpClass::List,
            OpClass::ListUploads,
            OpClass::GetTagging,
            OpClass::ListBuckets,
            OpClass::MultipartAbort,
        ] {
            let result = session.execute(&request(&op(class, 0)), &mut probe()).await;
            assert_eq!(result.unwrap_err().kind, ErrorKind::Protocol, "{class}");
        }
        assert_eq!(
            server.connections.get(),
            1,
            "the connection itself is sound"
        );
    });
}

struct Two;

impl KeySource for Two {
    fn render(&self, i: u64, out: &mut String) {
        out.clear();
        out.push_str(["a<b", "c&d"][i as usize]);
    }
}

#[test]
fn deletions_name_the_first_failure() {
    run(async {
        let server = Responder::start(|r| match r.body.windows(3).any(|w| w == b"c&d") {
            true => panic!("keys are escaped"),
            false => document(
                "<DeleteResult><Error><Key>a</Key><Code>AccessDenied</Code><Message>no</Message>\
                 </Error><Error><Key>b</Key><Code>InternalError</Code><Message>x</Message></Error>\
                 </DeleteResult>",
            ),
        })
        .await;
        let mut session = server.session().await;
        let of = |count| Op {
            count,
            ..op(OpClass::DeleteMany, 0)
        };
        let two = of(2);
        let mut many = request(&two);
        many.keys = Some(&Two);
        let error = session.execute(&many, &mut probe()).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Auth);
        assert_eq!(&*error.detail, "2 keys were not deleted; AccessDenied: no");
        let got = server.last();
        assert_eq!(got.line(), "POST /bucket?delete=");
        assert!(got.header("content-md5").is_some());
        let names = got.header("authorization").unwrap();
        assert!(names.contains("SignedHeaders=content-md5;host;"), "{names}");
        let body = String::from_utf8(got.body).unwrap();
        assert!(body.contains("<Key>a&lt;b</Key>") && body.contains("<Key>c&amp;d</Key>"));
        for count in [0, 1001] {
            let op = of(count);
            let none = Request { op: &op, ..many };
            let error = session.execute(&none, &mut probe()).await.unwrap_err();
            assert_eq!(error.kind, ErrorKind::Rejected);
        }
        assert_eq!(server.lines().len(), 1, "invalid requests are not sent");
    });
}

#[test]
fn failures_after_status_200_are_failures() {
    run(async {
        let server = Responder::start(|r| {
            let text = match r.target.contains("uploads") {
                true => "<R><UploadId>u</UploadId></R>",
                false => "<Error><Code>SlowDown</Code><Message>m</Message></Error>",
            };
            Answer::with_fields(200, "ETag: \"e\"\r\n", text)
        })
        .await;
        let mut session = server.session().await;
        let arena = Arena::new(PayloadKind::Random, 1);
        for class in [OpClass::Copy, OpClass::MultipartPut, OpClass::MultipartCopy] {
            let op = op(class, 100);
            let mut request = request(&op);
            request.source = "source";
            request.content = Some(arena.content(0, 0, 0, 100));
            let error = session.execute(&request, &mut probe()).await.unwrap_err();
            assert_eq!(error.kind, ErrorKind::Throttled, "{class}: {error}");
        }
    });
}

/// Answers a multipart upload.
fn uploads(r: &Received) -> Answer {
    match r.method.as_str() {
        "POST" if r.target.contains("uploads") => {
            document("<R><Bucket>b</Bucket><UploadId>u/+1</UploadId></R>")
        }
        "PUT" if r.header("x-amz-copy-source").is_some() => {
            document("<CopyPartResult><ETag>&quot;c&quot;</ETag></CopyPartResult>")
        }
        "PUT" => Answer::with_fields(200, &format!("ETag: \"{}\"\r\n", r.body.len()), ""),
        "POST" => document(
            "<CompleteMultipartUploadResult><ETag>x</ETag></CompleteMultipartUploadResult>",
        ),
        _ => Answer::raw("HTTP/1.1 204 No Content\r\n\r\n"),
    }
}

/// An operation on `size` bytes in parts of `part` bytes.
fn in_parts(class: OpClass, size: u64, part: u64) -> Op {
    Op {
        count: part,
        ..op(class, size)
    }
}

/// Four connections besides the session's own take parts when they are free; the document that completes the upload has
/// all parts in order.
#[test]
fn parts_are_sent_at_the_same_time_over_connections_of_their_own() {
    run(async {
        let server = Responder::start(uploads).await;
        let mut session = server.session().await;
        let arena = Arena::new(PayloadKind::Random, 1);
        let content = arena.content(0, 0, 0, 650_000);
        let put_op = Op {
            pages: 4,
            ..in_parts(OpClass::MultipartPut, 650_000, 100_000)
        };
        let mut put = request(&put_op);
        put.content = Some(content);
        for round in 0..2 {
            let mut probe = probe();
            let done = session.execute(&put, &mut probe).await.unwrap();
            assert_eq!((done.bytes, done.items, probe.requests()), (650_000, 7, 9));
            // The connections are kept for the next upload.
            assert_eq!(probe.connects().0, if round == 0 { 4 } else { 0 });
            assert_eq!(server.connections.get(), 5);
        }
        let received = server.received.borrow();
        let mut parts: Vec<_> = received[10..17].iter().collect();
        parts.sort_by_key(|r| r.target.clone());
        let mut whole = vec![0; 650_000];
        content.fill(0, &mut whole);
        assert!(parts.iter().flat_map(|r| &r.body).eq(&whole));
        let complete = String::from_utf8(received[17].body.clone()).unwrap();
        let numbers: Vec<&str> = complete.split("<PartNumber>").skip(1).collect();
        assert!(
            (1..8)
                .zip(&numbers)
                .all(|(n, text)| text.starts_with(&n.to_string()))
        );
        assert!(complete.contains(
            "<Part><ETag>&quot;50000&quot;</ETag><PartNumber>7</PartNumber></Part></Complete"
        ));
    });
}

#[test]
fn a_part_without_an_answer_does_not_hold_up_the_others() {
    run(async {
        let server = Responder::start(|r| {
            let mut answer = uploads(r);
            answer.silent = r.target.contains("partNumber=1&");
            answer
        })
        .await;
        let mut session = server.session().await;
        let arena = Arena::new(PayloadKind::Random, 1);
        let put_op = Op {
            pages: 3,
            ..in_parts(OpClass::MultipartPut, 650_000, 100_000)
        };
        let mut put = request(&put_op);
        put.content = Some(arena.content(0, 0, 0, 650_000));
        let mut probe = probe();
        let mut upload = std::pin::pin!(session.execute(&put, &mut probe));
        let begun = std::time::Instant::now();
        // The start of the upload and its seven parts.
        while server.received.borrow().len() < 8 {
            assert!(begun.elapsed().as_secs() < 60, "{:?}", server.lines());
            let polled =
                std::future::poll_fn(|cx| std::task::Poll::Ready(upload.as_mut().poll(cx)));
            assert!(polled.await.is_pending());
            tokio::task::yield_now().await;
        }
        assert!(
            server.lines()[1..]
                .iter()
                .all(|line| line.starts_with("PUT"))
        );
    });
}

#[test]
fn one_failed_part_ends_the_upload() {
    run(async {
        let server = Responder::start(|r| match r.target.contains("partNumber=5") {
            true => Answer::error(500, "InternalError"),
            false => uploads(r),
        })
        .await;
        let mut session = server.session().await;
        let arena = Arena::new(PayloadKind::Random, 1);
        let put_op = Op {
            pages: 3,
            ..in_parts(OpClass::MultipartPut, 650_000, 100_000)
        };
        let mut put = request(&put_op);
        put.content = Some(arena.content(0, 0, 0, 650_000));
        let error = session.execute(&put, &mut probe()).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Server);
        let completed = |r: &Received| r.method == "POST" && !r.target.contains("uploads=");
        assert!(!server.received.borrow().iter().any(completed));
    });
}

#[test]
fn multipart_uploads_send_their_parts_in_order() {
    run(async {
        let server = Responder::start(uploads).await;
        let mut session = server.session().await;
        let arena = Arena::new(PayloadKind::Random, 1);
        let content = arena.content(0, 0, 0, 250_000);
        let put_op = in_parts(OpClass::MultipartPut, 250_000, 100_000);
        let mut put = request(&put_op);
        put.content = Some(content);
        let mut first = probe();
        let done = session.execute(&put, &mut first).await.unwrap();
        assert_eq!((done.bytes, done.items, first.requests()), (250_000, 3, 5));
        assert_eq!(
            server.lines(),
            [
                "POST /bucket/key?uploads=",
                "PUT /bucket/key?partNumber=1&uploadId=u%2F%2B1",
                "PUT /bucket/key?partNumber=2&uploadId=u%2F%2B1",
                "PUT /bucket/key?partNumber=3&uploadId=u%2F%2B1",
                "POST /bucket/key?uploadId=u%2F%2B1",
            ]
        );
        let bodies: Vec<_> = server.received.borrow()[1..4]
            .iter()
            .map(|r| r.body.clone())
            .collect();
        let mut whole = vec![0; 250_000];
        content.fill(0, &mut whole);
        assert!(bodies.concat() == whole);
        let complete = String::from_utf8(server.last().body).unwrap();
        assert!(complete.contains(
            "<Part><ETag>&quot;50000&quot;</ETag><PartNumber>3</PartNumber></Part></Complete"
        ));
    });
}

#[test]
fn copied_parts_name_their_ranges() {
    run(async {
        let server = Responder::start(uploads).await;
        let mut session = server.session().await;
        let known = in_parts(OpClass::MultipartCopy, 25, 10);
        let mut copy = request(&known);
        copy.source = "so urce";
        let done = session.execute(&copy, &mut probe()).await.unwrap();
        assert_eq!(done.items, 3);
        let ranges: Vec<_> = server.received.borrow()[1..4]
            .iter()
            .map(|r| r.header("x-amz-copy-source-range").unwrap().to_owned())
            .collect();
        assert_eq!(ranges, ["bytes=0-9", "bytes=10-19", "bytes=20-24"]);
        let source = server.received.borrow()[1]
            .header("x-amz-copy-source")
            .map(str::to_owned);
        assert_eq!(source.as_deref(), Some("/bucket/so%20urce"));
        let unknown = Op {
            size: Op::UNKNOWN_SIZE,
            ..known
        };
        copy.op = &unknown;
        let done = session.execute(&copy, &mut probe()).await.unwrap();
        assert_eq!(done.items, 1);
        let received = server.received.borrow();
        assert_eq!(received[6].header("x-amz-copy-source-range"), None);
    });
}

#[test]
fn too_many_parts_are_refused_before_the_first_request() {
    run(async {
        let server = Responder::start(uploads).await;
        let mut session = server.session().await;
        let arena = Arena::new(PayloadKind::Zeros, 1);
        let put_op = in_parts(OpClass::MultipartPut, 10_001, 1);
        let mut put = request(&put_op);
        put.content = Some(arena.content(0, 0, 0, 10_001));
        let error = session.execute(&put, &mut probe()).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Rejected);
        assert!(error.detail.contains("raise the part size"), "{error}");
        assert_eq!(server.lines().len(), 0);
    });
}

#[test]
fn only_own_uploads_are_aborted() {
    run(async {
        let server = Responder::start(|r| match r.method.as_str() {
            // Like MinIO: nothing under a prefix, everything without one.
            "GET" if r.target.contains("prefix=run") => page("", false),
            "GET" if r.target.contains("key-marker") => page(
                "<Upload><Key>run/c</Key><UploadId>3</UploadId></Upload>",
                false,
            ),
            "GET" => page(
                "<NextKeyMarker>x</NextKeyMarker><NextUploadIdMarker>2</NextUploadIdMarker>\
                 <Upload><Key>run/a</Key><UploadId>1</UploadId></Upload>\
                 <Upload><Key>other</Key><UploadId>2</UploadId></Upload>",
                true,
            ),
            _ if r.target.contains("run/c") => Answer::error(404, "NoSuchUpload"),
            _ => Answer::raw("HTTP/1.1 204 No Content\r\n\r\n"),
        })
        .await;
        let mut session = server.session().await;
        assert_eq!(session.abort_uploads("bucket", "run/").await.unwrap(), 1);
        let deletes: Vec<_> = server
            .lines()
            .into_iter()
            .filter(|l| l.starts_with("DELETE"))
            .collect();
        assert_eq!(
            deletes,
            [
                "DELETE /bucket/run/a?uploadId=1",
                "DELETE /bucket/run/c?uploadId=3"
            ]
        );
    });
}

#[test]
fn stores_without_multipart_or_bulk_deletion_are_cleaned_up_too() {
    run(async {
        let server = Responder::start(|r| match r.method.as_str() {
            "GET" | "POST" => Answer::error(501, "NotImplemented"),
            _ if r.target.ends_with("gone") => Answer::error(404, "NoSuchKey"),
            _ => Answer::raw("HTTP/1.1 204 No Content\r\n\r\n"),
        })
        .await;
        let mut session = server.session().await;
        assert_eq!(session.abort_uploads("bucket", "").await.unwrap(), 0);
        let keys = ["a".to_owned(), "gone".to_owned(), "b".to_owned()];
        session.delete_keys("bucket", &keys).await.unwrap();
        let lines = server.lines();
        assert_eq!(
            lines[lines.len() - 3..],
            [
                "DELETE /bucket/a",
                "DELETE /bucket/gone",
                "DELETE /bucket/b"
            ]
        );
    });
}

#[test]
fn keys_of_listings_are_decoded() {
    run(async {
        let server = Responder::start(|_| {
            page(
                "<EncodingType>url</EncodingType><Contents><Key>a%20b+c%2Bd/%C3%A4</Key></Contents>",
                false,
            )
        })
        .await;
        let mut session = server.session().await;
        let page = session.list_keys("bucket", "a b", None).await.unwrap();
        assert_eq!(page.keys, ["a b c+d/\u{e4}"]);
        assert_eq!(page.next, None);
        assert!(server.lines()[0].contains("encoding-type=url"));
    });
}

#[test]
fn an_unusable_bucket_is_explained_although_head_responses_have_no_body() {
    run(async {
        let server = Responder::start(|r| match r.method.as_str() {
            "HEAD" if r.target.ends_with("absent") => Answer::raw("HTTP/1.1 404 Not Found\r\n\r\n"),
            "HEAD" => Answer::raw("HTTP/1.1 403 Forbidden\r\nContent-Length: 300\r\n\r\n"),
            _ => Answer::error(403, "InvalidAccessKeyId"),
        })
        .await;
        let mut session = server.session().await;
        let error = session.ensure_bucket("bucket").await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Auth);
        assert!(error.detail.contains("InvalidAccessKeyId"), "{error}");
        let error = session.head_bucket("absent").await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::NotFound);
        assert!(error.detail.contains("no bucket `absent`"), "{error}");
    });
}

#[test]
fn a_bucket_is_created_in_the_configured_region() {
    run(async {
        let server = Responder::start(|r| match r.method.as_str() {
            "HEAD" => Answer::raw("HTTP/1.1 404 Not Found\r\n\r\n"),
            _ => Answer::ok(""),
        })
        .await;
        for region in ["us-east-1", "eu-west-1"] {
            let mut config = server.config();
            config.region = region.to_owned();
            let mut session = open(config).await;
            assert!(session.ensure_bucket("bucket").await.unwrap());
            let body = String::from_utf8(server.last().body).unwrap();
            let named = body.contains("<LocationConstraint>eu-west-1</LocationConstraint>");
            assert_eq!(
                (named, body.is_empty()),
                (region != "us-east-1", region == "us-east-1")
            );
        }
    });
}

#[test]
fn a_restore_sends_days_and_fails_for_objects_that_are_not_archived() {
    run(async {
        let server = Responder::start(|asked| match asked.line().contains("archived") {
            true => Answer::status(202, []),
            false => Answer::status(
                403,
                "<Error><Code>InvalidObjectState</Code><Message>not archived</Message></Error>",
            ),
        })
        .await;
        let mut session = server.session().await;
        let op = Op {
            count: 14,
            ..op(OpClass::Restore, 0)
        };
        let mut request = request(&op);
        request.key = "archived";
        session.execute(&request, &mut probe()).await.unwrap();
        let asked = server.last();
        assert_eq!(asked.line(), "POST /bucket/archived?restore=");
        let body = String::from_utf8(asked.body.clone()).unwrap();
        assert!(body.contains("<Days>14</Days>"), "{body}");
        request.key = "present";
        // Refused because of the object's state, not the credentials: runs continue.
        let refused = session.execute(&request, &mut probe()).await;
        assert_eq!(refused.unwrap_err().kind, ErrorKind::Rejected);
    });
}
