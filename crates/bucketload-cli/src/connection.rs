//! From target flags to a connection: the driver, and the embedded server behind it if there is one.

use std::net::IpAddr;

use bucketload_core::driver::AnyDriver;
use bucketload_core::op::OpClass;
use bucketload_results::rundir::SettingOrigin;
use bucketload_results::rundir::redact::MASK;
use bucketload_run::Leftovers;
use bucketload_target::{Service, Settings, flags};
use bucketload_workload::spec::TargetSpec;

use crate::caches;
use crate::cli::run::LoadArgs;
use crate::cli::target::TargetArgs;
use crate::drivers;
use crate::embedded::EmbeddedServer;
use crate::exit::{Failure, OrFail};
use crate::leftover;
use crate::target::Target;

/// A target with its driver. An embedded server ends with this value.
pub(crate) struct Connection {
    pub(crate) driver: AnyDriver,
    pub(crate) target: Target,
    /// Whether to empty the machine's caches before each measured phase.
    pub(crate) drops_caches: bool,
    /// Operations that the store's dialect refuses, each with the reason.
    pub(crate) refused: Vec<(OpClass, String)>,
    /// The target's settings and where each came from.
    pub(crate) origins: Vec<SettingOrigin>,
    /// Whether requests carry credentials.
    signs_in: bool,
    /// The flags that `cleanup` needs to reach the target.
    cleanup_flags: Vec<String>,
    endpoints: Vec<String>,
    server: Option<EmbeddedServer>,
}

impl Connection {
    /// Starts the embedded server if the target is one, and sets up the driver. Sends nothing to a service yet.
    ///
    /// # Errors
    /// When flags contradict the target or each other, or the embedded server does not start.
    pub(crate) fn open(
        target: Target,
        args: &TargetArgs,
        load: &LoadArgs,
    ) -> Result<Self, Failure> {
        Self::with_endpoints(target, args, load, None)
    }

    /// As [`Connection::open`], with only the first `wanted` of the service's endpoints, or all for `None`.
    ///
    /// # Errors
    /// Also when the target has fewer endpoints.
    pub(crate) fn with_endpoints(
        target: Target,
        args: &TargetArgs,
        load: &LoadArgs,
        wanted: Option<usize>,
    ) -> Result<Self, Failure> {
        if let (Some(_), false) = (wanted, matches!(target, Target::Service { .. })) {
            return Err(Failure::usage(
                "endpoints: this target has no endpoints; name a service with --target s3://BUCKET and --endpoint-url",
            ));
        }
        let server = match &target {
            Target::Service { .. } | Target::Files(_) => None,
            Target::Null => {
                drivers::refuse_all(&args.settings, "null:")?;
                drivers::refuse_client(&args.settings, "null:")?;
                None
            }
            Target::Memory => Some(start_embedded("memory", args, load)?),
            Target::Directory(path) => Some(start_embedded(
                &format!("posix:{}", path.display()),
                args,
                load,
            )?),
        };
        let settings = &args.settings;
        let Service { driver, endpoints } = match &server {
            Some(server) => drivers::embedded(server, settings)?,
            None => drivers::ask(&target, settings, wanted, |driver, request| {
                (driver.open)(request)
            })?
            .unwrap_or_else(|| Service {
                driver: drivers::null(),
                endpoints: Vec::new(),
            }),
        };
        let origins = origins(&target, settings);
        let drops_caches = settings.has(&flags::DROP_CACHES);
        if drops_caches {
            caches::check().or_usage()?;
        }
        Ok(Self {
            cleanup_flags: leftover::flags(&target, args),
            driver,
            target,
            drops_caches,
            refused: settings.dialect.refused.clone(),
            origins,
            signs_in: !settings.has(&flags::NO_SIGN_REQUEST),
            endpoints,
            server,
        })
    }

    /// Lets the client reach the service at `urls` instead of its endpoints, as it does if another program stands
    /// between them.
    ///
    /// # Errors
    /// As [`Connection::open`].
    pub(crate) fn lead_through(
        &mut self,
        urls: impl IntoIterator<Item = String>,
        args: &TargetArgs,
    ) -> Result<(), Failure> {
        let mut settings = args.settings.clone();
        settings.set(&flags::ENDPOINT_URL, urls);
        let service = match &self.server {
            Some(server) => Some(drivers::embedded(server, &settings)?),
            None => drivers::ask(&self.target, &settings, None, |driver, request| {
                (driver.open)(request)
            })?,
        };
        if let Some(service) = service {
            self.driver = service.driver;
        }
        Ok(())
    }

