/* The cost of the library compared with plain files. Usage: bench DIRECTORY REPETITIONS.
 *
 * In each repetition and for each size, three sides write, read, stat and delete the same number of
 * objects with the same content. They take turns, and the side that begins alternates:
 *
 * - Plain files in DIRECTORY/plain: open, write, close; open, read, close; stat; unlink.
 * - The library: objects of a bucket in DIRECTORY/store.
 * - Bare files in DIRECTORY/bare, for writes and reads only: the steps that no library can avoid. A
 *   rename publishes each file, and its data passes through a buffer outside the application.
 *
 * Prints one line per measurement: operation, size in bytes, and the CPU time of this process per
 * operation in ns for each of the three sides ("-" if not measured).
 *
 * "write", "overwrite" and "read" copy: the application keeps the data in an array. It writes a file
 * from the array with one call, and its callbacks copy from or to the array. "produce" and "consume"
 * stream: the application generates the data piece by piece, or inspects it and keeps nothing; files
 * are written and read in pieces of 1 MiB. */
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "harness.h"

enum { WRITE, OVERWRITE, READ, PRODUCE, CONSUME, STAT, DELETE, OPERATIONS };
static const char *const NAMES[] = {"write",   "overwrite", "read",  "produce",
                                    "consume", "stat",      "delete"};
enum { PIECE = 1 << 20 };

static S3BucketContext BUCKET;
static char plain[4096];
static char *data;
static int bare_directory;
static char lent[128 << 10];

typedef struct {
    char *at;
    uint64_t size, done;
    int status;
} Transfer;

static double cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

/* Simulates an application that generates its data. */
static void produce(char *buffer, uint64_t size)
{
    static char value;
    memset(buffer, ++value, size);
}

/* Simulates an application that uses its data. */
static void consume(const char *buffer, uint64_t size)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i + 8 <= size; i += 8) {
        uint64_t word;
        memcpy(&word, buffer + i, 8);
        sum += word;
    }
    __asm__ volatile("" : : "r"(sum)); /* Keeps the compiler from removing the sum. */
}

static int give_made(int size, char *buffer, void *argument)
{
    ((Transfer *)argument)->done += size;
    produce(buffer, size);
    return size;
}

static int take_used(int size, const char *buffer, void *argument)
{
    ((Transfer *)argument)->done += size;
    consume(buffer, size);
    return OK;
}

static int give(int size, char *buffer, void *argument)
{
    Transfer *t = argument;
    memcpy(buffer, t->at + t->done, size);
    t->done += size;
    return size;
}

static int take(int size, const char *buffer, void *argument)
{
    Transfer *t = argument;
    memcpy(t->at + t->done, buffer, size);
    t->done += size;
    return OK;
}

static int length(const S3ResponseProperties *p, void *argument)
{
    ((Transfer *)argument)->size = p->contentLength;
    return OK;
}

static void end(int status, const S3ErrorDetails *details, void *argument)
{
    (void)details;
    ((Transfer *)argument)->status = status;
}

static const S3PutObjectHandler GIVE = {{NULL, end}, give};
static const S3GetObjectHandler TAKE = {{length, end}, take};
static const S3PutObjectHandler GIVE_MADE = {{NULL, end}, give_made};
static const S3GetObjectHandler TAKE_USED = {{length, end}, take_used};
static const S3ResponseHandler ENDING = {length, end};

static void must(int good, const char *what)
{
    if (!good) {
        perror(what);
        exit(1);
    }
}

static void file(int operation, const char *key, uint64_t size)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/%s", plain, key);
    struct stat found;
    int fd;
    uint64_t done = 0;
    switch (operation) {
    case WRITE:
    case OVERWRITE:
        fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
        must(fd >= 0, path);
        while (done < size) {
            ssize_t n = write(fd, data + done, size - done);
            must(n > 0, path);
            done += n;
        }
        must(close(fd) == 0, path);
        break;
    case READ:
        fd = open(path, O_RDONLY);
        must(fd >= 0, path);
        while (done < size) {
            ssize_t n = read(fd, data + done, size - done);
            must(n > 0, path);
            done += n;
        }
        must(close(fd) == 0, path);
        break;
    case PRODUCE:
        fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
        must(fd >= 0, path);
        for (; done < size; done += PIECE) {
            produce(data, PIECE);
            must(write(fd, data, PIECE) == PIECE, path);
        }
        must(close(fd) == 0, path);
        break;
    case CONSUME:
        fd = open(path, O_RDONLY);
        must(fd >= 0, path);
        for (; done < size; done += PIECE) {
            must(read(fd, data, PIECE) == PIECE, path);
            consume(data, PIECE);
        }
        must(close(fd) == 0, path);
        break;
    case STAT:
        must(stat(path, &found) == 0 && (uint64_t)found.st_size == size, path);
        break;
    default:
        must(unlink(path) == 0, path);
    }
}

