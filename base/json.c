/* Reading JSON: parsing with line and column, cursors that know their path, checked getters. */
#include "base/json.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

#define PATH_BYTES 256
#define FOUND_BYTES 160
#define EXPECTED_BYTES 512
#define SHOWN_STRING 60
/* Above this a double does not hold every whole number. */
#define LARGEST_WHOLE ((int64_t)1 << 53)

/* ---- parsing ---- */

#define SHOWN_TEXT 20

/* How many bytes the UTF-8 character at p has, 0 where there is none: a lead byte, what follows it,
 * and of the second byte the ranges that leave out overlong forms, surrogates and what is past
 * U+10FFFF (RFC 3629, section 4). */
static size_t utf8_length(const unsigned char *p)
{
    static const struct {
        unsigned char first, last, low, high, length;
    } rows[] = {
        {0x00, 0x7F, 0x00, 0x00, 1}, {0xC2, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3},
        {0xE1, 0xEC, 0x80, 0xBF, 3}, {0xED, 0xED, 0x80, 0x9F, 3}, {0xEE, 0xEF, 0x80, 0xBF, 3},
        {0xF0, 0xF0, 0x90, 0xBF, 4}, {0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4}};
    size_t row = 0, count = sizeof(rows) / sizeof(rows[0]), length = 1;
    while (row < count && (p[0] < rows[row].first || p[0] > rows[row].last)) {
        row++;
    }
    if (row == count || (rows[row].length > 1 && (p[1] < rows[row].low || p[1] > rows[row].high))) {
        return 0;
    }
    for (length = rows[row].length > 1 ? 2 : 1; length < rows[row].length; length++) {
        if ((p[length] & 0xC0) != 0x80) {
            return 0;
        }
    }
    return length;
}

const char *sc_json_not_utf8(const char *text)
{
    const unsigned char *p = (const unsigned char *)text;
    while (*p != '\0') {
        size_t length = utf8_length(p);
        if (length == 0) {
            return (const char *)p;
        }
        p += length;
    }
    return NULL;
}

/* A complaint about a place in the text: line and column count from 1, a column is a byte. */
static enum sc_status fail_at(const char *name, const char *text, const char *place,
                              struct sc_error *err)
{
    int line = 1, column = 1;
    for (const char *p = text; p < place; p++) {
        column = *p == '\n' ? 1 : column + 1;
        line += *p == '\n';
    }
    const char *colon = name[0] != '\0' ? ": " : "";
    size_t rest = strcspn(place, "\r\n");
    if (*place == '\0') {
        return sc_fail(err, SC_BAD_INPUT,
                       "%s%sline %d, column %d: found the end, expected more JSON", name, colon,
                       line, column);
    }
    if (sc_json_not_utf8(place) == place) {
        return sc_fail(err, SC_BAD_INPUT,
                       "%s%sline %d, column %d: found bytes that are not UTF-8, expected JSON text",
                       name, colon, line, column);
    }
    return sc_fail(err, SC_BAD_INPUT, "%s%sline %d, column %d: not valid JSON at \"%.*s\"", name,
                   colon, line, column, (int)(rest < SHOWN_TEXT ? rest : SHOWN_TEXT), place);
}

static int compare_keys(const void *a, const void *b)
{
    const char *const *left = a, *const *right = b;
    return strcmp(*left, *right);
}

/* The first key that stands twice in one object, or NULL; *no_memory tells that it is unknown. */
static const char *repeated_key(const cJSON *object, bool *no_memory)
{
    size_t count = 0;
    for (const cJSON *item = object->child; item != NULL; item = item->next) {
        count++;
    }
    const char **keys = count > 1 ? malloc(count * sizeof(*keys)) : NULL;
    if (keys == NULL) {
        *no_memory = count > 1;
        return NULL;
    }
    size_t used = 0;
    for (const cJSON *item = object->child; item != NULL; item = item->next) {
        keys[used++] = item->string;
    }
    qsort(keys, count, sizeof(*keys), compare_keys);
    const char *found = NULL;
    for (size_t i = 1; i < count && found == NULL; i++) {
        found = strcmp(keys[i - 1], keys[i]) == 0 ? keys[i] : NULL;
    }
    free(keys);
    return found;
}

