/* One rank's data on the host: its arenas. */
#include "exec/host/host_rank.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, HUGE_PAGE = 2 * 1024 * 1024 };

/* Zeroed, and in large pages where the kernel has them: a GEMM touches much memory. */
static enum sc_status open_arena(struct sc_rank_arena *arena, uint64_t bytes, const char *place,
                                 struct sc_error *err)
{
    size_t alignment = bytes >= HUGE_PAGE ? HUGE_PAGE : PAGE;
    size_t size = (size_t)sc_round_up(bytes > 0 ? bytes : 1, alignment);
    void *base = NULL;
    if (posix_memalign(&base, alignment, size) != 0)
        return sc_fail(err, SC_NO_MEMORY, "out of memory: the %s arena needs %llu bytes", place,
                       (unsigned long long)bytes);
#ifdef MADV_HUGEPAGE
    if (alignment == HUGE_PAGE)
        madvise(base, size, MADV_HUGEPAGE);
#endif
    memset(base, 0, size);
    arena->base = base;
    arena->bytes = (size_t)bytes;
    return SC_OK;
}

static enum sc_status open_arenas(struct sc_rank_data *rank, struct sc_error *err)
{
    for (int place = 0; place < SC_PLACE_COUNT; place++) {
        uint64_t bytes = rank->class->memory[place].arena_bytes;
        if (bytes > 0)
            SC_TRY(open_arena(&rank->arenas[place], bytes, sc_place_names[place], err));
    }
    return SC_OK;
}

enum sc_status sc_host_rank_open(struct sc_rank_data *rank, const struct sc_backend_setup *setup,
                                 int64_t number, struct sc_error *err)
{
    SC_TRY(sc_rank_data_open(rank, setup, number, err));
    enum sc_status status = open_arenas(rank, err);
    if (status != SC_OK)
        sc_host_rank_close(rank);
    return status;
}

void sc_host_rank_close(struct sc_rank_data *rank)
{
    for (int place = 0; place < SC_PLACE_COUNT; place++)
        free(rank->arenas[place].base);
    sc_rank_data_close(rank);
}
