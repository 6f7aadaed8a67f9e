//! The configuration: IO500's own INI file, with `--set` on top of it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use bucketload_core::plan::ranks::RankMapping;
use bucketload_core::units::parse_size;
use bucketload_results::io500::ini::Ini;
use bucketload_results::io500::measure::Settings;
use bucketload_results::io500::options::{
    DROP_CACHES, OURS, Opt, OptionUse, SECTIONS, Section, config_hash, hash, section,
};

use crate::cli::mdworkbench::PacketType;

/// A second in nanoseconds.
const SECOND_NS: u64 = 1_000_000_000;
/// The stonewall that the rules require, and the one for student cluster competitions (section A.3).
const STONEWALL_S: u64 = 300;
const STONEWALL_SCC_S: u64 = 30;

/// How IOR's backend deletes a file (docs/spec/libs3-abi.md section 12).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deletes {
    /// DELETE, then a listing of other objects of the file.
    List,
    /// HEAD, then DELETE, as with `S3LIB_DELETE_HEURISTICS`.
    Heuristics,
}

/// The effective configuration.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    values: BTreeMap<(String, String), Value>,
}

#[derive(Clone, Debug)]
struct Value {
    text: String,
    /// Where the value was set; empty for a default.
    from: String,
}

/// Names of options and sections are case-insensitive.
fn key(section: &str, name: &str) -> (String, String) {
    (section.to_ascii_lowercase(), name.to_ascii_lowercase())
}

/// The sections of the configuration, IO500's and then ours.
fn sections() -> impl Iterator<Item = &'static Section> {
    let ours: &'static Section = &OURS;
    SECTIONS.iter().chain([ours])
}

impl Config {
    /// The configuration from a file (name and text), if there is one, overridden by the settings
    /// `SECTION.OPTION=VALUE`.
    ///
    /// # Errors
    /// Every option that is unknown, unsupported or wrong, a line for each with its place and a remedy.
    pub(crate) fn read(file: Option<(&str, &str)>, set: &[String]) -> Result<Self, String> {
        let defaults = sections().flat_map(|section| {
            section.options.iter().map(|option| {
                let value = Value {
                    text: option.default.unwrap_or_default().to_owned(),
                    from: String::new(),
                };
                (key(section.name, option.name), value)
            })
        });
        let mut config = Self {
            values: defaults.collect(),
        };
        let mut wrong: Vec<String> = Vec::new();
        if let Some((name, text)) = file {
            let ini = Ini::parse(text).map_err(|e| format!("{name}: {e}"))?;
            for (title, line) in &ini.sections {
                if section(title).is_none() {
                    wrong.push(format!(
                        "{name}: line {line}: [{title}]: IO500's configuration has no such section; remove it"
                    ));
                }
            }
            for s in ini.settings {
                let at = format!("{name}: line {}: [{}] {}", s.line, s.section, s.name);
                let value = s.value.as_deref().unwrap_or("");
                // An unknown section has been named.
                if let Some(section) = section(&s.section) {
                    wrong.extend(config.put(&at, section, &s.name, value).err());
                }
            }
        }
        for text in set {
            let parts = text.split_once('=').and_then(|(path, value)| {
                let (section, name) = path.trim().split_once('.')?;
                Some((section, name, value.trim()))
            });
            let Some((title, name, value)) = parts else {
                wrong.push(format!("--set {text}: write SECTION.OPTION=VALUE"));
                continue;
            };
            let at = format!("--set {title}.{name}");
            wrong.extend(match section(title) {
                Some(section) => config.put(&at, section, name, value).err(),
                None => Some(format!(
                    "{at}: IO500's configuration has no section [{title}]"
                )),
            });
        }
        wrong.extend(config.wrong_values());
        match wrong.is_empty() {
            true => Ok(config),
            false => Err(wrong.join("\n")),
        }
    }

    /// Sets an option. As in IO500, one without a value keeps its default.
    fn put(
        &mut self,
        at: &str,
        section: &'static Section,
        name: &str,
        value: &str,
    ) -> Result<(), String> {
        if value.is_empty() {
            return Ok(());
        }
        let Some(option) = section.option(name) else {
            let names: Vec<&str> = section.options.iter().map(|option| option.name).collect();
            return Err(match names.is_empty() {
                true => format!("{at}: this section has no options; remove the option"),
                false => format!(
                    "{at}: there is no such option; use one of {}",
                    names.join(", ")
                ),
            });
        };
        let canonical = option.canonical(value);
        let text = canonical.map_err(|remedy| format!("{at} = {value}: {remedy}"))?;
        if let OptionUse::Only(only, why) = option.used
            && !text.eq_ignore_ascii_case(only)
        {
            return Err(format!("{at} = {value}: {why}; remove the option"));
        }
        let value = Value {
            text,
            from: at.to_owned(),
        };
        self.values.insert(key(section.name, option.name), value);
        Ok(())
    }