    /// The embedded server behind the target, if there is one.
    pub(crate) const fn embedded(&self) -> Option<&EmbeddedServer> {
        self.server.as_ref()
    }

    /// URLs of the endpoints, the embedded server's included; empty for targets without connections.
    pub(crate) fn endpoints(&self) -> &[String] {
        &self.endpoints
    }

    /// Whether the target runs on this machine and needs cores of its own.
    pub(crate) fn is_local(&self) -> bool {
        self.target.is_embedded() || self.endpoints.iter().any(|url| is_local(url))
    }

    /// What the user should know about the way to the target.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let proxy = proxy_warning(&self.endpoints, |name| std::env::var(name).ok());
        self.clear_warning().into_iter().chain(proxy).collect()
    }

    /// A warning if requests carry a secret over a network without TLS. Anyone who reads such a secret can send
    /// requests with it. Signatures (S3, Azure) carry no secret.
    fn clear_warning(&self) -> Option<String> {
        let what = match &self.target {
            Target::Service { api, .. } => api.descriptor().secret?,
            _ => return None,
        };
        let clear = |url: &&String| url.starts_with("http://") && !is_local(url);
        let url = self
            .endpoints
            .iter()
            .find(clear)
            .filter(|_| self.signs_in)?;
        Some(format!(
            "the {what} of the target cross the network to {url} without TLS, where anyone who can listen \
             obtains them; use an https:// endpoint"
        ))
    }

    /// What to do about objects that run `run_id` should delete but does not.
    pub(crate) fn leftovers(&self, run_id: &str) -> Leftovers {
        leftover::of(&self.target, &self.cleanup_flags, run_id)
    }

    /// The target in words, with its first endpoint.
    pub(crate) fn describe(&self) -> String {
        match &self.target {
            Target::Memory => "the embedded server (memory)".to_owned(),
            Target::Directory(path) => format!("the embedded server ({})", path.display()),
            Target::Files(path) => format!("file://{}", path.display()),
            Target::Null => "the null target".to_owned(),
            Target::Service {
                api,
                bucket,
                prefix,
                ..
            } => {
                let at = self
                    .endpoints
                    .first()
                    .map_or_else(String::new, |url| format!(" at {url}"));
                let more = if self.endpoints.len() > 1 {
                    " and others"
                } else {
                    ""
                };
                format!("{}://{bucket}/{prefix}{at}{more}", api.scheme())
            }
        }
    }
}

/// The settings of a service or file system and where they came from, for the result.
fn origins(target: &Target, settings: &Settings) -> Vec<SettingOrigin> {
    // The target is open by now, so there is nothing left to refuse.
    let known = drivers::origins(target, settings).unwrap_or_default();
    let known = known.into_iter();
    let shown = known.map(|origin| SettingOrigin {
        name: origin.name.to_owned(),
        // Results are passed on; who asked is nobody's business.
        value: match origin.name {
            "credentials" => MASK.to_owned(),
            _ => origin.value,
        },
        source: origin.source.to_string(),
    });
    shown.collect()
}

/// The target named by the flags, else by the workload, else the embedded server over memory.
pub(crate) fn target_of(args: &TargetArgs, spec: Option<&TargetSpec>) -> Result<Target, Failure> {
    let text = args.target.as_deref().or_else(|| spec?.url.as_deref());
    let [engine, _] = drivers::registry().engine;
    if let Some(name) = spec.and_then(|spec| spec.engine.as_deref())
        && !args.settings.has(engine)
        && name != "native"
    {
        return Err(Failure::usage(format!(
            "target.engine: the workload asks for the engine {name:?}; confirm with --engine {name}"
        )));
    }
    match text {
        Some(text) => Target::parse(text).map_err(|e| Failure::usage(format!("--target: {e}"))),
        None => {
            drivers::refuse_all(&args.settings, "mem: (the default)")?;
            Ok(Target::Memory)
        }
    }
}

/// The target flags, with the workload's endpoint if neither `--target` nor `--endpoint-url` is given.
///
/// # Errors
/// When the workload names an endpoint but no bucket.
pub(crate) fn flags_of(
    args: &TargetArgs,
    spec: Option<&TargetSpec>,
) -> Result<TargetArgs, Failure> {
    let mut all = args.clone();
    let Some(url) = spec.and_then(|spec| spec.endpoint_url.as_deref()) else {
        return Ok(all);
    };
    if spec.is_some_and(|spec| spec.url.is_none()) {
        return Err(Failure::usage(format!(
            "target.endpoint-url {url:?}: the workload names the service but no bucket; add target.url, such \
             as \"s3://BUCKET/PREFIX\""
        )));
    }
    if args.target.is_none() && !args.settings.has(&flags::ENDPOINT_URL) {
        all.settings.set(&flags::ENDPOINT_URL, url.split(','));
    }
    Ok(all)
}

