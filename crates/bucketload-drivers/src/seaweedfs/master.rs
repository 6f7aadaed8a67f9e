//! Operations with file IDs (SeaweedFS, "Master Server API" and "Volume Server API").
//!
//! ```text
//! put of a new object   GET master/dir/assign  ─► file ID and server;  PUT server/FID
//! put over an object    PUT server/FID
//! get, head, delete     (GET master/dir/lookup, once per volume)  GET, HEAD, DELETE server/FID
//! ```
//!
//! A put is timed as a whole, from the request for a file ID to the volume server's answer. The driver
//! keeps the file IDs in [`super::table::Table`].

use bucketload_core::driver::{
    Completion, DONE, ErrorKind, OpError, OpResult, Probe, Request, content_of,
};
use bucketload_s3::encode;

use super::error_map;
use super::fid::Fid;
use super::session::SeaweedSession;
use super::table::{Table, TableFull, folder_of, hash};
use crate::http::answer::{MAX_DOCUMENT, size_of_object, unreadable};
use crate::http::{
    Body, Buffer, ConfigError, HttpSession as _, Ignore, Plain, Reading, Render as _,
    Rendering as _, Span,
};
use crate::json::{self, Value};

#[cold]
fn full(why: TableFull) -> OpError {
    let text = match why {
        TableFull::Objects(limit) => format!(
            "{limit} objects have been written, the most that the client can keep; raise --seaweedfs-objects"
        ),
        TableFull::Folders => "the keys have more than 65,536 folders; use the filer".to_owned(),
    };
    OpError::new(ErrorKind::Rejected, text)
}

#[cold]
fn unknown(key: &str) -> OpError {
    let text =
        format!("this client has not written the object `{key}`: only its writer knows a file ID");
    OpError::new(ErrorKind::NotFound, text)
}

#[cold]
fn bad_address(error: ConfigError) -> OpError {
    OpError::new(ErrorKind::Protocol, error.to_string())
}

/// A master's answer to `/dir/assign` or `/dir/lookup`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct VolumeLocation<'a> {
    fid: Option<Fid>,
    /// `publicUrl`, else `url`.
    address: &'a str,
    refused: bool,
}

/// Reads an answer to `/dir/assign` or `/dir/lookup`. Borrows addresses from `body`: host and port need
/// no unescaping.
pub(crate) fn read_location(body: &[u8]) -> Result<VolumeLocation<'_>, json::Malformed> {
    let (mut location, mut inner) = (VolumeLocation::default(), "");
    json::values(body, |path, value| {
        let Value::Text(text) = value else { return };
        match path {
            ["fid"] => location.fid = text.plain().and_then(Fid::parse),
            // The first of several copies.
            ["publicUrl"] | ["locations", "[]", "publicUrl"] if location.address.is_empty() => {
                location.address = text.plain().unwrap_or_default();
            }
            ["url"] | ["locations", "[]", "url"] if inner.is_empty() => {
                inner = text.plain().unwrap_or_default();
            }
            ["error"] => location.refused |= !text.is_empty(),
            _ => {}
        }
    })?;
    if location.address.is_empty() {
        location.address = inner;
    }
    Ok(location)
}

impl SeaweedSession {
    /// Starts a request about `fid` to the volume server number `server`.
    pub(crate) fn begin_at(&mut self, method: &str, server: usize, fid: Fid) -> Buffer {
        let mut head = Buffer::take();
        head.text(method);
        head.text(" /");
        fid.push_to(&mut head);
        let directory = &self.shared.directory;
        let (volume_server, _) = self.servers.get(directory, server, self.source);
        head.extend_from_slice(&volume_server.fields);
        head
    }

    fn table(&self) -> OpResult<&Table> {
        let table = self.shared.table.as_ref();
        table.ok_or_else(|| OpError::new(ErrorKind::Unsupported, "there is no table of file IDs"))
    }

    /// The name's hash and the file ID of an object.
    fn known(&self, request: &Request<'_>) -> OpResult<(u64, Fid)> {
        let name = hash(request.bucket, request.key);
        let fid = self.table()?.get(name);
        fid.map(|fid| (name, fid))
            .ok_or_else(|| unknown(request.key))
    }

    /// The index of the folder of `key`, cached for the next object.
    fn folder_index(&mut self, key: &str) -> OpResult<u64> {
        let folder = folder_of(key);
        if self.folder.1 == u64::MAX || self.folder.0 != folder {
            let index = self.table()?.folder(folder).map_err(full)?;
            self.folder = (folder.to_owned(), index);
        }
        Ok(self.folder.1)
    }

    /// Asks the master for a new file ID in the collection `bucket`.
    pub(crate) async fn assign(
        &mut self,
        bucket: &str,
        probe: &mut Probe,
    ) -> OpResult<(Fid, usize)> {
        let mut head = self.begin("GET");
        head.text("/dir/assign?");
        head.parameter("collection", bucket);
        let mut request = self.bare(head);
        let mut body = Buffer::take();
        let reply = self
            .document(&mut request, &mut body, MAX_DOCUMENT, probe)
            .await?;
        let location = read_location(&body).map_err(|e| unreadable("assignment", e))?;
        let (Some(fid), false) = (location.fid, location.refused) else {
            // Some masters refuse with status 200.
            let mut error = error_map::to_error(500, &body);
            error.status = reply.status;
            return Err(error);
        };
        let tls = self.tls();
        let directory = &self.shared.directory;
        let server = self
            .servers
            .note(directory, fid.volume, location.address, tls);
        Ok((fid, server.map_err(bad_address)?))
    }

