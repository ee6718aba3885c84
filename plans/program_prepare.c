/* The passes over a program, in their order. */
#include "plans/memory.h"
#include "plans/program.h"

enum sc_status sc_program_prepare(struct sc_program *program,
                                  const uint64_t capacity[SC_PLACE_COUNT], bool verify,
                                  struct sc_error *err)
{
    SC_TRY(sc_program_derive_waits(program, err));
    SC_TRY(sc_memory_plan(program, capacity, err));
    SC_TRY(sc_program_derive_waits_shared(program, err));
    return verify ? sc_program_verify(program, err) : SC_OK;
}
