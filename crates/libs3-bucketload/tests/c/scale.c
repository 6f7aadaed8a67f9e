/* The cost of a request in a bucket with many objects. Usage: scale BUCKET COUNT.
 *
 * Fills BUCKET with COUNT empty objects and prints the CPU time of this process in ns, as the median
 * of several rounds: per PUT, HEAD and DELETE of further keys, and per listing of a prefix of 100
 * keys. The host is NULL: the environment names the store.
 *
 * Each round also performs the library's file operations directly: create under another name and
 * rename, stat, unlink. They run in a directory beside the store that holds as many files. Their extra
 * cost with many files is due to the file system ("file-put", "file-head", "file-delete"). */
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

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

static char files[4096];

static const char *file(const char *name)
{
    static char path[2][4224];
    static int turn;
    turn ^= 1;
    snprintf(path[turn], sizeof path[turn], "%s/%s", files, name);
    return path[turn];
}

static void make_file(const char *name)
{
    int fd = open(file("new"), O_CREAT | O_EXCL | O_WRONLY, 0666);
    CHECK(fd >= 0);
    CHECK(rename(file("new"), file(name)) == 0);
    CHECK(close(fd) == 0);
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
    snprintf(files, sizeof files, "%s-files-%ld", getenv("BUCKETLOAD_S3_ROOT"), count);
    CHECK(mkdir(files, 0777) == 0);
    char key[64], prefix[64];
    for (long i = 0; i < count; i++) {
        snprintf(key, sizeof key, "object-%09ld", i);
        put(key);
        make_file(key);
    }
    /* 100 keys in the middle. The first listing of a process may build an index. */
    snprintf(prefix, sizeof prefix, "object-%07ld", count / 200);
    double start = cpu_ns();
    list(prefix);
    double first = cpu_ns() - start;
    double puts[ROUNDS], heads[ROUNDS], deletes[ROUNDS], lists[ROUNDS];
    double made[ROUNDS], seen[ROUNDS], gone[ROUNDS];
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
        start = cpu_ns();
        for (int i = 0; i < PER_ROUND; i++) {
            snprintf(key, sizeof key, "more-%d-%d", i * 7919 % PER_ROUND, round);
            make_file(key);
        }
        made[round] = (cpu_ns() - start) / PER_ROUND;
        start = cpu_ns();
        for (int i = 0; i < PER_ROUND; i++) {
            struct stat st;
            snprintf(key, sizeof key, "more-%d-%d", i, round);
            CHECK(stat(file(key), &st) == 0);
        }
        seen[round] = (cpu_ns() - start) / PER_ROUND;
        start = cpu_ns();
        for (int i = 0; i < PER_ROUND; i++) {
            snprintf(key, sizeof key, "more-%d-%d", i, round);
            CHECK(unlink(file(key)) == 0);
        }
        gone[round] = (cpu_ns() - start) / PER_ROUND;
    }
    printf("objects %ld put %.0f head %.0f delete %.0f list %.0f first-list %.0f"
           " file-put %.0f file-head %.0f file-delete %.0f\n",
           count, median(puts), median(heads), median(deletes), median(lists), first,
           median(made), median(seen), median(gone));
    S3_deinitialize();
    return failures != 0;
}
