/* Reading whole files and writing them so that a reader never meets half of one. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_CHUNK ((size_t)64 * 1024)
#define READ_MOST ((size_t)1 << 30) /* a device that never ends must not take all memory */
#define TEMPORARY_TRIES 100

/* A wrong name is the user's to mend; everything else is the machine's. */
static enum sc_status fail_read(const char *file, int error, struct sc_error *err)
{
    bool wrong_name = error == ENOENT || error == EISDIR || error == EACCES || error == ENOTDIR ||
                      error == ENAMETOOLONG || error == ELOOP;
    return sc_fail(err, wrong_name ? SC_BAD_INPUT : SC_MACHINE, "%s: cannot be read: %s", file,
                   strerror(error));
}

static enum sc_status fail_write(const char *file, int error, struct sc_error *err)
{
    return sc_fail(err, SC_MACHINE, "%s: cannot be written: %s", file, strerror(error));
}

static bool grow(char **text, size_t used, size_t *room)
{
    if (*room - used > 1) {
        return true;
    }
    size_t wanted = *room + (*room > READ_CHUNK ? *room : READ_CHUNK);
    char *grown = wanted > *room ? realloc(*text, wanted) : NULL;
    if (grown == NULL) {
        return false;
    }
    *text = grown;
    *room = wanted;
    return true;
}

/* Reads until the end instead of asking for the size: a pipe has none. */
static enum sc_status read_all(int descriptor, const char *file, char **text, size_t *size,
                               struct sc_error *err)
{
    size_t room = 0;
    *size = 0;
    for (;;) {
        if (!grow(text, *size, &room)) {
            return sc_fail_memory(err, room + READ_CHUNK);
        }
        ssize_t got = read(descriptor, *text + *size, room - *size - 1);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return fail_read(file, errno, err);
        }
        if (got == 0) {
            (*text)[*size] = '\0';
            return SC_OK;
        }
        *size += (size_t)got;
        if (*size > READ_MOST) {
            return sc_fail(err, SC_BAD_INPUT, "%s: found more than %zu MiB, expected a text file",
                           file, READ_MOST >> 20);
        }
    }
}

enum sc_status sc_file_read(const char *file, char **out, size_t *size, struct sc_error *err)
{
    int descriptor = open(file, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) {
        return fail_read(file, errno, err);
    }
    char *text = NULL;
    size_t bytes = 0;
    enum sc_status status = read_all(descriptor, file, &text, &bytes, err);
    close(descriptor);
    if (status != SC_OK) {
        free(text);
        return status;
    }
    *out = text;
    *size = bytes;
    return SC_OK;
}

/* The file that a target names: through a symbolic link, so that the link itself stays. */
static char *resolve(const char *target)
{
    char *real = realpath(target, NULL);
    return real != NULL ? real : strdup(target);
}

