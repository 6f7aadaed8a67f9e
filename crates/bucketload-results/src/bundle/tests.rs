//! Round trips, and the rejection of changed or forged bundles.

use std::io::Write as _;
use std::path::Path;

use sha2::{Digest as _, Sha256};

use super::{About, BundleError, Contents, Role, Source, diff, pack, tar, trailer, unpack};

fn about() -> About {
    About {
        kind: "run".to_owned(),
        version: "1".to_owned(),
        complete: true,
        runs: Vec::new(),
    }
}

fn file(path: &str, text: &str) -> (String, Role, Source) {
    (
        path.to_owned(),
        Role::Data,
        Source::Bytes(text.as_bytes().to_vec()),
    )
}

fn packed(files: Vec<(String, Role, Source)>) -> (Contents, Vec<u8>) {
    let mut out = Vec::new();
    let contents = pack(about(), files, &mut out, &mut |_, _| Ok(())).unwrap();
    (contents, out)
}

fn read(bytes: &[u8], most: u64) -> Result<(Contents, Vec<String>), BundleError> {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("b");
    std::fs::write(&file, bytes).unwrap();
    let into = dir.path().join("into");
    std::fs::create_dir(&into).unwrap();
    let outcome = unpack(&file, &into, most);
    // Nothing was written outside the directory.
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
    outcome
}

/// A bundle with a valid seal around `entries`, as an adversary would write it.
fn forged(entries: &[&[u8]]) -> Vec<u8> {
    let mut zstd = zstd::Encoder::new(Vec::new(), 3).unwrap();
    entries
        .iter()
        .for_each(|entry| zstd.write_all(entry).unwrap());
    let mut out = zstd.finish().unwrap();
    let seal = trailer(&Sha256::digest(&out).into());
    out.extend_from_slice(&seal);
    out
}

fn entry(path: &str, bytes: &[u8]) -> Vec<u8> {
    let mut out = tar::header(path, bytes.len() as u64).unwrap().to_vec();
    out.extend_from_slice(bytes);
    out.resize(out.len() + tar::padding(bytes.len() as u64), 0);
    out
}

const END: [u8; 1024] = [0; 1024];

fn list(files: &str) -> Vec<u8> {
    let text = format!(
        "{{\"format\":1,\"about\":{{\"kind\":\"run\",\"version\":\"1\",\"complete\":true,\"runs\":[]}},\"files\":[{files}]}}"
    );
    entry("bundle.json", text.as_bytes())
}

fn named(path: &str, bytes: u64) -> String {
    let path = serde_json::to_string(path).unwrap();
    format!("{{\"path\":{path},\"bytes\":{bytes},\"sha256\":\"00\",\"role\":\"data\"}}")
}

#[test]
fn the_same_files_give_the_same_bytes_and_come_back() {
    let files = || {
        vec![
            file("run.json", "{}"),
            file("hist/phase-0.hlog", &"h\n".repeat(700)),
            file("empty", ""),
        ]
    };
    let (contents, bytes) = packed(files());
    let mut other = files();
    other.reverse();
    assert_eq!(packed(other).1, bytes);
    let paths: Vec<&str> = contents.files.iter().map(|f| f.path.as_str()).collect();
    assert_eq!(paths, ["empty", "hist/phase-0.hlog", "run.json"]);
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("b"), &bytes).unwrap();
    let into = dir.path().join("into");
    std::fs::create_dir(&into).unwrap();
    let (found, wrong) = unpack(&dir.path().join("b"), &into, 1 << 20).unwrap();
    assert_eq!((found, wrong), (contents, Vec::new()));
    assert_eq!(
        std::fs::read_to_string(into.join("hist/phase-0.hlog"))
            .unwrap()
            .len(),
        1400
    );
    // Any zstd reader skips the seal.
    let mut tar = Vec::new();
    std::io::copy(&mut zstd::Decoder::new(&bytes[..]).unwrap(), &mut tar).unwrap();
    assert_eq!(&tar[257..262], b"ustar");
}

#[test]
fn every_byte_matters() {
    let (_, bytes) = packed(vec![
        file("run.json", "{\"seed\":1}"),
        file("events.jsonl", "{}\n"),
    ]);
    for at in 0..bytes.len() {
        for bit in [0x01, 0x80] {
            let mut changed = bytes.clone();
            changed[at] ^= bit;
            assert!(read(&changed, 1 << 20).is_err(), "byte {at}, bit {bit:#x}");
        }
    }
    for end in 0..bytes.len() {
        assert!(read(&bytes[..end], 1 << 20).is_err(), "cut to {end}");
    }
    assert!(read(&[&bytes[..], b"x"].concat(), 1 << 20).is_err());
    assert!(read(&bytes, 1 << 20).is_ok());
}

