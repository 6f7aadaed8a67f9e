//! The answers of name nodes ("WebHDFS REST API", JSON schemas).

use std::borrow::Cow;

use bucketload_core::driver::Room;
use bucketload_core::error::OpResult;
use serde::Deserialize;

use crate::http::answer::unreadable;

/// The status of a file or directory.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub(super) struct FileStatus<'a> {
    /// Bytes; 0 for directories.
    pub(super) length: u64,
    /// Name within the listed directory; empty for the path itself.
    #[serde(rename = "pathSuffix", default, borrow)]
    pub(super) name: Cow<'a, str>,
    #[serde(rename = "type")]
    kind: FileKind,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "UPPERCASE")]
enum FileKind {
    File,
    Directory,
    Symlink,
}

impl FileStatus<'_> {
    pub(super) fn is_dir(&self) -> bool {
        self.kind == FileKind::Directory
    }
}

#[derive(Deserialize)]
struct StatusDocument<'a> {
    #[serde(rename = "FileStatus", borrow)]
    status: FileStatus<'a>,
}

#[derive(Deserialize)]
struct Statuses<'a> {
    #[serde(rename = "FileStatus", borrow)]
    list: Vec<FileStatus<'a>>,
}

#[derive(Deserialize)]
struct StatusesDocument<'a> {
    #[serde(rename = "FileStatuses", borrow)]
    statuses: Statuses<'a>,
}

#[derive(Deserialize)]
struct Batch<'a> {
    #[serde(rename = "partialListing", borrow)]
    part: StatusesDocument<'a>,
    #[serde(rename = "remainingEntries")]
    remaining: u64,
}

#[derive(Deserialize)]
struct BatchDocument<'a> {
    #[serde(rename = "DirectoryListing", borrow)]
    listing: Batch<'a>,
}

#[derive(Deserialize)]
struct FsStatus {
    capacity: u64,
    remaining: u64,
}

#[derive(Deserialize)]
struct FsStatusDocument {
    #[serde(rename = "FsStatus")]
    status: FsStatus,
}

/// The room in the answer to GETSTATUS.
///
/// # Errors
/// When it is another document.
pub(super) fn cluster_room(body: &[u8]) -> OpResult<Room> {
    let FsStatusDocument { status } =
        serde_json::from_slice(body).map_err(|e| unreadable("file system's status", e))?;
    Ok(Room {
        free_bytes: Some(status.remaining),
        total_bytes: Some(status.capacity),
        of: "the cluster's disks; a file takes its size times its replication".to_owned(),
        ..Room::default()
    })
}

#[derive(Deserialize)]
struct BooleanDocument {
    boolean: bool,
}

#[derive(Deserialize)]
struct LocationDocument<'a> {
    #[serde(rename = "Location", borrow)]
    location: Cow<'a, str>,
}

/// Location of a block.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub(super) struct BlockLocation {
    /// `ADDRESS:PORT` of the data nodes with a copy.
    pub(super) names: Vec<String>,
}

#[derive(Deserialize)]
struct BlockLocations {
    #[serde(rename = "BlockLocation")]
    list: Vec<BlockLocation>,
}

#[derive(Deserialize)]
struct BlockLocationsDocument {
    #[serde(rename = "BlockLocations")]
    locations: BlockLocations,
}

fn read<'a, T: Deserialize<'a>>(what: &str, body: &'a [u8]) -> OpResult<T> {
    serde_json::from_slice(body).map_err(|error| unreadable(what, error))
}

/// Reads the answer to `GETFILESTATUS`.
pub(super) fn status(body: &[u8]) -> OpResult<FileStatus<'_>> {
    read::<StatusDocument<'_>>("file status", body).map(|document| document.status)
}

/// Reads the answer to `LISTSTATUS_BATCH`; returns its entries and whether more follow.
pub(super) fn batch(body: &[u8]) -> OpResult<(Vec<FileStatus<'_>>, bool)> {
    let listing = read::<BatchDocument<'_>>("listing", body)?.listing;
    Ok((listing.part.statuses.list, listing.remaining > 0))
}

/// Reads the answer of operations that return whether they had an effect.
pub(super) fn boolean(body: &[u8]) -> OpResult<bool> {
    read::<BooleanDocument>("answer", body).map(|document| document.boolean)
}

/// Reads the data node's URL in an answer to `noredirect=true`.
pub(super) fn location(body: &[u8]) -> OpResult<Cow<'_, str>> {
    read::<LocationDocument<'_>>("redirect", body).map(|document| document.location)
}

/// Reads the answer to `GETFILEBLOCKLOCATIONS`.
pub(super) fn block_locations(body: &[u8]) -> OpResult<Vec<BlockLocation>> {
    read::<BlockLocationsDocument>("block locations", body).map(|document| document.locations.list)
}

#[cfg(test)]
mod tests {
    use bucketload_core::error::ErrorKind;

    use super::{batch, block_locations, boolean, location, status};

    #[test]
    fn statuses() {
        let file =
            br#"{"FileStatus":{"accessTime":0,"blockSize":134217728,"group":"g","length":24930,
            "modificationTime":1,"owner":"o","pathSuffix":"","permission":"644","replication":1,
            "storagePolicy":0,"type":"FILE","fileId":16389}}"#;
        let found = status(file).unwrap();
        assert_eq!((found.length, found.is_dir()), (24930, false));
        let dir = br#"{"FileStatus":{"length":0,"type":"DIRECTORY"}}"#;
        assert!(status(dir).unwrap().is_dir());
        assert_eq!(status(b"{}").unwrap_err().kind, ErrorKind::Protocol);
    }

    #[test]
    fn listings() {
        let page = br#"{"DirectoryListing":{"partialListing":{"FileStatuses":{"FileStatus":[
            {"length":0,"pathSuffix":"a\u00e4 \"b","type":"DIRECTORY"},
            {"length":7,"pathSuffix":"c","type":"FILE"}]}},"remainingEntries":3}}"#;
        let (entries, more) = batch(page).unwrap();
        assert!(more);
        assert_eq!(entries[0].name, "a\u{e4} \"b");
        assert!(entries[0].is_dir() && !entries[1].is_dir());
    }

    #[test]
    fn small_answers() {
        assert!(boolean(b"{\"boolean\":true}").unwrap());
        let body = br#"{"Location":"http:\/\/h:9864\/webhdfs\/v1\/a?op=OPEN"}"#;
        assert_eq!(
            location(body).unwrap(),
            "http://h:9864/webhdfs/v1/a?op=OPEN"
        );
        let body = br#"{"BlockLocations":{"BlockLocation":[{"cachedHosts":[],"corrupt":false,
            "hosts":["h"],"length":10,"names":["10.0.0.1:9866","10.0.0.2:9866"],"offset":0,
            "storageTypes":["DISK"],"topologyPaths":["/default-rack/10.0.0.1:9866"]}]}}"#;
        let blocks = block_locations(body).unwrap();
        assert_eq!(blocks[0].names, ["10.0.0.1:9866", "10.0.0.2:9866"]);
    }
}
