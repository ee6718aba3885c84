/* Disk and memory bandwidths, and their part of a profile. */
#include "exec/calibrate_storage.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/units.h"
#include "exec/clock.h"
#include "exec/host/team.h"
#include "model/fit.h"

enum { PIECES_MAX = 16, ALIGNMENT = 4096, ROUNDS = 5 };

#define PIECE_BYTES ((size_t)16 << 20) /* 16 of them: 256 MiB */
#define TINY_BYTES ((size_t)1 << 20)
#define DISK_SECONDS 1.2 /* of writing, and of reading: then no further piece is begun */

/* A core's part of memory: two buffers, together beyond its part of any cache. */
#define CORE_BYTES ((size_t)64 << 20)
#define MEMORY_BYTES_MAX ((size_t)2 << 30)

/* What a disk has that nobody measured: a hard disk's rate. */
#define NEUTRAL_DISK 0.2e9
#define NEUTRAL_CAPACITY 1e10

static struct sc_storage_rate rate_of(double *rates, size_t count)
{
    struct sc_storage_rate out = {0, 0};
    if (count > 0) {
        out.rate = sc_fit_quantile(rates, count, 0.5);
        out.spread =
            (sc_fit_quantile(rates, count, 0.9) - sc_fit_quantile(rates, count, 0.1)) / out.rate;
    }
    return out;
}

/* ---- the disk ---------------------------------------------------------------------------- */

struct disk {
    const char *folder;
    int file;
    char *buffer;
    size_t piece, pieces; /* bytes of one; how many were written */
    double seconds[PIECES_MAX];
    struct sc_storage *out;
};

static void trouble(struct disk *disk, const char *what, int error)
{
    snprintf(disk->out->trouble, sizeof(disk->out->trouble), "%.150s: %s: %s", disk->folder, what,
             strerror(error));
}

/* The name is gone before the first byte is written. */
static bool open_file(struct disk *disk)
{
    char path[4096];
    int length = snprintf(path, sizeof(path), "%s/.stepcast-calibrate-XXXXXX", disk->folder);
    if (length < 0 || (size_t)length >= sizeof(path)) {
        trouble(disk, "no file can be made", ENAMETOOLONG);
        return false;
    }
    disk->file = mkostemp(path, O_CLOEXEC);
    if (disk->file < 0) {
        trouble(disk, "no file can be made", errno);
        return false;
    }
    unlink(path);
    int flags = fcntl(disk->file, F_GETFL);
    disk->out->direct = flags >= 0 && fcntl(disk->file, F_SETFL, flags | O_DIRECT) == 0;
    return true;
}

static void look_at_file_system(struct disk *disk)
{
    struct statfs kind;
    struct statvfs room;
    if (fstatfs(disk->file, &kind) == 0) {
        long type = (long)kind.f_type;
        disk->out->memory_backed = type == TMPFS_MAGIC || type == (long)RAMFS_MAGIC;
    }
    if (fstatvfs(disk->file, &room) == 0) {
        disk->out->capacity_bytes = (double)room.f_bavail * (double)room.f_frsize;
    }
    if (disk->out->memory_backed) {
        snprintf(disk->out->trouble, sizeof(disk->out->trouble),
                 "%.150s lies in memory (tmpfs): its bandwidths are not a disk's", disk->folder);
    }
}

/* A file system may take the flag and refuse the transfer: then through the page cache. */
static bool without_direct(struct disk *disk)
{
    int flags = fcntl(disk->file, F_GETFL);
    bool was = disk->out->direct && errno == EINVAL && flags >= 0;
    disk->out->direct = false;
    return was && fcntl(disk->file, F_SETFL, flags & ~O_DIRECT) == 0;
}

typedef ssize_t (*transfer)(struct disk *disk, char *at, size_t bytes, off_t offset);

static ssize_t write_part(struct disk *disk, char *at, size_t bytes, off_t offset)
{
    return pwrite(disk->file, at, bytes, offset);
}

