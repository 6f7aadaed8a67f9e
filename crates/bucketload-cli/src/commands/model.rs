//! `bucketload model`: fits a workload to log files and reports its goodness of fit.

use bucketload_trace::{Model, model};
use bucketload_workload::spec::WorkloadFile;

use crate::cli::GlobalArgs;
use crate::cli::model::{ModelArgs, ModelOutput};
use crate::commands::docs::print;
use crate::commands::trace::{failure, name_of, prepared};
use crate::exit::{Exit, Failure, OrFail};

/// Fits a workload, prints the report, and writes or prints the workload.
pub(crate) fn execute(args: &ModelArgs, global: &GlobalArgs) -> Result<Exit, Failure> {
    let prepared = prepared(&args.trace, args.seed, false, global.quiet)?;
    let name = match (&args.name, &args.write) {
        (Some(name), _) => name.clone(),
        (None, Some(file)) => name_of(file),
        (None, None) => name_of(&args.trace.files[0]),
    };
    let temp = args.trace.temp.clone().unwrap_or_else(std::env::temp_dir);
    let model = model(&prepared.trace, &name, &temp, args.seed).map_err(failure)?;
    // Never writes a workload that cannot be loaded.
    WorkloadFile::parse(&name, &model.workload).or_aborted()?;
    if let Some(path) = &args.write {
        std::fs::write(path, &model.workload)
            .map_err(|e| Failure::usage(format!("--write {}: {e}", path.display())))?;
    }
    print(text(&model, args).as_bytes())?;
    if let (Some(path), false) = (&args.write, global.quiet) {
        eprintln!("bucketload: workload: {}", path.display());
    }
    Ok(Exit::Ok)
}

fn text(model: &Model, args: &ModelArgs) -> String {
    match args.output {
        ModelOutput::Json => serde_json::to_string_pretty(model).unwrap_or_default() + "\n",
        ModelOutput::Text if args.write.is_some() => model.to_string(),
        ModelOutput::Text => format!("{model}\n{}", model.workload),
    }
}
