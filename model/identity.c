/* Comparing the machine of a measurement with another one. */
#include "model/identity.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void say(char *out, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void say(char *out, size_t size, const char *format, ...)
{
    size_t used = strlen(out);
    va_list arguments;
    va_start(arguments, format);
    if (used > 0 && used + 1 < size) {
        used += (size_t)snprintf(out + used, size - used, "; ");
    }
    if (used < size) {
        vsnprintf(out + used, size - used, format, arguments);
    }
    va_end(arguments);
}

static bool differ(const char *left, const char *right)
{
    return left[0] != '\0' && right[0] != '\0' && strcmp(left, right) != 0;
}

bool sc_identity_differs(const struct sc_identity *then, const struct sc_identity *now, char *out,
                         size_t size)
{
    out[0] = '\0';
    if (differ(then->processor, now->processor)) {
        say(out, size, "processor %s against %s", then->processor, now->processor);
    }
    if (then->cores > 0 && now->cores > 0 && then->cores != now->cores) {
        say(out, size, "%" PRId64 " core%s against %" PRId64, then->cores,
            then->cores == 1 ? "" : "s", now->cores);
    }
    if (differ(then->library, now->library)) {
        say(out, size, "library %s against %s", then->library, now->library);
    }
    return out[0] != '\0';
}

bool sc_identity_empty(const struct sc_identity *identity)
{
    return identity->processor[0] == '\0' && identity->cores == 0 && identity->library[0] == '\0';
}
