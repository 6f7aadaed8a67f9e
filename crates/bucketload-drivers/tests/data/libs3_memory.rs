//! A libs3 library for the tests of the driver: version 4 of the interface over a map in memory, declared
//! independently of the driver. The tests compile it with rustc. `--cfg version_2` makes it name statuses as version 2 does,
//! `--cfg silent` makes it forget the last callback, `--cfg greedy` makes it cut objects at 1,000 bytes.
#![allow(unsafe_op_in_unsafe_fn, unexpected_cfgs, clippy::all)]

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::null;
use std::sync::{Mutex, MutexGuard};

type Text = *const c_char;
type Data = *mut c_void;
type P = Option<extern "C" fn(*const Properties, Data) -> c_int>;
type C = Option<extern "C" fn(c_int, *const Details, Data)>;
type PutData = extern "C" fn(c_int, *mut c_char, Data) -> c_int;
type GetData = extern "C" fn(c_int, *const c_char, Data) -> c_int;

#[repr(C)]
pub struct Properties {
    request_id: Text,
    request_id2: Text,
    content_type: Text,
    content_length: u64,
    server: Text,
    etag: Text,
    last_modified: i64,
    meta_count: c_int,
    meta: *const c_void,
    encrypted: c_char,
}

#[repr(C)]
pub struct Details {
    message: Text,
    resource: Text,
    further: Text,
    extra_count: c_int,
    extra: *const c_void,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Handler {
    properties: P,
    complete: C,
}

#[repr(C)]
pub struct With<F> {
    response: Handler,
    callback: F,
}

#[repr(C)]
pub struct Commit {
    response: Handler,
    put: PutData,
    callback: extern "C" fn(Text, Text, Data) -> c_int,
}

#[repr(C)]
pub struct Bucket {
    host: Text,
    name: Text,
    protocol: c_int,
    style: c_int,
    access: Text,
    secret: Text,
    token: Text,
    region: Text,
}

#[repr(C)]
pub struct Content {
    key: Text,
    modified: i64,
    etag: Text,
    size: u64,
    owner: Text,
    owner_name: Text,
}

#[repr(C)]
pub struct UploadEntry {
    key: Text,
    id: Text,
    others: [Text; 5],
    initiated: i64,
}

type Key = (Vec<u8>, Vec<u8>);

struct Upload {
    at: Key,
    parts: BTreeMap<c_int, Vec<u8>>,
}

struct Store {
    buckets: BTreeSet<Vec<u8>>,
    objects: BTreeMap<Key, Vec<u8>>,
    uploads: BTreeMap<String, Upload>,
    next: u64,
}

static STORE: Mutex<Store> = Mutex::new(Store {
    buckets: BTreeSet::new(),
    objects: BTreeMap::new(),
    uploads: BTreeMap::new(),
    next: 0,
});

fn store() -> MutexGuard<'static, Store> {
    STORE.lock().unwrap()
}

unsafe fn bytes(text: Text) -> Vec<u8> {
    match text.is_null() {
        true => Vec::new(),
        false => CStr::from_ptr(text).to_bytes().to_vec(),
    }
}

impl Bucket {
    unsafe fn at(&self, key: Text) -> Key {
        (bytes(self.name), bytes(key))
    }
}

unsafe fn properties(handler: &Handler, length: u64, etag: Text, data: Data) -> c_int {
    let properties = Properties {
        request_id: null(),
        request_id2: null(),
        content_type: null(),
        content_length: length,
        server: null(),
        etag,
        last_modified: 1,
        meta_count: 0,
        meta: null(),
        encrypted: 0,
    };
    handler.properties.map_or(0, |callback| callback(&properties, data))
}

unsafe fn complete(handler: &Handler, status: c_int, data: Data) {
    let details = Details {
        message: if status == 0 { null() } else { c"as the test library says".as_ptr() },
        resource: null(),
        further: null(),
        extra_count: 0,
        extra: null(),
    };
    if cfg!(silent) && status != 0 {
        return;
    }
    if let Some(callback) = handler.complete {
        callback(status, &details, data);
    }
}

unsafe fn end(handler: &Handler, status: c_int, length: u64, data: Data) {
    let status = match status {
        0 => properties(handler, length, c"\"tag\"".as_ptr(), data),
        status => status,
    };
    complete(handler, status, data);
}

