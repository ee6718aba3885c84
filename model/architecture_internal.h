/* Shared by the two readers of models; for model/architecture*.c only. */
#ifndef STEPCAST_MODEL_ARCHITECTURE_INTERNAL_H
#define STEPCAST_MODEL_ARCHITECTURE_INTERNAL_H

#include "model/architecture.h"

/* Derives key_value_heads and head_size where they are 0, and checks the shape; complaints name the
 * cursor's file and path. */
enum sc_status sc_model_finish(const struct sc_json *at, struct sc_model *model,
                               struct sc_error *err);

#endif
