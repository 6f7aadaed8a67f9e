//! What a driver says of itself, and the list of all drivers.

use std::ffi::OsStr;
use std::path::Path;

use bucketload_core::driver::AnyDriver;

use crate::{Flag, Locators, OpenError, OpenRequest, Origin, Semantics};

/// A driver and where its requests go.
pub struct Service {
    /// The driver.
    pub driver: AnyDriver,
    /// URLs of the service's endpoints.
    pub endpoints: Vec<String>,
}

/// The form of a driver's URLs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UrlForm {
    /// `SCHEME://BUCKET/PREFIX`.
    Bucket,
    /// The same, or `SCHEME://HOST:PORT/BUCKET/PREFIX`.
    ServerAndBucket,
    /// `SCHEME:///DIRECTORY`.
    Directory,
}

/// A file that settings are read from, whose contents agents get.
pub struct ConfigFile {
    /// The variable that names it.
    pub variable: &'static str,
    /// Where it lies below the home folder unless the variable is set; empty for no such place.
    pub below_home: &'static str,
    /// The part of the contents that this request needs.
    pub part: fn(Vec<u8>, &OpenRequest<'_>) -> Vec<u8>,
}

impl ConfigFile {
    /// A file that is needed as a whole.
    #[must_use]
    pub const fn whole(variable: &'static str, below_home: &'static str) -> Self {
        Self {
            variable,
            below_home,
            part: |contents, _| contents,
        }
    }
}

/// What a driver says of itself.
pub struct Descriptor {
    /// Its name in results.
    pub name: &'static str,
    /// The schemes of its URLs, the usual one first.
    pub schemes: &'static [&'static str],
    /// The form of its URLs.
    pub form: UrlForm,
    /// Its page in the manual, below `docs`.
    pub page: &'static str,
    /// What its operations mean.
    pub semantics: Semantics,
    /// The flags that mean something for it.
    pub flags: &'static [&'static [&'static Flag]],
    /// Variables that name the endpoint, for the command that cleans up after a run.
    pub endpoint_variables: &'static [&'static str],
    /// Files that settings are read from.
    pub files: &'static [ConfigFile],
    /// The secret that its requests carry as it is, such as a token; `None` where requests are signed.
    pub secret: Option<&'static str>,
    /// Checks the bucket's name, where a wrong one would mean something else.
    pub check_bucket: fn(&str) -> Result<(), String>,
    /// Makes the driver. Nothing is sent yet, unless the driver signs in.
    pub open: fn(&OpenRequest<'_>) -> Result<Service, OpenError>,
    /// The effective settings and where each comes from.
    pub origins: fn(&OpenRequest<'_>) -> Result<Vec<Origin>, OpenError>,
    /// Refuses a clean-up where what earlier runs left in the bucket cannot be listed.
    pub check_cleanup: fn(&OpenRequest<'_>, &str) -> Result<(), OpenError>,
}

impl Descriptor {
    /// The usual scheme.
    #[must_use]
    pub const fn scheme(&self) -> &'static str {
        self.schemes[0]
    }

    /// The flags that mean something for it.
    pub fn flags(&self) -> impl Iterator<Item = &'static Flag> + use<> {
        self.flags.iter().copied().flatten().copied()
    }

    /// Whether `flag` means something for it.
    #[must_use]
    pub fn reads(&self, flag: &Flag) -> bool {
        self.flags().any(|known| known.name == flag.name)
    }
}

/// Accepts every bucket name.
///
/// # Errors
/// Never.
pub const fn any_bucket(_: &str) -> Result<(), String> {
    Ok(())
}

/// What earlier runs left can be listed.
///
/// # Errors
/// Never.
pub const fn sees_all(_: &OpenRequest<'_>, _: &str) -> Result<(), OpenError> {
    Ok(())
}

/// The drivers of a program.
pub struct Registry {
    /// Every driver, in the order of help texts.
    pub drivers: &'static [&'static Descriptor],
    /// Schemes of drivers that this build is without, and what to do.
    pub absent: &'static [(&'static str, &'static str)],
    /// Clients that this build is without: name and cargo feature.
    pub absent_engines: &'static [(&'static str, &'static str)],
    /// The flags that choose the client: its name, and its own retries.
    pub engine: [&'static Flag; 2],
    /// The driver of operations that do nothing.
    pub null: fn() -> AnyDriver,
    /// Says why a libs3 library cannot be used.
    pub check_library: fn(&OsStr) -> Result<(), String>,
    /// Where stores keep objects.
    pub locators: Locators,
}

impl Registry {
    /// The driver of URLs with `scheme`.
    #[must_use]
    pub fn of_scheme(&self, scheme: &str) -> Option<&'static Descriptor> {
        let mut all = self.drivers.iter().copied();
        all.find(|driver| driver.schemes.contains(&scheme))
    }

    /// The driver called `name` in results.
    #[must_use]
    pub fn called(&self, name: &str) -> Option<&'static Descriptor> {
        self.drivers
            .iter()
            .copied()
            .find(|driver| driver.name == name)
    }

    /// Every flag of any driver, each once.
    #[must_use]
    pub fn flags(&self) -> Vec<&'static Flag> {
        let mut all: Vec<&'static Flag> = Vec::new();
        for flag in self.drivers.iter().flat_map(|driver| driver.flags()) {
            if !all.iter().any(|known| known.name == flag.name) {
                all.push(flag);
            }
        }
        all
    }
}

/// The directory of requests without one.
#[must_use]
pub fn no_directory() -> &'static Path {
    Path::new("")
}
