//! The drivers that `main` passes in: which flags apply to a target, and how to open it.

use std::sync::OnceLock;

use bucketload_core::driver::AnyDriver;
use bucketload_results::compare::Meaning;
use bucketload_target::{
    Descriptor, Flag, OpenError, OpenRequest, Origin, Registry, Scope, Service, Settings, flags,
    no_directory,
};

use crate::embedded::EmbeddedServer;
use crate::environment;
use crate::exit::Failure;
use crate::target::{Api, Target};

static REGISTRY: OnceLock<&'static Registry> = OnceLock::new();

/// Sets the drivers of this program. Only the first call has an effect.
pub(crate) fn register(registry: &'static Registry) {
    REGISTRY.get_or_init(|| registry);
}

/// The drivers of this program.
///
/// # Panics
/// When no drivers are registered; `main` registers them before it reads the command line.
#[cfg(not(test))]
pub(crate) fn registry() -> &'static Registry {
    REGISTRY.get().expect("main has registered the drivers")
}

/// The drivers of this program, for its own tests.
#[cfg(test)]
pub(crate) fn registry() -> &'static Registry {
    REGISTRY.get_or_init(|| &bucketload::REGISTRY)
}

/// The driver whose operations do nothing.
pub(crate) fn null() -> AnyDriver {
    (registry().null)()
}

/// The semantics in which two drivers differ, by the drivers' names in results.
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

/// The value of environment variable `name`, or the value with which the workload replaces it.
pub(crate) fn variable(settings: &Settings, name: &str) -> Option<String> {
    match settings.given.get(name) {
        Some(value) => value.map(str::to_owned),
        None => environment::variable(name),
    }
}

/// Calls the driver of `target` with `settings`, using only the first `wanted` endpoints (`None`: all). Returns
/// `None` if the target has no registered driver, because it is an embedded server or the null target.
///
/// # Errors
/// When a flag does not apply to the target, or the driver fails.
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

/// The effective settings of `target`, and where each comes from; empty without a registered driver.
///
/// # Errors
/// As [`ask`].
pub(crate) fn origins(target: &Target, settings: &Settings) -> Result<Vec<Origin>, Failure> {
    let origins = ask(target, settings, None, |driver, request| {
        (driver.origins)(request)
    })?;
    Ok(settings.trace(origins.unwrap_or_default()))
}

