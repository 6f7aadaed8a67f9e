/* Conformance tests for libs3 4.1 (bucket and object requests): the callbacks of each request, their
 * order and the status. Usage: vectors [HOST]; without a host, the environment must name the
 * store. */
#include "harness.h"

static const char *HOST;
static S3BucketContext BUCKET;

static S3BucketContext bucket_named(const char *name)
{
    S3BucketContext b = {HOST, name, HTTP, PATH, "access", "secret", NULL, NULL};
    return b;
}

static void create(Request *r, const char *name)
{
    S3_create_bucket(HTTP, "access", "secret", NULL, HOST, name, NULL, 0, NULL, NULL, 0, &HANDLER,
                     r);
}

static void drop(Request *r, const char *name)
{
    S3_delete_bucket(HTTP, PATH, "access", "secret", NULL, HOST, name, NULL, NULL, 0, &HANDLER, r);
}

static Request put(const char *key, const char *body, uint64_t length, const S3PutProperties *p)
{
    Request r = {.body = body, .body_length = length};
    S3_put_object(&BUCKET, key, length, p, NULL, 0, &PUT, &r);
    return r;
}

static Request get(const char *key, const S3GetConditions *c, uint64_t start, uint64_t count)
{
    Request r = {0};
    S3_get_object(&BUCKET, key, c, start, count, NULL, 0, &GET, &r);
    return r;
}

static Request head(const char *key)
{
    Request r = {0};
    S3_head_object(&BUCKET, key, NULL, 0, &HANDLER, &r);
    return r;
}

static Request list(const char *prefix, const char *marker, const char *delimiter, int max)
{
    Request r = {0};
    S3_list_bucket(&BUCKET, prefix, marker, delimiter, max, NULL, 0, &LIST, &r);
    return r;
}

static char *BODY; /* 5 MiB */
enum { BIG = 5 << 20 };

static void buckets(void)
{
    Request r = {0};
    char location[16] = "x";
    S3_test_bucket(HTTP, PATH, "a", "s", NULL, HOST, "vectors-missing", NULL, sizeof location,
                   location, NULL, 0, &HANDLER, &r);
    EXPECT(r, NO_SUCH_BUCKET, "C");
    CHECK(location[0] == 0);
    CHECK(r.message[0] != 0);
    r = (Request){0};
    create(&r, "vectors");
    EXPECT(r, OK, "PC");
    r = (Request){0};
    create(&r, "vectors");
    EXPECT(r, OK, "PC");
    r = (Request){0};
    S3_test_bucket(HTTP, PATH, "a", "s", NULL, HOST, "vectors", NULL, 0, NULL, NULL, 0, &HANDLER,
                   &r);
    EXPECT(r, OK, "PC");
    r = (Request){0};
    create(&r, "bad%name");
    CHECK(r.status == BAD_BUCKET_CHARACTER && !r.has_details && !strcmp(r.events, "C"));
    r = list(NULL, NULL, NULL, 0);
    EXPECT(r, OK, "PC");

    S3BucketContext missing = bucket_named("vectors-missing");
    r = (Request){0};
    S3_list_bucket(&missing, NULL, NULL, NULL, 0, NULL, 0, &LIST, &r);
    EXPECT(r, NO_SUCH_BUCKET, "C");
    r = (Request){.body = BODY, .body_length = 10};
    S3_put_object(&missing, "k", 10, NULL, NULL, 0, &PUT, &r);
    CHECK(r.status == NO_SUCH_BUCKET && (!strcmp(r.events, "C") || !strcmp(r.events, "DC")));
    r = (Request){0};
    S3_get_object(&missing, "k", NULL, 0, 0, NULL, 0, &GET, &r);
    EXPECT(r, NO_SUCH_BUCKET, "C");
    r = (Request){0};
    S3_delete_object(&missing, "k", NULL, 0, &HANDLER, &r);
    EXPECT(r, NO_SUCH_BUCKET, "C");
    r = (Request){0};
    S3_head_object(&missing, "k", NULL, 0, &HANDLER, &r);
    EXPECT(r, HTTP_NOT_FOUND, "C");
    r = (Request){0};
    drop(&r, "vectors-missing");
    EXPECT(r, NO_SUCH_BUCKET, "C");
    /* Passes the check of libs3 but breaks the rules of S3. */
    r = (Request){0};
    create(&r, "Upper_case");
    EXPECT(r, INVALID_BUCKET_NAME, "C");
}

