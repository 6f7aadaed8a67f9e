/* Conformance vectors for multipart uploads, access control, lifecycle and logging. */
#include "harness.h"

static int on_initial(const char *id, void *data)
{
    Request *r = data;
    event(r, 'X');
    keep(r->upload_id, sizeof r->upload_id, id);
    return OK;
}

static int on_commit(const char *location, const char *etag, void *data)
{
    Request *r = data;
    event(r, 'X');
    keep(r->location, sizeof r->location, location);
    keep(r->commit_etag, sizeof r->commit_etag, etag);
    return OK;
}

static int on_parts(int truncated, const char *next, const char *initiator, const char *name,
                    const char *owner, const char *owner_name, const char *class, int count,
                    int first, const S3ListPart *parts, void *data)
{
    Request *r = data;
    event(r, 'L');
    CHECK(initiator && name && owner && owner_name && class);
    r->truncated = truncated;
    r->first_of_batch = first;
    keep(r->next_marker, sizeof r->next_marker, next);
    for (int i = 0; i < count; i++) {
        CHECK(parts[i].eTag[0] == '"' && parts[i].lastModified > 0);
        r->parts++;
        r->listed_bytes += parts[i].size;
    }
    return OK;
}

static int on_uploads(int truncated, const char *next_key, const char *next_id, int count,
                      const S3ListMultipartUpload *uploads, int prefix_count,
                      const char **prefixes, void *data)
{
    Request *r = data;
    event(r, 'L');
    CHECK(next_key && next_id);
    r->truncated = truncated;
    for (int i = 0; i < count; i++) {
        CHECK(uploads[i].uploadId[0] && uploads[i].initiated > 0 && uploads[i].storageClass);
        keep(r->last_key, sizeof r->last_key, uploads[i].key);
        r->keys++;
    }
    for (int i = 0; i < prefix_count; i++) {
        CHECK(prefixes[i][0]);
        r->prefixes++;
    }
    return OK;
}

static S3MultipartInitialHandler INITIAL = {{on_properties, on_complete}, on_initial};
static S3MultipartCommitHandler COMMIT = {{on_properties, on_complete}, on_put, on_commit};
static S3ListPartsHandler PARTS = {{on_properties, on_complete}, on_parts};
static S3ListUploadsHandler UPLOADS = {{on_properties, on_complete}, on_uploads};

enum { PART = 5 << 20, TAIL = 1000 };

static Request upload(const S3BucketContext *b, const char *key, const char *id, int number,
                      const char *body, int length)
{
    Request r = {.body = body, .body_length = length};
    S3PutObjectHandler handler = PUT;
    S3_upload_part(b, key, NULL, &handler, number, id, length, NULL, 0, &r);
    return r;
}

static Request commit(const S3BucketContext *b, const char *key, const char *id, const char *xml)
{
    Request r = {.body = xml, .body_length = strlen(xml)};
    S3_complete_multipart_upload(b, key, &COMMIT, id, (int)strlen(xml), NULL, 0, &r);
    return r;
}

