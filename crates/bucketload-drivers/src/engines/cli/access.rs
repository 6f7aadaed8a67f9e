//! How each client is told where the target is and what to sign with: by environment variables and
//! by files of mode 600 in the run's own directory, never by arguments, which everybody can read.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use serde_json::json;

use super::tool::{Installed, Tool};
use crate::http::Secret;
use crate::s3::{Addressing, ConfigError, Credentials, Endpoint, PayloadMode, S3Config};
use crate::swift::{SwiftAuth, SwiftConfig};

/// Name of the target in the configuration of clients that want one.
pub(crate) const ALIAS: &str = "bucketload";

/// Variables that begin like this tell some client something; only ours shall.
pub(crate) const FOREIGN: [&str; 13] = [
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

/// How a client is called for one endpoint.
#[derive(Clone, Debug, Default)]
pub(crate) struct Access {
    pub(crate) env: Vec<(OsString, OsString)>,
    /// Arguments in front of the command.
    pub(crate) args: Vec<OsString>,
}

impl Access {
    pub(super) fn env(&mut self, name: &str, value: impl Into<OsString>) {
        self.env.push((name.into(), value.into()));
    }

    fn arg(&mut self, value: impl Into<OsString>) {
        self.args.push(value.into());
    }
}

/// Refuses settings that the client has no word for.
///
/// # Errors
/// The first such setting.
pub(crate) fn check(tool: Tool, config: &S3Config) -> Result<(), ConfigError> {
    let fail = |what: &str, remedy: &str| {
        let place = format!("engine cli:{tool}");
        Err(ConfigError::new(
            place,
            format!("it cannot be told {what}"),
            remedy,
        ))
    };
    let native = "leave the flag out, or use --engine native";
    if let Some(scheme) = tool.scheme() {
        return fail(
            "to speak S3",
            &format!("name a target of its own ({scheme}://…) or another client"),
        );
    }
    if config.payload != PayloadMode::Unsigned {
        return fail("what to sign (--payload-signing)", native);
    }
    if config.checksum.is_some() {
        return fail("which checksum to send (--checksum)", native);
    }
    if config.tls.client.is_some() {
        return fail("a client certificate (--client-cert)", native);
    }
    if !config.source_addresses.is_empty() {
        return fail("where to connect from (--source-address)", native);
    }
    let with_path = config.endpoints.iter().any(|e| !e.base_path.is_empty());
    if with_path && matches!(tool, Tool::Mc | Tool::S3cmd) {
        return fail(
            "a path in front of the bucket",
            "end the URL after host and port",
        );
    }
    if config.credentials.is_none() && tool == Tool::S3cmd {
        return fail(
            "to send requests without a signature",
            "give credentials, or use cli:aws, cli:mc or cli:rclone",
        );
    }
    Ok(())
}

/// What `client` needs to reach `endpoint`. Its files go into `dir`, which is private to the run.
///
/// # Errors
/// When a file cannot be written.
pub(crate) fn access(
    client: &Installed,
    config: &S3Config,
    endpoint: &Endpoint,
    dir: &Path,
    retries: u32,
) -> io::Result<Access> {
    match client.tool {
        Tool::Aws => aws(config, endpoint, dir, retries),
        Tool::Mc => mc(config, endpoint, dir),
        Tool::Rclone => rclone(config, endpoint, dir, retries),
        Tool::S3cmd => s3cmd(config, endpoint, dir, retries),
        // Refused by `check`.
        Tool::Swift | Tool::Az | Tool::Gsutil => Ok(Access::default()),
    }
}

/// What the client of OpenStack Swift needs to reach the account of `config`, and its secrets.
///
/// # Errors
/// The first setting that it has no word for.
pub(crate) fn swift(
    config: &SwiftConfig,
    retries: u32,
) -> Result<(Access, Vec<Secret>), ConfigError> {
    let fail = |what: &str, remedy: &str| {
        let problem = format!("it is not told {what} here");
        Err(ConfigError::new("engine cli:swift", problem, remedy))
    };
    let native = "leave the flag out, or use --engine native";
    if config.tls.client.is_some() {
        return fail("a client certificate (--client-cert)", native);
    }
    if !config.source_addresses.is_empty() {
        return fail("where to connect from (--source-address)", native);
    }
    if !config.hosts.is_empty() {
        return fail(
            "other hosts than the account's own (--endpoint-url)",
            native,
        );
    }
    if config.etag {
        return fail("whether to send a checksum (--checksum)", native);
    }
    let mut access = Access::default();
    access.arg("--retries");
    access.arg(retries.to_string());
    if let Some(bundle) = &config.tls.ca_bundle {
        access.arg("--os-cacert");
        access.arg(bundle);
    }
    if config.tls.insecure {
        access.arg("--insecure");
    }
    let secret = match (&config.auth, &config.storage_url) {
        (SwiftAuth::V1 { url, user, key }, None) => {
            access.env("ST_AUTH", url.url());
            access.env("ST_USER", user);
            access.env("ST_KEY", key.expose());
            key.clone()
        }
        (SwiftAuth::Token(token), Some(url)) => {
            access.env("OS_STORAGE_URL", url.url());
            access.env("OS_AUTH_TOKEN", token.expose());
            token.clone()
        }
        _ => {
            let remedy = "set ST_AUTH, ST_USER and ST_KEY, or OS_STORAGE_URL and OS_AUTH_TOKEN";
            return fail("how to sign in but by auth v1 or a token", remedy);
        }
    };
    Ok((access, vec![secret]))
}

/// Access key, secret key and token; empty where there is none.
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
pub(super) fn private(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(text.as_bytes())
}

fn aws(config: &S3Config, endpoint: &Endpoint, dir: &Path, retries: u32) -> io::Result<Access> {
    let mut access = Access::default();
    let (file, none) = (dir.join("aws-config"), dir.join("aws-credentials"));
    private(
        &file,
        &format!(
            "[default]\nregion = {}\ns3 =\n  addressing_style = {}\n",
            config.region, config.addressing
        ),
    )?;
    private(&none, "")?;
    access.env("AWS_CONFIG_FILE", file);
    access.env("AWS_SHARED_CREDENTIALS_FILE", none);
    access.env("AWS_ENDPOINT_URL", endpoint.url());
    access.env("AWS_REGION", &config.region);
    access.env("AWS_DEFAULT_REGION", &config.region);
    access.env("AWS_RETRY_MODE", "standard");
    access.env("AWS_MAX_ATTEMPTS", (u64::from(retries) + 1).to_string());
    access.env("AWS_EC2_METADATA_DISABLED", "true");
    access.env("AWS_PAGER", "");
    let [key, secret, token] = parts(config);
    if key.is_empty() {
        access.arg("--no-sign-request");
    } else {
        access.env("AWS_ACCESS_KEY_ID", key);
        access.env("AWS_SECRET_ACCESS_KEY", secret);
    }
    if !token.is_empty() {
        access.env("AWS_SESSION_TOKEN", token);
    }
    if let Some(bundle) = &config.tls.ca_bundle {
        access.env("AWS_CA_BUNDLE", bundle);
    }
    if config.tls.insecure {
        access.arg("--no-verify-ssl");
    }
    Ok(access)
}

fn mc(config: &S3Config, endpoint: &Endpoint, dir: &Path) -> io::Result<Access> {
    let mut access = Access::default();
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
    private(&home.join("config.json"), &document.to_string())?;
    if let Some(bundle) = &config.tls.ca_bundle {
        let trusted = home.join("certs").join("CAs");
        std::fs::create_dir_all(&trusted)?;
        std::fs::copy(bundle, trusted.join("bundle.crt"))?;
    }
    access.arg("--config-dir");
    access.arg(home);
    for flag in ["--quiet", "--disable-pager", "--json"] {
        access.arg(flag);
    }
    if config.tls.insecure {
        access.arg("--insecure");
    }
    Ok(access)
}

fn rclone(config: &S3Config, endpoint: &Endpoint, dir: &Path, retries: u32) -> io::Result<Access> {
    let mut access = Access::default();
    let empty = dir.join("rclone.conf");
    private(&empty, "")?;
    access.env("RCLONE_CONFIG", empty);
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
            access.env(&name, value);
        }
    }
    // The whole command once; each request in it as often as was asked for.
    access.env("RCLONE_RETRIES", "1");
    let attempts = (u64::from(retries) + 1).to_string();
    access.env("RCLONE_LOW_LEVEL_RETRIES", attempts);
    // Otherwise a write of an equal size and time is left out.
    access.env("RCLONE_IGNORE_TIMES", "true");
    if let Some(bundle) = &config.tls.ca_bundle {
        access.env("RCLONE_CA_CERT", bundle);
    }
    if config.tls.insecure {
        access.env("RCLONE_NO_CHECK_CERTIFICATE", "true");
    }
    Ok(access)
}