#[test]
fn malformed_bundles_are_refused() {
    let refused = |entries: &[&[u8]], word: &str| {
        match read(&forged(entries), 1 << 20) {
            Err(BundleError::Refused(text)) => assert!(text.contains(word), "{text}"),
            other => panic!("{word}: {other:?}"),
        };
    };
    for path in [
        "../x",
        "/etc/x",
        "a/../x",
        "a//x",
        "./x",
        "a\\x",
        "c:x",
        "a\nx",
        "",
        "bundle.json",
        &"x/".repeat(120),
    ] {
        refused(
            &[&list(&named(path, 1)), &END],
            "is not a valid path in a bundle",
        );
    }
    let twice = format!("{},{}", named("a", 1), named("a", 1));
    refused(
        &[&list(&twice), &entry("a", b"1"), &entry("a", b"2"), &END],
        "twice",
    );
    refused(
        &[&list(&named("a", 1 << 40)), &entry("a", b"1"), &END],
        "--max-size",
    );
    refused(&[&list(&named("a", u64::MAX)), &END], "--max-size");
    let mut link = entry("a", b"");
    link[156] = b'2';
    link[157..160].copy_from_slice(b"../");
    refused(&[&list(&named("a", 0)), &link, &END], "a link");
    link[156] = b'5';
    refused(&[&list(&named("a", 0)), &link, &END], "a directory");
    refused(
        &[&list(&named("a", 1)), &entry("b", b"1"), &END],
        "holds `b`",
    );
    // Longer than announced.
    refused(&[&list(&named("a", 1)), &entry("a", b"12"), &END], "of 2 B");
    refused(&[&list(""), &entry("a", b"1"), &END], "data between");
    refused(&[&list(""), &END, &END], "data after");
    refused(
        &[&list(&named("a", 1)), &entry("a", b"1")[..512]],
        "ends inside",
    );
    refused(&[&entry("run.json", b"{}"), &END], "bundle.json");
    refused(
        &[&entry("bundle.json", b"{\"format\":2}"), &END],
        "format 2",
    );
    refused(
        &[&entry("bundle.json", b"{\"format\":1,\"more\":1}"), &END],
        "bundle.json",
    );
    refused(&[&list(",")], "bundle.json");
    // A wrong checksum is reported by file.
    let (_, wrong) = read(
        &forged(&[&list(&named("a", 1)), &entry("a", b"1"), &END]),
        1,
    )
    .unwrap();
    assert_eq!(wrong, ["a"]);
}

#[test]
fn another_version_of_the_format_is_named() {
    let (_, mut bytes) = packed(vec![file("run.json", "{}")]);
    let at = bytes.len() - 36;
    bytes[at] = 9;
    let error = read(&bytes, 1 << 20).unwrap_err();
    assert!(
        matches!(&error, BundleError::Refused(text) if text.contains("format 9")),
        "{error}"
    );
}

#[test]
fn a_file_that_changes_while_it_is_packed_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("intervals.jsonl");
    for later in ["1234", "123", "12345"] {
        std::fs::write(&path, "1235").unwrap();
        let files = vec![("a".to_owned(), Role::Data, Source::File(path.clone()))];
        let files = [files, vec![file("b", "x")]].concat();
        let change = |at: &str, path: &Path| at == "b" && std::fs::write(path, later).is_ok();
        let mut inspect = |at: &str, _: &mut dyn std::io::Read| {
            change(at, &path);
            Ok(())
        };
        let outcome = pack(about(), files, &mut Vec::new(), &mut inspect);
        assert!(matches!(outcome, Err(BundleError::Changed(_))), "{later}");
    }
    assert!(
        pack(
            about(),
            vec![file("../a", "")],
            &mut Vec::new(),
            &mut |_, _| Ok(())
        )
        .is_err()
    );
    assert!(
        pack(
            about(),
            vec![file("a", ""), file("a", "")],
            &mut Vec::new(),
            &mut |_, _| Ok(())
        )
        .is_err()
    );
}

#[test]
fn differences_are_located() {
    let one = |file: &str, old: &str, new: &str| {
        let found = diff(file, old.as_bytes(), new.as_bytes());
        assert_eq!(found.len(), 1, "{found:?}");
        (
            found[0].field.clone(),
            found[0].stored.clone(),
            found[0].computed.clone(),
        )
    };
    let words = |field: &str, stored: &str, computed: &str| {
        (field.to_owned(), stored.to_owned(), computed.to_owned())
    };
    assert_eq!(
        one(
            "r.json",
            "{\"a\":[{\"b\":1}],\"c\":2}",
            "{\"a\":[{\"b\":3}],\"c\":2}"
        ),
        words("a[0].b", "1", "3")
    );
    assert_eq!(
        one("r.json", "{\"a\":1, \"c\":2}", "{\"a\":1,\"c\":2}").0,
        "line 1"
    );
    assert_eq!(
        one("t.jsonl", "{}\n{\"x\":1}\n", "{}\n{\"x\":2}\n"),
        words("line 2.x", "1", "2")
    );
    assert_eq!(
        one("t.csv", "n,p99\na,1\nb,2\n", "n,p99\na,1\nb,3\n"),
        words("line 3, column `p99`", "2", "3")
    );
    let page = |p99: &str| {
        format!(
            "<title>R</title><h2>Phase run</h2><table><tr><th>class</th><th>p50</th><th>p99</th></tr>\
             <tr><td>get</td><td>1</td><td>{p99}</td></tr></table><p>end</p>"
        )
    };
    assert_eq!(
        one("r.html", &page("5 ms"), &page("7 ms")),
        words("Phase run / get / p99", "5 ms", "7 ms")
    );
    assert_eq!(
        one("notes.txt", "a\nb\n", "a\nc\n"),
        words("line 2", "b", "c")
    );
    assert_eq!(one("x.txt", "a\n", "a"), words("bytes", "", ""));
    assert_eq!(diff("x.txt", b"a", b"a"), []);
    // The number of findings is bounded.
    assert_eq!(
        diff(
            "x.txt",
            "a\n".repeat(900).as_bytes(),
            "b\n".repeat(900).as_bytes()
        )
        .len(),
        50
    );
}
