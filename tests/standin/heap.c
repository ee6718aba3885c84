/*
 * How many allocations of the program live: the linker sends its calls here (--wrap). Libraries
 * below keep their own; what they hand out for the program to free is not met in these tests.
 */
#include <stdatomic.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "tests/standin/training.h"

void *__real_malloc(size_t);
void *__real_calloc(size_t, size_t);
void *__real_realloc(void *, size_t);
void *__real_aligned_alloc(size_t, size_t);
int __real_posix_memalign(void **, size_t, size_t);
char *__real_strdup(const char *);
char *__real_strndup(const char *, size_t);
void __real_free(void *);
void *__wrap_malloc(size_t);
void *__wrap_calloc(size_t, size_t);
void *__wrap_realloc(void *, size_t);
void *__wrap_aligned_alloc(size_t, size_t);
int __wrap_posix_memalign(void **, size_t, size_t);
char *__wrap_strdup(const char *);
char *__wrap_strndup(const char *, size_t);
int __wrap_asprintf(char **, const char *, ...) __attribute__((format(printf, 2, 3)));
void __wrap_free(void *);

static atomic_long living;

long sc_standin_heap(void)
{
    return atomic_load(&living);
}

static void *counted(void *memory)
{
    if (memory)
        atomic_fetch_add(&living, 1);
    return memory;
}

void *__wrap_malloc(size_t bytes)
{
    return counted(__real_malloc(bytes));
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return counted(__real_calloc(count, bytes));
}

void *__wrap_realloc(void *memory, size_t bytes)
{
    void *moved = __real_realloc(memory, bytes);
    return memory ? moved : counted(moved);
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
    return counted(__real_aligned_alloc(alignment, bytes));
}

int __wrap_posix_memalign(void **out, size_t alignment, size_t bytes)
{
    int code = __real_posix_memalign(out, alignment, bytes);
    if (code == 0)
        counted(*out);
    return code;
}

char *__wrap_strdup(const char *text)
{
    return counted(__real_strdup(text));
}

char *__wrap_strndup(const char *text, size_t length)
{
    return counted(__real_strndup(text, length));
}

int __wrap_asprintf(char **out, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int length = vasprintf(out, format, list);
    va_end(list);
    if (length >= 0)
        counted(*out);
    return length;
}

void __wrap_free(void *memory)
{
    if (memory)
        atomic_fetch_sub(&living, 1);
    __real_free(memory);
}
