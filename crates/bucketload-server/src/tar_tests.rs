//! Archives, cut at every place.

use proptest::prelude::*;

use super::*;

/// A header with a right checksum.
fn header(path: &str, kind: u8, size: u64) -> Vec<u8> {
    let mut out = vec![0; BLOCK];
    out[..path.len()].copy_from_slice(path.as_bytes());
    out[124..135].copy_from_slice(format!("{size:011o}").as_bytes());
    out[156] = kind;
    out[257..263].copy_from_slice(b"ustar\0");
    seal(&mut out);
    out
}

fn seal(header: &mut [u8]) {
    header[148..156].fill(b' ');
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
}

fn entry(path: &str, kind: u8, content: &[u8]) -> Vec<u8> {
    let mut out = header(path, kind, content.len() as u64);
    out.extend_from_slice(content);
    out.resize(out.len().next_multiple_of(BLOCK), 0);
    out
}

/// What arrived, one line per event.
#[derive(Default)]
struct Log(Vec<String>, Vec<u8>);

impl Entries for Log {
    fn file(&mut self, path: &str, size: u64) -> S3Result<()> {
        self.0.push(format!("{path} {size}"));
        Ok(())
    }

    fn data(&mut self, bytes: &[u8]) -> S3Result<()> {
        self.1.extend_from_slice(bytes);
        Ok(())
    }

    fn end(&mut self) -> S3Result<()> {
        let content = std::mem::take(&mut self.1);
        let content = String::from_utf8_lossy(&content);
        self.0.push(format!("= {content}"));
        Ok(())
    }

    fn directory(&mut self, path: &str) -> S3Result<()> {
        self.0.push(format!("{path} directory"));
        Ok(())
    }
}

/// Reads `archive` in pieces of `piece` bytes.
fn read(archive: &[u8], piece: usize) -> Result<Vec<String>, Code> {
    let (mut tar, mut log) = (Tar::default(), Log::default());
    for bytes in archive.chunks(piece) {
        tar.read(bytes, &mut log).map_err(|e| e.code)?;
    }
    tar.finish().map_err(|e| e.code)?;
    Ok(log.0)
}

/// Every kind of entry.
fn archive() -> Vec<u8> {
    let long = "d/".repeat(100);
    let mut prefixed = header("name", b'0', 0);
    prefixed[345..348].copy_from_slice(b"a/b");
    seal(&mut prefixed);
    let pax = "12 path=p/q\n20 comment=anything\n10 size=3\n";
    [
        entry("one", b'0', b"first"),
        entry("dir/", b'5', b""),
        prefixed,
        entry("././@LongLink", b'L', format!("{long}end\0").as_bytes()),
        entry("cut", b'0', b"second"),
        entry("global", b'g', b"19 comment=nothing\n"),
        entry("header", b'x', pax.as_bytes()),
        entry("other", b'0', b"abc"),
        entry("link", b'2', b""),
        entry("old", 0, &[b'x'; BLOCK]),
        vec![0; 2 * BLOCK],
        b"what follows the end is not read".to_vec(),
    ]
    .concat()
}

#[test]
fn every_entry_arrives_however_the_bytes_do() {
    let long = format!("{}end", "d/".repeat(100));
    let wanted = [
        "one 5",
        "= first",
        "dir/ directory",
        "a/b/name 0",
        "= ",
        &format!("{long} 6"),
        "= second",
        "p/q 3",
        "= abc",
        "old 512",
        &format!("= {}", "x".repeat(BLOCK)),
    ];
    let archive = archive();
    for piece in [1, 7, 511, 512, 513, 1 << 20] {
        assert_eq!(read(&archive, piece).unwrap(), wanted, "{piece}");
    }
}

#[test]
fn large_sizes_are_read() {
    let mut large = header("large", b'0', 0);
    large[124..136].fill(0);
    large[124] = 0x80;
    large[128..136].copy_from_slice(&(1_u64 << 40).to_be_bytes());
    seal(&mut large);
    let (mut tar, mut log) = (Tar::default(), Log::default());
    tar.read(&large, &mut log).unwrap();
    assert_eq!(log.0, [format!("large {}", 1_u64 << 40)]);
}

#[test]
fn what_is_no_archive_is_refused() {
    assert_eq!(read(b"", 1), Ok(Vec::new()));
    assert_eq!(read(&[7; BLOCK], 100), Err(Code::InvalidRequest));
    let whole = entry("one", b'0', b"first");
    for end in [1, BLOCK, BLOCK + 3, 2 * BLOCK - 1] {
        assert_eq!(read(&whole[..end], 64), Err(Code::IncompleteBody), "{end}");
    }
    let endless = header("name", b'L', 1 << 30);
    assert_eq!(read(&endless, 64), Err(Code::InvalidRequest));
    for record in ["x", "5 a=b\n", "99 path=x\n", "0 path=x\n", "11 size=-1\n"] {
        let bad = entry("header", b'x', record.as_bytes());
        assert_eq!(read(&bad, 64), Err(Code::InvalidRequest), "{record}");
    }
    let bad = entry("header", b'L', &[0xff; 3]);
    assert_eq!(read(&bad, 64), Err(Code::InvalidArgument));
}

proptest! {
    #[test]
    fn any_change_is_safe(at in 0..7000_usize, value: u8, piece in 1..600_usize) {
        let mut archive = archive();
        let at = at % archive.len();
        archive[at] = value;
        // A changed header never has its checksum, so it is refused unless it became the end.
        let _ = read(&archive, piece);
    }
}