void multipart(const S3BucketContext *b, const char *body)
{
    Request r = {0};
    S3NameValue metadata = {"kind", "large"};
    S3PutProperties p = {.contentType = "text/x-part", .expires = -1, .metaDataCount = 1,
                         .metaData = &metadata};
    S3_initiate_multipart(b, "multi/part", &p, &INITIAL, NULL, 0, &r);
    EXPECT(r, OK, "PCX");
    CHECK(r.upload_id[0]);
    char id[80];
    strcpy(id, r.upload_id);
    S3BucketContext missing = *b;
    missing.bucketName = "vectors-missing";
    r = (Request){.upload_id = "x"};
    S3_initiate_multipart(&missing, "k", NULL, &INITIAL, NULL, 0, &r);
    EXPECT(r, NO_SUCH_BUCKET, "CX");
    CHECK(!r.upload_id[0]);

    Request one = upload(b, "multi/part", id, 1, body, PART);
    EXPECT(one, OK, "DPC");
    CHECK(is_tag(one.etag));
    /* Uploading a part again replaces it. */
    Request two = upload(b, "multi/part", id, 2, body, 7);
    two = upload(b, "multi/part", id, 2, body + 17, TAIL);
    EXPECT(two, OK, "DPC");
    r = upload(b, "multi/part", "0123", 1, body, 5);
    CHECK(r.status == NO_SUCH_UPLOAD);
    r = upload(b, "multi/part", id, 0, body, 5);
    CHECK(r.status == INVALID_ARGUMENT);
    r = (Request){0};
    S3_list_parts(b, "multi/part", NULL, id, NULL, 0, NULL, 0, &PARTS, &r);
    EXPECT(r, OK, "PLC");
    CHECK(r.parts == 2 && r.listed_bytes == PART + TAIL && !r.truncated && r.first_of_batch == 0);
    r = (Request){0};
    S3_list_parts(b, "multi/part", NULL, id, NULL, 1, NULL, 0, &PARTS, &r);
    CHECK(r.parts == 1 && r.truncated && !strcmp(r.next_marker, "1"));
    r = (Request){0};
    S3_list_parts(b, "multi/part", "1", id, NULL, 0, NULL, 0, &PARTS, &r);
    CHECK(r.parts == 1 && r.listed_bytes == TAIL);
    r = (Request){0};
    S3_list_multipart_uploads(b, "multi/", NULL, NULL, NULL, NULL, 0, NULL, 0, &UPLOADS, &r);
    EXPECT(r, OK, "PLC");
    CHECK(r.keys == 1 && !strcmp(r.last_key, "multi/part") && !r.truncated);
    r = (Request){0};
    S3_list_multipart_uploads(b, NULL, NULL, NULL, NULL, "/", 0, NULL, 0, &UPLOADS, &r);
    CHECK(r.keys == 0 && r.prefixes == 1);

    r = commit(b, "multi/part", id, "<nonsense");
    EXPECT(r, MALFORMED_XML, "DCX");
    CHECK(!r.location[0] && !r.commit_etag[0]);
    r = commit(b, "multi/part", id,
               "<CompleteMultipartUpload><Part><PartNumber>9</PartNumber></Part>"
               "</CompleteMultipartUpload>");
    EXPECT(r, INVALID_PART, "DCX");
    char xml[1000];
    snprintf(xml, sizeof xml,
             "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>%s</ETag></Part>"
             "<Part><PartNumber>2</PartNumber><ETag>%s</ETag></Part></CompleteMultipartUpload>",
             one.etag, two.etag);
    r = commit(b, "multi/part", id, xml);
    EXPECT(r, OK, "DPCX");
    CHECK(strstr(r.location, "multi/part") && strlen(r.commit_etag) == 36);
    CHECK(!strcmp(r.commit_etag + 33, "-2\""));
    Request h = {0};
    S3_head_object(b, "multi/part", NULL, 0, &HANDLER, &h);
    CHECK(h.content_length == PART + TAIL && !strcmp(h.etag, r.commit_etag));
    CHECK(!strcmp(h.content_type, "text/x-part") && !strcmp(h.metadata, "kind=large;"));
    h = (Request){0};
    S3_get_object(b, "multi/part", NULL, PART - 10, 20, NULL, 0, &GET, &h);
    CHECK(h.received_length == 20 && !memcmp(h.received, body + PART - 10, 10));
    CHECK(!memcmp(h.received + 10, body + 17, 10));
    free(h.received);
    r = commit(b, "multi/part", id, xml);
    EXPECT(r, NO_SUCH_UPLOAD, "DCX");

    /* The s3 tool copies a part with a count that is one less than the number of bytes. */
    r = (Request){0};
    S3_initiate_multipart(b, "multi/copy", NULL, &INITIAL, NULL, 0, &r);
    strcpy(id, r.upload_id);
    char etag[80] = "";
    int64_t modified = 0;
    r = (Request){0};
    S3_copy_object_range(b, "multi/part", NULL, "multi/copy", 1, id, 10, 99, NULL, &modified,
                         sizeof etag, etag, NULL, 0, &HANDLER, &r);
    EXPECT(r, OK, "PC");
    CHECK(etag[0] == '"' && modified > 0);
    snprintf(xml, sizeof xml,
             "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>%s</ETag></Part>"
             "</CompleteMultipartUpload>",
             etag);
    r = commit(b, "multi/copy", id, xml);
    EXPECT(r, OK, "DPCX");
    h = (Request){0};
    S3_get_object(b, "multi/copy", NULL, 0, 0, NULL, 0, &GET, &h);
    CHECK(h.received_length == 100 && !memcmp(h.received, body + 10, 100));
    free(h.received);
    r = (Request){0};
    S3_copy_object_range(b, "multi/part", NULL, "multi/whole", 0, NULL, 0, 0, NULL, NULL, 0, NULL,
                         NULL, 0, &HANDLER, &r);
    EXPECT(r, OK, "PC");
    r = (Request){0};
    S3_copy_object_range(b, "missing", NULL, "multi/whole", 1, id, 0, 0, NULL, NULL, 0, NULL, NULL,
                         0, &HANDLER, &r);
    CHECK(r.status == NO_SUCH_KEY);

    /* An abort calls only the properties callback. */
    r = (Request){0};
    S3_initiate_multipart(b, "multi/gone", NULL, &INITIAL, NULL, 0, &r);
    strcpy(id, r.upload_id);
    S3AbortHandler silent = {{NULL, NULL}};
    S3_abort_multipart_upload(b, "multi/gone", id, 0, &silent);
    r = upload(b, "multi/gone", id, 1, body, 5);
    CHECK(r.status == NO_SUCH_UPLOAD);

    /* Through a request context. */
    S3RequestContext *ctx = NULL;
    CHECK(S3_create_request_context(&ctx) == OK);
    r = (Request){0};
    S3_initiate_multipart(b, "multi/gone", NULL, &INITIAL, ctx, 0, &r);
    CHECK(!r.events[0]);
    CHECK(S3_runall_request_context(ctx) == OK);
    EXPECT(r, OK, "PCX");
    S3_destroy_request_context(ctx);
    S3_abort_multipart_upload(b, "multi/gone", r.upload_id, 0, NULL);
}

