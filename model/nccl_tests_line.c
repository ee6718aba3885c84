/* Lines of an nccl-tests log: what a launcher put before them is taken off, columns are found. */
#include "model/nccl_tests_line.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"

/* ---- labels ---- */

static const char *skip_digits(const char *at)
{
    while (isdigit((unsigned char)*at)) {
        at++;
    }
    return at;
}

/* Behind a label "[0]", "[1,0]", "[1,0]<stdout>:" that begins at `at`, or NULL. Labels may stand
 * within a line: a launcher writes one for each piece that the program flushed. */
static const char *behind_label(const char *at)
{
    static const char *const streams[] = {"<stdout>", "<stderr>"};
    const char *end = skip_digits(at + 1);
    if (end == at + 1) {
        return NULL;
    }
    while (*end == ',' && isdigit((unsigned char)end[1])) {
        end = skip_digits(end + 1);
    }
    if (*end != ']') {
        return NULL;
    }
    end++;
    for (int i = 0; i < 2; i++) {
        if (strncmp(end, streams[i], strlen(streams[i])) == 0) {
            end += strlen(streams[i]);
            return *end == ':' ? end + 1 : end;
        }
    }
    return end;
}

/* Taking "[...]" out keeps columns in place: the program did not know of it. */
static void remove_labels(char *text)
{
    char *to = text;
    for (const char *from = text; *from != '\0';) {
        const char *behind = *from == '[' ? behind_label(from) : NULL;
        if (behind != NULL) {
            from = behind;
        } else {
            *to++ = *from++;
        }
    }
    *to = '\0';
}

/* "node0: " or "3: " before a number or a '#', and the '>' of a quotation: a blank each. */
static void blank_prefix(char *text)
{
    char *at = text + strspn(text, " >|");
    memset(text, ' ', (size_t)(at - text));
    size_t name = strcspn(at, " :");
    if (name == 0 || at[name] != ':') {
        return;
    }
    const char *next = at + name + 1 + strspn(at + name + 1, " ");
    if (*next == '#' || isdigit((unsigned char)*next)) {
        memset(at, ' ', name + 1);
    }
}

/* ---- words ---- */

static void find_words(struct sc_nccl_tests_line *line)
{
    const char *text = line->text;
    memcpy(line->words, text, sizeof(line->words));
    line->word_count = 0;
    for (int at = 0; text[at] != '\0' && line->word_count < SC_NT_WORDS_MAX;) {
        at += (int)strspn(text + at, " ");
        int length = (int)strcspn(text + at, " ");
        if (length > 0) {
            line->begin[line->word_count] = at;
            line->end[line->word_count++] = at + length;
            line->words[at + length] = '\0';
        }
        at += length;
    }
}

void sc_nccl_tests_split(const char *text, size_t size, int64_t number,
                         struct sc_nccl_tests_line *out)
{
    size_t length = size < SC_NT_LINE_SIZE - 1 ? size : SC_NT_LINE_SIZE - 1;
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        out->text[i] = iscntrl(c) ? ' ' : text[i];
    }
    out->text[length] = '\0';
    out->number = number;
    remove_labels(out->text);
    blank_prefix(out->text);
    char *mark = out->text + strspn(out->text, " ");
    while (*mark == '#') {
        *mark++ = ' ';
    }
    find_words(out);
}

const char *sc_nccl_tests_word(const struct sc_nccl_tests_line *line, int index)
{
    return index < line->word_count ? line->words + line->begin[index] : "";
}

static int find_word(const struct sc_nccl_tests_line *line, int from, const char *word)
{
    while (from < line->word_count && strcmp(sc_nccl_tests_word(line, from), word) != 0) {
        from++;
    }
    return from;
}

/* ---- header ---- */

static int find_time(const struct sc_nccl_tests_line *line, int from)
{
    int plain = find_word(line, from, "time"), cpu = find_word(line, from, "cputime");
    return plain < cpu ? plain : cpu;
}

static void find_check(const struct sc_nccl_tests_line *line, int block,
                       struct sc_nccl_tests_columns *out)
{
    out->check = -1;
    for (int i = block; i < block + out->block_columns && i < line->word_count; i++) {
        const char *word = sc_nccl_tests_word(line, i);
        out->check_is_error = strcmp(word, "error") == 0;
        if (out->check_is_error || strcmp(word, "#wrong") == 0) {
            out->check = i - block;
            return;
        }
    }
}

