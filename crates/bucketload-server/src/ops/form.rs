//! PostObject: uploads by HTML forms.

use bucketload_wire::clock;

use super::{Ctx, acl, metadata, sse};
use crate::checks::Checks;
use crate::config::Access;
use crate::error::{Code, S3Error, S3Result};
use crate::form::Form;
use crate::headers::Headers;
use crate::respond::Body;
use crate::router::Operation;
use crate::tags;
use crate::uri::Target;
use crate::xml::Doc;
use bucketload_s3::encode::{key_text, query_text};
use bucketload_store::{Commit, PutOptions, Tags};

/// PostObject.
pub(crate) fn post(
    ctx: &mut Ctx<'_>,
    input: &[u8],
    boundary: &str,
    origin: &str,
) -> S3Result<Body> {
    let mut form = Form::read(input, boundary)?;
    form.name_by_file();
    let config = &ctx.server.config;
    let bucket = ctx.target.bucket().to_owned();
    let now = clock::wall_seconds();
    let signed = form.authorised(&bucket, &config.keys, &config.region, now)?;
    let unsigned = !signed && config.access == Access::Signed;
    let key = form.field("key").filter(|key| !key.is_empty());
    let key = key.ok_or_else(|| {
        S3Error::new(
            Code::InvalidArgument,
            "Bucket POST must contain a field named 'key'.",
        )
    })?;
    let mut target = Target::default();
    target.parse(
        &["/", &*key_text(&bucket), "/", &*key_text(key)].concat(),
        None,
    )?;
    let mut inner = Ctx {
        server: ctx.server,
        target: &target,
        head: &mut *ctx.head,
        document: &mut *ctx.document,
        object_bytes: &mut *ctx.object_bytes,
    };
    if unsigned && !acl::admits_everyone(&inner, Operation::Put) {
        return Err(Code::AccessDenied.into());
    }
    let folder = if ctx.target.is_virtual_host() {
        ""
    } else {
        &*bucket
    };
    let slash = if folder.is_empty() { "" } else { "/" };
    let location = [origin, "/", folder, slash, &*key_text(key)].concat();
    upload(&mut inner, &form, &location)
}

/// `location` is the object's URL.
fn upload(ctx: &mut Ctx<'_>, form: &Form<'_>, location: &str) -> S3Result<Body> {
    let (bucket, key) = (ctx.target.bucket(), ctx.target.key());
    let all: Vec<_> = form.fields.iter().map(header).collect();
    let headers = Headers::new(&all)?;
    let stored = metadata::of_new(ctx, &headers)?;
    let encryption = sse::of(&stored);
    let mut checks = Checks::new(&headers, None)?;
    checks.update(form.content);
    let sums: Vec<_> = checks.finish(&[])?.into_iter().collect();
    let commit = Commit {
        headers: stored,
        checksums: sums.clone(),
        tags: match form.field("tagging") {
            Some(document) => tags::tagging(document.as_bytes())?,
            None => Tags::new(),
        },
        ..Commit::default()
    };
    let options = PutOptions::sized(form.content.len() as u64);
    let mut upload = ctx.store().put(bucket, key, &options)?;
    upload.write(form.content)?;
    let written = ctx.commit(upload, commit)?;
    let etag = written.etag.text();
    let redirect = form
        .field("success_action_redirect")
        .or(form.field("redirect"))
        .filter(|url| url.starts_with("http://") || url.starts_with("https://"));
    let body = match (redirect, form.field("success_action_status")) {
        (Some(url), _) => {
            let joint = if url.contains('?') { "&" } else { "?" };
            let (bucket, key) = (query_text(bucket), query_text(key));
            let to = format!(
                "{url}{joint}bucket={bucket}&key={key}&etag=%22{}%22",
                etag.as_str()
            );
            ctx.head.start(303).header("Location", to.as_bytes());
            Body::Empty
        }
        (None, Some("201")) => {
            let mut doc = Doc::plain(ctx.document, "PostResponse");
            doc.text("Location", location)
                .text("Bucket", bucket)
                .text("Key", key)
                .etag(etag.as_str());
            let body = doc.finish();
            ctx.head
                .start(201)
                .header("Content-Type", b"application/xml");
            body
        }
        (None, Some("200")) => ctx.empty(200),
        (None, _) => ctx.empty(204),
    };
    ctx.head.etag(written.etag).checksums(&sums);
    if redirect.is_none() {
        ctx.head.header("Location", location.as_bytes());
    }
    ctx.head.written(written.version);
    encryption.write(ctx.head);
    Ok(body)
}

/// A field as the header of a PUT that means the same.
fn header<'a>((name, value): &'a (String, String)) -> httparse::Header<'a> {
    httparse::Header {
        name: if name == "acl" { "x-amz-acl" } else { name },
        value: value.as_bytes(),
    }
}