static int on_bucket(const char *owner, const char *name, const char *bucket, int64_t created,
                     void *data)
{
    Request *r = data;
    event(r, 'L');
    CHECK(owner && name && created > 0);
    r->buckets += !strcmp(bucket, "vectors");
    return OK;
}

static void service(void)
{
    S3ListServiceHandler handler = {HANDLER, on_bucket};
    Request r = {0};
    S3_list_service(HTTP, "a", "s", NULL, HOST, NULL, NULL, 0, &handler, &r);
    EXPECT(r, OK, "PLC");
    CHECK(r.buckets == 1);
}

static void writes(void)
{
    Request r = put("empty", BODY, 0, NULL);
    EXPECT(r, OK, "PC");
    CHECK(r.data_calls == 0);
    CHECK(is_tag(r.etag));
    CHECK(!md5_tags() || !strcmp(r.etag, "\"d41d8cd98f00b204e9800998ecf8427e\""));
    r = put("small", BODY, 3901, NULL);
    EXPECT(r, OK, "DPC");
    CHECK(r.data_calls == 1 && r.largest_call == 3901);
    r = put("big", BODY, BIG, NULL);
    EXPECT(r, OK, "DPC");
    CHECK(r.data_calls == 80 && r.largest_call == 65536);
    /* Fewer bytes per call than requested. */
    r = (Request){.body = BODY, .body_length = 1000, .give_at_most = 7};
    S3_put_object(&BUCKET, "slow", 1000, NULL, NULL, 0, &PUT, &r);
    EXPECT(r, OK, "DPC");
    CHECK(r.received_length == 1000);
    /* More than announced. */
    r = (Request){.body = BODY, .body_length = 9000};
    S3_put_object(&BUCKET, "more", 100, NULL, NULL, 0, &PUT, &r);
    EXPECT(r, OK, "DPC");
    CHECK(r.received_length == 100);
    r = head("more");
    CHECK(r.content_length == 100);
    /* Fewer than announced: no object is created. */
    r = (Request){.body = BODY, .body_length = 10};
    S3_put_object(&BUCKET, "short", 100, NULL, NULL, 0, &PUT, &r);
    EXPECT(r, INCOMPLETE_BODY, "DC");
    r = head("short");
    EXPECT(r, HTTP_NOT_FOUND, "C");
    r = (Request){.body = BODY, .body_length = BIG, .fail_data_call = 1};
    S3_put_object(&BUCKET, "aborted", BIG, NULL, NULL, 0, &PUT, &r);
    EXPECT(r, ABORTED_BY_CALLBACK, "DC");
    r = (Request){.body = BODY, .body_length = BIG, .fail_data_call = 3};
    S3_put_object(&BUCKET, "small", BIG, NULL, NULL, 0, &PUT, &r);
    EXPECT(r, ABORTED_BY_CALLBACK, "DC");
    r = head("aborted");
    EXPECT(r, HTTP_NOT_FOUND, "C");
    /* An aborted PUT leaves the existing object unchanged. */
    r = head("small");
    CHECK(r.content_length == 3901);
    char key[1100];
    memset(key, 'k', sizeof key);
    key[1099] = 0;
    r = put(key, BODY, 1, NULL);
    CHECK(r.status == URI_TOO_LONG && !r.has_details && !strcmp(r.events, "C"));
    key[1024] = 0;
    r = put(key, BODY, 1, NULL);
    EXPECT(r, OK, "DPC");
    S3_delete_object(&BUCKET, key, NULL, 0, &HANDLER, &r);
    CHECK(r.status == OK);
}

