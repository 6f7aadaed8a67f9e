//! Reads plain, gzip (also with several members) and zstd files (also with several frames). The first bytes tell the
//! compression.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use crate::error::TraceError;

/// Size of the buffers before and after the decompressor, bytes.
const BUFFER: usize = 128 << 10;

/// Maximum window of a zstd file, log2 of bytes: a window of 2^27 bytes would exceed the memory of an import.
const ZSTD_WINDOW_LOG: u32 = 25;

/// Decompresses `raw`.
///
/// # Errors
/// When the compression is not supported.
pub(crate) fn decompressed(
    raw: Box<dyn Read + Send>,
    path: &Path,
) -> Result<Box<dyn BufRead + Send>, TraceError> {
    let mut raw = BufReader::with_capacity(BUFFER, raw);
    let start = raw.fill_buf().map_err(TraceError::io(path))?;
    if start.starts_with(&[0x1f, 0x8b]) {
        let decoder = flate2::bufread::MultiGzDecoder::new(raw);
        return Ok(Box::new(BufReader::with_capacity(BUFFER, decoder)));
    }
    if start.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        let mut decoder =
            zstd::stream::read::Decoder::with_buffer(raw).map_err(TraceError::io(path))?;
        decoder
            .window_log_max(ZSTD_WINDOW_LOG)
            .map_err(TraceError::io(path))?;
        return Ok(Box::new(BufReader::with_capacity(BUFFER, decoder)));
    }
    for (magic, name, command) in [
        (&b"BZh"[..], "bzip2", "bzip2 -dc"),
        (b"\xfd7zXZ", "xz", "xz -dc"),
        (b"PK\x03\x04", "zip", "unzip -p"),
        (b"PAR1", "Parquet", "duckdb"),
    ] {
        if start.starts_with(magic) {
            let advice = if name == "Parquet" {
                "convert it, for example with duckdb -c \"COPY (FROM 'FILE') TO 'ops.csv'\""
                    .to_owned()
            } else {
                format!("pipe it, for example {command} FILE | bucketload replay -")
            };
            return Err(TraceError::Option(format!(
                "{}: {name} files cannot be read directly; {advice}",
                path.display()
            )));
        }
    }
    Ok(Box::new(raw))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::path::Path;

    use super::decompressed;

    fn read(bytes: Vec<u8>) -> Result<String, String> {
        let raw = Box::new(std::io::Cursor::new(bytes));
        let mut text = String::new();
        decompressed(raw, Path::new("x"))
            .map_err(|e| e.to_string())?
            .read_to_string(&mut text)
            .map_err(|e| e.to_string())?;
        Ok(text)
    }

    #[test]
    fn compression_is_transparent() {
        let gz = |text: &str| {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), Default::default());
            encoder.write_all(text.as_bytes()).unwrap();
            encoder.finish().unwrap()
        };
        let zst = |text: &str| zstd::bulk::compress(text.as_bytes(), 1).unwrap();
        assert_eq!(read(b"plain".to_vec()).unwrap(), "plain");
        assert_eq!(read([gz("one "), gz("two")].concat()).unwrap(), "one two");
        assert_eq!(read([zst("one "), zst("two")].concat()).unwrap(), "one two");
        assert_eq!(read(Vec::new()).unwrap(), "");
        assert!(read(gz("cut")[..8].to_vec()).is_err());
        assert!(read(b"BZh91AY".to_vec()).unwrap_err().contains("bzip2 -dc"));
        assert!(read(b"PAR1".to_vec()).unwrap_err().contains("duckdb"));
    }
}
