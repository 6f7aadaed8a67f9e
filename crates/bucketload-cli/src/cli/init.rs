//! `bucketload init`.

use clap::Args;

use super::target::TargetArgs;

const EXAMPLES: &str = "\
Examples:
  bucketload init
      Ask for the store, on a terminal
  bucketload init desk --target s3://bench --endpoint-url http://host:9000
  bucketload run get --duration 10s --target @desk
  bucketload init --list

Targets are saved in ~/.config/bucketload/targets.toml (XDG_CONFIG_HOME), which only you can read. Keys are not
saved: they come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or from the profile in ~/.aws.";

/// Save a store under a name, so that --target @NAME stands for it and its flags, and examine it
///
/// Saves first, then examines the store as `bucketload doctor` does, and says what differs and what to type next. A
/// dialect that it finds is saved beside the targets, and @NAME uses it.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct InitArgs {
    /// Name of the target, such as desk
    #[arg(value_name = "NAME", value_parser = name)]
    pub(crate) name: Option<String>,

    /// Print the saved targets
    #[arg(long, conflicts_with_all = ["name", "target", "replace", "no_doctor"])]
    pub(crate) list: bool,

    /// Replace the target that is saved under this name
    #[arg(long)]
    pub(crate) replace: bool,

    /// Save without examining the store
    #[arg(long)]
    pub(crate) no_doctor: bool,

    #[command(flatten)]
    pub(crate) target: TargetArgs,
}

/// Checks a name.
pub(crate) fn name(text: &str) -> Result<String, String> {
    let text = text.strip_prefix('@').unwrap_or(text);
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    match !text.is_empty() && text.chars().all(plain) {
        true => Ok(text.to_owned()),
        false => Err("a name consists of letters, digits, hyphens and underscores".to_owned()),
    }
}