static void reads(void)
{
    Request r = head("small");
    EXPECT(r, OK, "PC");
    CHECK(r.content_length == 3901 && r.last_modified > 1000000000 && is_tag(r.etag));
    CHECK(!strcmp(r.content_type, "binary/octet-stream"));
    char etag[80];
    strcpy(etag, r.etag);
    int64_t modified = r.last_modified;
    r = head("missing");
    EXPECT(r, HTTP_NOT_FOUND, "C");
    struct {
        uint64_t start, count, length;
    } spans[] = {{0, 0, 3901}, {100, 50, 50}, {3000, 0, 901}, {0, 10000, 3901}, {3900, 1, 1}};
    for (size_t i = 0; i < sizeof spans / sizeof spans[0]; i++) {
        r = get("small", NULL, spans[i].start, spans[i].count);
        EXPECT(r, OK, "PDC");
        CHECK(r.content_length == spans[i].length && r.received_length == spans[i].length);
        CHECK(!memcmp(r.received, BODY + spans[i].start, spans[i].length));
        free(r.received);
    }
    r = get("big", NULL, 0, 0);
    EXPECT(r, OK, "PDC");
    CHECK(r.received_length == BIG && !memcmp(r.received, BODY, BIG));
    free(r.received);
    r = get("small", NULL, 3901, 1);
    EXPECT(r, INVALID_RANGE, "C");
    r = get("small", NULL, 1ULL << 60, 0);
    EXPECT(r, INVALID_RANGE, "C");
    r = get("empty", NULL, 0, 10);
    EXPECT(r, INVALID_RANGE, "C");
    r = get("empty", NULL, 0, 0);
    EXPECT(r, OK, "PC");
    r = get("missing", NULL, 0, 0);
    EXPECT(r, NO_SUCH_KEY, "C");
    r = (Request){.fail_data_call = 1};
    S3_get_object(&BUCKET, "big", NULL, 0, 0, NULL, 0, &GET, &r);
    EXPECT(r, ABORTED_BY_CALLBACK, "PDC");
    r = (Request){.fail_properties = 1};
    S3_get_object(&BUCKET, "big", NULL, 0, 0, NULL, 0, &GET, &r);
    EXPECT(r, ABORTED_BY_CALLBACK, "PC");

    S3GetConditions c = {-1, -1, "\"00000000000000000000000000000000\"", NULL};
    r = get("small", &c, 0, 0);
    EXPECT(r, PRECONDITION_FAILED, "C");
    c.ifMatchETag = "not a tag";
    r = get("small", &c, 0, 0);
    EXPECT(r, PRECONDITION_FAILED, "C");
    c = (S3GetConditions){-1, -1, etag, NULL};
    r = get("small", &c, 0, 0);
    EXPECT(r, OK, "PDC");
    free(r.received);
    c = (S3GetConditions){-1, -1, NULL, etag};
    r = get("small", &c, 0, 0);
    EXPECT(r, HTTP_UNKNOWN, "C");
    c = (S3GetConditions){-1, -1, NULL, "not a tag"};
    r = get("small", &c, 0, 0);
    EXPECT(r, OK, "PDC");
    free(r.received);
    c = (S3GetConditions){modified, -1, NULL, NULL};
    r = get("small", &c, 0, 0);
    EXPECT(r, HTTP_UNKNOWN, "C");
    c = (S3GetConditions){-1, modified - 1, NULL, NULL};
    r = get("small", &c, 0, 0);
    EXPECT(r, PRECONDITION_FAILED, "C");
    c = (S3GetConditions){modified - 1, modified, NULL, NULL};
    r = get("small", &c, 0, 0);
    EXPECT(r, OK, "PDC");
    free(r.received);
}

