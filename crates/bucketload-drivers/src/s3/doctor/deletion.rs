//! Deletions, and the removal of everything that the doctor wrote.

use super::answer::{Ask, words};
use super::lab::Lab;
use super::multipart;
use super::verdict::Verdict;
use bucketload_s3::xml;

pub(super) async fn delete(lab: &mut Lab) -> Verdict {
    let key = lab.key("deleted");
    if let Err(said) = lab.put(&key, b"deleted").await {
        return Verdict::differs(said);
    }
    let said = match lab.ask(Ask::new("DELETE", &key)).await {
        Ok(answer) if answer.is_ok() => answer.words().to_owned(),
        other => return Verdict::failed(words(&other)),
    };
    match lab.exists(&key).await {
        Ok(false) => Verdict::ok(said),
        Ok(true) => Verdict::failed(format!("{said}, but the object is still there")),
        Err(error) => Verdict::differs(format!("{said}, then: {error}")),
    }
}

pub(super) async fn delete_missing(lab: &mut Lab) -> Verdict {
    let key = lab.key("never-written");
    match lab.ask(Ask::new("DELETE", &key)).await {
        Ok(answer) if answer.is_ok() => Verdict::ok(answer.words()),
        other => Verdict::differs(words(&other)),
    }
}

/// Deletes `keys` in one request.
async fn many(lab: &mut Lab, keys: &[String]) -> Result<String, String> {
    let mut document = b"<Delete>".to_vec();
    for key in keys {
        document.extend_from_slice(b"<Object><Key>");
        xml::push_escaped(&mut document, key);
        document.extend_from_slice(b"</Key></Object>");
    }
    document.extend_from_slice(b"</Delete>");
    let md5 = crate::s3::checksum::content_md5(&document);
    let md5 = String::from_utf8_lossy(md5.as_bytes()).into_owned();
    let headers = [("content-md5", md5.as_str())];
    let ask = Ask::new("POST", "")
        .query("delete=")
        .headers(&headers)
        .body(&document);
    match lab.ask(ask).await {
        Ok(answer) if answer.is_ok() => {
            let mut refused = None;
            answer.leaves(|path, text| {
                if let [_, "Error", "Code"] = path {
                    refused = Some(text);
                }
            });
            match refused {
                None => Ok(answer.words().to_owned()),
                Some(code) => Err(format!("{}: {code}", answer.words())),
            }
        }
        other => Err(words(&other)),
    }
}

pub(super) async fn delete_many(lab: &mut Lab) -> Verdict {
    let keys = [lab.key("many/1"), lab.key("many/2")];
    for key in &keys {
        if let Err(said) = lab.put(key, b"many").await {
            return Verdict::differs(said);
        }
    }
    let said = match many(lab, &keys).await {
        Ok(said) => said,
        Err(said) => return Verdict::differs(said),
    };
    for key in &keys {
        match lab.exists(key).await {
            Ok(false) => {}
            Ok(true) => {
                return Verdict::differs(format!("{said}, but the objects are still there"));
            }
            Err(error) => return Verdict::differs(format!("{said}, then: {error}")),
        }
    }
    Verdict::ok(format!("{said}, 2 keys"))
}

impl Lab {
    /// Removes everything that was written, the marker last. Returns what could not be removed, with the reason.
    pub(super) async fn clean_up(&mut self) -> Vec<String> {
        if self.keys.is_empty() && !self.created_bucket {
            return Vec::new();
        }
        let mut left = multipart::end_all(self).await;
        let marker = self.marker.clone();
        let mut keys: Vec<String> = self
            .keys
            .iter()
            .filter(|key| **key != marker)
            .cloned()
            .collect();
        self.remove(&keys, &mut left).await;
        // Some servers store other keys than those written.
        if self.list_version().is_some() {
            match self.every_key().await {
                Ok(listed) => {
                    keys = listed.into_iter().filter(|key| *key != marker).collect();
                    let reported = left.len();
                    if reported == 0 && !keys.is_empty() {
                        self.remove(&keys, &mut left).await;
                    }
                }
                Err(said) => left.push(format!("perhaps more below {}: {said}", self.prefix)),
            }
        }
        // The marker stays as long as anything else does, so that `bucketload cleanup` finds it.
        if left.is_empty() {
            self.remove(&[marker], &mut left).await;
        }
        if self.created_bucket
            && left.is_empty()
            && let Err(said) = self.remove_bucket().await
        {
            left.push(format!("the bucket {}: {said}", self.bucket));
        }
        left
    }

    async fn remove(&mut self, keys: &[String], left: &mut Vec<String>) {
        if self.works("delete-many") && keys.len() > 1 && many(self, keys).await.is_ok() {
            return;
        }
        for key in keys {
            match self.ask(Ask::new("DELETE", key)).await {
                Ok(answer) if answer.is_ok() || answer.status == 404 => {}
                other => left.push(format!("{key}: {}", words(&other))),
            }
        }
    }

    async fn remove_bucket(&mut self) -> Result<(), String> {
        match self.ask(Ask::new("DELETE", "")).await {
            Ok(answer) if answer.is_ok() => Ok(()),
            other => Err(words(&other)),
        }
    }
}
