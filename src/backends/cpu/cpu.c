/* The CPU backend's slots: opening a device, its memory, its layouts and kernels. */
#include "backends/cpu/cpu.h"
#include "backends/cpu/arena.h"
#include "backends/cpu/isa.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/primitive.h"
#include "backends/cpu/vector.h"
#include "base/mem.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PRIMITIVE_CACHE = 4096 }; /* a run of many shard sizes has more than the library's 1024 */
enum { GRAIN = 1024 };           /* elements: no two threads write the same cache line */

extern const struct cvy_backend cvy_backend_cpu;

static const char *amp_refusal(cvy_dtype low) {
    if (low != CVY_BF16)
        return "no processor's library trains in float16; take bf16";
    return cpu_has_bf16() ? NULL
                          : "this processor has no bfloat16 instructions (AVX512-BF16, AMX); leave --amp out";
}

static int count(void) { return INT_MAX; }

static void close_device(struct cvy_device *device) {
    struct cpu_device *cpu = cpu_device(device);
    if (!cpu)
        return;
    dnnl_primitive_attr_destroy(cpu->attr);
    dnnl_stream_destroy(cpu->stream);
    dnnl_engine_destroy(cpu->engine);
    cpu_cores_close(&cpu->cores);
    free(cpu);
}

static cvy_status open_dnnl(struct cpu_device *cpu) {
    CVY_TRY(cpu_dnnl(dnnl_set_primitive_cache_capacity(PRIMITIVE_CACHE), "primitive cache"));
    CVY_TRY(cpu_dnnl(dnnl_engine_create(&cpu->engine, dnnl_cpu, 0), "engine"));
    cpu_reorder_settle(cpu->engine); /* the devices are opened one after the other */
    CVY_TRY(cpu_dnnl(dnnl_stream_create(&cpu->stream, cpu->engine, dnnl_stream_default_flags), "stream"));
    CVY_TRY(cpu_dnnl(dnnl_primitive_attr_create(&cpu->attr), "attributes"));
    return cpu_dnnl(dnnl_primitive_attr_set_scratchpad_mode(cpu->attr, dnnl_scratchpad_mode_user),
                    "attributes");
}

static void warn(const struct cpu_device *cpu) {
    const struct cvy_device_spec *spec = &cpu->base.spec;
    if (spec->local_index > 0)
        return; /* one warning for all */
    if (spec->n_local > cpu->cores.n)
        cvy_log(spec->log, CVY_LOG_WARNING, "%d devices share %d core%s: right, but no faster than %d",
                spec->n_local, cpu->cores.n, cpu->cores.n == 1 ? "" : "s", cpu->cores.n);
    else if (spec->n_threads > cpu->n_cores)
        cvy_log(spec->log, CVY_LOG_WARNING, "%s: %d threads on %d core%s will wait for each other",
                cpu->base.name, spec->n_threads, cpu->n_cores, cpu->n_cores == 1 ? "" : "s");
}

static cvy_status open_device(const struct cvy_device_spec *spec, struct cvy_device **out) {
    cvy_status status;
    struct cpu_device *cpu;
    int n_devices = spec->n_local > 0 ? spec->n_local : 1;
    CVY_TRY(CVY_ALLOC(cpu, 1));
    cpu->base.backend = &cvy_backend_cpu;
    cpu->base.spec = *spec;
    snprintf(cpu->base.name, sizeof cpu->base.name, "cpu:%d", spec->index);
    CVY_TRY_OUT(cpu_cores_open(&cpu->cores));
    cpu_cores_share(cpu->cores.n, spec->local_index, n_devices, &cpu->first_core, &cpu->n_cores);
    if (spec->n_threads <= 0)
        cpu->base.spec.n_threads = cpu->n_cores;
    CVY_TRY_OUT(open_dnnl(cpu));
    warn(cpu);
    *out = &cpu->base;
    return CVY_OK;
out:
    close_device(&cpu->base);
    return status;
}

/* Every thread of the team takes a core of its own, while there are enough. */
static void bind_worker(void *context, int part, int n_parts) {
    const struct cpu_device *cpu = context;
    (void)n_parts;
    if (part > 0)
        cpu_cores_bind(&cpu->cores, cpu->first_core + part % cpu->n_cores, 1);
}

/* The owner itself is bound to the device's whole share: libgomp lets surplus threads of a team end, and those that
   it starts later inherit the owner's binding. */
static cvy_status enter(struct cvy_device *device) {
    struct cpu_device *cpu = cpu_device(device);
    if (!cpu_cores_bind(&cpu->cores, cpu->first_core, cpu->n_cores))
        cvy_log(device->spec.log, CVY_LOG_WARNING,
                "%s: the system refuses to bind threads to cores; going on without", device->name);
    cpu_team_size(device->spec.n_threads);
    cpu_team_run(device->spec.n_threads, bind_worker, cpu);
    return CVY_OK;
}

static void kind(struct cvy_text *out) {
    const dnnl_version_t *version = dnnl_version();
    cvy_text_printf(out, "oneDNN %d.%d.%d, ", version->major, version->minor, version->patch);
    cpu_isa_print((int)dnnl_get_effective_cpu_isa(), out);
}