static void properties(void)
{
    S3NameValue metadata[] = {{"Colour", "  blue "}, {"x-size", "7"}};
    S3PutProperties p = {"text/plain", NULL, "no-cache", "a name.txt", "gzip", 784111777, 0, 2,
                         metadata, 0};
    Request r = put("described", BODY, 10, &p);
    EXPECT(r, OK, "DPC");
    r = head("described");
    EXPECT(r, OK, "PC");
    CHECK(!strcmp(r.content_type, "text/plain"));
    CHECK(!strcmp(r.metadata, "colour=blue;x-size=7;"));
    r = get("described", NULL, 0, 0);
    CHECK(!strcmp(r.metadata, "colour=blue;x-size=7;"));
    free(r.received);

    S3PutProperties md5 = {.md5 = "1B2M2Y8AsgTpgAmY7PhCfg==", .expires = -1};
    r = put("checked", BODY, 0, &md5);
    EXPECT(r, OK, "PC");
    r = put("checked", BODY, 5, &md5);
    EXPECT(r, BAD_DIGEST, "DC");
    r = head("checked");
    CHECK(r.content_length == 0);

    S3NameValue bad = {"a b", "x"};
    S3PutProperties wrong = {.expires = -1, .metaDataCount = 1, .metaData = &bad};
    r = put("wrong", BODY, 5, &wrong);
    CHECK(r.status == BAD_META_DATA && !r.has_details && !strcmp(r.events, "C"));
    char value[2100];
    memset(value, 'v', sizeof value);
    value[2099] = 0;
    bad = (S3NameValue){"long", value};
    r = put("wrong", BODY, 5, &wrong);
    CHECK(r.status == META_DATA_TOO_LONG && !r.has_details);
    value[2000] = 0;
    r = put("long", BODY, 5, &wrong);
    EXPECT(r, OK, "DPC");
    r = head("long");
    CHECK(strlen(r.metadata) > 290);
    /* Unsupported features are refused, not ignored. */
    S3PutProperties encrypted = {.expires = -1, .useServerSideEncryption = 1};
    r = put("wrong", BODY, 5, &encrypted);
    EXPECT(r, NOT_IMPLEMENTED, "C");
    S3PutProperties open = {.expires = -1, .cannedAcl = 1};
    r = put("wrong", BODY, 5, &open);
    EXPECT(r, NOT_IMPLEMENTED, "C");
    r = head("wrong");
    EXPECT(r, HTTP_NOT_FOUND, "C");
}

static void listings(void)
{
    char key[64];
    for (int i = 0; i < 100; i++) {
        snprintf(key, sizeof key, "list/%03d", i);
        Request r = put(key, BODY, i, NULL);
        CHECK(r.status == OK);
    }
    for (int i = 0; i < 20; i++) {
        snprintf(key, sizeof key, "tree/%02d/leaf", i);
        Request r = put(key, BODY, 1, NULL);
        CHECK(r.status == OK);
    }
    Request r = list("list/", NULL, NULL, 0);
    EXPECT(r, OK, "PLC");
    CHECK(r.keys == 100 && r.list_calls == 4 && !r.truncated && r.listed_bytes == 4950);
    CHECK(r.batches[0] == 32 && r.batches[1] == 32 && r.batches[2] == 32 && r.batches[3] == 4);
    CHECK(r.next_marker[0] == 0);
    r = list("tree/", NULL, "/", 0);
    EXPECT(r, OK, "PLC");
    CHECK(r.prefixes == 20 && r.keys == 0 && r.list_calls == 3);
    CHECK(r.batches[0] == 8 && r.batches[1] == 8 && r.batches[2] == 4);
    r = list("list/", NULL, NULL, 10);
    EXPECT(r, OK, "PLC");
    CHECK(r.keys == 10 && r.truncated && !strcmp(r.next_marker, "list/009"));
    r = list("list/", "list/009", NULL, 10);
    CHECK(r.keys == 10 && !strcmp(r.last_key, "list/019"));
    r = list("list/", "list/089", NULL, 10);
    CHECK(r.keys == 10 && !r.truncated);
    r = list("list/", NULL, NULL, 0x7fffffff);
    EXPECT(r, OK, "PLC");
    CHECK(r.keys == 100 && r.list_calls == 4 && !r.truncated);
    r = list("list/042", "", "", 0);
    EXPECT(r, OK, "PLC");
    CHECK(r.keys == 1 && !strcmp(r.last_key, "list/042"));
    r = list("none/", NULL, NULL, 0);
    EXPECT(r, OK, "PC");
    r = (Request){.fail_list_call = 2};
    S3_list_bucket(&BUCKET, "list/", NULL, NULL, 0, NULL, 0, &LIST, &r);
    EXPECT(r, ABORTED_BY_CALLBACK, "PLC");
    CHECK(r.list_calls == 2);
    /* As IOR removes a file: delete from within the listing. */
    r = (Request){.delete_listed = &BUCKET};
    S3_list_bucket(&BUCKET, "list/", NULL, NULL, 0x7fffffff, NULL, 0, &LIST, &r);
    EXPECT(r, OK, "PLC");
    CHECK(r.keys == 100);
    r = list("list/", NULL, NULL, 0);
    EXPECT(r, OK, "PC");
}

