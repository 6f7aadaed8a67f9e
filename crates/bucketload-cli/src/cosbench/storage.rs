//! The target of a COSBench workload: its storage and auth adapters turned into a target with settings, or the target
//! that the flags name instead.

use std::borrow::Cow;

use bucketload_cosbench::{Availability, Config, ConfiguredAdapter, Work, WorkKind, Workload};

use super::refuse;
use bucketload_target::{Given, flags as names};

use crate::cli::target::TargetArgs;
use crate::target::{Api, Target};

/// The target of a workload.
pub(super) struct TargetChoice {
    pub(super) target: Target,
    pub(super) args: TargetArgs,
    /// Timeout of requests, if the storage names one.
    pub(super) timeout_ns: Option<u64>,
}

/// Storage types that are accessed through S3.
const S3_LIKE: [&str; 7] = ["s3", "sio", "siov1", "siov2", "gdas", "oss", "ecs"];
const OVERRIDE: &str = "or replace the storage of all works with --target URL (mem: for the embedded server) or \
                        --endpoint-url URL";

/// Chooses the target.
///
/// # Errors
/// When the storage is not supported, or works have different storages. Errors name the place in the file.
pub(super) fn choose(
    workload: &Workload,
    flags: &TargetArgs,
    notes: &mut Vec<String>,
) -> Result<TargetChoice, String> {
    let bucket = first_bucket(workload);
    if let Some(text) = &flags.target {
        let target = Target::parse(text).map_err(|e| format!("--target: {e}"))?;
        if let Target::Service { bucket, .. } = &target {
            notes.push(format!(
                "--target: the workload names the containers; `{bucket}` is not used"
            ));
        }
        return Ok(TargetChoice {
            target,
            args: flags.clone(),
            timeout_ns: None,
        });
    }
    let mut works = workload
        .stages
        .iter()
        .filter(|stage| !stage.is_delay())
        .flat_map(|stage| &stage.works)
        .filter(|work| work.kind != WorkKind::Delay);
    let Some(first) = works.next() else {
        return Ok(TargetChoice {
            target: Target::Null,
            args: flags.clone(),
            timeout_ns: None,
        });
    };
    let s3_like = S3_LIKE.contains(&first.storage.adapter.name);
    let swift = first.storage.adapter.name == "swift";
    if flags.settings.has(&names::ENDPOINT_URL) && !s3_like && !swift {
        notes.push(format!(
            "--endpoint-url: an S3 service replaces the storage `{}`; credentials come from the environment",
            first.storage.adapter.name
        ));
        return Ok(TargetChoice {
            target: service(Api::s3(), bucket),
            args: flags.clone(),
            timeout_ns: None,
        });
    }
    if let Some(other) = works.find(|work| !same(first, work)) {
        return Err(refuse(
            &place(other),
            &format!(
                "work `{}` has another storage or auth than work `{}`, but a run has a single target",
                other.name, first.name
            ),
            &format!("split the workload, {OVERRIDE}"),
        ));
    }
    one(first, bucket, flags, notes)
}

/// The place of a work's storage in the file, or of the work itself if it has no storage of its own.
fn place(work: &Work) -> bucketload_cosbench::Location {
    match work.storage.location.line {
        0 => work.location.clone(),
        _ => work.storage.location.clone(),
    }
}

/// Whether two works access the same storage in the same way. Settings of single operations (sizes of parts and
/// ranges) may differ.
fn same(a: &Work, b: &Work) -> bool {
    const PER_OPERATION: [&str; 7] = [
        "part_size",
        "is_range_request",
        "file_length",
        "chunk_length",
        "restore_days",
        "logging",
        "retry",
    ];
    let settings = |config: &Config| {
        let keys = config.keys().filter(|key| !PER_OPERATION.contains(key));
        let mut all: Vec<(String, String)> = keys
            .map(|key| {
                (
                    key.to_owned(),
                    config.get(key).unwrap_or_default().into_owned(),
                )
            })
            .collect();
        all.sort();
        all
    };
    a.storage.adapter.name == b.storage.adapter.name
        && a.auth.adapter.name == b.auth.adapter.name
        && settings(&a.storage.config) == settings(&b.storage.config)
        && settings(&a.auth.config) == settings(&b.auth.config)
}

