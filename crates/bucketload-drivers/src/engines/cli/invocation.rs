//! How each client gets the target's address and credentials: through environment variables and files
//! of mode 600 in a private directory, never through arguments, which other users can read.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use serde_json::json;

use super::tool::{InstalledTool, Tool};
use crate::http::{Secret, TlsConfig};
use crate::s3::{Addressing, ConfigError, Credentials, Endpoint, PayloadMode, S3Config};
use crate::swift::{SwiftAuth, SwiftConfig};

/// Name of the target in the configuration of clients that need one.
pub(crate) const ALIAS: &str = "bucketload";

/// Prefixes of environment variables that configure a client. They are hidden from it, except those set
/// here.
pub(crate) const HIDDEN_PREFIXES: [&str; 13] = [
    "AWS_",
    "MC_",
    "RCLONE_",
    "S3_",
    "S3CMD",
    "BOTO",
    "ST_",
    "OS_",
    "SWIFT_",
    "AZURE_",
    "GOOGLE_",
    "CLOUDSDK_",
    "REQUESTS_CA_BUNDLE",
];

/// Environment and leading arguments of a client for one endpoint.
#[derive(Clone, Debug, Default)]
pub(crate) struct Invocation {
    pub(crate) env: Vec<(OsString, OsString)>,
    /// Arguments in front of the command.
    pub(crate) args: Vec<OsString>,
}

impl Invocation {
    pub(super) fn env(&mut self, name: &str, value: impl Into<OsString>) {
        self.env.push((name.into(), value.into()));
    }

    fn arg(&mut self, value: impl Into<OsString>) {
        self.args.push(value.into());
    }
}

/// Remedy for a flag that a client does not support.
pub(super) const NATIVE: &str = "omit the flag, or use --engine native";

/// The error for a setting that `tool` does not support.
pub(super) fn refusal(tool: Tool, what: &str, remedy: &str) -> ConfigError {
    let place = format!("engine cli:{tool}");
    ConfigError::new(place, format!("it cannot be used {what}"), remedy)
}

/// Refuses connection settings that no client supports.
pub(super) fn check_connection(
    tool: Tool,
    tls: &TlsConfig,
    sources: &[IpAddr],
) -> Result<(), ConfigError> {
    if tls.client.is_some() {
        let what = "with a client certificate (--client-cert)";
        return Err(refusal(tool, what, NATIVE));
    }
    if !sources.is_empty() {
        let what = "with source addresses (--source-address)";
        return Err(refusal(tool, what, NATIVE));
    }
    Ok(())
}

/// Refuses settings that the client does not support.
///
/// # Errors
/// The first such setting.
pub(crate) fn check(tool: Tool, config: &S3Config) -> Result<(), ConfigError> {
    let fail = |what: &str, remedy: &str| Err(refusal(tool, what, remedy));
    if let Some(scheme) = tool.scheme() {
        return fail(
            "for S3",
            &format!("use one of its own targets ({scheme}://…) or another client"),
        );
    }
    if config.payload != PayloadMode::Unsigned {
        return fail("with signed payloads (--payload-signing)", NATIVE);
    }
    if config.checksum.is_some() {
        return fail("with a checksum (--checksum)", NATIVE);
    }
    check_connection(tool, &config.tls, &config.source_addresses)?;
    let with_path = config.endpoints.iter().any(|e| !e.base_path.is_empty());
    if with_path && matches!(tool, Tool::Mc | Tool::S3cmd) {
        return fail(
            "with a path in front of the bucket",
            "end the URL after host and port",
        );
    }
    if config.credentials.is_none() && tool == Tool::S3cmd {
        return fail(
            "without credentials",
            "give credentials, or use cli:aws, cli:mc or cli:rclone",
        );
    }
    Ok(())
}

/// The invocation of `client` for `endpoint`. Writes files into `dir`, which is private to the run.
///
/// # Errors
/// When a file cannot be written.
pub(crate) fn invocation(
    client: &InstalledTool,
    config: &S3Config,
    endpoint: &Endpoint,
    dir: &Path,
    retries: u32,
) -> io::Result<Invocation> {
    match client.tool {
        Tool::Aws => aws(config, endpoint, dir, retries),
        Tool::Mc => mc(config, endpoint, dir),
        Tool::Rclone => rclone(config, endpoint, dir, retries),
        Tool::S3cmd => s3cmd(config, endpoint, dir, retries),
        // Refused by `check`.
        Tool::Swift | Tool::Az | Tool::Gsutil => Ok(Invocation::default()),
    }
}

