//! The descriptor of the SeaweedFS driver.

use bucketload_target::doctor::Examined;
use bucketload_target::{
    Descriptor, Flag, OpenError, OpenRequest, Scope, Semantics, Service, UrlForm, Value,
    any_bucket, flags,
};

use super::{Mode, SeaweedConfig, SeaweedDriver, SeaweedOverrides};
use crate::http::{TlsConfig, doctor};

static MODE: Flag = Flag::new(
    "--seaweedfs-mode",
    Value::Choice(
        "KIND",
        &[
            ("filer", "A filer: objects have paths"),
            (
                "master",
                "A master: objects have file IDs, which the client keeps",
            ),
        ],
    ),
    Scope::Service,
    "Which SeaweedFS interface the endpoint is; default `filer`",
);

static OBJECTS: Flag = Flag::new(
    "--seaweedfs-objects",
    Value::Checked("N", Value::parses::<u64>),
    Scope::Service,
    "With a SeaweedFS master: most objects that the client can keep, at 53 to 107 bytes each; default 1000000",
);

/// The driver of `seaweedfs://`.
pub static DESCRIPTOR: Descriptor = Descriptor {
    name: "seaweedfs",
    schemes: &["seaweedfs"],
    form: UrlForm::Bucket,
    page: "drivers/seaweedfs.md",
    semantics: Semantics {
        write: "filer: 1 request; master: a file ID, then the bytes to a volume server",
        overwrite: "replaced",
        parts: Semantics::NONE,
        append: "filer: 1 request; master: not supported",
        rename: "filer: 1 request; master: not supported",
        list: "filer: folder by folder; empty folders stay",
        delete_nothing: "success",
        delete_many: Semantics::NONE,
    },
    flags: &[&flags::HTTP, &[&MODE, &OBJECTS]],
    dialect: &[&MODE],
    endpoint_variables: &[],
    files: &[],
    secret: None,
    check_bucket: any_bucket,
    open: |request| open(request),
    origins: |request| Ok(config(request)?.origins),
    check_cleanup: |request, bucket| check_cleanup(request, bucket),
    doctor: |request, exam| {
        let config = config(request)?;
        doctor::way(&config.endpoints, &config.tls, exam)?;
        Ok(Examined::Way)
    },
};

/// Flags, then our own variables, then SeaweedFS's default ports.
fn config(request: &OpenRequest<'_>) -> Result<SeaweedConfig, OpenError> {
    let settings = &request.settings.with_dialect(&[&MODE]);
    let overrides = SeaweedOverrides {
        endpoint_url: settings.joined(&flags::ENDPOINT_URL),
        mode: settings.parse(&MODE)?,
        objects: settings.parse(&OBJECTS)?,
        tls: TlsConfig::of(settings),
        source_addresses: settings.parse_all(&flags::SOURCE_ADDRESS)?,
    };
    Ok(SeaweedConfig::new(&overrides, request.variable)?)
}

fn open(request: &OpenRequest<'_>) -> Result<Service, OpenError> {
    let mut config = config(request)?;
    request.limit(&mut config.endpoints)?;
    Ok(Service {
        endpoints: config.endpoints.iter().map(|e| e.url()).collect(),
        driver: SeaweedDriver::new(config)?.into(),
    })
}

/// With a master, only the process that wrote the objects knows them.
fn check_cleanup(request: &OpenRequest<'_>, bucket: &str) -> Result<(), OpenError> {
    if config(request)?.mode == Mode::Filer {
        return Ok(());
    }
    Err(OpenError::Usage(format!(
        "cleanup: a SeaweedFS master cannot list objects, so objects of earlier runs cannot be found; \
         if the collection holds nothing else, delete it: http://MASTER/col/delete?collection={bucket}"
    )))
}