/* Blocks begin with the time. Where there are two, the second is as long as the first; of one, it
 * is not known what still belongs to it: the figures that are used. */
static bool find_blocks(const struct sc_nccl_tests_line *line, struct sc_nccl_tests_columns *out)
{
    int first = find_time(line, 0), second = find_time(line, first + 1);
    out->cpu_time = strcmp(sc_nccl_tests_word(line, first), "cputime") == 0;
    out->block_count = second < line->word_count ? 2 : 1;
    out->block_columns = out->block_count == 2 ? second - first : 4;
    if (first + out->block_count * out->block_columns > line->word_count) {
        return false;
    }
    for (int i = 0; i < out->block_count; i++) {
        out->ends[i] = line->end[first + (i + 1) * out->block_columns - 1];
    }
    find_check(line, first, out);
    int behind = first + out->block_count * out->block_columns;
    out->after = line->word_count - behind;
    /* A time stamp is a date and a time of day. */
    out->after += find_word(line, behind, "timestamp") < line->word_count;
    return strcmp(sc_nccl_tests_word(line, first + 1), "algbw") == 0 &&
           strcmp(sc_nccl_tests_word(line, first + 2), "busbw") == 0;
}

bool sc_nccl_tests_header(const struct sc_nccl_tests_line *line, bool in_place_first,
                          struct sc_nccl_tests_columns *out)
{
    if (strcmp(sc_nccl_tests_word(line, 0), "size") != 0 ||
        strcmp(sc_nccl_tests_word(line, 1), "count") != 0) {
        return false;
    }
    memset(out, 0, sizeof(*out));
    out->in_place_first = in_place_first;
    out->type = find_word(line, 2, "type") < line->word_count;
    out->redop = find_word(line, 2, "redop") < line->word_count;
    out->root = find_word(line, 2, "root") < line->word_count;
    return find_blocks(line, out);
}

/* ---- rows ---- */

static bool whole(const char *word, int64_t *out)
{
    char *end = NULL;
    errno = 0;
    long long value = strtoll(word, &end, 10);
    bool good = isdigit((unsigned char)word[0]) && *end == '\0' && errno == 0;
    *out = good ? (int64_t)value : 0;
    return good;
}

/* A number as printed, and half a unit of its last digit. */
static bool figure(const char *word, double *out, double *half_digit)
{
    char *end = NULL;
    double value = strtod(word, &end);
    if (end == word || *end != '\0' || !isfinite(value) || value < 0.0) {
        return false;
    }
    const char *point = strchr(word, '.');
    const char *power = strpbrk(word, "eE");
    const char *last = power != NULL ? power : end;
    double unit = power != NULL ? pow(10.0, (double)strtol(power + 1, NULL, 10)) : 1.0;
    *out = value;
    *half_digit = 0.5 * unit * (point != NULL ? pow(10.0, (double)(point + 1 - last)) : 1.0);
    return true;
}

/* Largest error that nccl-tests let pass, by type, while it printed errors. */
static double error_limit(const char *type)
{
    static const struct {
        const char *type;
        double limit;
    } limits[] = {{"double", 1e-12}, {"float", 1e-5}, {"half", 1e-2}, {"bfloat16", 1e-1}};
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        if (strcmp(type, limits[i].type) == 0) {
            return limits[i].limit;
        }
    }
    return strstr(type, "int") != NULL || strcmp(type, "char") == 0 ? 0.0 : 1e-1;
}

static bool read_check(const char *word, const struct sc_nccl_tests_columns *columns,
                       const char *type, enum sc_nccl_tests_check *out)
{
    double value = 0.0, half = 0.0;
    *out = SC_NT_UNCHECKED;
    if (strcmp(word, "N/A") == 0) {
        return true;
    }
    if (!figure(word, &value, &half)) {
        return false;
    }
    double limit = columns->check_is_error ? error_limit(type) : 0.0;
    *out = value > limit ? SC_NT_WRONG : SC_NT_RIGHT;
    return true;
}

/* Size over time is what stands under algbw (half of it and more before 2020, see the header of the
 * interface): else words were taken for columns that they are not in. */
static bool agrees(const struct sc_nccl_tests_time *time, int64_t bytes)
{
    double algbw = (double)bytes / time->seconds / SC_GIGA;
    double slack = 0.06 * algbw + 0.011;
    return time->printed_algbw <= algbw + slack && time->printed_algbw >= 0.5 * algbw - slack;
}

