//! Sealing outgoing plaintext in full records.

use std::io::IoSlice;

use rustls::unbuffered::EncryptError;

use crate::scratch::SEALED;
use crate::tls::TlsError;

/// Most plaintext of one record (RFC 8446 section 5.1).
pub(super) const RECORD: usize = 16 * 1024;
/// Most that sealing adds to a record: header, explicit nonce, tag, content type.
const OVERHEAD: usize = 5 + 8 + 16 + 1;
/// Most plaintext sealed at once: sends of this size cost a third less than of 64 KiB. What the socket
/// does not take of it is held by the connection meanwhile.
const SEAL_BATCH: usize = 16 * RECORD;
const _: () = assert!(RECORD + SEAL_BATCH + 20 * OVERHEAD + 1024 <= SEALED);

/// What to send once the state allows it, and where to seal it.
pub(super) struct Seal<'a> {
    /// Plaintext; `None` asks for a `close_notify`.
    pub(super) parts: Option<&'a [IoSlice<'a>]>,
    /// One record of room to gather small parts in.
    pub(super) gathered: &'a mut [u8],
    pub(super) out: &'a mut [u8],
    /// Plaintext bytes taken from `parts`.
    pub(super) taken: usize,
    /// Sealed bytes in `out`.
    pub(super) sealed: usize,
}

impl Seal<'_> {
    /// Seals plaintext in full records: straight from `parts` where they are long, gathered in
    /// between, so that a head and a small body share one record.
    pub(super) fn run(
        &mut self,
        parts: &[IoSlice<'_>],
        mut encrypt: impl FnMut(&[u8], &mut [u8]) -> Result<usize, EncryptError>,
    ) -> Result<(), TlsError> {
        let mut have = 0;
        let mut budget = SEAL_BATCH;
        for part in parts {
            let mut rest = &part[..];
            while !rest.is_empty() && budget > 0 {
                let direct = rest.len().min(budget) / RECORD * RECORD;
                let take = if have == 0 && direct > 0 {
                    let out = &mut self.out[self.sealed..];
                    self.sealed += encrypt(&rest[..direct], out).map_err(sealing)?;
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
                    let out = &mut self.out[self.sealed..];
                    self.sealed += encrypt(&self.gathered[..have], out).map_err(sealing)?;
                    have = 0;
                }
            }
        }
        if have > 0 {
            let out = &mut self.out[self.sealed..];
            self.sealed += encrypt(&self.gathered[..have], out).map_err(sealing)?;
        }
        Ok(())
    }
}

pub(super) fn sealing(error: EncryptError) -> TlsError {
    TlsError::Handshake(error.to_string())
}
