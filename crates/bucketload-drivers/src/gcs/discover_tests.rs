use std::path::Path;

use super::GcsOverrides;
use crate::gcs::auth::Account;
use crate::gcs::config::{GcsConfig, LargeObject};
use crate::http::{ConfigError, Source};

fn discover(
    overrides: &GcsOverrides,
    env: &[(&str, &str)],
    home: Option<&Path>,
) -> Result<GcsConfig, ConfigError> {
    let lookup = |name: &str| {
        let found = env.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    GcsConfig::discover(overrides, &lookup, home)
}

fn source_of(config: &GcsConfig, name: &str) -> Source {
    let origin = config.origins.iter().find(|o| o.name == name);
    origin.unwrap().source.clone()
}

#[test]
fn the_default_is_googles_service_with_the_metadata_server() {
    let config = discover(&GcsOverrides::default(), &[], None).unwrap();
    assert_eq!(config.endpoints[0].url(), "https://storage.googleapis.com");
    let Some(Account::Metadata(endpoint)) = config.account else {
        panic!("not the metadata server");
    };
    assert_eq!(endpoint.authority, "metadata.google.internal");
}

#[test]
fn emulators_get_anonymous_requests() {
    for host in ["127.0.0.1:4443", "http://127.0.0.1:4443"] {
        let env = [
            ("STORAGE_EMULATOR_HOST", host),
            ("GOOGLE_APPLICATION_CREDENTIALS", "/nonexistent"),
            ("GOOGLE_CLOUD_PROJECT", "p"),
        ];
        let config = discover(&GcsOverrides::default(), &env, None).unwrap();
        assert_eq!(config.endpoints[0].url(), "http://127.0.0.1:4443");
        assert_eq!((config.account, config.project.as_str()), (None, "p"));
    }
    // An explicit endpoint is not treated as an emulator.
    let overrides = GcsOverrides {
        endpoint_url: Some("https://gcs.example".to_owned()),
        ..GcsOverrides::default()
    };
    let env = [
        ("STORAGE_EMULATOR_HOST", "x"),
        ("CLOUDSDK_AUTH_ACCESS_TOKEN", "ya29.t"),
    ];
    let config = discover(&overrides, &env, None).unwrap();
    assert!(matches!(config.account, Some(Account::Token(_))));
}

#[test]
fn credentials_are_looked_up_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let user = r#"{"type":"authorized_user","client_id":"c","client_secret":"s",
        "refresh_token":"r","quota_project_id":"q"}"#;
    let gcloud = dir.path().join(".config/gcloud");
    std::fs::create_dir_all(&gcloud).unwrap();
    let file = gcloud.join("application_default_credentials.json");
    std::fs::write(&file, user).unwrap();
    let home = Some(dir.path());
    let mut overrides = GcsOverrides::default();

    let config = discover(&overrides, &[], home).unwrap();
    assert!(matches!(config.account, Some(Account::User(_))));
    assert_eq!(config.project, "q");
    assert_eq!(
        source_of(&config, "credentials"),
        Source::File(file.display().to_string())
    );

    let key = dir.path().join("key.json");
    let service =
        r#"{"type":"service_account","client_email":"e","private_key":"k","project_id":"p"}"#;
    std::fs::write(&key, service).unwrap();
    let key = key.display().to_string();
    let mut env = vec![("GOOGLE_APPLICATION_CREDENTIALS", key.as_str())];
    let config = discover(&overrides, &env, home).unwrap();
    assert!(matches!(config.account, Some(Account::Service(_))));
    assert_eq!(config.project, "p");

    env.push(("GOOGLE_CLOUD_PROJECT", "other"));
    env.push(("GOOGLE_OAUTH_ACCESS_TOKEN", "ya29.secret"));
    let config = discover(&overrides, &env, home).unwrap();
    assert!(matches!(config.account, Some(Account::Token(_))));
    assert_eq!(
        source_of(&config, "credentials"),
        Source::Env("GOOGLE_OAUTH_ACCESS_TOKEN")
    );
    assert_eq!(config.project, "other");
    assert!(!format!("{config:?}").contains("ya29"));

    overrides.token_file = Some("/t".into());
    let config = discover(&overrides, &env, home).unwrap();
    assert_eq!(config.account, Some(Account::TokenFile("/t".into())));

    overrides.anonymous = true;
    assert_eq!(discover(&overrides, &env, home).unwrap().account, None);
}

#[test]
fn errors_name_the_setting() {
    let none = GcsOverrides::default();
    let cases: [(&[(&str, &str)], &str); 4] = [
        (
            &[("GOOGLE_APPLICATION_CREDENTIALS", "/nonexistent/k")],
            "/nonexistent/k: the credentials file",
        ),
        (
            &[("GOOGLE_OAUTH_ACCESS_TOKEN", "a b")],
            "GOOGLE_OAUTH_ACCESS_TOKEN: it contains blanks",
        ),
        (
            &[("STORAGE_EMULATOR_HOST", "ftp://x")],
            "STORAGE_EMULATOR_HOST: scheme `ftp`",
        ),
        (
            &[("GOOGLE_CLOUD_PROJECT", "a b")],
            "project: it contains characters",
        ),
    ];
    for (env, part) in cases {
        let error = discover(&none, env, None).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
    assert_eq!("compose".parse(), Ok(LargeObject::Compose));
    assert!(
        "xml"
            .parse::<LargeObject>()
            .unwrap_err()
            .contains("resumable, compose")
    );
}
