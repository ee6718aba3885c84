/*
 * Where a run's tokens come from: the bytes of any file, a token file in llm.c's layout, or numbers
 * drawn from the seed. What a sequence holds depends on (seed, step, number of the sequence in the
 * global batch) alone, so every layout of ranks trains on the same tokens. The last tenth of a file
 * is held out: training never samples it, evaluation reads nothing else.
 *
 * Layout of llm.c (github.com/karpathy/llm.c, dev/data/data_common.py): 256 little-endian int32
 * (magic, version, number of tokens, zeros), then the tokens. Magic 20240520 with version 1: uint16
 * (GPT-2's vocabulary); magic 20240801 with version 7: uint32 (Llama 3's). A file that begins with
 * neither magic is taken as bytes, one token each.
 *
 * After sc_data_open everything is read-only: any number of threads may read at once.
 */
#ifndef STEPCAST_EXEC_DATA_H
#define STEPCAST_EXEC_DATA_H

#include <stdint.h>

#include "base/status.h"

enum sc_data_kind { SC_DATA_SYNTHETIC, SC_DATA_BYTES, SC_DATA_LLMC16, SC_DATA_LLMC32 };

struct sc_data;

/* Opens a file of tokens; SC_BAD_INPUT with one line when it cannot be read, is shorter than its
 * header says, or holds bytes and vocab_size is below 256. The caller closes *out. */
enum sc_status sc_data_open(const char *file, int64_t vocab_size, uint64_t seed,
                            struct sc_data **out, struct sc_error *err);
/* Token i of sequence s in a step is word i % 4 of philox(seed ^ (i / 4) 2^32, s, 0xDA7A0002, step)
 * modulo the vocabulary. */
enum sc_status sc_data_synthetic(int64_t vocab_size, uint64_t seed, struct sc_data **out,
                                 struct sc_error *err);
/* Accepts NULL; sets *data NULL. */
void sc_data_close(struct sc_data **data);

enum sc_data_kind sc_data_kind(const struct sc_data *data);
/* Tokens of the file, and those of them that training samples (the first nine tenths); INT64_MAX
 * for synthetic tokens. */
int64_t sc_data_tokens(const struct sc_data *data);
int64_t sc_data_training_tokens(const struct sc_data *data);

/* Tokens [length] and targets [length] (each the token after) of one sequence of the global batch
 * of `step`. A window of a file begins at (philox(seed, sequence, 0xDA7A0001, step)[0..1] as 64
 * bits) mod (training tokens - length). SC_BAD_INPUT when the training part has no length + 1
 * tokens or a token is not in the vocabulary. */
enum sc_status sc_data_sequence(const struct sc_data *data, int64_t step, int64_t global_sequence,
                                int64_t length, int32_t *tokens, int32_t *targets,
                                struct sc_error *err);
/* The same for `batch` sequences from `sequence` on, one behind the other; `data` is a struct
 * sc_data. Fits sc_batch_source.next (exec/options.h). */
enum sc_status sc_data_next(void *data, int64_t step, int64_t sequence, int64_t batch,
                            int64_t length, int32_t *tokens, int32_t *targets,
                            struct sc_error *err);

/* How many windows of `length` tokens, side by side, the held-out part has (the last one's last
 * target included); 0 when it is too short and for synthetic tokens. */
int64_t sc_data_evaluation_windows(const struct sc_data *data, int64_t length);
/* Window `window` of them. */
enum sc_status sc_data_evaluation(const struct sc_data *data, int64_t window, int64_t length,
                                  int32_t *tokens, int32_t *targets, struct sc_error *err);
/* Entropy of single tokens over the held-out part, in nats: the loss of a model that knows how
 * often each token occurs and nothing else. log(vocab_size) for synthetic tokens. */
enum sc_status sc_data_unigram_entropy(const struct sc_data *data, double *out,
                                       struct sc_error *err);

#endif
