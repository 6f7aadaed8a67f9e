//! The command that deletes what a run left in its target, ready to paste into a shell.
//!
//! The command names the run's own prefix, so that it deletes nothing else. It repeats the run's flags; credentials
//! stay in the environment and in files.

use bucketload_run::Leftovers;
use bucketload_target::Scope;
use bucketload_target::flags::ENDPOINT_URL;

use crate::cli::target::TargetArgs;
use crate::drivers::{registry, variable};
use crate::target::{OWN_BUCKET, Target};

/// What to do about leftovers of run `run_id` in `target`, which is reached with `flags`.
pub(crate) fn of(target: &Target, flags: &[String], run_id: &str) -> Leftovers {
    let prefix = target.run_prefix(run_id);
    let prefix = prefix.trim_end_matches('/');
    let command = |url: String| {
        let words = ["bucketload", "cleanup", "--target", &url].map(str::to_owned);
        let words: Vec<String> = words.iter().chain(flags).map(|word| quoted(word)).collect();
        words.join(" ")
    };
    Leftovers::RemovedBy(match target {
        Target::Memory | Target::Null => return Leftovers::Vanish,
        Target::Service {
            api,
            server,
            bucket,
            ..
        } => {
            let server = server
                .as_ref()
                .map_or_else(String::new, |s| format!("{s}/"));
            command(format!("{}://{server}{bucket}/{prefix}", api.scheme()))
        }
        Target::Files(path) => {
            let root = path.display().to_string();
            let root = root.trim_end_matches('/');
            command(format!("file://{root}/{OWN_BUCKET}/{prefix}"))
        }
        // The embedded server has ended by then.
        Target::Directory(path) => format!(
            "bucketload serve --store {}, and then, with the address and the keys that it prints: bucketload \
             cleanup --target s3://{OWN_BUCKET}/{prefix} --endpoint-url http://ADDRESS",
            quoted(&format!("posix:{}", path.display()))
        ),
    })
}

/// The target flags that `cleanup` needs as well, including the endpoint if only the environment names it. None of them
/// contains a secret, because URLs with a password are refused.
pub(crate) fn flags(target: &Target, args: &TargetArgs) -> Vec<String> {
    let mut settings = args.settings.clone();
    if let Target::Service { api, .. } = target
        && !settings.has(&ENDPOINT_URL)
    {
        let mut names = api.descriptor().endpoint_variables.iter();
        let set = |name: &&str| variable(&settings, name).filter(|url| !url.is_empty());
        if let Some(url) = names.find_map(set) {
            settings.set(&ENDPOINT_URL, [url]);
        }
    }
    let mut out = Vec::new();
    if !settings.dialect.is_empty() {
        out.extend(["--dialect".to_owned(), settings.dialect.file.clone()]);
    }
    for flag in registry().flags() {
        if !matches!(flag.scope, Scope::Service | Scope::Content) || !settings.has(flag) {
            continue;
        }
        match settings.all(flag) {
            [] => out.push(flag.name.to_owned()),
            values => values
                .iter()
                .for_each(|value| out.extend([flag.name.to_owned(), value.clone()])),
        }
    }
    out
}

/// A word quoted for a POSIX shell.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use bucketload_run::Leftovers;

    use bucketload_target::flags;

    use super::{of, quoted};
    use crate::cli::target::TargetArgs;
    use crate::target::Target;

    fn command(url: &str, args: &TargetArgs) -> String {
        let target = Target::parse(url).unwrap();
        match of(&target, &super::flags(&target, args), "7-ab") {
            Leftovers::RemovedBy(command) => command,
            other => panic!("{url}: {other:?}"),
        }
    }

    #[test]
    fn the_command_names_the_runs_own_prefix_and_how_to_reach_it() {
        let mut args = TargetArgs::default();
        let settings = &mut args.settings;
        settings.set(&flags::ENDPOINT_URL, ["http://h:1", "http://n{1...4}:2"]);
        settings.set(&flags::REGION, ["eu-1"]);
        settings.set(&flags::ADDRESSING, ["path"]);
        settings.switch_on(&flags::NO_VERIFY_SSL);
        assert_eq!(
            command("s3://b/p q", &args),
            "bucketload cleanup --target 's3://b/p q/bucketload-7-ab' --endpoint-url http://h:1 \
             --endpoint-url 'http://n{1...4}:2' --no-verify-ssl --region eu-1 --addressing path"
        );
        let none = TargetArgs::default();
        assert_eq!(
            command("webhdfs://nn:9870/data", &none),
            "bucketload cleanup --target webhdfs://nn:9870/data/bucketload-7-ab"
        );
        assert_eq!(
            command("file:///data/", &none),
            "bucketload cleanup --target file:///data/bucketload/bucketload-7-ab"
        );
        assert!(
            command("serve:///data", &none).starts_with("bucketload serve --store posix:/data,")
        );
        assert_eq!(of(&Target::Memory, &[], "7-ab"), Leftovers::Vanish);
    }

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!(quoted("s3://b/p"), "s3://b/p");
        assert_eq!(quoted("it's $HOME"), "'it'\\''s $HOME'");
        assert_eq!(quoted(""), "''");
    }
}