fn start_embedded(
    store: &str,
    args: &TargetArgs,
    load: &LoadArgs,
) -> Result<EmbeddedServer, Failure> {
    drivers::refuse_all(&args.settings, "an embedded server")?;
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let mut server = vec!["--store".to_owned(), store.to_owned()];
    // The client uses the first half of the cores (see RunOptions::local_target).
    let threads = (cores / 2).max(1);
    server.extend(["--threads".to_owned(), threads.to_string()]);
    if cores > 1 && load.cores.is_none() && load.threads.is_none() {
        server.extend([
            "--cores".to_owned(),
            format!("{}-{}", cores - threads, cores - 1),
        ]);
    }
    EmbeddedServer::start(&server).map_err(Failure::target)
}

/// A warning if the environment names a proxy for one of these URLs: requests go to the service itself, because a proxy
/// would be measured too. `variable` reads the environment.
fn proxy_warning(urls: &[String], variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    let set = |name: &str| {
        let names = [name.to_owned(), name.to_lowercase()];
        names
            .into_iter()
            .find(|name| variable(name).is_some_and(|value| !value.is_empty()))
    };
    let exempt = variable("NO_PROXY")
        .or_else(|| variable("no_proxy"))
        .unwrap_or_default();
    let is_exempt = |url: &str| {
        let host = host_of(url);
        let mut parts = exempt
            .split(',')
            .map(|part| part.trim().trim_start_matches('.'));
        parts.any(|part| part == "*" || !part.is_empty() && host.ends_with(part))
    };
    let mut urls = urls.iter().filter(|url| !is_local(url) && !is_exempt(url));
    urls.find_map(|url| {
        let name = match url.split_once("://")?.0 {
            "https" => set("HTTPS_PROXY"),
            "http" => set("HTTP_PROXY"),
            _ => return None,
        };
        let name = name.or_else(|| set("ALL_PROXY"))?;
        Some(format!(
            "{name} is set, but requests go straight to {url}: a proxy would be measured too"
        ))
    })
}

/// The host in a URL, without its port.
fn host_of(url: &str) -> &str {
    let host = url.split("://").nth(1).unwrap_or(url);
    let host = host.split('/').next().unwrap_or(host);
    let name = match host.strip_prefix('[') {
        Some(v6) => v6.split(']').next(),
        None => host.split(':').next(),
    };
    name.unwrap_or_default()
}

/// Whether a URL names this machine, so that the target needs its own cores.
fn is_local(url: &str) -> bool {
    match host_of(url) {
        "localhost" => true,
        name => name.parse().is_ok_and(|ip: IpAddr| ip.is_loopback()),
    }
}

#[cfg(test)]
mod tests {
    use super::{is_local, proxy_warning};
    #[test]
    fn a_proxy_that_is_not_used_is_named() {
        let warning = |url: &str, variables: &[(&str, &str)]| {
            let variable = |name: &str| {
                let mut variables = variables.iter();
                variables
                    .find(|(known, _)| *known == name)
                    .map(|(_, value)| (*value).to_owned())
            };
            proxy_warning(&[url.to_owned()], variable)
        };
        let proxy = ("HTTP_PROXY", "http://proxy:3128");
        let said = warning("http://store.example:9000", &[proxy]).unwrap();
        assert!(
            said.starts_with("HTTP_PROXY is set") && said.contains("store.example"),
            "{said}"
        );
        assert!(
            warning("http://s", &[("all_proxy", "x")])
                .unwrap()
                .starts_with("all_proxy")
        );
        assert_eq!(warning("https://store.example", &[proxy]), None);
        assert_eq!(warning("http://127.0.0.1:9000", &[proxy]), None);
        assert_eq!(warning("http://s", &[("HTTP_PROXY", "")]), None);
        for exempt in ["*", "other, .example", "store.example"] {
            assert_eq!(
                warning("http://store.example", &[proxy, ("NO_PROXY", exempt)]),
                None
            );
        }
    }

    #[test]
    fn loopback_addresses_are_local() {
        for url in [
            "http://127.0.0.1:9000",
            "https://localhost",
            "http://[::1]:8080/v1",
            "127.3.2.1:9",
        ] {
            assert!(is_local(url), "{url}");
        }
        for url in [
            "http://127.example.com",
            "http://localhost.example.com:80",
            "http://10.0.0.1",
            "http://[fd00::1]:1",
        ] {
            assert!(!is_local(url), "{url}");
        }
    }
}
