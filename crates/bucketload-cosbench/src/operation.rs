//! Operation types: the keys of their config strings and their meaning (specification section 1.6).

use crate::config::Config;
use crate::error::near;
use crate::model::Division;
use crate::selector::{Selector, Sizes};

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OperationKind {
    /// Read an object.
    Read,
    /// Write an object.
    Write,
    /// Delete an object.
    Delete,
    /// List a container, or look up one of its objects.
    List,
    /// Write a local file.
    FileWrite,
    /// Create the containers of a slice.
    Init,
    /// Delete the containers of a slice.
    Dispose,
    /// Write the objects of a slice.
    Prepare,
    /// Delete the objects of a slice.
    Cleanup,
    /// Read an object's metadata.
    Head,
    /// Write an object in parts.
    MultipartWrite,
    /// Write the objects of a slice in parts.
    MultipartPrepare,
    /// Write a local file in parts.
    MultipartFileWrite,
    /// Restore an archived object.
    Restore,
    /// Write generated data to the driver's own disk.
    LocalWrite,
    /// Wait.
    Delay,
}

impl OperationKind {
    /// Every kind with its name and the sample type it is reported as.
    const TABLE: [(Self, &'static str, &'static str); 16] = [
        (Self::Read, "read", "read"),
        (Self::Write, "write", "write"),
        (Self::Delete, "delete", "delete"),
        (Self::List, "list", "list"),
        (Self::FileWrite, "filewrite", "filewrite"),
        (Self::Init, "init", "write"),
        (Self::Dispose, "dispose", "delete"),
        (Self::Prepare, "prepare", "write"),
        (Self::Cleanup, "cleanup", "delete"),
        (Self::Head, "head", "head"),
        (Self::MultipartWrite, "mwrite", "mwrite"),
        (Self::MultipartPrepare, "mprepare", "mwrite"),
        (Self::MultipartFileWrite, "mfilewrite", "mfilewrite"),
        (Self::Restore, "restore", "restore"),
        (Self::LocalWrite, "localwrite", "localwrite"),
        (Self::Delay, "delay", "delay"),
    ];

    /// The kind called `name`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let found = Self::TABLE.iter().find(|row| row.1 == name);
        found.map(|row| row.0)
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// The type of its samples.
    #[must_use]
    pub fn sample_type(self) -> &'static str {
        self.row().2
    }

    fn row(self) -> (Self, &'static str, &'static str) {
        // Every kind is in the table, as a test verifies.
        let found = Self::TABLE.into_iter().find(|row| row.0 == self);
        found.unwrap_or(Self::TABLE[0])
    }

    /// Names for messages.
    pub(crate) fn names() -> Vec<&'static str> {
        Self::TABLE.iter().map(|row| row.1).collect()
    }

    /// Whether it requires `sizes`.
    const fn has_sizes(self) -> bool {
        matches!(
            self,
            Self::Write
                | Self::Prepare
                | Self::MultipartWrite
                | Self::MultipartPrepare
                | Self::LocalWrite
        )
    }

    /// Whether it writes objects to the store.
    #[must_use]
    pub const fn writes(self) -> bool {
        matches!(
            self,
            Self::Write
                | Self::Prepare
                | Self::FileWrite
                | Self::MultipartWrite
                | Self::MultipartPrepare
                | Self::MultipartFileWrite
        )
    }

    /// Whether it goes through a slice of containers and objects.
    #[must_use]
    pub const fn loops(self) -> bool {
        matches!(
            self,
            Self::Init | Self::Dispose | Self::Prepare | Self::Cleanup | Self::MultipartPrepare
        )
    }

    /// The valid keys of its config.
    fn keys(self) -> Vec<&'static str> {
        let mut keys = vec![
            "containers",
            "cprefix",
            "csuffix",
            "objects",
            "oprefix",
            "osuffix",
            "name",
            "histogram",
            "histo",
        ];
        keys.extend_from_slice(match self {
            Self::Read => &["hashCheck"][..],
            Self::Write | Self::MultipartWrite => &["sizes", "content", "chunked", "hashCheck"],
            Self::Prepare | Self::MultipartPrepare => &[
                "sizes",
                "content",
                "chunked",
                "hashCheck",
                "createContainer",
            ],
            Self::Cleanup => &["deleteContainer"],
            Self::Init | Self::Dispose => &["sizes"],
            Self::FileWrite | Self::MultipartFileWrite => &["files", "fileselection", "hashCheck"],
            Self::LocalWrite => &["sizes", "files", "content"],
            Self::Delete | Self::List | Self::Head | Self::Restore | Self::Delay => &[],
        });
        keys
    }
}

