//! `bucketload init`: saves a store under a name, from flags or from answers on the terminal, and examines it.

mod questions;

use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::path::Path;

use bucketload_results::output::break_line;
use bucketload_target::flags;

use super::docs::print;
use super::doctor::{self, Report};
use super::report::terminal_width;
use crate::cli::init::InitArgs;
use crate::cli::target::TargetArgs;
use crate::dialect;
use crate::drivers;
use crate::exit::{Exit, Failure, OrFail};
use crate::files;
use crate::named::{self, Targets};
use crate::target::Target;
use questions::Questions;

/// Saves a target and examines it, or lists the saved ones.
pub(crate) fn execute(args: &InitArgs) -> Result<Exit, Failure> {
    let file = named::file().or_usage()?;
    let mut targets = named::read(&file).or_usage()?;
    if args.list {
        return print(listed(&targets).as_bytes());
    }
    let taken = |name: &str| {
        let taken = targets.contains_key(name) && !args.replace;
        taken.then(|| {
            format!(
                "@{name} is saved already in {}; choose another name, or add --replace",
                brief(&file)
            )
        })
    };
    let refused = |problem: String| Failure::usage(format!("init: {problem}"));
    if let Some(problem) = args.name.as_deref().and_then(taken) {
        return Err(refused(problem));
    }
    let mut target = args.target.clone();
    let name = match (&args.name, &target.target) {
        (Some(name), Some(_)) => name.clone(),
        (None, Some(_)) => {
            return Err(Failure::usage(
                "init: name the target, such as: bucketload init desk --target s3://BUCKET/PREFIX --endpoint-url URL",
            ));
        }
        (name, None) if std::io::stdin().is_terminal() => Questions {
            answers: &mut std::io::stdin().lock(),
            shown: &mut std::io::stderr(),
            refuses_name: &taken,
            wrong: &wrong,
        }
        .ask_all(name.as_deref(), &mut target)?,
        (_, None) => {
            return Err(Failure::usage(
                "init: without a terminal to ask on, name the target by flags, such as: \
                 bucketload init desk --target s3://BUCKET/PREFIX --endpoint-url URL",
            ));
        }
    };
    if let Some(problem) = wrong(&target) {
        return Err(Failure::usage(format!("{problem}; nothing was saved")));
    }
    targets.insert(name.clone(), named::settings(&target));
    named::write(&file, &targets).or_usage()?;
    print(format!("saved @{name} in {}\n", brief(&file)).as_bytes())?;
    let told = match (args.no_doctor, opens(&target)) {
        (_, Err(failure)) => Told::Line(format!("not ready yet: {}", failure.message)),
        (true, Ok(())) => Told::Line(String::new()),
        (false, Ok(())) => {
            eprintln!("bucketload: examining the store ...");
            let url = target.target.clone().unwrap_or_default();
            match doctor::examined(&url, &target, false, false) {
                Ok(report) => Told::Report(report),
                Err(failure) => Told::Line(format!("not examined: {}", failure.message)),
            }
        }
    };
    let mut out = told.text();
    if let Told::Report(report) = &told
        && report.has_dialect()
        && target.settings.dialect.is_empty()
    {
        let path = file.with_file_name(format!("{name}.dialect.toml"));
        files::write(&path, report.dialect())?;
        let path = path.to_string_lossy().into_owned();
        target.settings.dialect = dialect::read(&path).or_usage()?;
        targets.insert(name.clone(), named::settings(&target));
        named::write(&file, &targets).or_usage()?;
        // Writing to a text cannot fail.
        let _ = writeln!(
            out,
            "saved its dialect in {}; @{name} uses it",
            brief(Path::new(&path))
        );
    }
    out += &told.next(&name);
    print(out.as_bytes())
}

/// What is known of the saved target.
enum Told {
    /// Why it was not examined; empty if nobody wants to know.
    Line(String),
    Report(Report),
}

impl Told {
    fn text(&self) -> String {
        match self {
            Self::Line(line) if line.is_empty() => String::new(),
            Self::Line(line) => {
                let mut out = String::new();
                break_line(&mut out, line, terminal_width().unwrap_or(usize::MAX), 2);
                out
            }
            Self::Report(report) => report.brief(terminal_width()),
        }
    }