/* Of two equal keys a reader would see only the first: refused. Depth is bounded by the parser. */
static enum sc_status check_repeated(const struct sc_json *at, struct sc_error *err)
{
    bool no_memory = false;
    const char *key = cJSON_IsObject(at->item) ? repeated_key(at->item, &no_memory) : NULL;
    if (no_memory) {
        return sc_fail_memory(err, (size_t)cJSON_GetArraySize(at->item) * sizeof(char *));
    }
    if (key != NULL) {
        struct sc_json again = {at->item, at, key, 0, at->file};
        char path[PATH_BYTES];
        sc_json_path(&again, path, sizeof(path));
        return sc_fail_input(err, at->file, path, "the key twice", "it once");
    }
    int index = 0;
    for (const cJSON *child = at->item->child; child != NULL; child = child->next) {
        struct sc_json below = {child, at, child->string, index++, at->file};
        if (child->child != NULL) {
            SC_TRY(check_repeated(&below, err));
        }
    }
    return SC_OK;
}

static enum sc_status parse(const char *text, size_t size, const char *name,
                            struct sc_json_doc *out, struct sc_error *err)
{
    const char *place = text;
    if (strlen(text) != size) {
        return sc_fail_input(err, name, NULL, "a zero byte", "JSON text");
    }
    const char *wrong = sc_json_not_utf8(text);
    if (wrong != NULL) {
        return fail_at(name, text, wrong, err);
    }
    struct sc_json_doc doc = {NULL, strdup(name)};
    if (doc.file == NULL) {
        return sc_fail_memory(err, strlen(name) + 1);
    }
    doc.root = cJSON_ParseWithOpts(text, &place, 1);
    if (doc.root == NULL) {
        free(doc.file);
        return fail_at(name, text, place ? place : text, err);
    }
    struct sc_json root = sc_json_root(&doc);
    enum sc_status status = check_repeated(&root, err);
    if (status != SC_OK) {
        sc_json_doc_free(&doc);
        return status;
    }
    *out = doc;
    return SC_OK;
}

enum sc_status sc_json_read(const char *file, struct sc_json_doc *out, struct sc_error *err)
{
    char *text = NULL;
    size_t size = 0;
    SC_TRY(sc_file_read(file, &text, &size, err));
    enum sc_status status = parse(text, size, file, out, err);
    free(text);
    return status;
}

enum sc_status sc_json_parse(const char *text, const char *name, struct sc_json_doc *out,
                             struct sc_error *err)
{
    return parse(text, strlen(text), name != NULL ? name : "", out, err);
}

void sc_json_doc_free(struct sc_json_doc *doc)
{
    cJSON_Delete(doc->root);
    free(doc->file);
    *doc = (struct sc_json_doc){NULL, NULL};
}

struct sc_json sc_json_root(const struct sc_json_doc *doc)
{
    return (struct sc_json){doc->root, NULL, NULL, 0, doc->file};
}

/* ---- paths and complaints ---- */