static ssize_t read_part(struct disk *disk, char *at, size_t bytes, off_t offset)
{
    return pread(disk->file, at, bytes, offset);
}

/* One piece, however many calls it takes. 0, or errno. */
static int move_piece(struct disk *disk, transfer move, size_t piece)
{
    size_t done = 0;
    while (done < disk->piece) {
        off_t offset = (off_t)(piece * disk->piece + done);
        ssize_t got = move(disk, disk->buffer + done, disk->piece - done, offset);
        if (got > 0) {
            done += (size_t)got;
        } else if (got == 0) {
            return EIO;
        } else if (errno != EINTR && !without_direct(disk)) {
            return errno;
        }
    }
    return 0;
}

static bool write_pieces(struct disk *disk)
{
    double begin = sc_clock();
    for (size_t i = 0; i < PIECES_MAX && (i < 2 || sc_clock() - begin < DISK_SECONDS); i++) {
        double before = sc_clock();
        int error = move_piece(disk, write_part, i);
        if (error == 0 && fdatasync(disk->file) != 0) {
            error = errno;
        }
        if (error != 0) {
            trouble(disk, "cannot be written", error);
            return false;
        }
        disk->seconds[i] = sc_clock() - before;
        disk->pieces = i + 1;
    }
    return true;
}

static bool read_pieces(struct disk *disk, size_t *count)
{
    posix_fadvise(disk->file, 0, 0, POSIX_FADV_DONTNEED);
    double begin = sc_clock();
    for (*count = 0; *count < disk->pieces && (*count < 2 || sc_clock() - begin < DISK_SECONDS);) {
        double before = sc_clock();
        int error = move_piece(disk, read_part, *count);
        if (error != 0) {
            trouble(disk, "cannot be read", error);
            return false;
        }
        disk->seconds[(*count)++] = sc_clock() - before;
    }
    return true;
}

static struct sc_storage_rate disk_rate(struct disk *disk, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        disk->seconds[i] = (double)disk->piece / fmax(disk->seconds[i], 1e-9);
    }
    return rate_of(disk->seconds, count);
}

static void try_disk(struct disk *disk)
{
    size_t read = 0;
    if (!open_file(disk)) {
        return;
    }
    look_at_file_system(disk);
    if (write_pieces(disk)) {
        disk->out->write = disk_rate(disk, disk->pieces);
        disk->out->measured = read_pieces(disk, &read);
        disk->out->read = disk_rate(disk, read);
        disk->out->file_bytes = (double)disk->pieces * (double)disk->piece;
    }
    close(disk->file);
}

/* Bytes that no file system squeezes or leaves out. */
static void fill(char *buffer, size_t bytes)
{
    uint64_t state = 88172645463325252u, *words = (uint64_t *)(void *)buffer;
    for (size_t i = 0; i < bytes / sizeof(*words); i++) {
        state ^= state << 13; /* xorshift64, Marsaglia 2003 */
        state ^= state >> 7;
        state ^= state << 17;
        words[i] = state;
    }
}

static enum sc_status measure_disk(const struct sc_storage_options *options, struct sc_storage *out,
                                   struct sc_error *err)
{
    struct disk disk = {.folder = options->folder != NULL ? options->folder : ".",
                        .piece = options->tiny ? TINY_BYTES : PIECE_BYTES,
                        .out = out};
    void *buffer = NULL;
    if (posix_memalign(&buffer, ALIGNMENT, disk.piece) != 0) {
        return sc_fail_memory(err, disk.piece);
    }
    fill(buffer, disk.piece);
    disk.buffer = buffer;
    try_disk(&disk);
    free(buffer);
    return SC_OK;
}

/* ---- memory ------------------------------------------------------------------------------ */

