//! The sections and options of IO500's configuration with their defaults (docs/spec/io500-mdworkbench.md section A.4),
//! ours, and the hash of a configuration.

use Kind::{Flag, Number, Text};
use OptionUse::{Ignored, Only, Read};

use super::hash::PairHash;
use super::ini::Ini;

/// How an option is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionUse {
    /// It has its effect.
    Read,
    /// Only this value is accepted (empty for no value); others are refused for the reason.
    Only(&'static str, &'static str),
    /// It has no effect on what is measured.
    Ignored,
}

/// What values an option takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `TRUE` or `FALSE`.
    Flag,
    /// A whole number, possibly negative.
    Number,
    /// Anything.
    Text,
}

/// An option.
#[derive(Clone, Copy, Debug)]
pub struct Opt {
    /// Its name, which is case-insensitive.
    pub name: &'static str,
    /// What values it takes.
    pub kind: Kind,
    /// Its default; `None` if it has no value unless it is set.
    pub default: Option<&'static str>,
    /// How this program uses it.
    pub used: OptionUse,
}

/// A section.
#[derive(Clone, Copy, Debug)]
pub struct Section {
    /// Its name, which is case-insensitive.
    pub name: &'static str,
    /// Whether its phase runs in the extended mode only.
    pub extended: bool,
    /// Its options, in IO500's order.
    pub options: &'static [Opt],
}

const fn opt(
    name: &'static str,
    kind: Kind,
    default: Option<&'static str>,
    used: OptionUse,
) -> Opt {
    Opt {
        name,
        kind,
        default,
        used,
    }
}

const fn standard(name: &'static str, options: &'static [Opt]) -> Section {
    Section {
        name,
        extended: false,
        options,
    }
}

const fn extended(name: &'static str, options: &'static [Opt]) -> Section {
    Section {
        name,
        extended: true,
        options,
    }
}

const ONE_TARGET: OptionUse = Only(
    "",
    "all phases use the same target, as the rules of IO500 require; set `api` in [global]",
);
const NO_GPU: OptionUse = Only("FALSE", "buffers are in main memory");
const NO_SCRIPT: OptionUse = Only("", "commands from a file are not run");
const NO_COLLECTIVE: OptionUse = Only(
    "FALSE",
    "collective buffering between ranks is not supported",
);
const OWN_FILES: OptionUse = Only("TRUE", "each rank writes a file of its own");
const ONE_DIRECTORY: OptionUse = Only("FALSE", "all files of ior-easy are in one directory");
const ALL_IN_ONE: OptionUse = Only("0", "all files of mdtest-hard are in one directory");

/// The command that IO500 runs by default to empty the caches.
pub const DROP_CACHES: &str = "sudo -n bash -c \"echo 3 > /proc/sys/vm/drop_caches\"";

const API: Opt = opt("API", Text, None, ONE_TARGET);
const RUN: Opt = opt("run", Flag, Some("TRUE"), Read);
const VERBOSITY: Opt = opt("verbosity", Number, None, Ignored);
const COLLECTIVE: Opt = opt("collective", Flag, None, NO_COLLECTIVE);
const PER_RANK: Opt = opt("n", Number, Some("1000000"), Read);
const IOR_HARD_PHASE: &[Opt] = &[API, COLLECTIVE, RUN];
const PHASE: &[Opt] = &[API, RUN];
const FIND: &[Opt] = &[
    opt("external-script", Text, None, NO_SCRIPT),
    // Without a script, IO500 ignores its arguments.
    opt("external-mpi-args", Text, Some(""), Ignored),
    opt("external-extra-args", Text, Some(""), Ignored),
    opt("nproc", Number, None, Read),
    RUN,
    opt("pfind-queue-length", Number, Some("10000"), Ignored),
    opt("pfind-steal-next", Flag, Some("FALSE"), Ignored),
    opt(
        "pfind-parallelize-single-dir-access-using-hashing",
        Flag,
        Some("FALSE"),
        Ignored,
    ),
];

