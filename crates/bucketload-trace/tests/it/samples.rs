//! Every format on a synthetic sample of 10^5 lines: detected, imported and counted, with broken lines among the valid
//! ones.

use std::fmt::Write as _;

use crate::support::prepared;
use bucketload_core::generate::rng::mix64;
use bucketload_trace::{Column, Format, Layout, PrepareOptions, TimeForm, Untimed};

const LINES: u64 = 100_000;
/// One line in this many is broken: below the accepted thousandth.
const EVERY: u64 = 2_000;

/// The method of each operation.
const METHODS: [&str; 8] = ["PUT", "GET", "GET", "GET", "GET", "GET", "GET", "HEAD"];
/// Its name in the S3 API.
const CALLS: [&str; 8] = [
    "PutObject",
    "GetObject",
    "GetObject",
    "GetObject",
    "GetObject",
    "GetObject",
    "GetObject",
    "HeadObject",
];

/// The contents of line `i`: operation by number (0 write, 1-8 read, 9 head), key, size, instant in
/// milliseconds.
fn fact(i: u64) -> (u64, u64, u64, u64) {
    let hash = mix64(i);
    let key = hash % 3000;
    (hash >> 32 & 7, key, 1 + mix64(key) % 1_000_000, i * 3)
}

/// Makes a sample with `line`; every [`EVERY`]th line is cut in the middle.
fn sample(header: &str, line: impl Fn(u64) -> String) -> Vec<u8> {
    sample_cut(header, 2, line)
}

/// Makes a sample whose broken lines are cut to one part in `parts`.
fn sample_cut(header: &str, parts: usize, line: impl Fn(u64) -> String) -> Vec<u8> {
    let mut text = header.to_owned();
    for i in 0..LINES {
        let whole = line(i);
        let end = if i % EVERY == EVERY / 2 {
            whole.len() / parts
        } else {
            whole.len()
        };
        let _ = writeln!(text, "{}", &whole[..end]);
    }
    text.into_bytes()
}

/// Imports a sample; all lines but the broken ones are replayed.
fn check(name: &str, format: Format, text: &[u8], change: impl FnOnce(&mut PrepareOptions)) {
    let p = prepared(&[(name, text)], change).unwrap_or_else(|e| panic!("{name}: {e}"));
    let s = &p.summary;
    assert_eq!(s.files[0].format, format.name());
    assert_eq!(s.files[0].bytes, text.len() as u64);
    let broken = LINES / EVERY;
    let lost: u64 = [
        "truncated",
        "malformed",
        "bad-number",
        "bad-timestamp",
        "unknown-op",
    ]
    .iter()
    .filter_map(|reason| s.dropped.get(*reason))
    .sum();
    assert_eq!(lost, broken, "{name}: {:?}", s.dropped);
    assert_eq!(s.records, LINES - broken, "{name}: {:?}", s.dropped);
    assert_eq!(p.records.len() as u64, s.records);
    assert!(p.records.is_sorted_by_key(|row| row.0.ts_ns), "{name}");
    // Half of the keys are read before they are written.
    assert!(s.keys > 2900 && s.preload_objects > 1000, "{name}: {s:?}");
    assert!(p.records.iter().all(|row| row.0.size >= 0), "{name}");
}

/// `2031-03-14T…Z` of an instant in milliseconds of one day.
fn instant(ms: u64) -> String {
    let s = ms / 1000;
    format!(
        "2031-03-14T{:02}:{:02}:{:02}.{:03}Z",
        s / 3600,
        s / 60 % 60,
        s % 60,
        ms % 1000
    )
}

