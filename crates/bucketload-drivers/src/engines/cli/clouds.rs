//! How the clients of Azure Blob Storage (`az`) and of Google Cloud Storage (`gsutil`) get the target's address
//! and credentials.
//!
//! `az` reads a connection string from the environment, `gsutil` a Boto configuration file (`gsutil help
//! config`). Both get a private home directory, so the caller's logins have no effect.

use std::fmt::Write as _;
use std::io;
use std::path::Path;

use serde_json::json;

use super::invocation::{Invocation, NATIVE, check_connection, refusal, write_private};
use super::tool::Tool;
use crate::azblob::{Auth, AzureConfig};
use crate::gcs::{Account, GcsConfig, ServiceKey};
use crate::http::{ConfigError, Endpoint, Secret};

/// Refuses settings of `config` that `az` does not support.
///
/// # Errors
/// The first such setting.
pub(super) fn check_azure(config: &AzureConfig) -> Result<(), ConfigError> {
    check_connection(Tool::Az, &config.tls, &config.source_addresses)?;
    if config.checksum.is_some() {
        return Err(refusal(Tool::Az, "with a checksum (--checksum)", NATIVE));
    }
    match config.auth {
        Auth::Anonymous => Err(refusal(
            Tool::Az,
            "without credentials",
            "give a key, a shared access signature or a connection string",
        )),
        _ => Ok(()),
    }
}

/// The secrets of `config`.
pub(super) fn azure_secrets(config: &AzureConfig) -> Vec<Secret> {
    match &config.auth {
        Auth::SharedKey(secret) | Auth::Sas(secret) => vec![secret.clone()],
        Auth::Anonymous => Vec::new(),
    }
}

/// The invocation of `az` for the account of `config` at `endpoint`. Its files go into `dir`.
pub(super) fn azure(config: &AzureConfig, endpoint: &Endpoint, dir: &Path) -> Invocation {
    let mut invocation = Invocation::default();
    let mut string = format!("BlobEndpoint={};", endpoint.url());
    let _ = match &config.auth {
        Auth::SharedKey(key) => {
            let account = &config.account;
            write!(string, "AccountName={account};AccountKey={};", key.expose())
        }
        Auth::Sas(token) => write!(string, "SharedAccessSignature={};", token.expose()),
        Auth::Anonymous => Ok(()),
    };
    invocation.env("AZURE_STORAGE_CONNECTION_STRING", string);
    invocation.env("AZURE_CONFIG_DIR", dir.join("az"));
    for (name, value) in [
        ("AZURE_CORE_COLLECT_TELEMETRY", "false"),
        ("AZURE_CORE_NO_COLOR", "true"),
        ("AZURE_CORE_ONLY_SHOW_ERRORS", "true"),
        ("AZURE_CORE_DISABLE_PROGRESS_BAR", "true"),
        ("AZURE_EXTENSION_USE_DYNAMIC_INSTALL", "no"),
    ] {
        invocation.env(name, value);
    }
    if let Some(bundle) = &config.tls.ca_bundle {
        invocation.env("REQUESTS_CA_BUNDLE", bundle);
    }
    if config.tls.insecure {
        invocation.env("AZURE_CLI_DISABLE_CONNECTION_VERIFICATION", "1");
    }
    invocation
}

/// Refuses settings of `config` that `gsutil` does not support.
///
/// # Errors
/// The first such setting.
pub(super) fn check_gcs(config: &GcsConfig) -> Result<(), ConfigError> {
    check_connection(Tool::Gsutil, &config.tls, &config.source_addresses)?;
    let place = |e: &&Endpoint| !e.tls || !e.base_path.is_empty();
    if let Some(endpoint) = config.endpoints.iter().find(place) {
        return Err(refusal(
            Tool::Gsutil,
            &format!(
                "for {}: it supports https only, without a path",
                endpoint.url()
            ),
            "name an https endpoint (--endpoint-url, and --ca-bundle for its certificate)",
        ));
    }
    match &config.account {
        Some(Account::Token(_) | Account::TokenFile(_)) => Err(refusal(
            Tool::Gsutil,
            "with an access token",
            "use the file of a service account or of `gcloud auth application-default login` \
             (GOOGLE_APPLICATION_CREDENTIALS)",
        )),
        _ => Ok(()),
    }
}

/// The secrets of `config`.
pub(super) fn gcs_secrets(config: &GcsConfig) -> Vec<Secret> {
    match &config.account {
        Some(Account::Service(ServiceKey { key, .. })) => vec![key.clone()],
        Some(Account::User(user)) => vec![user.client_secret.clone(), user.refresh_token.clone()],
        _ => Vec::new(),
    }
}

