//! Operations on one object, and on buckets.

use std::ffi::c_int;
use std::ptr::{null, null_mut};

use bucketload_core::driver::Completion;
use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::op::{Op, OpClass, Request};
use bucketload_core::record::Probe;

use super::abi::Handler;
use super::call::{Call, Incoming, Outgoing, RESPONSE, get_data, put_data};
use super::session::{Libs3Session, data, pointer, unsupported};
use bucketload_core::driver::{DONE, content_of};

/// `S3CannedAclPrivate`.
const PRIVATE: c_int = 0;

impl Libs3Session {
    pub(super) fn put(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        let content = content_of(request)?;
        let size = content.size();
        self.name(request.bucket, request.key)?;
        self.put_object(size, Outgoing::Content(*content, 0, size), probe)?;
        Ok(Completion {
            bytes: size,
            ..DONE
        })
    }

    /// Writes the object that was named.
    pub(super) fn put_object(
        &self,
        size: u64,
        outgoing: Outgoing<'_>,
        probe: &mut Probe,
    ) -> Result<(), OpError> {
        let handler = Handler {
            response: RESPONSE,
            callback: put_data as super::abi::PutDataCallback,
        };
        let context = self.context();
        let mut call = Call::new(probe).sending(outgoing);
        // SAFETY: strings, handler and call live until the call returns, and with no request context it returns
        // after its last callback.
        unsafe {
            (self.inner.library.functions.put_object)(
                &raw const context,
                self.key.as_ptr(),
                size,
                null(),
                null_mut(),
                0,
                &raw const handler,
                data(&mut call),
            );
        }
        call.end(&self.inner.library)?;
        if call.sent != size {
            // A library that takes less and says that all is well has cut the object.
            let text = format!("the library took {} of {size} bytes", call.sent);
            return Err(OpError::new(ErrorKind::Protocol, text));
        }
        Ok(())
    }

    pub(super) fn get(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
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
        let mut call = Call::new(probe).receiving(incoming);
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
            _ => Ok(Completion {
                bytes: call.received,
                ..DONE
            }),
        }
    }

    /// Reads the object that was named; a count of 0 is all to the end.
    pub(super) fn get_object(
        &self,
        from: u64,
        count: u64,
        call: &mut Call<'_>,
    ) -> Result<(), OpError> {
        let handler = Handler {
            response: RESPONSE,
            callback: get_data as super::abi::GetDataCallback,
        };
        let context = self.context();
        // SAFETY: as in `put_object`.
        unsafe {
            (self.inner.library.functions.get_object)(
                &raw const context,
                self.key.as_ptr(),
                null(),
                from,
                count,
                null_mut(),
                0,
                &raw const handler,
                data(call),
            );
        }
        call.end(&self.inner.library)
    }

    pub(super) fn head(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        self.name(request.bucket, request.key)?;
        let context = self.context();
        let mut call = Call::new(probe);
        // SAFETY: as in `put_object`.
        unsafe {
            (self.inner.library.functions.head_object)(
                &raw const context,
                self.key.as_ptr(),
                null_mut(),
                0,
                &RESPONSE,
                data(&mut call),
            );
        }
        call.end(&self.inner.library)?;
        Ok(Completion {
            object_size: call.length,
            ..DONE
        })
    }

    pub(super) fn delete(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        self.name(request.bucket, request.key)?;
        self.delete_object(probe).map(|()| DONE)
    }

    /// Deletes the object that was named.
    pub(super) fn delete_object(&self, probe: &mut Probe) -> Result<(), OpError> {
        let context = self.context();
        let mut call = Call::new(probe);
        // SAFETY: as in `put_object`.
        unsafe {
            (self.inner.library.functions.delete_object)(
                &raw const context,
                self.key.as_ptr(),
                null_mut(),
                0,
                &RESPONSE,
                data(&mut call),
            );
        }
        call.end(&self.inner.library)
    }

    pub(super) fn copy(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        let Some(copy_object) = self.inner.library.functions.copy_object else {
            return Err(unsupported(request.op.class));
        };
        self.name(request.bucket, request.key)?;
        self.second.set(request.source)?;
        let context = self.context();
        let mut call = Call::new(probe);
        let mut modified = 0;
        let mut etag = [0; 128];
        // SAFETY: as in `put_object`; the places for time and tag live as long, and their size is given.
        unsafe {
            copy_object(
                &raw const context,
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
                data(&mut call),
            );
        }
        call.end(&self.inner.library).map(|()| DONE)
    }

    pub(super) fn make_bucket(
        &mut self,
        bucket: &str,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        self.bucket.set(bucket)?;
        let strings = &self.inner.strings;
        let mut call = Call::new(probe);
        // SAFETY: as in `put_object`.
        unsafe {
            (self.inner.library.functions.create_bucket)(
                strings.protocol,
                strings.access_key.as_ptr(),
                strings.secret_key.as_ptr(),
                pointer(strings.session_token.as_deref()),
                pointer(strings.host.as_deref()),
                self.bucket.as_ptr(),
                pointer(strings.region.as_deref()),
                PRIVATE,
                null(),
                null_mut(),
                0,
                &RESPONSE,
                data(&mut call),
            );
        }
        call.end(&self.inner.library).map(|()| DONE)
    }

    pub(super) fn test_bucket(
        &mut self,
        bucket: &str,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        self.bucket.set(bucket)?;
        let strings = &self.inner.strings;
        let mut call = Call::new(probe);
        let mut location = [0; 64];
        // SAFETY: as in `put_object`; the place for the location lives as long, and its size is given.
        unsafe {
            (self.inner.library.functions.test_bucket)(
                strings.protocol,
                strings.style,
                strings.access_key.as_ptr(),
                strings.secret_key.as_ptr(),
                pointer(strings.session_token.as_deref()),
                pointer(strings.host.as_deref()),
                self.bucket.as_ptr(),
                pointer(strings.region.as_deref()),
                location.len() as c_int,
                location.as_mut_ptr(),
                null_mut(),
                0,
                &RESPONSE,
                data(&mut call),
            );
        }
        call.end(&self.inner.library).map(|()| DONE)
    }

    pub(super) fn remove_bucket(
        &mut self,
        bucket: &str,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        self.bucket.set(bucket)?;
        let strings = &self.inner.strings;
        let mut call = Call::new(probe);
        // SAFETY: as in `put_object`.
        unsafe {
            (self.inner.library.functions.delete_bucket)(
                strings.protocol,
                strings.style,
                strings.access_key.as_ptr(),
                strings.secret_key.as_ptr(),
                pointer(strings.session_token.as_deref()),
                pointer(strings.host.as_deref()),
                self.bucket.as_ptr(),
                pointer(strings.region.as_deref()),
                null_mut(),
                0,
                &RESPONSE,
                data(&mut call),
            );
        }
        call.end(&self.inner.library).map(|()| DONE)
    }
}