/* Each member streams through two buffers of its own. */
struct streams {
    size_t members, bytes; /* of a buffer */
    char **buffers;        /* [2 * members] */
    uint64_t *sums;        /* [members]: so that reading has a purpose */
};

static uint64_t scan(const char *from, size_t bytes)
{
    const uint64_t *words = (const uint64_t *)(const void *)from;
    uint64_t sums[4] = {0}; /* no one chain of additions to wait for */
    for (size_t i = 0; i + 4 <= bytes / sizeof(*words); i += 4) {
        for (size_t k = 0; k < 4; k++) {
            sums[k] += words[i + k];
        }
    }
    return sums[0] + sums[1] + sums[2] + sums[3];
}

/* Pages are there, and near the member that uses them. */
static void touch_part(void *argument, int part, int parts)
{
    struct streams *s = argument;
    (void)parts;
    memset(s->buffers[2 * part], 1, s->bytes);
    memset(s->buffers[2 * part + 1], 2, s->bytes);
}

static void copy_part(void *argument, int part, int parts)
{
    struct streams *s = argument;
    (void)parts;
    memcpy(s->buffers[2 * part + 1], s->buffers[2 * part], s->bytes);
}

static void scan_part(void *argument, int part, int parts)
{
    struct streams *s = argument;
    (void)parts;
    s->sums[part] += scan(s->buffers[2 * part], s->bytes);
}

static struct sc_storage_rate stream_rate(struct sc_team *team, sc_team_fn *fn, struct streams *s,
                                          double touched)
{
    double rates[ROUNDS], bytes = touched * (double)s->bytes * (double)sc_team_size(team);
    sc_team_run(team, fn, s); /* warms up */
    for (size_t round = 0; round < ROUNDS; round++) {
        double begin = sc_clock();
        sc_team_run(team, fn, s);
        rates[round] = bytes / fmax(sc_clock() - begin, 1e-9);
    }
    return rate_of(rates, ROUNDS);
}

static void measure_streams(struct sc_team *team, struct streams *s, struct sc_storage *out)
{
    sc_team_run(team, touch_part, s);
    out->copy = stream_rate(team, copy_part, s, 2);
    out->scan = stream_rate(team, scan_part, s, 1);
    out->copy_one = stream_rate(NULL, copy_part, s, 2);
    out->scan_one = stream_rate(NULL, scan_part, s, 1);
}

static enum sc_status open_streams(struct streams *s, struct sc_error *err)
{
    s->buffers = calloc(2 * s->members, sizeof(*s->buffers));
    s->sums = calloc(s->members, sizeof(*s->sums));
    for (size_t i = 0; s->buffers != NULL && i < 2 * s->members; i++) {
        s->buffers[i] = aligned_alloc(ALIGNMENT, s->bytes);
        if (s->buffers[i] == NULL) {
            return sc_fail_memory(err, s->bytes);
        }
    }
    return s->buffers != NULL && s->sums != NULL ? SC_OK : sc_fail_memory(err, s->members * 16);
}

static void close_streams(struct streams *s)
{
    for (size_t i = 0; s->buffers != NULL && i < 2 * s->members; i++) {
        free(s->buffers[i]);
    }
    free(s->buffers);
    free(s->sums);
}

static enum sc_status measure_memory(const struct sc_storage_options *options,
                                     struct sc_storage *out, struct sc_error *err)
{
    size_t members = (size_t)(options->cores > 1 ? options->cores : 1);
    size_t room = MEMORY_BYTES_MAX / (2 * members) / ALIGNMENT * ALIGNMENT;
    size_t bytes = options->tiny ? TINY_BYTES : CORE_BYTES;
    struct streams s = {.members = members, .bytes = bytes < room ? bytes : room};
    struct sc_team *team = NULL;
    enum sc_status status = open_streams(&s, err);
    if (status == SC_OK) {
        status = sc_team_create((int)members, NULL, &team, err);
    }
    if (status == SC_OK) {
        measure_streams(team, &s, out);
    }
    sc_team_destroy(&team);
    close_streams(&s);
    return status;
}

