/* Memory objects are made with the kernel; a run only sets their addresses. */
#include "backends/cpu/primitive.h"
#include "base/mem.h"

#include <stdlib.h>

struct primitive {
    struct cvy_kernel base;
    dnnl_primitive_t primitive;
    dnnl_stream_t stream;
    int n;
    dnnl_exec_arg_t args[CPU_MAX_ARGS + 1]; /* the last: scratchpad */
    int operands[CPU_MAX_ARGS];
};

static const char *describe_status(dnnl_status_t status) {
    switch (status) {
    case dnnl_out_of_memory:
        return "out of memory";
    case dnnl_invalid_arguments:
        return "invalid arguments";
    case dnnl_unimplemented:
        return "not implemented for these shapes and layouts";
    default:
        return "failed";
    }
}

cvy_status cpu_dnnl(dnnl_status_t status, const char *what) {
    if (status == dnnl_success)
        return CVY_OK;
    cvy_status code = status == dnnl_out_of_memory   ? CVY_ERR_MEMORY
                      : status == dnnl_unimplemented ? CVY_ERR_UNSUPPORTED
                                                     : CVY_ERR_FAILED;
    return CVY_FAIL(code, "oneDNN, %s: %s", what, describe_status(status));
}

static bool is_absent(const struct cvy_call *call, int operand) {
    if (operand >= 0)
        return operand >= call->n_in || call->in[operand].is_absent;
    return CPU_OUT(operand) >= call->n_out || call->out[CPU_OUT(operand)].is_absent;
}

static cvy_status add_argument(struct primitive *me, dnnl_engine_t engine, const_dnnl_primitive_desc_t pd,
                               int id) {
    const dnnl_memory_desc_t *md = dnnl_primitive_desc_query_md(pd, dnnl_query_exec_arg_md, id);
    dnnl_exec_arg_t *arg = &me->args[me->n];
    if (!md)
        return CVY_FAIL(CVY_ERR_FAILED, "oneDNN: the primitive has no argument %d", id);
    CVY_TRY(cpu_dnnl(dnnl_memory_create(&arg->memory, md, engine, DNNL_MEMORY_NONE), "memory object"));
    arg->arg = id;
    me->n++;
    return CVY_OK;
}

cvy_status cpu_primitive_new(struct cvy_device *device, const struct cvy_kernel_impl *impl,
                             const struct cvy_call *call, dnnl_primitive_desc_t pd,
                             const struct cpu_argument *arguments, int n, struct cvy_kernel **out,
                             size_t *scratch_bytes) {
    cvy_status status;
    struct primitive *me = NULL;
    struct cpu_device *cpu = cpu_device(device);
    CVY_TRY_OUT(CVY_ALLOC(me, 1));
    me->base.impl = impl;
    me->stream = cpu->stream;
    CVY_TRY_OUT(cpu_dnnl(dnnl_primitive_create(&me->primitive, pd), call->op->name));
    for (int i = 0; i < n; i++) {
        if (is_absent(call, arguments[i].operand))
            continue;
        me->operands[me->n] = arguments[i].operand;
        CVY_TRY_OUT(add_argument(me, cpu->engine, pd, arguments[i].id));
    }
    CVY_TRY_OUT(add_argument(me, cpu->engine, pd, DNNL_ARG_SCRATCHPAD));
    *scratch_bytes = dnnl_memory_desc_get_size(dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0));
    *out = &me->base;
    dnnl_primitive_desc_destroy(pd);
    return CVY_OK;
out:
    dnnl_primitive_desc_destroy(pd);
    cpu_primitive_release((struct cvy_kernel *)me);
    return status;
}

cvy_status cpu_primitive_run(struct cvy_kernel *kernel, void *const *in, void *const *out, void *scratch) {
    struct primitive *me = (struct primitive *)kernel;
    for (int i = 0; i < me->n; i++) {
        int operand = me->operands[i];
        void *at = i == me->n - 1 ? scratch : operand >= 0 ? in[operand] : out[CPU_OUT(operand)];
        dnnl_memory_set_data_handle(me->args[i].memory, at);
    }
    CVY_TRY(cpu_dnnl(dnnl_primitive_execute(me->primitive, me->stream, me->n, me->args), me->base.impl->op));
    return cpu_dnnl(dnnl_stream_wait(me->stream), me->base.impl->op);
}

void cpu_primitive_release(struct cvy_kernel *kernel) {
    struct primitive *me = (struct primitive *)kernel;
    if (!me)
        return;
    for (int i = 0; i < CPU_MAX_ARGS + 1; i++)
        dnnl_memory_destroy(me->args[i].memory);
    dnnl_primitive_destroy(me->primitive);
    free(me);
}

cvy_status cpu_primitive_layout(const_dnnl_primitive_desc_t pd, int id, struct cvy_operand_spec *operand) {
    const dnnl_memory_desc_t *md = dnnl_primitive_desc_query_md(pd, dnnl_query_exec_arg_md, id);
    if (!md)
        return CVY_FAIL(CVY_ERR_FAILED, "oneDNN: the primitive has no argument %d", id);
    return cpu_layout_of(md, &operand->desc, &operand->layout);
}