/// The sections in IO500's order.
pub const SECTIONS: &[Section] = &[
    standard(
        "global",
        &[
            opt("datadir", Text, Some("./datafiles"), Read),
            opt("timestamp-datadir", Flag, Some("TRUE"), Read),
            opt("resultdir", Text, Some("./results"), Read),
            opt("timestamp-resultdir", Flag, Some("TRUE"), Read),
            opt("api", Text, Some("POSIX"), Read),
            opt("drop-caches", Flag, Some("FALSE"), Read),
            opt("drop-caches-cmd", Text, Some(DROP_CACHES), Read),
            opt("io-buffers-on-gpu", Flag, Some("FALSE"), NO_GPU),
            opt("verbosity", Number, Some("1"), Ignored),
            opt("scc", Flag, Some("FALSE"), Read),
            opt("dataPacketType", Text, Some("timestamp"), Read),
        ],
    ),
    standard(
        "debug",
        &[
            opt("stonewall-time", Number, Some("300"), Read),
            opt("pause-dir", Text, None, Read),
        ],
    ),
    standard(
        "ior-easy",
        &[
            API,
            opt("transferSize", Text, Some("2m"), Read),
            opt("blockSize", Text, Some("9920000m"), Read),
            opt("filePerProc", Flag, Some("TRUE"), OWN_FILES),
            opt("uniqueDir", Flag, Some("FALSE"), ONE_DIRECTORY),
            RUN,
            VERBOSITY,
        ],
    ),
    standard("ior-easy-write", PHASE),
    standard("mdtest-easy", &[API, PER_RANK, RUN]),
    standard("mdtest-easy-write", PHASE),
    extended(
        "mdworkbench",
        &[
            API,
            opt("waitingTime", Text, Some("0.0"), Read),
            opt("precreatePerSet", Number, None, Read),
            opt("filesPerProc", Number, None, Read),
            RUN,
            VERBOSITY,
        ],
    ),
    extended("mdworkbench-create", &[RUN]),
    standard("timestamp", &[]),
    extended("find-easy", FIND),
    standard(
        "ior-hard",
        &[
            API,
            opt("segmentCount", Number, Some("10000000"), Read),
            COLLECTIVE,
            RUN,
            VERBOSITY,
        ],
    ),
    standard("ior-hard-write", IOR_HARD_PHASE),
    standard(
        "mdtest-hard",
        &[
            API,
            PER_RANK,
            opt("files-per-dir", Number, None, ALL_IN_ONE),
            RUN,
        ],
    ),
    standard("mdtest-hard-write", PHASE),
    standard("find", FIND),
    extended("find-hard", FIND),
    extended("mdworkbench-bench", &[RUN]),
    standard("ior-easy-read", PHASE),
    standard("mdtest-easy-stat", PHASE),
    standard("ior-hard-read", IOR_HARD_PHASE),
    standard("mdtest-hard-stat", PHASE),
    extended("mdworkbench-delete", &[RUN]),
    standard("mdtest-easy-delete", PHASE),
    standard("mdtest-hard-read", PHASE),
    standard("mdtest-hard-delete", PHASE),
    standard("ior-rnd4K-easy-read", PHASE),
];

/// Our section, which IO500 does not have: there, mpirun, the command line and the environment say these.
pub const OURS: Section = standard(
    "bucketload",
    &[
        opt("mode", Text, Some("standard"), Read),
        opt("ranks", Text, None, Read),
        opt("mapping", Text, None, Read),
        opt("part-size", Text, Some("8MiB"), Read),
        opt("delete", Text, Some("list"), Read),
    ],
);

/// The section called `name`, IO500's or ours.
#[must_use]
pub fn section(name: &str) -> Option<&'static Section> {
    let ours: &'static Section = &OURS;
    let mut all = SECTIONS.iter().chain([ours]);
    all.find(|section| section.name.eq_ignore_ascii_case(name))
}

impl Section {
    /// The option called `name`.
    #[must_use]
    pub fn option(&self, name: &str) -> Option<&'static Opt> {
        let mut all = self.options.iter();
        all.find(|option| option.name.eq_ignore_ascii_case(name))
    }
}