/// The invocation of OpenStack Swift's client for the account of `config`, and its secrets.
///
/// # Errors
/// The first setting that the client does not support.
pub(crate) fn swift(
    config: &SwiftConfig,
    retries: u32,
) -> Result<(Invocation, Vec<Secret>), ConfigError> {
    let fail = |what: &str, remedy: &str| Err(refusal(Tool::Swift, what, remedy));
    check_connection(Tool::Swift, &config.tls, &config.source_addresses)?;
    if !config.hosts.is_empty() {
        return fail(
            "with other hosts than the account's (--endpoint-url)",
            NATIVE,
        );
    }
    if config.etag {
        return fail("with a checksum (--checksum)", NATIVE);
    }
    let mut invocation = Invocation::default();
    invocation.arg("--retries");
    invocation.arg(retries.to_string());
    if let Some(bundle) = &config.tls.ca_bundle {
        invocation.arg("--os-cacert");
        invocation.arg(bundle);
    }
    if config.tls.insecure {
        invocation.arg("--insecure");
    }
    let secret = match (&config.auth, &config.storage_url) {
        (SwiftAuth::V1 { url, user, key }, None) => {
            invocation.env("ST_AUTH", url.url());
            invocation.env("ST_USER", user);
            invocation.env("ST_KEY", key.expose());
            key.clone()
        }
        (SwiftAuth::Token(token), Some(url)) => {
            invocation.env("OS_STORAGE_URL", url.url());
            invocation.env("OS_AUTH_TOKEN", token.expose());
            token.clone()
        }
        _ => {
            let remedy = "set ST_AUTH, ST_USER and ST_KEY, or OS_STORAGE_URL and OS_AUTH_TOKEN";
            return fail("with a login other than auth v1 or a token", remedy);
        }
    };
    Ok((invocation, vec![secret]))
}

/// Access key, secret key and token; empty if missing.
fn parts(config: &S3Config) -> [&str; 3] {
    let Some(Credentials {
        access_key,
        secret_key,
        session_token,
    }) = &config.credentials
    else {
        return [""; 3];
    };
    let token = session_token.as_ref().map_or("", |token| token.expose());
    [access_key, secret_key.expose(), token]
}

/// The secrets of `config`.
pub(crate) fn secrets(config: &S3Config) -> Vec<Secret> {
    let credentials = config.credentials.iter();
    credentials
        .flat_map(|c| [Some(c.secret_key.clone()), c.session_token.clone()])
        .flatten()
        .collect()
}

/// Writes a file that only its owner may read.
pub(super) fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(text.as_bytes())
}

fn aws(config: &S3Config, endpoint: &Endpoint, dir: &Path, retries: u32) -> io::Result<Invocation> {
    let mut invocation = Invocation::default();
    let (file, none) = (dir.join("aws-config"), dir.join("aws-credentials"));
    write_private(
        &file,
        &format!(
            "[default]\nregion = {}\ns3 =\n  addressing_style = {}\n",
            config.region, config.addressing
        ),
    )?;
    write_private(&none, "")?;
    invocation.env("AWS_CONFIG_FILE", file);
    invocation.env("AWS_SHARED_CREDENTIALS_FILE", none);
    invocation.env("AWS_ENDPOINT_URL", endpoint.url());
    invocation.env("AWS_REGION", &config.region);
    invocation.env("AWS_DEFAULT_REGION", &config.region);
    invocation.env("AWS_RETRY_MODE", "standard");
    invocation.env("AWS_MAX_ATTEMPTS", (u64::from(retries) + 1).to_string());
    invocation.env("AWS_EC2_METADATA_DISABLED", "true");
    invocation.env("AWS_PAGER", "");
    let [key, secret, token] = parts(config);
    if key.is_empty() {
        invocation.arg("--no-sign-request");
    } else {
        invocation.env("AWS_ACCESS_KEY_ID", key);
        invocation.env("AWS_SECRET_ACCESS_KEY", secret);
    }
    if !token.is_empty() {
        invocation.env("AWS_SESSION_TOKEN", token);
    }
    if let Some(bundle) = &config.tls.ca_bundle {
        invocation.env("AWS_CA_BUNDLE", bundle);
    }
    if config.tls.insecure {
        invocation.arg("--no-verify-ssl");
    }
    Ok(invocation)
}

