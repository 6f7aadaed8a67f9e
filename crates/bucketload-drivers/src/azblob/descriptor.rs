//! The descriptor of the Azure Blob driver.

use bucketload_target::doctor::{Examined, Repair};
use bucketload_target::{
    Descriptor, Flag, OpenError, OpenRequest, Scope, Semantics, Service, UrlForm, Value,
    any_bucket, any_cleanup, flags,
};

use super::config::check_version;
use super::{AzureConfig, AzureDriver, AzureOverrides};
use crate::engines;
use crate::http::{TlsConfig, doctor};

static VERSION: Flag = Flag::new(
    "--azure-api-version",
    Value::Checked("DATE", check_version),
    Scope::Service,
    "Version of the service that requests ask for (x-ms-version); default 2022-11-02",
)
.with_more("From 2020-12-06 on. Before 2022-11-02, a block that is appended has at most 4 MiB.");

/// What `doctor` tries when the service refuses the default.
static REPAIRS: [Repair; 1] = [Repair {
    check: "bucket",
    flag: &VERSION,
    values: &["2021-12-02", "2021-06-08", "2020-12-06"],
}];

/// The driver of `az://`.
pub static DESCRIPTOR: Descriptor = Descriptor {
    name: "azblob",
    schemes: &["az", "azure"],
    form: UrlForm::Bucket,
    page: "drivers/azure.md",
    semantics: Semantics {
        write: "1 request; the blob appears whole",
        overwrite: Semantics::ATOMIC,
        parts: "blocks, then their list; blocks belong to the blob, the first list wins",
        append: "1 request; only to blobs that an append created",
        rename: Semantics::NONE,
        list: "names by prefix, sorted, up to 5,000 a page; pages may be shorter",
        delete_nothing: Semantics::MISSED,
        delete_many: "1 request for up to 256 blobs, each signed separately",
    },
    flags: &[
        &flags::HTTP,
        &[&flags::NO_SIGN_REQUEST, &flags::CHECKSUM, &VERSION],
        &engines::FLAGS,
    ],
    dialect: &[&VERSION, &flags::CHECKSUM],
    endpoint_variables: &[],
    files: &[],
    secret: None,
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

/// Flags, then environment, then defaults.
fn config(request: &OpenRequest<'_>) -> Result<AzureConfig, OpenError> {
    let settings = &request.settings.with_dialect(&[&VERSION, &flags::CHECKSUM]);
    let overrides = AzureOverrides {
        endpoint_url: settings.joined(&flags::ENDPOINT_URL),
        no_sign_request: settings.has(&flags::NO_SIGN_REQUEST),
        tls: TlsConfig::of(settings),
        checksum: settings.parse(&flags::CHECKSUM)?,
        api_version: settings.text(&VERSION),
        source_addresses: settings.parse_all(&flags::SOURCE_ADDRESS)?,
    };
    Ok(AzureConfig::discover(&overrides, request.variable)?)
}

fn open(request: &OpenRequest<'_>) -> Result<Service, OpenError> {
    let mut config = config(request)?;
    request.limit(&mut config.endpoints)?;
    let endpoints = config.endpoints.iter().map(|e| e.url()).collect();
    let engine = engines::of_cloud(request, engines::cli::Tool::Az, |retries| {
        engines::cli::CliEngine::azure(&config, retries)
    })?;
    let driver = AzureDriver::new(config.clone())?;
    Ok(Service {
        driver: engines::in_front_of(driver, engine),
        endpoints,
    })
}