static void keys(void)
{
    static const char *const names[] = {
        " ", "!", "%", "%2F", "%25", "+", ".", "..", "../..", "./x", "/", "//", "/a", "a",
        "a/", "a//", "a//b", "a/.", "a/..", "a/../b", "a/b", "a/b/c", "\n", "\t", "\\", "\"", "'",
        "\xc3\xa4", "\xe6\xbc\xa2\xe5\xad\x97", "\xf0\x9f\x98\x80", "a b", ".bucketload", ".hidden",
        "%self", "CON", "a?b&c=d#e", "~", "z",
    };
    enum { COUNT = sizeof names / sizeof names[0] };
    S3BucketContext all = bucket_named("vectors-keys");
    Request r = {0};
    create(&r, "vectors-keys");
    CHECK(r.status == OK);
    for (int i = 0; i < COUNT; i++) {
        r = (Request){.body = names[i], .body_length = strlen(names[i])};
        S3_put_object(&all, names[i], strlen(names[i]), NULL, NULL, 0, &PUT, &r);
        EXPECT(r, OK, "DPC");
    }
    for (int i = 0; i < COUNT; i++) {
        r = (Request){0};
        S3_get_object(&all, names[i], NULL, 0, 0, NULL, 0, &GET, &r);
        EXPECT(r, OK, "PDC");
        CHECK(r.received_length == strlen(names[i]));
        CHECK(r.received && !memcmp(r.received, names[i], r.received_length));
        free(r.received);
    }
    r = (Request){.delete_listed = &all};
    S3_list_bucket(&all, NULL, NULL, NULL, 0, NULL, 0, &LIST, &r);
    EXPECT(r, OK, "PLC");
    check_at(__LINE__, r.keys == COUNT, "%d keys of %d are listed", r.keys, COUNT);
    r = (Request){0};
    drop(&r, "vectors-keys");
    EXPECT(r, OK, "PC");
    /* Bytes that are not UTF-8 are refused. */
    r = put("\xff\xfe", BODY, 1, NULL);
    CHECK(r.status != OK && !strcmp(r.events, "C"));
    r = put("", BODY, 1, NULL);
    CHECK(r.status != OK && !strcmp(r.events, "C"));
}

static void copies(void)
{
    char etag[80] = "x";
    int64_t modified = 0;
    Request r = {0};
    S3_copy_object(&BUCKET, "described", NULL, "copy", NULL, &modified, sizeof etag, etag, NULL,
                   0, &HANDLER, &r);
    EXPECT(r, OK, "PC");
    CHECK(modified > 1000000000 && etag[0] == '"');
    Request source = head("described"), copy = head("copy");
    CHECK(source.status == OK && source.content_length == 10);
    CHECK(copy.content_length == 10 && is_tag(copy.etag));
    CHECK(!md5_tags() == !!strcmp(copy.etag, source.etag));
    CHECK(!strcmp(copy.metadata, source.metadata));
    S3PutProperties p = {.contentType = "image/png", .expires = -1};
    r = (Request){0};
    S3_copy_object(&BUCKET, "described", "vectors", "copy", &p, NULL, 0, NULL, NULL, 0, &HANDLER,
                   &r);
    EXPECT(r, OK, "PC");
    copy = head("copy");
    CHECK(!strcmp(copy.content_type, "image/png") && copy.metadata[0] == 0);
    /* Copying onto itself loses nothing. */
    r = (Request){0};
    S3_copy_object(&BUCKET, "big", NULL, NULL, NULL, NULL, 0, NULL, NULL, 0, &HANDLER, &r);
    EXPECT(r, OK, "PC");
    copy = head("big");
    CHECK(copy.content_length == BIG);
    r = (Request){0};
    S3_copy_object(&BUCKET, "missing", NULL, "copy", NULL, &modified, sizeof etag, etag, NULL, 0,
                   &HANDLER, &r);
    EXPECT(r, NO_SUCH_KEY, "C");
    CHECK(modified == -1 && etag[0] == 0);
}

