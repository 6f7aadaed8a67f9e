/* The parts of the libs3 4.1 binary interface that the test programs use. The declarations are
 * independent of the library under test: they follow tables of sizes, offsets and parameter orders.
 * Assertions below let the compiler check the layouts. */
#ifndef LIBS3_ABI_H
#define LIBS3_ABI_H

#include <stddef.h>
#include <stdint.h>
#include <sys/select.h>

enum {
    OK = 0, INTERRUPTED = 3, BAD_BUCKET_CHARACTER = 6, BUCKET_TOO_SHORT = 8, DOT_QUAD = 9,
    META_DATA_TOO_LONG = 12, BAD_META_DATA = 13, URI_TOO_LONG = 30, XML_PARSE_FAILURE = 31,
    NAME_LOOKUP_ERROR = 43, ABORTED_BY_CALLBACK = 47, NOT_SUPPORTED = 48, BAD_DIGEST = 52,
    BUCKET_NOT_EMPTY = 55, ENTITY_TOO_SMALL = 58,
    INCOMPLETE_BODY = 62, INVALID_ARGUMENT = 68, INVALID_BUCKET_NAME = 69, INVALID_PART = 75,
    INVALID_PART_ORDER = 76, INVALID_RANGE = 79, MALFORMED_XML = 90, NO_SUCH_BUCKET = 101,
    NO_SUCH_KEY = 102, NO_SUCH_LIFECYCLE = 103, NO_SUCH_UPLOAD = 104, NOT_IMPLEMENTED = 106,
    PRECONDITION_FAILED = 111, REQUEST_TIMEOUT = 115, HTTP_NOT_FOUND = 132, HTTP_UNKNOWN = 134
};
enum { HTTPS = 0, HTTP = 1 };
enum { VIRTUAL_HOST = 0, PATH = 1 };

typedef struct S3RequestContext S3RequestContext;
typedef struct { const char *name; const char *value; } S3NameValue;
typedef struct {
    const char *requestId; const char *requestId2; const char *contentType;
    uint64_t contentLength; const char *server; const char *eTag; int64_t lastModified;
    int metaDataCount; const S3NameValue *metaData; char usesServerSideEncryption;
} S3ResponseProperties;
typedef struct {
    int granteeType;
    union {
        struct { char emailAddress[128]; } byEmail;
        struct { char id[128]; char displayName[128]; } canonicalUser;
    } grantee;
    int permission;
} S3AclGrant;
typedef struct {
    const char *hostName; const char *bucketName; int protocol; int uriStyle;
    const char *accessKeyId; const char *secretAccessKey; const char *securityToken;
    const char *authRegion;
} S3BucketContext;
typedef struct {
    const char *key; int64_t lastModified; const char *eTag; uint64_t size; const char *ownerId;
    const char *ownerDisplayName;
} S3ListBucketContent;
typedef struct {
    const char *key; const char *uploadId; const char *initiatorId;
    const char *initiatorDisplayName; const char *ownerId; const char *ownerDisplayName;
    const char *storageClass; int64_t initiated;
} S3ListMultipartUpload;
typedef struct {
    const char *eTag; int64_t lastModified; uint64_t partNumber; uint64_t size;
} S3ListPart;
typedef struct {
    const char *contentType; const char *md5; const char *cacheControl;
    const char *contentDispositionFilename; const char *contentEncoding; int64_t expires;
    int cannedAcl; int metaDataCount; const S3NameValue *metaData; char useServerSideEncryption;
} S3PutProperties;
typedef struct {
    int64_t ifModifiedSince; int64_t ifNotModifiedSince; const char *ifMatchETag;
    const char *ifNotMatchETag;
} S3GetConditions;
typedef struct {
    const char *message; const char *resource; const char *furtherDetails; int extraDetailsCount;
    const S3NameValue *extraDetails;
} S3ErrorDetails;

typedef int PropertiesCallback(const S3ResponseProperties *, void *);
typedef void CompleteCallback(int status, const S3ErrorDetails *, void *);
typedef int ServiceCallback(const char *ownerId, const char *ownerName, const char *bucket,
                            int64_t created, void *);
typedef int ListCallback(int truncated, const char *nextMarker, int count,
                         const S3ListBucketContent *, int prefixCount, const char **prefixes,
                         void *);