impl Opt {
    /// `value` as IO500 keeps it: words for yes and no become `TRUE` and `FALSE`.
    ///
    /// # Errors
    /// How to write a value that the option does not take.
    pub fn canonical(&self, value: &str) -> Result<String, &'static str> {
        let is = |word: &str| value.eq_ignore_ascii_case(word);
        let digits = value.strip_prefix('-').unwrap_or(value);
        match self.kind {
            _ if value.contains(['#', ';']) => Err("write a value without # and ;"),
            Text => Ok(value.to_owned()),
            Flag if is("true") || value == "1" => Ok("TRUE".to_owned()),
            Flag if is("false") || value == "0" => Ok("FALSE".to_owned()),
            Flag => Err("write TRUE or FALSE"),
            Number if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) => {
                Ok(value.to_owned())
            }
            Number => Err("write a whole number"),
        }
    }
}

/// IO500's hash of a configuration: over the name and value of every option that has a value, defaults included.
/// `value` says an option's value if it differs from the default.
pub fn hash(value: impl Fn(&Section, &Opt) -> Option<String>) -> String {
    let mut hash = PairHash::default();
    for section in SECTIONS {
        for option in section.options {
            let value = value(section, option).or_else(|| option.default.map(str::to_owned));
            if let Some(value) = value {
                hash.add(option.name, &value);
            }
        }
    }
    hash.to_string()
}

/// IO500's hash of the configuration in the text of a file. Our own section does not count.
///
/// # Errors
/// When it is not IO500's, with the line.
pub fn config_hash(ini: &str) -> Result<String, String> {
    let ini = Ini::parse(ini)?;
    for (name, line) in &ini.sections {
        section(name).ok_or_else(|| no_section(*line, name))?;
    }
    let mut values = std::collections::BTreeMap::new();
    for setting in &ini.settings {
        let at = format!(
            "line {}: [{}] {}",
            setting.line, setting.section, setting.name
        );
        // IO500 skips an option without a value before it looks at the name.
        let Some(value) = &setting.value else {
            continue;
        };
        let section =
            section(&setting.section).ok_or_else(|| no_section(setting.line, &setting.section))?;
        let option = section
            .option(&setting.name)
            .ok_or_else(|| format!("{at}: there is no such option"))?;
        let value = option
            .canonical(value)
            .map_err(|remedy| format!("{at} = {value}: {remedy}"))?;
        values.insert((section.name, option.name), value);
    }
    Ok(hash(|section, option| {
        values.get(&(section.name, option.name)).cloned()
    }))
}

fn no_section(line: usize, name: &str) -> String {
    format!("line {line}: [{name}]: IO500's configuration has no such section")
}

#[cfg(test)]
mod tests {
    use super::config_hash;

    fn of(ini: &str) -> String {
        config_hash(ini).unwrap_or_else(|e| panic!("{ini}: {e}"))
    }

    #[test]
    fn the_hash_covers_defaults_and_skips_what_has_no_value() {
        let empty = of("");
        assert_eq!(
            empty,
            of("[global]\nscc = 0\nAPI =\n[find]\nnproc =   ; none\n[timestamp]\n")
        );
        assert_eq!(empty, of("[Global]\nDatadir = ./datafiles # the default\n"));
        assert_eq!(empty, of("[bucketload]\nranks = 3\n"), "ours");
        assert_ne!(empty, of("[global]\nscc = true\n"));
        assert_ne!(empty, of("[find]\nnproc = 1\n"));
        // The last value counts.
        assert_eq!(empty, of("[global]\nscc = TRUE\nscc = FALSE\n"));
    }

    #[test]
    fn what_io500_refuses_is_refused_with_its_line() {
        for (ini, words) in [
            ("[glob]\n", "line 1: [glob]"),
            ("[global]\nx = 1\n", "line 2: [global] x"),
            ("[global]\nscc = maybe\n", "TRUE or FALSE"),
            ("[debug]\n\nstonewall-time = 1s\n", "line 3"),
        ] {
            let error = config_hash(ini).unwrap_err();
            assert!(error.contains(words), "{ini}: {error}");
        }
    }
}
