//! The calls of [`bucketload_store::Store`], with bodies as slices, readers or downloads.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bucketload_store::{
    BucketInfo, Commit, CompletedPart, Condition, ListRequest, ListUploadsRequest, Listing,
    MultipartOptions, ObjectInfo, PartListing, ReadConditions, UploadListing, Written,
};

use super::connection::{Answer, RequestBody};
use super::download::{Download, Source};
use super::error::{Error, Result};
use super::files;
use super::options::Options;
use super::pipeline::Pipeline;
use super::pool::{Lease, Pool};
use crate::protocol::codec::{Malformed, Value, decode_all};
use crate::protocol::request::{ByteRange, Name, ReadMode, Request, UploadName};
use crate::protocol::values::Buckets;
use crate::protocol::{GetFileHead, GetHead, Outcome};

/// A client of one gateway. Cloning is cheap, and clones share the connections. All calls block, and any number of
/// threads may make calls at once.
///
/// # Errors
/// Every call returns [`Error::Store`] when the store fails (see [`bucketload_store::Store`]), or another [`Error`].
/// This is not repeated below.
#[derive(Clone, Debug)]
pub struct Client {
    pool: Arc<Pool>,
    limit: Option<Duration>,
}

impl Client {
    /// Makes a client that connects with its first call.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self {
            pool: Arc::new(Pool::new(options)),
            limit: None,
        }
    }

    /// Makes a client and connects once, so that a wrong address or token shows at once.
    ///
    /// # Errors
    /// [`Error::Connect`], [`Error::Refused`].
    pub fn connect(options: Options) -> Result<Self> {
        let client = Self::new(options);
        drop(client.lease()?);
        Ok(client)
    }

    /// Returns the same client with a time limit for each whole call (`None`: no limit). The limit of a download lasts
    /// until its last byte.
    #[must_use]
    pub fn limited(&self, limit: Option<Duration>) -> Self {
        Self {
            pool: Arc::clone(&self.pool),
            limit,
        }
    }

    /// Takes a connection for one call.
    pub(super) fn lease(&self) -> Result<Lease> {
        Pool::lease(&self.pool, self.limit)
    }

    /// Sends a request and reads the head of its answer.
    fn call<T: for<'d> Value<'d>>(
        &self,
        request: &Request<'_>,
        body: RequestBody<'_>,
    ) -> Result<T> {
        let mut lease = self.lease()?;
        let result = lease
            .send(request, body)
            .and_then(|()| lease.receive())
            .and_then(|answer| finish(&mut lease, &answer));
        lease.keep_or_close(result)
    }

    fn simple<T: for<'d> Value<'d>>(&self, request: &Request<'_>) -> Result<T> {
        self.call(request, RequestBody::None)
    }

    /// Lists all buckets in order of their names.
    pub fn list_buckets(&self) -> Result<Vec<BucketInfo>> {
        let Buckets(all) = self.simple(&Request::ListBuckets)?;
        Ok(all)
    }

    /// Creates a bucket.
    pub fn create_bucket(&self, bucket: &str) -> Result<()> {
        self.simple(&Request::CreateBucket(bucket))
    }

    /// Returns information about a bucket; [`bucketload_store::StoreError::NoSuchBucket`] if it does not exist.
    pub fn head_bucket(&self, bucket: &str) -> Result<BucketInfo> {
        self.simple(&Request::HeadBucket(bucket))
    }

    /// Deletes an empty bucket.
    pub fn delete_bucket(&self, bucket: &str) -> Result<()> {
        self.simple(&Request::DeleteBucket(bucket))
    }

    /// Lists one page of a bucket's keys, of at most [`MAX_PAGE`](crate::MAX_PAGE) entries whatever `max_keys` is. The
    /// next page begins at [`Listing::next`].
    pub fn list(&self, bucket: &str, request: &ListRequest<'_>) -> Result<Listing> {
        self.simple(&Request::List(bucket, *request))
    }

    /// Writes an object with the contents `body`.
    pub fn put(&self, bucket: &str, key: &str, body: &[u8], commit: Commit) -> Result<Written> {
        let request = Request::Put(Name { bucket, key }, None, commit);
        self.call(&request, RequestBody::Slice(body))
    }

    /// Writes an object with the next `size` bytes of `body`, read in pieces of at most 256 KiB. `content_md5` is the
    /// digest that the bytes must have. If `body` fails or ends early, nothing is written and the error is
    /// [`Error::Body`].
    pub fn put_from(
        &self,
        bucket: &str,
        key: &str,
        size: u64,
        body: &mut dyn Read,
        content_md5: Option<[u8; 16]>,
        commit: Commit,
    ) -> Result<Written> {
        let name = Name { bucket, key };
        if size >= files::MIN_FILE_BYTES
            && content_md5.is_none()
            && self.pool.files.load(Ordering::Relaxed)
        {
            let mut lease = self.lease()?;
            let result = self.put_to_file(&mut lease, name, size, body, &commit);
            if let Some(written) = lease.keep_or_close(result)? {
                return Ok(written);
            }
            // The gateway would refuse the next time too.
            self.pool.files.store(false, Ordering::Relaxed);
        }
        let request = Request::Put(name, content_md5, commit);
        self.call(&request, RequestBody::Reader(size, body))
    }

    /// Opens an object, or a range of it, for reading. Fails with [`Error::NotModified`] or
    /// [`bucketload_store::StoreError::PreconditionFailed`] if a condition does not hold, and with
    /// [`bucketload_store::StoreError::InvalidRange`] if the range begins at or beyond the end.
    pub fn get(
        &self,
        bucket: &str,
        key: &str,
        range: Option<ByteRange>,
        conditions: ReadConditions,
    ) -> Result<Download> {
        let name = Name { bucket, key };
        let mut lease = self.lease()?;
        if !lease.is_unix() {
            let request = Request::Get(name, range, conditions, ReadMode::Body);
            return open(lease, &request);
        }
        let request = Request::Get(name, range, conditions.clone(), ReadMode::File);
        let result = lease.send(&request, RequestBody::None).and_then(|()| {
            let (answer, file) = lease.receive_with_file()?;
            let head = Answer { body: 0, ..answer };
            let ((info, start), by_file): GetFileHead = finish(&mut lease, &head)?;
            if by_file.is_some() && answer.body != 0 {
                return Err(Malformed("a body in addition to a file").into());
            }
            Ok((info, start, by_file, answer.body, files::regular(file)))
        });
        match lease.keep_or_close(result)? {
            (info, start, None, length, _) => Ok(Download::new(
                Source::Connection(lease),
                info,
                start,
                length,
            )),
            (info, start, Some(length), _, Some(file)) => {
                let deadline = lease.deadline();
                Ok(Download::new(
                    Source::File(file, deadline),
                    info,
                    start,
                    length,
                ))
            }
            // The file did not arrive: this process may be out of descriptors.
            (_, _, Some(_), _, None) => open(
                lease,
                &Request::Get(name, range, conditions, ReadMode::Body),
            ),
        }
    }

    /// Returns information about an object.
    pub fn head(&self, bucket: &str, key: &str) -> Result<ObjectInfo> {
        self.head_if(bucket, key, ReadConditions::default())
    }

    /// Returns information about an object under conditions, which fail like those of [`Client::get`].
    pub fn head_if(
        &self,
        bucket: &str,
        key: &str,
        conditions: ReadConditions,
    ) -> Result<ObjectInfo> {
        self.simple(&Request::Head(Name { bucket, key }, conditions))
    }

    /// Deletes an object. Returns whether it existed; S3 reports success in both cases.
    pub fn delete(&self, bucket: &str, key: &str, condition: Condition) -> Result<bool> {
        self.simple(&Request::Delete(Name { bucket, key }, condition))
    }

    /// Copies an object within the store. `commit` replaces headers and tags; `None` keeps those of the source.
    pub fn copy(
        &self,
        source_bucket: &str,
        source_key: &str,
        conditions: ReadConditions,
        bucket: &str,
        key: &str,
        commit: Option<Commit>,
    ) -> Result<Written> {
        let source = Name {
            bucket: source_bucket,
            key: source_key,
        };
        self.simple(&Request::Copy(
            source,
            conditions,
            Name { bucket, key },
            commit,
        ))
    }

    /// Begins a multipart upload and returns its id.
    pub fn create_multipart(
        &self,
        bucket: &str,
        key: &str,
        options: MultipartOptions,
    ) -> Result<String> {
        self.simple(&Request::CreateMultipart(Name { bucket, key }, options))
    }

    /// Writes part `number` (1 to [`bucketload_store::MAX_PARTS`]) with the next `size` bytes of `body`, like
    /// [`Client::put_from`].
    pub fn upload_part_from(
        &self,
        bucket: &str,
        key: &str,
        upload_id: &str,
        number: u32,
        size: u64,
        body: &mut dyn Read,
        content_md5: Option<[u8; 16]>,
    ) -> Result<Written> {
        let request = Request::UploadPart(upload(bucket, key, upload_id), number, content_md5);
        self.call(&request, RequestBody::Reader(size, body))
    }

    /// Writes part `number` with the contents `body`.
    pub fn upload_part(
        &self,
        bucket: &str,
        key: &str,
        upload_id: &str,
        number: u32,
        body: &[u8],
    ) -> Result<Written> {
        let request = Request::UploadPart(upload(bucket, key, upload_id), number, None);
        self.call(&request, RequestBody::Slice(body))
    }

    /// Writes part `number` as a copy of an object, or of a range of it.
    pub fn copy_part(
        &self,
        source_bucket: &str,
        source_key: &str,
        range: Option<ByteRange>,
        bucket: &str,
        key: &str,
        upload_id: &str,
        number: u32,
    ) -> Result<Written> {
        let source = Name {
            bucket: source_bucket,
            key: source_key,
        };
        let request = Request::CopyPart(source, range, upload(bucket, key, upload_id), number);
        self.simple(&request)
    }

    /// Assembles the object from the given parts.
    pub fn complete_multipart(
        &self,
        bucket: &str,
        key: &str,
        upload_id: &str,
        parts: &[CompletedPart],
        condition: Condition,
    ) -> Result<Written> {
        let request = Request::Complete(upload(bucket, key, upload_id), parts.to_vec(), condition);
        self.simple(&request)
    }

    /// Discards an upload and its parts.
    pub fn abort_multipart(&self, bucket: &str, key: &str, upload_id: &str) -> Result<()> {
        self.simple(&Request::Abort(upload(bucket, key, upload_id)))
    }

    /// Lists parts with numbers greater than `part_number_marker`: at most `max_parts`, and at most
    /// [`MAX_PAGE`](crate::MAX_PAGE).
    pub fn list_parts(
        &self,
        bucket: &str,
        key: &str,
        upload_id: &str,
        part_number_marker: u32,
        max_parts: usize,
    ) -> Result<PartListing> {
        let max = u32::try_from(max_parts).unwrap_or(u32::MAX);
        let request = Request::ListParts(upload(bucket, key, upload_id), part_number_marker, max);
        self.simple(&request)
    }

    /// Lists one page of the multipart uploads in progress, of at most [`MAX_PAGE`](crate::MAX_PAGE) entries.
    pub fn list_uploads(
        &self,
        bucket: &str,
        request: &ListUploadsRequest<'_>,
    ) -> Result<UploadListing> {
        self.simple(&Request::ListUploads(bucket, *request))
    }

    /// Begins a batch of small requests.
    #[must_use]
    pub const fn pipeline(&self) -> Pipeline<'_> {
        Pipeline::new(self)
    }
}

