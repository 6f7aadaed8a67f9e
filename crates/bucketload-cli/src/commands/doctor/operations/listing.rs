//! Listings: complete, in order, in pages, and how soon they show what was written.

use std::time::{Duration, Instant};

use bucketload_core::op::{Op, OpClass, Request};

use super::{Desk, Found, patiently};

/// Objects that are written for listings.
const OBJECTS: usize = 5;
/// Keys per page.
const PER_PAGE: u64 = 2;
/// How long a listing may take to show what was written.
const DELAY: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(100);

impl Desk<'_> {
    pub(super) async fn listings(&mut self) {
        let folder = format!("{}list/", self.prefix);
        let bucket = self.bucket.clone();
        let mut wanted = Vec::new();
        // Not in their order.
        for i in [3, 1, 4, 0, 2] {
            let key = self.key(&format!("list/{i}"));
            if let Err(error) = patiently(self.session.put_small(&bucket, &key, b"listed")).await {
                self.say("list", "all keys below a prefix", Err(error.to_string()));
                return;
            }
            wanted.push(key);
        }
        wanted.sort();
        if !self.offered.contains(&OpClass::List) && !self.offered.contains(&OpClass::ListV1) {
            self.offers(OpClass::List, "list", "all keys below a prefix");
            return;
        }
        let (keys, delay) = match self.complete(&folder, &wanted).await {
            Ok(found) => found,
            Err(error) => {
                self.say("list", "all keys below a prefix", Err(error));
                let remedy =
                    "leave list out of the mix; check that clean-up has removed everything";
                self.advise(remedy, &[OpClass::List, OpClass::ListV1]);
                return;
            }
        };
        self.say(
            "list",
            "all keys below a prefix",
            Ok(format!("{} keys", keys.len())),
        );
        let seen = match delay {
            None => Ok("at once".to_owned()),
            Some(delay) => Err(format!("all of them after {} ms", delay.as_millis())),
        };
        self.say("list-after-write", "new keys in the listing at once", seen);
        self.advise("leave some seconds between writing and listing", &[]);
        let order = match keys == wanted {
            true => Ok("in order".to_owned()),
            false => Err(format!("{keys:?}")),
        };
        self.say("list-order", "keys in the order of their bytes", order);
        self.advise("programs that page by key may skip or repeat keys", &[]);
        for (class, id) in [
            (OpClass::List, "list-paging"),
            (OpClass::ListV1, "list-v1-paging"),
        ] {
            if self.offered.contains(&class) {
                let found = self.paging(class, &folder).await;
                self.say(
                    id,
                    "all pages of a listing, none longer than asked for",
                    found,
                );
                self.advise(&format!("leave {class} out of the mix"), &[class]);
            }
        }
    }

    /// The listing once it has all of `wanted`, and how long that took; no time if it had them at once.
    async fn complete(
        &mut self,
        folder: &str,
        wanted: &[String],
    ) -> Result<(Vec<String>, Option<Duration>), String> {
        let bucket = self.bucket.clone();
        let began = Instant::now();
        let mut first = true;
        loop {
            let listed = patiently(self.session.list_keys(&bucket, folder, None)).await;
            let keys = listed.map_err(|e| e.to_string())?.keys;
            if wanted.iter().all(|key| keys.contains(key)) {
                return Ok((keys, (!first).then(|| began.elapsed())));
            }
            if began.elapsed() > DELAY {
                return Err(format!(
                    "{} of {} keys after {} s",
                    keys.len(),
                    wanted.len(),
                    DELAY.as_secs()
                ));
            }
            first = false;
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn paging(&mut self, class: OpClass, folder: &str) -> Found {
        for (pages, keys) in [(0, OBJECTS as u64), (1, PER_PAGE)] {
            let bucket = self.bucket.clone();
            let op = Op {
                count: PER_PAGE,
                pages,
                ..Op::new(class)
            };
            let listed = self.execute(&Request::new(&op, &bucket, folder)).await;
            let listed = listed.map_err(|e| e.to_string())?.items;
            if listed != keys {
                let which = if pages == 0 {
                    "all pages"
                } else {
                    "the first page"
                };
                return Err(format!("{listed} keys on {which} instead of {keys}"));
            }
        }
        Ok(format!("{OBJECTS} keys in pages of {PER_PAGE}"))
    }
}
