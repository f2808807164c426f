/* constant: one number. */
#include "ops/constant.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/rows.h"

static void constant_element(const struct cpu_rows *me, int64_t first, int64_t end) {
    (void)first, (void)end; /* 0 and 1 */
    *(float *)me->out[0] = (float)((const struct cvy_constant_attrs *)me->attrs)->value;
}

CPU_ROWS_KERNEL(constant, .of_output = true, .row = CPU_ROW_ELEMENT, .span = constant_element)