static void object(int operation, const char *key, uint64_t size)
{
    Transfer t = {data, size, 0, -1};
    switch (operation) {
    case WRITE:
    case OVERWRITE:
        S3_put_object(&BUCKET, key, size, NULL, NULL, 0, &GIVE, &t);
        break;
    case READ:
        S3_get_object(&BUCKET, key, NULL, 0, 0, NULL, 0, &TAKE, &t);
        must(t.done == size, key);
        break;
    case PRODUCE:
        S3_put_object(&BUCKET, key, size, NULL, NULL, 0, &GIVE_MADE, &t);
        break;
    case CONSUME:
        S3_get_object(&BUCKET, key, NULL, 0, 0, NULL, 0, &TAKE_USED, &t);
        must(t.done == size, key);
        break;
    case STAT:
        S3_head_object(&BUCKET, key, NULL, 0, &ENDING, &t);
        must(t.size == size, key);
        break;
    default:
        S3_delete_object(&BUCKET, key, NULL, 0, &ENDING, &t);
    }
    must(t.status == OK, key);
}

/* The steps of an object without the library. */
static void bare(int operation, const char *key, uint64_t size)
{
    struct stat found;
    uint64_t done = 0;
    if (operation == READ) {
        int fd = openat(bare_directory, key, O_RDONLY | O_CLOEXEC);
        must(fd >= 0 && fstat(fd, &found) == 0, key);
        while (done < size) {
            ssize_t n = read(fd, lent, sizeof lent);
            must(n > 0, key);
            memcpy(data + done, lent, n);
            done += n;
        }
        must(close(fd) == 0, key);
        return;
    }
    int fd = openat(bare_directory, ".new", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    must(fd >= 0, key);
    while (done < size) {
        uint64_t n = size - done < sizeof lent ? size - done : sizeof lent;
        memcpy(lent, data + done, n);
        must(write(fd, lent, n) == (ssize_t)n, key);
        done += n;
    }
    /* Objects written within one tick of the file system's clock must be distinct versions. */
    struct timespec times[2] = {{0, UTIME_OMIT}};
    clock_gettime(CLOCK_REALTIME, &times[1]);
    must(futimens(fd, times) == 0 && close(fd) == 0, key);
    must(renameat(bare_directory, ".new", bare_directory, key) == 0, key);
}

static void remove_bare(int operation, const char *key, uint64_t size)
{
    (void)operation, (void)size;
    must(unlinkat(bare_directory, key, 0) == 0, key);
}

static double measure(void (*side)(int, const char *, uint64_t), int operation, uint64_t size,
                      int count)
{
    double start = cpu_ns();
    for (int i = 0; i < count; i++) {
        char key[64];
        snprintf(key, sizeof key, "object-%d", i);
        side(operation, key, size);
    }
    return (cpu_ns() - start) / count;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        return 2;
    }
    static const uint64_t sizes[] = {0, 1024, 4096, 65536, 1 << 20, 16 << 20, 128 << 20};
    static void (*const sides[])(int, const char *, uint64_t) = {file, object, bare};
    enum { SIDES = 3, BARE = 2 };
    char store[4096], third[4096];
    snprintf(plain, sizeof plain, "%s/plain", argv[1]);
    snprintf(store, sizeof store, "%s/store", argv[1]);
    snprintf(third, sizeof third, "%s/bare", argv[1]);
    must(mkdir(plain, 0777) == 0, plain);
    must(mkdir(third, 0777) == 0, third);
    bare_directory = open(third, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    must(bare_directory >= 0, third);
    BUCKET = (S3BucketContext){store, "bench", HTTP, PATH, "a", "s", NULL, NULL};
    must(S3_initialize("bench", 1, store) == OK, "S3_initialize");
    Transfer t = {NULL, 0, 0, -1};
    S3_create_bucket(HTTP, "a", "s", NULL, store, "bench", NULL, 0, NULL, NULL, 0, &ENDING, &t);
    must(t.status == OK, "S3_create_bucket");
    data = malloc(128 << 20);
    for (size_t i = 0; i < 128 << 20; i++) {
        data[i] = (char)(i * 2654435761u >> 11);
    }
    for (int repetition = 0; repetition < atoi(argv[2]); repetition++) {
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
            uint64_t size = sizes[s];
            int count = size <= 65536 ? 2000 : (int)((256ULL << 20) / size);
            for (int operation = 0; operation < OPERATIONS; operation++) {
                double costs[SIDES] = {0, 0, 0};
                if ((operation == PRODUCE || operation == CONSUME) && size < PIECE) {
                    continue;
                }
                int has_bare = operation == WRITE || operation == OVERWRITE || operation == READ;
                int of = has_bare ? SIDES : BARE;
                for (int turn = 0; turn < of; turn++) {
                    int side = (repetition + turn) % of;
                    costs[side] = measure(sides[side], operation, size, count);
                }
                if (operation == DELETE) {
                    measure(remove_bare, operation, size, count);
                }
                printf("%s %lu %.0f %.0f ", NAMES[operation], (unsigned long)size, costs[0],
                       costs[1]);
                printf(has_bare ? "%.0f\n" : "-\n", costs[BARE]);
            }
        }
    }
    S3_deinitialize();
    must(rmdir(plain) == 0, plain);
    must(close(bare_directory) == 0 && rmdir(third) == 0, third);
    free(data);
    return 0;
}
