//! The driver: the library, initialised once for all load threads.

use std::ffi::{CStr, CString, c_void};
use std::fmt;
use std::ptr::null;
use std::sync::Arc;

use bucketload_core::driver::{Capabilities, Driver, DriverFacts, WorkerId};
use bucketload_core::error::OpResult;
use bucketload_core::op::OpClass;
use bucketload_core::record::{ConnectTimes, Probe};
use libs3_abi::{S3BucketContext, TokenAndRegion};

use super::call::CallState;
use super::config::{CConfig, Libs3Config, Style};
use super::library::Library;
use super::session::{CText, Libs3Session};

/// Operations that every library supports.
const REQUIRED_CLASSES: [OpClass; 11] = [
    OpClass::Get,
    OpClass::RangeGet,
    OpClass::Put,
    OpClass::Head,
    OpClass::Delete,
    OpClass::List,
    OpClass::ListV1,
    OpClass::MakeBucket,
    OpClass::HeadBucket,
    OpClass::DeleteBucket,
    OpClass::ListBuckets,
];

/// The driver of the libs3 interface.
#[derive(Clone)]
pub struct Libs3Driver {
    inner: Arc<DriverShared>,
}

bucketload_core::any_driver!(Libs3Driver);

/// State that all sessions share.
pub(super) struct DriverShared {
    pub(super) library: Library,
    pub(super) strings: CConfig,
    config: Libs3Config,
}

impl DriverShared {
    /// The library's description of a bucket. It points to strings of the driver and of `bucket`.
    pub(super) fn context(&self, bucket: &CText) -> S3BucketContext {
        let strings = &self.strings;
        let pointer = |text: &Option<CString>| text.as_deref().map_or(null(), CStr::as_ptr);
        S3BucketContext {
            host_name: pointer(&strings.host),
            bucket_name: bucket.as_ptr(),
            protocol: strings.protocol,
            uri_style: strings.style,
            access_key_id: strings.access_key.as_ptr(),
            secret_access_key: strings.secret_key.as_ptr(),
            appended: TokenAndRegion {
                security_token: pointer(&strings.session_token),
                auth_region: pointer(&strings.region),
            },
        }
    }

    /// Makes a call: `function` calls the library with the description of `bucket` and the data for callbacks. All
    /// strings and the call state live until the call returns. Without a request context the library returns only
    /// after its last callback.
    pub(super) fn make(
        &self,
        bucket: &CText,
        call: &mut CallState<'_>,
        function: impl FnOnce(&S3BucketContext, *mut c_void),
    ) -> OpResult<()> {
        function(&self.context(bucket), std::ptr::from_mut(call).cast());
        call.end(&self.library)
    }
}

impl Drop for DriverShared {
    fn drop(&mut self) {
        // SAFETY: the library was initialised, and no session is left that could call it.
        unsafe { (self.library.functions.deinitialize)() };
    }
}

impl fmt::Debug for Libs3Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Libs3Driver")
            .field("config", &self.inner.config)
            .finish_non_exhaustive()
    }
}

impl Libs3Driver {
    /// Loads and initialises the library.
    ///
    /// # Errors
    /// When the configuration cannot work, or the library cannot be loaded, has another version, or fails to
    /// initialise.
    pub fn new(config: Libs3Config) -> Result<Self, String> {
        let strings = CConfig::of(&config)?;
        let library = Library::load(&config.library)?;
        library.initialize(strings.host.as_deref()).map_err(|why| {
            let path = config.library.to_string_lossy();
            format!("{path}: S3_initialize failed: {why}")
        })?;
        Ok(Self {
            inner: Arc::new(DriverShared {
                library,
                strings,
                config,
            }),
        })
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &Libs3Config {
        &self.inner.config
    }
}

impl Driver for Libs3Driver {
    type Session = Libs3Session;

    fn capabilities(&self) -> Capabilities {
        let functions = &self.inner.library.functions;
        let mut classes = REQUIRED_CLASSES.to_vec();
        let multipart = functions.initiate_multipart.is_some()
            && functions.upload_part.is_some()
            && functions.complete_multipart.is_some();
        let further = [
            (OpClass::Copy, functions.copy_object.is_some()),
            (OpClass::MultipartPut, multipart),
            (OpClass::ListUploads, functions.list_uploads.is_some()),
        ];
        classes.extend(
            further
                .iter()
                .filter(|(_, there)| *there)
                .map(|(class, _)| *class),
        );
        Capabilities {
            classes,
            verify: true,
            connections: false,
            parts_in_flight: false,
        }
    }

    fn facts(&self) -> DriverFacts {
        let Libs3Config {
            host,
            region,
            style,
            ..
        } = &self.inner.config;
        let style = match style {
            Style::Path => "path",
            Style::VirtualHost => "virtual",
        };
        let mut settings = vec![
            ("calls".to_owned(), "block the load thread".to_owned()),
            ("addressing".to_owned(), style.to_owned()),
        ];
        if let Some(region) = region {
            settings.push(("region".to_owned(), region.clone()));
        }
        DriverFacts {
            driver: "libs3".to_owned(),
            engine: self.inner.library.path().to_string_lossy().into_owned(),
            endpoints: host.iter().cloned().collect(),
            settings,
        }
    }

    async fn open(&self, _worker: WorkerId, probe: &mut Probe) -> OpResult<Libs3Session> {
        // The library decides itself when to connect.
        probe.connected(ConnectTimes::default());
        Ok(Libs3Session::new(Arc::clone(&self.inner)))
    }
}
