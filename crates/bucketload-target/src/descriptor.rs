//! How a driver describes itself, and the list of all drivers.

use std::ffi::OsStr;
use std::path::Path;

use bucketload_core::driver::AnyDriver;

use crate::doctor::Doctor;
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

/// A configuration file that the driver reads. The coordinator sends its contents to agents.
pub struct ConfigFile {
    /// The environment variable that holds its path.
    pub variable: &'static str,
    /// Its path below the home folder when the variable is not set; empty for no default.
    pub below_home: &'static str,
    /// Cuts the contents down to what this request needs.
    pub part: fn(Vec<u8>, &OpenRequest<'_>) -> Vec<u8>,
}

impl ConfigFile {
    /// A file whose whole contents are needed.
    #[must_use]
    pub const fn whole(variable: &'static str, below_home: &'static str) -> Self {
        Self {
            variable,
            below_home,
            part: |contents, _| contents,
        }
    }
}

/// A driver's description of itself.
pub struct Descriptor {
    /// Its name in results.
    pub name: &'static str,
    /// The schemes of its URLs, the preferred one first.
    pub schemes: &'static [&'static str],
    /// The form of its URLs.
    pub form: UrlForm,
    /// Its page in the manual, below `docs`.
    pub page: &'static str,
    /// What its operations do.
    pub semantics: Semantics,
    /// The flags that it reads.
    pub flags: &'static [&'static [&'static Flag]],
    /// The flags whose values a dialect may set.
    pub dialect: &'static [&'static Flag],
    /// Environment variables that hold the endpoint, shown in the command that cleans up after a run.
    pub endpoint_variables: &'static [&'static str],
    /// Configuration files that it reads.
    pub files: &'static [ConfigFile],
    /// The secret that requests carry in the clear, such as a token; `None` if requests are signed.
    pub secret: Option<&'static str>,
    /// Checks the bucket's name, for drivers to which a malformed name would mean something else.
    pub check_bucket: fn(&str) -> Result<(), String>,
    /// Creates the driver. Sends nothing yet, unless the driver signs in.
    pub open: fn(&OpenRequest<'_>) -> Result<Service, OpenError>,
    /// The effective settings and where each comes from.
    pub origins: fn(&OpenRequest<'_>) -> Result<Vec<Origin>, OpenError>,
    /// Refuses a clean-up of the bucket if the driver cannot list the objects that earlier runs left.
    pub check_cleanup: fn(&OpenRequest<'_>, &str) -> Result<(), OpenError>,
    /// Examines the service for `bucketload doctor`, as far as its sessions cannot.
    pub doctor: Doctor,
}

impl Descriptor {
    /// The preferred scheme.
    #[must_use]
    pub const fn scheme(&self) -> &'static str {
        self.schemes[0]
    }

    /// The flags that it reads.
    pub fn flags(&self) -> impl Iterator<Item = &'static Flag> + use<> {
        self.flags.iter().copied().flatten().copied()
    }

    /// True if the driver reads `flag`.
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

/// Allows every clean-up, for drivers that can list whatever earlier runs left.
///
/// # Errors
/// Never.
pub const fn any_cleanup(_: &OpenRequest<'_>, _: &str) -> Result<(), OpenError> {
    Ok(())
}

/// The drivers of a program.
pub struct Registry {
    /// Every driver, in the order of help texts.
    pub drivers: &'static [&'static Descriptor],
    /// Schemes of drivers that this build leaves out, and how to get them.
    pub absent: &'static [(&'static str, &'static str)],
    /// Clients that this build leaves out: name and cargo feature.
    pub absent_engines: &'static [(&'static str, &'static str)],
    /// The flags that choose the client and that client's own retries.
    pub engine: [&'static Flag; 2],
    /// Creates the driver whose operations do nothing.
    pub null: fn() -> AnyDriver,
    /// Fails with the reason if a libs3 library cannot be used.
    pub check_library: fn(&OsStr) -> Result<(), String>,
    /// Look up which nodes hold an object.
    pub locators: Locators,
}

impl Registry {
    /// The driver of URLs with `scheme`.
    #[must_use]
    pub fn by_scheme(&self, scheme: &str) -> Option<&'static Descriptor> {
        let mut all = self.drivers.iter().copied();
        all.find(|driver| driver.schemes.contains(&scheme))
    }

    /// The driver with this name in results.
    #[must_use]
    pub fn by_name(&self, name: &str) -> Option<&'static Descriptor> {
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

/// [`OpenRequest::directory`] of requests whose URL names no directory.
#[must_use]
pub fn no_directory() -> &'static Path {
    Path::new("")
}