    /// Overrides one of our own settings with the value of a flag.
    pub(crate) fn replace(&mut self, name: &str, value: &str) {
        let value = Value {
            text: value.to_owned(),
            from: format!("--{name}"),
        };
        self.values.insert(key("bucketload", name), value);
    }

    fn value(&self, section: &str, name: &str) -> &Value {
        const NONE: &Value = &Value {
            text: String::new(),
            from: String::new(),
        };
        self.values.get(&key(section, name)).unwrap_or(NONE)
    }

    /// The text of an option, and where it was set.
    pub(crate) fn text(&self, section: &str, name: &str) -> (&str, &str) {
        let value = self.value(section, name);
        (&value.text, &value.from)
    }

    pub(super) fn wrong(&self, section: &str, name: &str, remedy: &str) -> String {
        match self.text(section, name) {
            (text, "") => format!("[{section}] {name} = {text} (the default): {remedy}"),
            (text, from) => format!("{from} = {text}: {remedy}"),
        }
    }

    /// The value of a boolean option.
    pub(crate) fn truth(&self, section: &str, name: &str) -> Result<bool, String> {
        match self.text(section, name).0 {
            "TRUE" => Ok(true),
            "FALSE" => Ok(false),
            _ => Err(self.wrong(section, name, "write TRUE or FALSE")),
        }
    }

    fn number(&self, section: &str, name: &str) -> Result<u64, String> {
        let number = self.text(section, name).0.parse::<u64>().ok();
        let remedy = "write a whole number above 0";
        number
            .filter(|n| *n > 0)
            .ok_or_else(|| self.wrong(section, name, remedy))
    }

    /// The value of a size in IOR's format: `k`, `m`, `g` and `t` are powers of 1024.
    fn size(&self, section: &str, name: &str) -> Result<u64, String> {
        let text = self.text(section, name).0.to_ascii_lowercase();
        let digits = text.trim_end_matches(['k', 'm', 'g', 't']);
        let unit = match &text[digits.len()..] {
            "" => Some(0),
            "k" => Some(10),
            "m" => Some(20),
            "g" => Some(30),
            "t" => Some(40),
            _ => None,
        };
        let bytes = unit.and_then(|unit| digits.trim().parse::<u64>().ok()?.checked_mul(1 << unit));
        let remedy = "write a size above 0 in IOR's format, such as 2m";
        bytes
            .or_else(|| parse_size(&text).ok())
            .filter(|bytes| *bytes > 0)
            .ok_or_else(|| self.wrong(section, name, remedy))
    }

    /// Reads every value once, so that mistakes are found before the run, and says what is wrong with each.
    fn wrong_values(&self) -> Vec<String> {
        [
            self.stonewall_ns().map(drop),
            self.packet().map(drop),
            self.easy().map(drop),
            self.segments().map(drop),
            self.items("mdtest-easy").map(drop),
            self.items("mdtest-hard").map(drop),
            self.searchers("find").map(drop),
            self.searchers("find-easy").map(drop),
            self.searchers("find-hard").map(drop),
            self.drop_caches().map(drop),
            self.ranks().map(drop),
            self.mapping().map(drop),
            self.part_size().map(drop),
            self.deletes().map(drop),
            self.waiting().map(drop),
            self.workbench().map(drop),
            self.extended().map(drop),
        ]
        .into_iter()
        .filter_map(Result::err)
        .collect()
    }

    /// Notes on options of the extended mode in the standard mode, where they have no effect, as in IO500.
    ///
    /// # Errors
    /// When the mode is neither.
    pub(crate) fn notes(&self) -> Result<Vec<String>, String> {
        if self.extended()? {
            return Ok(Vec::new());
        }
        let mut notes = Vec::new();
        for section in SECTIONS.iter().filter(|section| section.extended) {
            for option in section.options {
                let (text, from) = self.text(section.name, option.name);
                let off = option.name == "run" && text == "FALSE";
                if !from.is_empty() && !off && Some(text) != option.default {
                    notes.push(format!(
                        "{from} = {text} has no effect: the phases of [{}] run in extended mode only; add --mode \
                         extended",
                        section.name
                    ));
                }
            }
        }
        Ok(notes)
    }

    /// Whether to empty the machine's caches before each phase.
    pub(crate) fn drop_caches(&self) -> Result<bool, String> {
        let drops = self.truth("global", "drop-caches")?;
        if drops && self.text("global", "drop-caches-cmd").0 != DROP_CACHES {
            let remedy = "commands from a file are not run; remove the option (drop-caches = TRUE then empties the \
                          caches of Linux), or set drop-caches = FALSE";
            return Err(self.wrong("global", "drop-caches-cmd", remedy));
        }
        Ok(drops)
    }