fn mc(config: &S3Config, endpoint: &Endpoint, dir: &Path) -> io::Result<Invocation> {
    let mut invocation = Invocation::default();
    let home = dir.join("mc");
    std::fs::create_dir(&home)?;
    let [key, secret, token] = parts(config);
    let path = match config.addressing {
        Addressing::Path => "on",
        Addressing::Virtual => "off",
    };
    let mut alias = json!({
        "url": endpoint.url(), "accessKey": key, "secretKey": secret, "api": "S3v4", "path": path,
    });
    if !token.is_empty() {
        alias["sessionToken"] = token.into();
    }
    let document = json!({"version": "10", "aliases": {ALIAS: alias}});
    write_private(&home.join("config.json"), &document.to_string())?;
    if let Some(bundle) = &config.tls.ca_bundle {
        let trusted = home.join("certs").join("CAs");
        std::fs::create_dir_all(&trusted)?;
        std::fs::copy(bundle, trusted.join("bundle.crt"))?;
    }
    invocation.arg("--config-dir");
    invocation.arg(home);
    for flag in ["--quiet", "--disable-pager", "--json"] {
        invocation.arg(flag);
    }
    if config.tls.insecure {
        invocation.arg("--insecure");
    }
    Ok(invocation)
}

fn rclone(
    config: &S3Config,
    endpoint: &Endpoint,
    dir: &Path,
    retries: u32,
) -> io::Result<Invocation> {
    let mut invocation = Invocation::default();
    let empty = dir.join("rclone.conf");
    write_private(&empty, "")?;
    invocation.env("RCLONE_CONFIG", empty);
    let style = (config.addressing == Addressing::Path).to_string();
    let [key, secret, token] = parts(config);
    for (name, value) in [
        ("TYPE", "s3"),
        ("PROVIDER", "Other"),
        ("ENV_AUTH", "false"),
        ("ENDPOINT", &endpoint.url()),
        ("REGION", &config.region),
        ("FORCE_PATH_STYLE", &style),
        ("ACCESS_KEY_ID", key),
        ("SECRET_ACCESS_KEY", secret),
        ("SESSION_TOKEN", token),
    ] {
        if !value.is_empty() {
            let name = format!("RCLONE_CONFIG_{}_{name}", ALIAS.to_ascii_uppercase());
            invocation.env(&name, value);
        }
    }
    // Run the whole command once, but allow retries of each request.
    invocation.env("RCLONE_RETRIES", "1");
    let attempts = (u64::from(retries) + 1).to_string();
    invocation.env("RCLONE_LOW_LEVEL_RETRIES", attempts);
    // Otherwise rclone skips a write with equal size and time.
    invocation.env("RCLONE_IGNORE_TIMES", "true");
    if let Some(bundle) = &config.tls.ca_bundle {
        invocation.env("RCLONE_CA_CERT", bundle);
    }
    if config.tls.insecure {
        invocation.env("RCLONE_NO_CHECK_CERTIFICATE", "true");
    }
    Ok(invocation)
}

fn s3cmd(
    config: &S3Config,
    endpoint: &Endpoint,
    dir: &Path,
    retries: u32,
) -> io::Result<Invocation> {
    let mut invocation = Invocation::default();
    let [key, secret, token] = parts(config);
    let host = &endpoint.authority;
    let bucket_host = match config.addressing {
        Addressing::Path => host.clone(),
        Addressing::Virtual => format!("%(bucket)s.{host}"),
    };
    let word = |truth: bool| if truth { "True" } else { "False" };
    let mut text = format!(
        "[default]\naccess_key = {key}\nsecret_key = {secret}\naccess_token = {token}\n\
         host_base = {host}\nhost_bucket = {bucket_host}\nbucket_location = {}\n\
         use_https = {}\ncheck_ssl_certificate = {}\ncheck_ssl_hostname = {}\n\
         max_retries = {retries}\n",
        config.region,
        word(endpoint.tls),
        word(!config.tls.insecure),
        word(!config.tls.insecure),
    );
    if let Some(bundle) = &config.tls.ca_bundle {
        text += &format!("ca_certs_file = {}\n", bundle.display());
    }
    let file = dir.join("s3cfg");
    write_private(&file, &text)?;
    invocation.arg("-c");
    invocation.arg(file);
    invocation.arg("--no-progress");
    Ok(invocation)
}

/// The description of retries for the result header.
pub(crate) fn retries_in_words(client: &InstalledTool, retries: u32) -> String {
    let hidden = "actual retries are not visible";
    match client.tool {
        Tool::Mc | Tool::Az => format!("the client's default (it has no switch); {hidden}"),
        Tool::S3cmd if !has_retry_switch(&client.version) => {
            format!("up to 5, 3 to 15 s apart (no switch before s3cmd 2.4); {hidden}")
        }
        _ if retries == 0 => "none".to_owned(),
        _ => format!("at most {retries}; {hidden}"),
    }
}