    /// The server of a volume; asks the master unless it is known.
    pub(crate) async fn locate(&mut self, volume: u32, probe: &mut Probe) -> OpResult<usize> {
        if let Some(server) = self.servers.server_of(&self.shared.directory, volume) {
            return Ok(server);
        }
        let mut head = self.begin("GET");
        head.text("/dir/lookup?volumeId=");
        encode::push_decimal(&mut head, u64::from(volume));
        let mut request = self.bare(head);
        let mut body = Buffer::take();
        self.document(&mut request, &mut body, MAX_DOCUMENT, probe)
            .await?;
        let location = read_location(&body).map_err(|e| unreadable("lookup", e))?;
        let tls = self.tls();
        let directory = &self.shared.directory;
        self.servers
            .note(directory, volume, location.address, tls)
            .map_err(bad_address)
    }

    /// Forgets a volume's server after a failure that a moved volume may have caused. The next request
    /// then looks the volume up again.
    fn forget_if_moved<T>(&mut self, volume: u32, result: OpResult<T>) -> OpResult<T> {
        if let Err(error) = &result
            && matches!(error.kind, ErrorKind::Connect | ErrorKind::NotFound)
        {
            self.servers.forget(&self.shared.directory, volume);
        }
        result
    }

    pub(crate) async fn put_by_id(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        let span = Span::whole(content_of(request)?);
        let body = Body::Content(span);
        self.store(request.bucket, request.key, body, probe).await?;
        Ok(Completion::of_bytes(span.len))
    }

    /// Writes an object under its file ID, or a new one. Reserves room in the table before it writes.
    pub(crate) async fn store(
        &mut self,
        bucket: &str,
        key: &str,
        body: Body<'_>,
        probe: &mut Probe,
    ) -> OpResult<()> {
        let name = hash(bucket, key);
        let folder = self.folder_index(key)?;
        self.table()?.reserve(name).map_err(full)?;
        let (fid, server) = match self.table()?.get(name) {
            Some(fid) => (fid, self.locate(fid.volume, probe).await?),
            None => self.assign(bucket, probe).await?,
        };
        let mut head = self.begin_at("PUT", server, fid);
        head.text("Content-Type: application/octet-stream\r\n");
        let mut request = Plain::with(head, body);
        let put = self
            .perform_at(server, &mut request, &mut Ignore, probe)
            .await;
        self.forget_if_moved(fid.volume, put)?;
        let leaf = &key[folder_of(key).len()..];
        self.table()?.set(name, fid, folder, leaf).map_err(full)
    }

    pub(crate) async fn get_by_id(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        let mut reading = Reading::of(request);
        let (_, fid) = self.known(request)?;
        let server = self.locate(fid.volume, probe).await?;
        let mut head = self.begin_at("GET", server, fid);
        head.range(reading.range());
        let mut request = Plain::bare(head);
        let got = self
            .perform_at(server, &mut request, &mut reading, probe)
            .await;
        let reply = self.forget_if_moved(fid.volume, got)?;
        reading.finish(&reply)
    }

    pub(crate) async fn head_by_id(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> OpResult {
        let (_, fid) = self.known(request)?;
        let server = self.locate(fid.volume, probe).await?;
        let mut request = Plain::bare(self.begin_at("HEAD", server, fid));
        let got = self
            .perform_at(server, &mut request, &mut Ignore, probe)
            .await;
        size_of_object(&self.forget_if_moved(fid.volume, got)?)
    }

    pub(crate) async fn delete_by_id(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> OpResult {
        let (name, fid) = self.known(request)?;
        self.delete_fid(name, fid, probe).await
    }

    /// Deletes a file and forgets it.
    pub(crate) async fn delete_fid(&mut self, name: u64, fid: Fid, probe: &mut Probe) -> OpResult {
        let server = self.locate(fid.volume, probe).await?;
        let mut request = Plain::bare(self.begin_at("DELETE", server, fid));
        let gone = self
            .perform_at(server, &mut request, &mut Ignore, probe)
            .await;
        let gone = self.forget_if_moved(fid.volume, gone);
        if gone.as_ref().map_or_else(|e| e.status == 404, |_| true) {
            self.table()?.remove(name);
        }
        gone.map(|_| DONE)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Fid, VolumeLocation, read_location};

    #[test]
    fn answers_of_the_master_are_read() {
        let assigned = br#"{"count":1,"fid":"3,01637037d6","url":"10.0.0.1:8080","publicUrl":"localhost:8080"}"#;
        let expected = VolumeLocation {
            fid: Fid::parse("3,01637037d6"),
            address: "localhost:8080",
            refused: false,
        };
        assert_eq!(read_location(assigned), Ok(expected));
        let found = br#"{"volumeId":"3","locations":[{"url":"a:1"},{"publicUrl":"","url":"b:2"}]}"#;
        assert_eq!(read_location(found).unwrap().address, "a:1");
        let refused = read_location(br#"{"error":"no free volumes left"}"#).unwrap();
        assert!(refused.refused && refused.fid.is_none());
        assert!(read_location(b"").is_err());
    }

    proptest! {
        #[test]
        fn arbitrary_input_does_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read_location(&bytes);
        }
    }
}
