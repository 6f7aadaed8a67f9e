//! The location of objects: the volumes of an object's chunks, and the servers of a volume.

use bucketload_core::error::{ErrorKind, OpError, OpResult};

use super::filer::push_path;
use super::session::SeaweedSession;
use crate::http::answer::unreadable;
use crate::http::render::Render as _;
use crate::http::session::{HttpSession as _, Rendering as _};
use crate::json::{self, Value};
use bucketload_s3::encode;

/// Most bytes of an object's metadata: some hundred thousand chunks.
const MAX_METADATA: usize = 64 << 20;

/// Reads the volumes of an object's chunks, each once, in the order of the chunks. Older filers write a
/// chunk's file ID as text, newer ones as separate numbers.
fn read_volumes(body: &[u8]) -> Result<Vec<u32>, json::Malformed> {
    let mut found = Vec::new();
    let mut add = |volume: Option<u32>| {
        if let Some(volume) = volume.filter(|volume| !found.contains(volume)) {
            found.push(volume);
        }
    };
    json::values(body, |path, value| match (path, value) {
        (["chunks", "[]", "file_id"], Value::Text(text)) => {
            let volume = text.plain().and_then(|text| text.split_once(','));
            add(volume.and_then(|(volume, _)| volume.parse().ok()));
        }
        (["chunks", "[]", "fid", "volume_id"], value) => {
            add(value.whole().and_then(|volume| volume.try_into().ok()));
        }
        _ => {}
    })?;
    Ok(found)
}

/// Reads the addresses of a volume's servers.
fn read_servers(body: &[u8]) -> Result<Vec<String>, json::Malformed> {
    let mut found: Vec<String> = Vec::new();
    let (mut public, mut inner) = (String::new(), String::new());
    json::values(body, |path, value| match (path, value) {
        (["locations", "[]", "publicUrl"], Value::Text(text)) => public = text.get(),
        (["locations", "[]", "url"], Value::Text(text)) => inner = text.get(),
        (["locations", "[]"], Value::End) => {
            let (public, inner) = (std::mem::take(&mut public), std::mem::take(&mut inner));
            found.push(if public.is_empty() { inner } else { public });
        }
        _ => {}
    })?;
    Ok(found)
}

impl SeaweedSession {
    /// Asks a filer for the volumes with the chunks of an object, each once, in the order of the chunks.
    /// An object inside the filer itself has none. For sessions of a filer.
    ///
    /// # Errors
    /// `NotFound` when the object does not exist; otherwise the filer's error.
    pub async fn volumes_of(&mut self, bucket: &str, key: &str) -> OpResult<Vec<u32>> {
        let mut head = self.begin("GET");
        push_path(&mut head, bucket, key);
        head.text("?metadata=true&resolveManifest=true");
        let mut request = self.bare(head);
        let body = self.fetch(&mut request, MAX_METADATA).await?;
        read_volumes(&body).map_err(|e| unreadable("metadata of an object", e))
    }

    /// Asks a master for the addresses of a volume's servers. For sessions of a master.
    ///
    /// # Errors
    /// `NotFound` when the volume does not exist; otherwise the master's error.
    pub async fn servers_of(&mut self, volume: u32) -> OpResult<Vec<String>> {
        let mut head = self.begin("GET");
        head.text("/dir/lookup?volumeId=");
        encode::push_decimal(&mut head, u64::from(volume));
        let mut request = self.bare(head);
        let body = self.fetch(&mut request, MAX_METADATA).await?;
        let servers = read_servers(&body).map_err(|e| unreadable("lookup", e))?;
        match servers.is_empty() {
            false => Ok(servers),
            true => Err(OpError::new(
                ErrorKind::NotFound,
                format!("the master knows no server of volume {volume}"),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{read_servers, read_volumes};

    #[test]
    fn chunks_and_their_servers_are_read() {
        let old = br#"{"FullPath":"/x","chunks":[{"file_id":"17,04fbb55507b515","size":1},
            {"file_id":"3,01"},{"file_id":"17,05fbb55507b515"}]}"#;
        assert_eq!(read_volumes(old), Ok(vec![17, 3]));
        let new = br#"{"chunks":[{"fid":{"volume_id":5,"file_key":9,"cookie":1},"size":2}]}"#;
        assert_eq!(read_volumes(new), Ok(vec![5]));
        assert_eq!(read_volumes(br#"{"Content":"eA=="}"#), Ok(Vec::new()));
        let found = br#"{"locations":[{"url":"a:1","publicUrl":"b:2"},{"url":"c:3"}]}"#;
        assert_eq!(
            read_servers(found),
            Ok(vec!["b:2".to_owned(), "c:3".to_owned()])
        );
    }

    proptest! {
        #[test]
        fn arbitrary_input_does_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = (read_volumes(&bytes), read_servers(&bytes));
        }
    }
}
