//! The drivers that `main` hands in: which flags mean something for a target, and how it is opened.

use std::sync::OnceLock;

use bucketload_core::driver::AnyDriver;
use bucketload_results::compare::Meaning;
use bucketload_target::{
    Descriptor, Flag, OpenError, OpenRequest, Registry, Scope, Service, Settings, flags,
    no_directory,
};

use crate::embedded::EmbeddedServer;
use crate::environment;
use crate::exit::Failure;
use crate::target::{Api, Target};

static REGISTRY: OnceLock<&'static Registry> = OnceLock::new();

/// Sets the drivers of this program; the first call counts.
pub(crate) fn register(registry: &'static Registry) {
    REGISTRY.get_or_init(|| registry);
}

/// The drivers of this program.
///
/// # Panics
/// When there are none yet: `main` registers them before it reads the command line.
#[cfg(not(test))]
pub(crate) fn registry() -> &'static Registry {
    REGISTRY.get().expect("main has registered the drivers")
}

/// The drivers of this program, for its own tests.
#[cfg(test)]
pub(crate) fn registry() -> &'static Registry {
    REGISTRY.get_or_init(|| &bucketload::REGISTRY)
}

/// The driver of operations that do nothing.
pub(crate) fn null() -> AnyDriver {
    (registry().null)()
}

/// What two drivers, by their names in results, do in different ways.
pub(crate) fn meanings(a: &str, b: &str) -> Vec<Meaning> {
    let rows = |name| {
        registry()
            .by_name(name)
            .map(|driver| driver.semantics.rows())
    };
    let (Some(a), Some(b)) = (rows(a), rows(b)) else {
        return Vec::new();
    };
    let rows = a.into_iter().zip(b);
    rows.filter(|((_, a), (_, b))| a != b)
        .map(|((topic, a), (_, b))| Meaning { topic, a, b })
        .collect()
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Usage(text) => Self::usage(text),
            OpenError::Target(text) => Self::target(text),
            OpenError::Aborted(text) => Self::aborted(text),
        }
    }
}

/// The environment variable `name`, or what the workload has in its place.
pub(crate) fn variable(settings: &Settings, name: &str) -> Option<String> {
    match settings.given.get(name) {
        Some(value) => value.map(str::to_owned),
        None => environment::variable(name),
    }
}

/// Asks the driver of `target` with `settings`, of whose endpoints the first `wanted` are used (`None`: all).
/// `None` where the target has no driver of its own: an embedded server, or the null target.
///
/// # Errors
/// When a flag means nothing for the target, or what the driver says.
pub(crate) fn ask<T>(
    target: &Target,
    settings: &Settings,
    wanted: Option<usize>,
    call: impl FnOnce(&'static Descriptor, &OpenRequest<'_>) -> Result<T, OpenError>,
) -> Result<Option<T>, Failure> {
    let (api, server, directory) = match target {
        Target::Service { api, server, .. } => (*api, server.as_deref(), no_directory()),
        Target::Files(root) => (Api::files(), None, root.as_path()),
        _ => return Ok(None),
    };
    let driver = api.descriptor();
    refuse_foreign(driver, settings)?;
    let home = environment::home();
    let request = OpenRequest {
        settings,
        variable: &|name| variable(settings, name),
        home: home.as_deref(),
        server,
        directory,
        endpoints: wanted,
        files: local_files(settings)?,
    };
    Ok(Some(call(driver, &request)?))
}

/// The driver of the directory that COSBench's `localwrite` writes to, where there is one.
fn local_files(settings: &Settings) -> Result<Option<AnyDriver>, Failure> {
    let Some(root) = &settings.local_files else {
        return Ok(None);
    };
    let request = OpenRequest {
        settings: &Settings::default(),
        variable: &|_| None,
        home: None,
        server: None,
        directory: root,
        endpoints: None,
        files: None,
    };
    let service = (Api::files().descriptor().open)(&request)?;
    Ok(Some(service.driver))
}

/// The driver of the embedded server. Flags that say how to talk to it apply; those that say where a service is were
/// refused before.
///
/// # Errors
/// What the driver says.
pub(crate) fn embedded(server: &EmbeddedServer, settings: &Settings) -> Result<Service, Failure> {
    let driver = Api::s3().descriptor();
    refuse_engine(driver, settings, "an embedded server")?;
    let mut settings = settings.clone();
    settings.set(&flags::ENDPOINT_URL, [format!("http://{}", server.address)]);
    settings.set(&flags::REGION, ["us-east-1"]);
    let request = OpenRequest {
        settings: &settings,
        variable: &|name| match name {
            "AWS_ACCESS_KEY_ID" => Some(server.access_key.clone()),
            "AWS_SECRET_ACCESS_KEY" => Some(server.secret_key.clone()),
            _ => None,
        },
        home: None,
        server: None,
        directory: no_directory(),
        endpoints: None,
        files: local_files(&settings)?,
    };
    Ok((driver.open)(&request)?)
}

