//! Tests of discovery.

use std::collections::HashMap;

use super::SwiftOverrides;
use crate::swift::config::{Domain, Identity, Named, SwiftAuth, SwiftConfig};

fn discover(overrides: &SwiftOverrides, env: &[(&str, &str)]) -> Result<SwiftConfig, String> {
    let env: HashMap<_, _> = env.iter().copied().collect();
    let look = |name: &str| env.get(name).map(|value| (*value).to_owned());
    SwiftConfig::discover(overrides, &look, None).map_err(|e| e.to_string())
}

const V1: [(&str, &str); 3] = [
    ("ST_AUTH", "http://h:8085/auth/v1.0"),
    ("ST_USER", "test:tester"),
    ("ST_KEY", "testing"),
];

const V3: [(&str, &str); 5] = [
    ("OS_AUTH_URL", "http://k:5000/v3"),
    ("OS_USERNAME", "alice"),
    ("OS_PASSWORD", "secret"),
    ("OS_PROJECT_NAME", "bench"),
    ("OS_REGION_NAME", "one"),
];

#[test]
fn version_one_is_three_variables() {
    let config = discover(&SwiftOverrides::default(), &V1).unwrap();
    let SwiftAuth::V1 { url, user, key } = &config.auth else {
        panic!("{config:?}");
    };
    assert_eq!(url.base_path, "/auth/v1.0");
    assert_eq!((user.as_str(), key.expose()), ("test:tester", "testing"));
    let text = format!("{config:?}");
    assert!(!text.contains("testing"), "{text}");
    for missing in [1, 2] {
        let mut some = V1.to_vec();
        let name = some.remove(missing).0;
        let error = discover(&SwiftOverrides::default(), &some).unwrap_err();
        assert!(error.starts_with(name), "{error}");
    }
}

#[test]
fn keystone_has_a_default_domain() {
    let config = discover(&SwiftOverrides::default(), &V3).unwrap();
    let SwiftAuth::Keystone(keystone) = &config.auth else {
        panic!("{config:?}");
    };
    assert_eq!(keystone.region.as_deref(), Some("one"));
    let default = Domain::Id("default".into());
    assert!(
        matches!(&keystone.identity, Identity::Password { user: Named::Name { domain, .. }, .. } if *domain == default)
    );
    for left_out in 1..4 {
        let mut some = V3.to_vec();
        let name = some.remove(left_out).0;
        let error = discover(&SwiftOverrides::default(), &some).unwrap_err();
        assert!(error.starts_with(name), "{error}");
    }
    let error = discover(
        &SwiftOverrides::default(),
        &[V3.as_slice(), &[("OS_AUTH_TYPE", "v3oidcpassword")]].concat(),
    )
    .unwrap_err();
    assert!(error.contains("v3oidcpassword"), "{error}");
}

#[test]
fn flags_take_precedence_and_sets_are_not_mixed() {
    let token = [
        ("OS_STORAGE_URL", "http://s/v1/AUTH_x"),
        ("OS_AUTH_TOKEN", "tk"),
    ];
    let all = [V1.as_slice(), &V3, &token].concat();
    let config = discover(&SwiftOverrides::default(), &all).unwrap();
    assert!(matches!(config.auth, SwiftAuth::Token(_)));
    let all = [V1.as_slice(), &V3].concat();
    let config = discover(&SwiftOverrides::default(), &all).unwrap();
    assert!(matches!(config.auth, SwiftAuth::V1 { .. }));
    let overrides = SwiftOverrides {
        region: Some("two".into()),
        endpoint_url: Some("http://p{1...3}:8080".into()),
        ..SwiftOverrides::default()
    };
    let config = discover(&overrides, &V3).unwrap();
    assert_eq!(config.hosts.len(), 3);
    assert!(matches!(&config.auth, SwiftAuth::Keystone(k) if k.region.as_deref() == Some("two")));
    let error = discover(&overrides, &V1).unwrap_err();
    assert!(error.starts_with("--region"), "{error}");
    let overrides = SwiftOverrides {
        anonymous: true,
        ..SwiftOverrides::default()
    };
    assert!(
        discover(&overrides, &V1)
            .unwrap_err()
            .contains("OS_STORAGE_URL")
    );
    assert_eq!(
        discover(&overrides, &token).unwrap().auth,
        SwiftAuth::Anonymous
    );
}

#[test]
fn hosts_have_no_path_and_missing_settings_are_explained() {
    let overrides = SwiftOverrides {
        endpoint_url: Some("http://p:8080/v1/AUTH_test".into()),
        ..SwiftOverrides::default()
    };
    let error = discover(&overrides, &V1).unwrap_err();
    assert!(error.contains("has a path"), "{error}");
    let error = discover(&SwiftOverrides::default(), &[]).unwrap_err();
    for name in ["ST_AUTH", "OS_AUTH_URL", "OS_CLOUD", "OS_AUTH_TOKEN"] {
        assert!(error.contains(name), "{error}");
    }
}

#[test]
fn a_named_cloud_replaces_all_variables() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("clouds.yaml");
    let text = "clouds:\n  dev:\n    auth:\n      auth_url: https://k\n      application_credential_id: id1\n      \
                application_credential_secret: hush\n    auth_type: v3applicationcredential\n    verify: false\n    cacert: /ca.pem\n";
    std::fs::write(&file, text).unwrap();
    let path = file.display().to_string();
    let env = [
        ("OS_CLOUD", "dev"),
        ("OS_CLIENT_CONFIG_FILE", path.as_str()),
        ("OS_USERNAME", "bob"),
    ];
    let config = discover(&SwiftOverrides::default(), &env).unwrap();
    let SwiftAuth::Keystone(keystone) = &config.auth else {
        panic!("{config:?}");
    };
    assert!(matches!(&keystone.identity, Identity::Application { id, .. } if id == "id1"));
    assert!(config.tls.insecure && config.tls.ca_bundle.is_some());
    assert!(
        config
            .origins
            .iter()
            .any(|o| o.name == "cloud" && o.value == "dev")
    );
    assert!(!format!("{:?}", config.origins).contains("hush"));
}
