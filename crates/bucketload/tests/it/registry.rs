//! The registered drivers: each describes itself for its users.

use std::collections::BTreeSet;
use std::path::Path;

use bucketload::REGISTRY;
use bucketload_target::flags::{CA_BUNDLE, ENDPOINT_URL, NO_SIGN_REQUEST, SOURCE_ADDRESS};
use bucketload_target::{Descriptor, OpenRequest, Settings, UrlForm, Value, no_directory};

/// Opens `driver` with `settings`, and with only the environment that logging in needs.
fn facts(driver: &Descriptor, settings: &Settings) -> bucketload_core::driver::DriverFacts {
    let variable = |name: &str| {
        let value = match name {
            "OS_STORAGE_URL" => "https://127.0.0.1:1/v1/AUTH_a",
            "OS_AUTH_TOKEN" => "token",
            _ => return None,
        };
        Some(value.to_owned())
    };
    let request = OpenRequest {
        settings,
        variable: &variable,
        home: None,
        server: None,
        directory: no_directory(),
        endpoints: None,
        files: None,
    };
    let scheme = driver.scheme();
    match (driver.open)(&request) {
        Ok(service) => service.driver.facts(),
        Err(error) => panic!("{scheme}: {error}"),
    }
}

#[test]
fn every_driver_describes_itself_for_users() {
    let (mut schemes, mut names) = (BTreeSet::new(), BTreeSet::new());
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    for driver in REGISTRY.drivers {
        let scheme = driver.scheme();
        for scheme in driver.schemes {
            assert!(schemes.insert(*scheme), "two drivers of {scheme}://");
            assert!(!REGISTRY.absent.iter().any(|(absent, _)| absent == scheme));
        }
        let page = std::fs::read_to_string(docs.join(driver.page));
        let page = page.unwrap_or_else(|e| panic!("{scheme}: {}: {e}", driver.page));
        assert!(page.contains(&format!("{scheme}://")), "{}", driver.page);
        assert!(
            names.insert(driver.name),
            "two drivers are called {}",
            driver.name
        );
        for (topic, words) in driver.semantics.rows() {
            assert!(!words.trim().is_empty(), "{scheme}: {topic}");
        }
        for flag in driver.flags() {
            let name = flag.name;
            assert!(name.starts_with("--"), "{name}");
            assert!(!flag.help.is_empty() && !flag.help.ends_with('.'), "{name}");
            assert!(flag.more.is_empty() || flag.more.ends_with('.'), "{name}");
            if let Some(other) = flag.requires {
                assert!(driver.flags().any(|flag| flag.name == other), "{name}");
            }
            if let Value::Choice(_, choices) = flag.value {
                assert!(choices.iter().all(|(_, help)| !help.is_empty()), "{name}");
            }
        }
    }
    // Flags with the same name are the same flag.
    for driver in REGISTRY.drivers {
        for flag in driver.flags() {
            let all = REGISTRY.flags();
            assert!(
                all.iter().any(|known| std::ptr::eq(*known, flag)),
                "{}",
                flag.name
            );
        }
    }
}

#[test]
fn every_service_over_http_records_how_it_was_reached() {
    let dir = tempfile::tempdir().unwrap();
    let bundle = dir.path().join("ca.pem");
    let key = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(&bundle, key.cert.pem()).unwrap();
    let bundle = bundle.to_str().unwrap();
    let mut seen = Vec::new();
    for driver in REGISTRY.drivers {
        if !driver.reads(&SOURCE_ADDRESS) {
            continue;
        }
        assert_ne!(driver.form, UrlForm::Directory);
        let mut settings = Settings::default();
        settings.set(&ENDPOINT_URL, ["https://127.0.0.1:1"]);
        settings.set(&SOURCE_ADDRESS, ["127.0.0.2", "127.0.0.3"]);
        settings.set(&CA_BUNDLE, [bundle]);
        if driver.reads(&NO_SIGN_REQUEST) && driver.scheme() != "swift" {
            settings.switch_on(&NO_SIGN_REQUEST);
        }
        let facts = facts(driver, &settings);
        let said = |name: &str| {
            let mut all = facts.settings.iter();
            all.find(|(known, _)| known == name)
                .map(|(_, value)| value.as_str())
        };
        let scheme = driver.scheme();
        assert_eq!(facts.driver, driver.name);
        assert_eq!(
            said("source addresses"),
            Some("127.0.0.2,127.0.0.3"),
            "{scheme}"
        );
        assert!(said("tls").unwrap_or_default().contains(bundle), "{scheme}");
        assert!(facts.endpoints[0].contains("127.0.0.1:1"), "{scheme}");
        seen.push(scheme);
    }
    for scheme in ["s3", "az", "gs", "swift", "webhdfs", "seaweedfs"] {
        assert!(
            seen.contains(&scheme),
            "{scheme} is not reached over HTTP any more"
        );
    }
}
