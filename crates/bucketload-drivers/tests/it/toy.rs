//! The toy driver of the chapter "Write a driver" passes the shared suite, and its descriptor opens it.

use std::path::Path;

use bucketload_drivers::conformance::Quirks;
use bucketload_drivers::http::{Endpoint, TlsConfig};
use bucketload_drivers::toy::{DESCRIPTOR, ToyConfig, ToyDriver};
use bucketload_target::flags::SOURCE_ADDRESS;
use bucketload_target::{OpenRequest, Settings, no_directory};

use crate::support::{run, suite_passes};

#[test]
fn the_descriptor_opens_the_driver_and_names_its_page() {
    let mut settings = Settings::default();
    settings.set(&SOURCE_ADDRESS, ["127.0.0.2"]);
    let request = OpenRequest {
        settings: &settings,
        variable: &|_| None,
        home: None,
        server: None,
        directory: no_directory(),
        endpoints: None,
        files: None,
    };
    let Ok(service) = (DESCRIPTOR.open)(&request) else {
        panic!("the descriptor opens no driver");
    };
    let facts = service.driver.facts();
    assert_eq!(facts.driver, DESCRIPTOR.name);
    assert_eq!(facts.endpoints, ["http://localhost:7777"]);
    let wanted = ("source addresses".to_owned(), "127.0.0.2".to_owned());
    assert!(facts.settings.contains(&wanted), "{facts:?}");
    let page = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs")
        .join(DESCRIPTOR.page);
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("toy://"));
}

#[test]
fn the_suite_passes() {
    let url = format!("http://{}", bucketload_testkit::toy::start());
    let config = ToyConfig {
        endpoints: vec![Endpoint::parse(&url, "test").unwrap()],
        tls: TlsConfig::default(),
        sources: Vec::new(),
    };
    let driver = ToyDriver::new(config).unwrap();
    run(suite_passes(&driver, Quirks::default(), "toy"));
}