void settings(const S3BucketContext *b)
{
    static S3AclGrant grants[100];
    char owner[128] = "", name[128] = "";
    int count = -1;
    Request r = {0};
    S3_get_acl(b, "small", owner, name, &count, grants, NULL, 0, &HANDLER, &r);
    EXPECT(r, OK, "PC");
    CHECK(count == 1 && grants[0].permission == 4 && grants[0].granteeType == 1);
    CHECK(!strcmp(grants[0].grantee.canonicalUser.id, owner) && owner[0] && name[0]);
    r = (Request){0};
    S3_set_acl(b, "small", owner, name, count, grants, NULL, 0, &HANDLER, &r);
    EXPECT(r, OK, "PC");
    grants[0].granteeType = 3;
    r = (Request){0};
    S3_set_acl(b, NULL, owner, name, count, grants, NULL, 0, &HANDLER, &r);
    EXPECT(r, NOT_IMPLEMENTED, "C");
    r = (Request){0};
    S3_get_acl(b, "missing", owner, name, &count, grants, NULL, 0, &HANDLER, &r);
    EXPECT(r, NO_SUCH_KEY, "C");
    char policy[] = "<AccessControlPolicy><Owner><ID>o</ID><DisplayName>n</DisplayName></Owner>"
                    "<AccessControlList><Grant><Grantee><ID>g</ID></Grantee>"
                    "<Permission>WRITE</Permission></Grant></AccessControlList>"
                    "</AccessControlPolicy>";
    CHECK(S3_convert_acl(policy, owner, name, &count, grants) == OK);
    CHECK(count == 1 && grants[0].permission == 1 && !strcmp(owner, "o"));
    char bad[] = "<AccessControlPolicy>";
    CHECK(S3_convert_acl(bad, owner, name, &count, grants) == XML_PARSE_FAILURE);

    char text[256] = "x", prefix[256] = "x";
    r = (Request){0};
    S3_get_lifecycle(b, text, sizeof text, NULL, 0, &HANDLER, &r);
    EXPECT(r, NO_SUCH_LIFECYCLE, "C");
    CHECK(!text[0]);
    r = (Request){0};
    S3_set_lifecycle(b, "<LifecycleConfiguration/>", NULL, 0, &HANDLER, &r);
    EXPECT(r, NOT_IMPLEMENTED, "C");
    strcpy(text, "x");
    r = (Request){0};
    S3_get_server_access_logging(b, text, prefix, &count, grants, NULL, 0, &HANDLER, &r);
    EXPECT(r, OK, "PC");
    CHECK(!text[0] && !prefix[0] && count == 0);
    r = (Request){0};
    S3_set_server_access_logging(b, NULL, NULL, 0, NULL, NULL, 0, &HANDLER, &r);
    EXPECT(r, OK, "PC");
    r = (Request){0};
    S3_set_server_access_logging(b, "other", "p", 0, NULL, NULL, 0, &HANDLER, &r);
    EXPECT(r, NOT_IMPLEMENTED, "C");

    char url[3469] = "";
    S3BucketContext server = *b;
    server.hostName = "localhost:9000";
    CHECK(S3_generate_authenticated_query_string(url, &server, "a b", 60, NULL, "GET") == OK);
    CHECK(!strncmp(url, "http://localhost:9000/vectors/a%20b?X-Amz-Algorithm=", 52));
    CHECK(strstr(url, "X-Amz-Signature=") && !strstr(url, "secret"));
}
