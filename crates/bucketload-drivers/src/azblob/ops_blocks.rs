//! Uploads in blocks: one operation of the workload, several requests (Put Block, Put Block List).
//!
//! Blocks belong to their blob, not to an upload, so each upload gives its blocks unique names. The
//! first commit discards the blocks of a concurrent upload, whose commit the service then refuses.
//! An upload cannot be aborted: blocks outside a committed list expire after a week, or when the
//! blob is written in another way. `Admin::abort_uploads` removes blocks that interrupted runs left.

use bucketload_core::driver::{
    Completion, ErrorKind, OpError, OpResult, Probe, Request, content_of,
};

use super::head::AzureCall;
use super::ops_object::checked;
use super::session::AzureSession;
use super::sign::Field;
use crate::http::{Body, Buffer, HttpSession as _, Ignore, Span};

/// Most blocks of a blob ("Scalability and performance targets for Blob Storage").
const MAX_BLOCKS: u64 = 50_000;

/// The block list of an empty blob.
pub(super) const EMPTY_LIST: &[u8] =
    b"<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList></BlockList>";

/// Name of a block: the upload's number in hexadecimal and the block's in decimal, together in
/// base64. All names have the same length, as the service requires, and need no escaping.
struct BlockId([u8; 28]);

impl BlockId {
    fn new(upload: u64, number: u64) -> Self {
        let mut raw = [0; 21];
        for (i, slot) in raw[..16].iter_mut().enumerate() {
            *slot = b"0123456789abcdef"[(upload >> (60 - 4 * i)) as usize & 15];
        }
        let mut left = number;
        for slot in raw[16..].iter_mut().rev() {
            *slot = b'0' + (left % 10) as u8;
            left /= 10;
        }
        let mut text = [0; 28];
        // 21 bytes make exactly 28 characters, none of them padding.
        let _ = base64::Engine::encode_slice(
            &base64::engine::general_purpose::STANDARD,
            raw,
            &mut text,
        );
        Self(text)
    }

    fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

/// Splits `size` bytes into blocks of `block` bytes (0 = one block); an empty blob has none. Returns
/// the number of blocks and their size.
fn blocks_of(size: u64, block: u64) -> OpResult<(u64, u64)> {
    let block = if block == 0 { size.max(1) } else { block };
    let count = size.div_ceil(block);
    if count > MAX_BLOCKS {
        return Err(OpError::new(
            ErrorKind::Rejected,
            format!(
                "{size} bytes in blocks of {block} make {count} blocks, more than the \
                 {MAX_BLOCKS} that Azure Blob Storage allows; raise the part size"
            ),
        ));
    }
    Ok((count, block))
}

impl AzureSession {
    pub(super) async fn multipart_put(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> OpResult {
        let content = content_of(request)?;
        let (count, block) = blocks_of(content.size(), request.op.count)?;
        let span_of = |number: u64| {
            let offset = number * block;
            Span {
                content,
                offset,
                len: block.min(content.size() - offset),
            }
        };
        // Hash all blocks before the first request, so hashing is not timed.
        let checksum = self.shared.config().checksum;
        let mut sums = std::mem::take(&mut self.sums);
        sums.clear();
        if let Some(algorithm) = checksum {
            sums.extend((0..count).map(|number| (algorithm, algorithm.of(span_of(number)))));
        }
        let upload = self.upload;
        self.upload = upload.wrapping_add(1);
        let mut list = Buffer::take();
        list.extend_from_slice(b"<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>");
        for number in 0..count {
            let id = BlockId::new(upload, number);
            let mut prepared = {
                let query = [("blockid", id.as_str()), ("comp", "block")];
                let sum = sums.get(number as usize);
                let mut fields: [Field<'_>; 1] = [("", b"")];
                let call = AzureCall::new("PUT", request.bucket, request.key).query(&query);
                let call = checked(call, sum, &mut fields, 0);
                self.prepare(&call, Body::Content(span_of(number)))
            };
            self.perform(&mut prepared, &mut Ignore, probe).await?;
            list.extend_from_slice(b"<Uncommitted>");
            list.extend_from_slice(&id.0);
            list.extend_from_slice(b"</Uncommitted>");
        }
        self.sums = sums;
        list.extend_from_slice(b"</BlockList>");
        self.commit(request.bucket, request.key, &list, "", probe)
            .await?;
        Ok(Completion::of_parts(content.size(), count))
    }

    /// Commits the blocks in `list` as a blob; with `if_none_match` `*` only if no blob exists.
    pub(super) async fn commit(
        &mut self,
        container: &str,
        key: &str,
        list: &[u8],
        if_none_match: &'static str,
        probe: &mut Probe,
    ) -> OpResult<()> {
        let query = [("comp", "blocklist")];
        let call = AzureCall {
            content_type: "application/xml",
            if_none_match,
            ..AzureCall::new("PUT", container, key).query(&query)
        };
        let mut prepared = self.prepare(&call, Body::Bytes(list));
        self.perform(&mut prepared, &mut Ignore, probe).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use proptest::prelude::*;

    use super::{BlockId, blocks_of};

    #[test]
    fn blocks_cover_the_object() {
        assert_eq!(blocks_of(0, 5).unwrap(), (0, 5));
        assert_eq!(blocks_of(10, 5).unwrap(), (2, 5));
        assert_eq!(blocks_of(11, 5).unwrap(), (3, 5));
        assert_eq!(blocks_of(11, 0).unwrap(), (1, 11));
        assert!(blocks_of(50_001, 1).is_err());
    }

    proptest! {
        #[test]
        fn block_names_are_base64_without_special_characters(upload in any::<u64>(), number in 0u64..50_000) {
            let id = BlockId::new(upload, number);
            prop_assert!(id.as_str().bytes().all(|b| b.is_ascii_alphanumeric()), "{}", id.as_str());
            let raw = base64::engine::general_purpose::STANDARD.decode(id.as_str()).unwrap();
            prop_assert_eq!(raw, format!("{upload:016x}{number:05}").into_bytes());
        }
    }
}
