//! The command that removes what a run has left in its target, ready to be pasted into a shell.
//!
//! It names the run's own place, so that nothing else is deleted. Flags are those of the run; credentials stay
//! where they are: in the environment and in files.

use bucketload_run::Leftovers;
use clap::ValueEnum;

use crate::cli::target::TargetArgs;
use crate::target::{Api, OWN_BUCKET, Target};

/// What becomes of the objects of run `run_id` in `target`, which is reached with `flags`.
pub(crate) fn of(target: &Target, flags: &[String], run_id: &str) -> Leftovers {
    let place = target.run_prefix(run_id);
    let place = place.trim_end_matches('/');
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
            command(format!("{}://{server}{bucket}/{place}", api.scheme()))
        }
        Target::Files(path) => {
            let root = path.display().to_string();
            let root = root.trim_end_matches('/');
            command(format!("file://{root}/{OWN_BUCKET}/{place}"))
        }
        // Its server is gone by then.
        Target::Directory(path) => format!(
            "bucketload serve --store {}, and with the address and the keys that it prints: bucketload \
             cleanup --target s3://{OWN_BUCKET}/{place} --endpoint-url http://ADDRESS",
            quoted(&format!("posix:{}", path.display()))
        ),
    })
}

/// The flags about the target that `cleanup` needs as well, with the endpoint where only the environment
/// names it. None of them holds a secret; URLs with a password are refused everywhere.
pub(crate) fn flags(target: &Target, args: &TargetArgs) -> Vec<String> {
    let mut out = Vec::new();
    let mut push = |flag: &str, value: Option<String>| {
        if let Some(value) = value {
            out.extend([flag.to_owned(), value]);
        }
    };
    let environment = || {
        let of = |name| args.variable(name).filter(|url| !url.is_empty());
        of("AWS_ENDPOINT_URL_S3").or_else(|| of("AWS_ENDPOINT_URL"))
    };
    let is_s3 = matches!(target, Target::Service { api: Api::S3, .. });
    match args.endpoint_url.as_slice() {
        [] if is_s3 => push("--endpoint-url", environment()),
        urls => urls
            .iter()
            .for_each(|url| push("--endpoint-url", Some(url.clone()))),
    }
    push("--profile", args.profile.clone());
    push("--region", args.region.clone());
    push("--addressing", args.addressing.map(|a| a.name().to_owned()));
    let signing = args.payload_signing.map(|s| s.name().to_owned());
    push("--payload-signing", signing);
    push("--checksum", args.checksum.map(|c| c.name().to_owned()));
    for (flag, path) in [
        ("--ca-bundle", &args.ca_bundle),
        ("--client-cert", &args.client_cert),
        ("--client-key", &args.client_key),
        ("--token-file", &args.token_file),
        ("--libs3-library", &args.libs3_library),
    ] {
        push(flag, path.as_ref().map(|path| path.display().to_string()));
    }
    for address in &args.source_address {
        push("--source-address", Some(address.to_string()));
    }
    push(
        "--swift-large-object",
        args.swift_large_object.and_then(name),
    );
    push("--seaweedfs-mode", args.seaweedfs_mode.and_then(name));
    for (flag, given) in [
        ("--no-sign-request", args.no_sign_request),
        ("--no-verify-ssl", args.no_verify_ssl),
    ] {
        out.extend(given.then(|| flag.to_owned()));
    }
    out
}

/// The name of a value on the command line.
fn name(value: impl ValueEnum) -> Option<String> {
    value.to_possible_value().map(|v| v.get_name().to_owned())
}

/// A word as a POSIX shell reads it back.
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

    use super::{flags, of, quoted};
    use crate::cli::target::{Addressing, TargetArgs};
    use crate::target::Target;

    fn command(url: &str, args: &TargetArgs) -> String {
        let target = Target::parse(url).unwrap();
        match of(&target, &flags(&target, args), "7-ab") {
            Leftovers::RemovedBy(command) => command,
            other => panic!("{url}: {other:?}"),
        }
    }

    #[test]
    fn the_command_names_the_runs_own_place_and_how_to_reach_it() {
        let args = TargetArgs {
            endpoint_url: vec!["http://h:1".into(), "http://n{1...4}:2".into()],
            region: Some("eu-1".into()),
            addressing: Some(Addressing::Path),
            no_verify_ssl: true,
            ..TargetArgs::default()
        };
        assert_eq!(
            command("s3://b/p q", &args),
            "bucketload cleanup --target 's3://b/p q/bucketload-7-ab' --endpoint-url http://h:1 \
             --endpoint-url 'http://n{1...4}:2' --region eu-1 --addressing path --no-verify-ssl"
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
    fn shells_read_words_back_as_they_are() {
        assert_eq!(quoted("s3://b/p"), "s3://b/p");
        assert_eq!(quoted("it's $HOME"), "'it'\\''s $HOME'");
        assert_eq!(quoted(""), "''");
    }
}
