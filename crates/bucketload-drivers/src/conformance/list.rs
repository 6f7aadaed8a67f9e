//! Checks of listings and of deletions of many objects.

use bucketload_core::driver::Session;
use bucketload_core::op::{KeySource, Op, OpClass, Request};

use super::{Context, Outcome, same, worked};

/// Number of objects under `pages/`.
const COUNT: u64 = 23;

struct Numbered(&'static str);

impl KeySource for Numbered {
    fn render(&self, i: u64, out: &mut String) {
        use std::fmt::Write;
        out.clear();
        // Writing to a string cannot fail.
        let _ = write!(out, "{}{i:04}", self.0);
    }
}

impl Numbered {
    fn keys(&self, count: u64) -> Vec<String> {
        let key = |i| {
            let mut key = String::new();
            self.render(i, &mut key);
            key
        };
        (0..count).map(key).collect()
    }
}

impl<S: Session> Context<S> {
    async fn fill(&mut self, prefix: &'static str, count: u64) -> Outcome {
        let bucket = self.bucket.clone();
        for key in Numbered(prefix).keys(count) {
            let put = self.session.put_small(&bucket, &key, b"x").await;
            worked("put_small", put)?;
        }
        Ok(())
    }

    async fn listed(
        &mut self,
        class: OpClass,
        prefix: &str,
        delimiter: &str,
        per_page: u64,
        pages: u32,
    ) -> Result<(u64, u32), bucketload_core::error::OpError> {
        let bucket = self.bucket.clone();
        let op = Op {
            count: per_page,
            pages,
            ..Op::new(class)
        };
        let mut request = Request::new(&op, &bucket, prefix);
        request.delimiter = delimiter;
        let done = self.execute(&request).await?;
        Ok((done.items, self.probe.requests()))
    }
}

pub(super) async fn prefixes_and_pages<S: Session>(c: &mut Context<S>) -> Outcome {
    // A prefix that ends in a blank, where keys may.
    let prefix = match c.quirks.blank_end.works() {
        true => "pages/a ",
        false => "pages/a-",
    };
    c.fill(prefix, COUNT).await?;
    c.fill("pages/b", 2).await?;
    for class in c.offered(&[OpClass::List, OpClass::ListV1]).await? {
        let name = class.name();
        let expect = match class {
            OpClass::List => c.quirks.list_v2_pages,
            _ => super::Expect::Works,
        };
        for (prefix, per_page, pages, items, requests) in [
            (prefix, 1000, 0, COUNT, 1),
            ("pages/", 1000, 0, COUNT + 2, 1),
            ("pages/none", 1000, 0, 0, 1),
            (&format!("{prefix}0001"), 1000, 0, 1, 1),
        ] {
            let got = c.listed(class, prefix, "", per_page, pages).await;
            let (got, sent) = worked(name, got)?;
            same(name, got, items)?;
            if c.quirks.single_requests {
                same(&format!("{name}: requests"), sent, requests)?;
            }
        }
        for (per_page, pages, items, requests) in [
            (5, 0, COUNT, 5),
            (1, 0, COUNT, COUNT as u32),
            (5, 1, 5, 1),
            (5, 3, 15, 3),
            (10, 9, COUNT, 3),
        ] {
            let got = c.listed(class, prefix, "", per_page, pages).await;
            if let Some((got, sent)) = expect.check(name, got)? {
                same(name, got, items)?;
                // A full last page may be followed by an empty one.
                if c.quirks.single_requests && sent != requests && sent != requests + 1 {
                    return Err(format!("{name}: {sent} pages instead of {requests}"));
                }
            }
        }
    }
    let bucket = c.bucket.clone();
    let keys = worked("list_keys", c.keys(&bucket, prefix).await)?;
    same("keys", keys, Numbered(prefix).keys(COUNT))
}

pub(super) async fn delimiters_group<S: Session>(c: &mut Context<S>) -> Outcome {
    for prefix in ["tree/a/", "tree/b/", "tree/b/deep/", "tree/c&d/"] {
        c.fill(prefix, 3).await?;
    }
    c.fill("tree/", 2).await?;
    for class in c.offered(&[OpClass::List, OpClass::ListV1]).await? {
        let name = class.name();
        for (prefix, items) in [("tree/", 5), ("tree/b/", 4), ("tree", 1), ("tree/c&d/", 3)] {
            let got = c.listed(class, prefix, "/", 1000, 0).await;
            let (got, _) = worked(name, got)?;
            same(&format!("{name} of `{prefix}`"), got, items)?;
        }
        // A group is one entry even if its keys extend across a page's end.
        let expect = match class {
            OpClass::List => c.quirks.list_v2_pages,
            _ => super::Expect::Works,
        };
        let got = c.listed(class, "tree/", "/", 2, 0).await;
        if let Some((got, _)) = expect.check(name, got)? {
            same(&format!("{name} in pages"), got, 5)?;
        }
    }
    Ok(())
}

pub(super) async fn deletes_of_many<S: Session>(c: &mut Context<S>) -> Outcome {
    if !c.offers(OpClass::DeleteMany).await? {
        return Ok(());
    }
    c.fill("many/<&>", 30).await?;
    c.fill("many/keep", 1).await?;
    let bucket = c.bucket.clone();
    let of = |count| Op {
        count,
        ..Op::new(OpClass::DeleteMany)
    };
    let (some, all) = (of(20), of(30));
    let mut request = Request::new(&some, &bucket, "");
    request.keys = Some(&Numbered("many/<&>"));
    let done = worked("delete-many", c.execute(&request).await)?;
    same("keys deleted", done.items, 20)?;
    let left = worked("list", c.keys(&bucket, "many/").await)?;
    same("keys left", left.len(), 11)?;
    // Deleting a missing object is not an error.
    request.op = &all;
    worked("delete-many again", c.execute(&request).await)?;
    let left = worked("list", c.keys(&bucket, "many/").await)?;
    same("keys left", left, vec!["many/keep0000".to_owned()])
}

pub(super) async fn control_plane_pages<S: Session>(c: &mut Context<S>) -> Outcome {
    const MANY: u64 = 1003;
    let bucket = c.bucket.clone();
    c.fill("many-keys/", MANY).await?;
    let expect = c.quirks.list_v2_pages;
    let first = c.session.list_keys(&bucket, "many-keys/", None).await;
    let Some(first) = expect.check("list_keys", first)? else {
        return Ok(());
    };
    same("keys of a page", first.keys.len(), 1000)?;
    let next = first.next.as_deref();
    let rest = c.session.list_keys(&bucket, "many-keys/", next).await;
    let rest = worked("list_keys", rest)?;
    same("next of the last page", rest.next, None)?;
    let all = [first.keys, rest.keys].concat();
    same("keys", &all, &Numbered("many-keys/").keys(MANY))?;
    for keys in all.chunks(1000) {
        worked("delete_keys", c.session.delete_keys(&bucket, keys).await)?;
    }
    let left = worked("list", c.keys(&bucket, "many-keys/").await)?;
    same("keys left", left, Vec::new())
}
