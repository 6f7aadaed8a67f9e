//! The S3 driver's description of itself.

use bucketload_target::doctor::{Examination, Examined};
use bucketload_target::{
    ConfigFile, Descriptor, Flag, OpenError, OpenRequest, Scope, Semantics, Service, UrlForm,
    Value, any_bucket, any_cleanup, flags,
};

use super::discover::S3Dialect;
use super::{Encryption, Keeping, S3Config, S3Driver, S3Overrides};
use crate::engines;
use crate::http::TlsConfig;

static PAYLOAD_SIGNING: Flag = Flag::new(
    "--payload-signing",
    Value::Choice(
        "MODE",
        &[
            ("unsigned", "Not at all"),
            ("signed", "By SHA-256, computed before the timed start"),
            ("streaming", "By a chain of signed chunks"),
            (
                "streaming-trailer",
                "By signed chunks followed by a signed checksum",
            ),
            (
                "unsigned-trailer",
                "Not at all: unsigned chunks followed by a checksum",
            ),
        ],
    ),
    Scope::Content,
    "How signatures cover the bytes of objects",
);

static STORAGE_CLASS: Flag = Flag::new(
    "--storage-class",
    Value::Checked("NAME", check_storage_class),
    Scope::Content,
    "Storage class of written objects, such as STANDARD_IA (default: the store's)",
);

static SSE: Flag = Flag::new(
    "--sse",
    Value::Checked("METHOD", Value::parses::<Encryption>),
    Scope::Content,
    "Encryption of written objects by the store: AES256, aws:kms or aws:kms:KEY",
);

static SSE_C: Flag = Flag::new(
    "--sse-c",
    Value::File("FILE"),
    Scope::Content,
    "Encryption with the customer's key in FILE: 32 bytes, or these in base64 or hexadecimal",
)
.with_more(
    "Writes and reads of objects carry the key, so the endpoint must be https:// or on this machine. Unless given: the \
     key in BUCKETLOAD_SSE_C_KEY, in base64 or hexadecimal.",
);

/// The driver of `s3://`.
pub static DESCRIPTOR: Descriptor = Descriptor {
    name: "s3",
    schemes: &["s3"],
    form: UrlForm::Bucket,
    page: "drivers/s3.md",
    semantics: Semantics {
        write: "1 request; the object appears whole",
        overwrite: Semantics::ATOMIC,
        parts: "begin, parts, complete; concurrent uploads are independent, the last one wins",
        append: "1 or 2 requests, by --append write-offset only; one writer at a time",
        rename: Semantics::NONE,
        list: "keys by prefix, sorted, up to 1,000 a page",
        delete_nothing: "success",
        delete_many: "1 request for up to 1,000 keys",
    },
    flags: &[
        &flags::HTTP,
        &[
            &flags::PROFILE,
            &flags::REGION,
            &flags::NO_SIGN_REQUEST,
            &flags::ADDRESSING,
            &PAYLOAD_SIGNING,
            &flags::CHECKSUM,
            &flags::APPEND,
            &STORAGE_CLASS,
            &SSE,
            &SSE_C,
        ],
        &engines::FLAGS,
    ],
    dialect: &[
        &flags::REGION,
        &flags::ADDRESSING,
        &PAYLOAD_SIGNING,
        &flags::CHECKSUM,
        &flags::APPEND,
    ],
    endpoint_variables: &["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"],
    files: &[
        ConfigFile {
            variable: "AWS_SHARED_CREDENTIALS_FILE",
            below_home: ".aws/credentials",
            part: of_profile,
        },
        ConfigFile {
            variable: "AWS_CONFIG_FILE",
            below_home: ".aws/config",
            part: of_profile,
        },
        ConfigFile::whole("AWS_CA_BUNDLE", ""),
    ],
    secret: None,
    check_bucket: any_bucket,
    open: |request| open(request),
    origins: |request| Ok(config(request)?.origins),
    check_cleanup: any_cleanup,
    doctor: |request, exam| examine(request, exam),
};

