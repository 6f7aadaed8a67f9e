//! Flags for the target and the way to reach it: `--target`, and the flags of the registered drivers.

use bucketload_target::{Dialect, Flag, Scope, Settings, Value};
use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, ValueHint};

use crate::dialect;
use crate::drivers::registry;
use crate::named;

/// The target of the load. Flags take precedence over environment variables, which take precedence over configuration
/// files, which take precedence over defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TargetArgs {
    /// `--target`.
    pub(crate) target: Option<String>,
    /// The drivers' flags.
    pub(crate) settings: Settings,
}

const TARGET: &str = "Target: a service (s3://BUCKET/PREFIX, swift://, az://, gs://, webhdfs://, hdfs://, seaweedfs:// \
    or libs3://), a file system (file:///DIR), the embedded server (mem:, or serve:///DIR for a directory), or null: \
    (no store at all)";

impl TargetArgs {
    /// These flags, overridden by the flags of `other` that were given.
    pub(crate) fn with(&self, other: &Self) -> Self {
        Self {
            target: other.target.clone().or_else(|| self.target.clone()),
            settings: self.settings.with(&other.settings),
        }
    }
}

impl Args for TargetArgs {
    fn augment_args(command: Command) -> Command {
        let target = Arg::new("target")
            .long("target")
            .short('t')
            .value_name("URL")
            .help(TARGET)
            .long_help(format!(
                "{TARGET}\n\n@NAME stands for a target that `bucketload init` saved, with its flags. The default is the workload's target, else the embedded server over memory."
            ))
            .help_heading("Target options");
        let dialect = Arg::new("dialect")
            .long("dialect")
            .value_name("FILE")
            .help("What the store does otherwise than its API says, as `bucketload doctor` writes it")
            .long_help(
                "What the store does otherwise than its API says, as `bucketload doctor --write-dialect FILE` writes it. \
                 Its settings precede configuration files and defaults, not flags and environment variables; workloads \
                 that need an operation that it refuses are refused.",
            )
            .help_heading("Target options")
            .value_hint(ValueHint::FilePath)
            .value_parser(dialect::read);
        command
            .arg(target)
            .arg(dialect)
            .args(registry().flags().into_iter().map(arg))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for TargetArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut args = Self::default();
        args.update_from_arg_matches(matches)?;
        Ok(args)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        if let Some(url) = matches.get_one::<String>("target") {
            self.target = Some(url.clone());
        }
        if let Some(dialect) = matches.get_one::<Dialect>("dialect") {
            self.settings.dialect = dialect.clone();
        }
        for flag in registry().flags() {
            let id = flag.long();
            if matches!(flag.value, Value::Switch) {
                if matches.get_flag(id) {
                    self.settings.switch_on(flag);
                }
            } else if let Some(values) = matches.get_many::<String>(id) {
                self.settings.set(flag, values);
            }
        }
        named::expand(self)
            .map_err(|e| clap::Error::raw(ErrorKind::ValueValidation, format!("--target: {e}\n")))
    }
}

/// The definition of a driver's flag for the command line.
fn arg(flag: &'static Flag) -> Arg {
    let mut arg = Arg::new(flag.long())
        .long(flag.long())
        .help(flag.help)
        .help_heading(match flag.scope {
            Scope::Files => "File system options",
            Scope::Service | Scope::Content | Scope::Client => "Target options",
        });
    if let Some(alias) = flag.alias {
        arg = arg.visible_alias(alias);
    }
    if !flag.more.is_empty() {
        arg = arg.long_help(format!("{}\n\n{}", flag.help, flag.more));
    }
    if let Some(other) = flag.requires {
        arg = arg.requires(other.trim_start_matches('-'));
    }
    let many = |arg: Arg| arg.value_delimiter(',').action(ArgAction::Append);
    let checked =
        |check: bucketload_target::Check| move |text: &str| check(text).map(|()| text.to_owned());
    match flag.value {
        Value::Switch => arg.action(ArgAction::SetTrue),
        Value::Text(name) => arg.value_name(name),
        Value::Urls(name) => many(arg).value_name(name).value_hint(ValueHint::Url),
        Value::List(name, check) => many(arg).value_name(name).value_parser(checked(check)),
        Value::File(name) | Value::Path(name) => {
            arg.value_name(name).value_hint(ValueHint::FilePath)
        }
        Value::Choice(name, choices) => {
            let choices = choices
                .iter()
                .map(|(name, help)| PossibleValue::new(*name).help(*help));
            arg.value_name(name)
                .value_parser(PossibleValuesParser::new(choices))
        }
        Value::Checked(name, check) => arg.value_name(name).value_parser(checked(check)),
    }
}

#[cfg(test)]
mod tests {
    use bucketload_target::flags;
    use clap::Parser;

    use super::TargetArgs;
    use crate::drivers::registry;

    #[derive(Parser)]
    struct Wrapper {
        #[command(flatten)]
        target: TargetArgs,
    }

    fn parse(line: &str) -> Result<TargetArgs, String> {
        let words = std::iter::once("test").chain(line.split_whitespace());
        match Wrapper::try_parse_from(words) {
            Ok(wrapper) => Ok(wrapper.target),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn flags_of_drivers_are_parsed_and_checked() {
        let args = parse(
            "--target s3://b/p --endpoint-url http://a:1,http://b:2 --endpoint-url http://c{1...4}:3 \
             --source-address 10.0.0.1,::1 --addressing virtual --insecure --engine cli:s3cmd",
        )
        .unwrap();
        let settings = &args.settings;
        assert_eq!(
            settings.all(&flags::ENDPOINT_URL),
            ["http://a:1", "http://b:2", "http://c{1...4}:3"]
        );
        assert_eq!(settings.all(&flags::SOURCE_ADDRESS).len(), 2);
        assert_eq!(settings.get(&flags::ADDRESSING), Some("virtual"));
        assert!(settings.has(&flags::NO_VERIFY_SSL));
        assert_eq!(settings.get(registry().engine[0]), Some("cli:s3cmd"));
        assert!(!settings.has(&flags::REGION));
        for (wrong, remedy) in [
            ("--client-cert a.pem", "--client-key"),
            ("--source-address host", "host"),
            ("--engine minio", "object-store"),
            ("--checksum md4", "crc64nvme"),
            ("--posix-io fast", "uring"),
        ] {
            let error = parse(wrong).unwrap_err();
            assert!(error.contains(remedy), "{error}");
        }
    }

    #[test]
    fn flags_for_one_side_override_flags_for_both() {
        let both = parse("--region a --endpoint-url http://a:1").unwrap();
        let side = parse("--endpoint-url http://b:1 --no-sign-request").unwrap();
        let args = both.with(&side);
        assert_eq!(args.settings.all(&flags::ENDPOINT_URL), ["http://b:1"]);
        assert_eq!(args.settings.get(&flags::REGION), Some("a"));
        assert!(args.settings.has(&flags::NO_SIGN_REQUEST));
    }
}
