//! Untimed calls of the control plane: preflight, ownership marks, clean-up.
//!
//! Clean-up covers the segments of large objects: `delete_keys` deletes the segments of the deleted objects, and
//! `abort_uploads` deletes the segments that no manifest refers to.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bucketload_core::driver::{Admin, ErrorKind, KeyPage, OpResult, Probe, Room};

use super::bulk::{MAX_DELETE, push_line};
use super::head::SwiftCall;
use super::large::{OWN_FIELD, SEGMENTS_FIELD, segment_of, segments_container};
use super::list::{MAX_PAGE, entries, has_next, page_query};
use super::session::SwiftSession;
use crate::http::control::{explain, ignore_missing, name_missing};
use crate::http::{Body, HttpSession as _, OneField, Render as _};

/// Keys per page.
const PAGE: u64 = 1000;
/// Attempts to delete a container whose listing may still show deleted objects.
const ATTEMPTS: u32 = 10;

impl SwiftSession {
    /// The value of a header field in the response to HEAD; empty if it is missing.
    async fn field_of(
        &mut self,
        container: &str,
        object: &str,
        name: &'static str,
    ) -> OpResult<Vec<u8>> {
        let mut value = Vec::new();
        let call = SwiftCall::new("HEAD", container, object);
        let mut plain = self.bare(&call);
        let mut sink = OneField {
            name,
            value: &mut value,
        };
        self.perform(&mut plain, &mut sink, &mut Probe::untimed())
            .await?;
        Ok(value)
    }

    /// As [`Self::field_of`], as a number.
    async fn number_of(&mut self, container: &str, name: &'static str) -> OpResult<Option<u64>> {
        let value = self.field_of(container, "", name).await?;
        Ok(std::str::from_utf8(&value)
            .ok()
            .and_then(|text| text.trim().parse().ok()))
    }

    /// One page of names after `marker` and, unless it is empty, before `end`.
    async fn page(
        &mut self,
        container: &str,
        prefix: &str,
        marker: &str,
        end: &str,
    ) -> OpResult<KeyPage> {
        let mut query = Vec::new();
        page_query(&mut query, prefix, "", PAGE, marker);
        if !end.is_empty() {
            query.parameter("end_marker", end);
        }
        let call = SwiftCall::new("GET", container, "").query(&query);
        let mut request = self.bare(&call);
        let body = self.fetch(&mut request, MAX_PAGE).await?;
        let mut keys = Vec::new();
        let got = entries(&body, |entry| keys.extend(entry.name().map(str::to_owned)))?;
        let next = keys.last().filter(|_| has_next(got, PAGE)).cloned();
        Ok(KeyPage::new(keys, next))
    }

    /// Deletes objects, in bulk if the server supports it.
    async fn delete_names(&mut self, container: &str, names: &[String]) -> OpResult<()> {
        for names in names.chunks(MAX_DELETE) {
            let mut document = Vec::new();
            names
                .iter()
                .for_each(|name| push_line(&mut document, container, name));
            match self.bulk_delete(&document, &mut Probe::untimed()).await {
                Err(error) if error.kind == ErrorKind::Unsupported => {}
                other => {
                    other?;
                    continue;
                }
            }
            for name in names {
                let call = SwiftCall::new("DELETE", container, name);
                let mut request = self.bare(&call);
                ignore_missing(self.settle(&mut request).await)?;
            }
        }
        Ok(())
    }

    /// Deletes the segments of the named objects of `bucket`.
    async fn delete_segments_of(&mut self, bucket: &str, keys: &[String]) -> OpResult<()> {
        let container = segments_container(bucket);
        let wanted: HashSet<&str> = keys.iter().map(String::as_str).collect();
        let (Some(first), Some(last)) = (keys.iter().min(), keys.iter().max()) else {
            return Ok(());
        };
        // Sorts after every segment of the last key, because `0` follows `/`.
        let end = format!("{last}0");
        let mut marker = first.clone();
        loop {
            let page = match self.page(&container, "", &marker, &end).await {
                Err(error) if error.kind == ErrorKind::NotFound => return Ok(()),
                other => other?,
            };
            let mut own = page.keys;
            own.retain(|name| segment_of(name).is_some_and(|(key, _)| wanted.contains(key)));
            self.delete_names(&container, &own).await?;
            match page.next {
                Some(next) => marker = next,
                None => return Ok(()),
            }
        }
    }

