//! `bucketload config show`: every effective setting and where it comes from.

use bucketload_target::{Source, flags as names};

use super::docs::print;
use crate::cli::target::TargetArgs;
use crate::cli::workload::WorkloadArgs;
use crate::commands::run;
use crate::connection;
use crate::drivers;
use crate::exit::{Exit, Failure};

/// Prints settings as `NAME = VALUE  (ORIGIN)`.
pub(crate) fn show(
    workload: Option<&str>,
    target_args: &TargetArgs,
    workload_args: &WorkloadArgs,
) -> Result<Exit, Failure> {
    let mut rows: Vec<[String; 3]> = Vec::new();
    let mut flags = target_args.clone();
    let target = match workload {
        Some(name) => {
            let (resolved, file, target) = run::resolve_workload(name, target_args, workload_args)?;
            flags = connection::flags_of(target_args, file.spec().target.as_ref())?;
            for setting in resolved.settings {
                rows.push([setting.path, setting.value, setting.location.to_string()]);
            }
            target
        }
        None => connection::target_of(target_args, None)?,
    };
    let origins = drivers::origins(&target, &flags.settings)?;
    let urls = |args: &TargetArgs| args.settings.joined(&names::ENDPOINT_URL);
    let of_workload = urls(&flags) != urls(target_args);
    for origin in origins {
        let source = match origin.source {
            Source::Flag("--endpoint-url") if of_workload => "target.endpoint-url".to_owned(),
            source => source.to_string(),
        };
        rows.push([origin.name.to_owned(), origin.value, source]);
    }
    if rows.is_empty() {
        return print(
            b"nothing is set; name a workload or a target, such as --target s3://BUCKET\n",
        );
    }
    let width = |i: usize| {
        rows.iter()
            .map(|row| row[i].chars().count())
            .max()
            .unwrap_or(0)
    };
    let (names, values) = (width(0), width(1).min(60));
    let line = |[name, value, origin]: &[String; 3]| {
        format!("{name:names$} = {value:values$}  ({origin})\n")
    };
    print(rows.iter().map(line).collect::<String>().as_bytes())
}