typedef int PutCallback(int size, char *buffer, void *);
typedef int GetCallback(int size, const char *buffer, void *);
typedef int InitialCallback(const char *uploadId, void *);
typedef int CommitCallback(const char *location, const char *etag, void *);
typedef int PartsCallback(int truncated, const char *nextMarker, const char *initiatorId,
                          const char *initiatorName, const char *ownerId, const char *ownerName,
                          const char *storageClass, int count, int first, const S3ListPart *,
                          void *);
typedef int UploadsCallback(int truncated, const char *nextKey, const char *nextId, int count,
                            const S3ListMultipartUpload *, int prefixCount,
                            const char **prefixes, void *);
typedef int SetupCurl(void *multi, void *easy, void *data);

typedef struct { PropertiesCallback *properties; CompleteCallback *complete; } S3ResponseHandler;
typedef struct { S3ResponseHandler response; ServiceCallback *bucket; } S3ListServiceHandler;
typedef struct { S3ResponseHandler response; ListCallback *list; } S3ListBucketHandler;
typedef struct { S3ResponseHandler response; PutCallback *data; } S3PutObjectHandler;
typedef struct { S3ResponseHandler response; GetCallback *data; } S3GetObjectHandler;
typedef struct { S3ResponseHandler response; InitialCallback *initial; } S3MultipartInitialHandler;
typedef struct {
    S3ResponseHandler response; PutCallback *data; CommitCallback *commit;
} S3MultipartCommitHandler;
typedef struct { S3ResponseHandler response; PartsCallback *parts; } S3ListPartsHandler;
typedef struct { S3ResponseHandler response; UploadsCallback *uploads; } S3ListUploadsHandler;
typedef struct { S3ResponseHandler response; } S3AbortHandler;

