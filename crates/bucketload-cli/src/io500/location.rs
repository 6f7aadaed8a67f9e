//! The location of the files: the target, and the directory in their names.

use bucketload_core::plan::ranks::RankMapping;
use time::OffsetDateTime;
use time::macros::format_description;

use super::Config;
use bucketload_target::{Given, flags as names};

use crate::cli::target::TargetArgs;
use crate::target::{Api, Target};

/// Where the files are, and how they map to objects.
pub(crate) struct Location {
    pub(crate) target: Target,
    pub(crate) args: TargetArgs,
    /// Directory of the files below the run's prefix, with a trailing slash; may be empty.
    pub(crate) directory: String,
    pub(crate) mapping: RankMapping,
    /// The start time, in the format of directory names.
    pub(crate) timestamp: String,
}

/// Options of IOR's backend S3-libs3 that have no effect here.
const HARMLESS: [&str; 3] = ["location", "s3-compatible", "dont-suffix-bucket"];

/// The location that configuration and flags name, for a run that starts at `now`.
///
/// # Errors
/// A setting that is not supported, with its place and a remedy.
pub(crate) fn locate(
    config: &Config,
    flags: &TargetArgs,
    now: OffsetDateTime,
    notes: &mut Vec<String>,
) -> Result<Location, String> {
    let form = format_description!("[year].[month].[day]-[hour].[minute].[second]");
    let timestamp = now.format(form).map_err(|e| e.to_string())?;
    let mut args = flags.clone();
    let (api, from) = config.text("global", "api");
    let mut words = api.split_whitespace();
    let name = words.next().unwrap_or("POSIX");
    let (datadir, datadir_from) = config.text("global", "datadir");
    let mut directory = datadir
        .trim_start_matches("./")
        .trim_matches('/')
        .to_owned();
    let libs3 = name.eq_ignore_ascii_case("S3-libs3");
    let mut per_file = false;
    let target = match &flags.target {
        Some(text) => {
            if !from.is_empty() {
                notes.push(format!(
                    "--target overrides {from} = {}",
                    super::config::redact(api)
                ));
            }
            Target::parse(text).map_err(|e| format!("--target: {e}"))?
        }
        None if libs3 => {
            let (target, buckets) = s3(words, from, &mut args, notes)?;
            per_file = buckets;
            target
        }
        None if name.eq_ignore_ascii_case("POSIX") => {
            if let Some(option) = words.next() {
                return Err(format!(
                    "{from}: `{option}`: IOR's options for POSIX are not supported; use the --posix-… flags"
                ));
            }
            let root = std::path::absolute(datadir)
                .map_err(|e| format!("{datadir_from} = {datadir}: {e}"))?;
            directory.clear();
            Target::Files(root)
        }
        None => {
            return Err(format!(
                "{from} = {name}: use POSIX or S3-libs3, or name the target with --target URL"
            ));
        }
    };
    if config.truth("global", "timestamp-datadir")? {
        if !directory.is_empty() {
            directory.push('/');
        }
        directory.push_str(&timestamp);
    }
    if !directory.is_empty() {
        directory.push('/');
    }
    let files = matches!(target, Target::Files(_));
    let mapping = config
        .mapping()?
        .unwrap_or(match (files, libs3 && flags.target.is_none()) {
            (true, _) => RankMapping::Files,
            (_, true) if per_file => RankMapping::Libs3Buckets,
            (_, true) => RankMapping::Libs3Single,
            _ => RankMapping::Native,
        });
    if mapping == RankMapping::Files && !files {
        return Err(format!(
            "{} = files: objects cannot be written in ranges; use native, multipart or ior-libs3-single, \
             or a target file:///DIR",
            config.text("bucketload", "mapping").1
        ));
    }
    if config.drop_caches()? {
        args.settings.switch_on(&names::DROP_CACHES);
    }
    Ok(Location {
        target,
        args,
        directory,
        mapping,
        timestamp,
    })
}