    /// The directory whose files hold back phases, if the configuration states it.
    pub(crate) fn pause_dir(&self) -> Option<PathBuf> {
        let text = self.text("debug", "pause-dir").0;
        (!text.is_empty()).then(|| PathBuf::from(text))
    }

    /// Number of ranks that search in the phase `section`, if the configuration states it.
    pub(crate) fn searchers(&self, section: &str) -> Result<Option<u32>, String> {
        match self.text(section, "nproc").0 {
            "" => Ok(None),
            _ => {
                let number = self.number(section, "nproc")?;
                let remedy = "write a number of ranks";
                let number =
                    u32::try_from(number).map_err(|_| self.wrong(section, "nproc", remedy));
                number.map(Some)
            }
        }
    }

    /// Whether to run the phases of the extended mode.
    pub(crate) fn extended(&self) -> Result<bool, String> {
        match self.text("bucketload", "mode").0 {
            "standard" => Ok(false),
            "extended" => Ok(true),
            _ => Err(self.wrong("bucketload", "mode", "write standard or extended")),
        }
    }

    /// The waiting factor of MD-Workbench.
    pub(crate) fn waiting(&self) -> Result<f64, String> {
        let factor = self
            .text("mdworkbench", "waitingTime")
            .0
            .parse::<f64>()
            .ok();
        factor
            .filter(|factor| factor.is_finite() && *factor >= 0.0)
            .ok_or_else(|| self.wrong("mdworkbench", "waitingTime", "write a factor of 0 or more"))
    }

    /// Objects per data set and steps of MD-Workbench, if the configuration states them.
    pub(crate) fn workbench(&self) -> Result<Option<(u64, u64)>, String> {
        const NAMES: [&str; 2] = ["precreatePerSet", "filesPerProc"];
        let stated = NAMES.map(|name| !self.text("mdworkbench", name).0.is_empty());
        match stated {
            [false, false] => Ok(None),
            [true, true] => {
                let [objects, steps] = NAMES.map(|name| self.number("mdworkbench", name));
                Ok(Some((objects?, steps?)))
            }
            [first, _] => {
                let (is, is_not) = match first {
                    true => (NAMES[0], NAMES[1]),
                    false => (NAMES[1], NAMES[0]),
                };
                Err(self.wrong(
                    "mdworkbench",
                    is,
                    &format!("set {is_not} as well, or neither of them"),
                ))
            }
        }
    }

    /// Why phase `phase` does not run; `None` if it runs.
    pub(crate) fn skipped(&self, phase: &str) -> Option<String> {
        let family = [
            "ior-easy",
            "ior-hard",
            "mdtest-easy",
            "mdtest-hard",
            "mdworkbench",
        ]
        .into_iter()
        .find(|family| {
            phase
                .strip_prefix(family)
                .is_some_and(|rest| rest.starts_with('-'))
        });
        let off = |section: &str| self.truth(section, "run") == Ok(false);
        let named = |section: &str| self.values.contains_key(&key(section, "run"));
        let section = family
            .into_iter()
            .chain([phase])
            .find(|section| named(section) && off(section))?;
        Some(format!("[{section}] run = FALSE"))
    }

    /// Whether the stonewall is that of student cluster competitions because none is stated.
    fn is_scc_default(&self) -> bool {
        let stated = !self.text("debug", "stonewall-time").1.is_empty();
        !stated && self.truth("global", "scc") == Ok(true)
    }

    /// The stonewall, in nanoseconds.
    pub(crate) fn stonewall_ns(&self) -> Result<u64, String> {
        if self.is_scc_default() {
            return Ok(STONEWALL_SCC_S * SECOND_NS);
        }
        let seconds = self.number("debug", "stonewall-time")?;
        Ok(seconds.saturating_mul(SECOND_NS))
    }

    /// Content of objects.
    pub(crate) fn packet(&self) -> Result<PacketType, String> {
        match self
            .text("global", "dataPacketType")
            .0
            .to_ascii_lowercase()
            .as_str()
        {
            "timestamp" | "t" => Ok(PacketType::Timestamp),
            "random" | "r" | "incompressible" | "i" => Ok(PacketType::Random),
            _ => {
                let remedy = "write timestamp, random or incompressible";
                Err(self.wrong("global", "dataPacketType", remedy))
            }
        }
    }

    /// Bytes per transfer, and transfers per rank, in ior-easy.
    pub(crate) fn easy(&self) -> Result<(u64, u64), String> {
        let transfer = self.size("ior-easy", "transferSize")?;
        let block = self.size("ior-easy", "blockSize")?;
        if block % transfer != 0 {
            let remedy = format!("it must be a multiple of transferSize = {transfer}");
            return Err(self.wrong("ior-easy", "blockSize", &remedy));
        }
        Ok((transfer, block / transfer))
    }

