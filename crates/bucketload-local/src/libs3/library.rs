//! A loaded library: its functions, and the check of its version.

use std::ffi::{CStr, CString, OsStr, OsString, c_int};
use std::fmt;

use libloading::os::unix::{Library as Handle, RTLD_LOCAL, RTLD_NOW, Symbol};

use libs3_abi::{S3_INIT_ALL, Status};

use super::call::OK;

/// A status whose name distinguishes the versions: `NotSupported` in version 4, `ErrorAccessDenied` in version 2,
/// whose numbers differ from here on.
const VERSION_STATUS: c_int = Status::NotSupported as c_int;

/// Declares the table of functions with their symbols.
macro_rules! functions {
    (required { $($required:ident: $required_type:ident = $required_name:literal,)* }
     optional { $($optional:ident: $optional_type:ident = $optional_name:literal,)* }) => {
        /// The functions of a library.
        pub(super) struct Functions {
            $(pub(super) $required: libs3_abi::$required_type,)*
            $(pub(super) $optional: Option<libs3_abi::$optional_type>,)*
        }

        impl Functions {
            fn of(handle: &Handle) -> Result<Self, String> {
                Ok(Self {
                    // SAFETY: the type is that of the function in version 4 of the interface, for which the user
                    // of `Library::load` vouches; `load` refuses other versions before it calls anything else.
                    $($required: unsafe { symbol(handle, $required_name) }
                        .ok_or_else(|| format!("it has no {}", $required_name))?,)*
                    // SAFETY: as above.
                    $($optional: unsafe { symbol(handle, $optional_name) },)*
                })
            }
        }
    };
}

functions! {
    required {
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
    optional {
        copy_object: CopyObject = "S3_copy_object",
        initiate_multipart: InitiateMultipart = "S3_initiate_multipart",
        upload_part: UploadPart = "S3_upload_part",
        complete_multipart: CompleteMultipart = "S3_complete_multipart_upload",
        abort_multipart: AbortMultipart = "S3_abort_multipart_upload",
        list_uploads: ListUploads = "S3_list_multipart_uploads",
    }
}

/// The function `name`, if the library has it.
///
/// # Safety
/// `F` must be the type of a pointer to that function.
unsafe fn symbol<F: Copy>(handle: &Handle, name: &str) -> Option<F> {
    // SAFETY: as the caller guarantees.
    let symbol: Symbol<F> = unsafe { handle.get(name.as_bytes()) }.ok()?;
    Some(*symbol)
}

/// A library in this process. It is never unloaded, since it may own threads and thread-local data.
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
    /// Loads the library `path`; the dynamic linker searches for a name without a slash.
    ///
    /// # Errors
    /// When it cannot be loaded, or is not a libs3 library of version 4.
    pub(super) fn load(path: &OsStr) -> Result<Self, String> {
        let named = |why: String| format!("{}: {why}", path.to_string_lossy());
        // SAFETY: loading and every call run code of a library that the user names. That is the purpose of this
        // driver, and the code cannot be checked.
        let handle = unsafe { Handle::open(Some(path), RTLD_NOW | RTLD_LOCAL) }
            .map_err(|e| named(format!("it cannot be loaded: {e}")))?;
        let functions = Functions::of(&handle)
            .map_err(|why| named(format!("this is not a libs3 library: {why}")))?;
        // Leaks the handle, which keeps the library loaded.
        let _ = handle.into_raw();
        let library = Self {
            functions,
            path: path.to_owned(),
        };
        if library.status_name(VERSION_STATUS) == "ErrorAccessDenied" {
            return Err(named(
                "it has version 2 of the interface (soname libs3.so.2), whose functions have other arguments; \
                 use a libs3.so.4"
                    .to_owned(),
            ));
        }
        Ok(library)
    }

    /// The path or name from which it was loaded.
    pub(super) fn path(&self) -> &OsStr {
        &self.path
    }

    /// The library's name of a status.
    pub(super) fn status_name(&self, status: c_int) -> String {
        // SAFETY: the function accepts any number and may be called before the library is initialised.
        let name = unsafe { (self.functions.get_status_name)(status) };
        if name.is_null() {
            return status.to_string();
        }
        // SAFETY: it returns a static string.
        unsafe { CStr::from_ptr(name) }
            .to_string_lossy()
            .into_owned()
    }

    /// Initialises the library. The library does not copy the strings, so they are never freed.
    ///
    /// # Errors
    /// The name of the library's status.
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
