//! The checks, in the order of the report.

use std::future::Future;
use std::pin::Pin;

use bucketload_core::op::OpClass;

use super::lab::Lab;
use super::verdict::Verdict;
use super::{access, conditions, deletion, extras, listing, multipart, objects};

type Running<'l> = Pin<Box<dyn Future<Output = Verdict> + 'l>>;

/// One check.
pub(super) struct Check {
    /// Its name, for scripts and dialects.
    pub(super) id: &'static str,
    /// What it asks.
    pub(super) asks: &'static str,
    /// Checks that must work before this one says anything.
    pub(super) needs: &'static [&'static str],
    /// What to do if it differs or fails.
    pub(super) remedy: &'static str,
    /// Operations that workloads must not use if it differs.
    pub(super) refuses: &'static [OpClass],
    pub(super) run: for<'l> fn(&'l mut Lab) -> Running<'l>,
}

/// Declares checks: `id: "asks", needs [...], refuses [...], remedy "...", function;`.
macro_rules! checks {
    ($($id:literal: $asks:literal, needs [$($need:literal),*], refuses [$($class:ident),*], $remedy:literal, $run:path;)+) => {
        pub(super) const CHECKS: &[Check] = &[$(Check {
            id: $id,
            asks: $asks,
            needs: &[$($need),*],
            remedy: $remedy,
            refuses: &[$(OpClass::$class),*],
            run: |lab| Box::pin($run(lab)),
        }),+];
    };
}

