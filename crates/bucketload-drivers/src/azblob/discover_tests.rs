use super::{AzureConfig, AzureOverrides};
use crate::azblob::Auth;
use crate::http::Secret;

const STRING: &str =
    "AccountName=fromstring;AccountKey=c3RyaW5n;BlobEndpoint=http://127.0.0.1:7/fromstring";

fn discover(overrides: &AzureOverrides, env: &[(&str, &str)]) -> Result<AzureConfig, String> {
    let look = |name: &str| {
        let found = env.iter().find(|(n, _)| *n == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    AzureConfig::discover(overrides, &look).map_err(|e| e.to_string())
}

fn plain(env: &[(&str, &str)]) -> Result<AzureConfig, String> {
    discover(&AzureOverrides::default(), env)
}

fn key(text: &str) -> Auth {
    Auth::SharedKey(Secret::new(text))
}

#[test]
fn the_connection_string_takes_precedence() {
    let config = plain(&[
        ("AZURE_STORAGE_CONNECTION_STRING", STRING),
        ("AZURE_STORAGE_ACCOUNT", "other"),
        ("AZURE_STORAGE_KEY", "b3RoZXI="),
        ("AZURE_STORAGE_SAS_TOKEN", "sig=other"),
        ("AZURE_STORAGE_SERVICE_ENDPOINT", "http://other"),
    ])
    .unwrap();
    assert_eq!(config.account, "fromstring");
    assert_eq!(config.auth, key("c3RyaW5n"));
    assert_eq!(config.endpoints[0].url(), "http://127.0.0.1:7/fromstring");
    assert!(config.origins.iter().all(|o| !o.value.contains("c3Ry")));
    let of = |name: &str| {
        let origin = config.origins.iter().find(|o| o.name == name).unwrap();
        origin.source.to_string()
    };
    assert_eq!(of("credentials"), "AZURE_STORAGE_CONNECTION_STRING");
    assert_eq!(of("checksum"), "default");
}

#[test]
fn a_sas_takes_precedence_over_a_key() {
    let account = ("AZURE_STORAGE_ACCOUNT", "acc");
    let config = plain(&[account, ("AZURE_STORAGE_KEY", "a2V5")]).unwrap();
    assert_eq!(config.auth, key("a2V5"));
    assert_eq!(
        config.endpoints[0].url(),
        "https://acc.blob.core.windows.net"
    );
    let config = plain(&[
        account,
        ("AZURE_STORAGE_KEY", "a2V5"),
        ("AZURE_STORAGE_SAS_TOKEN", "?sv=1&sig=x%3D"),
    ])
    .unwrap();
    assert_eq!(config.auth, Auth::Sas("sv=1&sig=x%3D".into()));
}

#[test]
fn flags_take_precedence_over_the_environment() {
    let overrides = AzureOverrides {
        endpoint_url: Some("http://127.0.0.1:9".to_owned()),
        ..AzureOverrides::default()
    };
    let config = discover(&overrides, &[("AZURE_STORAGE_CONNECTION_STRING", STRING)]).unwrap();
    // An endpoint at a bare address gets the account as its path.
    assert_eq!(config.endpoints[0].url(), "http://127.0.0.1:9/fromstring");
    let overrides = AzureOverrides {
        no_sign_request: true,
        ..AzureOverrides::default()
    };
    let env = [
        ("AZURE_STORAGE_ACCOUNT", "public"),
        ("AZURE_STORAGE_KEY", "a2V5"),
    ];
    let config = discover(&overrides, &env).unwrap();
    assert_eq!(config.auth, Auth::Anonymous);
    assert_eq!(
        config.endpoints[0].url(),
        "https://public.blob.core.windows.net"
    );
}

#[test]
fn accounts_are_read_from_endpoints() {
    let config = plain(&[
        ("AZURE_STORAGE_SERVICE_ENDPOINT", "http://127.0.0.1:7/acc"),
        ("AZURE_STORAGE_KEY", "a2V5"),
    ])
    .unwrap();
    assert_eq!(config.account, "acc");
    assert_eq!(config.endpoints[0].url(), "http://127.0.0.1:7/acc");
}

#[test]
fn errors_name_the_missing_setting() {
    for (env, words) in [
        (
            &[][..],
            ["AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_CONNECTION_STRING"],
        ),
        (
            &[("AZURE_STORAGE_ACCOUNT", "a")][..],
            ["credentials", "AZURE_STORAGE_SAS_TOKEN"],
        ),
        (
            &[("AZURE_STORAGE_ACCOUNT", "a"), ("AZURE_CLIENT_ID", "x")][..],
            ["AZURE_CLIENT_ID", "not supported"],
        ),
        (
            &[("AZURE_STORAGE_CONNECTION_STRING", "AccountName=a")][..],
            ["AZURE_STORAGE_CONNECTION_STRING", "AccountKey"],
        ),
        (
            &[("AZURE_STORAGE_ACCOUNT", "a"), ("AZURE_STORAGE_KEY", "%")][..],
            ["account key", "base64"],
        ),
    ] {
        let error = plain(env).unwrap_err();
        assert!(words.iter().all(|w| error.contains(w)), "{error}");
    }
}
