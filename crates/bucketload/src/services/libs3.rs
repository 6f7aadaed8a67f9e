//! From flags to the driver of the libs3 interface.

use bucketload_drivers::http::{Origin, Source};
use bucketload_drivers::libs3::{Libs3Config, Libs3Driver, Style};

use super::{Service, flags};
use crate::cli::target::{Addressing, TargetArgs};
use crate::exit::Failure;

/// The library's name where none is given.
const LIBRARY: &str = "libs3.so.4";

/// The configuration, and where each setting comes from: flags, then variables, then the library's own defaults.
fn config(args: &TargetArgs) -> Result<(Libs3Config, Vec<Origin>), Failure> {
    flags::refuse_but(&[flags::LIBS3], args, "libs3://")?;
    let mut origins = Vec::new();
    let mut origin = |name: &'static str, value: &str, source: Source| {
        let value = value.to_owned();
        origins.push(Origin {
            name,
            value,
            source,
        });
    };
    let mut config = match &args.libs3_library {
        Some(path) => {
            origin(
                "library",
                &path.to_string_lossy(),
                Source::Flag("--libs3-library"),
            );
            Libs3Config::new(path)
        }
        None => {
            origin("library", LIBRARY, Source::Default);
            Libs3Config::new(LIBRARY)
        }
    };
    match &args.endpoint_url[..] {
        [] => {}
        [host] => {
            origin("endpoint", host, Source::Flag("--endpoint-url"));
            config.host = Some(host.clone());
        }
        _ => {
            return Err(Failure::usage(
                "--endpoint-url: libs3 is told one host; name one",
            ));
        }
    }
    if let Some(key) = args.variable("AWS_ACCESS_KEY_ID") {
        origin("access key", &key, Source::Env("AWS_ACCESS_KEY_ID"));
        config.access_key = key;
    }
    if let Some(key) = args.variable("AWS_SECRET_ACCESS_KEY") {
        origin("secret key", "***", Source::Env("AWS_SECRET_ACCESS_KEY"));
        config.secret_key = key;
    }
    if let Some(token) = args.variable("AWS_SESSION_TOKEN") {
        origin("session token", "***", Source::Env("AWS_SESSION_TOKEN"));
        config.session_token = Some(token);
    }
    if let Some(region) = &args.region {
        origin("region", region, Source::Flag("--region"));
        config.region = Some(region.clone());
    } else if let Some(region) = args.variable("AWS_REGION") {
        origin("region", &region, Source::Env("AWS_REGION"));
        config.region = Some(region);
    }
    if let Some(style) = args.addressing {
        origin("addressing", style.name(), Source::Flag("--addressing"));
        config.style = match style {
            Addressing::Path => Style::Path,
            Addressing::Virtual => Style::VirtualHost,
        };
    }
    Ok((config, origins))
}

/// The driver, with its library loaded.
pub(super) fn open(args: &TargetArgs, wanted: Option<usize>) -> Result<Service, Failure> {
    let (config, _) = config(args)?;
    let mut endpoints: Vec<String> = config
        .host
        .iter()
        .filter(|host| host.contains("://"))
        .cloned()
        .collect();
    super::limit(&mut endpoints, wanted)?;
    let driver = Libs3Driver::new(config).map_err(|e| Failure::usage(format!("libs3://: {e}")))?;
    Ok(Service {
        driver: driver.into(),
        endpoints,
    })
}

/// The effective settings and where each comes from.
pub(super) fn origins(args: &TargetArgs) -> Result<Vec<Origin>, Failure> {
    config(args).map(|(_, origins)| origins)
}