static void describe(const struct cvy_device *device, struct cvy_text *out) {
    const struct cpu_device *cpu = (const struct cpu_device *)device;
    const struct cpu_cores *cores = &cpu->cores;
    cvy_text_printf(out, "%s: %d thread%s on ", device->name, device->spec.n_threads,
                    device->spec.n_threads == 1 ? "" : "s");
    if (cpu_cores_has_quota(cores)) {
        cvy_text_printf(out, "any of %d cores, a quota of %.4g at a time", cores->n_permitted, cores->quota);
    } else {
        cvy_text_printf(out, "core%s %u", cpu->n_cores == 1 ? "" : "s", cores->pu[cpu->first_core]);
        for (int i = 1; i < cpu->n_cores; i++)
            cvy_text_printf(out, ",%u", cores->pu[cpu->first_core + i]);
    }
    cvy_text_printf(out, ", ");
    kind(out);
}

static cvy_status alloc(struct cvy_device *device, size_t n_bytes, void **out, double *touch_s) {
    return cpu_arena_map(n_bytes, device->spec.n_threads, out, touch_s);
}

static void release(struct cvy_device *device, void *memory, size_t n_bytes) {
    (void)device;
    cpu_arena_unmap(memory, n_bytes);
}

/* ---- plain bytes --------------------------------------------------------------------------------- */

struct bytes {
    char *to;
    const char *from; /* NULL: zeros */
    size_t n;
};

static void copy_part(void *context, int part, int n_parts) {
    struct bytes *b = context;
    int64_t first, end;
    cpu_part((int64_t)b->n, GRAIN * 4, part, n_parts, &first, &end);
    if (b->from)
        memcpy(b->to + first, b->from + first, (size_t)(end - first));
    else
        memset(b->to + first, 0, (size_t)(end - first));
}

static cvy_status upload(struct cvy_device *device, void *to, const void *host, size_t n_bytes) {
    int n_parts = cpu_team_parts((int64_t)n_bytes / 4, device->spec.n_threads);
    cpu_team_run(n_parts, copy_part, &(struct bytes){to, host, n_bytes});
    return CVY_OK;
}

static cvy_status download(struct cvy_device *device, void *host, const void *from, size_t n_bytes) {
    return upload(device, host, from, n_bytes);
}

static cvy_status zero(struct cvy_device *device, void *at, size_t n_bytes) {
    return upload(device, at, NULL, n_bytes);
}

struct sum {
    float *sum;
    const float *a, *b;
    size_t n;
};

CPU_INLINE void add_vector(float *sum, const float *a, const float *b, int width) {
    cpu_v16 va, vb;
    cpu_load(&va, a, width);
    cpu_load(&vb, b, width);
    va += vb;
    cpu_store(sum, &va, width);
}

/* By vectors, so that it is fast in place too. */
CPU_VECTOR static void tree_add_span(float *sum, const float *a, const float *b, int64_t n) {
    int64_t i = 0;
    for (; i + CPU_LANES <= n; i += CPU_LANES)
        add_vector(sum + i, a + i, b + i, CPU_LANES);
    add_vector(sum + i, a + i, b + i, (int)(n - i));
}

static void add_part(void *context, int part, int n_parts) {
    struct sum *s = context;
    int64_t first, end;
    cpu_part((int64_t)s->n, GRAIN, part, n_parts, &first, &end);
    tree_add_span(s->sum + first, s->a + first, s->b + first, end - first);
}

static cvy_status add(struct cvy_device *device, float *sum, const float *a, const float *b, size_t n) {
    int n_parts = cpu_team_parts((int64_t)n, device->spec.n_threads);
    cpu_team_run(n_parts, add_part, &(struct sum){sum, a, b, n});
    return CVY_OK;
}

struct search {
    const float *at;
    size_t n;
    _Atomic bool is_found;
};

/* All bits of the exponent: an infinity or a NaN. */
static void search_part(void *context, int part, int n_parts) {
    struct search *s = context;
    int64_t first, end;
    uint32_t found = 0;
    cpu_part((int64_t)s->n, GRAIN, part, n_parts, &first, &end);
    for (int64_t i = first; i < end; i++) {
        uint32_t bits;
        memcpy(&bits, &s->at[i], sizeof bits);
        found |= (bits & 0x7F800000u) == 0x7F800000u;
    }
    if (found)
        s->is_found = true;
}

static cvy_status not_finite(struct cvy_device *device, const float *at, size_t n, float *flag) {
    struct search s = {.at = at, .n = n};
    cpu_team_run(cpu_team_parts((int64_t)n, device->spec.n_threads), search_part, &s);
    *flag = s.is_found ? 1 : *flag;
    return CVY_OK;
}

/* ---- the table ----------------------------------------------------------------------------------- */

#define CPU_KERNEL(name) &cpu_kernel_##name,
#ifdef CVY_CPU_HAS_BF16 /* the compiler knows the processors that have it */
#define CPU_KERNEL_BF16(name) &cpu_kernel_##name##_bf16,
#else
#define CPU_KERNEL_BF16(name)
#endif
#define CPU_KERNEL_REAL(name) CPU_KERNEL(name) CPU_KERNEL_BF16(name)
static const struct cvy_kernel_impl *const kernels[] = {
#include "backends/cpu/kernels.def"
    NULL,
};

const struct cvy_backend cvy_backend_cpu = {
    .name = "cpu",
    .help = "the processor's cores, through oneDNN; a device is a share of the cores",
    .is_host_memory = true,
    .amp_refusal = amp_refusal,
    .count = count,
    .open = open_device,
    .close = close_device,
    .enter = enter,
    .kind = kind,
    .describe = describe,
    .alloc = alloc,
    .release = release,
    .upload = upload,
    .download = download,
    .zero = zero,
    .add = add,
    .not_finite = not_finite,
    .ingest = cpu_ingest,
    .layout_bytes = cpu_layout_bytes,
    .layout_print = cpu_layout_print,
    .layout_find = cpu_layout_find,
    .kernels = kernels,
};
