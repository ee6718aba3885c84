/* Files: whole reads, writes that are complete or absent, directories, shipped data. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/data_path.h"
#include "base/file.h"
#include "tests/support/folder.h"

/* Removes every file here; how many there were. */
static int empty_folder(void)
{
    int count = 0;
    DIR *stream = opendir(".");
    for (struct dirent *entry; (entry = readdir(stream)) != NULL;) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            count += remove(entry->d_name) == 0;
        }
    }
    closedir(stream);
    return count;
}

static int remove_folder(void **state)
{
    (void)state;
    empty_folder();
    return folder_remove();
}

static void write_text(const char *file, const char *text)
{
    struct sc_error err = SC_ERROR_INIT;
    struct sc_file_writer writer;
    assert_int_equal(sc_file_open(file, &writer, &err), SC_OK);
    fputs(text, writer.stream);
    assert_int_equal(sc_file_commit(&writer, &err), SC_OK);
    assert_null(writer.target);
}

static void assert_holds(const char *file, const char *text)
{
    struct sc_error err = SC_ERROR_INIT;
    char *found = NULL;
    size_t size = 0;
    assert_int_equal(sc_file_read(file, &found, &size, &err), SC_OK);
    assert_string_equal(found, text);
    assert_int_equal(size, strlen(text));
    free(found);
}

static void what_is_written_is_read(void **state)
{
    (void)state;
    write_text("a", "first");
    assert_holds("a", "first");
    write_text("a", "");
    assert_holds("a", "");
    assert_int_equal(empty_folder(), 1); /* no temporary file stays */
}

static void a_large_file_is_read_whole(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_file_writer writer;
    char *found = NULL;
    size_t size = 0;
    assert_int_equal(sc_file_open("big", &writer, &err), SC_OK);
    for (int i = 0; i < 300000; i++) {
        fputc('a' + i % 26, writer.stream);
    }
    assert_int_equal(sc_file_commit(&writer, &err), SC_OK);
    assert_int_equal(sc_file_read("big", &found, &size, &err), SC_OK);
    assert_int_equal(size, 300000);
    assert_int_equal(found[299999], 'a' + 299999 % 26);
    free(found);
    empty_folder();
}

static void an_abandoned_write_changes_nothing(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_file_writer writer;
    write_text("a", "old");
    assert_int_equal(sc_file_open("a", &writer, &err), SC_OK);
    fputs("new", writer.stream);
    assert_holds("a", "old"); /* not before the commit */
    sc_file_abandon(&writer);
    sc_file_abandon(&writer); /* a second time does nothing */
    assert_holds("a", "old");
    assert_int_equal(empty_folder(), 1);
}

/* A device that is always full: the failure is the machine's and is told at the commit. */
static void a_full_disk_is_told(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_file_writer writer;
    assert_int_equal(sc_file_open("/dev/full", &writer, &err), SC_OK);
    fputs("text", writer.stream);
    assert_int_equal(sc_file_commit(&writer, &err), SC_MACHINE);
    assert_string_equal(err.text, "/dev/full: cannot be written: No space left on device");
}

/* Larger than a stream's buffer: the stream itself would only say that something failed. */
static void a_large_piece_on_a_full_disk_is_told(void **state)
{
    (void)state;
    static const char piece[100000];
    struct sc_error err = SC_ERROR_INIT;
    struct sc_file_writer writer;
    assert_int_equal(sc_file_open("/dev/full", &writer, &err), SC_OK);
    sc_file_put(&writer, piece, sizeof(piece));
    sc_file_put(&writer, piece, 1);
    assert_int_equal(sc_file_commit(&writer, &err), SC_MACHINE);
    assert_string_equal(err.text, "/dev/full: cannot be written: No space left on device");
}

static void a_check_leaves_nothing(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    assert_int_equal(sc_file_check("new", &err), SC_OK);
    assert_int_equal(empty_folder(), 0);
    write_text("old", "as it was");
    assert_int_equal(sc_file_check("old", &err), SC_OK);
    assert_holds("old", "as it was");
    assert_int_equal(empty_folder(), 1);
    assert_int_equal(sc_file_check("/dev/null", &err), SC_OK);
    assert_int_equal(sc_file_check("no/such/folder", &err), SC_MACHINE);
    assert_string_equal(err.text, "no/such/folder: cannot be written: No such file or directory");
    assert_int_equal(sc_file_check(".", &err), SC_MACHINE);
}

