//! Each quirk, as a client sees it: the request that shows it, the proper answer and the bent one.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bucketload_server::{Quirk, Server, ServerHandle};

use super::client::{Client, Request, Response, config, memory, req};

/// A server with quirks and one without, over the same store.
struct Servers {
    /// The client of the server under test.
    c: Client,
    /// The client of the server without quirks.
    plain: Client,
    /// They end with these.
    _handles: [ServerHandle; 2],
}

const CONTENT: &str = "0123456789";
const DELETION: &str = "<Delete><Object><Key>a</Key></Object></Delete>";
const TAGS: &str = "<Tagging><TagSet><Tag><Key>k</Key><Value>v</Value></Tag></TagSet></Tagging>";

fn servers(quirk: Option<Quirk>) -> Servers {
    let store = memory();
    store.create_bucket("bucket").unwrap();
    let mut bent = config();
    bent.quirks = quirk.into_iter().collect();
    let bent = Server::start(bent, Arc::clone(&store)).unwrap();
    let plain = Server::start(config(), store).unwrap();
    let mut servers = Servers {
        c: Client::new(&bent),
        plain: Client::new(&plain),
        _handles: [bent, plain],
    };
    for key in ["a", "b", "d/e"] {
        servers.plain.put(&format!("/bucket/{key}"), CONTENT);
    }
    servers
}

/// Status and error code.
fn brief(answer: &Response) -> String {
    match answer.element("Code") {
        Some(code) => format!("{} {code}", answer.status),
        None => answer.status.to_string(),
    }
}

impl Servers {
    fn ask(&mut self, request: &Request) -> String {
        brief(&self.c.send(request))
    }

    fn get_with(&mut self, name: &str, value: &str) -> String {
        let answer = self.c.send(&req("GET", "/bucket/a").header(name, value));
        match answer.status {
            200 | 206 => format!("{} {}", answer.status, answer.text()),
            _ => brief(&answer),
        }
    }

    fn put_with(&mut self, name: &str, value: &str) -> String {
        self.ask(&req("PUT", "/bucket/a").header(name, value).body("abc"))
    }

    fn keys(&mut self, query: &str) -> String {
        let path = format!("/bucket?list-type=2{query}");
        self.c.get(&path).is(200).elements("Key").join(",")
    }

    /// The path and query of a new upload.
    fn upload(&mut self) -> String {
        let created = self.plain.send(&req("POST", "/bucket/m?uploads")).is(200);
        format!(
            "/bucket/m?uploadId={}",
            created.element("UploadId").unwrap()
        )
    }

    fn checksums(&mut self) -> String {
        let wrong = self.put_with("x-amz-checksum-crc32", "AAAAAA==");
        let right = req("PUT", "/bucket/b").header("x-amz-checksum-crc32", "NSRBwg==");
        let told = self.c.send(&right.body("abc")).is(200);
        let kept = self
            .c
            .send(&req("HEAD", "/bucket/b").header("x-amz-checksum-mode", "ENABLED"));
        let sum = |answer: &Response| answer.header("x-amz-checksum-crc32").map(str::to_owned);
        format!("{wrong}, {:?}, {:?}", sum(&told), sum(&kept.is(200)))
    }
}

/// What the request that shows a quirk observes, without the quirk and with it.
type Case = (&'static str, &'static str, fn(&mut Servers) -> String);

