/* Rows of a calibration as JSON, and back. */
#include "reports/calibration_report.h"

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "reports/run_report.h"

#define NOISY_SPREAD 0.1
#define TEXT_SIZE 512
#define LARGEST 1e300

#define RESULT_SCHEMA "stepcast.result/1"
#define PROFILE_SCHEMA "stepcast.hw/1"

/* ---- warnings ---------------------------------------------------------------------------- */

static bool warn_others(const struct sc_calibration *calibration, char *out, size_t size)
{
    return sc_contention_warning(&calibration->contention, out, size);
}

static bool warn_spread(const struct sc_calibration *calibration, char *out, size_t size)
{
    snprintf(out, size, "times spread by %.0f %%: this machine was not quiet",
             calibration->spread * 100);
    return calibration->spread > NOISY_SPREAD;
}

static bool warn_storage(const struct sc_calibration *calibration, char *out, size_t size)
{
    snprintf(out, size, "%s%s", calibration->storage.trouble,
             calibration->storage.measured ? "" : ": the profile's disk is an assumption");
    return calibration->storage.trouble[0] != '\0';
}

typedef bool (*warning)(const struct sc_calibration *calibration, char *out, size_t size);
static const warning warnings[] = {warn_others, warn_spread, warn_storage};
enum { WARNING_COUNT = sizeof(warnings) / sizeof(warnings[0]) };

void sc_calibration_print_warnings(const struct sc_calibration *calibration, FILE *stream)
{
    char text[TEXT_SIZE];
    for (size_t i = 0; i < WARNING_COUNT; i++) {
        if (warnings[i](calibration, text, sizeof(text))) {
            fprintf(stream, "Warning: %s.\n", text);
        }
    }
}

/* ---- writing ----------------------------------------------------------------------------- */

static void add_row(cJSON *rows, const struct sc_calibration_row *row)
{
    cJSON *item = cJSON_CreateObject();
    cJSON_AddStringToObject(item, "kind", row->kind);
    cJSON_AddStringToObject(item, "shape", row->shape);
    cJSON_AddNumberToObject(item, "ranks", (double)row->ranks);
    cJSON_AddNumberToObject(item, "cores", (double)row->cores);
    cJSON_AddNumberToObject(item, "flops", row->flops);
    cJSON_AddNumberToObject(item, "bytes", row->bytes);
    cJSON_AddNumberToObject(item, "elements", row->elements);
    cJSON_AddNumberToObject(item, "measured_s", row->measured_s);
    cJSON_AddNumberToObject(item, "fitted_s", row->fitted_s);
    cJSON_AddNumberToObject(item, "spread", row->spread);
    cJSON_AddItemToArray(rows, item);
}

static void add_rate(cJSON *object, const char *key, const struct sc_storage_rate *rate)
{
    cJSON *item = cJSON_AddObjectToObject(object, key);
    cJSON_AddNumberToObject(item, "bytes_per_s", rate->rate);
    cJSON_AddNumberToObject(item, "spread", rate->spread);
}

static void add_storage(cJSON *root, const struct sc_storage *storage)
{
    cJSON *object = cJSON_AddObjectToObject(root, "storage");
    cJSON_AddBoolToObject(object, "disk_measured", storage->measured);
    cJSON_AddBoolToObject(object, "memory_backed", storage->memory_backed);
    if (storage->measured) {
        add_rate(object, "disk_write", &storage->write);
        add_rate(object, "disk_read", &storage->read);
    }
    add_rate(object, "copy", &storage->copy);
    add_rate(object, "copy_one_core", &storage->copy_one);
    add_rate(object, "read", &storage->scan);
    add_rate(object, "read_one_core", &storage->scan_one);
}

cJSON *sc_calibration_to_json(const char *file, const struct sc_calibration *calibration)
{
    cJSON *root = cJSON_CreateObject();
    char text[TEXT_SIZE];
    cJSON_AddStringToObject(root, "schema", RESULT_SCHEMA);
    cJSON_AddStringToObject(root, "command", "calibrate");
    cJSON_AddStringToObject(root, "file", file);
    cJSON_AddNumberToObject(root, "median_abs_error", calibration->median_error);
    cJSON_AddNumberToObject(root, "max_abs_error", calibration->worst_error);
    cJSON_AddNumberToObject(root, "spread", calibration->spread);
    cJSON_AddNumberToObject(root, "seconds", calibration->seconds);
    sc_contention_add_json(root, &calibration->contention);
    add_storage(root, &calibration->storage);
    cJSON *said = cJSON_AddArrayToObject(root, "warnings");
    for (size_t i = 0; i < WARNING_COUNT; i++) {
        if (warnings[i](calibration, text, sizeof(text))) {
            cJSON_AddItemToArray(said, cJSON_CreateString(text));
        }
    }
    cJSON *rows = cJSON_AddArrayToObject(root, "rows");
    for (size_t i = 0; i < calibration->rows.count; i++) {
        add_row(rows, &calibration->rows.items[i]);
    }
    return root;
}

