//! Discovery from temporary profile files and a fake environment.

use std::fs;
use std::path::Path;

use super::{
    Addressing, AppendMode, ChecksumAlgorithm, ConfigError, PayloadMode, S3Config, S3Dialect,
    S3Overrides, Source,
};

const CONFIG: &str = "\
[default]
region = eu-central-1
[profile dev]
region = eu-north-1
endpoint_url = http://generic:1
services = local
aws_access_key_id = from-config
aws_secret_access_key = config-secret
s3 =
  addressing_style = virtual
  payload_signing_enabled = true
[profile sso]
sso_session = corp
[profile lost]
services = nowhere
aws_access_key_id = x
aws_secret_access_key = y
[profile off]
ignore_configured_endpoint_urls = true
endpoint_url = http://generic:1
aws_access_key_id = x
aws_secret_access_key = y
[profile half]
aws_access_key_id = x
[services local]
s3 =
  endpoint_url = http://service:2
";
const CREDENTIALS: &str = "\
[default]
aws_access_key_id = from-file
aws_secret_access_key = file-secret
[dev]
aws_access_key_id = dev-file
aws_secret_access_key = dev-secret
aws_session_token = dev-token
";
const KEYS: [(&str, &str); 2] = [
    ("AWS_ACCESS_KEY_ID", "from-env"),
    ("AWS_SECRET_ACCESS_KEY", "env-secret"),
];

