/* The CPU backend's device, and what its files share. oneDNN does convolutions, products and pooling; what it
   lacks or does slower is plain loops, run by the same team of threads (team.h).
   Same bits: a kernel is made for the device's T threads, and its bits depend on T, the call and the processor's
   type, never on the thread, core or process that it runs in. */
#ifndef CVY_CPU_CPU_H
#define CVY_CPU_CPU_H

#include "backends/cpu/cores.h"
#include "backends/cpu/layout.h"
#include "backends/cpu/team.h"
#include "base/clones.h"
#include "rt/backend.h"

struct cpu_device {
    struct cvy_device base;
    struct cpu_cores cores;
    int first_core, n_cores; /* its share */
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_attr_t
        attr; /* scratchpad mode user: Winograd crashes with one of the library's own when it is
                                   made in one thread and run in another */
};

static inline struct cpu_device *cpu_device(struct cvy_device *device) { return (struct cpu_device *)device; }

/* CVY_OK, or an error that says what oneDNN would not do. */
cvy_status cpu_dnnl(dnnl_status_t status, const char *what);

cvy_status cpu_ingest(struct cvy_device *device, const struct cvy_ingest *what,
                      const struct cvy_operand_spec *to_spec, void *to);

/* ---- what kernels share (choose.c) --------------------------------------------------------------- */

/* supports: every floating-point operand is float32. */
bool cpu_supports_f32(const struct cvy_device *device, const struct cvy_call *call);
/* supports: the inputs that may be narrow are bfloat16, the others float32, and the processor has instructions. */
bool cpu_supports_bf16(const struct cvy_device *device, const struct cvy_call *call);
/* The processor, and this build. */
bool cpu_has_bf16(void);
/* One or the other: of primitives, which take what their descriptors say. */
bool cpu_supports_both(const struct cvy_device *device, const struct cvy_call *call);
/* choose: every operand plain. */
cvy_status cpu_choose_plain(struct cvy_device *device, struct cvy_call *call);
/* Every operand of the shape of input `leader` takes that one's layout, the others are plain. */
void cpu_choose_like(struct cvy_call *call, int leader);
/* The same, but plain throughout where loops have no view of the leader's layout. */
void cpu_choose_view(struct cvy_call *call, int leader);

/* See base/clones.h. */
#ifdef CVY_CPU_BF16 /* compiled for the processors that have it */
#define CPU_VECTOR
#else
#define CPU_VECTOR CVY_CLONES
#endif
#define CPU_INLINE static inline __attribute__((always_inline))

#endif
