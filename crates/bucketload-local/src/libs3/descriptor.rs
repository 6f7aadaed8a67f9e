//! The descriptor of the driver for libs3 libraries.

use bucketload_target::doctor::no_doctor;
use bucketload_target::{
    Descriptor, Flag, OpenError, OpenRequest, Origin, Scope, Semantics, Service, Source, UrlForm,
    Value, any_bucket, any_cleanup, flags,
};

use super::{Libs3Config, Libs3Driver, Style};

/// Default name of the library.
const NAME: &str = "libs3.so.4";

static LIBRARY: Flag = Flag::new(
    "--libs3-library",
    Value::Path("FILE"),
    Scope::Service,
    "Library for libs3:// targets: a path, or a name for the dynamic linker to search; default libs3.so.4",
)
.with_more(
    "--endpoint-url is its host: a URL, or a directory for a library that stores files.",
);

/// The driver of `libs3://`.
pub static DESCRIPTOR: Descriptor = Descriptor {
    name: "libs3",
    schemes: &["libs3"],
    form: UrlForm::Bucket,
    page: "drivers/libs3.md",
    semantics: Semantics {
        write: "1 call of the library; whether the object appears whole depends on the store",
        overwrite: "depends on the store behind the library",
        parts: "begin, parts, complete; 1 call each",
        append: Semantics::NONE,
        rename: Semantics::NONE,
        list: "keys by prefix, sorted, up to 1,000 a page, by marker",
        delete_nothing: "success",
        delete_many: Semantics::NONE,
    },
    flags: &[&[
        &LIBRARY,
        &flags::ENDPOINT_URL,
        &flags::REGION,
        &flags::ADDRESSING,
    ]],
    dialect: &[&flags::REGION, &flags::ADDRESSING],
    endpoint_variables: &[],
    files: &[],
    secret: None,
    check_bucket: any_bucket,
    open: |request| open(request),
    origins: |request| config(request).map(|(_, origins)| origins),
    check_cleanup: any_cleanup,
    doctor: no_doctor,
};

/// The configuration and the origin of each setting: flags, then variables, then the library's defaults.
fn config(request: &OpenRequest<'_>) -> Result<(Libs3Config, Vec<Origin>), OpenError> {
    let settings = &request.settings.with_dialect(&[&flags::ADDRESSING]);
    let mut origins = Vec::new();
    let mut origin = |name: &'static str, value: &str, source: Source| {
        let value = value.to_owned();
        origins.push(Origin {
            name,
            value,
            source,
        });
    };
    let flag = |flag: &'static Flag| {
        let value = settings.text(flag)?;
        Some((value, Source::Flag(flag.name)))
    };
    let variable = |name| Some(((request.variable)(name)?, Source::Env(name)));
    let (library, source) = flag(&LIBRARY).unwrap_or_else(|| (NAME.to_owned(), Source::Default));
    origin("library", &library, source);
    let mut config = Libs3Config::new(library);
    if settings.all(&flags::ENDPOINT_URL).len() > 1 {
        return Err(OpenError::usage(
            "--endpoint-url: libs3 supports one host; name one",
        ));
    }
    if let Some((host, source)) = flag(&flags::ENDPOINT_URL) {
        origin("endpoint", &host, source);
        config.host = Some(host);
    }
    if let Some((key, source)) = variable("AWS_ACCESS_KEY_ID") {
        origin("access key", &key, source);
        config.access_key = key;
    }
    if let Some((key, source)) = variable("AWS_SECRET_ACCESS_KEY") {
        origin("secret key", "***", source);
        config.secret_key = key;
    }
    if let Some((token, source)) = variable("AWS_SESSION_TOKEN") {
        origin("session token", "***", source);
        config.session_token = Some(token);
    }
    if let Some((region, source)) = flag(&flags::REGION)
        .or_else(|| variable("AWS_REGION"))
        .or_else(|| settings.dialect.get(&flags::REGION))
    {
        origin("region", &region, source);
        config.region = Some(region);
    }
    if let Some((style, source)) = flag(&flags::ADDRESSING) {
        origin("addressing", &style, source);
        config.style = match style.as_str() {
            "virtual" => Style::VirtualHost,
            _ => Style::Path,
        };
    }
    Ok((config, origins))
}

/// Opens the driver and loads its library.
fn open(request: &OpenRequest<'_>) -> Result<Service, OpenError> {
    let (config, _) = config(request)?;
    let is_url = |host: &&String| host.contains("://");
    let mut endpoints: Vec<String> = config.host.iter().filter(is_url).cloned().collect();
    request.limit(&mut endpoints)?;
    let driver =
        Libs3Driver::new(config).map_err(|e| OpenError::Usage(format!("libs3://: {e}")))?;
    Ok(Service {
        driver: driver.into(),
        endpoints,
    })
}