static void deletes(void)
{
    Request r = {0};
    S3_delete_object(&BUCKET, "copy", NULL, 0, &HANDLER, &r);
    EXPECT(r, OK, "PC");
    r = (Request){0};
    S3_delete_object(&BUCKET, "copy", NULL, 0, &HANDLER, &r);
    EXPECT(r, OK, "PC");
    S3ResponseHandler no_properties = {NULL, on_complete};
    r = (Request){0};
    S3_delete_object(&BUCKET, "copy", NULL, 0, &no_properties, &r);
    EXPECT(r, OK, "C");
    r = (Request){0};
    drop(&r, "vectors");
    EXPECT(r, BUCKET_NOT_EMPTY, "C");
    /* NULL wherever it is allowed. */
    S3_head_object(&BUCKET, "small", NULL, 0, NULL, NULL);
    S3_get_object(&BUCKET, "small", NULL, 0, 0, NULL, 0, NULL, NULL);
    S3_list_bucket(&BUCKET, NULL, NULL, NULL, 0, NULL, 0, NULL, NULL);
    S3_put_object(&BUCKET, "null", 0, NULL, NULL, 0, NULL, NULL);
    S3_delete_object(&BUCKET, "null", NULL, 0, NULL, NULL);
    S3_head_object(NULL, NULL, NULL, 0, &HANDLER, &r);
    CHECK(r.status != OK);
}

static void on_complete_queue(int status, const S3ErrorDetails *details, void *data)
{
    Request *r = data;
    on_complete(status, details, data);
    if (r->queue_on && r->queued) {
        S3_head_object(&BUCKET, "small", r->queue_on, 0, &HANDLER, r->queued);
    }
}

static void contexts(void)
{
    S3RequestContext *ctx = NULL;
    CHECK(S3_create_request_context(&ctx) == OK && ctx);
    fd_set r_set, w_set, e_set;
    FD_ZERO(&r_set);
    FD_ZERO(&w_set);
    FD_ZERO(&e_set);
    int max_fd = 99, left = 99;
    CHECK(S3_get_request_context_timeout(ctx) == -1);
    Request put_it = {.body = BODY, .body_length = 3901};
    Request head_it = {0}, get_it = {0};
    {
        /* The library must copy texts: they are gone once the call returns. */
        char key[16] = "queued";
        S3BucketContext bucket = BUCKET;
        S3_put_object(&bucket, key, 3901, NULL, ctx, 0, &PUT, &put_it);
        S3_head_object(&bucket, key, ctx, 0, &HANDLER, &head_it);
        S3_get_object(&bucket, key, NULL, 0, 0, ctx, 0, &GET, &get_it);
        memset(key, 'x', sizeof key);
        memset(&bucket, 0, sizeof bucket);
    }
    CHECK(!put_it.events[0] && !head_it.events[0] && !get_it.events[0]);
    CHECK(S3_get_request_context_fdsets(ctx, &r_set, &w_set, &e_set, &max_fd) == OK);
    CHECK(max_fd == -1 && S3_get_request_context_timeout(ctx) == 0);
    CHECK(S3_runonce_request_context(ctx, &left) == OK && left <= 3);
    CHECK(S3_runall_request_context(ctx) == OK);
    EXPECT(put_it, OK, "DPC");
    EXPECT(head_it, OK, "PC");
    EXPECT(get_it, OK, "PDC");
    free(get_it.received);
    CHECK(S3_runonce_request_context(ctx, &left) == OK && left == 0);

    /* A set-up failure is reported at once. */
    Request bad = {0};
    S3BucketContext bad_bucket = bucket_named("bad%name");
    S3_head_object(&bad_bucket, "k", ctx, 0, &HANDLER, &bad);
    CHECK(bad.status == BAD_BUCKET_CHARACTER && !bad.has_details && !strcmp(bad.events, "C"));

    /* A request queued by a callback is run too. */
    S3ResponseHandler queueing = {on_properties, on_complete_queue};
    Request second = {0}, first = {.queue_on = ctx, .queued = &second};
    S3_head_object(&BUCKET, "small", ctx, 0, &queueing, &first);
    CHECK(S3_runall_request_context(ctx) == OK);
    EXPECT(first, OK, "PC");
    EXPECT(second, OK, "PC");

    Request pending = {0};
    S3_head_object(&BUCKET, "small", ctx, 0, &HANDLER, &pending);
    S3_destroy_request_context(ctx);
    CHECK(pending.status == INTERRUPTED && !strcmp(pending.events, "C"));

    ctx = NULL;
    CHECK(S3_create_request_context_ex(&ctx, &ctx, NULL, NULL) == NOT_SUPPORTED && !ctx);
    CHECK(S3_create_request_context_ex(&ctx, NULL, NULL, NULL) == OK && ctx);
    S3_set_request_context_verify_peer(ctx, 1);
    Request last = {0};
    S3_head_object(&BUCKET, "small", ctx, 0, &HANDLER, &last);
    CHECK(S3_process_request_context(ctx) == OK);
    CHECK(S3_runall_request_context(ctx) == OK);
    EXPECT(last, OK, "PC");
    S3_destroy_request_context(ctx);
}

