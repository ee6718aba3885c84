/* Writing JSON: two blanks a level, an array of plain values on one line. */
#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"

static void write_string(const char *text, FILE *out)
{
    static const char *const short_escapes[0x20] = {
        ['\b'] = "\\b", ['\t'] = "\\t", ['\n'] = "\\n", ['\f'] = "\\f", ['\r'] = "\\r"};
    fputc('"', out);
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        if (c < 0x20 && short_escapes[c] != NULL) {
            fputs(short_escapes[c], out);
        } else if (c < 0x20 || c == 0x7F) {
            fprintf(out, "\\u%04x", c);
        } else {
            fprintf(out, c == '"' || c == '\\' ? "\\%c" : "%c", c);
        }
    }
    fputc('"', out);
}

/* The shortest digits that read back as the same number. JSON has no infinity: null. */
static void write_number(double value, FILE *out)
{
    char text[40];
    if (!isfinite(value)) {
        fputs("null", out);
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, value);
        if (strtod(text, NULL) == value) {
            break;
        }
    }
    if (value == floor(value) && fabs(value) < 1e15) {
        snprintf(text, sizeof(text), "%.0f", value);
    }
    fputs(text, out);
}

static void write_plain(const cJSON *item, FILE *out)
{
    if (cJSON_IsString(item)) {
        write_string(item->valuestring, out);
    } else if (cJSON_IsNumber(item)) {
        write_number(item->valuedouble, out);
    } else if (cJSON_IsRaw(item)) {
        fputs(item->valuestring, out);
    } else if (cJSON_IsBool(item)) {
        fputs(cJSON_IsTrue(item) ? "true" : "false", out);
    } else {
        fputs("null", out);
    }
}

static bool is_container(const cJSON *item)
{
    return cJSON_IsArray(item) || cJSON_IsObject(item);
}

static bool on_one_line(const cJSON *item)
{
    if (item->child == NULL) {
        return true;
    }
    if (!cJSON_IsArray(item)) {
        return false;
    }
    for (const cJSON *child = item->child; child != NULL; child = child->next) {
        if (is_container(child)) {
            return false;
        }
    }
    return true;
}

static void write_item(const cJSON *item, int level, FILE *out)
{
    if (!is_container(item)) {
        write_plain(item, out);
        return;
    }
    bool array = cJSON_IsArray(item), flat = on_one_line(item);
    fputc(array ? '[' : '{', out);
    for (const cJSON *child = item->child; child != NULL; child = child->next) {
        if (!flat) {
            fprintf(out, "\n%*s", 2 * (level + 1), "");
        }
        if (!array) {
            write_string(child->string, out);
            fputs(": ", out);
        }
        write_item(child, level + 1, out);
        fputs(child->next == NULL ? "" : flat ? ", " : ",", out);
    }
    if (!flat) {
        fprintf(out, "\n%*s", 2 * level, "");
    }
    fputc(array ? ']' : '}', out);
}

void sc_json_print(const cJSON *root, FILE *stream)
{
    write_item(root, 0, stream);
    fputc('\n', stream);
}

enum sc_status sc_json_write(const cJSON *root, const char *file, struct sc_error *err)
{
    struct sc_file_writer writer;
    SC_TRY(sc_file_open(file, &writer, err));
    sc_json_print(root, writer.stream);
    return sc_file_commit(&writer, err);
}
