//! Listings, and operations on buckets, which are directories below the root.

use std::collections::VecDeque;

use bucketload_core::driver::{Completion, DONE, ErrorKind, OpError, OpResult, Probe, Request};

use super::documents;
use super::request::NameNodeCall;
use super::session::WebHdfsSession;
use crate::hadoop::listing::{self, Listed};
use crate::hadoop::path;
use crate::hadoop::prune::Tree;
use crate::hadoop::semantics::{check_deleted, check_is_directory};
use crate::hadoop::walk::{Entry, Lister};
use crate::http::{Buffer, Render as _};

impl Lister for WebHdfsSession {
    /// The last name of the previous page.
    type Cursor = Option<String>;

    async fn page(
        &mut self,
        bucket: &str,
        dir: &str,
        after: &str,
        cursor: &mut Option<String>,
        into: &mut VecDeque<Entry>,
        probe: &mut Probe,
    ) -> OpResult<bool> {
        let mut query = Buffer::take();
        let after = cursor.as_deref().unwrap_or(after);
        if !after.is_empty() {
            query.parameter("startAfter", after);
        }
        let call = NameNodeCall::new("GET", "LISTSTATUS_BATCH", bucket, dir).query(&query);
        let body = self.fetch(&call, probe).await?;
        let (entries, more) = documents::batch(&body)?;
        match entries.last() {
            Some(last) => *cursor = Some(last.name.clone().into_owned()),
            None if more => {
                return Err(OpError::new(
                    ErrorKind::Protocol,
                    "an empty page of a listing claims that entries follow",
                ));
            }
            None => {}
        }
        into.extend(entries.into_iter().map(|entry| Entry {
            is_dir: entry.is_dir(),
            name: entry.name.into_owned(),
        }));
        Ok(more)
    }
}

impl Tree for WebHdfsSession {
    fn listed(&mut self) -> &mut Listed<Self::Cursor> {
        &mut self.listed
    }

    async fn unlink(&mut self, bucket: &str, key: &str, probe: &mut Probe) -> OpResult<()> {
        let call = NameNodeCall::new("DELETE", "DELETE&recursive=false", bucket, key);
        let body = self.fetch(&call, probe).await?;
        check_deleted(documents::boolean(&body)?)
    }
}

impl WebHdfsSession {
    pub(super) async fn list(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        // Boxed because a walk's state would enlarge the future of every operation.
        let items = Box::pin(listing::count(self, request, probe)).await?;
        if items == 0 {
            self.find_bucket(request.bucket, probe).await?;
        }
        Ok(Completion::of_items(items))
    }

    pub(super) async fn make_bucket(&mut self, bucket: &str, probe: &mut Probe) -> OpResult {
        path::check(bucket, "key")?;
        let body = self
            .fetch(&NameNodeCall::new("PUT", "MKDIRS", bucket, ""), probe)
            .await?;
        match documents::boolean(&body)? {
            true => Ok(DONE),
            false => Err(OpError::new(
                ErrorKind::Conflict,
                "the name node did not create the directory",
            )),
        }
    }

    pub(super) async fn find_bucket(&mut self, bucket: &str, probe: &mut Probe) -> OpResult {
        path::check(bucket, "key")?;
        let is_dir = |status: &documents::FileStatus<'_>| Ok(status.is_dir());
        check_is_directory(bucket, self.status(bucket, "", probe, is_dir).await?)
    }

    pub(super) async fn remove_bucket(&mut self, bucket: &str, probe: &mut Probe) -> OpResult {
        self.find_bucket(bucket, probe).await?;
        self.unlink(bucket, "", probe).await.map(|()| DONE)
    }

    /// Counts the directories below the root.
    pub(super) async fn list_buckets(&mut self, probe: &mut Probe) -> OpResult {
        let (mut cursor, mut page, mut items) = (None, VecDeque::new(), 0);
        loop {
            let more = self.page("", "", "", &mut cursor, &mut page, probe).await?;
            items += page.drain(..).filter(|entry| entry.is_dir).count() as u64;
            if !more {
                return Ok(Completion::of_items(items));
            }
        }
    }
}
