//! From method, path, query and headers to the requested operation.
//!
//! Parameters that name no subresource are ignored, as in S3 (SDKs add some, such as `x-id`).
//! Subresources that this server does not support are refused with `NotImplemented`.

use super::error::{Code, S3Error, S3Result};
use super::headers::{Headers, Name};
use super::uri::Target;

/// Declares [`Operation`] with the names that fault rules and statistics use.
macro_rules! operations {
    ($($(#[$doc:meta])* $variant:ident $name:literal,)*) => {
        /// A requested operation.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Operation { $($(#[$doc])* $variant,)* }

        impl Operation {
            /// Every operation, in the order of the statistics.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The name in fault rules and statistics.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The operation called `name`.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

operations! {
    /// GetObject, with or without a range.
    Get "get",
    /// PutObject.
    Put "put",
    /// HeadObject.
    Head "head",
    /// DeleteObject.
    Delete "delete",
    /// DeleteObjects.
    DeleteMany "delete-many",
    /// PostObject: an upload by an HTML form.
    PostForm "post-form",
    /// CopyObject.
    Copy "copy",
    /// ListObjectsV2.
    List "list",
    /// ListObjects.
    ListV1 "list-v1",
    /// ListObjectVersions.
    ListVersions "list-versions",
    /// CreateMultipartUpload.
    CreateUpload "create-upload",
    /// UploadPart.
    UploadPart "upload-part",
    /// UploadPartCopy.
    UploadPartCopy "upload-part-copy",
    /// CompleteMultipartUpload.
    CompleteUpload "complete-upload",
    /// AbortMultipartUpload.
    AbortUpload "abort-upload",
    /// ListParts.
    ListParts "list-parts",
    /// ListMultipartUploads.
    ListUploads "list-uploads",
    /// GetObjectTagging.
    GetTagging "get-tagging",
    /// PutObjectTagging.
    PutTagging "put-tagging",
    /// DeleteObjectTagging.
    DeleteTagging "delete-tagging",
    /// RestoreObject: refused, because no object is archived.
    Restore "restore",
    /// GetObjectAttributes.
    GetAttributes "get-attributes",
    /// GetObjectAcl.
    GetAcl "get-acl",
    /// PutObjectAcl and PutBucketAcl.
    PutAcl "put-acl",
    /// ListBuckets.
    ListBuckets "list-buckets",
    /// CreateBucket.
    MakeBucket "make-bucket",
    /// HeadBucket.
    HeadBucket "head-bucket",
    /// DeleteBucket.
    DeleteBucket "delete-bucket",
    /// GetBucketLocation.
    GetLocation "get-location",
    /// Reading a bucket's configuration (versioning, policy, lifecycle and the like).
    GetBucketConfig "get-bucket-config",
    /// Storing a bucket's configuration.
    PutBucketConfig "put-bucket-config",
    /// Deleting a bucket's configuration.
    DeleteBucketConfig "delete-bucket-config",
    /// Reading the retention or legal hold of a version.
    GetObjectLock "get-object-lock",
    /// Setting the retention or legal hold of a version.
    PutObjectLock "put-object-lock",
    /// The question of a browser whether it may send a request for another site (OPTIONS).
    Preflight "preflight",
    /// The server's own statistics, if enabled.
    Stats "stats",
}

/// Path of the statistics page.
pub(crate) const STATS_PATH: &str = "/-/bucketload/stats";

/// Configurations of a bucket: the subresource, and the error that reports its absence. `None` if an
/// empty document does.
pub(crate) const BUCKET_CONFIGS: [(&str, Option<Code>); 16] = [
    ("accelerate", None),
    ("acl", None),
    ("cors", Some(Code::NoSuchCORSConfiguration)),
    (
        "encryption",
        Some(Code::ServerSideEncryptionConfigurationNotFoundError),
    ),
    ("lifecycle", Some(Code::NoSuchLifecycleConfiguration)),
    ("logging", None),
    ("notification", None),
    (
        "object-lock",
        Some(Code::ObjectLockConfigurationNotFoundError),
    ),
    (
        "ownershipControls",
        Some(Code::OwnershipControlsNotFoundError),
    ),
    ("policy", Some(Code::NoSuchBucketPolicy)),
    (
        "publicAccessBlock",
        Some(Code::NoSuchPublicAccessBlockConfiguration),
    ),
    (
        "replication",
        Some(Code::ReplicationConfigurationNotFoundError),
    ),
    ("requestPayment", None),
    ("tagging", Some(Code::NoSuchTagSet)),
    ("versioning", None),
    ("website", Some(Code::NoSuchWebsiteConfiguration)),
];

/// Subresources of buckets that exist in S3 but not here.
const UNSUPPORTED_BUCKET: [&str; 8] = [
    "analytics",
    "intelligent-tiering",
    "inventory",
    "metadataConfiguration",
    "metadataTable",
    "metrics",
    "policyStatus",
    "session",
];
/// Subresources of objects that exist in S3 but not here.
const UNSUPPORTED_OBJECT: [&str; 5] = ["encryption", "renameObject", "select", "torrent", "append"];

/// The operation that a request asks for.
///
/// # Errors
/// `NotImplemented` for S3 features that this server lacks; `MethodNotAllowed`; `InvalidArgument` for
/// invalid parameters.
pub(crate) fn route(
    method: &str,
    target: &Target,
    headers: &Headers<'_, '_>,
) -> S3Result<Operation> {
    let on_object = !target.key().is_empty();
    if target.bucket().is_empty() {
        return match method {
            "GET" | "HEAD" if !on_object => Ok(Operation::ListBuckets),
            _ => Err(Code::MethodNotAllowed.into()),
        };
    }
    if method == "OPTIONS" {
        return Ok(Operation::Preflight);
    }
    if on_object {
        object(method, target, headers)
    } else {
        bucket(method, target)
    }
}

fn bucket(method: &str, target: &Target) -> S3Result<Operation> {
    refuse(target, &UNSUPPORTED_BUCKET)?;
    let config = BUCKET_CONFIGS.iter().find(|(name, _)| target.has(name));
    match method {
        "GET" if target.has("location") => Ok(Operation::GetLocation),
        "GET" if config.is_some() => Ok(Operation::GetBucketConfig),
        "GET" if target.has("uploads") => Ok(Operation::ListUploads),
        "GET" if target.has("versions") => Ok(Operation::ListVersions),
        "GET" => match target.param("list-type") {
            None => Ok(Operation::ListV1),
            Some("2") => Ok(Operation::List),
            Some(_) => Err(S3Error::new(
                Code::InvalidArgument,
                "The parameter list-type must be 2.",
            )),
        },
        "PUT" if target.has("acl") => Ok(Operation::PutAcl),
        "PUT" if config.is_some() => Ok(Operation::PutBucketConfig),
        "PUT" => Ok(Operation::MakeBucket),
        "HEAD" => Ok(Operation::HeadBucket),
        "DELETE" if config.is_some() => Ok(Operation::DeleteBucketConfig),
        "DELETE" => Ok(Operation::DeleteBucket),
        "POST" if target.has("delete") => Ok(Operation::DeleteMany),
        "POST" => Ok(Operation::PostForm),
        _ => Err(Code::MethodNotAllowed.into()),
    }
}

fn object(method: &str, target: &Target, headers: &Headers<'_, '_>) -> S3Result<Operation> {
    refuse(target, &UNSUPPORTED_OBJECT)?;
    let upload = target.has("uploadId");
    let copy = headers.has(Name::CopySource);
    match method {
        "GET" if upload => Ok(Operation::ListParts),
        "GET" if target.has("tagging") => Ok(Operation::GetTagging),
        "GET" if target.has("acl") => Ok(Operation::GetAcl),
        "GET" if target.has("attributes") => Ok(Operation::GetAttributes),
        "GET" if target.has("retention") || target.has("legal-hold") => {
            Ok(Operation::GetObjectLock)
        }
        "GET" => Ok(Operation::Get),
        "HEAD" => Ok(Operation::Head),
        "PUT" if upload && target.has("partNumber") => Ok(if copy {
            Operation::UploadPartCopy
        } else {
            Operation::UploadPart
        }),
        "PUT" if upload || target.has("partNumber") => Err(S3Error::new(
            Code::InvalidArgument,
            "The parameters uploadId and partNumber go together.",
        )),
        "PUT" if target.has("tagging") => Ok(Operation::PutTagging),
        "PUT" if target.has("acl") => Ok(Operation::PutAcl),
        "PUT" if target.has("retention") || target.has("legal-hold") => {
            Ok(Operation::PutObjectLock)
        }
        "PUT" => Ok(if copy {
            Operation::Copy
        } else {
            Operation::Put
        }),
        "DELETE" if upload => Ok(Operation::AbortUpload),
        "DELETE" if target.has("tagging") => Ok(Operation::DeleteTagging),
        "DELETE" => Ok(Operation::Delete),
        "POST" if target.has("uploads") => Ok(Operation::CreateUpload),
        "POST" if target.has("restore") => Ok(Operation::Restore),
        "POST" if upload => Ok(Operation::CompleteUpload),
        _ => Err(Code::MethodNotAllowed.into()),
    }
}

fn refuse(target: &Target, unsupported: &[&str]) -> S3Result<()> {
    match unsupported.iter().find(|name| target.has(name)) {
        Some(name) => Err(S3Error::new(
            Code::NotImplemented,
            format!("The subresource {name} is not implemented."),
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn routed(method: &str, uri: &str, copy: bool) -> Result<Operation, Code> {
        let mut target = Target::default();
        target.parse(uri, None).map_err(|e| e.code)?;
        let all = [httparse::Header {
            name: "x-amz-copy-source",
            value: b"/b/k",
        }];
        let headers = Headers::new(&all[..usize::from(copy)]).unwrap();
        route(method, &target, &headers).map_err(|e| e.code)
    }

    #[test]
    fn every_request_finds_its_operation() {
        use Operation::*;
        for (method, uri, want) in [
            ("GET", "/", ListBuckets),
            ("GET", "/?x-id=ListBuckets", ListBuckets),
            ("PUT", "/b", MakeBucket),
            ("PUT", "/b/", MakeBucket),
            ("HEAD", "/b", HeadBucket),
            ("DELETE", "/b", DeleteBucket),
            ("GET", "/b?location", GetLocation),
            ("GET", "/b?versioning=", GetBucketConfig),
            ("PUT", "/b?versioning", PutBucketConfig),
            ("PUT", "/b/k?retention&versionId=1", PutObjectLock),
            ("GET", "/b?acl", GetBucketConfig),
            ("DELETE", "/b?lifecycle", DeleteBucketConfig),
            ("PUT", "/b?acl", PutAcl),
            ("GET", "/b", ListV1),
            ("GET", "/b?prefix=list-type", ListV1),
            ("GET", "/b/?list-type=2&prefix=x", List),
            ("GET", "/b?versions", ListVersions),
            ("GET", "/b?uploads", ListUploads),
            ("POST", "/b?delete", DeleteMany),
            ("POST", "/b", PostForm),
            ("GET", "/b/k", Get),
            ("GET", "/b/k?partNumber=2&versionId=null", Get),
            ("HEAD", "/b/k", Head),
            ("PUT", "/b/k?x-id=PutObject", Put),
            ("DELETE", "/b/k", Delete),
            ("GET", "/b/k?uploadId=u", ListParts),
            ("PUT", "/b/k?uploadId=u&partNumber=1", UploadPart),
            ("POST", "/b/k?uploads", CreateUpload),
            ("POST", "/b/k?uploadId=u", CompleteUpload),
            ("DELETE", "/b/k?uploadId=u", AbortUpload),
            ("GET", "/b/k?tagging", GetTagging),
            ("PUT", "/b/k?tagging", PutTagging),
            ("DELETE", "/b/k?tagging", DeleteTagging),
            ("POST", "/b/k?restore", Restore),
            ("GET", "/b/k?attributes", GetAttributes),
            ("GET", "/b/k?acl", GetAcl),
            ("PUT", "/b/k?acl", PutAcl),
            ("GET", "/b/k?legal-hold", GetObjectLock),
            ("OPTIONS", "/b/k?versionId=null", Preflight),
            ("OPTIONS", "/b", Preflight),
        ] {
            assert_eq!(routed(method, uri, false), Ok(want), "{method} {uri}");
        }
        assert_eq!(routed("PUT", "/b/k", true), Ok(Copy));
        assert_eq!(
            routed("PUT", "/b/k?uploadId=u&partNumber=1", true),
            Ok(UploadPartCopy)
        );
        for (method, uri, want) in [
            ("PATCH", "/b/k", Code::MethodNotAllowed),
            ("POST", "/b/k", Code::MethodNotAllowed),
            ("PUT", "/", Code::MethodNotAllowed),
            ("GET", "/b?inventory", Code::NotImplemented),
            ("GET", "/b/k?torrent", Code::NotImplemented),
            ("POST", "/b/k?select&select-type=2", Code::NotImplemented),
            ("GET", "/b?list-type=3", Code::InvalidArgument),
            ("PUT", "/b/k?uploadId=u", Code::InvalidArgument),
        ] {
            assert_eq!(routed(method, uri, false), Err(want), "{method} {uri}");
        }
    }

    #[test]
    fn names_are_unique() {
        for &operation in Operation::ALL {
            assert_eq!(Operation::from_name(operation.name()), Some(operation));
        }
    }

    proptest! {
        #[test]
        fn any_request_is_safe(method in "\\PC{0,8}", uri in "/[a-z/?&=%.]{0,40}", copy: bool) {
            let _ = routed(&method, &uri, copy);
        }
    }
}
