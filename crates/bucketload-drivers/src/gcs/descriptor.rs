//! The descriptor of the Google Cloud Storage driver.

use bucketload_target::doctor::{Examined, Repair};
use bucketload_target::{
    ConfigFile, Descriptor, Flag, OpenError, OpenRequest, Scope, Semantics, Service, UrlForm,
    Value, any_bucket, any_cleanup, flags,
};

use super::{GcsConfig, GcsDriver, GcsOverrides};
use crate::engines;
use crate::http::{TlsConfig, doctor};

static TOKEN_FILE: Flag = Flag::new(
    "--token-file",
    Value::File("FILE"),
    Scope::Service,
    "File with an access token for Google Cloud Storage, reread every minute",
)
.with_more(
    "Default: GOOGLE_OAUTH_ACCESS_TOKEN, the file GOOGLE_APPLICATION_CREDENTIALS, the file that `gcloud auth \
     application-default login` wrote, or the metadata server.",
);

static LARGE_OBJECT: Flag = Flag::new(
    "--gcs-large-object",
    Value::Choice(
        "WAY",
        &[
            ("resumable", "One resumable upload in chunks"),
            ("compose", "One object per part, composed and then deleted"),
        ],
    ),
    Scope::Service,
    "How to upload an object in parts to Google Cloud Storage; default `resumable`",
);

/// What `doctor` tries when the service refuses the default.
static REPAIRS: [Repair; 1] = [Repair {
    check: "multipart",
    flag: &LARGE_OBJECT,
    values: &["resumable", "compose"],
}];

/// The driver of `gs://`.
pub static DESCRIPTOR: Descriptor = Descriptor {
    name: "gcs",
    schemes: &["gs"],
    form: UrlForm::Bucket,
    page: "drivers/gcs.md",
    semantics: Semantics {
        write: "1 request; the object appears whole",
        overwrite: Semantics::ATOMIC,
        parts: "a resumable upload in chunks; or one object per part, visible in listings, then composed",
        append: Semantics::NONE,
        rename: Semantics::NONE,
        list: "names by prefix, sorted, up to 1,000 a page",
        delete_nothing: Semantics::MISSED,
        delete_many: "1 request per 100 keys",
    },
    flags: &[
        &flags::HTTP,
        &[&flags::NO_SIGN_REQUEST, &TOKEN_FILE, &LARGE_OBJECT],
        &engines::FLAGS,
    ],
    dialect: &[&LARGE_OBJECT],
    endpoint_variables: &[],
    files: &[ConfigFile::whole(
        "GOOGLE_APPLICATION_CREDENTIALS",
        ".config/gcloud/application_default_credentials.json",
    )],
    secret: Some("access token"),
    check_bucket: any_bucket,
    open: |request| open(request),
    origins: |request| Ok(config(request)?.origins),
    check_cleanup: any_cleanup,
    doctor: |request, exam| {
        let config = config(request)?;
        exam.repairs = &REPAIRS;
        doctor::way(&config.endpoints, &config.tls, exam)?;
        Ok(Examined::Way)
    },
};

/// Flags, then environment, then the files of Google's tools, then defaults.
fn config(request: &OpenRequest<'_>) -> Result<GcsConfig, OpenError> {
    let settings = &request.settings.with_dialect(&[&LARGE_OBJECT]);
    let overrides = GcsOverrides {
        endpoint_url: settings.joined(&flags::ENDPOINT_URL),
        token_file: settings.path(&TOKEN_FILE),
        anonymous: settings.has(&flags::NO_SIGN_REQUEST),
        large_object: settings.parse(&LARGE_OBJECT)?,
        tls: TlsConfig::of(settings),
        source_addresses: settings.parse_all(&flags::SOURCE_ADDRESS)?,
    };
    Ok(GcsConfig::discover(
        &overrides,
        request.variable,
        request.home,
    )?)
}

fn open(request: &OpenRequest<'_>) -> Result<Service, OpenError> {
    let mut config = config(request)?;
    request.limit(&mut config.endpoints)?;
    let endpoints = config.endpoints.iter().map(|e| e.url()).collect();
    let engine = engines::of_cloud(request, engines::cli::Tool::Gsutil, |retries| {
        engines::cli::CliEngine::gcs(&config, retries)
    })?;
    let driver = GcsDriver::new(config.clone())?;
    Ok(Service {
        driver: engines::in_front_of(driver, engine),
        endpoints,
    })
}