/// The settings of an operation, read from its config.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// Numbers of containers.
    pub containers: Option<Selector>,
    /// Prefix of container names.
    pub cprefix: String,
    /// Suffix of container names.
    pub csuffix: String,
    /// Numbers of objects.
    pub objects: Option<Selector>,
    /// Prefix of object names.
    pub oprefix: String,
    /// Suffix of object names.
    pub osuffix: String,
    /// Sizes of written objects.
    pub sizes: Option<Sizes>,
    /// Whether written content is all zeros.
    pub zeros: bool,
    /// Whether content is written with a checksum and checked when read.
    pub hash_check: bool,
    /// Whether requests use chunked transfer coding.
    pub chunked: bool,
    /// Whether containers are also created (prepare) or deleted (cleanup).
    pub containers_too: bool,
    /// Directory of local files.
    pub files: Option<String>,
    /// How local files are chosen: the first letter of the selector.
    pub file_selection: Option<char>,
    /// Whether percentiles are reported.
    pub histogram: bool,
}

/// A problem with a config, without its location: text and remedy.
pub(crate) type Problem = (String, String);

/// The result of reading a config: the target, and notes for the user.
pub(crate) struct Read {
    pub(crate) target: Target,
    pub(crate) notes: Vec<String>,
}

/// Reads the config of an operation.
///
/// # Errors
/// The problem at which a driver would fail when the stage starts.
pub(crate) fn read(kind: OperationKind, config: &Config) -> Result<Read, Problem> {
    let mut notes = Vec::new();
    let known = kind.keys();
    let foreign = |key: &&str| !known.contains(key) && *key != "hashcheck";
    for key in config.keys().filter(foreign) {
        let meant = near(key, &known)
            .map(|meant| format!("; did you mean `{meant}`?"))
            .unwrap_or_default();
        notes.push(format!(
            "{} does not know the key `{key}`{meant}",
            kind.name()
        ));
    }
    for entry in config.ignored() {
        notes.push(format!("`{entry}` has no `=` and is ignored"));
    }
    let selector = |key: &str| -> Result<Option<Selector>, Problem> {
        let Some(text) = config.get(key) else {
            return Ok(None);
        };
        let parsed = Selector::parse(&text);
        parsed
            .map(Some)
            .map_err(|e| (format!("{key}: {}", e.problem), e.remedy.to_owned()))
    };
    let text = |key: &str, default: &str| {
        config
            .get(key)
            .map_or_else(|| default.to_owned(), std::borrow::Cow::into_owned)
    };
    let truth = |key: &str, default: bool| -> Result<bool, Problem> {
        config
            .truth(key)
            .map(|value| value.unwrap_or(default))
            .map_err(|value| {
                (
                    format!("{key}: `{value}` is not a boolean"),
                    "write true or false".to_owned(),
                )
            })
    };
    let sizes = match config.get("sizes") {
        Some(text) if kind.has_sizes() => {
            let parsed = Sizes::parse(&text);
            let sizes =
                parsed.map_err(|e| (format!("sizes: {}", e.problem), e.remedy.to_owned()))?;
            if let Some(unit) = &sizes.misread {
                notes.push(format!(
                    "COSBench 0.4 takes {unit} as bytes; here it has its usual meaning"
                ));
            }
            Some(sizes)
        }
        None if kind.has_sizes() => return Err(missing("sizes", "sizes=c(64)KB")),
        _ => None,
    };
    let misspelt = config.truth("hashcheck").ok().flatten();
    if misspelt.is_some() {
        notes.push(
            "COSBench ignores `hashcheck` (the key is `hashCheck`); here it is honoured".into(),
        );
    }
    let target = Target {
        containers: selector("containers")?,
        cprefix: text("cprefix", "mycontainers"),
        csuffix: text("csuffix", ""),
        objects: selector("objects")?,
        oprefix: text("oprefix", "myobjects"),
        osuffix: text("osuffix", ""),
        sizes,
        zeros: text("content", "random") == "zero",
        hash_check: truth("hashCheck", misspelt.unwrap_or(false))?,
        chunked: truth("chunked", false)?,
        containers_too: truth("createContainer", kind == OperationKind::Prepare)?
            && matches!(
                kind,
                OperationKind::Prepare | OperationKind::MultipartPrepare
            )
            || truth("deleteContainer", false)? && kind == OperationKind::Cleanup,
        files: config.get("files").map(std::borrow::Cow::into_owned),
        file_selection: config
            .get("fileselection")
            .and_then(|text| text.chars().next()),
        histogram: truth("histogram", true)?,
    };
    check(kind, &target)?;
    Ok(Read { target, notes })
}

fn missing(key: &str, example: &str) -> Problem {
    (
        format!("no such key defined: {key}"),
        format!("add it to the config, such as {example}"),
    )
}

