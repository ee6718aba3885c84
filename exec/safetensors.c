/* Reading and writing safetensors files. */
#include "exec/safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/array.h"
#include "base/file.h"
#include "base/json.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "elements are copied as they lie");

enum {
    LENGTH_BYTES = 8,
    HEADER_LIMIT = 100 * 1000 * 1000, /* as in the format's own library */
    CHUNK_BYTES = 1 << 16,
    ALIGNMENT = 8,
    DIMENSIONS_MAX = 8
};

/* Above this a double does not hold every whole number. */
#define LARGEST_WHOLE ((int64_t)1 << 53)

struct entry {
    struct sc_stored_tensor info; /* first: a pointer to it is one to the entry */
    int64_t begin, end;           /* in the data */
    uint32_t element_bytes;
};

struct sc_safetensors {
    int descriptor;
    char *file;
    int64_t data_first, data_bytes;
    SC_ARRAY(struct entry) entries;
    struct sc_arena arena;
};

/* ---- number formats ---------------------------------------------------------------------- */

static float same(const unsigned char *bytes)
{
    float value;
    memcpy(&value, bytes, sizeof(value));
    return value;
}

static uint32_t bits16(const unsigned char *bytes)
{
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8;
}

static float from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static float from_bf16(const unsigned char *bytes)
{
    return from_bits(bits16(bytes) << 16);
}

/* IEEE 754 binary16: 1 sign, 5 exponent (bias 15), 10 fraction bits. */
static float from_f16(const unsigned char *bytes)
{
    uint32_t half = bits16(bytes), sign = (half & 0x8000u) << 16;
    uint32_t exponent = half >> 10 & 31u, fraction = half & 1023u;
    if (exponent == 0) {
        float value = ldexpf((float)fraction, -24);
        return sign ? -value : value;
    }
    if (exponent == 31) {
        return from_bits(sign | 0x7F800000u | fraction << 13);
    }
    return from_bits(sign | (exponent + 112) << 23 | fraction << 13);
}

static const struct format {
    const char *name;
    uint32_t bytes;
    float (*widen)(const unsigned char *bytes); /* NULL: listed, not read */
} formats[] = {
    {"F32", 4, same},     {"BF16", 2, from_bf16}, {"F16", 2, from_f16}, {"F64", 8, NULL},
    {"I64", 8, NULL},     {"U64", 8, NULL},       {"I32", 4, NULL},     {"U32", 4, NULL},
    {"I16", 2, NULL},     {"U16", 2, NULL},       {"I8", 1, NULL},      {"U8", 1, NULL},
    {"F8_E4M3", 1, NULL}, {"F8_E5M2", 1, NULL},   {"BOOL", 1, NULL},    {NULL, 0, NULL},
};

static const struct format *find_format(const char *name)
{
    const struct format *format = formats;
    while (format->name != NULL && strcmp(format->name, name) != 0) {
        format++;
    }
    return format->name != NULL ? format : NULL;
}

/* ---- names ------------------------------------------------------------------------------- */

static const char prefix[] = "transformer.";

static const char *without_prefix(const char *name)
{
    return strncmp(name, prefix, sizeof(prefix) - 1) == 0 ? name + sizeof(prefix) - 1 : name;
}

/* GPT-2's causal masks: [transformer.]h.N.attn.bias and .masked_bias. */
static bool is_mask(const char *name)
{
    const char *at = without_prefix(name);
    if (strncmp(at, "h.", 2) != 0) {
        return false;
    }
    at += 2;
    at += strspn(at, "0123456789");
    return strcmp(at, ".attn.bias") == 0 || strcmp(at, ".attn.masked_bias") == 0;
}

static int by_name(const void *a, const void *b)
{
    const struct entry *left = a, *right = b;
    return strcmp(left->info.name, right->info.name);
}

/* ---- the header -------------------------------------------------------------------------- */

static enum sc_status read_at(const struct sc_safetensors *tensors, int64_t offset,
                              unsigned char *to, size_t bytes, struct sc_error *err)
{
    size_t have = 0;
    while (have < bytes) {
        ssize_t got = pread(tensors->descriptor, to + have, bytes - have, offset + (int64_t)have);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return sc_fail(err, SC_MACHINE, "%s: cannot be read: %s", tensors->file,
                           strerror(errno));
        }
        if (got == 0) {
            return sc_fail(err, SC_BAD_INPUT, "%s: ends at byte %lld, expected %zu more",
                           tensors->file, (long long)(offset + (int64_t)have), bytes - have);
        }
        have += (size_t)got;
    }
    return SC_OK;
}

