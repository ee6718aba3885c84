/*
 * Under which name an operation's cost stands in a profile: its kind's, or, where parameters change
 * the arithmetic by much, a variant of it ("dropout_drawn", "activation_swiglu"). A profile without
 * the variant is asked for the kind.
 */
#ifndef STEPCAST_PLANS_OP_COST_NAME_H
#define STEPCAST_PLANS_OP_COST_NAME_H

#include "plans/program.h"

/* Static; equals sc_op_kind_name where the operation has no variant. */
const char *sc_op_cost_name(const struct sc_op *op);

#endif