enum sc_status sc_calibration_rows_file(const char *profile, char *out, size_t size,
                                        struct sc_error *err)
{
    static const char ending[] = ".json";
    size_t length = strlen(profile), cut = sizeof(ending) - 1;
    if (length > cut && strcmp(profile + length - cut, ending) == 0) {
        length -= cut;
    }
    int written = snprintf(out, size, "%.*s.rows.json", (int)length, profile);
    return written >= 0 && (size_t)written < size
               ? SC_OK
               : sc_fail(err, SC_USAGE, "%s: the name is too long", profile);
}

/* ---- reading ----------------------------------------------------------------------------- */

static enum sc_status read_name(const struct sc_json *at, const char *key, struct sc_arena *arena,
                                char out[SC_HW_NAME_SIZE], struct sc_error *err)
{
    const char *text = NULL;
    SC_TRY(sc_json_string(at, key, arena, &text, err));
    snprintf(out, SC_HW_NAME_SIZE, "%s", text);
    return SC_OK;
}

static enum sc_status read_row(const struct sc_json *at, struct sc_arena *arena,
                               struct sc_calibration_row *out, struct sc_error *err)
{
    SC_TRY(read_name(at, "kind", arena, out->kind, err));
    SC_TRY(read_name(at, "shape", arena, out->shape, err));
    SC_TRY(sc_json_int(at, "ranks", 1, 1 << 20, &out->ranks, err));
    SC_TRY(sc_json_int(at, "cores", 0, 1 << 20, &out->cores, err));
    SC_TRY(sc_json_number(at, "flops", 0, LARGEST, &out->flops, err));
    SC_TRY(sc_json_number(at, "bytes", 0, LARGEST, &out->bytes, err));
    SC_TRY(sc_json_opt_number(at, "elements", 0, LARGEST, &out->elements, err));
    SC_TRY(sc_json_number(at, "measured_s", 0, LARGEST, &out->measured_s, err));
    SC_TRY(sc_json_number(at, "fitted_s", 0, LARGEST, &out->fitted_s, err));
    return sc_json_opt_number(at, "spread", 0, LARGEST, &out->spread, err);
}

static enum sc_status read_rows(const struct sc_json *root, struct sc_calibration_rows *out,
                                struct sc_error *err)
{
    struct sc_json array;
    struct sc_arena arena = {0};
    int count = 0;
    enum sc_status status = sc_json_schema(root, RESULT_SCHEMA, err);
    if (status == SC_OK) {
        status = sc_json_array(root, "rows", &array, &count, err);
    }
    if (status == SC_OK && count == 0) {
        status = sc_json_fail(&array, err, "at least one operation");
    }
    struct sc_json at = {.parent = &array, .file = root->file};
    at.item = status == SC_OK ? array.item->child : NULL;
    for (; status == SC_OK && at.item != NULL; at.item = at.item->next, at.index++) {
        struct sc_calibration_row *row = sc_array_push(&out->rows);
        status = row != NULL ? read_row(&at, &arena, row, err) : sc_fail_memory(err, sizeof(*row));
    }
    sc_arena_free(&arena);
    return status;
}

static bool is_profile(const struct sc_json *root)
{
    const cJSON *schema = cJSON_GetObjectItemCaseSensitive(root->item, "schema");
    return cJSON_IsString(schema) && strcmp(schema->valuestring, PROFILE_SCHEMA) == 0;
}

enum sc_status sc_calibration_rows_read(const char *file, struct sc_calibration_rows *out,
                                        struct sc_error *err)
{
    struct sc_json_doc doc;
    char beside[4096];
    memset(out, 0, sizeof(*out));
    SC_TRY(sc_json_read(file, &doc, err));
    struct sc_json root = sc_json_root(&doc);
    enum sc_status status = SC_OK;
    if (is_profile(&root)) {
        sc_json_doc_free(&doc);
        SC_TRY(sc_calibration_rows_file(file, beside, sizeof(beside), err));
        SC_TRY(sc_json_read(beside, &doc, err));
        root = sc_json_root(&doc);
    }
    status = read_rows(&root, out, err);
    sc_json_doc_free(&doc);
    return status;
}

void sc_calibration_rows_free(struct sc_calibration_rows *rows)
{
    sc_array_free(&rows->rows);
}