fn s3cmd(config: &S3Config, endpoint: &Endpoint, dir: &Path, retries: u32) -> io::Result<Access> {
    let mut access = Access::default();
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
    private(&file, &text)?;
    access.arg("-c");
    access.arg(file);
    access.arg("--no-progress");
    Ok(access)
}

/// What the result header says about repeated requests.
pub(crate) fn retries_in_words(client: &Installed, retries: u32) -> String {
    let hidden = "those made are not visible";
    match client.tool {
        Tool::Mc | Tool::Az => format!("as the client is built (it has no switch); {hidden}"),
        Tool::S3cmd if !has_retry_switch(&client.version) => {
            format!("up to 5, 3 to 15 s apart (no switch before s3cmd 2.4); {hidden}")
        }
        _ if retries == 0 => "none".to_owned(),
        _ => format!("at most {retries}; {hidden}"),
    }
}

/// Whether an s3cmd of this version reads `max_retries`.
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

    use super::{access, check, has_retry_switch, swift};
    use crate::engines::cli::tool::{Installed, Tool};
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
    fn secrets_stand_in_private_files_or_the_environment_only() {
        let config = config();
        for tool in Tool::ALL.into_iter().filter(|t| t.scheme().is_none()) {
            let dir = tempfile::tempdir().unwrap();
            let client = Installed {
                tool,
                path: tool.program().into(),
                version: String::new(),
            };
            let got = access(&client, &config, &config.endpoints[0], dir.path(), 2).unwrap();
            let holds = |text: &std::ffi::OsStr| text.to_string_lossy().contains(SECRET);
            assert!(!got.args.iter().any(|arg| holds(arg)), "{tool}");
            let mut told = got.env.iter().any(|(_, value)| holds(value));
            let mut all = Vec::new();
            files(dir.path(), &mut all);
            for file in all {
                let mode = file.metadata().unwrap().permissions().mode();
                assert_eq!(mode & 0o777, 0o600, "{}", file.display());
                told |= std::fs::read_to_string(&file).unwrap().contains(SECRET);
            }
            assert!(told, "{tool} does not know the secret");
        }
    }

    #[test]
    fn what_a_client_cannot_be_told_is_refused() {
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
    fn swift_gets_its_key_by_the_environment() {
        let auth = SwiftAuth::V1 {
            url: Endpoint::parse("http://127.0.0.1:8080/auth/v1.0", "test").unwrap(),
            user: "test:tester".to_owned(),
            key: SECRET.into(),
        };
        let (access, secrets) = swift(&SwiftConfig::new(auth, None), 0).unwrap();
        let has = |name: &str, value: &str| {
            let pair = (name.into(), value.into());
            assert!(access.env.contains(&pair), "{name}");
        };
        has("ST_AUTH", "http://127.0.0.1:8080/auth/v1.0");
        has("ST_USER", "test:tester");
        has("ST_KEY", SECRET);
        assert!(
            !access
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
