//! Every importer on invented lines. The examples of docs/spec/traces.md give the records that it states.

use bucketload_core::trace::TraceOp::{self, *};
use bucketload_trace::{
    Column, DropReason, Format, FormatOptions, Frame, Frames, Layout, NO_TIME, ParsedRecord,
    TimeForm, detect,
};
use proptest::collection::vec;
use proptest::prelude::*;

/// 2031-03-14T09:26:53Z in nanoseconds.
const T: i64 = 1_931_246_813_000_000_000;
const MS: i64 = 1_000_000;

/// Reads everything. Returns the records, and the reasons for frames without records.
fn read(
    format: Format,
    options: &FormatOptions,
    text: &[u8],
) -> (Vec<ParsedRecord>, Vec<DropReason>) {
    let mut importer = format.importer(options).unwrap();
    importer.start_file();
    let mut frames = Frames::new(text, importer.framing());
    let (mut records, mut reasons) = (Vec::new(), Vec::new());
    while let Some(frame) = frames.next_frame().unwrap() {
        match frame {
            Frame::Broken(reason, _) => reasons.push(reason),
            Frame::Whole(bytes) => {
                if let Err(reason) = importer.read(bytes, &mut |r| records.push(r.clone())) {
                    reasons.push(reason);
                }
            }
        }
    }
    (records, reasons)
}

/// Reads a sample whose format is detected and whose lines are all valid.
fn sample(text: &str, format: Format) -> Vec<ParsedRecord> {
    assert_eq!(
        detect(text.as_bytes(), &FormatOptions::default()),
        Some(format)
    );
    let (records, reasons) = read(format, &FormatOptions::default(), text.as_bytes());
    assert_eq!(reasons, []);
    records
}

fn record(ts_ns: i64, op: TraceOp, bucket: &str, key: &str, client: &str) -> ParsedRecord {
    ParsedRecord {
        ts_ns,
        op,
        bucket: bucket.into(),
        key: key.into(),
        client: client.into(),
        ..ParsedRecord::default()
    }
}

/// Compares records. Of the id hashes, which are opaque, only their presence counts.
fn assert_same(found: &[ParsedRecord], expected: &[ParsedRecord]) {
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (found, expected) in found.iter().zip(expected) {
        let opaque = |r: &ParsedRecord| ParsedRecord {
            id: u64::from(r.id != 0),
            upload: u64::from(r.upload != 0),
            ..r.clone()
        };
        assert_eq!(opaque(found), opaque(expected));
    }
}

#[test]
fn ibm_cos() {
    let records = sample(include_str!("../data/ibm-cos.txt"), Format::IbmCos);
    let at = |ms: i64, op, key: &str, size| ParsedRecord {
        size,
        status: 200,
        ..record(ms * MS, op, "", &format!("00c0ffee5eed00{key}"), "")
    };
    let mut range = at(4_073_312, Get, "42", 262_144);
    (range.off, range.len) = (65_536, 65_536);
    assert_same(
        &records,
        &[
            range,
            at(4_073_390, Delete, "42", -1),
            at(4_073_391, Put, "43", 0),
            at(4_073_392, Head, "43", 0),
            at(4_073_395, Get, "44", 100),
            at(4_073_396, Get, "45", -1),
        ],
    );
    let bad = "x REST.GET.OBJECT a\n1 REST.GET\n1 REST.BREW.OBJECT a\n1 REST.GET.OBJECT a 5 1\n\
               1 REST.GET.OBJECT a z\n1 REST.GET.OBJECT a 5 4 2\n1 REST.GET.OBJECT a 5 1 2 9\n";
    let (records, reasons) = read(Format::IbmCos, &FormatOptions::default(), bad.as_bytes());
    assert_eq!(records, []);
    use DropReason::*;
    assert_eq!(
        reasons,
        [
            BadTimestamp,
            UnknownOp,
            UnknownOp,
            Truncated,
            BadNumber,
            BadNumber,
            Malformed
        ]
    );
}