static void a_link_stays_a_link(void **state)
{
    (void)state;
    struct stat info;
    write_text("real", "1");
    assert_int_equal(symlink("real", "link"), 0);
    write_text("link", "2");
    assert_holds("real", "2");
    assert_int_equal(lstat("link", &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    empty_folder();
}

static void wrong_names_are_bad_input(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    char *text = NULL;
    size_t size = 0;
    assert_int_equal(sc_file_read("nowhere", &text, &size, &err), SC_BAD_INPUT);
    assert_string_equal(err.text, "nowhere: cannot be read: No such file or directory");
    assert_int_equal(sc_file_read(".", &text, &size, &err), SC_BAD_INPUT);
    assert_null(text);
}

static void a_target_that_cannot_be_written(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    struct sc_file_writer writer;
    assert_int_equal(sc_file_open("no/such/folder", &writer, &err), SC_MACHINE);
    assert_int_equal(sc_file_open(".", &writer, &err), SC_MACHINE);
    assert_string_equal(err.text, ".: cannot be written: Is a directory");
    assert_int_equal(empty_folder(), 0);
}

static void directories_are_made_with_their_parents(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    assert_int_equal(sc_make_directory("x/y/z", &err), SC_OK);
    assert_int_equal(sc_make_directory("x/y/z/", &err), SC_OK); /* there already */
    assert_true(sc_file_exists("x/y/z"));
    write_text("x/file", "");
    assert_int_equal(sc_make_directory("x/file/z", &err), SC_MACHINE);
    assert_string_equal(err.text, "x/file: the directory cannot be made: Not a directory");
    remove("x/file");
    rmdir("x/y/z");
    rmdir("x/y");
    rmdir("x");
}

static void shipped_data_is_found(void **state)
{
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    char path[PATH_MAX];
    unsetenv("STEPCAST_DATA");
    assert_int_equal(sc_data_path("base", "status.h", path, sizeof(path), &err), SC_OK);
    assert_true(sc_file_exists(path));
    assert_int_equal(sc_data_path("base", "nothing.h", path, sizeof(path), &err), SC_BAD_INPUT);
    assert_non_null(strstr(err.text, "base/nothing.h"));
    assert_int_equal(sc_data_path("base", "status.h", path, 5, &err), SC_BAD_INPUT);
}

static void the_environment_comes_first(void **state)
{
    char folder[PATH_MAX / 2];
    (void)state;
    struct sc_error err = SC_ERROR_INIT;
    char path[PATH_MAX], expected[PATH_MAX + 16];
    assert_int_equal(mkdir("base", 0777), 0);
    write_text("base/status.h", "mine");
    assert_non_null(getcwd(folder, sizeof(folder)));
    setenv("STEPCAST_DATA", folder, 1);
    assert_int_equal(sc_data_path("base", "status.h", path, sizeof(path), &err), SC_OK);
    snprintf(expected, sizeof(expected), "%s/base/status.h", folder);
    assert_string_equal(path, expected);
    unsetenv("STEPCAST_DATA");
    remove("base/status.h");
    rmdir("base");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(a_large_file_is_read_whole),
        cmocka_unit_test(an_abandoned_write_changes_nothing),
        cmocka_unit_test(a_full_disk_is_told),
        cmocka_unit_test(a_large_piece_on_a_full_disk_is_told),
        cmocka_unit_test(a_check_leaves_nothing),
        cmocka_unit_test(a_link_stays_a_link),
        cmocka_unit_test(wrong_names_are_bad_input),
        cmocka_unit_test(a_target_that_cannot_be_written),
        cmocka_unit_test(directories_are_made_with_their_parents),
        cmocka_unit_test(shipped_data_is_found),
        cmocka_unit_test(the_environment_comes_first),
    };
    return cmocka_run_group_tests(tests, folder_make, remove_folder);
}