fn discover(
    overrides: &S3Overrides,
    env: &[(&str, &str)],
    files: bool,
) -> Result<S3Config, ConfigError> {
    let dir = tempfile::tempdir().unwrap();
    if files {
        fs::create_dir(dir.path().join(".aws")).unwrap();
        fs::write(dir.path().join(".aws/config"), CONFIG).unwrap();
        fs::write(dir.path().join(".aws/credentials"), CREDENTIALS).unwrap();
    }
    let lookup = |name: &str| {
        let found = env.iter().rfind(|(n, _)| *n == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    let result = S3Config::discover(overrides, &lookup, Some(dir.path()));
    let replace = |text: &str| text.replace(&dir.path().display().to_string(), "~");
    match result {
        Ok(mut config) => {
            for origin in &mut config.origins {
                if let Source::File(place) = &mut origin.source {
                    *place = replace(place);
                }
            }
            Ok(config)
        }
        Err(e) => Err(ConfigError::new(replace(&e.place), e.problem, e.remedy)),
    }
}

fn with(set: impl FnOnce(&mut S3Overrides)) -> S3Overrides {
    let mut overrides = S3Overrides::default();
    set(&mut overrides);
    overrides
}

fn profile(name: &str) -> S3Overrides {
    with(|o| o.profile = Some(name.to_owned()))
}

fn access_key(config: &S3Config) -> &str {
    &config.credentials.as_ref().unwrap().access_key
}

fn source(config: &S3Config, name: &str) -> String {
    let origin = config.origins.iter().find(|o| o.name == name).unwrap();
    origin.source.to_string()
}

#[test]
fn files_alone() {
    let config = discover(&S3Overrides::default(), &[], true).unwrap();
    assert_eq!(access_key(&config), "from-file");
    assert_eq!(config.region, "eu-central-1");
    assert_eq!(
        config.endpoints[0].url(),
        "https://s3.eu-central-1.amazonaws.com"
    );
    assert_eq!(config.addressing, Addressing::Virtual);
    assert_eq!(
        source(&config, "region"),
        "~/.aws/config:2 [default] region"
    );
    assert_eq!(
        source(&config, "credentials"),
        "~/.aws/credentials:2 [default] aws_access_key_id"
    );
}

#[test]
fn a_profile_with_services_and_an_s3_section() {
    for env in [&[] as &[_], &KEYS] {
        let config = discover(&profile("dev"), env, true).unwrap();
        assert_eq!(
            access_key(&config),
            "dev-file",
            "an explicit profile beats the environment"
        );
        assert_eq!(config.region, "eu-north-1");
        assert_eq!(config.endpoints[0].url(), "http://service:2");
        assert_eq!(config.addressing, Addressing::Virtual);
        assert_eq!(config.payload, PayloadMode::Signed);
        assert!(config.credentials.unwrap().session_token.is_some());
    }
}

#[test]
fn the_environment_beats_a_profile_named_there() {
    let env = [&KEYS[..], &[("AWS_PROFILE", "dev")]].concat();
    let config = discover(&S3Overrides::default(), &env, true).unwrap();
    assert_eq!(access_key(&config), "from-env");
    assert_eq!(config.region, "eu-north-1");
    assert_eq!(source(&config, "profile"), "AWS_PROFILE");
}

#[test]
fn endpoint_precedence() {
    let url = |overrides: &S3Overrides, extra: &[(&'static str, &'static str)]| {
        let env = [&KEYS[..], extra].concat();
        discover(overrides, &env, true).unwrap().endpoints[0].url()
    };
    let both = [
        ("AWS_ENDPOINT_URL", "http://all:1"),
        ("AWS_ENDPOINT_URL_S3", "http://s3:1"),
    ];
    let flag = with(|o| o.endpoint_url = Some("http://flag:1".to_owned()));
    let none = S3Overrides::default();
    assert_eq!(url(&flag, &both), "http://flag:1");
    assert_eq!(url(&none, &both), "http://s3:1");
    assert_eq!(url(&none, &both[..1]), "http://all:1");
    assert_eq!(url(&profile("dev"), &both[..1]), "http://all:1");
    let ignore = [("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true"), both[0]];
    assert_eq!(url(&none, &ignore), "https://s3.eu-central-1.amazonaws.com");
    assert_eq!(
        url(&profile("off"), &[]),
        "https://s3.us-east-1.amazonaws.com"
    );
}

#[test]
fn region_precedence_and_default() {
    let region = |overrides: &S3Overrides, extra: &[(&'static str, &'static str)], files| {
        let env = [&KEYS[..], extra].concat();
        discover(overrides, &env, files).unwrap().region
    };
    let both = [("AWS_DEFAULT_REGION", "b"), ("AWS_REGION", "a")];
    let none = S3Overrides::default();
    assert_eq!(
        region(&with(|o| o.region = Some("f".to_owned())), &both, true),
        "f"
    );
    assert_eq!(region(&none, &both, true), "a");
    assert_eq!(region(&none, &both[..1], true), "b");
    assert_eq!(region(&none, &[("AWS_REGION", "")], false), "us-east-1");
}

#[test]
fn settings_of_requests() {
    let env = [&KEYS[..], &[("AWS_ENDPOINT_URL", "http://h{1...2}:1")]].concat();
    let config = discover(&S3Overrides::default(), &env, false).unwrap();
    assert_eq!(config.endpoints.len(), 2);
    assert_eq!(config.addressing, Addressing::Path);
    assert_eq!(
        (config.payload, config.checksum),
        (PayloadMode::Unsigned, None)
    );
    let config = discover(
        &with(|o| o.payload = Some(PayloadMode::StreamingTrailer)),
        &env,
        false,
    );
    assert_eq!(config.unwrap().checksum, Some(ChecksumAlgorithm::Crc64Nvme));
    let supported = [
        &env[..],
        &[("AWS_REQUEST_CHECKSUM_CALCULATION", "WHEN_SUPPORTED")],
    ]
    .concat();
    let config = discover(&S3Overrides::default(), &supported, false).unwrap();
    assert_eq!(config.checksum, Some(ChecksumAlgorithm::Crc64Nvme));
    let tls = with(|o| o.no_verify_ssl = true);
    let bundle = [&env[..], &[("AWS_CA_BUNDLE", "~/ca.pem")]].concat();
    let config = discover(&tls, &bundle, false).unwrap();
    assert!(config.tls.insecure);
    assert!(config.tls.ca_bundle.unwrap().is_absolute());
}

#[test]
fn anonymous_needs_no_credentials() {
    let config = discover(&with(|o| o.no_sign_request = true), &[], false).unwrap();
    assert_eq!(config.credentials, None);
    assert_eq!(source(&config, "credentials"), "--no-sign-request");
}

#[test]
fn errors_name_place_and_remedy() {
    let none = S3Overrides::default();
    type Case<'a> = (&'a S3Overrides, &'a [(&'a str, &'a str)], &'a str);
    let cases: &[Case<'_>] = &[
        (
            &none,
            &[],
            "credentials: none were found; set AWS_ACCESS_KEY_ID",
        ),
        (
            &none,
            &[("AWS_ACCESS_KEY", "x")],
            "AWS_ACCESS_KEY is set, but is not",
        ),
        (
            &none,
            &[KEYS[0]],
            "AWS_ACCESS_KEY_ID: is set without AWS_SECRET_ACCESS_KEY",
        ),
        (
            &none,
            &[KEYS[1]],
            "AWS_SECRET_ACCESS_KEY: is set without AWS_ACCESS_KEY_ID",
        ),
        (
            &none,
            &[("AWS_PROFILE", "p")],
            "AWS_PROFILE: there is no profile `p`",
        ),
        (
            &none,
            &[("AWS_REQUEST_CHECKSUM_CALCULATION", "x"), KEYS[0], KEYS[1]],
            "when_required",
        ),
        (
            &none,
            &[("AWS_ENDPOINT_URL", "h:1"), KEYS[0], KEYS[1]],
            "AWS_ENDPOINT_URL: `h:1`",
        ),
    ];
    for (overrides, env, wanted) in cases {
        let error = discover(overrides, env, false).unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
    }
    let in_files = [
        ("sso", "~/.aws/config:13 [profile sso] sso_session: "),
        (
            "lost",
            "~/.aws/config:15 [profile lost] services: there is no section [services nowhere]",
        ),
        (
            "half",
            "~/.aws/config:24 [profile half] aws_access_key_id: is set without",
        ),
        (
            "nobody",
            "known profiles are default, dev, half, lost, off, sso",
        ),
    ];
    for (name, wanted) in in_files {
        let error = discover(&profile(name), &[], true).unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
    }
}

#[test]
fn no_secret_is_shown() {
    let config = discover(&profile("dev"), &KEYS, true).unwrap();
    let shown = format!("{config:?}");
    for secret in ["dev-secret", "dev-token", "env-secret", "config-secret"] {
        assert!(!shown.contains(secret), "{shown}");
    }
}

#[test]
fn files_elsewhere() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("keys");
    fs::write(
        &path,
        "[default]\naws_access_key_id=a\naws_secret_access_key=b\n",
    )
    .unwrap();
    let path = path.display().to_string();
    let lookup = |name: &str| (name == "AWS_SHARED_CREDENTIALS_FILE").then(|| path.clone());
    let config = S3Config::discover(&S3Overrides::default(), &lookup, None::<&Path>).unwrap();
    assert_eq!(access_key(&config), "a");
}

