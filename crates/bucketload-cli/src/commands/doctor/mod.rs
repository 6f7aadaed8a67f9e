//! `bucketload doctor`: examines a target and says what differs.
//!
//! The driver examines the way to its service, and what only it can ask for (`Descriptor::doctor`). Drivers without
//! checks of their own are examined through their sessions (`operations`). `client` says what this machine could drive,
//! `report` prints the findings.

mod client;
mod operations;
mod report;

use bucketload_run::{Leftovers, MARKER, Marker};
use bucketload_target::doctor::{Examination, Examined, Finding, State, room};
use bucketload_target::{Descriptor, Flag, OpenRequest};
use tokio::task::LocalSet;

use crate::cli::doctor::DoctorArgs;
use crate::cli::run::LoadArgs;
use crate::cli::target::TargetArgs;
use crate::commands::docs::print;
use crate::commands::report::terminal_width;
use crate::connection::{Connection, target_of};
use crate::drivers;
use crate::exit::{Exit, Failure, OrFail};
use crate::files;
use crate::target::{Api, Target};
use crate::{leftover, named, setup, signals};
pub(crate) use report::Report;

/// Examines, prints, and writes the dialect.
pub(crate) fn execute(args: &DoctorArgs) -> Result<Exit, Failure> {
    let mut flags = args.target.clone();
    flags.target = args.url.clone().or(flags.target);
    named::expand(&mut flags).or_usage()?;
    let Some(url) = flags.target.clone() else {
        return Err(Failure::usage(
            "doctor: name what to examine, such as s3://BUCKET/PREFIX, file:///DIRECTORY or mem:",
        ));
    };
    let report = examined(&url, &flags, args.create_bucket, !args.no_calibration)?;
    let text = match args.json {
        true => report.json(),
        false => report.text(args.write_dialect.is_none(), terminal_width()),
    };
    print(text.as_bytes())?;
    match (&args.write_dialect, report.nothing_to_write()) {
        (Some(path), Some(why)) => {
            eprintln!("bucketload: {} is not written: {why}", path.display());
        }
        (Some(path), None) => files::write(path, report.dialect())?,
        (None, _) => {}
    }
    Ok(report.exit())
}

/// Examines the target that `flags` name, and this client too if it `calibrates`; `url` names the target in the report.
///
/// # Errors
/// Mistakes of the user. What is wrong with the target is in the report.
pub(crate) fn examined(
    url: &str,
    flags: &TargetArgs,
    create_bucket: bool,
    calibrates: bool,
) -> Result<Report, Failure> {
    let target = target_of(flags, None)?;
    if target == Target::Null {
        return Err(Failure::usage(
            "doctor: null: is no store; name a service, a directory or mem:",
        ));
    }
    let [engine, _] = drivers::registry().engine;
    if !matches!(flags.settings.get(engine), None | Some("native")) {
        return Err(Failure::usage(format!(
            "{}: doctor examines a store with the native client; remove the flag",
            engine.name
        )));
    }
    let started = time::OffsetDateTime::now_utc();
    let id = format!("doctor-{}", setup::new_run_id(started)?);
    let prefix = target.run_prefix(&id);
    let marker = format!("{prefix}{MARKER}");
    let marker_body = |created_bucket: bool| {
        let marker = Marker {
            locks: false,
            run_id: id.clone(),
            workload: "doctor".to_owned(),
            created_bucket,
            buckets: Vec::new(),
        };
        serde_json::to_vec(&marker).unwrap_or_default()
    };
    let mut exam = Examination {
        bucket: target.bucket(),
        prefix: &prefix,
        marker: &marker,
        marker_body: &marker_body,
        create_bucket: create_bucket || !matches!(target, Target::Service { .. }),
        repairs: &[],
        findings: Vec::new(),
        left: Vec::new(),
    };
    let cleanup = examine(&target, flags, &mut exam, (&id, calibrates))?;
    let nothing = nothing_to_write(&target, &exam.findings);
    Ok(Report::new(url, exam, cleanup, nothing))
}