/// Opens an object whose bytes come over the connection.
fn open(mut lease: Lease, request: &Request<'_>) -> Result<Download> {
    let result = lease.send(request, RequestBody::None).and_then(|()| {
        let answer = lease.receive()?;
        let (info, start): GetHead = finish(&mut lease, &Answer { body: 0, ..answer })?;
        Ok((info, start, answer.body))
    });
    let (info, start, length) = lease.keep_or_close(result)?;
    Ok(Download::new(
        Source::Connection(lease),
        info,
        start,
        length,
    ))
}

const fn upload<'a>(bucket: &'a str, key: &'a str, upload_id: &'a str) -> UploadName<'a> {
    UploadName {
        name: Name { bucket, key },
        upload_id,
    }
}

/// Decodes the head of an answer without a body.
pub(super) fn finish<T: for<'d> Value<'d>>(lease: &mut Lease, answer: &Answer) -> Result<T> {
    let head = lease.head(answer);
    let result = match answer.outcome {
        _ if answer.body != 0 => Err(Malformed("an unexpected body").into()),
        Outcome::Done => decode_all(head).map_err(Error::from),
        Outcome::NotModified => Err(Error::NotModified),
        Outcome::Failed => Err(failure(head)),
        Outcome::Refused => Err(Error::Protocol(String::from_utf8_lossy(head).into_owned())),
    };
    lease.drop_head(answer);
    result
}

/// Decodes the error in the head of an answer.
fn failure(head: &[u8]) -> Error {
    match decode_all(head) {
        Ok(error) => Error::Store(error),
        Err(malformed) => malformed.into(),
    }
}
