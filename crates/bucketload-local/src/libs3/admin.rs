//! Untimed calls of the control plane.

use bucketload_core::driver::{Admin, KeyPage};
use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::record::Probe;

use super::call::{Call, Outgoing};
use super::session::Libs3Session;

/// A probe for calls that nobody times.
fn untimed() -> Probe {
    Probe::new(|| 1)
}

impl Admin for Libs3Session {
    async fn ensure_bucket(&mut self, bucket: &str) -> Result<bool, OpError> {
        match self.test_bucket(bucket, &mut untimed()) {
            Ok(_) => return Ok(false),
            Err(error) if error.kind == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        match self.make_bucket(bucket, &mut untimed()) {
            Ok(_) => Ok(true),
            // Somebody was quicker.
            Err(error) if error.kind == ErrorKind::Conflict => {
                self.test_bucket(bucket, &mut untimed()).map(|_| false)
            }
            Err(error) => Err(error),
        }
    }

    async fn head_bucket(&mut self, bucket: &str) -> Result<(), OpError> {
        self.test_bucket(bucket, &mut untimed()).map(drop)
    }

    async fn delete_bucket(&mut self, bucket: &str) -> Result<(), OpError> {
        self.remove_bucket(bucket, &mut untimed()).map(drop)
    }

    async fn list_keys(
        &mut self,
        bucket: &str,
        prefix: &str,
        after: Option<&str>,
    ) -> Result<KeyPage, OpError> {
        let (keys, more) = self.keys((bucket, prefix, after.unwrap_or("")), &mut untimed())?;
        let next = keys.last().filter(|_| more).cloned();
        Ok(KeyPage {
            keys,
            next,
            note: None,
        })
    }

    async fn delete_keys(&mut self, bucket: &str, keys: &[String]) -> Result<(), OpError> {
        for key in keys {
            self.name(bucket, key)?;
            match self.delete_object(&mut untimed()) {
                Err(error) if error.kind != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    async fn abort_uploads(&mut self, bucket: &str, prefix: &str) -> Result<u64, OpError> {
        let functions = &self.inner.library.functions;
        if functions.list_uploads.is_none() || functions.abort_multipart.is_none() {
            return Ok(0);
        }
        let mut aborted = 0;
        let mut before = u64::MAX;
        loop {
            let mut names = Vec::new();
            let there = match self.uploads(bucket, prefix, Some(&mut names), &mut untimed()) {
                // Some servers list no uploads, and some libraries cannot ask them.
                Err(error) if error.kind == ErrorKind::Unsupported => return Ok(aborted),
                found => found?,
            };
            // Aborting tells nothing: that fewer are there than before does.
            if there == 0 || (aborted > 0 && there >= before) {
                break;
            }
            before = there;
            for (key, id) in names {
                self.abort(bucket, &key, &id)?;
                aborted += 1;
            }
        }
        Ok(aborted)
    }

    async fn put_small(&mut self, bucket: &str, key: &str, body: &[u8]) -> Result<(), OpError> {
        self.name(bucket, key)?;
        self.put_object(body.len() as u64, Outgoing::Bytes(body), &mut untimed())
    }

    async fn get_small(&mut self, bucket: &str, key: &str) -> Result<Vec<u8>, OpError> {
        self.name(bucket, key)?;
        let mut body = Vec::new();
        let mut probe = untimed();
        let mut call = Call::new(&mut probe);
        call.body = Some(&mut body);
        self.get_object(0, 0, &mut call)?;
        drop(call);
        Ok(body)
    }
}