static void without_initialisation(void)
{
    CHECK(S3_validate_bucket_name("abc%d", PATH) == BAD_BUCKET_CHARACTER);
    CHECK(S3_validate_bucket_name("ab", PATH) == BUCKET_TOO_SHORT);
    CHECK(S3_validate_bucket_name("1.2.3.4", PATH) == DOT_QUAD);
    CHECK(S3_validate_bucket_name("A_b_c", PATH) == OK);
    CHECK(S3_validate_bucket_name("A_b_c", VIRTUAL_HOST) == BAD_BUCKET_CHARACTER);
    CHECK(!strcmp(S3_get_status_name(NO_SUCH_KEY), "ErrorNoSuchKey"));
    CHECK(!strcmp(S3_get_status_name(4711), "Unknown"));
    CHECK(S3_status_is_retryable(REQUEST_TIMEOUT) && !S3_status_is_retryable(NO_SUCH_KEY));
}

void multipart(const S3BucketContext *, const char *body);
void settings(const S3BucketContext *);

int main(int argc, char **argv)
{
    HOST = argc > 1 ? argv[1] : NULL;
    BUCKET = bucket_named("vectors");
    BODY = malloc(BIG + 1);
    for (int i = 0; i < BIG; i++) {
        BODY[i] = (char)((i * 2654435761u) >> 13);
    }
    without_initialisation();
    char long_host[300];
    memset(long_host, 'h', sizeof long_host);
    long_host[299] = 0;
    CHECK(S3_initialize("vectors", 1, long_host) == URI_TOO_LONG);
    CHECK(S3_initialize("vectors", 1, HOST) == OK);
    CHECK(S3_initialize("again", 1, "other.example") == OK);
    S3_deinitialize();
    buckets();
    service();
    writes();
    reads();
    properties();
    listings();
    keys();
    copies();
    deletes();
    contexts();
    multipart(&BUCKET, BODY);
    settings(&BUCKET);
    Request r = {.delete_listed = &BUCKET};
    S3_list_bucket(&BUCKET, NULL, NULL, NULL, 0, NULL, 0, &LIST, &r);
    CHECK(r.status == OK);
    r = (Request){0};
    drop(&r, "vectors");
    EXPECT(r, OK, "PC");
    S3_deinitialize();
    free(BODY);
    if (failures) {
        fprintf(stderr, "%d checks failed\n", failures);
        return 1;
    }
    puts("all vectors hold");
    return 0;
}