#[test]
fn s3_server_access_log() {
    let records = sample(include_str!("../data/s3-access.log"), Format::S3Access);
    let mut get = record(
        T,
        Get,
        "bench-src",
        "tenant-a/part+0007.parquet",
        "203.0.113.41",
    );
    (get.status, get.size, get.sent) = (206, 8_388_608, 1_048_576);
    // The position of the range is not logged.
    (get.off, get.len, get.dur_ns, get.id) = (-1, 1_048_576, 37 * MS, 1);
    let mut part = record(T + 1000 * MS, MpuPart, "bench-src", "big", "203.0.113.42");
    (
        part.status,
        part.size,
        part.dur_ns,
        part.part,
        part.upload,
        part.id,
    ) = (200, 5_242_880, 41 * MS, 3, 1, 1);
    let mut batch = record(
        T + 1000 * MS,
        MultiDelete,
        "bench-src",
        "a/1",
        "203.0.113.42",
    );
    (batch.status, batch.upload, batch.id) = (204, 1, 1);
    let mut list = record(T + 1000 * MS, List, "bench-src", "a/b", "203.0.113.42");
    (list.status, list.sent, list.dur_ns, list.id) = (200, 812, 9 * MS, 1);
    assert_same(&records, &[get, part, batch, list]);

    let good = include_str!("../data/s3-access.log")
        .lines()
        .next()
        .unwrap();
    for (line, reason) in [
        (&good[..70], DropReason::Truncated),
        (&good[..250], DropReason::Truncated),
        (&good.replace("14/Mar", "14/Foo"), DropReason::BadTimestamp),
        (
            &good.replace("REST.GET.OBJECT", "REST.GET.ACL"),
            DropReason::NoKey,
        ),
        (
            &good.replace("REST.GET.OBJECT", "S3.EXPIRE.OBJECT"),
            DropReason::Internal,
        ),
        (
            &good.replace("REST.GET.OBJECT", "NONSENSE"),
            DropReason::UnknownOp,
        ),
        (&good.replace(" 8388608 ", " many "), DropReason::BadNumber),
    ] {
        let (records, reasons) = read(Format::S3Access, &FormatOptions::default(), line.as_bytes());
        if reason == DropReason::NoKey {
            // Other requests are kept as `Other`, and the pipeline counts them.
            assert_eq!(records[0].op, Other);
        } else {
            assert_eq!(reasons, [reason], "{line}");
        }
    }
}

#[test]
fn s3_server_access_log_as_json() {
    let records = sample(include_str!("../data/s3-access.json"), Format::S3AccessJson);
    let ts = T + 250 * MS;
    let mut put = record(
        ts,
        Put,
        "bench-src",
        "tenant-a/part+0007.parquet",
        "203.0.113.41",
    );
    (put.status, put.size, put.dur_ns, put.id) = (200, 8_388_608, 37 * MS, 1);
    assert_same(&records, &[put]);
}

#[test]
fn cloudtrail() {
    let records = sample(include_str!("../data/cloudtrail.json"), Format::CloudTrail);
    let mut get = record(
        T,
        Get,
        "bench-src",
        "tenant-a/part+0007.parquet",
        "203.0.113.41",
    );
    (get.status, get.sent, get.id) = (200, 1_048_576, 1);
    let mut copy = record(T + 1000 * MS, Copy, "bench-dst", "copy", "203.0.113.41");
    (copy.status, copy.id, copy.source) = (403, 1, b"bench-src/original".to_vec());
    assert_same(&records, &[get, copy]);
    let other = include_str!("../data/cloudtrail.json").replace("s3.amazonaws", "ec2.amazonaws");
    let (records, reasons) = read(
        Format::CloudTrail,
        &FormatOptions::default(),
        other.as_bytes(),
    );
    assert_eq!(
        (records.len(), &reasons[..]),
        (0, &[DropReason::Foreign; 2][..])
    );
}