/// The name of the first container of the workload, for messages.
fn first_bucket(workload: &Workload) -> String {
    let operations = workload
        .stages
        .iter()
        .flat_map(|s| &s.works)
        .flat_map(|w| &w.operations);
    let first = operations
        .map(|o| &o.target)
        .find(|t| t.containers.is_some());
    first.map_or_else(
        || "container".to_owned(),
        |t| format!("{}1{}", t.cprefix, t.csuffix),
    )
}

fn service(api: Api, bucket: String) -> Target {
    Target::Service {
        api,
        server: None,
        bucket,
        prefix: String::new(),
    }
}

fn owned(value: Option<Cow<'_, str>>) -> Option<String> {
    value.map(Cow::into_owned)
}

struct StorageAuth<'a> {
    storage: &'a ConfiguredAdapter,
    auth: &'a ConfiguredAdapter,
}

impl StorageAuth<'_> {
    fn key(&self, key: &str) -> Option<String> {
        let value = self.storage.config.get(key);
        owned(value.filter(|v| !v.is_empty()))
    }

    fn auth(&self, keys: &[&str]) -> Option<String> {
        let found = keys
            .iter()
            .find_map(|key| self.auth.config.get(key).filter(|v| !v.is_empty()));
        let default = || self.auth.adapter.value(&self.auth.config, keys[0]);
        owned(found.or_else(default))
    }

    fn truth(&self, key: &str) -> Result<bool, String> {
        self.storage
            .config
            .truth(key)
            .map(|v| v.unwrap_or(false))
            .map_err(|value| {
                let problem = format!("{key}: `{value}` is neither true nor false");
                refuse(&self.storage.location, &problem, "write true or false")
            })
    }

    /// Refuses a key that asks for something unsupported, unless its value is harmless.
    fn refuse_set(&self, key: &str, harmless: &[&str], why: &str) -> Result<(), String> {
        match self
            .key(key)
            .filter(|value| !harmless.contains(&value.as_str()))
        {
            None => Ok(()),
            Some(value) => Err(refuse(
                &self.storage.location,
                &format!("{key}={value}: {why}"),
                &format!("remove it, {OVERRIDE}"),
            )),
        }
    }
}

fn one(
    work: &Work,
    bucket: String,
    flags: &TargetArgs,
    notes: &mut Vec<String>,
) -> Result<TargetChoice, String> {
    let pair = StorageAuth {
        storage: &work.storage,
        auth: &work.auth,
    };
    let name = pair.storage.adapter.name;
    for (adapter, place) in [
        (pair.storage.adapter, &pair.storage.location),
        (pair.auth.adapter, &pair.auth.location),
    ] {
        if let Availability::Unavailable(why) = adapter.availability {
            let problem = format!("`{}` is not supported: {why}", adapter.name);
            return Err(refuse(place, &problem, OVERRIDE.trim_start_matches("or ")));
        }
    }
    let timeout_ns = match pair.key("timeout").or_else(|| pair.key("read_timeout")) {
        None => None,
        Some(text) => Some(
            text.parse::<u64>()
                .ok()
                .filter(|ms| *ms > 0)
                .ok_or_else(|| {
                    let problem = format!("timeout: `{text}` is not a number of milliseconds");
                    refuse(&pair.storage.location, &problem, "write a number above 0")
                })?
                * 1_000_000,
        ),
    };
    let mut args = flags.clone();
    let target = match name {
        "none" => Target::Null,
        "mock" => {
            notes.push(
                "storage `mock` is replaced by the embedded server; its delays and errors are not imitated"
                    .to_owned(),
            );
            Target::Memory
        }
        "swift" => {
            swift(&pair, &mut args)?;
            service(Api::known("swift"), bucket)
        }
        "gcs" => {
            args.settings.given = Given::new(vec![
                ("GOOGLE_APPLICATION_CREDENTIALS", pair.key("jsonkeyfile")),
                ("GOOGLE_CLOUD_PROJECT", pair.key("projectid")),
                ("GOOGLE_OAUTH_ACCESS_TOKEN", None),
            ]);
            service(Api::known("gs"), bucket)
        }
        _ => {
            s3(&pair, &mut args, notes)?;
            service(Api::s3(), bucket)
        }
    };
    Ok(TargetChoice {
        target,
        args,
        timeout_ns,
    })
}

