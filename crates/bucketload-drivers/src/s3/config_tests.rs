//! Names and impossible combinations.

use super::{Addressing, ChecksumAlgorithm, Credentials, Endpoint, PayloadMode, S3Config};

fn config() -> S3Config {
    let endpoint = Endpoint::parse("http://127.0.0.1:9", "t").unwrap();
    S3Config::new(
        vec![endpoint],
        "us-east-1",
        Some(Credentials::new("id", "key")),
    )
}

#[test]
fn names_round_trip_and_errors_list_them() {
    for mode in PayloadMode::ALL {
        assert_eq!(mode.name().parse(), Ok(*mode));
    }
    for algorithm in ChecksumAlgorithm::ALL {
        assert_eq!(algorithm.name().parse(), Ok(*algorithm));
    }
    let error = "dns".parse::<Addressing>().unwrap_err();
    assert_eq!(
        error,
        "`dns` is not a valid addressing style; use one of path, virtual"
    );
}

#[test]
fn impossible_combinations_are_refused() {
    assert_eq!(config().check(), Ok(()));
    let mut c = config();
    c.payload = PayloadMode::UnsignedTrailer;
    assert!(c.check().is_err());
    c.checksum = Some(ChecksumAlgorithm::Crc32);
    assert_eq!(c.check(), Ok(()));
    c.credentials = None;
    assert_eq!(c.check(), Ok(()));
    c.payload = PayloadMode::Signed;
    assert!(c.check().unwrap_err().to_string().contains("anonymous"));
    for bad in ["", "us east", "a/b"] {
        let mut c = config();
        c.region = bad.to_owned();
        assert!(c.check().is_err(), "{bad}");
    }
    for (id, key) in [("", "k"), ("i d", "k"), ("i", ""), ("i", "hush\n")] {
        let mut c = config();
        c.credentials = Some(Credentials::new(id, key));
        let error = c.check().unwrap_err().to_string();
        assert!(!error.contains("hush"), "{error}");
    }
}