/* Appends at *used, never past size. */
static void append(char *out, size_t size, size_t *used, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
static void append(char *out, size_t size, size_t *used, const char *format, ...)
{
    if (*used >= size) {
        return;
    }
    va_list args;
    va_start(args, format);
    int length = vsnprintf(out + *used, size - *used, format, args);
    va_end(args);
    *used += length > 0 ? (size_t)length : 0;
    *used = *used < size ? *used : size;
}

static void write_path(const struct sc_json *at, char *out, size_t size, size_t *used)
{
    if (at->parent == NULL) {
        return;
    }
    write_path(at->parent, out, size, used);
    if (at->key != NULL) {
        append(out, size, used, "%s%s", *used > 0 ? "." : "", at->key);
    } else {
        append(out, size, used, "[%d]", at->index);
    }
}

void sc_json_path(const struct sc_json *at, char *out, size_t size)
{
    size_t used = 0;
    if (size > 0) {
        out[0] = '\0';
    }
    write_path(at, out, size, &used);
}

static void describe_number(double value, char *out, size_t size)
{
    bool whole = value == floor(value) && fabs(value) <= (double)LARGEST_WHOLE;
    snprintf(out, size, whole ? "the number %.0f" : "the number %.9g", value);
}

static void describe_string(const char *text, char *out, size_t size)
{
    size_t length = strlen(text), shown = length;
    if (length > SHOWN_STRING) {
        shown = SHOWN_STRING;
        while (shown > 0 && ((unsigned char)text[shown] & 0xC0) == 0x80) {
            shown--;
        }
    }
    snprintf(out, size, "the string \"%.*s%s\"", (int)shown, text, shown < length ? "..." : "");
}

static void describe(const cJSON *item, char *out, size_t size)
{
    if (item == NULL) {
        snprintf(out, size, "nothing");
    } else if (cJSON_IsString(item)) {
        describe_string(item->valuestring, out, size);
    } else if (cJSON_IsNumber(item)) {
        describe_number(item->valuedouble, out, size);
    } else if (cJSON_IsBool(item)) {
        snprintf(out, size, cJSON_IsTrue(item) ? "true" : "false");
    } else if (cJSON_IsNull(item)) {
        snprintf(out, size, "null");
    } else {
        int count = cJSON_GetArraySize(item);
        bool array = cJSON_IsArray(item);
        snprintf(out, size, "%s with %d %s%s", array ? "an array" : "an object", count,
                 array ? "item" : "key", count == 1 ? "" : "s");
    }
}

enum sc_status sc_json_fail(const struct sc_json *at, struct sc_error *err, const char *format, ...)
{
    char path[PATH_BYTES], found[FOUND_BYTES], expected[EXPECTED_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(expected, sizeof(expected), format, args);
    va_end(args);
    sc_json_path(at, path, sizeof(path));
    describe(at->item, found, sizeof(found));
    return sc_fail_input(err, at->file, path, found, expected);
}

/* ---- getters ---- */

/* The cursor on a key of `at` (item NULL when absent); on `at` itself when key is NULL. */
static struct sc_json below(const struct sc_json *at, const char *key)
{
    if (key == NULL) {
        return *at;
    }
    const cJSON *item =
        cJSON_IsObject(at->item) ? cJSON_GetObjectItemCaseSensitive(at->item, key) : NULL;
    return (struct sc_json){item, at, item ? item->string : key, 0, at->file};
}

bool sc_json_has(const struct sc_json *at, const char *key)
{
    return below(at, key).item != NULL;
}

/* Writes "a", "b" or "c" */
static void list_names(const char *const *names, char *out, size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; names[i] != NULL; i++) {
        const char *comma = i == 0 ? "" : names[i + 1] == NULL ? " or " : ", ";
        append(out, size, &used, "%s\"%s\"", comma, names[i]);
    }
}

static int find_name(const char *const *names, const char *word)
{
    for (int i = 0; names[i] != NULL; i++) {
        if (strcmp(names[i], word) == 0) {
            return i;
        }
    }
    return -1;
}

static enum sc_status fail_key(const struct sc_json *at, const char *const *allowed,
                               struct sc_error *err)
{
    char path[PATH_BYTES], expected[EXPECTED_BYTES];
    const char *nearest = sc_nearest(at->key, allowed);
    sc_json_path(at, path, sizeof(path));
    if (nearest != NULL) {
        snprintf(expected, sizeof(expected), "a known key: did you mean \"%s\"?", nearest);
    } else {
        list_names(allowed, expected, sizeof(expected));
    }
    return sc_fail_input(err, at->file, path, "an unknown key", expected);
}

enum sc_status sc_json_check_keys(const struct sc_json *at, const char *const *allowed,
                                  struct sc_error *err)
{
    if (!cJSON_IsObject(at->item)) {
        return sc_json_fail(at, err, "an object");
    }
    for (const cJSON *item = at->item->child; item != NULL; item = item->next) {
        if (find_name(allowed, item->string) < 0) {
            struct sc_json wrong = {item, at, item->string, 0, at->file};
            return fail_key(&wrong, allowed, err);
        }
    }
    return SC_OK;
}

enum sc_status sc_json_object(const struct sc_json *at, const char *key, struct sc_json *out,
                              struct sc_error *err)
{
    struct sc_json value = below(at, key);
    if (!cJSON_IsObject(value.item)) {
        return sc_json_fail(&value, err, "an object");
    }
    *out = value;
    return SC_OK;
}

enum sc_status sc_json_array(const struct sc_json *at, const char *key, struct sc_json *out,
                             int *count, struct sc_error *err)
{
    struct sc_json value = below(at, key);
    if (!cJSON_IsArray(value.item)) {
        return sc_json_fail(&value, err, "an array");
    }
    *out = value;
    *count = cJSON_GetArraySize(value.item);
    return SC_OK;
}

enum sc_status sc_json_at(const struct sc_json *array, int index, struct sc_json *out,
                          struct sc_error *err)
{
    if (!cJSON_IsArray(array->item)) {
        return sc_json_fail(array, err, "an array");
    }
    struct sc_json value = {cJSON_GetArrayItem(array->item, index), array, NULL, index,
                            array->file};
    if (value.item == NULL) {
        return sc_json_fail(&value, err, "an item at this place");
    }
    *out = value;
    return SC_OK;
}

static enum sc_status fail_whole(const struct sc_json *at, int64_t min, int64_t max,
                                 struct sc_error *err)
{
    if (min <= -LARGEST_WHOLE && max >= LARGEST_WHOLE) {
        return sc_json_fail(at, err, "a whole number");
    }
    if (max >= LARGEST_WHOLE) {
        return sc_json_fail(at, err, "a whole number of at least %lld", (long long)min);
    }
    if (min <= -LARGEST_WHOLE) {
        return sc_json_fail(at, err, "a whole number of at most %lld", (long long)max);
    }
    return sc_json_fail(at, err, "a whole number from %lld to %lld", (long long)min,
                        (long long)max);
}

static enum sc_status get_int(const struct sc_json *at, int64_t min, int64_t max, int64_t *out,
                              struct sc_error *err)
{
    double value = cJSON_IsNumber(at->item) ? at->item->valuedouble : NAN;
    bool whole = value == floor(value) && fabs(value) <= (double)LARGEST_WHOLE;
    if (!whole || (int64_t)value < min || (int64_t)value > max) {
        return fail_whole(at, min, max, err);
    }
    *out = (int64_t)value;
    return SC_OK;
}

enum sc_status sc_json_int(const struct sc_json *at, const char *key, int64_t min, int64_t max,
                           int64_t *out, struct sc_error *err)
{
    struct sc_json value = below(at, key);
    return get_int(&value, min, max, out, err);
}

enum sc_status sc_json_opt_int(const struct sc_json *at, const char *key, int64_t min, int64_t max,
                               int64_t *out, struct sc_error *err)
{
    struct sc_json value = below(at, key);
    return value.item != NULL ? get_int(&value, min, max, out, err) : SC_OK;
}

#define UNBOUNDED 1e300

static enum sc_status fail_number(const struct sc_json *at, double min, double max,
                                  struct sc_error *err)
{
    if (min <= -UNBOUNDED && max >= UNBOUNDED) {
        return sc_json_fail(at, err, "a number");
    }
    if (max >= UNBOUNDED) {
        return sc_json_fail(at, err, "a number of at least %g", min);
    }
    if (min <= -UNBOUNDED) {
        return sc_json_fail(at, err, "a number of at most %g", max);
    }
    return sc_json_fail(at, err, "a number from %g to %g", min, max);
}

static enum sc_status get_number(const struct sc_json *at, double min, double max, double *out,
                                 struct sc_error *err)
{
    double value = cJSON_IsNumber(at->item) ? at->item->valuedouble : NAN;
    if (!isfinite(value) || value < min || value > max) {
        return fail_number(at, min, max, err);
    }
    *out = value;
    return SC_OK;
}

enum sc_status sc_json_number(const struct sc_json *at, const char *key, double min, double max,
                              double *out, struct sc_error *err)
{
    struct sc_json value = below(at, key);
    return get_number(&value, min, max, out, err);
}

enum sc_status sc_json_opt_number(const struct sc_json *at, const char *key, double min, double max,
                                  double *out, struct sc_error *err)
{
    struct sc_json value = below(at, key);
    return value.item != NULL ? get_number(&value, min, max, out, err) : SC_OK;
}

static enum sc_status get_bool(const struct sc_json *at, bool *out, struct sc_error *err)
{
    if (!cJSON_IsBool(at->item)) {
        return sc_json_fail(at, err, "true or false");
    }
    *out = cJSON_IsTrue(at->item) != 0;
    return SC_OK;
}

enum sc_status sc_json_bool(const struct sc_json *at, const char *key, bool *out,
                            struct sc_error *err)
{
    struct sc_json value = below(at, key);
    return get_bool(&value, out, err);
}

enum sc_status sc_json_opt_bool(const struct sc_json *at, const char *key, bool *out,
                                struct sc_error *err)
{
    struct sc_json value = below(at, key);
    return value.item != NULL ? get_bool(&value, out, err) : SC_OK;
}

static enum sc_status get_string(const struct sc_json *at, struct sc_arena *arena, const char **out,
                                 struct sc_error *err)
{
    if (!cJSON_IsString(at->item)) {
        return sc_json_fail(at, err, "a string");
    }
    const char *copy = sc_arena_strdup(arena, at->item->valuestring);
    if (copy == NULL) {
        return sc_fail_memory(err, strlen(at->item->valuestring) + 1);
    }
    *out = copy;
    return SC_OK;
}

enum sc_status sc_json_string(const struct sc_json *at, const char *key, struct sc_arena *arena,
                              const char **out, struct sc_error *err)
{
    struct sc_json value = below(at, key);
    return get_string(&value, arena, out, err);
}

enum sc_status sc_json_opt_string(const struct sc_json *at, const char *key, struct sc_arena *arena,
                                  const char **out, struct sc_error *err)
{
    struct sc_json value = below(at, key);
    return value.item != NULL ? get_string(&value, arena, out, err) : SC_OK;
}

static enum sc_status get_enum(const struct sc_json *at, const char *const *names, int *out,
                               struct sc_error *err)
{
    int found = cJSON_IsString(at->item) ? find_name(names, at->item->valuestring) : -1;
    if (found < 0) {
        char list[EXPECTED_BYTES];
        const char *word = cJSON_IsString(at->item) ? at->item->valuestring : NULL;
        const char *nearest = word != NULL ? sc_nearest(word, names) : NULL;
        list_names(names, list, sizeof(list));
        return sc_json_fail(at, err, "%s%s%s%s", list, nearest ? " (did you mean \"" : "",
                            nearest ? nearest : "", nearest ? "\"?)" : "");
    }
    *out = found;
    return SC_OK;
}

enum sc_status sc_json_enum(const struct sc_json *at, const char *key, const char *const *names,
                            int *out, struct sc_error *err)
{
    struct sc_json value = below(at, key);
    return get_enum(&value, names, out, err);
}

enum sc_status sc_json_opt_enum(const struct sc_json *at, const char *key, const char *const *names,
                                int *out, struct sc_error *err)
{
    struct sc_json value = below(at, key);
    return value.item != NULL ? get_enum(&value, names, out, err) : SC_OK;
}

enum sc_status sc_json_schema(const struct sc_json *root, const char *schema, struct sc_error *err)
{
    struct sc_json value = below(root, "schema");
    if (!cJSON_IsObject(root->item)) {
        return sc_json_fail(root, err, "an object with \"schema\": \"%s\"", schema);
    }
    if (!cJSON_IsString(value.item) || strcmp(value.item->valuestring, schema) != 0) {
        return sc_json_fail(&value, err, "\"%s\"", schema);
    }
    return SC_OK;
}

/* ---- nearest name ---- */

#define LONGEST_NAME 63

/* Levenshtein distance with one row of memory; a word that is too long is far from everything. */
static size_t edit_distance(const char *a, const char *b)
{
    size_t row[LONGEST_NAME + 1], na = strlen(a), nb = strlen(b);
    if (na > LONGEST_NAME || nb > LONGEST_NAME) {
        return LONGEST_NAME;
    }
    for (size_t j = 0; j <= nb; j++) {
        row[j] = j;
    }
    for (size_t i = 1; i <= na; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            size_t replace = diagonal + (a[i - 1] != b[j - 1]);
            size_t insert = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            diagonal = row[j];
            row[j] = replace < insert ? replace : insert;
        }
    }
    return row[nb];
}

const char *sc_nearest(const char *word, const char *const *names)
{
    const char *best = NULL;
    size_t least = strlen(word) / 3 + 2; /* one edit for short words, more for long ones */
    for (size_t i = 0; names[i] != NULL; i++) {
        size_t distance = edit_distance(word, names[i]);
        if (distance < least) {
            least = distance;
            best = names[i];
        }
    }
    return best;
}
