//! Listings, and operations on buckets, which are directories below the root.

use std::collections::VecDeque;

use bucketload_core::driver::{Completion, DONE};
use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::op::Request;
use bucketload_core::record::Probe;

use super::documents;
use super::request::NameNodeCall;
use super::session::WebHdfsSession;
use crate::hadoop::prune::Tree;
use crate::hadoop::semantics::check_is_directory;
use crate::hadoop::walk::{Entry, Lister};
use crate::hadoop::{listing, path};
use crate::http::pool::Buffer;
use crate::http::render::Render as _;

/// The name node as a source of directory entries, for one operation of a session.
pub(super) struct NameNode<'a> {
    pub(super) session: &'a mut WebHdfsSession,
    pub(super) probe: &'a mut Probe,
}

impl Lister for NameNode<'_> {
    /// The last name of the previous page.
    type Cursor = Option<String>;

    async fn page(
        &mut self,
        bucket: &str,
        dir: &str,
        after: &str,
        cursor: &mut Option<String>,
        into: &mut VecDeque<Entry>,
    ) -> Result<bool, OpError> {
        let mut query = Buffer::take();
        let after = cursor.as_deref().unwrap_or(after);
        if !after.is_empty() {
            query.parameter("startAfter", after);
        }
        let call = NameNodeCall::new("GET", "LISTSTATUS_BATCH", bucket, dir).query(&query);
        let body = self.session.fetch(&call, self.probe).await?;
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

impl Tree for NameNode<'_> {
    async fn remove_dir(&mut self, bucket: &str, dir: &str) -> Result<(), OpError> {
        self.session.unlink(bucket, dir, self.probe).await
    }
}

impl WebHdfsSession {
    pub(super) async fn list(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        let mut lister = NameNode {
            session: self,
            probe,
        };
        // Boxed because a walk's state would enlarge the future of every operation.
        let items = Box::pin(listing::count(&mut lister, request)).await?;
        if items == 0 {
            self.find_bucket(request.bucket, probe).await?;
        }
        Ok(Completion { items, ..DONE })
    }

    pub(super) async fn make_bucket(
        &mut self,
        bucket: &str,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
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

    pub(super) async fn find_bucket(
        &mut self,
        bucket: &str,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        path::check(bucket, "key")?;
        let is_dir = |status: &documents::FileStatus<'_>| Ok(status.is_dir());
        check_is_directory(bucket, self.status(bucket, "", probe, is_dir).await?)
    }

    pub(super) async fn remove_bucket(
        &mut self,
        bucket: &str,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        self.find_bucket(bucket, probe).await?;
        self.unlink(bucket, "", probe).await.map(|()| DONE)
    }

    /// Counts the directories below the root.
    pub(super) async fn list_buckets(&mut self, probe: &mut Probe) -> Result<Completion, OpError> {
        let (mut cursor, mut page, mut items) = (None, VecDeque::new(), 0);
        loop {
            let mut lister = NameNode {
                session: self,
                probe,
            };
            let more = lister.page("", "", "", &mut cursor, &mut page).await?;
            items += page.drain(..).filter(|entry| entry.is_dir).count() as u64;
            if !more {
                return Ok(Completion { items, ..DONE });
            }
        }
    }
}
