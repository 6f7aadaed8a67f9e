/* Killed in the middle of a PUT, and forks. Usage: crash ROOT.
 *
 * A child is killed (SIGKILL) by its own data callback. Successive children die at the second, third
 * and every later call, which covers every stage of the body. The key must still hold the complete
 * previous object, and opening the store again must remove what the killed process left. Then a
 * process forks while the library is in use, and both continue on the same store. */
#include <dirent.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"

enum { SIZE = 1 << 20 };

static char old_body[SIZE], new_body[SIZE];
static S3BucketContext BUCKET;
static int die_at;

static int on_put_die(int size, char *buffer, void *data)
{
    Request *r = data;
    if (r->data_calls + 1 == die_at) {
        kill(getpid(), SIGKILL);
    }
    return on_put(size, buffer, data);
}

static int put(const char *key, const char *body, uint64_t size, PutCallback *supply)
{
    S3PutObjectHandler handler = {{on_properties, on_complete}, supply};
    Request r = {.body = body, .body_length = size};
    S3_put_object(&BUCKET, key, size, NULL, NULL, 0, &handler, &r);
    return r.status;
}

static void expect_object(const char *key, const char *body, uint64_t size)
{
    Request r = {0};
    S3_get_object(&BUCKET, key, NULL, 0, 0, NULL, 0, &GET, &r);
    CHECK(r.status == OK && r.received_length == size && !memcmp(r.received, body, size));
    free(r.received);
}

static int entries(const char *root, const char *below)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", root, below);
    DIR *directory = opendir(path);
    int count = -2;
    while (directory && readdir(directory)) {
        count++;
    }
    if (directory) {
        closedir(directory);
    }
    return count;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        return 2;
    }
    const char *root = argv[1];
    BUCKET = (S3BucketContext){root, "crash", HTTP, PATH, "a", "s", NULL, NULL};
    memset(old_body, 'o', SIZE);
    memset(new_body, 'n', SIZE);
    CHECK(S3_initialize("crash", 1, root) == OK);
    Request r = {0};
    S3_create_bucket(HTTP, "a", "s", NULL, root, "crash", NULL, 0, NULL, NULL, 0, &HANDLER, &r);
    CHECK(r.status == OK && put("dir/key", old_body, SIZE, on_put) == OK);
    S3_deinitialize();

    for (die_at = 1; die_at <= SIZE / 65536; die_at++) {
        fflush(NULL);
        pid_t child = fork();
        if (child == 0) {
            S3_initialize("child", 1, root);
            put("dir/key", new_body, SIZE, on_put_die);
            _exit(1);
        }
        int status = 0;
        CHECK(waitpid(child, &status, 0) == child);
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        /* The killed process left a file, which the next opening removes. */
        CHECK(entries(root, ".bucketload/tmp") == 1);
        CHECK(S3_initialize("crash", 1, root) == OK);
        expect_object("dir/key", old_body, SIZE);
        CHECK(entries(root, ".bucketload/tmp") == 1);
        S3_deinitialize();
        CHECK(entries(root, ".bucketload/tmp") == 0);
    }

    CHECK(S3_initialize("crash", 1, root) == OK);
    CHECK(put("before", old_body, SIZE, on_put) == OK);
    int pipes[2];
    CHECK(pipe(pipes) == 0);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        expect_object("before", old_body, SIZE);
        for (int i = 0; i < 20; i++) {
            char key[16];
            snprintf(key, sizeof key, "child-%d", i);
            CHECK(put(key, new_body, 1000, on_put) == OK);
        }
        S3_deinitialize();
        /* Waits until the parent has closed its end. */
        char byte;
        CHECK(close(pipes[1]) == 0 && read(pipes[0], &byte, 1) == 0);
        _exit(failures != 0);
    }
    for (int i = 0; i < 20; i++) {
        CHECK(put("parent", new_body, 5000, on_put) == OK);
    }
    close(pipes[1]);
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    /* The child closed its own store, not the parent's. */
    CHECK(put("parent", old_body, 70000, on_put) == OK);
    expect_object("parent", old_body, 70000);
    expect_object("child-19", new_body, 1000);
    r = (Request){.delete_listed = &BUCKET};
    S3_list_bucket(&BUCKET, NULL, NULL, NULL, 0, NULL, 0, &LIST, &r);
    CHECK(r.status == OK && r.keys == 23);
    r = (Request){0};
    S3_delete_bucket(HTTP, PATH, "a", "s", NULL, root, "crash", NULL, NULL, 0, &HANDLER, &r);
    CHECK(r.status == OK);
    S3_deinitialize();
    CHECK(entries(root, ".bucketload/tmp") == 0);
    if (failures) {
        fprintf(stderr, "%d checks failed\n", failures);
        return 1;
    }
    puts("no torn object, no file left behind");
    return 0;
}
