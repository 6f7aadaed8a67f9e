//! Sealing outgoing plaintext into full records.

use std::io::IoSlice;

use rustls::unbuffered::EncryptError;

use crate::scratch::SEALED;
use crate::tls::TlsError;

/// The most plaintext in one record (RFC 8446 section 5.1).
pub(super) const RECORD: usize = 16 * 1024;
/// The most bytes that sealing adds to a record: header, explicit nonce, tag, content type.
const OVERHEAD: usize = 5 + 8 + 16 + 1;
/// The most plaintext sealed at once. Sends of this size cost a third less than sends of 64 KiB.
/// The connection holds what the socket does not take.
const SEAL_BATCH: usize = 16 * RECORD;
const _: () = assert!(RECORD + SEAL_BATCH + 20 * OVERHEAD + 1024 <= SEALED);

/// Plaintext to send once the state allows it, and the buffers to seal it in.
pub(super) struct Seal<'a> {
    /// Plaintext; `None` requests a `close_notify`.
    pub(super) parts: Option<&'a [IoSlice<'a>]>,
    /// Room for one record, in which small parts are gathered.
    pub(super) gathered: &'a mut [u8],
    pub(super) out: &'a mut [u8],
    /// Plaintext bytes taken from `parts`.
    pub(super) taken: usize,
    /// Sealed bytes in `out`.
    pub(super) sealed: usize,
}

impl Seal<'_> {
    /// Seals plaintext into full records, straight from `parts` where they are long. Shorter pieces
    /// are gathered first, so a head and a small body share one record.
    pub(super) fn run(
        &mut self,
        parts: &[IoSlice<'_>],
        mut encrypt: impl FnMut(&[u8], &mut [u8]) -> Result<usize, EncryptError>,
    ) -> Result<(), TlsError> {
        let mut seal = |plain: &[u8]| {
            let written = encrypt(plain, &mut self.out[self.sealed..]).map_err(sealing)?;
            self.sealed += written;
            Ok::<_, TlsError>(())
        };
        let mut have = 0;
        let mut budget = SEAL_BATCH;
        for part in parts {
            let mut rest = &part[..];
            while !rest.is_empty() && budget > 0 {
                let direct = rest.len().min(budget) / RECORD * RECORD;
                let take = if have == 0 && direct > 0 {
                    seal(&rest[..direct])?;
                    direct
                } else {
                    let take = rest.len().min(budget).min(RECORD - have);
                    self.gathered[have..have + take].copy_from_slice(&rest[..take]);
                    have += take;
                    take
                };
                rest = &rest[take..];
                self.taken += take;
                budget -= take;
                if have == RECORD || (have > 0 && budget == 0) {
                    seal(&self.gathered[..have])?;
                    have = 0;
                }
            }
        }
        if have > 0 {
            seal(&self.gathered[..have])?;
        }
        Ok(())
    }
}

pub(super) fn sealing(error: EncryptError) -> TlsError {
    TlsError::Handshake(error.to_string())
}
