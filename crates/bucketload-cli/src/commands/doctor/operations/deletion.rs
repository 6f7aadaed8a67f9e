//! Deletions: of one object, of several, of none.

use bucketload_core::error::ErrorKind;
use bucketload_core::op::{KeySource, Op, OpClass, Request};

use super::{Desk, Found, patiently};

/// Objects that are deleted together.
const MANY: u64 = 3;

/// The keys of a deletion of several objects.
struct Numbered(String);

impl KeySource for Numbered {
    fn render(&self, i: u64, out: &mut String) {
        out.clear();
        out.push_str(&self.0);
        out.push_str(&i.to_string());
    }
}

impl Desk<'_> {
    pub(super) async fn deletions(&mut self) {
        let key = self.key("object");
        let op = Op::new(OpClass::Delete);
        let accepted = |_| Ok("accepted".to_owned());
        if !self
            .try_out("delete", "the right to delete", op, (&key, ""), accepted)
            .await
        {
            self.fail(
                "grant the right to delete below the prefix; without it, a run cannot clean up",
            );
            return;
        }
        let gone = self.gone(&key).await;
        self.say("deleted", "nothing where an object was deleted", gone);
        let missing = match self.perform(op, &key, "").await {
            Ok(_) => Ok("success, as if there had been one".to_owned()),
            Err(error) if error.kind == ErrorKind::NotFound => {
                Ok("not found, as documented".to_owned())
            }
            Err(error) => Err(error.to_string()),
        };
        self.say("delete-missing", "the deletion of nothing", missing);
        self.delete_many().await;
    }

    async fn gone(&mut self, key: &str) -> Found {
        let bucket = self.bucket.clone();
        match patiently(self.session.get_small(&bucket, key)).await {
            Err(error) if error.kind == ErrorKind::NotFound => Ok("not found".to_owned()),
            Err(error) => Err(error.to_string()),
            Ok(_) => Err("it is still there".to_owned()),
        }
    }

    async fn delete_many(&mut self) {
        let (id, asked) = ("delete-many", "several objects deleted in one request");
        let class = OpClass::DeleteMany;
        if !self.offers(class, id, asked) {
            return;
        }
        let found = self.try_delete_many().await;
        self.say(id, asked, found);
        self.advise("leave delete-many out of the mix", &[class]);
    }

    async fn try_delete_many(&mut self) -> Found {
        let names = Numbered(format!("{}many/", self.prefix));
        let bucket = self.bucket.clone();
        let mut keys = Vec::new();
        for i in 0..MANY {
            let key = self.key(&format!("many/{i}"));
            let put = patiently(self.session.put_small(&bucket, &key, b"one of many")).await;
            put.map_err(|e| e.to_string())?;
            keys.push(key);
        }
        let op = Op {
            count: MANY,
            ..Op::new(OpClass::DeleteMany)
        };
        let mut request = Request::new(&op, &bucket, &keys[0]);
        request.keys = Some(&names);
        let done = self.execute(&request).await.map_err(|e| e.to_string())?;
        for key in &keys {
            self.gone(key)
                .await
                .map_err(|found| format!("{key}: {found}"))?;
        }
        Ok(format!("{} objects", done.items))
    }
}