    /// True if the manifest of `key` refers to `upload`.
    async fn refers_to(&mut self, bucket: &str, key: &str, upload: &str) -> OpResult<bool> {
        match self.field_of(bucket, key, SEGMENTS_FIELD).await {
            Ok(value) => Ok(value == upload.as_bytes()),
            Err(error) if error.kind == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Deletes the segments container of `bucket` if Bucketload created it and it is empty.
    async fn drop_segments_container(&mut self, bucket: &str) -> OpResult<()> {
        let container = segments_container(bucket);
        match self.field_of(&container, "", OWN_FIELD).await {
            Ok(mark) if mark.is_empty() => return Ok(()),
            Err(error) if error.kind == ErrorKind::NotFound => return Ok(()),
            other => drop(other?),
        }
        if !self.page(&container, "", "", "").await?.keys.is_empty() {
            return Ok(());
        }
        let epoch = &self.shared.driver.segments_epoch;
        epoch.fetch_add(1, Ordering::Relaxed);
        self.delete_settling(&container).await
    }

    /// Deletes a container that was just emptied, and waits for its listing to catch up. A container with objects stays.
    async fn delete_settling(&mut self, container: &str) -> OpResult<()> {
        for attempt in 1.. {
            let deleted = self
                .delete_container(container, &mut Probe::untimed())
                .await;
            match deleted {
                Err(error) if error.kind == ErrorKind::NotFound => return Ok(()),
                Err(error) if error.kind == ErrorKind::Conflict => {
                    let left = self.page(container, "", "", "").await?;
                    if !left.keys.is_empty() || attempt >= ATTEMPTS {
                        return Ok(());
                    }
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
                other => return other.map(drop),
            }
        }
        Ok(())
    }
}

impl Admin for SwiftSession {
    async fn ensure_bucket(&mut self, bucket: &str) -> OpResult<bool> {
        match self.head_bucket(bucket).await {
            Ok(()) => Ok(false),
            Err(error) if error.kind == ErrorKind::NotFound => {
                self.put_container(bucket, &[], &mut Probe::untimed()).await
            }
            Err(error) => Err(error),
        }
    }

    async fn head_bucket(&mut self, bucket: &str) -> OpResult<()> {
        match self.head_container(bucket, &mut Probe::untimed()).await {
            Ok(_) => Ok(()),
            Err(error) => {
                let mut request = self.bare(&SwiftCall::new("GET", bucket, "").query(b"limit=1"));
                let error = explain(self, error, &mut request).await;
                Err(name_missing(error, "container", bucket))
            }
        }
    }

    async fn delete_bucket(&mut self, bucket: &str) -> OpResult<()> {
        self.delete_container(bucket, &mut Probe::untimed()).await?;
        self.drop_segments_container(bucket).await
    }

    async fn list_keys(
        &mut self,
        bucket: &str,
        prefix: &str,
        after: Option<&str>,
    ) -> OpResult<KeyPage> {
        self.page(bucket, prefix, after.unwrap_or_default(), "")
            .await
    }

    async fn delete_keys(&mut self, bucket: &str, keys: &[String]) -> OpResult<()> {
        self.delete_names(bucket, keys).await?;
        self.delete_segments_of(bucket, keys).await
    }

    /// The quotas of account and container (middleware `account_quotas` and `container_quotas`).
    async fn room(&mut self, bucket: &str) -> OpResult<Option<Room>> {
        let mut room = Room::default();
        let mut whose = Vec::new();
        for (of, container, quota, used) in [
            (
                "account",
                "",
                "x-account-meta-quota-bytes",
                "x-account-bytes-used",
            ),
            (
                "container",
                bucket,
                "x-container-meta-quota-bytes",
                "x-container-bytes-used",
            ),
        ] {
            if let Some(quota) = self.number_of(container, quota).await? {
                let used = self.number_of(container, used).await?.unwrap_or(0);
                let free = quota.saturating_sub(used);
                if room.free_bytes.is_none_or(|least| free < least) {
                    room.free_bytes = Some(free);
                    room.total_bytes = Some(quota);
                }
                whose.push(of);
            }
        }
        if let Some(quota) = self
            .number_of(bucket, "x-container-meta-quota-count")
            .await?
        {
            let used = self.number_of(bucket, "x-container-object-count").await?;
            room.free_objects = Some(quota.saturating_sub(used.unwrap_or(0)));
            whose.push("container");
        }
        whose.dedup();
        room.of = match whose.is_empty() {
            true => "neither account nor container has a quota, and Swift has no call for the room on its disks"
                .to_owned(),
            false => format!("the quota of the {}", whose.join(" and the ")),
        };
        Ok(Some(room))
    }

    async fn abort_uploads(&mut self, bucket: &str, prefix: &str) -> OpResult<u64> {
        let container = segments_container(bucket);
        let mut marker = String::new();
        // Key and name of the current upload, and whether the key's manifest refers to it.
        let mut current = (String::new(), String::new(), false);
        let mut aborted = 0;
        loop {
            let page = match self.page(&container, prefix, &marker, "").await {
                Err(error) if error.kind == ErrorKind::NotFound => return Ok(aborted),
                other => other?,
            };
            let mut orphans = Vec::new();
            for name in page.keys {
                let Some((key, upload)) = segment_of(&name) else {
                    continue;
                };
                if (key, upload) != (&*current.0, &*current.1) {
                    let alive = self.refers_to(bucket, key, upload).await?;
                    aborted += u64::from(!alive);
                    current = (key.to_owned(), upload.to_owned(), alive);
                }
                if !current.2 {
                    orphans.push(name);
                }
            }
            self.delete_names(&container, &orphans).await?;
            match page.next {
                Some(next) => marker = next,
                None => break,
            }
        }
        self.drop_segments_container(bucket).await?;
        Ok(aborted)
    }

    async fn put_small(&mut self, bucket: &str, key: &str, body: &[u8]) -> OpResult<()> {
        let call = SwiftCall::new("PUT", bucket, key).length(body.len() as u64);
        let mut request = self.prepare(&call, Body::Bytes(body));
        self.settle(&mut request).await
    }

    async fn get_small(&mut self, bucket: &str, key: &str) -> OpResult<Vec<u8>> {
        let mut request = self.bare(&SwiftCall::new("GET", bucket, key));
        self.small(&mut request).await
    }
}