/// The target that IOR's backend would use with these options, and whether each file has its own bucket.
fn s3<'a>(
    words: impl Iterator<Item = &'a str>,
    from: &str,
    args: &mut TargetArgs,
    notes: &mut Vec<String>,
) -> Result<(Target, bool), String> {
    let mut per_file = false;
    let (mut host, mut ssl, mut prefix, mut suffixed) = (None, false, "ior", true);
    let (mut access, mut secret) = (None, None);
    for word in words {
        let option = word.strip_prefix("--S3-libs3.").unwrap_or(word);
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        match name {
            "host" => host = Some(value),
            "access-key" => access = Some(value.to_owned()),
            "secret-key" => secret = Some(value.to_owned()),
            "region" => args.settings.set(&names::REGION, [value]),
            "bucket-name-prefix" => prefix = value,
            "use-ssl" => ssl = true,
            "dont-suffix-bucket" => suffixed = false,
            "bucket-per-file" => per_file = true,
            name if HARMLESS.contains(&name) => {}
            _ => {
                return Err(format!(
                    "{from}: the option `{word}` of S3-libs3 is not supported; remove it"
                ));
            }
        }
    }
    if !args.settings.has(&names::ENDPOINT_URL)
        && let Some(host) = host
    {
        let scheme = if ssl { "https" } else { "http" };
        let url = |host: &str| format!("{scheme}://{host}");
        let urls = host.split([',', ';']).map(url);
        args.settings.set(&names::ENDPOINT_URL, urls);
    }
    let key = access
        .clone()
        .or_else(|| std::env::var("AWS_ACCESS_KEY_ID").ok());
    let bucket = match suffixed {
        true => format!("{prefix}{}", suffix(key.as_deref().unwrap_or_default())),
        false => prefix.to_owned(),
    };
    if access.is_some() || secret.is_some() {
        notes.push(
            "others may be able to read the keys in the configuration; better set AWS_ACCESS_KEY_ID and \
             AWS_SECRET_ACCESS_KEY"
                .to_owned(),
        );
        args.settings.given = Given::new(vec![
            ("AWS_ACCESS_KEY_ID", access),
            ("AWS_SECRET_ACCESS_KEY", secret),
            ("AWS_SESSION_TOKEN", None),
            ("AWS_PROFILE", None),
        ]);
    }
    let target = Target::Service {
        api: Api::s3(),
        server: None,
        bucket,
        prefix: String::new(),
    };
    Ok((target, per_file))
}

/// The suffix that IOR's backend adds to the name of its bucket: the sum of the access key's characters, each times
/// 10 to the power of its position, modulo 1000 (docs/spec/libs3-abi.md section 12).
fn suffix(access_key: &str) -> u64 {
    let powers = [1, 10, 100];
    // Higher powers are multiples of 1000.
    let sum: u64 = access_key
        .bytes()
        .zip(powers)
        .map(|(c, power)| u64::from(c) * power)
        .sum();
    sum % 1000
}

#[cfg(test)]
mod tests {
    use bucketload_core::plan::ranks::RankMapping;
    use time::OffsetDateTime;

    use super::{locate, names, suffix};
    use crate::cli::target::TargetArgs;
    use crate::io500::Config;
    use crate::target::{Api, Target};

    #[test]
    fn the_options_of_iors_backend_name_service_and_bucket() {
        let text = "[global]\ndatadir = ./d/e\napi = S3-libs3 --S3-libs3.host=h:9000,i:9000 \
                    --S3-libs3.access-key=abc --S3-libs3.secret-key=s\n";
        let config = Config::read(Some(("f", text)), &[]).unwrap();
        let now = OffsetDateTime::from_unix_timestamp(1_795_163_891).unwrap();
        let mut notes = Vec::new();
        let location = locate(&config, &TargetArgs::default(), now, &mut notes).unwrap();
        // 97 + 980 + 9900 = 10977
        assert_eq!(suffix("abc"), 977);
        let bucket = "ior977".to_owned();
        let target = Target::Service {
            api: Api::s3(),
            server: None,
            bucket,
            prefix: String::new(),
        };
        assert_eq!(location.target, target);
        let urls = location.args.settings.all(&names::ENDPOINT_URL);
        assert_eq!(urls, ["http://h:9000", "http://i:9000"]);
        assert_eq!(location.mapping, RankMapping::Libs3Single);
        assert_eq!(location.directory, "d/e/2026.11.20-08.38.11/");
        assert!(notes[0].contains("AWS_SECRET_ACCESS_KEY"));
    }

    #[test]
    fn flags_take_precedence_and_ranges_need_files() {
        let flags = TargetArgs {
            target: Some("mem:".to_owned()),
            ..TargetArgs::default()
        };
        let now = OffsetDateTime::UNIX_EPOCH;
        let read = |set: &[&str]| {
            let set: Vec<String> = set.iter().map(|&s| s.to_owned()).collect();
            let config = Config::read(None, &set).unwrap();
            locate(&config, &flags, now, &mut Vec::new()).map(|location| location.mapping)
        };
        assert_eq!(read(&[]), Ok(RankMapping::Native));
        let wrong = read(&["bucketload.mapping=files"]).unwrap_err();
        assert!(wrong.contains("--set bucketload.mapping"), "{wrong}");
    }
}