fn clock(ms: u64) -> String {
    let s = ms / 1000;
    format!("{:02}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60)
}

#[test]
fn ibm_cos() {
    // Half a line would be a valid line without a size, so the cut is inside the operation.
    let text = sample_cut("", 4, |i| {
        let (op, key, size, ms) = fact(i);
        let op = METHODS[op as usize];
        format!("{ms} REST.{op}.OBJECT {key:016x} {size} 0 {}", size - 1)
    });
    check("ibm", Format::IbmCos, &text, |_| {});
}

#[test]
fn s3_access_logs() {
    let text = sample("", |i| {
        let (op, key, size, ms) = fact(i);
        let op = METHODS[op as usize];
        format!(
            "own b [14/Mar/2031:{} +0000] 203.0.113.{} - R{i} REST.{op}.OBJECT k/{key} \
             \"{op} /b/k/{key} HTTP/1.1\" 200 - {size} {size} 12 11 \"-\" \"synthetic\" - h SigV4",
            clock(ms),
            key % 250
        )
    });
    check("access.log", Format::S3Access, &text, |_| {});
    let text = sample("", |i| {
        let (op, key, size, ms) = fact(i);
        let op = METHODS[op as usize];
        format!(
            "{{\"bucket_name\":\"b\",\"request_time\":\"{}\",\"remote_ip\":\"203.0.113.1\",\
             \"request_id\":\"R{i}\",\"operation\":\"REST.{op}.OBJECT\",\"key\":\"k/{key}\",\
             \"http_status\":200,\"bytes_sent\":{size},\"object_size\":{size},\"total_time\":12}}",
            instant(ms)
        )
    });
    check("access.json", Format::S3AccessJson, &text, |_| {});
}

#[test]
fn cloudtrail_events() {
    let text = sample("{\"Records\":[\n", |i| {
        let (op, key, size, ms) = fact(i);
        let name = CALLS[op as usize];
        format!(
            "{{\"eventTime\":\"2031-03-14T{}Z\",\"eventSource\":\"s3.amazonaws.com\",\
             \"eventName\":\"{name}\",\"sourceIPAddress\":\"203.0.113.1\",\
             \"requestParameters\":{{\"bucketName\":\"b\",\"key\":\"k/{key}\"}},\
             \"additionalEventData\":{{\"bytesTransferredIn\":{size},\"bytesTransferredOut\":{size}}},\
             \"eventID\":\"E{i}\"}},",
            clock(ms)
        )
    });
    check("cloudtrail.json", Format::CloudTrail, &text, |_| {});
}

#[test]
fn minio_logs() {
    let text = sample("", |i| {
        let (op, key, size, ms) = fact(i);
        let name = CALLS[op as usize];
        format!(
            "{{\"version\":\"1\",\"time\":\"{}\",\"api\":{{\"name\":\"{name}\",\"bucket\":\"b\",\
             \"object\":\"k/{key}\",\"statusCode\":200,\"rx\":{size},\"tx\":{size},\
             \"timeToResponseInNS\":\"1000\"}},\"remotehost\":\"203.0.113.1\",\"requestID\":\"R{i}\"}}",
            instant(ms)
        )
    });
    check("audit.json", Format::MinioAudit, &text, |_| {});
    let text = sample("", |i| {
        let (op, key, size, ms) = fact(i);
        let name = CALLS[op as usize];
        format!(
            "{{\"time\":\"{}\",\"client\":\"203.0.113.1\",\"callStats\":{{\"rx\":{size},\
             \"tx\":{size},\"duration\":1000}},\"api\":\"s3.{name}\",\"path\":\"/b/k/{key}\",\
             \"statusCode\":200,\"type\":\"s3\"}}",
            instant(ms)
        )
    });
    check("trace.json", Format::MinioTrace, &text, |_| {});
}

#[test]
fn ceph_rgw_ops_log() {
    let text = sample("", |i| {
        let (op, key, size, ms) = fact(i);
        let (name, method) = match op {
            0 => ("put_obj", "PUT"),
            7 => ("get_obj", "HEAD"),
            _ => ("get_obj", "GET"),
        };
        format!(
            "{{\"bucket\":\"b\",\"object\":\"k/{key}\",\"time\":\"{}\",\"remote_addr\":\"203.0.113.1\",\
             \"operation\":\"{name}\",\"uri\":\"{method} /b/k/{key} HTTP/1.1\",\"http_status\":\"200\",\
             \"bytes_sent\":{size},\"bytes_received\":{size},\"object_size\":{size},\"total_time\":3,\
             \"trans_id\":\"tx{i}\"}}",
            instant(ms)
        )
    });
    check("rgw.json", Format::Rgw, &text, |_| {});
}

#[test]
fn swift_proxy_log() {
    let text = sample("", |i| {
        let (op, key, size, ms) = fact(i);
        let method = METHODS[op as usize];
        let start = 1_931_212_800_000 + ms;
        format!(
            "Mar 14 09:26:53 proxy proxy-server: 203.0.113.1 198.51.100.7 \
             14/Mar/2031/{} {method} /v1/AUTH_s/b/k%2D{key} HTTP/1.1 200 - synthetic tk {size} \
             {size} - tx{i} - 0.0100 - - {}.{:03}000000 {}.{:03}000000 0",
            clock(ms).replace(':', "/"),
            start / 1000,
            start % 1000,
            (start + 10) / 1000,
            (start + 10) % 1000
        )
    });
    check("swift.log", Format::Swift, &text, |_| {});
}

#[test]
fn cache_traces() {
    let text = sample("", |i| {
        let (op, key, size, ms) = fact(i);
        let op = if op == 0 { "set" } else { "get" };
        format!("{},key:{key},9,{size},{},{op},0", ms / 1000, key % 50)
    });
    check("twitter.csv", Format::Twitter, &text, |_| {});
    let text = sample("key,op,size,op_count,key_size\n", |i| {
        let (op, key, size, _) = fact(i);
        let op = if op == 0 { "SET" } else { "GET" };
        format!("{key},{op},{size},1,7")
    });
    check("cachelib.csv", Format::CacheLib, &text, |o| {
        o.untimed = Some(Untimed::Constant(1000.0));
    });
}

#[test]
fn separated_values() {
    let text = sample("ts_ns,op,bucket,key,size,off,len,client,status\n", |i| {
        let (op, key, size, ms) = fact(i);
        let op = METHODS[op as usize];
        format!("{}000000,{op},b,k/{key},{size},0,-1,c,200", ms)
    });
    check("native.csv", Format::Native, &text, |_| {});
    let text = sample("", |i| {
        let (op, key, size, ms) = fact(i);
        let op = ["W", "R", "R", "R", "R", "R", "R", "R"][op as usize];
        format!("{ms};{key};{op};{size}")
    });
    let layout = Layout::new(b';', TimeForm::Unit(1_000_000))
        .with(Column::Ts, 0)
        .with(Column::Key, 1)
        .with(Column::Op, 2)
        .with(Column::Size, 3)
        .with_op("R", bucketload_core::trace::TraceOp::Get)
        .with_op("W", bucketload_core::trace::TraceOp::Put);
    check("own.csv", Format::Csv, &text, |o| {
        (o.format, o.formats.layout) = (Some(Format::Csv), Some(layout));
    });
    let head = "idx\tthread\top\tclient_id\tn_objects\tbytes\tendpoint\tfile\terror\tstart\t\
                first_byte\tend\tduration_ns\n";
    let text = sample(head, |i| {
        let (op, key, size, ms) = fact(i);
        let op = ["PUT", "GET", "GET", "GET", "GET", "GET", "GET", "STAT"][op as usize];
        let (start, end) = (instant(ms), instant(ms + 1));
        format!("{i}\t0\t{op}\tc\t1\t{size}\thttp://h\tk/{key}\t\t{start}\t\t{end}\t1000000")
    });
    check("warp.csv", Format::Warp, &text, |_| {});
    let head = include_str!("../data/op-log.csv")
        .lines()
        .next()
        .unwrap()
        .to_owned()
        + "\n";
    let text = sample(&head, |i| {
        let (op, key, size, ms) = fact(i);
        let class = ["put", "get", "get", "get", "get", "get", "get", "head"][op as usize];
        format!(
            "{i},run,run,{class},run/{key},{size},{size},,,1,0,http://h,1,4,{ms}000000,\
             {ms}000000,{ms}000000,,,{ms}900000,0,0,0,0,0,0,0,0,0,0,ok,1,200,0,,,"
        )
    });
    check("ops.csv", Format::OpLog, &text, |_| {});
}