#[test]
fn minio_audit() {
    let records = sample(include_str!("../data/minio-audit.json"), Format::MinioAudit);
    // The log has the end of the request.
    let mut get = record(T + 627_300_000, Get, "bench", "k/000042", "203.0.113.41");
    (get.status, get.sent, get.dur_ns, get.id) = (206, 65_536, 4_200_000, 1);
    (get.off, get.len) = (131_072, 65_536);
    let mut a = record(
        T + 1000 * MS - 1000,
        MultiDelete,
        "bench",
        "a",
        "203.0.113.41",
    );
    (a.status, a.dur_ns, a.upload, a.id) = (200, 1000, 1, 1);
    let b = ParsedRecord {
        key: b"b".to_vec(),
        ..a.clone()
    };
    assert_same(&records, &[get, a, b]);
    assert_eq!(records[1].upload, records[2].upload);
    assert_ne!(records[1].id, records[2].id);
}

#[test]
fn minio_trace() {
    let records = sample(include_str!("../data/minio-trace.json"), Format::MinioTrace);
    let mut get = record(T + 589_793_000, Get, "bench", "k/000042", "203.0.113.41");
    (get.status, get.sent, get.dur_ns) = (200, 262_655, 8_123_456);
    let mut put = record(T + 600 * MS, Put, "bench", "k/000043", "203.0.113.42");
    (put.status, put.size, put.dur_ns) = (200, 262_144, 5_000_001);
    let mut range = record(T + 700 * MS, Get, "bench", "k/000042", "203.0.113.42");
    (range.status, range.sent, range.dur_ns, range.len) = (206, 500, 2_000_000, 100);
    assert_same(&records, &[get, put, range]);
}

#[test]
fn ceph_rgw() {
    let text = include_str!("../data/rgw.json");
    let records = sample(text, Format::Rgw);
    let mut put = record(T + 589_793_000, Put, "bench", "k/000042", "203.0.113.41");
    (put.status, put.size, put.dur_ns, put.id) = (200, 262_144, 41 * MS, 1);
    let mut head = record(T + 1_000_001_000, Head, "bench", "k/000042", "203.0.113.41");
    (head.status, head.size, head.dur_ns, head.id) = (200, 262_144, MS, 1);
    let mut x = record(T + 2000 * MS, MultiDelete, "bench", "x", "");
    (x.status, x.dur_ns, x.upload, x.id) = (200, MS, 1, 1);
    let y = ParsedRecord {
        key: b"y".to_vec(),
        ..x.clone()
    };
    let expected = [put, head, x, y];
    assert_same(&records, &expected);
    // The socket writes an endless array, the command line an object.
    let lines: Vec<&str> = text.lines().collect();
    let socket = format!("[{}", lines.join(",\n"));
    assert_same(&sample(&socket, Format::Rgw), &expected);
    let cli = format!(
        "{{\"log_entries\": [\n{}\n], \"log_sum\": {{\"ops\": 3}}}}",
        lines.join(",\n")
    );
    assert_same(&sample(&cli, Format::Rgw), &expected);
}

#[test]
fn swift_proxy() {
    let text = include_str!("../data/swift.log");
    assert_eq!(
        detect(text.as_bytes(), &FormatOptions::default()),
        Some(Format::Swift)
    );
    let (records, reasons) = read(Format::Swift, &FormatOptions::default(), text.as_bytes());
    let mut put = record(T + 12_345_678, Put, "bench", "obj-000042", "203.0.113.41");
    (put.status, put.size, put.dur_ns, put.id) = (201, 262_144, 41_700_000, 1);
    // An old release has no start, so it is the end minus the duration.
    let mut list = record(T + 750 * MS, List, "bench", "a/b", "203.0.113.41");
    (list.status, list.dur_ns, list.id) = (200, 250 * MS, 1);
    assert_same(&records, &[put, list]);
    assert_eq!(reasons, [DropReason::Internal]);
    let options = FormatOptions {
        subrequests: true,
        ..FormatOptions::default()
    };
    assert_eq!(read(Format::Swift, &options, text.as_bytes()).0.len(), 3);

    let template = "{method} {path} {status_int} {start_time} {bytes_recvd}";
    let options = FormatOptions {
        swift_template: Some(template.into()),
        ..FormatOptions::default()
    };
    let line = b"host proxy: PUT /v1/A/c/o 201 1931246813.5 77";
    let (records, reasons) = read(Format::Swift, &options, line);
    assert_eq!(reasons, []);
    let put = record(T + 500 * MS, Put, "c", "o", "");
    assert_same(
        &records,
        &[ParsedRecord {
            status: 201,
            size: 77,
            ..put
        }],
    );
    let wrong = FormatOptions {
        swift_template: Some("{path}".into()),
        ..FormatOptions::default()
    };
    let error = Format::Swift.importer(&wrong).err().unwrap().to_string();
    assert!(error.contains("{method}"), "{error}");
}

