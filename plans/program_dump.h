/* A program as text: streams, groups, buffers, and one line an op with its waits. */
#ifndef STEPCAST_PLANS_PROGRAM_DUMP_H
#define STEPCAST_PLANS_PROGRAM_DUMP_H

#include <stdio.h>

#include "plans/program.h"

/* Columns of an op: number, stream, kind and epilogues, label, values read, written, updated, waits
 * ("8": op 8 of this step, "32 (k-1)": of the step before). SC_MACHINE when writing fails. */
enum sc_status sc_program_dump(const struct sc_program *program, FILE *out, struct sc_error *err);

/* The ops of one class as a graph in DOT (Graphviz): a row a stream, an edge a wait. */
enum sc_status sc_program_dump_dot(const struct sc_program *program, uint32_t class, FILE *out,
                                   struct sc_error *err);

#endif
