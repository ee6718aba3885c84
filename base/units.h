/* The only place with powers of ten and two: conversions and printing. GB is 10^9, GiB 2^30. */
#ifndef STEPCAST_BASE_UNITS_H
#define STEPCAST_BASE_UNITS_H

#include <stddef.h>
#include <stdint.h>

#define SC_KILO 1e3
#define SC_MEGA 1e6
#define SC_GIGA 1e9
#define SC_TERA 1e12
#define SC_KIB 1024.0
#define SC_MIB (1024.0 * 1024.0)
#define SC_GIB (1024.0 * 1024.0 * 1024.0)
#define SC_US_PER_S 1e6
#define SC_MS_PER_S 1e3

/* "27.03 GiB", "1.59 ms", ... into out; returns out. */
const char *sc_print_bytes(double bytes, char *out, size_t size);
const char *sc_print_seconds(double seconds, char *out, size_t size);
const char *sc_print_count(double count, char *out, size_t size);

#endif