checks! {
    "region": "the region that requests are signed for", needs [], refuses [],
        "set the region with --region or the dialect", access::region;
    "signature": "a signed request", needs ["region"], refuses [],
        "check access key and secret key (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, --profile)", access::signature;
    "addressing": "the bucket in the path or in the host name", needs ["signature"], refuses [],
        "set it with --addressing or the dialect", access::addressing;
    "bucket": "the bucket", needs ["addressing"], refuses [],
        "create the bucket, or allow it with --create-bucket (run has the same flag)", access::bucket;
    "list": "the right to list", needs ["bucket"], refuses [List, ListV1],
        "grant s3:ListBucket on the bucket; without it, a run cannot clean up", access::list;
    "put": "the right to write, as a run writes", needs ["bucket"], refuses [],
        "grant s3:PutObject below the prefix", objects::put;
    "list-v2": "ListObjectsV2", needs ["list"], refuses [List],
        "measure listings with list-v1; clean-up uses V1 by itself", listing::version_2;
    "list-v1": "ListObjects (V1)", needs ["list"], refuses [ListV1],
        "measure listings with list", listing::version_1;
    "etag": "an ETag in the answer to PUT", needs ["put"], refuses [MultipartPut],
        "none: clients cannot complete uploads or make conditional requests", objects::etag;
    "get": "the content of the object just written", needs ["put"], refuses [Get, RangeGet],
        "grant s3:GetObject, or repair the server: content must be whole", objects::get;
    "read-after-write": "a new object at once", needs ["get"], refuses [],
        "workloads that read what they have just written will fail: prepare objects beforehand", objects::read_after_write;
    "read-after-overwrite": "the new content at once", needs ["get"], refuses [],
        "stale reads are reported as such by --oracle; do not verify workloads that overwrite", objects::read_after_overwrite;
    "head": "HEAD of an object", needs ["put"], refuses [Head],
        "leave head out of the mix", objects::head;
    "metadata": "user metadata (x-amz-meta-*)", needs ["put"], refuses [],
        "nothing in Bucketload needs it; other clients may", objects::metadata;
    "range": "a range of bytes", needs ["get"], refuses [RangeGet],
        "leave range-get out of the mix", objects::range;
    "range-suffix": "the last bytes (bytes=-N)", needs ["range"], refuses [],
        "nothing in Bucketload needs it; readers of Parquet and ZIP do", objects::range_suffix;
    "range-unsatisfiable": "status 416 for a range past the end", needs ["range"], refuses [],
        "keep ranges inside the objects: past their end, this server sends something else", objects::range_unsatisfiable;
    "get-conditions": "GET with If-None-Match and If-Match", needs ["get", "etag"], refuses [],
        "caches in front of this server cannot revalidate", conditions::get;
    "put-if-none-match": "PUT with If-None-Match: *", needs ["put"], refuses [PutIfAbsent],
        "leave put-if-absent out of the mix", conditions::put_if_none_match;
    "put-if-match": "PUT with If-Match", needs ["put"], refuses [],
        "nothing in Bucketload needs it; table formats (Iceberg, Delta) do", conditions::put_if_match;
    "content-md5": "whether a wrong Content-MD5 is refused", needs ["put"], refuses [],
        "damage on the way is not noticed by Content-MD5: use --checksum, if the server checks it", conditions::content_md5;
    "payload-hash": "whether a wrong x-amz-content-sha256 is refused", needs ["put"], refuses [],
        "signing the payload protects nothing here: use TLS", conditions::payload_hash;
    "checksum": "x-amz-checksum-*: checked, stored, returned", needs ["put"], refuses [],
        "leave out --checksum: it costs time and protects nothing here", conditions::checksum;
    "checksum-trailer": "checksums after the body (aws-chunked)", needs ["put"], refuses [],
        "use --payload-signing unsigned or signed (the default needs nothing)", conditions::trailer;
    "list-complete": "all keys in a listing", needs ["put", "list"], refuses [List, ListV1],
        "listings cannot be trusted: check that clean-up has removed everything", listing::complete;
    "list-after-write": "new keys in the listing at once", needs ["list-complete"], refuses [],
        "leave some seconds between writing and listing", listing::after_write;
    "list-order": "keys in the order of their bytes", needs ["list-complete"], refuses [],
        "programs that page by key may skip or repeat keys", listing::order;
    "list-max-keys": "pages no longer than asked for", needs ["list-complete"], refuses [],
        "the page size of list operations has no effect here", listing::max_keys;
    "list-paging": "all pages of a listing", needs ["list-max-keys"], refuses [List, ListV1],
        "listings end early: check that clean-up has removed everything", listing::paging;
    "list-delimiter": "folders by delimiter", needs ["list-complete"], refuses [],
        "leave the delimiter out of list operations", listing::delimiter;
    "list-encoding": "encoding-type=url", needs ["list-complete"], refuses [],
        "keys with control characters cannot be listed", listing::encoding;
    "keys": "keys with blanks, +, % and letters beyond ASCII", needs ["put"], refuses [],
        "use keys of plain letters, digits and -._/", listing::keys;
    "copy": "copies on the server", needs ["put"], refuses [Copy],
        "leave copy out of the mix", extras::copy;
    "tagging": "tags of an object", needs ["put"], refuses [PutTagging, GetTagging, DeleteTagging],
        "leave the tagging operations out of the mix", extras::tagging;
    "append": "appends at the end of an object", needs ["put", "get", "read-after-overwrite"], refuses [Append],
        "leave append out of the mix: it does not do here what it says", extras::append;
    "versioning": "whether the bucket keeps versions", needs ["bucket"], refuses [],
        "every overwrite and delete leaves a version: use a bucket without versioning, or a lifecycle rule", extras::versioning;
    "errors": "an error as an XML document with its code", needs ["bucket"], refuses [],
        "failures are told apart by their status only", extras::errors;
    "multipart-create": "the start of a multipart upload", needs ["put"],
        refuses [MultipartPut, MultipartCopy, MultipartAbort],
        "write objects in one request (up to 5 GiB)", multipart::create;
    "multipart-part": "a part", needs ["multipart-create"], refuses [MultipartPut, MultipartCopy],
        "write objects in one request (up to 5 GiB)", multipart::part;
    "multipart-list-parts": "the parts of an upload", needs ["multipart-part"], refuses [],
        "nothing in Bucketload needs it; clients that resume uploads do", multipart::list_parts;
    "multipart-complete": "the object of the parts", needs ["multipart-part", "etag"], refuses [MultipartPut, MultipartCopy],
        "write objects in one request (up to 5 GiB)", multipart::complete;
    "multipart-abort": "the end of an upload without an object", needs ["multipart-create"], refuses [MultipartAbort],
        "unfinished uploads stay and take space: ask the server's operator for a way to remove them", multipart::abort;
    "delete": "the right to delete", needs ["put"], refuses [Delete, DeleteMany],
        "grant s3:DeleteObject below the prefix; without it, a run cannot clean up", deletion::delete;
    "delete-missing": "success for the deletion of a missing key", needs ["delete"], refuses [],
        "deletions of keys that are gone count as not found", deletion::delete_missing;
    "delete-many": "DeleteObjects", needs ["delete"], refuses [DeleteMany],
        "leave delete-many out of the mix", deletion::delete_many;
}
