/* Two threads queue requests on one request context, which libs3 forbids. The race detector must
 * report it, which shows that the detector sees inside the library. */
#include <pthread.h>

#include "harness.h"

enum { EACH = 50000 };

static S3RequestContext *ctx;
static Request requests[2 * EACH];

static void *work(void *own)
{
    S3BucketContext b = {NULL, "misuse", HTTP, PATH, "access", "secret", NULL, NULL};
    for (int i = 0; i < EACH; i++) {
        S3_head_object(&b, "key", ctx, 0, &HANDLER, (Request *)own + i);
    }
    return NULL;
}

int main(void)
{
    if (S3_initialize("misuse", 1, NULL) != OK || S3_create_request_context(&ctx) != OK) {
        return 1;
    }
    pthread_t other;
    pthread_create(&other, NULL, work, requests);
    work(requests + EACH);
    pthread_join(other, NULL);
    return 0;
}
