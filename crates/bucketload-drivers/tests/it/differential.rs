//! The same random operations on the drivers of several APIs, checked against one model. (S3 and Azure Blob
//! Storage: `conformance.rs` and `azure`.)

use bucketload_core::driver::Driver;
use bucketload_core::op::OpClass;
use bucketload_drivers::conformance::{Differential, Quirks};
use bucketload_drivers::gcs::{GcsConfig, GcsDriver};
use bucketload_drivers::http::{Endpoint, Secret};
use bucketload_drivers::swift::{SwiftAuth, SwiftConfig, SwiftDriver};
use bucketload_local::posix::{PosixConfig, PosixDriver};
use bucketload_testkit::gcs::FakeGcs;
use bucketload_testkit::swift::FakeSwift;

use crate::support::clock;

/// Asserts that `driver`, named `name`, behaves as the model does and performs each of `classes` often.
fn agrees<D: Driver>(name: &str, driver: &D, classes: &[OpClass]) {
    let test = Differential {
        bucket: "differential".to_owned(),
        seed: 4,
        operations: 1000,
        quirks: Quirks::of(name).unwrap(),
        clock,
    };
    let verdict = crate::support::run(test.run(driver)).unwrap();
    assert_eq!(verdict.different, 0, "{name}: {:#?}", verdict.differences);
    for class in classes {
        let count = verdict.performed.get(class).copied().unwrap_or(0);
        assert!(count >= 20, "{name}: {class} {count}");
    }
}

#[test]
fn file_systems() {
    let dir = tempfile::tempdir().unwrap();
    let driver = PosixDriver::new(PosixConfig::new(dir.path())).unwrap();
    agrees(
        "posix",
        &driver,
        &[OpClass::Append, OpClass::Rename, OpClass::Touch],
    );
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn cloud_storage() {
    let server = FakeGcs::start(str::is_empty);
    let endpoint = Endpoint::parse(&format!("http://{}", server.addr), "test").unwrap();
    let mut config = GcsConfig::new(vec![endpoint]);
    config.project = "project".to_owned();
    let driver = GcsDriver::new(config).unwrap();
    agrees("gcs", &driver, &[OpClass::Copy, OpClass::DeleteMany]);
}

#[test]
fn swift() {
    let server = FakeSwift::start();
    let url = format!("http://{}/auth/v1.0", server.address);
    let auth = SwiftAuth::V1 {
        url: Endpoint::parse(&url, "test").unwrap(),
        user: "test:tester".into(),
        key: Secret::new("testing"),
    };
    let driver = SwiftDriver::sign_in(SwiftConfig::new(auth, None)).unwrap();
    agrees("swift", &driver, &[OpClass::Copy, OpClass::MultipartPut]);
}
