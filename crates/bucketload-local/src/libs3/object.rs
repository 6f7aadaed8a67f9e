//! Operations on one object, and on buckets.

use std::ffi::c_int;
use std::ptr::{null, null_mut};

use bucketload_core::driver::{
    Completion, DONE, ErrorKind, OpClass, OpError, OpResult, Probe, Request, content_of,
};
use bucketload_core::op::Op;
use libs3_abi::{OnObject, S3_CANNED_ACL_PRIVATE, S3GetObjectHandler, S3PutObjectHandler};

use super::call::{CallState, Incoming, Outgoing, RESPONSE, get_data, put_data};
use super::session::{Libs3Session, unsupported};

impl Libs3Session {
    pub(super) fn put(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        let content = content_of(request)?;
        let size = content.size();
        self.name(request.bucket, request.key)?;
        self.put_object(size, Outgoing::Content(*content, 0, size), probe)?;
        Ok(Completion::of_bytes(size))
    }

    /// Writes the session's current object.
    pub(super) fn put_object(
        &self,
        size: u64,
        outgoing: Outgoing<'_>,
        probe: &mut Probe,
    ) -> OpResult<()> {
        let handler = S3PutObjectHandler {
            response: RESPONSE,
            data: Some(put_data),
        };
        let functions = &self.inner.library.functions;
        let mut call = CallState::new(probe).sending(outgoing);
        self.inner.make(&self.bucket, &mut call, |bucket, data| {
            let key = self.key.as_ptr();
            // SAFETY: strings, handler and call live until the call returns, as `make` says.
            unsafe {
                (functions.put_object)(bucket, key, size, null(), null_mut(), 0, &handler, data);
            }
        })?;
        if call.sent != size {
            // A library that reports success after fewer bytes has truncated the object.
            let text = format!("the library took {} of {size} bytes", call.sent);
            return Err(OpError::new(ErrorKind::Protocol, text));
        }
        Ok(())
    }

    pub(super) fn get(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        let op = &request.op;
        let range = op.range.filter(|_| op.class == OpClass::RangeGet);
        let expected = request.content.filter(|_| request.verify);
        let size = match expected {
            Some(content) => Some(content.size()),
            None => (op.size != Op::UNKNOWN_SIZE).then_some(op.size),
        };
        let from = range.map_or(0, |range| range.offset);
        let wanted = size.map(|size| {
            let left = size.saturating_sub(from);
            range.map_or(left, |range| left.min(range.len))
        });
        self.name(request.bucket, request.key)?;
        let incoming = match (request.watch, expected) {
            (Some(watch), _) => Incoming::Watch(watch),
            (None, Some(content)) => Incoming::Verify(content, from),
            (None, None) => Incoming::Count,
        };
        let mut call = CallState::new(probe).receiving(incoming);
        self.get_object(from, range.map_or(0, |range| range.len), &mut call)?;
        let corrupt = |text| Err(OpError::new(ErrorKind::Corrupt, text));
        match (call.wrong, wanted) {
            (_, Some(wanted)) if call.received > wanted => {
                corrupt(format!("{} bytes came instead of {wanted}", call.received))
            }
            (Some(at), _) => corrupt(format!("the byte at offset {at} is not the byte written")),
            (None, Some(wanted)) if call.received < wanted => {
                corrupt(format!("{} bytes came instead of {wanted}", call.received))
            }
            _ => Ok(Completion::of_bytes(call.received)),
        }
    }

    /// Reads the session's current object; a count of 0 reads to its end.
    pub(super) fn get_object(
        &self,
        from: u64,
        count: u64,
        call: &mut CallState<'_>,
    ) -> OpResult<()> {
        let handler = S3GetObjectHandler {
            response: RESPONSE,
            data: Some(get_data),
        };
        let get = self.inner.library.functions.get_object;
        self.inner.make(&self.bucket, call, |bucket, data| {
            let key = self.key.as_ptr();
            // SAFETY: as in `put_object`.
            unsafe {
                get(
                    bucket,
                    key,
                    null(),
                    from,
                    count,
                    null_mut(),
                    0,
                    &handler,
                    data,
                )
            }
        })
    }

    /// Makes a call whose only argument is the object.
    fn on_object(&self, function: OnObject, call: &mut CallState<'_>) -> OpResult<()> {
        self.inner.make(&self.bucket, call, |bucket, data| {
            let key = self.key.as_ptr();
            // SAFETY: as in `put_object`.
            unsafe { function(bucket, key, null_mut(), 0, &RESPONSE, data) }
        })
    }

