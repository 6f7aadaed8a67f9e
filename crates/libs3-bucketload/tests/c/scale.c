/* What a request costs in a bucket of many objects. Usage: scale BUCKET COUNT.
 *
 * Fills BUCKET with COUNT empty objects and prints the processor time of this process in ns, as the
 * median of several rounds: per PUT, HEAD and DELETE of further keys, and per listing of a prefix
 * of 100 keys. The host is NULL: the environment names the store. */
#include <time.h>

#include "harness.h"

enum { ROUNDS = 9, PER_ROUND = 2000, LISTS = 20 };

static S3BucketContext BUCKET;

static double cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values)
{
    qsort(values, ROUNDS, sizeof *values, by_value);
    return values[ROUNDS / 2];
}

static void put(const char *key)
{
    Request r = {0};
    S3_put_object(&BUCKET, key, 0, NULL, NULL, 0, &PUT, &r);
    CHECK(r.status == OK);
}

static double list(const char *prefix)
{
    double start = cpu_ns();
    for (int i = 0; i < LISTS; i++) {
        Request r = {0};
        S3_list_bucket(&BUCKET, prefix, NULL, NULL, 0x7fffffff, NULL, 0, &LIST, &r);
        CHECK(r.status == OK && r.keys == 100);
    }
    return (cpu_ns() - start) / LISTS;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        return 2;
    }
    long count = atol(argv[2]);
    BUCKET = (S3BucketContext){NULL, argv[1], HTTP, PATH, "a", "s", NULL, NULL};
    CHECK(S3_initialize("scale", 1, NULL) == OK);
    Request r = {0};
    S3_create_bucket(HTTP, "a", "s", NULL, NULL, argv[1], NULL, 0, NULL, NULL, 0, &HANDLER, &r);
    CHECK(r.status == OK);
    char key[64], prefix[64];
    for (long i = 0; i < count; i++) {
        snprintf(key, sizeof key, "object-%09ld", i);
        put(key);
    }
    /* 100 keys in the middle; the first listing of a process may build an index. */
    snprintf(prefix, sizeof prefix, "object-%07ld", count / 200);
    double start = cpu_ns();
    list(prefix);
    double first = cpu_ns() - start;
    double puts[ROUNDS], heads[ROUNDS], deletes[ROUNDS], lists[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        start = cpu_ns();
        for (int i = 0; i < PER_ROUND; i++) {
            snprintf(key, sizeof key, "more-%d-%d", i * 7919 % PER_ROUND, round);
            put(key);
        }
        puts[round] = (cpu_ns() - start) / PER_ROUND;
        start = cpu_ns();
        for (int i = 0; i < PER_ROUND; i++) {
            snprintf(key, sizeof key, "more-%d-%d", i, round);
            r = (Request){0};
            S3_head_object(&BUCKET, key, NULL, 0, &HANDLER, &r);
            CHECK(r.status == OK);
        }
        heads[round] = (cpu_ns() - start) / PER_ROUND;
        start = cpu_ns();
        for (int i = 0; i < PER_ROUND; i++) {
            snprintf(key, sizeof key, "more-%d-%d", i, round);
            r = (Request){0};
            S3_delete_object(&BUCKET, key, NULL, 0, &HANDLER, &r);
            CHECK(r.status == OK);
        }
        deletes[round] = (cpu_ns() - start) / PER_ROUND;
        list(prefix);
        lists[round] = list(prefix);
    }
    printf("objects %ld put %.0f head %.0f delete %.0f list %.0f first-list %.0f\n", count,
           median(puts), median(heads), median(deletes), median(lists), first);
    S3_deinitialize();
    return failures != 0;
}