#define AT(type, field, offset) \
    _Static_assert(offsetof(type, field) == (offset), #type "." #field)
#define SIZE(type, size) _Static_assert(sizeof(type) == (size), #type)
SIZE(S3NameValue, 16);
AT(S3ResponseProperties, contentLength, 24);
AT(S3ResponseProperties, eTag, 40);
AT(S3ResponseProperties, lastModified, 48);
AT(S3ResponseProperties, metaDataCount, 56);
AT(S3ResponseProperties, metaData, 64);
AT(S3ResponseProperties, usesServerSideEncryption, 72);
SIZE(S3ResponseProperties, 80);
AT(S3AclGrant, grantee, 4);
AT(S3AclGrant, permission, 260);
SIZE(S3AclGrant, 264);
AT(S3BucketContext, protocol, 16);
AT(S3BucketContext, uriStyle, 20);
AT(S3BucketContext, accessKeyId, 24);
AT(S3BucketContext, authRegion, 48);
SIZE(S3BucketContext, 56);
AT(S3ListBucketContent, eTag, 16);
SIZE(S3ListBucketContent, 48);
AT(S3ListMultipartUpload, initiated, 56);
SIZE(S3ListMultipartUpload, 64);
AT(S3ListPart, partNumber, 16);
SIZE(S3ListPart, 32);
AT(S3PutProperties, expires, 40);
AT(S3PutProperties, cannedAcl, 48);
AT(S3PutProperties, metaDataCount, 52);
AT(S3PutProperties, metaData, 56);
AT(S3PutProperties, useServerSideEncryption, 64);
SIZE(S3PutProperties, 72);
SIZE(S3GetConditions, 32);
AT(S3ErrorDetails, extraDetailsCount, 24);
SIZE(S3ErrorDetails, 40);
SIZE(S3ResponseHandler, 16);
SIZE(S3ListBucketHandler, 24);
SIZE(S3MultipartCommitHandler, 32);
SIZE(S3AbortHandler, 16);

typedef const char *Text;
typedef S3RequestContext *Ctx;
typedef const S3BucketContext *Bucket;

int S3_initialize(Text userAgent, int flags, Text defaultHost);
void S3_deinitialize(void);
Text S3_get_status_name(int status);
int S3_validate_bucket_name(Text bucket, int uriStyle);
int S3_convert_acl(char *xml, char *ownerId, char *ownerName, int *count, S3AclGrant *);
int S3_status_is_retryable(int status);
int S3_create_request_context(Ctx *);
int S3_create_request_context_ex(Ctx *, void *curlMulti, SetupCurl *, void *);
void S3_destroy_request_context(Ctx);
int S3_runall_request_context(Ctx);
int S3_runonce_request_context(Ctx, int *remaining);
int S3_process_request_context(Ctx);
int S3_get_request_context_fdsets(Ctx, fd_set *, fd_set *, fd_set *, int *maxFd);
int64_t S3_get_request_context_timeout(Ctx);
void S3_set_request_context_verify_peer(Ctx, int);
int S3_generate_authenticated_query_string(char *buffer, Bucket, Text key, int expires,
                                           Text resource, Text method);
void S3_list_service(int protocol, Text access, Text secret, Text token, Text host, Text region,
                     Ctx, int timeoutMs, const S3ListServiceHandler *, void *);
void S3_test_bucket(int protocol, int uriStyle, Text access, Text secret, Text token, Text host,
                    Text bucket, Text region, int locationSize, char *location, Ctx,
                    int timeoutMs, const S3ResponseHandler *, void *);
void S3_create_bucket(int protocol, Text access, Text secret, Text token, Text host, Text bucket,
                      Text region, int cannedAcl, Text location, Ctx, int timeoutMs,
                      const S3ResponseHandler *, void *);
void S3_delete_bucket(int protocol, int uriStyle, Text access, Text secret, Text token, Text host,
                      Text bucket, Text region, Ctx, int timeoutMs, const S3ResponseHandler *,
                      void *);
void S3_list_bucket(Bucket, Text prefix, Text marker, Text delimiter, int maxKeys, Ctx,
                    int timeoutMs, const S3ListBucketHandler *, void *);
void S3_put_object(Bucket, Text key, uint64_t length, const S3PutProperties *, Ctx, int timeoutMs,
                   const S3PutObjectHandler *, void *);
void S3_copy_object(Bucket, Text key, Text toBucket, Text toKey, const S3PutProperties *,
                    int64_t *lastModified, int etagSize, char *etag, Ctx, int timeoutMs,
                    const S3ResponseHandler *, void *);
void S3_copy_object_range(Bucket, Text key, Text toBucket, Text toKey, int part, Text uploadId,
                          unsigned long start, unsigned long count, const S3PutProperties *,
                          int64_t *lastModified, int etagSize, char *etag, Ctx, int timeoutMs,
                          const S3ResponseHandler *, void *);
void S3_get_object(Bucket, Text key, const S3GetConditions *, uint64_t start, uint64_t count, Ctx,
                   int timeoutMs, const S3GetObjectHandler *, void *);
void S3_head_object(Bucket, Text key, Ctx, int timeoutMs, const S3ResponseHandler *, void *);
void S3_delete_object(Bucket, Text key, Ctx, int timeoutMs, const S3ResponseHandler *, void *);
void S3_get_acl(Bucket, Text key, char *ownerId, char *ownerName, int *count, S3AclGrant *, Ctx,
                int timeoutMs, const S3ResponseHandler *, void *);
void S3_set_acl(Bucket, Text key, Text ownerId, Text ownerName, int count, const S3AclGrant *,
                Ctx, int timeoutMs, const S3ResponseHandler *, void *);
void S3_get_lifecycle(Bucket, char *xml, int size, Ctx, int timeoutMs, const S3ResponseHandler *,
                      void *);
void S3_set_lifecycle(Bucket, Text xml, Ctx, int timeoutMs, const S3ResponseHandler *, void *);
void S3_get_server_access_logging(Bucket, char *bucket, char *prefix, int *count, S3AclGrant *,
                                  Ctx, int timeoutMs, const S3ResponseHandler *, void *);
void S3_set_server_access_logging(Bucket, Text bucket, Text prefix, int count, const S3AclGrant *,
                                  Ctx, int timeoutMs, const S3ResponseHandler *, void *);
void S3_initiate_multipart(Bucket, Text key, S3PutProperties *, S3MultipartInitialHandler *, Ctx,
                           int timeoutMs, void *);
void S3_upload_part(Bucket, Text key, S3PutProperties *, S3PutObjectHandler *, int part,
                    Text uploadId, int length, Ctx, int timeoutMs, void *);
void S3_complete_multipart_upload(Bucket, Text key, S3MultipartCommitHandler *, Text uploadId,
                                  int length, Ctx, int timeoutMs, void *);
void S3_abort_multipart_upload(Bucket, Text key, Text uploadId, int timeoutMs, S3AbortHandler *);
void S3_list_parts(Bucket, Text key, Text marker, Text uploadId, Text encoding, int maxParts, Ctx,
                   int timeoutMs, const S3ListPartsHandler *, void *);
void S3_list_multipart_uploads(Bucket, Text prefix, Text keyMarker, Text idMarker, Text encoding,
                               Text delimiter, int maxUploads, Ctx, int timeoutMs,
                               const S3ListUploadsHandler *, void *);

#endif
