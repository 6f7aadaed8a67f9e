/* The cost of removing objects as IOR and mdtest do: delete the object, then list the prefix of its name and delete
 * what is found, in case the object was written in fragments. Usage: removal BUCKET COUNT...
 *
 * For each COUNT, fills BUCKET with COUNT empty objects and removes them all. Prints the count and the CPU time of this
 * process per removal in ns. The environment names the store. */
#include <time.h>

#include "harness.h"

static double cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        return 2;
    }
    S3BucketContext bucket = {NULL, argv[1], HTTP, PATH, "a", "s", NULL, NULL};
    CHECK(S3_initialize("removal", 1, NULL) == OK);
    Request r = {0};
    S3_create_bucket(HTTP, "a", "s", NULL, NULL, argv[1], NULL, 0, NULL, NULL, 0, &HANDLER, &r);
    CHECK(r.status == OK);
    for (int at = 2; at < argc; at++) {
        long count = atol(argv[at]);
        /* Small directories are removed again and again: one pass would measure the first requests of a process. */
        long rounds = count < 4096 ? 4096 / count : 1;
        double spent = 0;
        for (long round = 0; round < rounds; round++) {
            char key[64];
            for (long i = 0; i < count; i++) {
                snprintf(key, sizeof key, "file.mdtest.%09ld", i);
                r = (Request){0};
                S3_put_object(&bucket, key, 0, NULL, NULL, 0, &PUT, &r);
                CHECK(r.status == OK);
            }
            double start = cpu_ns();
            for (long i = 0; i < count; i++) {
                snprintf(key, sizeof key, "file.mdtest.%09ld", i);
                r = (Request){0};
                S3_delete_object(&bucket, key, NULL, 0, &HANDLER, &r);
                CHECK(r.status == OK);
                r = (Request){.delete_listed = &bucket};
                S3_list_bucket(&bucket, key, NULL, NULL, 0x7fffffff, NULL, 0, &LIST, &r);
                CHECK(r.status == OK && r.keys == 0);
            }
            spent += cpu_ns() - start;
        }
        printf("%ld %.0f\n", count, spent / (double)(count * rounds));
    }
    S3_deinitialize();
    return failures != 0;
}