    pub(super) fn head(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        self.name(request.bucket, request.key)?;
        let mut call = CallState::new(probe);
        self.on_object(self.inner.library.functions.head_object, &mut call)?;
        Ok(Completion::of_size(call.length))
    }

    pub(super) fn delete(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        self.name(request.bucket, request.key)?;
        self.delete_object(probe).map(|()| DONE)
    }

    /// Deletes the session's current object.
    pub(super) fn delete_object(&self, probe: &mut Probe) -> OpResult<()> {
        let delete = self.inner.library.functions.delete_object;
        self.on_object(delete, &mut CallState::new(probe))
    }

    pub(super) fn copy(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        let Some(copy_object) = self.inner.library.functions.copy_object else {
            return Err(unsupported(request.op.class));
        };
        self.name(request.bucket, request.key)?;
        self.second.set(request.source)?;
        let mut call = CallState::new(probe);
        let mut modified = 0;
        let mut etag = [0; 128];
        let copied = self.inner.make(&self.bucket, &mut call, |bucket, data| {
            // SAFETY: as in `put_object`; the buffers for time and tag live as long, and the call has their size.
            unsafe {
                copy_object(
                    bucket,
                    self.second.as_ptr(),
                    self.bucket.as_ptr(),
                    self.key.as_ptr(),
                    null(),
                    &raw mut modified,
                    etag.len() as c_int,
                    etag.as_mut_ptr(),
                    null_mut(),
                    0,
                    &RESPONSE,
                    data,
                );
            }
        });
        copied.map(|()| DONE)
    }

    pub(super) fn make_bucket(&mut self, bucket: &str, probe: &mut Probe) -> OpResult {
        self.bucket.set(bucket)?;
        let functions = &self.inner.library.functions;
        let mut call = CallState::new(probe);
        let made = self.inner.make(&self.bucket, &mut call, |bucket, data| {
            // SAFETY: as in `put_object`.
            unsafe {
                (functions.create_bucket)(
                    bucket.protocol,
                    bucket.access_key_id,
                    bucket.secret_access_key,
                    bucket.appended.security_token,
                    bucket.host_name,
                    bucket.bucket_name,
                    bucket.appended.auth_region,
                    S3_CANNED_ACL_PRIVATE,
                    null(),
                    null_mut(),
                    0,
                    &RESPONSE,
                    data,
                );
            }
        });
        made.map(|()| DONE)
    }

    pub(super) fn test_bucket(&mut self, bucket: &str, probe: &mut Probe) -> OpResult {
        self.bucket.set(bucket)?;
        let functions = &self.inner.library.functions;
        let mut call = CallState::new(probe);
        let mut location = [0; 64];
        let made = self.inner.make(&self.bucket, &mut call, |bucket, data| {
            // SAFETY: as in `put_object`; the buffer for the location lives as long, and the call has its size.
            unsafe {
                (functions.test_bucket)(
                    bucket.protocol,
                    bucket.uri_style,
                    bucket.access_key_id,
                    bucket.secret_access_key,
                    bucket.appended.security_token,
                    bucket.host_name,
                    bucket.bucket_name,
                    bucket.appended.auth_region,
                    location.len() as c_int,
                    location.as_mut_ptr(),
                    null_mut(),
                    0,
                    &RESPONSE,
                    data,
                );
            }
        });
        made.map(|()| DONE)
    }

    pub(super) fn remove_bucket(&mut self, bucket: &str, probe: &mut Probe) -> OpResult {
        self.bucket.set(bucket)?;
        let functions = &self.inner.library.functions;
        let mut call = CallState::new(probe);
        let made = self.inner.make(&self.bucket, &mut call, |bucket, data| {
            // SAFETY: as in `put_object`.
            unsafe {
                (functions.delete_bucket)(
                    bucket.protocol,
                    bucket.uri_style,
                    bucket.access_key_id,
                    bucket.secret_access_key,
                    bucket.appended.security_token,
                    bucket.host_name,
                    bucket.bucket_name,
                    bucket.appended.auth_region,
                    null_mut(),
                    0,
                    &RESPONSE,
                    data,
                );
            }
        });
        made.map(|()| DONE)
    }
}
