//! A library that was loaded: its functions, and whether it is of the right version.

use std::ffi::{CStr, CString, OsStr, OsString, c_int};
use std::fmt;

use libloading::os::unix::{Library as Handle, RTLD_LOCAL, RTLD_NOW, Symbol};

use libs3_abi::{S3_INIT_ALL, Status};

use super::call::OK;

/// A status whose name tells the versions apart: `NotSupported` in version 4, `ErrorAccessDenied` in version 2,
/// which numbers them otherwise from here on.
const TELLING: c_int = Status::NotSupported as c_int;

/// Declares the table of functions with the symbols that they stand under.
macro_rules! functions {
    (must { $($must:ident: $must_type:ident = $must_name:literal,)* } may { $($may:ident: $may_type:ident = $may_name:literal,)* }) => {
        /// The functions of a library. What not every library has may be missing.
        pub(super) struct Functions {
            $(pub(super) $must: libs3_abi::$must_type,)*
            $(pub(super) $may: Option<libs3_abi::$may_type>,)*
        }

        impl Functions {
            fn of(handle: &Handle) -> Result<Self, String> {
                Ok(Self {
                    // SAFETY: the type is that of the function in version 4 of the interface, which the caller
                    // of `Library::load` vouches for; wrong versions are refused before anything else is called.
                    $($must: unsafe { symbol(handle, $must_name) }
                        .ok_or_else(|| format!("it has no {}", $must_name))?,)*
                    // SAFETY: as above.
                    $($may: unsafe { symbol(handle, $may_name) },)*
                })
            }
        }
    };
}

functions! {
    must {
        initialize: Initialize = "S3_initialize",
        deinitialize: Deinitialize = "S3_deinitialize",
        get_status_name: GetStatusName = "S3_get_status_name",
        list_service: ListService = "S3_list_service",
        test_bucket: TestBucket = "S3_test_bucket",
        create_bucket: CreateBucket = "S3_create_bucket",
        delete_bucket: DeleteBucket = "S3_delete_bucket",
        list_bucket: ListBucket = "S3_list_bucket",
        put_object: PutObject = "S3_put_object",
        get_object: GetObject = "S3_get_object",
        head_object: OnObject = "S3_head_object",
        delete_object: OnObject = "S3_delete_object",
    }
    may {
        copy_object: CopyObject = "S3_copy_object",
        initiate_multipart: InitiateMultipart = "S3_initiate_multipart",
        upload_part: UploadPart = "S3_upload_part",
        complete_multipart: CompleteMultipart = "S3_complete_multipart_upload",
        abort_multipart: AbortMultipart = "S3_abort_multipart_upload",
        list_uploads: ListUploads = "S3_list_multipart_uploads",
    }
}

/// The function called `name`, if the library has it.
///
/// # Safety
/// `F` must be the type of a pointer to that function.
unsafe fn symbol<F: Copy>(handle: &Handle, name: &str) -> Option<F> {
    // SAFETY: as the caller says.
    let symbol: Symbol<F> = unsafe { handle.get(name.as_bytes()) }.ok()?;
    Some(*symbol)
}

/// A library in this process. It is never unloaded: it may have threads and data of threads.
pub(super) struct Library {
    pub(super) functions: Functions,
    path: OsString,
}

impl fmt::Debug for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Library")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl Library {
    /// Loads the library `path`; a name without a slash is looked for as the dynamic linker does it.
    ///
    /// # Errors
    /// When it cannot be loaded, or is no libs3 of version 4.
    pub(super) fn load(path: &OsStr) -> Result<Self, String> {
        let named = |why: String| format!("{}: {why}", path.to_string_lossy());
        // SAFETY: code of a library that the user names runs at loading and in every call; that is what was asked
        // for, and there is no way to check it.
        let handle = unsafe { Handle::open(Some(path), RTLD_NOW | RTLD_LOCAL) }
            .map_err(|e| named(format!("it cannot be loaded: {e}")))?;
        let functions = Functions::of(&handle)
            .map_err(|why| named(format!("this is no libs3 library: {why}")))?;
        // Leaks the handle, which keeps the library loaded.
        let _ = handle.into_raw();
        let library = Self {
            functions,
            path: path.to_owned(),
        };
        if library.status_name(TELLING) == "ErrorAccessDenied" {
            return Err(named(
                "it has version 2 of the interface (soname libs3.so.2), whose functions take other arguments; \
                 use a libs3.so.4"
                    .to_owned(),
            ));
        }
        Ok(library)
    }

    /// Where it was loaded from.
    pub(super) fn path(&self) -> &OsStr {
        &self.path
    }

    /// The library's name of a status.
    pub(super) fn status_name(&self, status: c_int) -> String {
        // SAFETY: the function takes any number and may be called before the library is initialised.
        let name = unsafe { (self.functions.get_status_name)(status) };
        if name.is_null() {
            return status.to_string();
        }
        // SAFETY: it returns a static string.
        unsafe { CStr::from_ptr(name) }
            .to_string_lossy()
            .into_owned()
    }

    /// Initialises the library. It does not copy the strings, so they live as long as the process.
    ///
    /// # Errors
    /// As the library says.
    pub(super) fn initialize(&self, host: Option<&CStr>) -> Result<(), String> {
        let agent = c"bucketload";
        let host = match host {
            Some(host) => CString::into_raw(host.to_owned()).cast_const(),
            None => std::ptr::null(),
        };
        // SAFETY: two strings that are never freed, and a flag.
        let status = unsafe { (self.functions.initialize)(agent.as_ptr(), S3_INIT_ALL, host) };
        match status {
            OK => Ok(()),
            status => Err(self.status_name(status)),
        }
    }
}
