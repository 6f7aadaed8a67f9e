//! Targets by name: `--target @desk` stands for the URL and the flags that `bucketload init` saved.
//!
//! ```toml
//! [desk]
//! target = "s3://bench/tests"
//! endpoint-url = "http://10.0.0.5:9000"
//! profile = "desk"
//! insecure = true
//! dialect = "/home/me/store.toml"
//! ```

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use bucketload_target::{Flag, Settings, Value};

use crate::cli::target::TargetArgs;
use crate::dialect;
use crate::drivers::registry;

/// The saved targets, by name: their settings.
pub(crate) type Targets = BTreeMap<String, toml::Table>;

/// The setting that holds the URL; the others are flags.
const URL: &str = "target";
/// The setting that names the file of `--dialect`, with its whole path.
pub(crate) const DIALECT: &str = "dialect";

/// The file of targets: `bucketload/targets.toml` below `XDG_CONFIG_HOME` or `~/.config`.
///
/// # Errors
/// When neither variable says where that is.
pub(crate) fn file() -> Result<PathBuf, String> {
    let base = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let config = base("XDG_CONFIG_HOME").map(PathBuf::from);
    let config = config.or_else(|| Some(PathBuf::from(base("HOME")?).join(".config")));
    let config = config.ok_or("set XDG_CONFIG_HOME or HOME, below which targets are saved")?;
    Ok(config.join("bucketload/targets.toml"))
}

/// The targets saved in `file`; none if it does not exist.
///
/// # Errors
/// When it cannot be read, with the line of the mistake.
pub(crate) fn read(file: &Path) -> Result<Targets, String> {
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Targets::new()),
        Err(e) => return Err(format!("{}: {e}", file.display())),
    };
    toml::from_str(&text).map_err(|e| format!("{}: {e}", file.display()))
}

/// Replaces the targets saved in `file`, which only its user can read.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn write(file: &Path, targets: &Targets) -> Result<(), String> {
    let failed = |e: std::io::Error| format!("{}: {e}", file.display());
    let dir = file.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(dir).map_err(failed)?;
    let text = toml::to_string(targets).map_err(|e| e.to_string())?;
    // Has mode 0600, and takes the place of the old file in one step.
    let mut new = tempfile::NamedTempFile::new_in(dir).map_err(failed)?;
    new.write_all(text.as_bytes()).map_err(failed)?;
    new.persist(file).map(drop).map_err(|e| failed(e.error))
}

/// A path as text.
fn shown(path: impl AsRef<Path>) -> String {
    path.as_ref().to_string_lossy().into_owned()
}

/// What to save of a target's flags.
pub(crate) fn settings(args: &TargetArgs) -> toml::Table {
    let mut table = toml::Table::new();
    if let Some(url) = &args.target {
        table.insert(URL.to_owned(), url.clone().into());
    }
    if !args.settings.dialect.is_empty() {
        let file = &args.settings.dialect.file;
        // A relative path would mean another file in another directory.
        let whole = std::path::absolute(file).map_or_else(|_| file.clone(), shown);
        table.insert(DIALECT.to_owned(), whole.into());
    }
    for flag in registry().flags() {
        let value: toml::Value = match args.settings.all(flag) {
            _ if !args.settings.has(flag) => continue,
            _ if matches!(flag.value, Value::Switch) => true.into(),
            values => values.join(",").into(),
        };
        table.insert(flag.long().to_owned(), value);
    }
    table
}

/// The flags that a saved target stands for.
fn flags(table: &toml::Table, place: &str) -> Result<TargetArgs, String> {
    let mut args = TargetArgs::default();
    for (name, value) in table {
        if name == URL {
            args.target = value.as_str().map(str::to_owned);
            continue;
        }
        if let (DIALECT, toml::Value::String(file)) = (name.as_str(), value) {
            args.settings.dialect = dialect::read(file).map_err(|e| {
                format!("{place}: {DIALECT}: {e}; bucketload init --replace saves it again")
            })?;
            continue;
        }
        let is_it = |flag: &&&'static Flag| flag.long() == name || flag.alias == Some(name);
        let flag = registry().flags().iter().find(is_it).copied();
        let flag = flag.ok_or_else(|| format!("{place}: there is no flag --{name}"))?;
        match (value, &flag.value) {
            (toml::Value::Boolean(true), Value::Switch) => args.settings.switch_on(flag),
            (toml::Value::Boolean(false), Value::Switch) => {}
            (toml::Value::String(text), Value::Urls(_) | Value::List(..)) => {
                args.settings.set(flag, text.split(','));
            }
            (toml::Value::String(text), value) if !matches!(value, Value::Switch) => {
                args.settings.set(flag, [text.as_str()]);
            }
            _ => {
                return Err(format!(
                    "{place}: {name}: write a text in quotes; a switch is true or false"
                ));
            }
        }
    }
    match args.target {
        Some(_) => Ok(args),
        None => Err(format!(
            "{place}: there is no `{URL} = \"s3://BUCKET/PREFIX\"`"
        )),
    }
}

