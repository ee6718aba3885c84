/* Families of operation kinds: what figures colour by and tables group by, since three dozen kinds
 * are too many for a legend. Says what an operation is, never which technique put it there. */
#ifndef STEPCAST_REPORTS_KIND_FAMILY_H
#define STEPCAST_REPORTS_KIND_FAMILY_H

#include "plans/op.h"

enum sc_kind_family {
    SC_KINDS_GEMM,
    SC_KINDS_ATTENTION,
    SC_KINDS_ELEMENTWISE, /* norms, activations, dropout, softmax, additions, casts, rotation */
    SC_KINDS_LOSS,        /* embedding and cross-entropy */
    SC_KINDS_OPTIMIZER,
    SC_KINDS_COLLECTIVE,
    SC_KINDS_COPY,
    SC_KINDS_HOST,
    SC_KINDS_COUNT
};

enum sc_kind_family sc_kind_family_of(enum sc_op_kind kind);
/* "matrix product", ...: for a legend. */
const char *sc_kind_family_name(enum sc_kind_family family);

#endif