fn s3(
    pair: &StorageAuth<'_>,
    args: &mut TargetArgs,
    notes: &mut Vec<String>,
) -> Result<(), String> {
    let why = "requests go to the storage directly";
    pair.refuse_set("proxyhost", &[], why)?;
    pair.refuse_set("proxyport", &["0"], why)?;
    pair.refuse_set(
        "storage_class",
        &["STANDARD"],
        "objects are written in the standard class",
    )?;
    pair.refuse_set(
        "namespace",
        &[],
        "the header of EMC's namespaces is not sent",
    )?;
    if pair.truth("is_prefetch")? {
        pair.refuse_set("is_prefetch", &[], "the prefetch header is not sent")?;
    }
    let endpoint = pair.key("endpoint").or_else(|| {
        (pair.storage.adapter.name == "oss").then(|| "oss-cn-hangzhou.aliyuncs.com".to_owned())
    });
    if !args.settings.has(&names::ENDPOINT_URL)
        && let Some(endpoint) = endpoint
    {
        let https = |host: &str| match host.contains("://") {
            true => host.to_owned(),
            false => format!("http://{host}"),
        };
        let urls = endpoint.split(',').map(|host| https(host.trim()));
        args.settings.set(&names::ENDPOINT_URL, urls);
    }
    if !args.settings.has(&names::REGION) {
        let region = pair
            .key("aws_region")
            .unwrap_or_else(|| "us-east-1".to_owned());
        args.settings.set(&names::REGION, [region]);
    }
    if !args.settings.has(&names::ADDRESSING) && pair.truth("path_style_access")? {
        args.settings.set(&names::ADDRESSING, ["path"]);
    }
    if pair.truth("no_verify_ssl")? {
        args.settings.switch_on(&names::NO_VERIFY_SSL);
        notes.push("no_verify_ssl: any TLS certificate is accepted".to_owned());
    }
    args.settings.given = Given::new(vec![
        ("AWS_ACCESS_KEY_ID", pair.key("accesskey")),
        ("AWS_SECRET_ACCESS_KEY", pair.key("secretkey")),
        ("AWS_SESSION_TOKEN", None),
        ("AWS_PROFILE", None),
        ("AWS_ENDPOINT_URL", None),
        ("AWS_ENDPOINT_URL_S3", None),
    ]);
    Ok(())
}

fn swift(pair: &StorageAuth<'_>, args: &mut TargetArgs) -> Result<(), String> {
    pair.refuse_set("policy", &["none"], "X-Storage-Policy is not sent")?;
    let hidden = [
        "OS_CLOUD",
        "ST_AUTH_VERSION",
        "OS_STORAGE_URL",
        "OS_AUTH_TOKEN",
        "ST_AUTH",
        "OS_AUTH_URL",
    ];
    let set: Vec<(&'static str, Option<String>)> = match pair.auth.adapter.name {
        "swauth" => vec![
            ("ST_AUTH", pair.auth(&["auth_url", "url"])),
            ("ST_USER", pair.auth(&["username"])),
            ("ST_KEY", pair.auth(&["password"])),
        ],
        "keystone" => {
            let url = pair.auth(&["auth_url", "url"]).unwrap_or_default();
            if url.trim_end_matches('/').ends_with("/v2.0") {
                let problem =
                    format!("{url} is Keystone v2.0, which OpenStack removed in 2018 (Queens)");
                return Err(refuse(
                    &pair.auth.location,
                    &problem,
                    "name the v3 interface: http://HOST:5000/v3",
                ));
            }
            vec![
                ("OS_AUTH_URL", Some(url)),
                ("OS_USERNAME", pair.auth(&["username"])),
                ("OS_PASSWORD", pair.auth(&["password"])),
                ("OS_PROJECT_NAME", pair.auth(&["tenant_name", "tenname"])),
                ("OS_PROJECT_ID", owned(pair.auth.config.get("tenant_id"))),
                ("OS_REGION_NAME", owned(pair.auth.config.get("region"))),
                ("OS_AUTH_TYPE", None),
                ("OS_APPLICATION_CREDENTIAL_ID", None),
                ("OS_USER_ID", None),
            ]
        }
        _ => {
            let value = |key: &str| pair.storage.adapter.value(&pair.storage.config, key);
            vec![
                ("OS_STORAGE_URL", owned(value("storage_url"))),
                ("OS_AUTH_TOKEN", owned(value("token"))),
            ]
        }
    };
    let named: Vec<&str> = set.iter().map(|(name, _)| *name).collect();
    let rest = hidden
        .into_iter()
        .filter(|name| !named.contains(name))
        .map(|name| (name, None));
    let rest: Vec<_> = rest.collect();
    args.settings.given = Given::new(set.into_iter().chain(rest).collect());
    Ok(())
}
