/* What every cmocka suite needs. */
#ifndef CVY_TEST_H
#define CVY_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <convoy/convoy.h>

/* The call must succeed; else its error is shown. */
#define assert_ok(call)                                                     \
    do {                                                                    \
        if ((call) != CVY_OK)                                               \
            fail_msg("%s: %s [%s]", #call, cvy_error(), cvy_error_trace()); \
    } while (0)

/* The call must fail with this code, and its message must have this text in it. */
#define assert_fails(call, code, text)                                                   \
    do {                                                                                 \
        assert_int_equal((call), (code));                                                \
        if (!strstr(cvy_error(), (text)))                                                \
            fail_msg("%s: the error is '%s', without '%s'", #call, cvy_error(), (text)); \
    } while (0)

#endif
