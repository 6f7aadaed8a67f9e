//! The driver's description of itself: everything that the rest of the program knows about it.

use bucketload_target::doctor::no_doctor;
use bucketload_target::{
    Descriptor, OpenError, OpenRequest, Origin, Semantics, Service, Source, UrlForm, any_bucket,
    any_cleanup, flags,
};

use super::driver::{ToyConfig, ToyDriver};
use crate::http::{Endpoint, TlsConfig};

/// The default endpoint.
const DEFAULT_URL: &str = "http://localhost:7777";

/// The driver of `toy://`.
pub static DESCRIPTOR: Descriptor = Descriptor {
    name: "toy",
    schemes: &["toy"],
    form: UrlForm::Bucket,
    page: "develop/write-a-driver.md",
    semantics: Semantics {
        write: "1 request",
        overwrite: "replaced",
        parts: Semantics::NONE,
        append: Semantics::NONE,
        rename: Semantics::NONE,
        list: "pages by key",
        delete_nothing: "success",
        delete_many: Semantics::NONE,
    },
    flags: &[&flags::HTTP],
    dialect: &[],
    endpoint_variables: &[],
    files: &[],
    secret: None,
    check_bucket: any_bucket,
    open: |request| open(request),
    origins: |request| {
        let (value, source) = endpoint(request);
        Ok(vec![Origin {
            name: "endpoint",
            value,
            source,
        }])
    },
    check_cleanup: any_cleanup,
    doctor: no_doctor,
};

/// The endpoint URL, and where it comes from.
fn endpoint(request: &OpenRequest<'_>) -> (String, Source) {
    match request.settings.joined(&flags::ENDPOINT_URL) {
        Some(url) => (url, Source::Flag(flags::ENDPOINT_URL.name)),
        None => (DEFAULT_URL.to_owned(), Source::Default),
    }
}

fn open(request: &OpenRequest<'_>) -> Result<Service, OpenError> {
    let (url, source) = endpoint(request);
    let mut endpoints = Endpoint::parse_list(&url, &source.to_string())?;
    request.limit(&mut endpoints)?;
    let config = ToyConfig {
        tls: TlsConfig::of(request.settings),
        sources: request.settings.parse_all(&flags::SOURCE_ADDRESS)?,
        endpoints,
    };
    Ok(Service {
        endpoints: config.endpoints.iter().map(Endpoint::url).collect(),
        driver: ToyDriver::new(config)?.into(),
    })
}