/// Replaces a target of the form `@NAME`, or `@NAME/PREFIX` for a prefix below it, by what was saved under the name.
/// Flags given beside it take precedence.
///
/// # Errors
/// When there is no such target, or its settings are wrong.
pub(crate) fn expand(args: &mut TargetArgs) -> Result<(), String> {
    let name = args.target.as_deref().and_then(|url| url.strip_prefix('@'));
    match name.map(str::to_owned) {
        Some(name) => expand_from(&file()?, &name, args),
        None => Ok(()),
    }
}

fn expand_from(file: &Path, name: &str, args: &mut TargetArgs) -> Result<(), String> {
    let (name, below) = name.split_once('/').unwrap_or((name, ""));
    let targets = read(file)?;
    let table = targets.get(name).ok_or_else(|| {
        let known: Vec<String> = targets.keys().map(|name| format!("@{name}")).collect();
        let known = match known.is_empty() {
            true => "none is saved yet".to_owned(),
            false => format!("saved are {}", known.join(", ")),
        };
        format!(
            "no target is saved under the name @{name}; {known}\n  help: bucketload init {name} --target s3://BUCKET/PREFIX \
             --endpoint-url URL"
        )
    })?;
    let mut saved = flags(table, &format!("{} [{name}]", file.display()))?;
    if let (Some(url), false) = (&mut saved.target, below.is_empty()) {
        *url = format!("{}/{below}", url.trim_end_matches('/'));
    }
    let given: Settings = std::mem::take(&mut args.settings);
    args.target = saved.target;
    args.settings = saved.settings.with(&given);
    Ok(())
}

#[cfg(test)]
mod tests {
    use bucketload_target::flags;

    use super::{expand_from, read, settings, write};
    use crate::cli::target::TargetArgs;

    #[test]
    fn a_name_stands_for_what_was_saved_and_flags_override_it() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("new/targets.toml");
        let mut saved = TargetArgs {
            target: Some("s3://bench/t/".into()),
            ..TargetArgs::default()
        };
        saved
            .settings
            .set(&flags::ENDPOINT_URL, ["http://a:1", "http://b:1"]);
        saved.settings.set(&flags::REGION, ["eu"]);
        saved.settings.switch_on(&flags::NO_VERIFY_SSL);
        write(&file, &[("desk".to_owned(), settings(&saved))].into()).unwrap();
        let mode = std::os::unix::fs::MetadataExt::mode(&file.metadata().unwrap());
        assert_eq!(mode & 0o777, 0o600);

        let mut used = TargetArgs::default();
        used.settings.set(&flags::REGION, ["us"]);
        expand_from(&file, "desk/deep", &mut used).unwrap();
        assert_eq!(used.target.as_deref(), Some("s3://bench/t/deep"));
        assert_eq!(
            used.settings.all(&flags::ENDPOINT_URL),
            ["http://a:1", "http://b:1"]
        );
        assert_eq!(used.settings.get(&flags::REGION), Some("us"));
        assert!(used.settings.has(&flags::NO_VERIFY_SSL));
    }

    #[test]
    fn mistakes_name_file_target_and_setting() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("targets.toml");
        let said = |text: &str| {
            std::fs::write(&file, text).unwrap();
            expand_from(&file, "desk", &mut TargetArgs::default()).unwrap_err()
        };
        assert!(said("").contains("none is saved yet"));
        assert!(said("[lab]\ntarget = \"mem:\"").contains("saved are @lab"));
        assert!(said("[desk]\ntarget = 5").contains("s3://BUCKET/PREFIX"));
        assert!(said("[desk]\nregoin = \"eu\"").contains("[desk]: there is no flag --regoin"));
        assert!(said("[desk]\ninsecure = \"yes\"").contains("true or false"));
        assert!(said("[desk").contains("line 1"));
        assert!(read(&dir.path().join("absent")).unwrap().is_empty());
    }
}
