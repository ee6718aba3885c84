/* ctest: timeout=120 */
/*
 * Bandwidths of disk and memory: measured they are numbers with a source, the file is gone in every
 * case, and what cannot be measured is said and assumed. No rate is asserted.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "exec/calibrate_storage.h"

static char FOLDER[] = "test_storage_XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(FOLDER) == NULL;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(FOLDER); /* fails where anything was left in it */
}

static int entries(const char *folder)
{
    int count = 0;
    DIR *at = opendir(folder);
    assert_non_null(at);
    for (const struct dirent *entry; (entry = readdir(at)) != NULL;) {
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    }
    closedir(at);
    return count;
}

static struct sc_storage measure(const char *folder)
{
    struct sc_error err = SC_ERROR_INIT;
    struct sc_storage storage;
    const struct sc_storage_options options = {folder, 2, true};
    if (sc_storage_measure(&options, &storage, &err) != SC_OK) {
        fail_msg("%s", err.text);
    }
    const struct sc_storage_rate *const memory[] = {&storage.copy, &storage.scan, &storage.copy_one,
                                                    &storage.scan_one};
    for (size_t i = 0; i < 4; i++) {
        assert_true(isfinite(memory[i]->rate) && memory[i]->rate > 0 && memory[i]->spread >= 0);
    }
    return storage;
}

/* places.disk after writing, with its source; a host place is there before. */
static const cJSON *write_profile(const struct sc_storage *storage, cJSON **profile)
{
    *profile =
        cJSON_Parse("{\"places\": {\"host\": {\"bandwidth_gb_per_s\": 1, \"source\": \"\"}}}");
    assert_non_null(*profile);
    assert_true(sc_storage_write(storage, *profile));
    const cJSON *places = cJSON_GetObjectItemCaseSensitive(*profile, "places");
    const cJSON *host = cJSON_GetObjectItemCaseSensitive(places, "host");
    double copied = cJSON_GetObjectItemCaseSensitive(host, "bandwidth_gb_per_s")->valuedouble;
    assert_true(fabs(copied * 1e9 / storage->copy.rate - 1) < 1e-3); /* four digits */
    assert_int_equal(cJSON_GetArraySize(host), 2);
    return cJSON_GetObjectItemCaseSensitive(places, "disk");
}

static double number(const cJSON *object, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    assert_true(cJSON_IsNumber(item));
    return item->valuedouble;
}

static const char *source(const cJSON *object)
{
    return cJSON_GetObjectItemCaseSensitive(object, "source")->valuestring;
}

/* The smallest file has 16 pieces of 1 MiB, or fewer where the disk is slow. */
static void a_disk_is_measured(void **state)
{
    (void)state;
    cJSON *profile = NULL;
    struct sc_storage storage = measure(FOLDER);
    assert_true(storage.measured && storage.capacity_bytes > 0);
    assert_true(storage.file_bytes >= 2 << 20 && storage.file_bytes <= 16 << 20);
    assert_int_equal(entries(FOLDER), 0);
    const cJSON *disk = write_profile(&storage, &profile);
    assert_true(fabs(number(disk, "read_bandwidth_gb_per_s") * 1e9 / storage.read.rate - 1) < 1e-3);
    assert_true(fabs(number(disk, "write_bandwidth_gb_per_s") * 1e9 / storage.write.rate - 1) <
                1e-3);
    assert_int_equal(strncmp(source(disk), "measured: ", 10), 0);
    cJSON_Delete(profile);
}

/* The neutral value: 0.2 GB/s, and a source that does not say "measured". */
static void assert_assumed(const struct sc_storage *storage, const char *why)
{
    cJSON *profile = NULL;
    assert_false(storage->measured);
    assert_non_null(strstr(storage->trouble, why));
    const cJSON *disk = write_profile(storage, &profile);
    assert_true(number(disk, "read_bandwidth_gb_per_s") == 0.2);
    assert_true(number(disk, "write_bandwidth_gb_per_s") == 0.2);
    assert_true(number(disk, "capacity_bytes") > 0);
    assert_int_equal(strncmp(source(disk), "assumption, not measured (", 26), 0);
    assert_non_null(strstr(source(disk), why));
    cJSON_Delete(profile);
}

static void a_folder_that_is_not_there_is_said(void **state)
{
    (void)state;
    struct sc_storage storage = measure("nowhere/at/all");
    assert_assumed(&storage, "No such file or directory");
}

/* A file that may not grow beyond half a piece stands for a disk that is full. */
static void a_full_disk_is_said(void **state)
{
    (void)state;
    struct rlimit before, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = (struct rlimit){512 << 10, before.rlim_max};
    void (*old)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    struct sc_storage storage = measure(FOLDER);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, old);
    assert_assumed(&storage, "File too large");
    assert_int_equal(entries(FOLDER), 0);
}

/* Linux keeps /dev/shm in memory. */
static void memory_is_no_disk(void **state)
{
    (void)state;
    struct statfs kind;
    cJSON *profile = NULL;
    if (statfs("/dev/shm", &kind) != 0 || kind.f_type != 0x01021994 || access("/dev/shm", W_OK)) {
        skip();
    }
    struct sc_storage storage = measure("/dev/shm");
    assert_true(storage.memory_backed);
    assert_non_null(strstr(storage.trouble, "tmpfs"));
    const cJSON *disk = write_profile(&storage, &profile);
    assert_non_null(strstr(source(disk), "in memory (tmpfs), on no disk"));
    cJSON_Delete(profile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_disk_is_measured),
        cmocka_unit_test(a_folder_that_is_not_there_is_said),
        cmocka_unit_test(a_full_disk_is_said),
        cmocka_unit_test(memory_is_no_disk),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