/* Shape and number of elements; [] counts as [1]. */
static enum sc_status parse_shape(const struct sc_json *at, struct entry *entry, uint64_t *elements,
                                  struct sc_error *err)
{
    struct sc_json shape, item;
    int count;
    int64_t sizes[DIMENSIONS_MAX] = {1, 1};
    SC_TRY(sc_json_array(at, "shape", &shape, &count, err));
    if (count > DIMENSIONS_MAX) {
        return sc_json_fail(&shape, err, "at most %d dimensions", DIMENSIONS_MAX);
    }
    *elements = 1;
    for (int i = 0; i < count; i++) {
        SC_TRY(sc_json_at(&shape, i, &item, err));
        SC_TRY(sc_json_int(&item, NULL, 0, LARGEST_WHOLE, &sizes[i], err));
        if (!sc_mul_u64(*elements, (uint64_t)sizes[i], elements)) {
            return sc_json_fail(&shape, err, "fewer elements than 2^64");
        }
    }
    entry->info.dimensions = count > 0 ? count : 1;
    entry->info.rows = sizes[0];
    entry->info.cols = count > 1 ? sizes[1] : 1;
    return SC_OK;
}

static enum sc_status parse_offsets(const struct sc_json *at, const struct sc_safetensors *tensors,
                                    uint64_t elements, struct entry *entry, struct sc_error *err)
{
    struct sc_json offsets, item;
    int count;
    uint64_t bytes;
    SC_TRY(sc_json_array(at, "data_offsets", &offsets, &count, err));
    if (count != 2) {
        return sc_json_fail(&offsets, err, "begin and end");
    }
    SC_TRY(sc_json_at(&offsets, 0, &item, err));
    SC_TRY(sc_json_int(&item, NULL, 0, tensors->data_bytes, &entry->begin, err));
    SC_TRY(sc_json_at(&offsets, 1, &item, err));
    SC_TRY(sc_json_int(&item, NULL, entry->begin, tensors->data_bytes, &entry->end, err));
    if (!sc_mul_u64(elements, entry->element_bytes, &bytes) ||
        bytes != (uint64_t)(entry->end - entry->begin)) {
        return sc_json_fail(&offsets, err, "%llu elements of %u bytes",
                            (unsigned long long)elements, entry->element_bytes);
    }
    return SC_OK;
}

static enum sc_status parse_entry(const struct sc_json *at, struct sc_safetensors *tensors,
                                  struct sc_error *err)
{
    static const char *const keys[] = {"dtype", "shape", "data_offsets", NULL};
    struct entry *entry = sc_array_push(&tensors->entries);
    uint64_t elements = 0;
    if (entry == NULL) {
        return sc_fail_memory(err, sizeof(*entry));
    }
    SC_TRY(sc_json_check_keys(at, keys, err));
    entry->info.name = sc_arena_strdup(&tensors->arena, at->key);
    if (entry->info.name == NULL) {
        return sc_fail_memory(err, strlen(at->key) + 1);
    }
    SC_TRY(sc_json_string(at, "dtype", &tensors->arena, &entry->info.dtype, err));
    const struct format *format = find_format(entry->info.dtype);
    if (format == NULL) {
        struct sc_json dtype = {cJSON_GetObjectItemCaseSensitive(at->item, "dtype"), at, "dtype", 0,
                                at->file};
        return sc_json_fail(&dtype, err, "a number format of safetensors (F32, BF16, F16, ...)");
    }
    entry->element_bytes = format->bytes;
    SC_TRY(parse_shape(at, entry, &elements, err));
    return parse_offsets(at, tensors, elements, entry, err);
}

static int by_begin(const void *a, const void *b)
{
    const struct entry *left = a, *right = b;
    if (left->begin != right->begin) {
        return left->begin < right->begin ? -1 : 1;
    }
    return left->end < right->end ? -1 : left->end > right->end;
}

/* The tensors cover the data, each byte once. Sorts by place. */
static enum sc_status check_cover(struct sc_safetensors *tensors, struct sc_error *err)
{
    int64_t at = 0;
    const char *last = "the header";
    if (tensors->entries.count > 1) {
        qsort(tensors->entries.items, tensors->entries.count, sizeof(struct entry), by_begin);
    }
    for (size_t i = 0; i < tensors->entries.count; i++) {
        const struct entry *entry = &tensors->entries.items[i];
        if (entry->begin != at) {
            return sc_fail(
                err, SC_BAD_INPUT, "%s: %s: found data at %lld, expected it at %lld, where %s ends",
                tensors->file, entry->info.name, (long long)entry->begin, (long long)at, last);
        }
        at = entry->end;
        last = entry->info.name;
    }
    if (at != tensors->data_bytes) {
        return sc_fail(err, SC_BAD_INPUT,
                       "%s: found %lld bytes of data, expected %lld from the header", tensors->file,
                       (long long)tensors->data_bytes, (long long)at);
    }
    return SC_OK;
}