/// Rejects divisions that leave a worker nothing to choose from, which would end COSBench's workers in the
/// middle of a run (specification section 7, B15), and those that its drivers do not support.
///
/// # Errors
/// The problem and its remedy.
pub(crate) fn divided(
    kind: OperationKind,
    division: Division,
    target: &Target,
    workers: u32,
) -> Result<(), Problem> {
    let files = matches!(
        kind,
        OperationKind::FileWrite | OperationKind::MultipartFileWrite
    );
    let lists = kind == OperationKind::List;
    let divides = [
        (
            "containers",
            &target.containers,
            division == Division::Container && !lists,
        ),
        (
            "objects",
            &target.objects,
            division == Division::Object && !lists && !files,
        ),
    ];
    for (key, selector, divided) in divides {
        let range = match selector {
            Some(Selector::Uniform { lo, hi } | Selector::Range { lo, hi }) => hi - lo + 1,
            Some(Selector::Histogram(_)) if divided => {
                return Err((
                    format!("{key}: a histogram cannot be divided among workers"),
                    "use u(lo,hi), or remove division".to_owned(),
                ));
            }
            _ => continue,
        };
        if divided && range < workers {
            return Err((
                format!("{key}: {range} cannot be divided among {workers} workers"),
                "give every worker at least one, or remove division".to_owned(),
            ));
        }
    }
    Ok(())
}

fn check(kind: OperationKind, target: &Target) -> Result<(), Problem> {
    use OperationKind as K;
    if target.containers.is_none() && !matches!(kind, K::List | K::Delay) {
        return Err(missing("containers", "containers=u(1,32)"));
    }
    let files = matches!(kind, K::FileWrite | K::MultipartFileWrite);
    if files && target.files.is_none() {
        return Err(missing("files", "files=/data/files"));
    }
    if files {
        match target.file_selection {
            None => return Err(missing("fileselection", "fileselection=u")),
            Some('c' | 'u' | 'r' | 's') => {}
            Some(letter) => {
                let remedy = "begin with c, u, r or s".to_owned();
                return Err((
                    format!("fileselection: there is no selector `{letter}`"),
                    remedy,
                ));
            }
        }
    }
    let needs_objects = !files && !matches!(kind, K::List | K::Init | K::Dispose | K::Delay);
    if needs_objects && target.objects.is_none() {
        return Err(missing("objects", "objects=u(1,50)"));
    }
    let iterable = |selector: &Option<Selector>| {
        matches!(
            selector,
            None | Some(Selector::Range { .. } | Selector::Empty)
        )
    };
    if kind.loops() && !(iterable(&target.containers) && iterable(&target.objects)) {
        return Err((
            format!(
                "{} goes through its containers and objects one after another",
                kind.name()
            ),
            "write them as r(lo,hi)".to_owned(),
        ));
    }
    let empty = |selector: &Option<Selector>| *selector == Some(Selector::Empty);
    if !kind.loops() && (empty(&target.containers) || empty(&target.objects)) {
        return Err((
            format!("r(0,0) leaves {} nothing to choose from", kind.name()),
            "numbers begin at 1".to_owned(),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{OperationKind, read};
    use crate::config::Config;
    use crate::selector::Selector;

    #[test]
    fn every_kind_is_in_the_table() {
        for (kind, name, sample) in OperationKind::TABLE {
            assert_eq!(OperationKind::from_name(name), Some(kind));
            assert_eq!((kind.name(), kind.sample_type()), (name, sample));
        }
        assert_eq!(OperationKind::from_name("update"), None);
    }

    #[test]
    fn defaults_are_cosbenchs() {
        let config = Config::parse("containers=u(1,3);objects=r(1,9);sizes=c(4)KB");
        let found = read(OperationKind::Write, &config).unwrap();
        assert!(found.notes.is_empty());
        assert_eq!(found.target.cprefix, "mycontainers");
        assert_eq!(found.target.oprefix, "myobjects");
        assert_eq!(
            found.target.containers,
            Some(Selector::Uniform { lo: 1, hi: 3 })
        );
        assert!(!found.target.zeros && !found.target.hash_check && found.target.histogram);
    }

    #[test]
    fn settings_that_a_driver_would_fail_at_are_rejected() {
        for (kind, text, wanted) in [
            (
                OperationKind::Write,
                "containers=c(1);objects=c(1)",
                "sizes",
            ),
            (OperationKind::Read, "objects=c(1)", "containers"),
            (OperationKind::Read, "containers=c(1)", "objects"),
            (
                OperationKind::Read,
                "containers=r(0,0);objects=c(1)",
                "nothing",
            ),
            (
                OperationKind::Prepare,
                "containers=u(1,2);objects=r(1,2);sizes=c(1)B",
                "goes through",
            ),
            (
                OperationKind::FileWrite,
                "containers=c(1);files=/x;fileselection=z",
                "selector",
            ),
            (
                OperationKind::Read,
                "containers=c(1);objects=c(1);hashCheck=1",
                "boolean",
            ),
        ] {
            let (problem, _) = read(kind, &Config::parse(text)).err().unwrap();
            assert!(problem.contains(wanted), "{problem}");
        }
    }

    #[test]
    fn misspelt_keys_are_named() {
        let config = Config::parse("containers=c(1);objects=c(1);hashcheck=true;object=3;x");
        let found = read(OperationKind::Read, &config).unwrap();
        assert!(found.target.hash_check);
        let notes = found.notes.join("\n");
        assert!(
            notes.contains("`hashCheck`") && notes.contains("did you mean `objects`"),
            "{notes}"
        );
        assert!(notes.contains("`x` has no `=`"), "{notes}");
    }
}
