/* Many threads on a shared bucket and on a bucket per thread. Serves a race detector, and tests that
 * every answer is consistent with some order of the requests. Usage: threads COUNT ROUNDS. */
#include <pthread.h>

#include "harness.h"

static int rounds;

static S3BucketContext bucket_named(const char *name)
{
    S3BucketContext b = {NULL, name, HTTP, PATH, "access", "secret", NULL, NULL};
    return b;
}

static void *work(void *argument)
{
    int number = *(int *)argument;
    char own_name[32], body[4096];
    snprintf(own_name, sizeof own_name, "threads-%d", number);
    memset(body, 'a' + number % 26, sizeof body);
    S3BucketContext own = bucket_named(own_name), shared = bucket_named("threads-shared");
    CHECK(S3_initialize("thread", 1, NULL) == OK);
    Request r = {0};
    S3_create_bucket(HTTP, "a", "s", NULL, NULL, own_name, NULL, 0, NULL, NULL, 0, &HANDLER, &r);
    CHECK(r.status == OK);
    for (int i = 0; i < rounds; i++) {
        char key[64];
        snprintf(key, sizeof key, "d/%d", i % 7);
        r = (Request){.body = body, .body_length = sizeof body};
        S3_put_object(&own, key, sizeof body, NULL, NULL, 0, &PUT, &r);
        CHECK(r.status == OK);
        r = (Request){0};
        S3_get_object(&own, key, NULL, 0, 0, NULL, 0, &GET, &r);
        CHECK(r.status == OK && r.received_length == sizeof body && r.received[9] == body[0]);
        free(r.received);
        /* All threads share one key: every object read must be whole. */
        r = (Request){.body = body, .body_length = sizeof body};
        S3_put_object(&shared, "one", sizeof body, NULL, NULL, 0, &PUT, &r);
        CHECK(r.status == OK);
        r = (Request){0};
        S3_get_object(&shared, "one", NULL, 0, 0, NULL, 0, &GET, &r);
        CHECK(r.status == OK || r.status == NO_SUCH_KEY);
        for (uint64_t at = 1; at < r.received_length; at++) {
            if (r.received[at] != r.received[0]) {
                CHECK(!"an object is torn");
                break;
            }
        }
        free(r.received);
        if (i % 5 == 4) {
            r = (Request){0};
            S3_delete_object(&shared, "one", NULL, 0, &HANDLER, &r);
            CHECK(r.status == OK);
            r = (Request){0};
            S3_list_bucket(&shared, NULL, NULL, NULL, 0, NULL, 0, &LIST, &r);
            CHECK(r.status == OK && r.keys <= 1);
            r = (Request){0};
            S3_head_object(&own, "missing", NULL, 0, &HANDLER, &r);
            CHECK(r.status == HTTP_NOT_FOUND);
        }
    }
    r = (Request){.delete_listed = &own};
    S3_list_bucket(&own, NULL, NULL, NULL, 0, NULL, 0, &LIST, &r);
    CHECK(r.status == OK && r.keys == (rounds < 7 ? rounds : 7));
    r = (Request){0};
    S3_delete_bucket(HTTP, PATH, "a", "s", NULL, NULL, own_name, NULL, NULL, 0, &HANDLER, &r);
    CHECK(r.status == OK);
    S3_deinitialize();
    return NULL;
}

int main(int argc, char **argv)
{
    int count = argc > 1 ? atoi(argv[1]) : 4;
    rounds = argc > 2 ? atoi(argv[2]) : 100;
    pthread_t *threads = calloc(count, sizeof *threads);
    int *numbers = calloc(count, sizeof *numbers);
    CHECK(S3_initialize("main", 1, NULL) == OK);
    Request r = {0};
    S3_create_bucket(HTTP, "a", "s", NULL, NULL, "threads-shared", NULL, 0, NULL, NULL, 0,
                     &HANDLER, &r);
    CHECK(r.status == OK);
    for (int i = 0; i < count; i++) {
        numbers[i] = i;
        pthread_create(&threads[i], NULL, work, &numbers[i]);
    }
    for (int i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
    }
    S3BucketContext shared = bucket_named("threads-shared");
    r = (Request){.delete_listed = &shared};
    S3_list_bucket(&shared, NULL, NULL, NULL, 0, NULL, 0, &LIST, &r);
    r = (Request){0};
    S3_delete_bucket(HTTP, PATH, "a", "s", NULL, NULL, "threads-shared", NULL, NULL, 0, &HANDLER,
                     &r);
    CHECK(r.status == OK);
    S3_deinitialize();
    free(threads);
    free(numbers);
    if (failures) {
        fprintf(stderr, "%d checks failed\n", failures);
        return 1;
    }
    puts("all threads agree");
    return 0;
}