/// Pulls `length` bytes out of a callback; `None` when it aborts.
unsafe fn pull(callback: PutData, length: u64, data: Data) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    let mut buffer = vec![0_u8; 65_536];
    let length = if cfg!(greedy) { length.min(1000) } else { length };
    while (body.len() as u64) < length {
        let want = (length - body.len() as u64).min(buffer.len() as u64);
        match callback(want as c_int, buffer.as_mut_ptr().cast(), data) {
            0 => break,
            count @ 1.. => body.extend_from_slice(&buffer[..count as usize]),
            _ => return None,
        }
    }
    Some(body)
}

#[unsafe(no_mangle)]
pub extern "C" fn S3_initialize(_agent: Text, _flags: c_int, _host: Text) -> c_int {
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn S3_deinitialize() {}

#[unsafe(no_mangle)]
pub extern "C" fn S3_get_status_name(status: c_int) -> Text {
    match status {
        48 if cfg!(version_2) => c"ErrorAccessDenied",
        48 => c"NotSupported",
        101 => c"ErrorNoSuchBucket",
        102 => c"ErrorNoSuchKey",
        _ => c"Other",
    }
    .as_ptr()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn S3_list_service(
    _p: c_int, _a: Text, _s: Text, _t: Text, _h: Text, _r: Text, _c: Data, _ms: c_int,
    handler: *const With<extern "C" fn(Text, Text, Text, i64, Data) -> c_int>, data: Data,
) {
    let handler = &*handler;
    properties(&handler.response, 0, null(), data);
    let names: Vec<_> = store().buckets.iter().cloned().collect();
    for name in names {
        (handler.callback)(null(), null(), CString::new(name).unwrap().as_ptr(), 1, data);
    }
    complete(&handler.response, 0, data);
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn S3_test_bucket(
    _p: c_int, _u: c_int, _a: Text, _s: Text, _t: Text, _h: Text, bucket: Text, _r: Text, _size: c_int,
    _location: *mut c_char, _c: Data, _ms: c_int, handler: *const Handler, data: Data,
) {
    let there = store().buckets.contains(&bytes(bucket));
    end(&*handler, if there { 0 } else { 101 }, 0, data);
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn S3_create_bucket(
    _p: c_int, _a: Text, _s: Text, _t: Text, _h: Text, bucket: Text, _r: Text, _acl: c_int, _location: Text,
    _c: Data, _ms: c_int, handler: *const Handler, data: Data,
) {
    store().buckets.insert(bytes(bucket));
    end(&*handler, 0, 0, data);
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn S3_delete_bucket(
    _p: c_int, _u: c_int, _a: Text, _s: Text, _t: Text, _h: Text, bucket: Text, _r: Text, _c: Data, _ms: c_int,
    handler: *const Handler, data: Data,
) {
    let bucket = bytes(bucket);
    let status = {
        let mut store = store();
        if !store.buckets.contains(&bucket) {
            101
        } else if store.objects.keys().any(|(b, _)| *b == bucket) {
            55
        } else {
            store.buckets.remove(&bucket);
            0
        }
    };
    end(&*handler, status, 0, data);
}

type Listed = extern "C" fn(c_int, Text, c_int, *const Content, c_int, *const Text, Data) -> c_int;

#[unsafe(no_mangle)]
pub unsafe extern "C" fn S3_list_bucket(
    bucket: *const Bucket, prefix: Text, marker: Text, delimiter: Text, most: c_int, _c: Data, _ms: c_int,
    handler: *const With<Listed>, data: Data,
) {
    let handler = &*handler;
    let (bucket, prefix) = (*bucket).at(prefix);
    let (marker, delimiter) = (bytes(marker), bytes(delimiter));
    let (mut keys, mut groups, mut more) = (Vec::new(), Vec::new(), false);
    {
        let store = store();
        if !store.buckets.contains(&bucket) {
            drop(store);
            return complete(&handler.response, 101, data);
        }
        for ((b, key), value) in &store.objects {
            if *b != bucket || !key.starts_with(&prefix) {
                continue;
            }
            let rest = &key[prefix.len()..];
            let cut = rest.windows(delimiter.len().max(1)).position(|w| !delimiter.is_empty() && w == delimiter);
            let entry = cut.map_or(key.clone(), |at| key[..prefix.len() + at + delimiter.len()].to_vec());
            if entry <= marker || groups.last() == Some(&entry) {
                continue;
            }
            if keys.len() + groups.len() == most as usize {
                more = true;
                break;
            }
            match cut {
                Some(_) => groups.push(entry),
                None => keys.push((entry, value.len())),
            }
        }
    }
    properties(&handler.response, 0, null(), data);
    // As AWS does, a marker with a delimiter only.
    let last = keys.last().map(|(k, _)| k.clone()).max(groups.last().cloned()).unwrap_or_default();
    let next = CString::new(if more && !delimiter.is_empty() { last } else { Vec::new() }).unwrap();
    let keys: Vec<_> = keys.into_iter().map(|(k, n)| (CString::new(k).unwrap(), n)).collect();
    let groups: Vec<_> = groups.into_iter().map(|g| CString::new(g).unwrap()).collect();
    for batch in keys.chunks(32) {
        let contents: Vec<_> = batch
            .iter()
            .map(|(key, size)| Content {
                key: key.as_ptr(), modified: 1, etag: null(), size: *size as u64, owner: null(), owner_name: null(),
            })
            .collect();
        (handler.callback)(more.into(), next.as_ptr(), contents.len() as c_int, contents.as_ptr(), 0, null(), data);
    }
    for batch in groups.chunks(8) {
        let names: Vec<_> = batch.iter().map(|group| group.as_ptr()).collect();
        (handler.callback)(more.into(), next.as_ptr(), 0, null(), names.len() as c_int, names.as_ptr(), data);
    }
    complete(&handler.response, 0, data);
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn S3_put_object(
    bucket: *const Bucket, key: Text, length: u64, _properties: *const c_void, _c: Data, _ms: c_int,
    handler: *const With<PutData>, data: Data,
) {
    let (handler, at) = (&*handler, (*bucket).at(key));
    if at.1.len() > 1024 {
        if let Some(callback) = handler.response.complete {
            callback(30, null(), data);
        }
        return;
    }
    let body = pull(handler.callback, length, data);
    let status = match body {
        None => 47,
        Some(_) if !store().buckets.contains(&at.0) => 101,
        Some(body) => {
            store().objects.insert(at, body);
            0
        }
    };
    end(&handler.response, status, 0, data);
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn S3_get_object(
    bucket: *const Bucket, key: Text, _conditions: *const c_void, start: u64, count: u64, _c: Data, _ms: c_int,
    handler: *const With<GetData>, data: Data,
) {
    let handler = &*handler;
    let found = store().objects.get(&(*bucket).at(key)).cloned();
    let Some(body) = found else {
        return complete(&handler.response, 102, data);
    };
    let start = start as usize;
    if start >= body.len() && (start, count) != (0, 0) {
        return complete(&handler.response, 79, data);
    }
    let last = if count == 0 { body.len() } else { body.len().min(start + count as usize) };
    let body = &body[start..last];
    properties(&handler.response, body.len() as u64, null(), data);
    for piece in body.chunks(16_384) {
        (handler.callback)(piece.len() as c_int, piece.as_ptr().cast(), data);
    }
    complete(&handler.response, 0, data);
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn S3_head_object(
    bucket: *const Bucket, key: Text, _c: Data, _ms: c_int, handler: *const Handler, data: Data,
) {
    let found = store().objects.get(&(*bucket).at(key)).map(Vec::len);
    end(&*handler, if found.is_some() { 0 } else { 132 }, found.unwrap_or(0) as u64, data);
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn S3_delete_object(
    bucket: *const Bucket, key: Text, _c: Data, _ms: c_int, handler: *const Handler, data: Data,
) {
    let at = (*bucket).at(key);
    let status = {
        let mut store = store();
        store.objects.remove(&at);
        if store.buckets.contains(&at.0) { 0 } else { 101 }
    };
    end(&*handler, status, 0, data);
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn S3_copy_object(
    bucket: *const Bucket, key: Text, to_bucket: Text, to_key: Text, _properties: *const c_void,
    _modified: *mut i64, _size: c_int, _etag: *mut c_char, _c: Data, _ms: c_int, handler: *const Handler, data: Data,
) {
    let found = store().objects.get(&(*bucket).at(key)).cloned();
    let status = match found {
        Some(body) => {
            store().objects.insert((bytes(to_bucket), bytes(to_key)), body);
            0
        }
        None => 102,
    };
    end(&*handler, status, 0, data);
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn S3_initiate_multipart(
    bucket: *const Bucket, key: Text, _properties: *const c_void,
    handler: *const With<extern "C" fn(Text, Data) -> c_int>, _c: Data, _ms: c_int, data: Data,
) {
    let (handler, at) = (&*handler, (*bucket).at(key));
    let id = {
        let mut store = store();
        store.next += 1;
        let id = format!("upload-{}", store.next);
        store.uploads.insert(id.clone(), Upload { at, parts: BTreeMap::new() });
        id
    };
    end(&handler.response, 0, 0, data);
    (handler.callback)(CString::new(id).unwrap().as_ptr(), data);
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn S3_upload_part(
    _bucket: *const Bucket, _key: Text, _properties: *const c_void, handler: *const With<PutData>, number: c_int,
    id: Text, length: c_int, _c: Data, _ms: c_int, data: Data,
) {
    let handler = &*handler;
    let body = pull(handler.callback, length as u64, data).unwrap();
    let id = String::from_utf8(bytes(id)).unwrap();
    let known = match store().uploads.get_mut(&id) {
        Some(upload) => {
            upload.parts.insert(number, body);
            true
        }
        None => false,
    };
    if !known {
        return complete(&handler.response, 104, data);
    }
    let etag = CString::new(format!("\"part {number}\"")).unwrap();
    properties(&handler.response, 0, etag.as_ptr(), data);
    complete(&handler.response, 0, data);
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn S3_complete_multipart_upload(
    _bucket: *const Bucket, _key: Text, handler: *const Commit, id: Text, length: c_int, _c: Data, _ms: c_int,
    data: Data,
) {
    let handler = &*handler;
    let document = String::from_utf8(pull(handler.put, length as u64, data).unwrap()).unwrap();
    let id = String::from_utf8(bytes(id)).unwrap();
    let status = {
        let mut store = store();
        let upload = store.uploads.get(&id).unwrap();
        // The document must name every part with the tag that it was told.
        let expected: String = upload
            .parts
            .keys()
            .map(|n| format!("<Part><PartNumber>{n}</PartNumber><ETag>\"part {n}\"</ETag></Part>"))
            .collect();
        let small = upload.parts.iter().rev().skip(1).any(|(_, part)| part.len() < 5 << 20);
        if document != format!("<CompleteMultipartUpload>{expected}</CompleteMultipartUpload>") {
            90
        } else if small {
            58
        } else {
            let upload = store.uploads.remove(&id).unwrap();
            let body = upload.parts.into_values().flatten().collect();
            store.objects.insert(upload.at, body);
            0
        }
    };
    end(&handler.response, status, 0, data);
    (handler.callback)(c"".as_ptr(), c"".as_ptr(), data);
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn S3_abort_multipart_upload(
    _bucket: *const Bucket, _key: Text, id: Text, _ms: c_int, handler: *const Handler,
) {
    let id = String::from_utf8(bytes(id)).unwrap();
    store().uploads.remove(&id);
    // As the original does: no data, and no end.
    properties(&*handler, 0, null(), std::ptr::null_mut());
}

type UploadsListed = extern "C" fn(c_int, Text, Text, c_int, *const UploadEntry, c_int, *const Text, Data) -> c_int;

#[unsafe(no_mangle)]
pub unsafe extern "C" fn S3_list_multipart_uploads(
    bucket: *const Bucket, prefix: Text, _marker: Text, _id: Text, _encoding: Text, _delimiter: Text, _most: c_int,
    _c: Data, _ms: c_int, handler: *const With<UploadsListed>, data: Data,
) {
    let handler = &*handler;
    let (bucket, prefix) = (*bucket).at(prefix);
    let found: Vec<_> = store()
        .uploads
        .iter()
        .filter(|(_, upload)| upload.at.0 == bucket && upload.at.1.starts_with(&prefix))
        .map(|(id, upload)| (CString::new(upload.at.1.clone()).unwrap(), CString::new(id.clone()).unwrap()))
        .collect();
    let entries: Vec<_> = found
        .iter()
        .map(|(key, id)| UploadEntry { key: key.as_ptr(), id: id.as_ptr(), others: [null(); 5], initiated: 1 })
        .collect();
    properties(&handler.response, 0, null(), data);
    (handler.callback)(0, c"".as_ptr(), c"".as_ptr(), entries.len() as c_int, entries.as_ptr(), 0, null(), data);
    complete(&handler.response, 0, data);
}