/* One block that begins with word `at`. A time "N/A" is no time: present stays false. */
static bool read_block(const struct sc_nccl_tests_line *line,
                       const struct sc_nccl_tests_columns *columns, int at,
                       const struct sc_nccl_tests_row *row, struct sc_nccl_tests_time *out)
{
    double us = 0.0, half_us = 0.0, ignored = 0.0;
    if (strcmp(sc_nccl_tests_word(line, at), "N/A") == 0) {
        return true;
    }
    if (!figure(sc_nccl_tests_word(line, at), &us, &half_us) || !(us > 0.0) ||
        !figure(sc_nccl_tests_word(line, at + 1), &out->printed_algbw, &ignored) ||
        !figure(sc_nccl_tests_word(line, at + 2), &out->printed_busbw, &out->busbw_half_digit)) {
        return false;
    }
    out->seconds = us / SC_US_PER_S;
    out->seconds_half_digit = half_us / SC_US_PER_S;
    out->present = true;
    out->check = SC_NT_UNCHECKED;
    bool checked = columns->check < 0 || read_check(sc_nccl_tests_word(line, at + columns->check),
                                                    columns, row->type, &out->check);
    return checked && agrees(out, row->bytes);
}

static enum sc_nccl_tests_place place_of(const struct sc_nccl_tests_columns *columns, int block)
{
    return (block == 0) == columns->in_place_first ? SC_NT_IN_PLACE : SC_NT_OUT_OF_PLACE;
}

/* A row of one block where the header has two: which one is blank is seen from where it stands. */
static int block_by_offset(const struct sc_nccl_tests_columns *columns, int end)
{
    return abs(end - columns->ends[1]) < abs(end - columns->ends[0]) ? 1 : 0;
}

static bool read_blocks(const struct sc_nccl_tests_line *line,
                        const struct sc_nccl_tests_columns *columns, int at, int blocks,
                        struct sc_nccl_tests_row *out)
{
    for (int i = 0; i < blocks; i++, at += columns->block_columns) {
        int block = i;
        if (blocks < columns->block_count) {
            block = block_by_offset(columns, line->end[at + columns->block_columns - 1]);
        }
        struct sc_nccl_tests_time *time = &out->times[place_of(columns, block)];
        if (!read_block(line, columns, at, out, time)) {
            return false;
        }
    }
    return out->times[0].present || out->times[1].present;
}

/* The words behind size, count, type and redop: a root or none, all blocks or fewer, what stands
 * behind them or not; `left` of them. Sets where the blocks begin and how many there are. */
static bool arrange(const struct sc_nccl_tests_columns *columns, int left, int *root, int *blocks)
{
    for (*blocks = columns->block_count; *blocks > 0; (*blocks)--) {
        for (int after = columns->after;; after = 0) {
            int beside = left - *blocks * columns->block_columns - after;
            *root = beside;
            if (beside == 0 || (beside == 1 && columns->root)) {
                return true;
            }
            if (after == 0) {
                break;
            }
        }
    }
    return false;
}

static void take_word(const struct sc_nccl_tests_line *line, bool column, int *at, char *out)
{
    static const char parts[] = "abcdefghijklmnopqrstuvwxyz0123456789_";
    const char *word = sc_nccl_tests_word(line, *at);
    size_t length = strspn(word, parts);
    if (column && islower((unsigned char)word[0]) && word[length] == '\0' && length < SC_NT_WORD) {
        memcpy(out, word, length + 1);
        (*at)++;
    }
}

enum sc_nccl_tests_row_kind sc_nccl_tests_row(const struct sc_nccl_tests_line *line,
                                              const struct sc_nccl_tests_columns *columns,
                                              struct sc_nccl_tests_row *out)
{
    memset(out, 0, sizeof(*out));
    out->line = line->number;
    if (!whole(sc_nccl_tests_word(line, 0), &out->bytes) ||
        (line->word_count > 1 && !whole(sc_nccl_tests_word(line, 1), &out->count))) {
        return SC_NT_NO_ROW;
    }
    int at = 2, root = 0, blocks = 0;
    take_word(line, columns->type, &at, out->type);
    take_word(line, columns->redop, &at, out->operation);
    if (!arrange(columns, line->word_count - at, &root, &blocks)) {
        return SC_NT_CUT_ROW;
    }
    return read_blocks(line, columns, at + root, blocks, out) ? SC_NT_ROW : SC_NT_CUT_ROW;
}
