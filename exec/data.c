/* Token sources: windows of a file, read one sequence at a time, and synthetic tokens. */
#include "exec/data.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/rng.h"

enum {
    HEADER_INTS = 256,
    HEADER_BYTES = HEADER_INTS * 4,
    CHUNK_BYTES = 1 << 16,
    BYTE_VALUES = 256,
    TRAINING_TENTHS = 9
};

/* Stream numbers of the hash: where a window begins, what a synthetic token is. */
#define STREAM_WINDOW 0xDA7A0001u
#define STREAM_TOKEN 0xDA7A0002u

struct sc_data {
    enum sc_data_kind kind;
    int64_t vocab_size;
    uint64_t seed;
    int descriptor;       /* -1: synthetic */
    char *file;           /* as given; NULL: synthetic */
    int64_t first_byte;   /* of token 0 */
    int64_t token_bytes;  /* 1, 2 or 4 */
    int64_t tokens;       /* in the file */
    int64_t training_end; /* tokens [0, training_end) are for training */
};

/* A file that begins so holds tokens in llm.c's layout. */
struct layout {
    int32_t magic, version;
    enum sc_data_kind kind;
    int64_t token_bytes;
};

static const struct layout layouts[] = {
    {20240520, 1, SC_DATA_LLMC16, 2},
    {20240801, 7, SC_DATA_LLMC32, 4},
};

static uint32_t little32(const unsigned char *bytes)
{
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
           (uint32_t)bytes[3] << 24;
}

/* ---- reading bytes ----------------------------------------------------------------------- */

/* pread: no position that threads would share, and a file that shrinks is an error, not a signal.
 */
static enum sc_status read_at(const struct sc_data *data, int64_t offset, unsigned char *to,
                              size_t bytes, struct sc_error *err)
{
    size_t have = 0;
    while (have < bytes) {
        ssize_t got = pread(data->descriptor, to + have, bytes - have, offset + (int64_t)have);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return sc_fail(err, SC_MACHINE, "%s: cannot be read: %s", data->file, strerror(errno));
        }
        if (got == 0) {
            return sc_fail(err, SC_BAD_INPUT, "%s: ends at byte %lld, expected %zu more",
                           data->file, (long long)(offset + (int64_t)have), bytes - have);
        }
        have += (size_t)got;
    }
    return SC_OK;
}

static uint32_t token_at(const struct sc_data *data, const unsigned char *bytes, int64_t i)
{
    switch (data->token_bytes) {
    case 1:
        return bytes[i];
    case 2:
        return (uint32_t)bytes[2 * i] | (uint32_t)bytes[2 * i + 1] << 8;
    default:
        return little32(bytes + 4 * i);
    }
}

/* `count` tokens from token `first` on, handed to `each` a chunk at a time. */
typedef void token_fn(void *context, int64_t position, uint32_t token);

static enum sc_status each_token(const struct sc_data *data, int64_t first, int64_t count,
                                 token_fn *each, void *context, struct sc_error *err)
{
    unsigned char chunk[CHUNK_BYTES];
    int64_t room = CHUNK_BYTES / data->token_bytes;
    for (int64_t done = 0; done < count;) {
        int64_t n = count - done < room ? count - done : room;
        int64_t offset = data->first_byte + (first + done) * data->token_bytes;
        SC_TRY(read_at(data, offset, chunk, (size_t)(n * data->token_bytes), err));
        for (int64_t i = 0; i < n; i++) {
            uint32_t token = token_at(data, chunk, i);
            if ((int64_t)token >= data->vocab_size) {
                return sc_fail(
                    err, SC_BAD_INPUT,
                    "%s: token %lld: found %lu, expected less than the vocabulary's %lld",
                    data->file, (long long)(first + done + i), (unsigned long)token,
                    (long long)data->vocab_size);
            }
            each(context, done + i, token);
        }
        done += n;
    }
    return SC_OK;
}

/* ---- opening ----------------------------------------------------------------------------- */