static void drop_masks(struct sc_safetensors *tensors)
{
    size_t kept = 0;
    for (size_t i = 0; i < tensors->entries.count; i++) {
        if (!is_mask(tensors->entries.items[i].info.name)) {
            tensors->entries.items[kept++] = tensors->entries.items[i];
        }
    }
    tensors->entries.count = kept;
    if (kept > 1) {
        qsort(tensors->entries.items, kept, sizeof(struct entry), by_name);
    }
}

static enum sc_status parse_header(struct sc_safetensors *tensors, const char *text,
                                   struct sc_error *err)
{
    struct sc_json_doc doc;
    SC_TRY(sc_json_parse(text, tensors->file, &doc, err));
    struct sc_json root = sc_json_root(&doc);
    enum sc_status status = SC_OK;
    if (!cJSON_IsObject(root.item)) {
        status = sc_json_fail(&root, err, "an object of tensors");
    }
    for (const cJSON *item = root.item->child; status == SC_OK && item != NULL; item = item->next) {
        struct sc_json at = {item, &root, item->string, 0, root.file};
        if (strcmp(item->string, "__metadata__") != 0) {
            status = parse_entry(&at, tensors, err);
        }
    }
    sc_json_doc_free(&doc);
    return status;
}

/* The header's text, with a terminating zero. */
static enum sc_status read_header(struct sc_safetensors *tensors, int64_t file_bytes, char **text,
                                  struct sc_error *err)
{
    unsigned char length[LENGTH_BYTES];
    uint64_t bytes = 0;
    if (file_bytes < LENGTH_BYTES) {
        return sc_fail(err, SC_BAD_INPUT, "%s: found %lld bytes, expected a safetensors file",
                       tensors->file, (long long)file_bytes);
    }
    SC_TRY(read_at(tensors, 0, length, sizeof(length), err));
    memcpy(&bytes, length, sizeof(bytes));
    if (bytes > HEADER_LIMIT || bytes > (uint64_t)(file_bytes - LENGTH_BYTES)) {
        return sc_fail(err, SC_BAD_INPUT,
                       "%s: found a header of %llu bytes in a file of %lld, expected a safetensors "
                       "file",
                       tensors->file, (unsigned long long)bytes, (long long)file_bytes);
    }
    *text = malloc((size_t)bytes + 1);
    if (*text == NULL) {
        return sc_fail_memory(err, (size_t)bytes + 1);
    }
    tensors->data_first = LENGTH_BYTES + (int64_t)bytes;
    tensors->data_bytes = file_bytes - tensors->data_first;
    SC_TRY(read_at(tensors, LENGTH_BYTES, (unsigned char *)*text, (size_t)bytes, err));
    (*text)[bytes] = '\0';
    if (strlen(*text) != bytes) {
        return sc_fail_input(err, tensors->file, NULL, "a zero byte in the header", "JSON text");
    }
    return SC_OK;
}

static enum sc_status open_file(struct sc_safetensors *tensors, struct sc_error *err)
{
    struct stat info;
    char *text = NULL;
    tensors->descriptor = open(tensors->file, O_RDONLY | O_CLOEXEC);
    if (tensors->descriptor < 0 || fstat(tensors->descriptor, &info) != 0) {
        return sc_fail(err, SC_BAD_INPUT, "%s: cannot be read: %s", tensors->file, strerror(errno));
    }
    if (!S_ISREG(info.st_mode)) {
        return sc_fail_input(err, tensors->file, NULL, "no plain file", "a safetensors file");
    }
    enum sc_status status = read_header(tensors, (int64_t)info.st_size, &text, err);
    if (status == SC_OK) {
        status = parse_header(tensors, text, err);
    }
    free(text);
    SC_TRY(status);
    SC_TRY(check_cover(tensors, err));
    drop_masks(tensors);
    return SC_OK;
}

enum sc_status sc_safetensors_open(const char *file, struct sc_safetensors **out,
                                   struct sc_error *err)
{
    *out = NULL;
    struct sc_safetensors *tensors = calloc(1, sizeof(*tensors));
    if (tensors == NULL) {
        return sc_fail_memory(err, sizeof(*tensors));
    }
    tensors->descriptor = -1;
    tensors->file = strdup(file);
    enum sc_status status =
        tensors->file ? open_file(tensors, err) : sc_fail_memory(err, strlen(file) + 1);
    if (status != SC_OK) {
        sc_safetensors_close(&tensors);
    }
    *out = tensors;
    return status;
}

