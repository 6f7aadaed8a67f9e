//! The token that a gateway off loopback demands: a secret that both sides read from a file.
//!
//! It never crosses the network. The server sends random bytes, the client answers with their
//! HMAC-SHA-256 (RFC 2104) under the token, and the server compares in constant time.

use std::fmt;
use std::path::Path;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use subtle::ConstantTimeEq as _;

/// Shortest token that is accepted, in characters.
const SHORTEST: usize = 16;
/// Longest file that is read for one, in bytes.
const LONGEST: usize = 4096;

/// Bytes that the server challenges a client with.
pub(crate) const CHALLENGE_BYTES: usize = 32;
/// Bytes of the answer.
pub(crate) const PROOF_BYTES: usize = 32;

/// A secret that client and server know.
#[derive(Clone)]
pub struct Token(String);

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The file cannot be read.
    #[error("the gateway's token {0}: {1}")]
    Unreadable(String, #[source] std::io::Error),
    /// It is too short, too long, or no visible ASCII text.
    #[error(
        "the gateway's token must have {SHORTEST} to {LONGEST} visible ASCII characters; make one with: \
         head -c 24 /dev/urandom | base64"
    )]
    Unsuitable,
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(***)")
    }
}

impl Token {
    /// Takes a token; white space around it does not count.
    ///
    /// # Errors
    /// When it cannot be one.
    pub fn new(text: &str) -> Result<Self, TokenError> {
        let text = text.trim();
        let length = SHORTEST..=LONGEST;
        if !length.contains(&text.len()) || !text.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(TokenError::Unsuitable);
        }
        Ok(Self(text.to_owned()))
    }

    /// Reads a token from a file.
    ///
    /// # Errors
    /// When the file cannot be read or holds no token.
    pub fn read(file: &Path) -> Result<Self, TokenError> {
        let text = std::fs::read_to_string(file)
            .map_err(|e| TokenError::Unreadable(file.display().to_string(), e))?;
        Self::new(&text)
    }

    fn mac(&self, challenge: &[u8; CHALLENGE_BYTES]) -> [u8; PROOF_BYTES] {
        let mut mac = Hmac::<Sha256>::new_from_slice(self.0.as_bytes())
            .expect("HMAC takes keys of any length");
        // What is signed says what for, so that a proof is good for nothing else.
        mac.update(b"bucketload gateway client 1\0");
        mac.update(challenge);
        mac.finalize().into_bytes().into()
    }

    /// The answer to a challenge.
    pub(crate) fn prove(&self, challenge: &[u8; CHALLENGE_BYTES]) -> [u8; PROOF_BYTES] {
        self.mac(challenge)
    }

    /// Whether `proof` answers the challenge, in a time that does not tell how much of it is right.
    pub(crate) fn verify(
        &self,
        challenge: &[u8; CHALLENGE_BYTES],
        proof: &[u8; PROOF_BYTES],
    ) -> bool {
        self.mac(challenge).ct_eq(proof).into()
    }
}

#[cfg(test)]
mod tests {
    use super::Token;

    #[test]
    fn only_the_same_token_answers_the_same_challenge() {
        let token = Token::new("  0123456789abcdef\n").unwrap();
        let other = Token::new("0123456789abcdeF").unwrap();
        let proof = token.prove(&[7; 32]);
        assert!(token.verify(&[7; 32], &proof));
        assert!(!token.verify(&[8; 32], &proof));
        assert!(!other.verify(&[7; 32], &proof));
        let mut wrong = proof;
        wrong[31] ^= 1;
        assert!(!token.verify(&[7; 32], &wrong));
        assert_eq!(format!("{token:?}"), "Token(***)");
        for wrong in ["", "short", "0123456789 abcdef", "0123456789äbcdef"] {
            assert!(Token::new(wrong).is_err(), "{wrong}");
        }
    }
}