#[test]
fn twitter() {
    let text = include_str!("../data/twitter.csv");
    let records = sample(text, Format::Twitter);
    let at = |s: i64, op, key: &str, client: &str, size| ParsedRecord {
        size,
        ..record(s * 1000 * MS, op, "", key, client)
    };
    let get = at(86_399, Get, "qz:v:7f3e0a19", "52", 417);
    let set = at(86_399, Put, "qz:v:7f3e0a1a", "52", 417);
    // An increment reads and writes; the key contains a comma; size 0 is a miss.
    let read_part = at(86_400, Get, "qz,v:7f3e0a1b", "53", -1);
    let write_part = at(86_400, Put, "qz,v:7f3e0a1b", "53", 0);
    assert_same(&records, &[get.clone(), set.clone(), read_part, write_part]);
    let options = FormatOptions {
        skip_updates: true,
        expire: true,
        ..FormatOptions::default()
    };
    let (records, reasons) = read(Format::Twitter, &options, text.as_bytes());
    let expiry = at(86_399 + 3600, Delete, "qz:v:7f3e0a1a", "52", -1);
    assert_same(&records, &[get, set, expiry]);
    assert_eq!(reasons, [DropReason::NotReplayed]);
}

#[test]
fn cachelib_layouts() {
    let with_time = sample(
        include_str!("../data/cachelib-202210.csv"),
        Format::CacheLib,
    );
    let s = 1000 * MS;
    let get = record(564_000_017 * s, Get, "", "900200300", "");
    let get = ParsedRecord { repeat: 2, ..get };
    let set = record(564_000_018 * s, Put, "", "900200301", "");
    assert_same(&with_time, &[get, ParsedRecord { size: 120, ..set }]);
    let without = sample(
        include_str!("../data/cachelib-202206.csv"),
        Format::CacheLib,
    );
    let get = record(NO_TIME, Get, "", "900200300", "");
    let delete = record(NO_TIME, Delete, "", "900200301", "");
    assert_same(
        &without,
        &[
            ParsedRecord {
                repeat: 3,
                size: 77,
                ..get
            },
            ParsedRecord { size: 0, ..delete },
        ],
    );
    let newer = sample(
        include_str!("../data/cachelib-202312.csv"),
        Format::CacheLib,
    );
    assert_eq!(
        (newer[0].op, newer[0].ts_ns, newer[0].size),
        (Put, NO_TIME, 77)
    );
    let newest = sample(
        include_str!("../data/cachelib-202401.csv"),
        Format::CacheLib,
    );
    assert_eq!(
        (newest[0].op, newest[0].size, &newest[0].client[..]),
        (Get, 55, &b"12"[..])
    );
    let zero = "key,op,size,op_count,key_size\nk,GET,1,0,3\n";
    let (_, reasons) = read(Format::CacheLib, &FormatOptions::default(), zero.as_bytes());
    assert_eq!(reasons, [DropReason::BadNumber]);
}

#[test]
fn native_csv() {
    let records = sample(include_str!("../data/native.csv"), Format::Native);
    let put = ParsedRecord {
        size: 262_144,
        status: 200,
        ..record(0, Put, "b0", "logs/000001", "c7")
    };
    let mut get = record(1_350_000, Get, "b0", "logs/000001", "c3");
    (get.size, get.off, get.len, get.status) = (262_144, 65_536, 4096, 206);
    let delete = record(1_350_001, Delete, "b0", "odd,\"key\"", "c3");
    assert_same(
        &records,
        &[
            put,
            get,
            ParsedRecord {
                status: 204,
                ..delete
            },
        ],
    );
}