    /// Transfers per rank in ior-hard.
    pub(crate) fn segments(&self) -> Result<u64, String> {
        self.number("ior-hard", "segmentCount")
    }

    /// Files per rank in `mdtest-easy` or `mdtest-hard`.
    pub(crate) fn items(&self, section: &str) -> Result<u64, String> {
        self.number(section, "n")
    }

    /// Number of ranks, if the configuration states it.
    pub(crate) fn ranks(&self) -> Result<Option<u32>, String> {
        let (text, _) = self.text("bucketload", "ranks");
        if text.is_empty() {
            return Ok(None);
        }
        let ranks = text.parse::<u32>().ok().filter(|n| (1..=4096).contains(n));
        ranks
            .map(Some)
            .ok_or_else(|| self.wrong("bucketload", "ranks", "write a number from 1 to 4096"))
    }

    /// How files map to objects, if the configuration states it.
    pub(crate) fn mapping(&self) -> Result<Option<RankMapping>, String> {
        match self.text("bucketload", "mapping").0 {
            "" => Ok(None),
            "ior-libs3-single" => Ok(Some(RankMapping::Libs3Single)),
            "native" => Ok(Some(RankMapping::Native)),
            "multipart" => Ok(Some(RankMapping::Multipart)),
            "files" => Ok(Some(RankMapping::Files)),
            "ior-libs3-bucket-per-file" => Ok(Some(RankMapping::Libs3Buckets)),
            _ => {
                let remedy =
                    "write ior-libs3-single, ior-libs3-bucket-per-file, native, multipart or files";
                Err(self.wrong("bucketload", "mapping", remedy))
            }
        }
    }

    /// Bytes per part in the mapping `multipart`.
    pub(crate) fn part_size(&self) -> Result<u64, String> {
        let bytes = self.size("bucketload", "part-size")?;
        if bytes < 5 << 20 {
            let remedy =
                "write at least 5 MiB, the minimum of Amazon S3 for all parts but the last";
            return Err(self.wrong("bucketload", "part-size", remedy));
        }
        Ok(bytes)
    }

    /// How files are deleted under `ior-libs3-single`.
    pub(crate) fn deletes(&self) -> Result<Deletes, String> {
        match self.text("bucketload", "delete").0 {
            "list" => Ok(Deletes::List),
            "heuristics" => Ok(Deletes::Heuristics),
            _ => Err(self.wrong("bucketload", "delete", "write list or heuristics")),
        }
    }

    /// What the rules require of the run.
    pub(crate) fn settings(&self, skipped: Vec<(String, String)>) -> Result<Settings, String> {
        let required_s = match self.truth("global", "scc")? {
            true => STONEWALL_SCC_S,
            false => STONEWALL_S,
        };
        let required_ns = required_s * SECOND_NS;
        Ok(Settings {
            config_hash: config_hash(&self.ini())?,
            extended: self.extended()?,
            required_ns,
            stonewall_ok: self.stonewall_ns()? == required_ns,
            pauses: self.pause_dir().is_some(),
            skipped,
        })
    }

    /// IO500's hash of this configuration.
    pub(crate) fn hash(&self) -> String {
        hash(|section, option| self.stated(section, option))
    }

    /// The value of an option if it has one.
    fn stated(&self, section: &Section, option: &Opt) -> Option<String> {
        let text = self.text(section.name, option.name).0;
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// The effective configuration, ours included, without secrets.
    pub(crate) fn ini(&self) -> String {
        let mut out = self.original_ini();
        self.section(&OURS, "", &mut out);
        out
    }

    /// The effective configuration without secrets as IO500's programs read it: ours is a comment.
    pub(crate) fn file(&self) -> String {
        let mut out = self.original_ini();
        self.section(&OURS, "; ", &mut out);
        out
    }

    fn original_ini(&self) -> String {
        let mut out = String::new();
        for section in SECTIONS {
            self.section(section, "", &mut out);
            out.push('\n');
        }
        out
    }

    /// Writes a section, with `before` at the start of each line.
    fn section(&self, section: &Section, before: &str, out: &mut String) {
        let _ = writeln!(out, "{before}[{}]", section.name);
        for option in section.options {
            let text = match option.name {
                "stonewall-time" if self.is_scc_default() => STONEWALL_SCC_S.to_string(),
                name => redact(self.text(section.name, name).0),
            };
            let _ = writeln!(out, "{before}{} = {text}", option.name);
        }
    }
}

/// Hides the keys of the backend S3-libs3 in `text`.
pub(crate) fn redact(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("-key=") {
        let (before, after) = rest.split_at(at + "-key=".len());
        out.push_str(before);
        out.push_str("***");
        rest = after.trim_start_matches(|c: char| !c.is_whitespace());
    }
    out + rest
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
