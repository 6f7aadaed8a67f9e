//! `bucketload init`: saves a store under a name, from flags or from answers on the terminal.

use std::io::{BufRead, IsTerminal as _, Write};

use bucketload_target::{Flag, flags};

use super::docs::print;
use crate::cli::init::{InitArgs, name};
use crate::cli::target::TargetArgs;
use crate::drivers;
use crate::exit::{Exit, Failure, OrFail};
use crate::named::{self, Targets};
use crate::target::Target;

/// Saves a target, or lists the saved ones.
pub(crate) fn execute(args: &InitArgs) -> Result<Exit, Failure> {
    let file = named::file().or_usage()?;
    let mut targets = named::read(&file).or_usage()?;
    if args.list {
        return print(listed(&targets).as_bytes());
    }
    let mut target = args.target.clone();
    let name = match (&args.name, &target.target) {
        (Some(name), Some(_)) => name.clone(),
        (None, Some(_)) => {
            return Err(Failure::usage(
                "init: name the target, such as: bucketload init desk --target s3://BUCKET/PREFIX --endpoint-url URL",
            ));
        }
        (name, None) if std::io::stdin().is_terminal() => {
            let (mut answers, mut questions) = (std::io::stdin().lock(), std::io::stderr());
            ask_all(name.as_deref(), &mut target, &mut answers, &mut questions)?
        }
        (_, None) => {
            return Err(Failure::usage(
                "init: without a terminal to ask on, name the target by flags, such as: \
                 bucketload init desk --target s3://BUCKET/PREFIX --endpoint-url URL",
            ));
        }
    };
    let url = target.target.as_deref().unwrap_or_default();
    let parsed = Target::parse(url).map_err(|e| Failure::usage(format!("--target: {e}")))?;
    if targets.contains_key(&name) && !args.replace {
        return Err(Failure::usage(format!(
            "init: @{name} is saved already in {}; choose another name, or add --replace",
            file.display()
        )));
    }
    targets.insert(name.clone(), named::settings(&target));
    named::write(&file, &targets).or_usage()?;
    let opened = drivers::ask(&parsed, &target.settings, None, |driver, request| {
        (driver.open)(request)
    });
    let mut out = format!("saved @{name} in {}\n", file.display());
    if let Err(failure) = opened {
        out += &format!("not ready yet: {}\n", failure.message);
    }
    out += &format!("next:\n  bucketload doctor @{name}\n  bucketload run get --target @{name}\n");
    print(out.as_bytes())
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

/// Asks for name and target, and keeps the flags that were given.
fn ask_all(
    given: Option<&str>,
    target: &mut TargetArgs,
    answers: &mut dyn BufRead,
    questions: &mut dyn Write,
) -> Result<String, Failure> {
    let mut ask = |question: &str, default: &str| -> Result<String, Failure> {
        let shown = match default {
            "" => String::new(),
            default => format!(" [{default}]"),
        };
        write!(questions, "{question}{shown}: ").or_aborted()?;
        questions.flush().or_aborted()?;
        let mut line = String::new();
        if answers.read_line(&mut line).or_aborted()? == 0 {
            return Err(Failure::usage("init: no answer; nothing was saved"));
        }
        Ok(match line.trim() {
            "" => default.to_owned(),
            text => text.to_owned(),
        })
    };
    let named = match given {
        Some(given) => given.to_owned(),
        None => name(&ask("Name of the target", "desk")?).or_usage()?,
    };
    let mut settings = target.settings.clone();
    let mut flag = |flag: &'static Flag, answer: String| {
        if !answer.is_empty() {
            settings.set(flag, answer.split(',').map(str::trim));
        }
    };
    if !target.settings.has(&flags::ENDPOINT_URL) {
        let url = ask(
            "URL of the store, such as http://host:9000 (nothing: Amazon S3)",
            "",
        )?;
        let encrypted = url.starts_with("https://");
        flag(&flags::ENDPOINT_URL, url);
        if encrypted && !target.settings.has(&flags::CA_BUNDLE) {
            let question = "File with the certificate of its authority, PEM (nothing: the system's authorities)";
            flag(&flags::CA_BUNDLE, ask(question, "")?);
        }
    }
    let bucket = ask("Bucket", "")?;
    let prefix = ask("Prefix of the keys (nothing: none)", "")?;
    if !target.settings.has(&flags::PROFILE) {
        let question = "Profile in ~/.aws with the keys (nothing: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY)";
        flag(&flags::PROFILE, ask(question, "")?);
    }
    target.target = Some(
        format!("s3://{bucket}/{prefix}")
            .trim_end_matches('/')
            .to_owned(),
    );
    target.settings = settings;
    Ok(named)
}

#[cfg(test)]
mod tests {
    use bucketload_target::flags;

    use super::{ask_all, listed};
    use crate::cli::target::TargetArgs;
    use crate::named;

    #[test]
    fn answers_become_a_target() {
        let mut target = TargetArgs::default();
        let mut answers = "\nhttps://h:9000\nca.pem\nbench\n\ndesk-keys\n".as_bytes();
        let mut questions = Vec::new();
        let name = ask_all(None, &mut target, &mut answers, &mut questions).unwrap();
        assert_eq!(
            (name.as_str(), target.target.as_deref()),
            ("desk", Some("s3://bench"))
        );
        assert_eq!(target.settings.get(&flags::CA_BUNDLE), Some("ca.pem"));
        assert_eq!(target.settings.get(&flags::PROFILE), Some("desk-keys"));
        let questions = String::from_utf8(questions).unwrap();
        assert!(questions.contains("AWS_ACCESS_KEY_ID"), "{questions}");
        let table = named::settings(&target);
        assert_eq!(
            listed(&[("desk".to_owned(), table)].into()),
            "@desk  s3://bench --ca-bundle ca.pem --endpoint-url https://h:9000 --profile desk-keys\n"
        );
    }

    #[test]
    fn the_end_of_the_answers_saves_nothing() {
        let mut target = TargetArgs::default();
        let failure = ask_all(
            Some("desk"),
            &mut target,
            &mut "".as_bytes(),
            &mut Vec::new(),
        );
        assert!(failure.unwrap_err().message.contains("nothing was saved"));
    }
}