enum sc_status sc_storage_measure(const struct sc_storage_options *options, struct sc_storage *out,
                                  struct sc_error *err)
{
    struct sc_storage made;
    memset(&made, 0, sizeof(made));
    SC_TRY(measure_disk(options, &made, err));
    SC_TRY(measure_memory(options, &made, err));
    *out = made;
    return SC_OK;
}

/* ---- the profile ------------------------------------------------------------------------- */

/* Four digits: more than a measurement has. */
static bool put_number(cJSON *object, const char *key, double value)
{
    char text[32];
    snprintf(text, sizeof(text), "%.4g", value);
    cJSON *number = cJSON_CreateNumber(strtod(text, NULL));
    if (object == NULL || number == NULL) {
        cJSON_Delete(number);
        return false;
    }
    if (cJSON_HasObjectItem(object, key)) {
        return cJSON_ReplaceItemInObjectCaseSensitive(object, key, number);
    }
    return cJSON_AddItemToObject(object, key, number);
}

static bool put_source(cJSON *object, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static bool put_source(cJSON *object, const char *format, ...)
{
    char line[640];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    cJSON_DeleteItemFromObjectCaseSensitive(object, "source");
    return cJSON_AddStringToObject(object, "source", line) != NULL;
}

static bool put_disk_source(const struct sc_storage *s, cJSON *disk)
{
    if (!s->measured) {
        return put_source(disk, "assumption, not measured (%s): a hard disk's bandwidth",
                          s->trouble);
    }
    return put_source(
        disk,
        "measured: a file of %.0f MiB written and read in order, %s; pieces spread by "
        "%.0f %% and %.0f %%; capacity: what was free%s",
        s->file_bytes / SC_MIB,
        s->direct ? "around the page cache" : "through the page cache, forced out piece by piece",
        100 * s->write.spread, 100 * s->read.spread,
        s->memory_backed ? "; the file lay in memory (tmpfs), on no disk" : "");
}

static bool put_disk(const struct sc_storage *s, cJSON *places)
{
    cJSON_DeleteItemFromObjectCaseSensitive(places, "disk");
    cJSON *disk = cJSON_AddObjectToObject(places, "disk");
    double capacity = s->capacity_bytes >= 1 ? s->capacity_bytes : NEUTRAL_CAPACITY;
    double read = s->measured ? s->read.rate : NEUTRAL_DISK;
    double write = s->measured ? s->write.rate : NEUTRAL_DISK;
    return disk != NULL && cJSON_AddNumberToObject(disk, "capacity_bytes", floor(capacity)) &&
           cJSON_AddStringToObject(disk, "per", "node") &&
           put_number(disk, "read_bandwidth_gb_per_s", read / SC_GIGA) &&
           put_number(disk, "write_bandwidth_gb_per_s", write / SC_GIGA) &&
           put_disk_source(s, disk);
}

static bool put_host(const struct sc_storage *s, cJSON *places)
{
    cJSON *host = cJSON_GetObjectItemCaseSensitive(places, "host");
    return put_number(host, "bandwidth_gb_per_s", s->copy.rate / SC_GIGA) &&
           put_source(host,
                      "measured: copies by all cores at once, bytes read and written (spread "
                      "%.0f %%); one core alone copies %.1f GB/s; reading only: %.1f GB/s all, "
                      "%.1f GB/s one; capacity: a part of the machine's memory",
                      100 * s->copy.spread, s->copy_one.rate / SC_GIGA, s->scan.rate / SC_GIGA,
                      s->scan_one.rate / SC_GIGA);
}

bool sc_storage_write(const struct sc_storage *storage, cJSON *profile)
{
    cJSON *places = cJSON_GetObjectItemCaseSensitive(profile, "places");
    return places != NULL && put_host(storage, places) && put_disk(storage, places);
}
