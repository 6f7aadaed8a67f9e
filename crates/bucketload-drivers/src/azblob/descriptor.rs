//! The descriptor of the Azure Blob driver.

use bucketload_target::doctor::Examined;
use bucketload_target::{
    Descriptor, OpenError, OpenRequest, Semantics, Service, UrlForm, any_bucket, any_cleanup, flags,
};

use super::{AzureConfig, AzureDriver, AzureOverrides};
use crate::engines;
use crate::http::{TlsConfig, doctor};

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
        &[&flags::NO_SIGN_REQUEST, &flags::CHECKSUM],
        &engines::FLAGS,
    ],
    dialect: &[],
    endpoint_variables: &[],
    files: &[],
    secret: None,
    check_bucket: any_bucket,
    open: |request| open(request),
    origins: |request| Ok(config(request)?.origins),
    check_cleanup: any_cleanup,
    doctor: |request, exam| {
        let config = config(request)?;
        doctor::way(&config.endpoints, &config.tls, exam)?;
        Ok(Examined::Way)
    },
};

/// Flags, then environment, then defaults.
fn config(request: &OpenRequest<'_>) -> Result<AzureConfig, OpenError> {
    let settings = request.settings;
    let overrides = AzureOverrides {
        endpoint_url: settings.joined(&flags::ENDPOINT_URL),
        no_sign_request: settings.has(&flags::NO_SIGN_REQUEST),
        tls: TlsConfig::of(settings),
        checksum: settings.parse(&flags::CHECKSUM)?,
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