/// Reads the settings: flags take precedence over the environment, then profile files, then defaults.
fn config(request: &OpenRequest<'_>) -> Result<S3Config, OpenError> {
    let settings = request.settings;
    let tls = TlsConfig::of(settings);
    let overrides = S3Overrides {
        profile: settings.text(&flags::PROFILE),
        region: settings.text(&flags::REGION),
        endpoint_url: settings.joined(&flags::ENDPOINT_URL),
        no_sign_request: settings.has(&flags::NO_SIGN_REQUEST),
        no_verify_ssl: tls.insecure,
        ca_bundle: tls.ca_bundle,
        client_cert: tls.client,
        addressing: settings.parse(&flags::ADDRESSING)?,
        payload: settings.parse(&PAYLOAD_SIGNING)?,
        checksum: settings.parse(&flags::CHECKSUM)?,
        append: settings.parse(&flags::APPEND)?,
        storage_class: settings.text(&STORAGE_CLASS),
        sse: settings.parse(&SSE)?,
        sse_c: settings.path(&SSE_C),
        source_addresses: settings.parse_all(&flags::SOURCE_ADDRESS)?,
        dialect: S3Dialect {
            region: settings.dialect.get(&flags::REGION),
            addressing: settings.dialect.get(&flags::ADDRESSING),
            payload: settings.dialect.get(&PAYLOAD_SIGNING),
            checksum: settings.dialect.get(&flags::CHECKSUM),
            append: settings.dialect.get(&flags::APPEND),
        },
        ..S3Overrides::default()
    };
    Ok(S3Config::discover(
        &overrides,
        request.variable,
        request.home,
    )?)
}

/// Examines the service with objects that are kept as the store likes: most checks send requests of their own.
fn examine(request: &OpenRequest<'_>, exam: &mut Examination<'_>) -> Result<Examined, OpenError> {
    let given = [&STORAGE_CLASS, &SSE, &SSE_C];
    if let Some(flag) = given.into_iter().find(|flag| request.settings.has(flag)) {
        return Err(OpenError::usage(format!(
            "{}: doctor writes objects without it; remove it",
            flag.name
        )));
    }
    let mut config = config(request)?;
    config.keeping = Keeping::default();
    super::doctor::examine(config, exam)
}

fn check_storage_class(name: &str) -> Result<(), String> {
    let legal = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
    match !name.is_empty() && name.bytes().all(legal) {
        true => Ok(()),
        false => Err("use letters, digits and `_`, such as STANDARD_IA".to_owned()),
    }
}

fn open(request: &OpenRequest<'_>) -> Result<Service, OpenError> {
    let mut config = config(request)?;
    request.limit(&mut config.endpoints)?;
    let endpoints = config.endpoints.iter().map(|e| e.url()).collect();
    if request.files.is_some() && !engines::is_native(request) {
        return Err(OpenError::usage(
            "--engine: only the native client performs COSBench's localwrite",
        ));
    }
    let native = S3Driver::with_local_files(config.clone(), request.files.clone())?;
    let driver = engines::of_s3(native, &config, request)?;
    Ok(Service { driver, endpoints })
}

/// Cuts an AWS file down to the sections of the profile in use and those that profiles refer to (`services`,
/// `sso-session`), so that other profiles' secrets stay on this machine.
fn of_profile(contents: Vec<u8>, request: &OpenRequest<'_>) -> Vec<u8> {
    let profile = request.settings.text(&flags::PROFILE);
    let profile = profile.or_else(|| (request.variable)("AWS_PROFILE"));
    let profile = profile.as_deref().unwrap_or("default");
    let text = String::from_utf8_lossy(&contents);
    let mut kept = String::new();
    let mut keep = false;
    for line in text.lines() {
        if let Some(name) = line
            .trim()
            .strip_prefix('[')
            .and_then(|l| l.split(']').next())
        {
            let name = name.trim();
            let plain = name.strip_prefix("profile ").unwrap_or(name).trim();
            keep = plain == profile
                || name.starts_with("services ")
                || name.starts_with("sso-session ");
        }
        if keep {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept.into_bytes()
}

#[cfg(test)]
mod tests {
    use bucketload_target::{OpenRequest, Settings, flags, no_directory};

    use super::of_profile;

    #[test]
    fn only_the_profile_that_is_used_is_sent() {
        let file = b"[default]\naws_secret_access_key = a\n[profile b]\nregion = x\n[b]\nkey = b\n\
                     [services s]\ns3 =\n  endpoint_url = http://h\n";
        let text = |profile: Option<&str>| {
            let mut settings = Settings::default();
            if let Some(profile) = profile {
                settings.set(&flags::PROFILE, [profile]);
            }
            let request = OpenRequest {
                settings: &settings,
                variable: &|_| None,
                home: None,
                server: None,
                directory: no_directory(),
                endpoints: None,
                files: None,
            };
            String::from_utf8(of_profile(file.to_vec(), &request)).unwrap()
        };
        assert!(text(None).contains("= a") && !text(None).contains("= b"));
        let b = text(Some("b"));
        assert!(b.contains("region = x") && b.contains("key = b"));
        assert!(!b.contains("= a") && b.contains("endpoint_url"));
    }
}
