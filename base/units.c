/* Printing of bytes, seconds and counts with a unit that leaves one to four digits before the
 * point. */
#include "base/units.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

struct unit {
    double value;
    const char *name;
};

/* Largest first; the last one is used for everything smaller. */
static const char *print_unit(double value, const struct unit *units, size_t count, char *out,
                              size_t size)
{
    double magnitude = fabs(value);
    size_t i = 0;
    while (i + 1 < count && magnitude < units[i].value) {
        i++;
    }
    double shown = value / units[i].value;
    bool whole = shown == floor(shown) && units[i].value == 1.0;
    snprintf(out, size, "%.*f%s", whole ? 0 : 2, shown, units[i].name);
    return out;
}

const char *sc_print_bytes(double bytes, char *out, size_t size)
{
    static const struct unit units[] = {{SC_GIB * SC_KIB, " TiB"},
                                        {SC_GIB, " GiB"},
                                        {SC_MIB, " MiB"},
                                        {SC_KIB, " KiB"},
                                        {1.0, " B"}};
    return print_unit(bytes, units, sizeof(units) / sizeof(units[0]), out, size);
}

const char *sc_print_seconds(double seconds, char *out, size_t size)
{
    static const struct unit units[] = {
        {1.0, " s"}, {1.0 / SC_MS_PER_S, " ms"}, {1.0 / SC_US_PER_S, " us"}};
    if (seconds == 0.0) {
        snprintf(out, size, "0 s");
        return out;
    }
    return print_unit(seconds, units, sizeof(units) / sizeof(units[0]), out, size);
}

const char *sc_print_count(double count, char *out, size_t size)
{
    static const struct unit units[] = {
        {SC_TERA, "T"}, {SC_GIGA, "B"}, {SC_MEGA, "M"}, {SC_KILO, "K"}, {1.0, ""}};
    return print_unit(count, units, sizeof(units) / sizeof(units[0]), out, size);
}
