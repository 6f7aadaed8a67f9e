//! Assertions of service accounts: JSON Web Tokens (RFC 7519) signed with RS256 (RFC 7518 section 3.3),
//! as Google's "Using OAuth 2.0 for Server to Server Applications" requires.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeyPair;
use aws_lc_rs::signature::RSA_PKCS1_SHA256;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

use super::account::ServiceKey;
use crate::json;

/// Scope of the token. Changing the metadata of objects needs full control (Cloud Storage, "JSON API
/// authorization scopes").
pub(crate) const SCOPE: &str = "https://www.googleapis.com/auth/devstorage.full_control";

/// How long an assertion is valid, in seconds: the longest that Google accepts.
const VALID_S: u64 = 3600;

/// The private key of a service account.
pub(crate) struct Signer(KeyPair);

impl Signer {
    /// Reads a private key in PEM: PKCS #8, as Google writes it, or PKCS #1.
    ///
    /// # Errors
    /// When `pem` is not a usable key. The message never shows a part of it.
    pub(crate) fn new(pem: &str) -> Result<Self, String> {
        let body: String = pem
            .lines()
            .map(str::trim)
            .filter(|line| !line.starts_with("-----"))
            .collect();
        let der = STANDARD
            .decode(body)
            .map_err(|_| "the private key is not PEM".to_owned())?;
        let key = match pem.contains("BEGIN RSA PRIVATE KEY") {
            true => KeyPair::from_der(&der),
            false => KeyPair::from_pkcs8(&der),
        };
        key.map(Self)
            .map_err(|e| format!("the private key is not a usable RSA key: {e}"))
    }

    /// The RS256 signature of `message`.
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, String> {
        let mut signature = vec![0; self.0.public_modulus_len()];
        self.0
            .sign(
                &RSA_PKCS1_SHA256,
                &SystemRandom::new(),
                message,
                &mut signature,
            )
            .map_err(|_| "the private key cannot sign".to_owned())?;
        Ok(signature)
    }

    /// The assertion of `account` at `now`, in seconds since 1970.
    ///
    /// # Errors
    /// When the key cannot sign.
    pub(crate) fn assertion(&self, account: &ServiceKey, now: u64) -> Result<String, String> {
        let mut header = b"{\"alg\":\"RS256\",\"typ\":\"JWT\"".to_vec();
        if !account.key_id.is_empty() {
            header.extend_from_slice(b",\"kid\":");
            json::push_string(&mut header, &account.key_id);
        }
        header.push(b'}');
        let mut claims = b"{\"iss\":".to_vec();
        json::push_string(&mut claims, &account.email);
        claims.extend_from_slice(b",\"scope\":");
        json::push_string(&mut claims, SCOPE);
        claims.extend_from_slice(b",\"aud\":");
        json::push_string(&mut claims, &account.token_url);
        claims.extend_from_slice(format!(",\"iat\":{now},\"exp\":{}}}", now + VALID_S).as_bytes());
        let mut text = URL_SAFE_NO_PAD.encode(header);
        text.push('.');
        URL_SAFE_NO_PAD.encode_string(claims, &mut text);
        let signature = self.sign(text.as_bytes())?;
        text.push('.');
        URL_SAFE_NO_PAD.encode_string(signature, &mut text);
        Ok(text)
    }
}

#[cfg(test)]
#[path = "jwt_tests.rs"]
mod tests;