#[test]
fn a_dialect_precedes_files_and_nothing_else() {
    let of = |value: &str| {
        let place = Source::Dialect("d.toml:2".to_owned());
        Some((value.to_owned(), place))
    };
    let mut overrides = S3Overrides {
        profile: Some("dev".to_owned()),
        dialect: S3Dialect {
            region: of("eu-dialect"),
            addressing: of("path"),
            payload: of("unsigned"),
            checksum: of("crc32"),
            append: of("write-offset"),
        },
        ..S3Overrides::default()
    };
    let region = |config: &S3Config| {
        let origin = config.origins.iter().find(|o| o.name == "region").unwrap();
        (origin.value.clone(), origin.source.to_string())
    };
    let config = discover(&overrides, &KEYS, true).unwrap();
    let expected = ("eu-dialect".to_owned(), "dialect d.toml:2".to_owned());
    assert_eq!(region(&config), expected);
    assert_eq!(config.addressing, Addressing::Path);
    assert_eq!(config.payload, PayloadMode::Unsigned);
    assert_eq!(config.checksum, Some(ChecksumAlgorithm::Crc32));
    assert_eq!(config.append, AppendMode::WriteOffset);
    let env = [KEYS[0], KEYS[1], ("AWS_REGION", "eu-env")];
    let config = discover(&overrides, &env, true).unwrap();
    assert_eq!(region(&config).1, "AWS_REGION");
    overrides.region = Some("eu-flag".to_owned());
    overrides.addressing = Some(Addressing::Virtual);
    let config = discover(&overrides, &env, true).unwrap();
    assert_eq!(region(&config).1, "--region");
    assert_eq!(config.addressing, Addressing::Virtual);
    overrides.addressing = None;
    overrides.dialect.addressing = of("host");
    let error = discover(&overrides, &env, true).unwrap_err().to_string();
    assert!(error.starts_with("dialect d.toml:2"), "{error}");
}

#[test]
fn encryption_and_storage_class() {
    const HEX: &str = "0707070707070707070707070707070707070707070707070707070707070707";
    let of = |set: fn(&mut S3Overrides), env: &[(&'static str, &'static str)]| {
        let endpoint = ("AWS_ENDPOINT_URL", "https://store.example");
        discover(&with(set), &[&KEYS[..], &[endpoint], env].concat(), false)
    };
    let config = of(
        |o| {
            o.storage_class = Some("COLD".to_owned());
            o.sse = Some("aws:kms:k".parse().unwrap());
        },
        &[],
    )
    .unwrap();
    assert_eq!(source(&config, "storage class"), "--storage-class");
    assert_eq!(source(&config, "encryption"), "--sse");
    let plain = of(|_| (), &[]).unwrap();
    assert!(
        plain
            .origins
            .iter()
            .all(|o| !["storage class", "encryption"].contains(&o.name))
    );
    let config = of(|_| (), &[("BUCKETLOAD_SSE_C_KEY", HEX)]).unwrap();
    assert_eq!(source(&config, "encryption"), "BUCKETLOAD_SSE_C_KEY");
    let shown = format!("{config:?}");
    assert!(
        !shown.contains("BwcH") && !shown.contains("0707"),
        "{shown}"
    );
    let sse: fn(&mut S3Overrides) = |o| o.sse = Some("AES256".parse().unwrap());
    for (set, key, words) in [
        (sse, HEX, "one encryption"),
        (
            (|_| ()) as fn(&mut S3Overrides),
            "hush",
            "BUCKETLOAD_SSE_C_KEY: ",
        ),
        (
            |o| o.endpoint_url = Some("http://far.example".to_owned()),
            HEX,
            "without TLS",
        ),
    ] {
        let error = of(set, &[("BUCKETLOAD_SSE_C_KEY", key)])
            .unwrap_err()
            .to_string();
        assert!(error.contains(words) && !error.contains("hush"), "{error}");
    }
}