/// The invocation of `gsutil` for `endpoint`. Writes files into `dir`, which is private to the run.
///
/// # Errors
/// When a file cannot be written.
pub(super) fn gcs(
    config: &GcsConfig,
    endpoint: &Endpoint,
    dir: &Path,
    retries: u32,
) -> io::Result<Invocation> {
    let mut invocation = Invocation::default();
    let home = dir.join("gsutil");
    std::fs::create_dir(&home)?;
    let mut credentials = format!(
        "gs_json_host = {}\ngs_json_port = {}\n",
        endpoint.host, endpoint.port
    );
    let mut more = String::new();
    match &config.account {
        Some(Account::Service(key)) => {
            let file = home.join("key.json");
            let document = json!({
                "type": "service_account", "client_email": key.email, "client_id": "",
                "private_key_id": key.key_id, "private_key": key.key.expose(),
                "token_uri": key.token_url,
            });
            write_private(&file, &document.to_string())?;
            credentials += &format!("gs_service_key_file = {}\n", file.display());
        }
        Some(Account::User(user)) => {
            let token = user.refresh_token.expose();
            credentials += &format!("gs_oauth2_refresh_token = {token}\n");
            more = format!(
                "[OAuth2]\nclient_id = {}\nclient_secret = {}\nprovider_token_uri = {}\n",
                user.client_id,
                user.client_secret.expose(),
                user.token_url
            );
        }
        Some(Account::Metadata(_)) => {
            more = "[GoogleCompute]\nservice_account = default\n".to_owned();
        }
        // `check_gcs` refused tokens.
        Some(Account::Token(_) | Account::TokenFile(_)) | None => {}
    }
    let trust = match (&config.tls.ca_bundle, config.tls.insecure) {
        (_, true) => "https_validate_certificates = False\n".to_owned(),
        (Some(bundle), _) => format!("ca_certificates_file = {}\n", bundle.display()),
        (None, _) => String::new(),
    };
    let text = format!(
        "[Credentials]\n{credentials}[Boto]\nnum_retries = {retries}\n{trust}\
         [GSUtil]\nprefer_api = json\nsoftware_update_check_period = 0\nstate_dir = {}\n\
         parallel_process_count = 1\nparallel_thread_count = 1\ndefault_project_id = {}\n{more}",
        home.join("state").display(),
        config.project,
    );
    let file = home.join("boto");
    write_private(&file, &text)?;
    invocation.env("BOTO_CONFIG", file);
    invocation.env("BOTO_PATH", "");
    // Directory with the logins of other tools.
    invocation.env("CLOUDSDK_CONFIG", home.join("gcloud"));
    Ok(invocation)
}

#[cfg(test)]
mod tests {
    use super::{azure, check_azure, check_gcs, gcs};
    use crate::azblob::{Auth, AzureConfig};
    use crate::gcs::{Account, GcsConfig, ServiceKey};
    use crate::http::Endpoint;

    const SECRET: &str = "c2VjcmV0";

    #[test]
    fn az_gets_a_connection_string_through_the_environment() {
        let endpoint = Endpoint::parse("http://127.0.0.1:10000/acc", "test").unwrap();
        let dir = std::path::Path::new("/private");
        for (auth, words) in [
            (
                Auth::SharedKey(SECRET.into()),
                "AccountName=acc;AccountKey=c2VjcmV0;",
            ),
            (Auth::Sas(SECRET.into()), "SharedAccessSignature=c2VjcmV0;"),
        ] {
            let config = AzureConfig::new(vec![endpoint.clone()], "acc", auth);
            assert_eq!(check_azure(&config), Ok(()));
            let got = azure(&config, &endpoint, dir);
            assert!(got.args.is_empty());
            let string = format!("BlobEndpoint=http://127.0.0.1:10000/acc;{words}");
            let pair = ("AZURE_STORAGE_CONNECTION_STRING".into(), string.into());
            assert!(got.env.contains(&pair), "{:?}", got.env);
        }
        let config = AzureConfig::new(vec![endpoint], "acc", Auth::Anonymous);
        assert!(check_azure(&config).is_err());
    }

    #[test]
    fn gsutil_gets_a_private_file_and_https_only() {
        use std::os::unix::fs::PermissionsExt as _;
        let endpoint = Endpoint::parse("https://127.0.0.1:4443", "test").unwrap();
        let mut config = GcsConfig::new(vec![endpoint.clone()]);
        config.account = Some(Account::Service(ServiceKey {
            email: "me@example".to_owned(),
            key_id: "1".to_owned(),
            key: SECRET.into(),
            token_url: "https://t.example".to_owned(),
        }));
        config.tls.ca_bundle = Some("/ca.pem".into());
        assert_eq!(check_gcs(&config), Ok(()));
        let dir = tempfile::tempdir().unwrap();
        let got = gcs(&config, &endpoint, dir.path(), 3).unwrap();
        let place = dir.path().join("gsutil");
        let boto = std::fs::read_to_string(place.join("boto")).unwrap();
        for line in [
            "gs_json_host = 127.0.0.1\n",
            "gs_json_port = 4443\n",
            "num_retries = 3\n",
            "ca_certificates_file = /ca.pem\n",
        ] {
            assert!(boto.contains(line), "{boto}");
        }
        assert!(!boto.contains(SECRET) && got.args.is_empty());
        let key = place.join("key.json");
        assert!(std::fs::read_to_string(&key).unwrap().contains(SECRET));
        let mode = key.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        config.endpoints = vec![Endpoint::parse("http://127.0.0.1:4443", "test").unwrap()];
        let error = check_gcs(&config).unwrap_err().to_string();
        assert!(error.contains("https only"), "{error}");
    }
}