fn case(quirk: Quirk) -> Case {
    const REFUSED: &str = "501 NotImplemented";
    const DENIED: &str = "403 AccessDenied";
    match quirk {
        Quirk::ClockAhead => ("200", "403 RequestTimeTooSkewed", |s| {
            s.ask(&req("GET", "/bucket/a"))
        }),
        Quirk::WrongRegion => (
            "200 None",
            "400 AuthorizationHeaderMalformed Some(\"eu-quirk-1\")",
            |s| {
                let answer = s.c.get("/bucket/a");
                format!("{} {:?}", brief(&answer), answer.element("Region"))
            },
        ),
        Quirk::NoKeepAlive => ("None", "Some(\"close\") true", |s| {
            let answer = s.c.get("/bucket/a").is(200);
            match answer.header("connection") {
                None => "None".to_owned(),
                told => format!("{told:?} {}", s.c.ended()),
            }
        }),
        Quirk::SlowAnswers => ("quick", "slow", |s| {
            let time = |_| {
                let start = Instant::now();
                s.c.get("/bucket/a").is(200);
                start.elapsed()
            };
            let least = (0..5).map(time).min();
            let slow = least >= Some(Duration::from_millis(200));
            if slow { "slow" } else { "quick" }.to_owned()
        }),
        Quirk::ListV2Refused => ("200", REFUSED, |s| {
            s.ask(&req("GET", "/bucket?list-type=2"))
        }),
        Quirk::ListV2Ignored => ("Some(\"1\") None", "None Some(\"\")", |s| {
            let answer = s.c.get("/bucket?list-type=2&start-after=b").is(200);
            format!(
                "{:?} {:?}",
                answer.element("KeyCount"),
                answer.element("Marker")
            )
        }),
        Quirk::ListV1Refused => ("200", REFUSED, |s| s.ask(&req("GET", "/bucket"))),
        Quirk::ListIncomplete => ("a,b,d/e", "a,b", |s| s.keys("")),
        Quirk::ListUnsorted => ("a,b,d/e", "d/e,b,a", |s| s.keys("")),
        Quirk::ListMaxKeysIgnored => ("a", "a,b,d/e", |s| s.keys("&max-keys=1")),
        Quirk::ListPagingBroken => ("a true", "a false", |s| {
            let answer = s.c.get("/bucket?list-type=2&max-keys=1").is(200);
            let truncated = answer.element("IsTruncated").unwrap();
            format!("{} {truncated}", answer.elements("Key").join(","))
        }),
        Quirk::ListDelimiterIgnored => ("a,b", "a,b,d/e", |s| s.keys("&delimiter=/")),
        Quirk::ListEncodingIgnored => ("%C3%A9", "é", |s| {
            s.plain.put("/bucket/é", "");
            s.keys("&prefix=é&encoding-type=url")
        }),
        Quirk::ListStale => ("a,b,d/e,new", "a,b,d/e", |s| {
            s.c.put("/bucket/new", "");
            s.keys("")
        }),
        Quirk::ReadStale => ("two", "one", |s| {
            s.c.put("/bucket/a", "one");
            s.c.put("/bucket/a", "two");
            s.c.get("/bucket/a").text().to_owned()
        }),
        Quirk::ReadShort => ("10 of 10", "5 of 10", |s| {
            let bytes = req("GET", "/bucket/a").render(&s.c.signer);
            std::io::Write::write_all(&mut s.c.stream, &bytes).unwrap();
            let answer = s.c.try_receive(false).unwrap_or_else(|cut| cut).is(200);
            let announced = answer.header("content-length").unwrap();
            format!("{} of {announced}", answer.body.len())
        }),
        Quirk::RangeIgnored => ("206 23", "200 0123456789", |s| {
            s.get_with("Range", "bytes=2-3")
        }),
        Quirk::SuffixRangeRefused => ("206 89", "416 InvalidRange", |s| {
            s.get_with("Range", "bytes=-2")
        }),
        Quirk::RangeNo416 => ("416 InvalidRange", "200 0123456789", |s| {
            s.get_with("Range", "bytes=100-")
        }),
        Quirk::PutIfNoneMatchIgnored => ("412 PreconditionFailed", "200", |s| {
            s.put_with("If-None-Match", "*")
        }),
        Quirk::PutIfNoneMatchRefused => ("412 PreconditionFailed", REFUSED, |s| {
            s.put_with("If-None-Match", "*")
        }),
        Quirk::PutIfMatchIgnored => ("412 PreconditionFailed", "200", |s| {
            s.put_with("If-Match", "\"d41d8cd98f00b204e9800998ecf8427e\"")
        }),
        Quirk::AppendOffsetIgnored => ("400 InvalidWriteOffset 10", "200 13", |s| {
            let told = s.put_with("x-amz-write-offset-bytes", "7");
            format!("{told} {}", s.plain.get("/bucket/a").is(200).body.len())
        }),
        Quirk::GetConditionsIgnored => ("304", "200 0123456789", |s| {
            let tag = s.plain.get("/bucket/a").header("etag").unwrap().to_owned();
            s.get_with("If-None-Match", &tag)
        }),
        Quirk::MultipartRefused => ("200", REFUSED, |s| s.ask(&req("POST", "/bucket/m?uploads"))),
        Quirk::MultipartForgotten => ("200", "404 NoSuchUpload", |s| {
            let part = s.upload() + "&partNumber=1";
            s.ask(&req("PUT", &part).body("abc"))
        }),
        Quirk::MultipartAbortRefused => ("204", REFUSED, |s| {
            let upload = s.upload();
            s.ask(&req("DELETE", &upload))
        }),
        Quirk::MultipartListPartsRefused => ("200", REFUSED, |s| {
            let upload = s.upload();
            s.ask(&req("GET", &upload))
        }),
        Quirk::ChunkedTrailersRefused => ("200", REFUSED, |s| {
            let chunked = req("PUT", "/bucket/a")
                .header("x-amz-content-sha256", "STREAMING-UNSIGNED-PAYLOAD-TRAILER")
                .header("x-amz-decoded-content-length", "3")
                .header("x-amz-trailer", "x-amz-checksum-crc32");
            s.ask(&chunked.body("3\r\nabc\r\n0\r\nx-amz-checksum-crc32:NSRBwg==\r\n\r\n"))
        }),
        Quirk::ChecksumsIgnored => (
            "400 BadDigest, Some(\"NSRBwg==\"), Some(\"NSRBwg==\")",
            "200, None, None",
            Servers::checksums,
        ),
        Quirk::ContentMd5Ignored => ("400 BadDigest", "200", |s| {
            s.put_with("Content-MD5", "AAAAAAAAAAAAAAAAAAAAAA==")
        }),
        Quirk::PayloadHashIgnored => ("400 XAmzContentSHA256Mismatch", "200", |s| {
            s.put_with("x-amz-content-sha256", &"0".repeat(64))
        }),
        Quirk::DeleteManyRefused => ("200", REFUSED, |s| {
            s.ask(&req("POST", "/bucket?delete").body(DELETION))
        }),
        Quirk::DeleteManySilent => ("a, then 404 NoSuchKey", "a, then 200", |s| {
            let answer = s.c.send(&req("POST", "/bucket?delete").body(DELETION));
            let deleted = answer.elements("Key").join(",");
            format!("{deleted}, then {}", brief(&s.plain.get("/bucket/a")))
        }),
        Quirk::DeleteMissing404 => ("204", "404 NoSuchKey", |s| {
            s.ask(&req("DELETE", "/bucket/none"))
        }),
        Quirk::CopyRefused => ("200", REFUSED, |s| {
            s.ask(&req("PUT", "/bucket/copy").header("x-amz-copy-source", "/bucket/a"))
        }),
        Quirk::TaggingRefused => ("200", REFUSED, |s| s.ask(&req("GET", "/bucket/a?tagging"))),
        Quirk::TaggingOverwrites => (CONTENT, TAGS, |s| {
            s.c.send(&req("PUT", "/bucket/a?tagging").body(TAGS))
                .is(200);
            s.plain.get("/bucket/a").text().to_owned()
        }),
        Quirk::MetadataDropped => ("Some(\"red\")", "None", |s| {
            let put = req("PUT", "/bucket/a").header("x-amz-meta-colour", "red");
            s.plain.send(&put.body("")).is(200);
            let answer = s.c.send(&req("HEAD", "/bucket/a")).is(200);
            format!("{:?}", answer.header("x-amz-meta-colour"))
        }),
        Quirk::HeadRefused => ("200", "405", |s| s.ask(&req("HEAD", "/bucket/a"))),
        Quirk::KeysMangled => ("x+y", "x y", |s| {
            s.c.put("/bucket/x+y", "");
            s.keys("&prefix=x")
        }),
        Quirk::ErrorsWithoutXml => ("404 NoSuchKey application/xml", "404 text/html", |s| {
            let answer = s.c.get("/bucket/none");
            format!(
                "{} {}",
                brief(&answer),
                answer.header("content-type").unwrap()
            )
        }),
        Quirk::PutDenied => ("200", DENIED, |s| s.ask(&req("PUT", "/bucket/a").body("x"))),
        Quirk::ListDenied => ("200", DENIED, |s| s.ask(&req("GET", "/bucket?list-type=2"))),
        Quirk::DeleteDenied => ("204", DENIED, |s| s.ask(&req("DELETE", "/bucket/a"))),
        Quirk::EtagMissing => ("true true", "false false", |s| {
            let put = s.c.put("/bucket/a", "x").header("etag").is_some();
            format!("{put} {}", s.c.get("/bucket/a").header("etag").is_some())
        }),
        Quirk::DateMissing => ("true", "false", |s| {
            s.c.get("/bucket/a")
                .is(200)
                .header("date")
                .is_some()
                .to_string()
        }),
    }
}