void sc_safetensors_close(struct sc_safetensors **tensors)
{
    if (*tensors != NULL) {
        if ((*tensors)->descriptor >= 0) {
            close((*tensors)->descriptor);
        }
        free((*tensors)->file);
        sc_array_free(&(*tensors)->entries);
        sc_arena_free(&(*tensors)->arena);
        free(*tensors);
        *tensors = NULL;
    }
}

/* ---- looking up -------------------------------------------------------------------------- */

int64_t sc_safetensors_count(const struct sc_safetensors *tensors)
{
    return (int64_t)tensors->entries.count;
}

const struct sc_stored_tensor *sc_safetensors_at(const struct sc_safetensors *tensors,
                                                 int64_t index)
{
    return &tensors->entries.items[index].info;
}

static const struct sc_stored_tensor *find_exactly(const struct sc_safetensors *tensors,
                                                   const char *name)
{
    struct entry key = {.info = {.name = name}};
    if (tensors->entries.count == 0) {
        return NULL;
    }
    const struct entry *found = bsearch(&key, tensors->entries.items, tensors->entries.count,
                                        sizeof(struct entry), by_name);
    return found ? &found->info : NULL;
}

const struct sc_stored_tensor *sc_safetensors_find(const struct sc_safetensors *tensors,
                                                   const char *name)
{
    char longer[256];
    const struct sc_stored_tensor *found = find_exactly(tensors, name);
    if (found == NULL) {
        found = find_exactly(tensors, without_prefix(name));
    }
    int length = snprintf(longer, sizeof(longer), "%s%s", prefix, name);
    if (found == NULL && length > 0 && (size_t)length < sizeof(longer)) {
        found = find_exactly(tensors, longer);
    }
    return found;
}

/* ---- elements ---------------------------------------------------------------------------- */

/* `count` elements of a row from element `first` of the tensor on, to[i * step]. */
static enum sc_status read_run(const struct sc_safetensors *tensors, const struct entry *entry,
                               const struct format *format, int64_t first, int64_t count, float *to,
                               int64_t step, struct sc_error *err)
{
    unsigned char chunk[CHUNK_BYTES];
    int64_t size = format->bytes, room = CHUNK_BYTES / size;
    int64_t offset = tensors->data_first + entry->begin + first * size;
    if (format->widen == same && step == 1) {
        return read_at(tensors, offset, (unsigned char *)to, (size_t)(count * size), err);
    }
    for (int64_t done = 0; done < count;) {
        int64_t n = count - done < room ? count - done : room;
        SC_TRY(read_at(tensors, offset + done * size, chunk, (size_t)(n * size), err));
        for (int64_t i = 0; i < n; i++) {
            to[(done + i) * step] = format->widen(chunk + i * size);
        }
        done += n;
    }
    return SC_OK;
}

static enum sc_status check_rectangle(const struct sc_safetensors *tensors,
                                      const struct sc_stored_tensor *stored,
                                      const struct sc_rectangle *r, const struct format *format,
                                      struct sc_error *err)
{
    if (format == NULL || format->widen == NULL) {
        return sc_fail_input(err, tensors->file, stored->name, stored->dtype, "F32, BF16 or F16");
    }
    if (stored->dimensions > 2) {
        return sc_fail(err, SC_BAD_INPUT, "%s: %s: found %d dimensions, expected one or two",
                       tensors->file, stored->name, stored->dimensions);
    }
    bool inside = r->row >= 0 && r->col >= 0 && r->rows >= 0 && r->cols >= 0 &&
                  r->rows <= stored->rows && r->row <= stored->rows - r->rows &&
                  r->cols <= stored->cols && r->col <= stored->cols - r->cols;
    if (!inside) {
        return sc_fail(err, SC_BAD_INPUT,
                       "%s: %s: found [%lld, %lld], expected %lld x %lld elements at [%lld, %lld]",
                       tensors->file, stored->name, (long long)stored->rows,
                       (long long)stored->cols, (long long)r->rows, (long long)r->cols,
                       (long long)r->row, (long long)r->col);
    }
    return SC_OK;
}

