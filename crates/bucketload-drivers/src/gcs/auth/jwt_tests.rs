//! OpenSSL signed the expected assertion (`openssl dgst -sha256 -sign`) with a key made for this test
//! alone.

use super::super::account::ServiceKey;
use super::Signer;
use crate::http::Secret;

const PKCS8: &str = include_str!("../../../tests/data/rsa-pkcs8.pem");

const PKCS1: &str = include_str!("../../../tests/data/rsa-pkcs1.pem");

const ASSERTION: &str = "eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCIsImtpZCI6ImsxIn0.eyJpc3MiOiJiZW5jaEBwLTEuaWFtLmdzZXJ2aW\
     NlYWNjb3VudC5jb20iLCJzY29wZSI6Imh0dHBzOi8vd3d3Lmdvb2dsZWFwaXMuY29tL2F1dGgvZGV2c3RvcmFnZS5m\
     dWxsX2NvbnRyb2wiLCJhdWQiOiJodHRwczovL29hdXRoMi5nb29nbGVhcGlzLmNvbS90b2tlbiIsImlhdCI6MTcwMD\
     AwMDAwMCwiZXhwIjoxNzAwMDAzNjAwfQ.ddYvVLWGDQi7ictWY4u3STQfQHaSc_l-m9VjRim8sE28axc5Qe4YcamKM\
     -msf-8AzTz1FXP4-d4Z_OcBBbvWSUQwY31RXX0ZiyehZ0OqZtv6KmDYf_QGcM5vaTCN-_hxq0WVSmpaeI1Hd5mQucO\
     rdJ39jKNNIoScGuiw1WYKKDdT5MbTfDdPblZ9yKu5tvT8hJbcK6ak1r3DZZSCCsNf_FmlKEnTh_Fg98S9HWJ-D-0eI\
     UYnoTg2cVaeXJEAT3o1jdMywVEIOVqL8GVk8efgqV4oFszzP3ow8y2ivAO5AYY4tplMZe7DrNSz-vy9zTz5umXg2ah\
     EeNKZdLc4JQ70Ig";

fn account() -> ServiceKey {
    ServiceKey {
        email: "bench@p-1.iam.gserviceaccount.com".to_owned(),
        key_id: "k1".to_owned(),
        key: Secret::new(PKCS8),
        token_url: "https://oauth2.googleapis.com/token".to_owned(),
    }
}

#[test]
fn assertions_match_openssl() {
    for pem in [PKCS8, PKCS1] {
        let assertion = Signer::new(pem)
            .unwrap()
            .assertion(&account(), 1_700_000_000);
        assert_eq!(assertion.unwrap(), ASSERTION);
    }
    // RSASSA-PKCS1-v1_5 is deterministic, so only the time changes the signature.
    let later = Signer::new(PKCS8)
        .unwrap()
        .assertion(&account(), 1_700_000_001);
    assert_ne!(later.unwrap(), ASSERTION);
}

#[test]
fn invalid_keys_are_refused_without_showing_them() {
    for pem in [
        "",
        "-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----",
        "!!!",
    ] {
        let error = Signer::new(pem).err().unwrap();
        assert!(!error.contains("c2Vj"), "{error}");
    }
}