/// Refuses what means nothing for a target without a service: flags that say where one is, who asks, how files
/// are used.
///
/// # Errors
/// The first such flag.
pub(crate) fn refuse_all(settings: &Settings, target: &str) -> Result<(), Failure> {
    let matters = |flag: &&&Flag| matches!(flag.scope, Scope::Service | Scope::Files);
    let flags = registry().flags();
    match flags.iter().filter(matters).find(|flag| settings.has(flag)) {
        None => Ok(()),
        Some(Flag {
            name,
            scope: Scope::Files,
            ..
        }) => Err(Failure::usage(format!(
            "{name} is for a file system; with target {target} it means nothing. \
             Name a directory: --target file:///DIRECTORY"
        ))),
        Some(Flag { name, .. }) => Err(Failure::usage(format!(
            "{name} is for a service of its own; with target {target} it means nothing. \
             Name the service's bucket: --target s3://BUCKET/PREFIX"
        ))),
    }
}

/// Refuses every client but our own, and retries of our own.
///
/// # Errors
/// When one was asked for.
pub(crate) fn refuse_client(settings: &Settings, target: &str) -> Result<(), Failure> {
    let [engine, retries] = registry().engine;
    match settings.get(engine) {
        None | Some("native") if settings.has(retries) => Err(Failure::usage(
            "--engine-retries: the native client never repeats a request by itself; \
             the workload's `retry` says how often an operation is tried, and each attempt counts",
        )),
        None | Some("native") => Ok(()),
        Some(_) => Err(Failure::usage(format!(
            "--engine: no such client drives {target} targets; leave the flag out for `native`"
        ))),
    }
}

/// Refuses retries of our own client, and another client where `driver` has none.
fn refuse_engine(driver: &Descriptor, settings: &Settings, target: &str) -> Result<(), Failure> {
    let [engine, _] = registry().engine;
    let other = !matches!(settings.get(engine), None | Some("native"));
    match driver.reads(engine) && other {
        true => Ok(()),
        false => refuse_client(settings, target),
    }
}

/// Refuses flags that mean nothing for `driver`.
fn refuse_foreign(driver: &Descriptor, settings: &Settings) -> Result<(), Failure> {
    let target = format!("{}://", driver.scheme());
    refuse_engine(driver, settings, &target)?;
    let mut flags = registry().flags().into_iter();
    let foreign =
        flags.find(|flag| flag.scope != Scope::Client && settings.has(flag) && !driver.reads(flag));
    match foreign {
        None => Ok(()),
        Some(flag) => Err(Failure::usage(format!(
            "{} means nothing for {target} targets; leave it out",
            flag.name
        ))),
    }
}

#[cfg(test)]
mod tests {
    use bucketload_target::{Settings, flags};

    use super::{meanings, refuse_all, refuse_foreign};
    use crate::target::Api;

    #[test]
    fn only_what_differs_is_shown() {
        assert!(meanings("s3", "s3").is_empty());
        assert!(meanings("s3", "unheard-of").is_empty());
        let rows = meanings("s3", "azblob");
        assert!(rows.iter().all(|row| row.a != row.b));
        let of = |topic: &str| rows.iter().find(|row| row.topic == topic);
        assert_eq!(of("delete of nothing").map(|row| row.b), Some("not-found"));
        assert_eq!(of("rename"), None, "neither can");
    }

    #[test]
    fn flags_of_other_apis_are_refused() {
        let mut settings = Settings::default();
        settings.set(&flags::CHECKSUM, ["crc32"]);
        let gs = Api::of_scheme("gs").unwrap();
        assert!(refuse_foreign(Api::s3().descriptor(), &settings).is_ok());
        let refused = refuse_foreign(gs.descriptor(), &settings).unwrap_err();
        assert!(
            refused
                .message
                .contains("--checksum means nothing for gs://")
        );
        // An embedded server takes checksums, too; it has no endpoint of its own.
        assert!(refuse_all(&settings, "mem:").is_ok());
        settings.set(&flags::ENDPOINT_URL, ["http://h"]);
        assert!(
            refuse_all(&settings, "mem:")
                .unwrap_err()
                .message
                .contains("--endpoint-url")
        );
    }
}
