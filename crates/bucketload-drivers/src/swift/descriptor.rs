//! The Swift driver's description of itself.

use bucketload_target::doctor::{Examination, Examined, Finding, Repair, State};
use bucketload_target::{
    ConfigFile, Descriptor, Flag, OpenError, OpenRequest, Scope, Semantics, Service, UrlForm,
    Value, any_cleanup, flags,
};

use super::{SignInError, SwiftAuth, SwiftConfig, SwiftDriver, SwiftOverrides, check_container};
use crate::engines;
use crate::http::{TlsConfig, doctor};

static LARGE_OBJECT: Flag = Flag::new(
    "--swift-large-object",
    Value::Choice(
        "KIND",
        &[
            (
                "slo",
                "Static: the manifest names each segment with its MD5",
            ),
            (
                "dlo",
                "Dynamic: the object consists of the segments listed below a prefix",
            ),
        ],
    ),
    Scope::Service,
    "How to assemble Swift objects of several parts (default: slo)",
);

/// What `doctor` tries when the service refuses the default.
static REPAIRS: [Repair; 1] = [Repair {
    check: "multipart",
    flag: &LARGE_OBJECT,
    values: &["slo", "dlo"],
}];

/// The driver of `swift://`.
pub static DESCRIPTOR: Descriptor = Descriptor {
    name: "swift",
    schemes: &["swift"],
    form: UrlForm::Bucket,
    page: "drivers/swift.md",
    semantics: Semantics {
        write: "1 request; the object appears whole, in listings perhaps later",
        overwrite: "readers see the old object or the new one; after a failure the old one may come back",
        parts: "segments in a separate container, then a manifest",
        append: Semantics::NONE,
        rename: Semantics::NONE,
        list: "names by prefix, sorted, up to 10,000 a page; may lag behind the objects",
        delete_nothing: Semantics::MISSED,
        delete_many: "1 request; its status is always 200",
    },
    flags: &[
        &flags::HTTP,
        &[
            &flags::PROFILE,
            &flags::REGION,
            &flags::NO_SIGN_REQUEST,
            &flags::CHECKSUM,
            &LARGE_OBJECT,
        ],
        &engines::FLAGS,
    ],
    dialect: &[&LARGE_OBJECT, &flags::CHECKSUM],
    endpoint_variables: &[],
    files: &[
        ConfigFile::whole("OS_CLIENT_CONFIG_FILE", ".config/openstack/clouds.yaml"),
        ConfigFile::whole("OS_CACERT", ""),
    ],
    secret: Some("password and token"),
    check_bucket: check_container,
    open: |request| open(request),
    origins: |request| Ok(config(request)?.origins),
    check_cleanup: any_cleanup,
    doctor: |request, exam| examine(config(request)?, exam),
};

/// Reads the settings: flags take precedence over the environment or `clouds.yaml`, then defaults.
fn config(request: &OpenRequest<'_>) -> Result<SwiftConfig, OpenError> {
    let settings = &request
        .settings
        .with_dialect(&[&LARGE_OBJECT, &flags::CHECKSUM]);
    let etag = match settings.get(&flags::CHECKSUM) {
        None => false,
        Some("md5") => true,
        Some(other) => {
            return Err(OpenError::Usage(format!(
                "--checksum: Swift does not support {other}; use md5"
            )));
        }
    };
    let tls = TlsConfig::of(settings);
    let overrides = SwiftOverrides {
        cloud: settings.text(&flags::PROFILE),
        region: settings.text(&flags::REGION),
        endpoint_url: settings.joined(&flags::ENDPOINT_URL),
        anonymous: settings.has(&flags::NO_SIGN_REQUEST),
        no_verify_ssl: tls.insecure,
        ca_bundle: tls.ca_bundle,
        client_cert: tls.client,
        large_object: settings.parse(&LARGE_OBJECT)?.unwrap_or_default(),
        etag,
        source_addresses: settings.parse_all(&flags::SOURCE_ADDRESS)?,
    };
    Ok(SwiftConfig::discover(
        &overrides,
        request.variable,
        request.home,
    )?)
}

/// Signs in and creates the driver.
fn open(request: &OpenRequest<'_>) -> Result<Service, OpenError> {
    let mut config = config(request)?;
    // Without `hosts`, the storage URL's host is the only endpoint.
    if request.endpoints != Some(1) || !config.hosts.is_empty() {
        request.limit(&mut config.hosts)?;
    }
    let engine = engines::of_cloud(request, engines::cli::Tool::Swift, |retries| {
        engines::cli::CliEngine::swift(&config, retries)
    })?;
    let driver = sign_in(config)?;
    Ok(Service {
        endpoints: driver.endpoints(),
        driver: engines::in_front_of(driver, engine),
    })
}

/// Signs in, then examines the way to the account; if signing in fails, the way to the service that refuses.
fn examine(config: SwiftConfig, exam: &mut Examination<'_>) -> Result<Examined, OpenError> {
    const ASKED: &str = "a token for these credentials";
    exam.repairs = &REPAIRS;
    let tls = config.tls.clone();
    let (auth, version) = match &config.auth {
        SwiftAuth::V1 { url, .. } => (Some(url.clone()), "v1"),
        SwiftAuth::Keystone(keystone) => (Some(keystone.url.clone()), "Keystone v3"),
        SwiftAuth::Token(_) | SwiftAuth::Anonymous => (None, ""),
    };
    let refused = match SwiftDriver::sign_in(config) {
        Ok(driver) => {
            doctor::way(driver.endpoint_list(), &tls, exam)?;
            if let Some(auth) = auth {
                let found = format!("granted by {} ({version})", auth.url());
                exam.findings
                    .push(Finding::new("sign-in", ASKED, State::Ok, found));
            }
            return Ok(Examined::Way);
        }
        Err(SignInError::Config(error)) => return Err(error.into()),
        Err(SignInError::Refused(error)) => error,
    };
    if let Some(auth) = auth {
        doctor::way(&[auth], &tls, exam)?;
    }
    if !exam.has_failed() {
        let found = Finding::new("sign-in", ASKED, State::Failed, refused.to_string());
        exam.findings.push(found.remedy(
            "check user, key and project (ST_USER, ST_KEY, or the OS_ variables), and whether ST_AUTH or OS_AUTH_URL names \
             the version of the service: …/auth/v1.0, or …/v3",
        ));
    }
    Ok(Examined::All)
}

fn sign_in(config: SwiftConfig) -> Result<SwiftDriver, OpenError> {
    SwiftDriver::sign_in(config).map_err(|error| match error {
        SignInError::Config(error) => error.into(),
        SignInError::Refused(error) => OpenError::target(error),
    })
}