#[test]
fn warp_operations() {
    let records = sample(include_str!("../data/warp.tsv"), Format::Warp);
    let mut put = record(T + 1, Put, "", "abc/1.rnd", "synth");
    (put.size, put.dur_ns) = (10_485_760, 100 * MS);
    let mut stat = record(T + 1000 * MS, Head, "", "abc/1.rnd", "synth");
    // The kind of a failure is not recorded.
    (stat.size, stat.dur_ns, stat.status) = (0, 500 * MS, 500);
    assert_same(&records, &[put, stat]);
}

#[test]
fn mapped_csv() {
    let layout = Layout::new(b';', TimeForm::Unit(MS))
        .with(Column::Ts, 0)
        .with(Column::Key, 1)
        .with(Column::Size, 2)
        .with(Column::Op, 3)
        .with_op("R", Get)
        .with_op("W", Put);
    let options = FormatOptions {
        layout: Some(layout),
        skip_lines: 1,
        ..FormatOptions::default()
    };
    let text = "time;name;bytes;kind\n1.5;a;10;R\n2;\"b;c\";20;w\n3;d;1;X\n4;e\n";
    let (records, reasons) = read(Format::Csv, &options, text.as_bytes());
    let a = ParsedRecord {
        size: 10,
        ..record(1_500_000, Get, "", "a", "")
    };
    let b = ParsedRecord {
        size: 20,
        ..record(2 * MS, Put, "", "b;c", "")
    };
    assert_same(&records, &[a, b]);
    assert_eq!(reasons, [DropReason::UnknownOp, DropReason::Truncated]);
    let error = Format::Csv
        .importer(&FormatOptions::default())
        .err()
        .unwrap();
    assert!(error.to_string().contains("--map"), "{error}");
}

#[test]
fn other_files_are_not_detected() {
    for text in [
        "",
        "hello\nworld\n",
        "1,2,3\n",
        "{}\n",
        "{\"a\":1}\n{\"b\":2}\n",
        "\0\u{1}\n",
    ] {
        assert_eq!(
            detect(text.as_bytes(), &FormatOptions::default()),
            None,
            "{text}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// No input makes an importer panic, and damaged samples only lose lines.
    #[test]
    fn arbitrary_bytes_are_survived(noise in vec(any::<u8>(), 0..300), cut in 0usize..2000, at in 0usize..2000) {
        let samples: [&[u8]; 13] = [
            include_bytes!("../data/ibm-cos.txt"), include_bytes!("../data/s3-access.log"),
            include_bytes!("../data/s3-access.json"), include_bytes!("../data/cloudtrail.json"),
            include_bytes!("../data/minio-audit.json"), include_bytes!("../data/minio-trace.json"),
            include_bytes!("../data/rgw.json"), include_bytes!("../data/swift.log"),
            include_bytes!("../data/twitter.csv"), include_bytes!("../data/cachelib-202210.csv"),
            include_bytes!("../data/native.csv"), include_bytes!("../data/warp.tsv"), b"",
        ];
        let layout = Layout::new(b',', TimeForm::Text).with(Column::Key, 0).with(Column::Ts, 1);
        let options = FormatOptions { layout: Some(layout), ..FormatOptions::default() };
        for sample in samples {
            let at = at.min(sample.len());
            let end = (at + cut).min(sample.len());
            let damaged = [&sample[..at], &noise, &sample[end..]].concat();
            for &format in Format::ALL {
                read(format, &options, &damaged);
            }
        }
    }
}

#[test]
fn bucketload_operation_log() {
    let records = sample(include_str!("../data/op-log.csv"), Format::OpLog);
    let mut put = record(1000, Put, "", "bucketload-1/d/0", "3");
    (put.size, put.status, put.dur_ns) = (4096, 200, 300);
    let mut get = record(2000, Get, "", "bucketload-1/d/0", "4");
    (get.size, get.off, get.len, get.dur_ns) = (4096, 50, 100, 300);
    // A timeout has no status.
    get.status = 500;
    assert_same(&records, &[put, get]);
}