static int open_temporary(const char *target, char **name)
{
    for (int i = 0; i < TEMPORARY_TRIES; i++) {
        if (asprintf(name, "%s.tmp.%ld.%d", target, (long)getpid(), i) < 0) {
            *name = NULL;
            errno = ENOMEM;
            return -1;
        }
        int descriptor = open(*name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (descriptor >= 0 || errno != EEXIST) {
            return descriptor;
        }
        free(*name);
        *name = NULL;
    }
    errno = EEXIST;
    return -1;
}

/* A device or a pipe cannot be replaced by a rename: it is written in place. */
static int open_for_writing(const char *target, char **temporary)
{
    struct stat info;
    bool exists = stat(target, &info) == 0;
    if (exists && S_ISDIR(info.st_mode)) {
        errno = EISDIR;
        return -1;
    }
    if (exists && !S_ISREG(info.st_mode)) {
        return open(target, O_WRONLY | O_CLOEXEC);
    }
    return open_temporary(target, temporary);
}

enum sc_status sc_file_open(const char *target, struct sc_file_writer *out, struct sc_error *err)
{
    struct sc_file_writer writer = {NULL, resolve(target), NULL, 0};
    if (writer.target == NULL) {
        return sc_fail_memory(err, strlen(target) + 1);
    }
    int descriptor = open_for_writing(writer.target, &writer.temporary);
    writer.stream = descriptor >= 0 ? fdopen(descriptor, "w") : NULL;
    if (writer.stream == NULL) {
        enum sc_status status = fail_write(target, errno, err);
        if (descriptor >= 0) {
            close(descriptor);
            sc_file_abandon(&writer);
        }
        free(writer.target);
        free(writer.temporary);
        return status;
    }
    *out = writer;
    return SC_OK;
}

static void release(struct sc_file_writer *writer)
{
    free(writer->target);
    free(writer->temporary);
    *writer = (struct sc_file_writer){NULL, NULL, NULL, 0};
}

void sc_file_put(struct sc_file_writer *writer, const void *data, size_t bytes)
{
    if (writer->error == 0 && fwrite(data, 1, bytes, writer->stream) < bytes) {
        writer->error = errno;
    }
}

/* errno of the first step that fails, else 0. The stream is closed either way. */
static int flush_and_close(struct sc_file_writer *writer)
{
    int error = writer->error;
    if (error != 0) {
        /* The first failure is the one to name. */
    } else if (fflush(writer->stream) != 0) {
        error = errno;
    } else if (ferror(writer->stream)) {
        error = EIO;
    } else if (writer->temporary != NULL && fsync(fileno(writer->stream)) != 0) {
        error = errno;
    }
    if (fclose(writer->stream) != 0 && error == 0) {
        error = errno;
    }
    writer->stream = NULL;
    return error;
}

enum sc_status sc_file_commit(struct sc_file_writer *writer, struct sc_error *err)
{
    int error = flush_and_close(writer);
    if (error == 0 && writer->temporary != NULL && rename(writer->temporary, writer->target) != 0) {
        error = errno;
    }
    if (error != 0) {
        fail_write(writer->target, error, err);
        sc_file_abandon(writer);
        return err->status;
    }
    release(writer);
    return SC_OK;
}

void sc_file_abandon(struct sc_file_writer *writer)
{
    if (writer->stream != NULL) {
        fclose(writer->stream);
    }
    if (writer->temporary != NULL) {
        unlink(writer->temporary);
    }
    release(writer);
}

enum sc_status sc_file_check(const char *target, struct sc_error *err)
{
    struct stat info;
    struct sc_file_writer writer;
    if (stat(target, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) {
        /* Opening a pipe and closing it would end its reader. */
        return access(target, W_OK) == 0 ? SC_OK : fail_write(target, errno, err);
    }
    SC_TRY(sc_file_open(target, &writer, err));
    sc_file_abandon(&writer);
    return SC_OK;
}

bool sc_file_exists(const char *file)
{
    return access(file, F_OK) == 0;
}

static enum sc_status make_one(const char *directory, struct sc_error *err)
{
    struct stat info;
    if (mkdir(directory, 0777) == 0) {
        return SC_OK;
    }
    int error = errno;
    if (stat(directory, &info) == 0) {
        error = ENOTDIR;
        if (S_ISDIR(info.st_mode)) {
            return SC_OK;
        }
    }
    return sc_fail(err, SC_MACHINE, "%s: the directory cannot be made: %s", directory,
                   strerror(error));
}

enum sc_status sc_make_directory(const char *directory, struct sc_error *err)
{
    char *path = strdup(directory);
    if (path == NULL) {
        return sc_fail_memory(err, strlen(directory) + 1);
    }
    enum sc_status status = SC_OK;
    for (char *slash = strchr(path + (path[0] == '/'), '/'); slash != NULL && status == SC_OK;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        status = make_one(path, err);
        *slash = '/';
    }
    if (status == SC_OK) {
        status = make_one(path, err);
    }
    free(path);
    return status;
}