enum sc_status sc_safetensors_read(const struct sc_safetensors *tensors,
                                   const struct sc_stored_tensor *stored, struct sc_rectangle r,
                                   bool transpose, float *to, int64_t stride, struct sc_error *err)
{
    const struct entry *entry = (const struct entry *)stored;
    const struct format *format = find_format(stored->dtype);
    SC_TRY(check_rectangle(tensors, stored, &r, format, err));
    int64_t step = transpose ? stride : 1, row_step = transpose ? 1 : stride;
    bool one_run = r.cols == stored->cols && step == 1 && row_step == r.cols;
    if (one_run) {
        r.cols *= r.rows;
        r.rows = r.rows > 0;
    }
    for (int64_t i = 0; i < r.rows; i++) {
        SC_TRY(read_run(tensors, entry, format, (r.row + i) * stored->cols + r.col, r.cols,
                        to + i * row_step, step, err));
    }
    return SC_OK;
}

/* ---- writing ----------------------------------------------------------------------------- */

static int by_out_name(const void *a, const void *b)
{
    const struct sc_tensor_out *const *left = a, *const *right = b;
    return strcmp((*left)->name, (*right)->name);
}

static int64_t out_bytes(const struct sc_tensor_out *tensor)
{
    return tensor->rows * tensor->cols * (int64_t)sizeof(float);
}

static bool add_numbers(cJSON *entry, const char *key, const double *numbers, int count)
{
    cJSON *array = cJSON_CreateDoubleArray(numbers, count);
    if (array == NULL || !cJSON_AddItemToObject(entry, key, array)) {
        cJSON_Delete(array);
        return false;
    }
    return true;
}

static bool add_header_entry(cJSON *header, const struct sc_tensor_out *tensor, int64_t begin)
{
    double shape[2] = {(double)tensor->rows, (double)tensor->cols};
    double offsets[2] = {(double)begin, (double)(begin + out_bytes(tensor))};
    cJSON *entry = cJSON_AddObjectToObject(header, tensor->name);
    return entry != NULL && cJSON_AddStringToObject(entry, "dtype", "F32") != NULL &&
           add_numbers(entry, "shape", shape, tensor->vector ? 1 : 2) &&
           add_numbers(entry, "data_offsets", offsets, 2);
}

/* The header's text without padding, to free with cJSON_free; NULL when out of memory. */
static char *print_header(const struct sc_tensor_out **sorted, int64_t count)
{
    cJSON *header = cJSON_CreateObject();
    int64_t at = 0;
    bool ok = header != NULL;
    for (int64_t i = 0; ok && i < count; i++) {
        ok = add_header_entry(header, sorted[i], at);
        at += out_bytes(sorted[i]);
    }
    char *text = ok ? cJSON_PrintUnformatted(header) : NULL;
    cJSON_Delete(header);
    return text;
}

static enum sc_status write_all(const char *file, const char *header,
                                const struct sc_tensor_out **sorted, int64_t count,
                                struct sc_error *err)
{
    struct sc_file_writer writer;
    SC_TRY(sc_file_open(file, &writer, err));
    size_t text = strlen(header);
    uint64_t bytes = sc_round_up(text, ALIGNMENT);
    /* A failed write stays in the writer, and the commit names it. */
    sc_file_put(&writer, &bytes, sizeof(bytes));
    sc_file_put(&writer, header, text);
    for (size_t i = text; i < bytes; i++) {
        fputc(' ', writer.stream);
    }
    for (int64_t i = 0; i < count; i++) {
        sc_file_put(&writer, sorted[i]->data, (size_t)out_bytes(sorted[i]));
    }
    enum sc_status status = sc_file_commit(&writer, err);
    sc_file_abandon(&writer);
    return status;
}

static enum sc_status check_names(const char *file, const struct sc_tensor_out **sorted,
                                  int64_t count, struct sc_error *err)
{
    for (int64_t i = 1; i < count; i++) {
        if (strcmp(sorted[i - 1]->name, sorted[i]->name) == 0) {
            return sc_fail_input(err, file, sorted[i]->name, "the name twice", "it once");
        }
    }
    return SC_OK;
}

enum sc_status sc_safetensors_write(const char *file, const struct sc_tensor_out *tensors,
                                    int64_t count, struct sc_error *err)
{
    size_t items = (size_t)count + 1; /* one more: malloc(0) may be NULL */
    const struct sc_tensor_out **sorted = malloc(items * sizeof(*sorted));
    if (sorted == NULL) {
        return sc_fail_memory(err, items * sizeof(*sorted));
    }
    for (int64_t i = 0; i < count; i++) {
        sorted[i] = &tensors[i];
    }
    qsort(sorted, (size_t)count, sizeof(*sorted), by_out_name);
    char *header = print_header(sorted, count);
    enum sc_status status = header ? check_names(file, sorted, count, err) : sc_fail_memory(err, 0);
    if (status == SC_OK) {
        status = write_all(file, header, sorted, count, err);
    }
    cJSON_free(header);
    free(sorted);
    return status;
}