/// Why a dialect of `target` would say nothing: no setting of its driver may stand in one, and no operation is refused.
fn nothing_to_write(target: &Target, findings: &[Finding]) -> Option<String> {
    if target.is_embedded() {
        return Some("an embedded server takes no dialect".to_owned());
    }
    let driver = match target {
        Target::Service { api, .. } => api.descriptor(),
        _ => Api::files().descriptor(),
    };
    let holds = |f: &Finding| f.setting.is_some() || !f.refuses.is_empty();
    let empty = driver.dialect.is_empty()
        && !findings
            .iter()
            .any(|f| f.state == State::Differs && holds(f));
    empty.then(|| {
        format!(
            "{}:// has no settings that a dialect may hold, and no operation is refused here",
            driver.scheme()
        )
    })
}

/// Examines `target` as `id`, and this client too if it `calibrates`; returns the command that removes what is left, if any.
fn examine(
    target: &Target,
    flags: &TargetArgs,
    exam: &mut Examination<'_>,
    (id, calibrates): (&str, bool),
) -> Result<Option<String>, Failure> {
    // An embedded server has to be started first; a service is examined even if its driver cannot be opened.
    let embedded = match target.is_embedded() {
        true => Some(Connection::open(
            target.clone(),
            flags,
            &LoadArgs::default(),
        )?),
        false => None,
    };
    let server = embedded.as_ref().and_then(Connection::embedded);
    let doctor = |driver: &Descriptor, request: &OpenRequest<'_>, exam: &mut Examination<'_>| {
        (driver.doctor)(request, exam)
    };
    let examined = match server {
        Some(server) => drivers::ask_embedded(server, &flags.settings, |driver, request| {
            doctor(driver, request, exam)
        })
        .map(Some),
        None => drivers::ask(target, &flags.settings, None, |driver, request| {
            doctor(driver, request, exam)
        }),
    };
    let examined = match unusable(examined, exam, "open")? {
        Some(examined) => examined.unwrap_or(Examined::All),
        None => return Ok(None),
    };
    if !exam.has_failed() {
        let opened = match embedded {
            Some(connection) => Ok(connection),
            None => Connection::open(target.clone(), flags, &LoadArgs::default()),
        };
        let Some(connection) = unusable(opened, exam, "open")? else {
            return Ok(None);
        };
        if examined == Examined::Way {
            let reopen = |flag: &'static Flag, value: &str| {
                let mut flags = flags.clone();
                // What the user has chosen stays.
                (!flags.settings.has(flag)).then(|| flags.settings.set(flag, [value]))?;
                let opened = Connection::open(target.clone(), &flags, &LoadArgs::default());
                Some(opened.ok()?.driver)
            };
            let runtime = signals::runtime().or_aborted()?;
            let examining = operations::examine(&connection.driver, exam, &reopen);
            LocalSet::new().block_on(&runtime, examining);
            runtime.shutdown_background();
        } else {
            exam.findings.push(room(None));
        }
        if calibrates && !exam.has_failed() {
            exam.findings.push(client::measure(&connection)?);
        }
    }
    let removing = leftover::flags(target, flags);
    Ok(match leftover::of(target, &removing, id) {
        Leftovers::RemovedBy(command) => Some(command),
        _ => None,
    })
}

/// A target that refuses is a finding, a mistake of the user is none.
fn unusable<T>(
    result: Result<T, Failure>,
    exam: &mut Examination<'_>,
    id: &'static str,
) -> Result<Option<T>, Failure> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(failure) if failure.exit == Exit::Target => {
            let found = Finding::new(id, "the client", State::Failed, failure.message);
            exam.findings
                .push(found.remedy("see the page of the driver in the manual"));
            Ok(None)
        }
        Err(failure) => Err(failure),
    }
}
