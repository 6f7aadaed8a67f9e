/* Records the callbacks of the library and checks them. */
#ifndef HARNESS_H
#define HARNESS_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libs3_abi.h"

/* One request: its instructions, and its recorded callbacks. Letters of `events`: P properties,
 * D data, L list batch, C completion, X multipart document; runs of D and L are counted. */
typedef struct Request {
    /* instructions */
    const char *body;        /* content of a PUT */
    uint64_t body_length;
    int give_at_most;        /* bytes per data call; 0: as many as requested */
    int fail_data_call;      /* number of the data call that aborts; 0: none */
    int fail_properties;     /* abort from the properties callback */
    int fail_list_call;      /* number of the list batch that aborts; 0: none */
    const S3BucketContext *delete_listed; /* delete every key from within the list callback */
    S3RequestContext *queue_on;           /* queue one more request from within completion */
    struct Request *queued;
    /* recorded callbacks */
    char events[64];
    int status;
    int has_details;
    char message[256];
    char *received;
    uint64_t received_length;
    int data_calls, largest_call, list_calls, keys, prefixes, buckets, truncated;
    int batches[64];
    char last_key[1100];
    uint64_t listed_bytes;
    int properties_null_data;
    /* from the properties */
    uint64_t content_length;
    int64_t last_modified;
    char etag[80], content_type[80], metadata[300];
    char next_marker[1100], upload_id[80], location[1200], commit_etag[80];
    int parts, first_of_batch;
} Request;

static int failures;

static inline void check_at(int line, int good, const char *format, ...)
{
    if (good) {
        return;
    }
    va_list list;
    va_start(list, format);
    fprintf(stderr, "line %d: ", line);
    vfprintf(stderr, format, list);
    fputc('\n', stderr);
    va_end(list);
    __atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED);
}
#define CHECK(condition) check_at(__LINE__, !!(condition), "%s", #condition)

static inline void event(Request *r, char c)
{
    size_t n = strlen(r->events);
    if (n + 1 < sizeof r->events && !((c == 'D' || c == 'L') && n && r->events[n - 1] == c)) {
        r->events[n] = c;
        r->events[n + 1] = 0;
    }
}

static inline void keep(char *to, size_t size, const char *from)
{
    snprintf(to, size, "%s", from ? from : "");
}

static inline int on_properties(const S3ResponseProperties *p, void *data)
{
    Request *r = data;
    event(r, 'P');
    r->content_length = p->contentLength;
    r->last_modified = p->lastModified;
    keep(r->etag, sizeof r->etag, p->eTag);
    keep(r->content_type, sizeof r->content_type, p->contentType);
    r->metadata[0] = 0;
    for (int i = 0; i < p->metaDataCount; i++) {
        size_t n = strlen(r->metadata);
        snprintf(r->metadata + n, sizeof r->metadata - n, "%s=%s;", p->metaData[i].name,
                 p->metaData[i].value);
    }
    return r->fail_properties ? ABORTED_BY_CALLBACK : OK;
}

static inline void on_complete(int status, const S3ErrorDetails *details, void *data)
{
    Request *r = data;
    event(r, 'C');
    r->status = status;
    r->has_details = details != NULL;
    keep(r->message, sizeof r->message, details ? details->message : NULL);
}

static inline int on_put(int size, char *buffer, void *data)
{
    Request *r = data;
    event(r, 'D');
    r->data_calls++;
    if (size > r->largest_call) {
        r->largest_call = size;
    }
    if (r->data_calls == r->fail_data_call) {
        return -1;
    }
    uint64_t left = r->body_length - r->received_length;
    uint64_t n = (uint64_t)size < left ? (uint64_t)size : left;
    if (r->give_at_most && n > (uint64_t)r->give_at_most) {
        n = r->give_at_most;
    }
    memcpy(buffer, r->body + r->received_length, n);
    r->received_length += n;
    return (int)n;
}

static inline int on_get(int size, const char *buffer, void *data)
{
    Request *r = data;
    event(r, 'D');
    r->data_calls++;
    if (r->data_calls == r->fail_data_call) {
        return ABORTED_BY_CALLBACK;
    }
    r->received = realloc(r->received, r->received_length + size);
    memcpy(r->received + r->received_length, buffer, size);
    r->received_length += size;
    return OK;
}

static const S3ResponseHandler HANDLER = {on_properties, on_complete};
static const S3PutObjectHandler PUT = {{on_properties, on_complete}, on_put};
static const S3GetObjectHandler GET = {{on_properties, on_complete}, on_get};

static inline int on_list(int truncated, const char *next, int count,
                          const S3ListBucketContent *contents, int prefix_count,
                          const char **prefixes, void *data)
{
    Request *r = data;
    event(r, 'L');
    if (r->list_calls < 64) {
        r->batches[r->list_calls] = count + prefix_count;
    }
    r->list_calls++;
    if (r->list_calls == r->fail_list_call) {
        return ABORTED_BY_CALLBACK;
    }
    r->truncated = truncated;
    keep(r->next_marker, sizeof r->next_marker, next);
    for (int i = 0; i < count; i++) {
        CHECK(strcmp(r->last_key, contents[i].key) < 0);
        CHECK(contents[i].eTag && contents[i].eTag[0] == '"');
        CHECK(contents[i].lastModified > 0);
        keep(r->last_key, sizeof r->last_key, contents[i].key);
        r->keys++;
        r->listed_bytes += contents[i].size;
        if (r->delete_listed) {
            Request gone = {0};
            S3_delete_object(r->delete_listed, contents[i].key, NULL, 0, &HANDLER, &gone);
            CHECK(gone.status == OK);
        }
    }
    for (int i = 0; i < prefix_count; i++) {
        CHECK(prefixes[i][strlen(prefixes[i]) - 1] == '/');
        r->prefixes++;
    }
    return OK;
}
static const S3ListBucketHandler LIST = {{on_properties, on_complete}, on_list};

/* Checks the status and the order of the callbacks. */
static inline void expect_at(int line, const Request *r, int status, const char *events)
{
    check_at(line, r->status == status && !strcmp(r->events, events),
             "status %d %s, callbacks %s, expected %d and %s (%s)", r->status,
             S3_get_status_name(r->status), r->events, status, events, r->message);
    /* Every failure of the library has details. */
    check_at(line, r->has_details, "the completion has no details");
}
#define EXPECT(request, status, events) expect_at(__LINE__, &(request), status, events)

/* Whether the library was told that tags are the MD5 of the content. */
static inline int md5_tags(void)
{
    const char *tags = getenv("BUCKETLOAD_S3_ETAG");
    return tags && !strcmp(tags, "md5");
}

/* Whether the text is a tag of a whole object or part. Without MD5 it ends as that of a multipart upload. */
static inline int is_tag(const char *etag)
{
    size_t digits = strspn(etag + 1, "0123456789abcdef");
    const char *end = md5_tags() ? "\"" : "-1\"";
    return etag[0] == '"' && digits == 32 && !strcmp(etag + 1 + digits, end);
}

#endif