/* The magic numbers decide; all else about the header is checked, not guessed. */
static enum sc_status read_header(struct sc_data *data, int64_t size, struct sc_error *err)
{
    unsigned char header[12];
    const struct layout *layout = NULL;
    data->kind = SC_DATA_BYTES;
    data->token_bytes = 1;
    data->tokens = size;
    if (size < (int64_t)sizeof(header)) {
        return SC_OK;
    }
    SC_TRY(read_at(data, 0, header, sizeof(header), err));
    for (size_t i = 0; i < sizeof(layouts) / sizeof(*layouts); i++) {
        if (little32(header) == (uint32_t)layouts[i].magic) {
            layout = &layouts[i];
        }
    }
    if (layout == NULL) {
        return SC_OK;
    }
    uint32_t version = little32(header + 4), tokens = little32(header + 8);
    if (version != (uint32_t)layout->version) {
        return sc_fail(err, SC_BAD_INPUT, "%s: header: found version %lu, expected %ld", data->file,
                       (unsigned long)version, (long)layout->version);
    }
    int64_t expected = HEADER_BYTES + (int64_t)tokens * layout->token_bytes;
    if (tokens > INT32_MAX || size < expected) {
        return sc_fail(err, SC_BAD_INPUT,
                       "%s: found %lld bytes, expected %lld for the %lu tokens of its header",
                       data->file, (long long)size, (long long)expected, (unsigned long)tokens);
    }
    data->kind = layout->kind;
    data->token_bytes = layout->token_bytes;
    data->tokens = (int64_t)tokens;
    data->first_byte = HEADER_BYTES;
    return SC_OK;
}

static enum sc_status open_file(struct sc_data *data, struct sc_error *err)
{
    struct stat info;
    data->descriptor = open(data->file, O_RDONLY | O_CLOEXEC);
    if (data->descriptor < 0 || fstat(data->descriptor, &info) != 0) {
        return sc_fail(err, SC_BAD_INPUT, "%s: cannot be read: %s", data->file, strerror(errno));
    }
    if (!S_ISREG(info.st_mode)) {
        return sc_fail_input(err, data->file, NULL, "no plain file", "a file of tokens");
    }
    SC_TRY(read_header(data, (int64_t)info.st_size, err));
    if (data->kind == SC_DATA_BYTES && data->vocab_size < BYTE_VALUES) {
        return sc_fail(err, SC_BAD_INPUT,
                       "%s: found bytes, expected tokens below %lld: a vocabulary of 256 or more, "
                       "or a token file",
                       data->file, (long long)data->vocab_size);
    }
    /* tokens / 10 first: nine times the tokens could overflow. */
    data->training_end =
        data->tokens / 10 * TRAINING_TENTHS + data->tokens % 10 * TRAINING_TENTHS / 10;
    return SC_OK;
}

static enum sc_status create(int64_t vocab_size, uint64_t seed, struct sc_data **out,
                             struct sc_error *err)
{
    *out = calloc(1, sizeof(**out));
    if (*out == NULL) {
        return sc_fail_memory(err, sizeof(**out));
    }
    **out = (struct sc_data){.kind = SC_DATA_SYNTHETIC,
                             .vocab_size = vocab_size,
                             .seed = seed,
                             .descriptor = -1,
                             .tokens = INT64_MAX,
                             .training_end = INT64_MAX};
    return SC_OK;
}

enum sc_status sc_data_synthetic(int64_t vocab_size, uint64_t seed, struct sc_data **out,
                                 struct sc_error *err)
{
    *out = NULL;
    if (vocab_size < 1 || vocab_size > INT32_MAX) {
        return sc_fail(err, SC_BAD_INPUT, "vocab_size: found %lld, expected 1 to 2147483647",
                       (long long)vocab_size);
    }
    return create(vocab_size, seed, out, err);
}

enum sc_status sc_data_open(const char *file, int64_t vocab_size, uint64_t seed,
                            struct sc_data **out, struct sc_error *err)
{
    SC_TRY(sc_data_synthetic(vocab_size, seed, out, err));
    (*out)->file = strdup(file);
    enum sc_status status =
        (*out)->file ? open_file(*out, err) : sc_fail_memory(err, strlen(file) + 1);
    if (status != SC_OK) {
        sc_data_close(out);
    }
    return status;
}

void sc_data_close(struct sc_data **data)
{
    if (*data != NULL) {
        if ((*data)->descriptor >= 0) {
            close((*data)->descriptor);
        }
        free((*data)->file);
        free(*data);
        *data = NULL;
    }
}

enum sc_data_kind sc_data_kind(const struct sc_data *data)
{
    return data->kind;
}

int64_t sc_data_tokens(const struct sc_data *data)
{
    return data->tokens;
}

int64_t sc_data_training_tokens(const struct sc_data *data)
{
    return data->training_end;
}

/* ---- sequences --------------------------------------------------------------------------- */