    /// The commands to type next.
    fn next(&self, name: &str) -> String {
        let doctor = format!("  bucketload doctor @{name}");
        let run = format!("  bucketload run online-service --objects 2000 --target @{name}");
        let lines = match self {
            Self::Report(report) if report.lacks_bucket() => {
                vec![doctor + " --create-bucket", run + " --create-bucket"]
            }
            Self::Report(report) if report.is_unusable() => vec![doctor],
            Self::Report(_) => vec![run],
            Self::Line(_) => vec![doctor, run],
        };
        format!("next:\n{}\n", lines.join("\n"))
    }
}

/// Opens the target as a run would, without sending anything.
fn opens(args: &TargetArgs) -> Result<(), Failure> {
    let url = args.target.as_deref().unwrap_or("s3://bucket");
    let target = Target::parse(url).map_err(|e| Failure::usage(format!("--target: {e}")))?;
    let opened = drivers::ask(&target, &args.settings, None, |driver, request| {
        (driver.open)(request)
    });
    opened.map(drop)
}

/// What is wrong with the settings, apart from keys that are not there yet: those may come later.
fn wrong(args: &TargetArgs) -> Option<String> {
    let url = args.target.as_deref().unwrap_or("s3://bucket");
    let mut args = args.clone();
    let signs = match Target::parse(url) {
        Ok(Target::Service { api, .. }) => api.descriptor().reads(&flags::NO_SIGN_REQUEST),
        _ => false,
    };
    if signs && !args.settings.has(&flags::PROFILE) {
        args.settings.switch_on(&flags::NO_SIGN_REQUEST);
    }
    let failure = opens(&args).err()?;
    (failure.exit == Exit::Usage).then_some(failure.message)
}

/// A path, with `~` for the home directory.
fn brief(path: &Path) -> String {
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty());
    match home.and_then(|home| path.strip_prefix(home).ok()) {
        Some(below) => format!("~/{}", below.display()),
        None => path.display().to_string(),
    }
}

/// The saved targets, a line each.
fn listed(targets: &Targets) -> String {
    if targets.is_empty() {
        return "no target is saved; bucketload init saves one\n".to_owned();
    }
    let setting = |(name, value): (&String, &toml::Value)| match (name.as_str(), value) {
        ("target", value) => value.as_str().unwrap_or_default().to_owned(),
        (name, toml::Value::String(text)) => format!("--{name} {text}"),
        (name, _) => format!("--{name}"),
    };
    let line = |(name, table): (&String, &toml::Table)| {
        let mut settings: Vec<String> = table.iter().map(setting).collect();
        // The URL first.
        settings.sort_by_key(|text| text.starts_with("--"));
        format!("@{name}  {}\n", settings.join(" "))
    };
    targets.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use bucketload_target::flags;

    use super::{listed, wrong};
    use crate::cli::target::TargetArgs;
    use crate::named;

    fn target() -> TargetArgs {
        let mut target = TargetArgs {
            target: Some("s3://bench".to_owned()),
            ..TargetArgs::default()
        };
        target
            .settings
            .set(&flags::ENDPOINT_URL, ["https://h:9000"]);
        target
    }

    #[test]
    fn saved_targets_are_listed_with_their_flags() {
        let mut target = target();
        target.settings.set(&flags::PROFILE, ["desk-keys"]);
        let table = named::settings(&target);
        assert_eq!(
            listed(&[("desk".to_owned(), table)].into()),
            "@desk  s3://bench --endpoint-url https://h:9000 --profile desk-keys\n"
        );
    }

    #[test]
    fn mistakes_are_told_from_keys_that_come_later() {
        assert_eq!(wrong(&target()), None);
        let mut without_scheme = target();
        without_scheme
            .settings
            .set(&flags::ENDPOINT_URL, ["h:9000"]);
        assert!(
            wrong(&without_scheme)
                .unwrap()
                .contains("write http://h:9000")
        );
        let mut bucketless = target();
        bucketless.target = Some("s3://".to_owned());
        assert!(wrong(&bucketless).unwrap().starts_with("--target: "));
        let mut profile = target();
        profile.settings.set(&flags::PROFILE, ["no-such-profile"]);
        assert!(wrong(&profile).unwrap().contains("no-such-profile"));
    }
}