#[test]
fn each_quirk_shows_and_only_if_it_is_asked_for() {
    for &quirk in Quirk::ALL {
        let (proper, bent, observe) = case(quirk);
        assert_ne!(proper, bent, "{}", quirk.name());
        let of = |quirk| observe(&mut servers(quirk));
        assert_eq!(of(None), proper, "without {}", quirk.name());
        assert_eq!(of(Some(quirk)), bent, "{}", quirk.name());
    }
}

#[test]
fn staleness_ends() {
    let end = |s: &mut Servers, observe: fn(&mut Servers) -> String, last: &str| {
        let start = Instant::now();
        while observe(s) != last {
            assert!(start.elapsed() < Duration::from_secs(20));
        }
        start.elapsed() > Duration::from_secs(1)
    };
    let mut s = servers(Some(Quirk::ReadStale));
    s.c.put("/bucket/a", "new");
    assert!(end(
        &mut s,
        |s| s.c.get("/bucket/a").text().to_owned(),
        "new"
    ));
    s.c.put("/bucket/a", "newer");
    s.c.send(&req("DELETE", "/bucket/a")).is(204);
    s.c.get("/bucket/a").is_error(404, "NoSuchKey");
    let mut s = servers(Some(Quirk::ListStale));
    s.c.put("/bucket/new", "");
    assert!(end(&mut s, |s| s.keys("&prefix=n"), "new"));
    s.c.send(&req("DELETE", "/bucket/a")).is(204);
    assert_eq!(s.keys(""), "b,d/e,new");
}

#[test]
fn quirks_combine() {
    let mut both = config();
    both.quirks = [
        Quirk::NoKeepAlive,
        Quirk::ErrorsWithoutXml,
        Quirk::DateMissing,
    ]
    .into_iter()
    .collect();
    let (_server, mut c) = super::client::start_with(both);
    let answer = c.get("/bucket/none").is(404);
    assert_eq!(answer.header("content-type"), Some("text/html"));
    assert_eq!(answer.header("connection"), Some("close"));
    assert_eq!(answer.header("date"), None);
    assert!(c.ended());
}