static void synthetic(const struct sc_data *data, int64_t step, int64_t sequence, int64_t length,
                      int32_t *tokens, int32_t *targets)
{
    /* Four tokens a draw: token i is word i % 4 of counter (sequence, i / 4). */
    for (int64_t i = 0; i <= length; i += 4) {
        uint32_t words[4];
        sc_philox(data->seed ^ ((uint64_t)(i / 4) << 32), (uint64_t)sequence, STREAM_TOKEN,
                  (uint32_t)step, words);
        for (int64_t j = 0; j < 4 && i + j <= length; j++) {
            int32_t token = (int32_t)(words[j] % (uint32_t)data->vocab_size);
            if (i + j < length) {
                tokens[i + j] = token;
            }
            if (i + j > 0) {
                targets[i + j - 1] = token;
            }
        }
    }
}

struct window {
    int64_t length;
    int32_t *tokens, *targets;
};

static void put(void *context, int64_t position, uint32_t token)
{
    struct window *window = context;
    if (position < window->length) {
        window->tokens[position] = (int32_t)token;
    }
    if (position > 0) {
        window->targets[position - 1] = (int32_t)token;
    }
}

static enum sc_status read_window(const struct sc_data *data, int64_t first, int64_t length,
                                  int32_t *tokens, int32_t *targets, struct sc_error *err)
{
    struct window window = {length, tokens, targets};
    return each_token(data, first, length + 1, put, &window, err);
}

enum sc_status sc_data_sequence(const struct sc_data *data, int64_t step, int64_t global_sequence,
                                int64_t length, int32_t *tokens, int32_t *targets,
                                struct sc_error *err)
{
    if (data->kind == SC_DATA_SYNTHETIC) {
        synthetic(data, step, global_sequence, length, tokens, targets);
        return SC_OK;
    }
    int64_t starts = data->training_end - length;
    if (length < 1 || starts < 1) {
        return sc_fail(err, SC_BAD_INPUT,
                       "%s: found %lld tokens to train on (nine tenths), expected at least %lld, "
                       "one more than a sequence",
                       data->file, (long long)data->training_end, (long long)length + 1);
    }
    uint32_t words[4];
    sc_philox(data->seed, (uint64_t)global_sequence, STREAM_WINDOW, (uint32_t)step, words);
    uint64_t draw = (uint64_t)words[1] << 32 | words[0];
    return read_window(data, (int64_t)(draw % (uint64_t)starts), length, tokens, targets, err);
}

enum sc_status sc_data_next(void *data, int64_t step, int64_t sequence, int64_t batch,
                            int64_t length, int32_t *tokens, int32_t *targets, struct sc_error *err)
{
    for (int64_t i = 0; i < batch; i++) {
        SC_TRY(sc_data_sequence(data, step, sequence + i, length, tokens + i * length,
                                targets + i * length, err));
    }
    return SC_OK;
}

/* ---- the held-out part ------------------------------------------------------------------- */

static int64_t held_out(const struct sc_data *data)
{
    return data->kind == SC_DATA_SYNTHETIC ? 0 : data->tokens - data->training_end;
}

int64_t sc_data_evaluation_windows(const struct sc_data *data, int64_t length)
{
    /* The last token of a window is the first of the next: it is only a target here. */
    return length < 1 || held_out(data) < 1 ? 0 : (held_out(data) - 1) / length;
}

enum sc_status sc_data_evaluation(const struct sc_data *data, int64_t window, int64_t length,
                                  int32_t *tokens, int32_t *targets, struct sc_error *err)
{
    int64_t windows = sc_data_evaluation_windows(data, length);
    if (window < 0 || window >= windows) {
        return sc_fail(err, SC_BAD_INPUT, "%s: evaluation window %lld, expected one of %lld",
                       data->file ? data->file : "synthetic tokens", (long long)window,
                       (long long)windows);
    }
    return read_window(data, data->training_end + window * length, length, tokens, targets, err);
}

static void count_token(void *context, int64_t position, uint32_t token)
{
    (void)position;
    ((uint64_t *)context)[token]++;
}

enum sc_status sc_data_unigram_entropy(const struct sc_data *data, double *out,
                                       struct sc_error *err)
{
    *out = log((double)data->vocab_size);
    if (data->kind == SC_DATA_SYNTHETIC) {
        return SC_OK;
    }
    int64_t total = held_out(data);
    uint64_t *counts = calloc((size_t)data->vocab_size, sizeof(*counts));
    if (counts == NULL) {
        return sc_fail_memory(err, (size_t)data->vocab_size * sizeof(*counts));
    }
    enum sc_status status = each_token(data, data->training_end, total, count_token, counts, err);
    double entropy = 0.0;
    for (int64_t i = 0; status == SC_OK && i < data->vocab_size; i++) {
        if (counts[i] > 0) {
            double p = (double)counts[i] / (double)total;
            entropy -= p * log(p);
        }
    }
    *out = entropy;
    free(counts);
    return status;
}
