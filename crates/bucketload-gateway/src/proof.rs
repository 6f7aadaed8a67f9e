//! How a client proves that it knows the token which a gateway off loopback demands.
//!
//! The token never crosses the network. The server sends random bytes, the client answers with their
//! HMAC-SHA-256 (RFC 2104) under the token, and the server compares in constant time.

use bucketload_token::{AccessToken, same};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

/// Length of the server's challenge, bytes.
pub(crate) const CHALLENGE_BYTES: usize = 32;
/// Length of the client's proof, bytes.
pub(crate) const PROOF_BYTES: usize = 32;

/// The client's answer to a challenge.
pub(crate) fn prove(token: &AccessToken, challenge: &[u8; CHALLENGE_BYTES]) -> [u8; PROOF_BYTES] {
    let mut mac = Hmac::<Sha256>::new_from_slice(token.expose().as_bytes())
        .expect("HMAC takes keys of any length");
    // The prefix ties the proof to this purpose.
    mac.update(b"bucketload gateway client 1\0");
    mac.update(challenge);
    mac.finalize().into_bytes().into()
}

/// Compares `proof` with the right answer to `challenge` in constant time.
pub(crate) fn verify(
    token: &AccessToken,
    challenge: &[u8; CHALLENGE_BYTES],
    proof: &[u8; PROOF_BYTES],
) -> bool {
    same(&prove(token, challenge), proof)
}

#[cfg(test)]
mod tests {
    use super::{AccessToken, prove, verify};

    #[test]
    fn only_the_same_token_answers_the_same_challenge() {
        let token = AccessToken::parse("", "0123456789abcdef").unwrap();
        let other = AccessToken::parse("", "0123456789abcdeF").unwrap();
        let proof = prove(&token, &[7; 32]);
        assert!(verify(&token, &[7; 32], &proof));
        assert!(!verify(&token, &[8; 32], &proof));
        assert!(!verify(&other, &[7; 32], &proof));
        let mut wrong = proof;
        wrong[31] ^= 1;
        assert!(!verify(&token, &[7; 32], &wrong));
    }
}
