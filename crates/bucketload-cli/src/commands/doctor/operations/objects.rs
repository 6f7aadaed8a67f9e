//! Objects: written, read, written again, copied, written in parts, appended to, renamed, tagged.

use bucketload_core::op::{ByteRange, Op, OpClass};

use super::{Desk, SIZE, sized};

/// Size of a part: the smallest that S3 takes.
const PART: u64 = 5 << 20;
/// Size of the object of two parts.
const PARTS: u64 = PART + SIZE;

const fn writing(class: OpClass, version: u32) -> Op {
    Op {
        size: SIZE,
        version,
        ..Op::new(class)
    }
}

impl Desk<'_> {
    /// Returns whether objects can be written, so that anything else can be asked.
    pub(super) async fn objects(&mut self) -> bool {
        let key = self.key("object");
        let at = (key.as_str(), "");
        let write = |version| writing(OpClass::Put, version);
        if !self
            .try_out("write", "an object", write(0), at, |done| {
                sized(done.bytes, SIZE)
            })
            .await
        {
            return self.fail("see what the server logs");
        }
        self.read(&key).await;
        if self.perform(write(1), &key, "").await.is_ok() {
            let read = self.holds(&key, 1, SIZE).await;
            self.say("read-after-overwrite", "the new content at once", read);
            self.advise("do not verify workloads that overwrite", &[]);
        }
        self.put_if_absent(&key).await;
        self.copy(&key).await;
        self.parts().await;
        self.append().await;
        self.rename().await;
        let touched = self.key("touched");
        self.try_out(
            "touch",
            "a new time of change",
            Op::new(OpClass::Touch),
            (&touched, ""),
            |_| Ok("accepted".to_owned()),
        )
        .await;
        self.tags().await;
        self.names().await;
        true
    }

    async fn read(&mut self, key: &str) {
        let at = (key, "");
        let get = Op {
            size: SIZE,
            ..Op::new(OpClass::Get)
        };
        if self
            .try_out("get", "the content just written", get, at, |done| {
                sized(done.bytes, SIZE)
            })
            .await
        {
            let range = |offset, len| Op {
                class: OpClass::RangeGet,
                range: Some(ByteRange { offset, len }),
                ..get
            };
            let thousand = |done: bucketload_core::driver::Completion| sized(done.bytes, 1000);
            if self
                .try_out(
                    "range",
                    "a range of bytes",
                    range(70_000, 1000),
                    at,
                    thousand,
                )
                .await
            {
                self.try_out(
                    "range-end",
                    "the last bytes",
                    range(SIZE - 1000, 1000),
                    at,
                    thousand,
                )
                .await;
            }
        }
        let head = Op::new(OpClass::Head);
        self.try_out("head", "the size of an object", head, at, |done| {
            sized(done.object_size, SIZE)
        })
        .await;
    }

    /// A conditional write must leave an object alone, and must write where there is none.
    async fn put_if_absent(&mut self, key: &str) {
        let (id, asked) = (
            "put-if-absent",
            "a write on condition that there is no object",
        );
        if !self.offers(OpClass::PutIfAbsent, id, asked) {
            return;
        }
        let class = OpClass::PutIfAbsent;
        let fresh = self.key("absent");
        let written = self.perform(writing(class, 2), &fresh, "").await;
        let refused = self.perform(writing(class, 2), key, "").await;
        let found = match (written, refused) {
            (Err(error), _) => Err(format!("where there is none: {error}")),
            (_, Err(error)) => Err(format!("where there is one: {error}")),
            (Ok(done), _) if done.items != 1 => {
                Err("nothing is written where there is none".to_owned())
            }
            (_, Ok(done)) if done.items != 0 => Err("the object is replaced".to_owned()),
            _ => match self.holds(key, 1, SIZE).await {
                Ok(_) => Ok("the object stays, and a new one is written".to_owned()),
                Err(error) => Err(format!("the object has changed: {error}")),
            },
        };
        if !self.say(id, asked, found) {
            self.advise("leave put-if-absent out of the mix", &[class]);
            // So that what comes next does not differ because of this.
            let _ = self.perform(writing(OpClass::Put, 1), key, "").await;
        }
    }

    async fn copy(&mut self, key: &str) {
        let copied = self.key("copy");
        let op = Op::new(OpClass::Copy);
        let done = |_| Ok("accepted".to_owned());
        if self
            .try_out("copy", "a copy in the store", op, (&copied, key), done)
            .await
        {
            let read = self.holds(&copied, 1, SIZE).await;
            self.say("copied", "the content of the copy", read);
            self.advise("leave copy out of the mix", &[OpClass::Copy]);
        }
    }

    /// Two parts, read back as one object; with another way of writing parts if the usual one fails.
    async fn parts(&mut self) {
        let (id, asked) = ("multipart", "an object written in parts");
        let class = OpClass::MultipartPut;
        if self.offers(class, id, asked) {
            let found = self.write_parts().await;
            let refusal = found.as_ref().err().cloned();
            self.say(id, asked, found);
            self.advise("leave multipart-put out of the mix", &[class]);
            if let Some(refusal) = refusal
                && let Some((flag, value, _)) = self.repair(id, Self::write_parts).await
            {
                self.settle((flag, value), refusal);
            }
        }
        let aborted = self.key("aborted");
        self.try_out(
            "multipart-abort",
            "the end of an upload without an object",
            Op::new(OpClass::MultipartAbort),
            (&aborted, ""),
            |_| Ok("accepted".to_owned()),
        )
        .await;
    }

    async fn write_parts(&mut self) -> Result<String, String> {
        let key = self.key("parts");
        let op = Op {
            size: PARTS,
            count: PART,
            version: 3,
            ..Op::new(OpClass::MultipartPut)
        };
        let done = self
            .perform(op, &key, "")
            .await
            .map_err(|e| e.to_string())?;
        let read = self.holds(&key, 3, PARTS).await?;
        Ok(format!("{} parts, {read}", done.items))
    }

    /// Two appends make one object.
    async fn append(&mut self) {
        let (id, asked) = ("append", "bytes added to an object");
        let class = OpClass::Append;
        if !self.offers(class, id, asked) {
            return;
        }
        let key = self.key("log");
        let part = |version| Op {
            size: 1000,
            version,
            ..Op::new(class)
        };
        let mut found = Ok(String::new());
        for version in [4, 5] {
            if let Err(error) = self.perform(part(version), &key, "").await {
                found = Err(error.to_string());
                break;
            }
        }
        if found.is_ok() {
            let mut wanted = vec![0; 2000];
            for (half, version) in wanted.chunks_mut(1000).zip([4, 5]) {
                self.arena.content(0, 1, version, 1000).fill(0, half);
            }
            let bucket = self.bucket.clone();
            found = match super::patiently(self.session.get_small(&bucket, &key)).await {
                Ok(bytes) if bytes == wanted => Ok("2 appends, 2000 bytes".to_owned()),
                Ok(bytes) => Err(format!(
                    "other content, {} bytes instead of 2000",
                    bytes.len()
                )),
                Err(error) => Err(error.to_string()),
            };
        }
        self.say(id, asked, found);
        self.advise("leave append out of the mix", &[class]);
    }

    async fn rename(&mut self) {
        let (id, asked) = ("renamed", "an object under another key");
        let class = OpClass::Rename;
        if !self.offers(class, id, asked) {
            return;
        }
        let (old, new) = (self.key("old"), self.key("new"));
        let mut found = match self.perform(writing(OpClass::Put, 6), &old, "").await {
            Ok(_) => self.perform(Op::new(class), &new, &old).await.map(drop),
            Err(error) => Err(error),
        }
        .map_err(|e| e.to_string());
        if found.is_ok() {
            found = self.holds(&new, 6, SIZE).await.map(drop);
        }
        if found.is_ok() && self.holds(&old, 6, SIZE).await.is_ok() {
            found = Err("the object is still there under its old key".to_owned());
        }
        self.say(
            id,
            asked,
            found.map(|()| "no bytes are lost, and the old key is free".to_owned()),
        );
        self.advise("leave rename out of the mix", &[class]);
    }

    /// Tags must not touch the content.
    async fn tags(&mut self) {
        let (id, asked) = ("tagging", "tags of an object");
        let all = [
            OpClass::PutTagging,
            OpClass::GetTagging,
            OpClass::DeleteTagging,
        ];
        if !self.offers(OpClass::PutTagging, id, asked) {
            return;
        }
        let key = self.key("tagged");
        let mut found = self
            .perform(writing(OpClass::Put, 7), &key, "")
            .await
            .map(drop);
        for class in all {
            if found.is_ok() && self.offered.contains(&class) {
                let done = self.perform(Op::new(class), &key, "").await;
                found = done.map(drop);
            }
        }
        let found = match found {
            Ok(()) => match self.holds(&key, 7, SIZE).await {
                Ok(_) => Ok("written, read and removed".to_owned()),
                Err(error) => Err(format!("the object has changed: {error}")),
            },
            Err(error) => Err(error.to_string()),
        };
        self.say(id, asked, found);
        self.advise("leave the tagging operations out of the mix", &all);
    }

    /// A key that has to be encoded on the way.
    async fn names(&mut self) {
        let asked = "keys with blanks, +, % and letters beyond ASCII";
        let key = self.key("a b+c%20d/\u{e4}\u{20ac}");
        let bucket = self.bucket.clone();
        let found = match super::patiently(self.session.put_small(&bucket, &key, b"named")).await {
            Err(error) => Err(error.to_string()),
            Ok(()) => {
                match super::patiently(self.session.list_keys(&bucket, &self.prefix, None)).await {
                    Ok(page) if page.keys.contains(&key) => {
                        Ok("written, and listed as written".to_owned())
                    }
                    Ok(_) => Err("the listing does not have the key as written".to_owned()),
                    Err(error) => Err(error.to_string()),
                }
            }
        };
        self.say("keys", asked, found);
        self.advise("use keys of plain letters, digits and -._/", &[]);
    }
}