/// Whether this version of s3cmd supports `max_retries`.
fn has_retry_switch(version: &str) -> bool {
    let number = version.rsplit(' ').next().unwrap_or_default();
    let mut parts = number
        .split('.')
        .map(|part| part.parse::<u32>().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) >= (2, 4)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::{Path, PathBuf};

    use super::{check, has_retry_switch, invocation, swift};
    use crate::engines::cli::tool::{InstalledTool, Tool};
    use crate::s3::{ChecksumAlgorithm, Credentials, Endpoint, S3Config};
    use crate::swift::{SwiftAuth, SwiftConfig};

    const SECRET: &str = "sEcret/key+";

    fn config() -> S3Config {
        let endpoint = Endpoint::parse("http://127.0.0.1:9000", "test").unwrap();
        let credentials = Credentials::new("AKID", SECRET).with_token("tOken");
        S3Config::new(vec![endpoint], "eu-1", Some(credentials))
    }

    fn files(dir: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                files(&path, found);
            } else {
                found.push(path);
            }
        }
    }

    #[test]
    fn secrets_are_only_in_private_files_or_the_environment() {
        let config = config();
        for tool in Tool::ALL.into_iter().filter(|t| t.scheme().is_none()) {
            let dir = tempfile::tempdir().unwrap();
            let client = InstalledTool {
                tool,
                path: tool.program().into(),
                version: String::new(),
            };
            let got = invocation(&client, &config, &config.endpoints[0], dir.path(), 2).unwrap();
            let holds = |text: &std::ffi::OsStr| text.to_string_lossy().contains(SECRET);
            assert!(!got.args.iter().any(|arg| holds(arg)), "{tool}");
            let mut secret_found = got.env.iter().any(|(_, value)| holds(value));
            let mut all = Vec::new();
            files(dir.path(), &mut all);
            for file in all {
                let mode = file.metadata().unwrap().permissions().mode();
                assert_eq!(mode & 0o777, 0o600, "{}", file.display());
                secret_found |= std::fs::read_to_string(&file).unwrap().contains(SECRET);
            }
            assert!(secret_found, "{tool} does not know the secret");
        }
    }

    #[test]
    fn unsupported_settings_are_refused() {
        let mut checksum = config();
        checksum.checksum = Some(ChecksumAlgorithm::Crc32);
        let mut addresses = config();
        addresses.source_addresses = vec!["127.0.0.1".parse().unwrap()];
        let mut anonymous = config();
        anonymous.credentials = None;
        assert!(check(Tool::Swift, &config()).is_err());
        for tool in Tool::ALL.into_iter().filter(|t| t.scheme().is_none()) {
            assert_eq!(check(tool, &config()), Ok(()));
            let error = check(tool, &checksum).unwrap_err().to_string();
            assert!(error.contains("--checksum"), "{error}");
            let error = check(tool, &addresses).unwrap_err().to_string();
            assert!(error.contains("--source-address"), "{error}");
            assert_eq!(check(tool, &anonymous).is_err(), tool == Tool::S3cmd);
        }
    }

    #[test]
    fn swift_gets_its_key_through_the_environment() {
        let auth = SwiftAuth::V1 {
            url: Endpoint::parse("http://127.0.0.1:8080/auth/v1.0", "test").unwrap(),
            user: "test:tester".to_owned(),
            key: SECRET.into(),
        };
        let (invocation, secrets) = swift(&SwiftConfig::new(auth, None), 0).unwrap();
        let has = |name: &str, value: &str| {
            let pair = (name.into(), value.into());
            assert!(invocation.env.contains(&pair), "{name}");
        };
        has("ST_AUTH", "http://127.0.0.1:8080/auth/v1.0");
        has("ST_USER", "test:tester");
        has("ST_KEY", SECRET);
        assert!(
            !invocation
                .args
                .iter()
                .any(|a| a.to_string_lossy().contains(SECRET))
        );
        assert_eq!(secrets, [SECRET.into()]);
        let anonymous = SwiftConfig::new(SwiftAuth::Anonymous, None);
        let error = swift(&anonymous, 0).unwrap_err().to_string();
        assert!(error.contains("ST_AUTH"), "{error}");
    }

    #[test]
    fn s3cmd_has_a_switch_for_retries_since_2_4() {
        assert!(!has_retry_switch("s3cmd version 2.3.0"));
        assert!(has_retry_switch("s3cmd version 2.4.0"));
        assert!(has_retry_switch("s3cmd version 3.0"));
    }
}
