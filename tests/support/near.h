/* Comparison of doubles with an absolute tolerance that names both. Include <cmocka.h> before. */
#ifndef STEPCAST_TESTS_SUPPORT_NEAR_H
#define STEPCAST_TESTS_SUPPORT_NEAR_H

#include <math.h>

#define assert_near(got, want, tolerance)                                                          \
    do {                                                                                           \
        double near_got_ = (got), near_want_ = (want);                                             \
        if (!(fabs(near_got_ - near_want_) <= (tolerance)))                                        \
            fail_msg("%s is %.12g, expected %.12g", #got, near_got_, near_want_);                  \
    } while (0)

#endif