/// The driver of the directory that COSBench's `localwrite` writes to, if the settings name one. A coordinator, which
/// never writes there, gets one that does nothing.
fn local_files(settings: &Settings) -> Result<Option<AnyDriver>, Failure> {
    let Some(root) = &settings.local_files else {
        return Ok(None);
    };
    if settings.local_files_on_agents {
        return Ok(Some(null()));
    }
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

/// The driver of the embedded server.
///
/// # Errors
/// When the driver fails.
pub(crate) fn embedded(server: &EmbeddedServer, settings: &Settings) -> Result<Service, Failure> {
    ask_embedded(server, settings, |driver, request| (driver.open)(request))
}

/// Calls the driver of the embedded server. Flags on how to send requests apply; flags that locate a service were refused
/// before, so an endpoint among `settings` is a way to this server.
///
/// # Errors
/// When the driver fails.
pub(crate) fn ask_embedded<T>(
    server: &EmbeddedServer,
    settings: &Settings,
    call: impl FnOnce(&'static Descriptor, &OpenRequest<'_>) -> Result<T, OpenError>,
) -> Result<T, Failure> {
    let driver = Api::s3().descriptor();
    refuse_engine(driver, settings, "an embedded server")?;
    let mut settings = settings.clone();
    if !settings.has(&flags::ENDPOINT_URL) {
        settings.set(&flags::ENDPOINT_URL, [format!("http://{}", server.address)]);
    }
    settings.set(&flags::REGION, ["us-east-1"]);
    if !settings.has(&flags::APPEND) {
        settings.set(&flags::APPEND, ["write-offset"]);
    }
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
    Ok(call(driver, &request)?)
}

/// Refuses flags that do not apply to a target without a service: those that locate a service, name its user, or
/// concern file systems.
///
/// # Errors
/// The first such flag.
pub(crate) fn refuse_all(settings: &Settings, target: &str) -> Result<(), Failure> {
    if !settings.dialect.is_empty() {
        return Err(Failure::usage(format!(
            "--dialect is for services and file systems and does not apply to target {target}; remove it"
        )));
    }
    let matters = |flag: &&&Flag| matches!(flag.scope, Scope::Service | Scope::Files);
    let flags = registry().flags();
    match flags.iter().filter(matters).find(|flag| settings.has(flag)) {
        None => Ok(()),
        Some(Flag {
            name,
            scope: Scope::Files,
            ..
        }) => Err(Failure::usage(format!(
            "{name} is for file systems and does not apply to target {target}. \
             Name a directory: --target file:///DIRECTORY"
        ))),
        Some(Flag { name, .. }) => Err(Failure::usage(format!(
            "{name} is for external services and does not apply to target {target}. \
             Name the service's bucket: --target s3://BUCKET/PREFIX"
        ))),
    }
}

/// Refuses every client other than the native one, and retries of the native client.
///
/// # Errors
/// When either was asked for.
pub(crate) fn refuse_client(settings: &Settings, target: &str) -> Result<(), Failure> {
    let [engine, retries] = registry().engine;
    match settings.get(engine) {
        None | Some("native") if settings.has(retries) => Err(Failure::usage(
            "--engine-retries: the native client never repeats a request on its own; \
             the workload's `retry` sets how often an operation is tried, and each attempt counts",
        )),
        None | Some("native") => Ok(()),
        Some(_) => Err(Failure::usage(format!(
            "--engine: this client does not support {target} targets; remove the flag to use `native`"
        ))),
    }
}

/// Refuses retries of the native client, and other clients if `driver` does not support them.
fn refuse_engine(driver: &Descriptor, settings: &Settings, target: &str) -> Result<(), Failure> {
    let [engine, _] = registry().engine;
    let other = !matches!(settings.get(engine), None | Some("native"));
    match driver.reads(engine) && other {
        true => Ok(()),
        false => refuse_client(settings, target),
    }
}

/// Refuses flags that `driver` does not read.
fn refuse_foreign(driver: &Descriptor, settings: &Settings) -> Result<(), Failure> {
    let target = format!("{}://", driver.scheme());
    refuse_engine(driver, settings, &target)?;
    let mut set = settings.dialect.settings.iter();
    if let Some((name, (_, line))) =
        set.find(|(name, _)| !driver.dialect.iter().any(|f| f.name == *name))
    {
        return Err(Failure::usage(format!(
            "{}:{line}: [settings] {}: a dialect of {target} targets cannot set it; remove the line",
            settings.dialect.file,
            name.trim_start_matches('-')
        )));
    }
    let mut flags = registry().flags().into_iter();
    let foreign =
        flags.find(|flag| flag.scope != Scope::Client && settings.has(flag) && !driver.reads(flag));
    match foreign {
        None => Ok(()),
        Some(flag) => Err(Failure::usage(format!(
            "{} does not apply to {target} targets; remove it",
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
    fn only_differences_are_shown() {
        assert!(meanings("s3", "s3").is_empty());
        assert!(meanings("s3", "unheard-of").is_empty());
        let rows = meanings("s3", "azblob");
        assert!(rows.iter().all(|row| row.a != row.b));
        let of = |topic: &str| rows.iter().find(|row| row.topic == topic);
        assert_eq!(of("delete of nothing").map(|row| row.b), Some("not-found"));
        assert_eq!(of("rename"), None, "neither can rename");
    }

    #[test]
    fn flags_that_do_not_apply_are_refused() {
        let mut settings = Settings::default();
        settings.set(&flags::CHECKSUM, ["crc32"]);
        let gs = Api::of_scheme("gs").unwrap();
        assert!(refuse_foreign(Api::s3().descriptor(), &settings).is_ok());
        let refused = refuse_foreign(gs.descriptor(), &settings).unwrap_err();
        assert!(
            refused
                .message
                .contains("--checksum does not apply to gs://")
        );
        // An embedded server accepts checksums, but the user cannot set its endpoint.
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
