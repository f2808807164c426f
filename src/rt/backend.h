/* The backend interface: a device, its memory, and one prepared kernel per operator call.
   A backend is one `static const struct cvy_backend`, listed in src/backends/backends.def. It gives the
   kernels it has; for the rest the engine takes the reference kernel (rt/fallback.h), and says so.

   Threads: a device is owned by one executor thread. That thread calls `enter` once and then every function
   marked [owner]; the others are called before it starts or after it ended.
   Everything is prepared when the plan is made: `run` allocates nothing. */
#ifndef CVY_RT_BACKEND_H
#define CVY_RT_BACKEND_H

#include "base/log.h"
#include "graph/op.h"
#include "rt/device_comm.h"
#include "rt/stream.h"

struct cvy_layout;
struct cvy_device;
struct cvy_kernel;
struct cvy_backend;

enum { CVY_MAX_OPERANDS = 1024 }; /* inputs or outputs of one call (a bucket's update is the longest) */

/* ---- one operator call, as the choose pass and prepare see it ----------------------------------- */

struct cvy_operand_spec {
    struct cvy_desc desc;
    const struct cvy_layout *layout; /* NULL = plain row-major */
    bool is_absent;                  /* optional input not given, or output that nobody reads */
    bool is_fixed; /* choose: this layout may not be changed (it belongs to a stored value already laid out);
                      if the kernel cannot take it, it answers another one and a reorder is put between */
    bool is_private;
};

struct cvy_call {
    const struct cvy_op *op;
    const void *attrs;
    int n_in, n_out;
    struct cvy_operand_spec *in, *out;
    int64_t rule_batch; /* N of the largest shard of the run: algorithm rules look at this, not at N */
    int32_t algorithm;  /* in/out of choose; given to prepare */
    bool is_training;   /* false: nothing will be differentiated */
};

struct cvy_kernel_impl {
    const char *op;
    /* Can it do this call at all (types, attributes)? NULL: always. Local, any thread. */
    bool (*supports)(const struct cvy_device *device, const struct cvy_call *call);
    /* Given the inputs' present layouts, sets the layout it wants of every input and makes of every output,
       and the algorithm. Called [owner], before prepare. NULL: all inputs and outputs plain. */
    cvy_status (*choose)(struct cvy_device *device, struct cvy_call *call);
    /* The share of the operator's arithmetic (its cost formula) that is left by the algorithm which `choose` will
       take; for estimates, so before any layout is chosen. NULL: all of it. Local, any thread. */
    double (*work)(const char *conv_algo, const struct cvy_call *call);
    /* Makes the kernel for exactly these layouts. *scratch_bytes: workspace that run gets. [owner] */
    cvy_status (*prepare)(struct cvy_device *device, const struct cvy_call *call, struct cvy_kernel **out,
                          size_t *scratch_bytes);
    /* Runs or enqueues it. Pointers are 64-byte aligned device addresses; absent ones are NULL. [owner] */
    cvy_status (*run)(struct cvy_kernel *kernel, void *const *in, void *const *out, void *scratch);
    void (*release)(struct cvy_kernel *kernel);
    /* bit i: although the operator allows output i in place of an input, this kernel does not */
    uint32_t not_in_place;
};

/* Every kernel starts with this, so that the executor needs no table. */
struct cvy_kernel {
    const struct cvy_kernel_impl *impl;
};

/* ---- the device ---------------------------------------------------------------------------------- */

struct cvy_device_spec {
    int index;                /* cpu:INDEX */
    int part;                 /* cuda:INDEX/PART; 0 when the hardware is one device */
    int n_threads;            /* T; 0: all of its cores */
    int n_local;              /* devices of this process: cores are shared out among them */
    int local_index;          /* which of them */
    const char *conv_algo;    /* "auto", "direct", "winograd" */
    bool is_nondeterministic; /* sums may be in any order, where that is faster */
    bool allow_tf32;  /* float32 products may round their factors to 10 bits (TF32) where that is faster */
    double timeout_s; /* the longest that the host waits for the device; 0: for ever */
    const cvy_log_sink *log;
};

struct cvy_device {
    const struct cvy_backend *backend;
    struct cvy_device_spec spec; /* n_threads is now the real T */
    char name[32];               /* "cpu:0" */
};

/* What ingest turns into the input tensor. Pointers are host memory. */
struct cvy_ingest {
    const cvy_batch *batch;
    int64_t first, n; /* images first .. first + n - 1 of the batch */
};

struct cvy_backend {
    const char *name;
    const char *help;
    bool is_host_memory; /* pointers can be read by the host: then the reference fallback works in place */
    bool has_parts;      /* several devices may share one piece of hardware: cuda:0/0, cuda:0/1 */

    /* CVY_ERR_UNSUPPORTED says why no such device can be used here, and what to install. NULL: they can. Local. */
    cvy_status (*available)(void);
    /* --amp: do its kernels take `low`, bfloat16 or float16, where operators do? NULL, or why not. No such slot: it
       knows float32 only. Local. */
    const char *(*amp_refusal)(cvy_dtype low);
    /* How many devices there are (virtual ones: INT_MAX). */
    int (*count)(void);
    cvy_status (*open)(const struct cvy_device_spec *spec, struct cvy_device **out);
    void (*close)(struct cvy_device *device);
    /* Binds the calling thread to the device for good: pins it, sets its OpenMP team. */
    cvy_status (*enter)(struct cvy_device *device);
    /* What its kernels' bits depend on beside the plan: libraries, instruction set. NULL: nothing. Local. */
    void (*kind)(struct cvy_text *out);
    /* One line about it: cores, features. */
    void (*describe)(const struct cvy_device *device, struct cvy_text *out);
    /* Further lines, "name: value" each. NULL: there are none. */
    void (*describe_more)(const struct cvy_device *device, struct cvy_text *out);

    /* The arena: zeroed, every page touched, huge pages where there are. [owner]
       *touch_s = seconds spent in touching pages. */
    cvy_status (*alloc)(struct cvy_device *device, size_t n_bytes, void **out, double *touch_s);
    void (*release)(struct cvy_device *device, void *memory, size_t n_bytes);
    /* Plain bytes between host and device: the host's may be used again on return. [owner] */
    cvy_status (*upload)(struct cvy_device *device, void *to, const void *host, size_t n_bytes);
    cvy_status (*download)(struct cvy_device *device, void *host, const void *from, size_t n_bytes);
    cvy_status (*zero)(struct cvy_device *device, void *at, size_t n_bytes);
    /* sum[i] = a[i] + b[i]: partial sums of the tree; sum may be a or b. [owner] */
    cvy_status (*add)(struct cvy_device *device, float *sum, const float *a, const float *b, size_t n);

    /* *flag, on the device, becomes 1 when one of n numbers is not finite, else it stays. NULL: it takes no
       float16, and cannot watch gradients. [owner] */
    cvy_status (*not_finite)(struct cvy_device *device, const float *at, size_t n, float *flag);

    /* Host images to the input tensor in its layout: convert, normalise, lay out in one pass. Of a device with streams
       the batch must stay as it is until synchronize. [owner] */
    cvy_status (*ingest)(struct cvy_device *device, const struct cvy_ingest *what,
                         const struct cvy_operand_spec *to_spec, void *to);
    /* What ingest takes on the device beside the arena for such an input tensor, at most: images of the loader may be
       bytes or floats. NULL: nothing. Local. */
    size_t (*input_bytes)(const struct cvy_desc *images);

    /* Layouts. Equal layouts are equal pointers, on all devices of one backend in one process, and hold as long as
       the process; what they point to, if anything, is the backend's business. */
    size_t (*layout_bytes)(const struct cvy_layout *layout,
                           const struct cvy_desc *desc); /* layout may be NULL */
    /* "plain" for NULL. No blanks and none of @ , ; = ( ) [ ]: the name stands in text forms. */
    void (*layout_print)(const struct cvy_layout *layout, struct cvy_text *out);
    /* By the printed name, among those known to the device; NULL + false when unknown. */
    bool (*layout_find)(struct cvy_device *device, const char *name, const struct cvy_layout **out);

    /* The kernel for this operator, or NULL: the reference. "reorder" (in: 1, out: 1, same desc, other
       layout) must be there when any layout but plain is ever chosen. */
    const struct cvy_kernel_impl *const *kernels; /* NULL-terminated */
    /* For a backend that wraps another one's kernels: that one's name, and how a call gets its kernel (see
       cvy_kernel_select, which asks it). Else NULL. Local, any thread. */
    const char *kernels_of;
    const struct cvy_kernel_impl *(*select)(const struct cvy_device *device, const struct cvy_call *call,
                                            bool *is_fallback);

    /* Of asynchronous devices; NULL: every call is complete on return. */
    const struct cvy_streams *streams;
    /* From device to device. NULL: what passes between devices passes through the host. */
    const struct cvy_peers *peers;
    const struct cvy_net *net;
};

/* Every ingest begins with this: do the images fit the input tensor (shape, float32, at most 4 channels)? */
cvy_status cvy_ingest_check(const struct cvy_device *device, const struct cvy_ingest *what,
                            const struct cvy_operand_spec *to_spec);

const struct cvy_backend *cvy_backend_find(const char *name); /* of the table; NULL when it is not there */
const struct cvy_backend *const *cvy_backend_table(size_t *n);

struct cvy_plugin_name {
    const char *name; /* "cuda": libconvoy_cuda.so */
    const char *hint; /* what to do when it cannot be loaded */
};
const struct cvy_plugin_name *cvy_backend_plugins(size_t *n);
/* Of the table, then of the plugins: what they are called, at most `cap`. Returns how many. */
size_t cvy_backend_names(const char **names, size_t cap);
/* Of the table, else from its plugin. CVY_ERR_USAGE: there is no such name; CVY_ERR_UNSUPPORTED: the plugin, or what it
   needs, or a device of it, is not here. Local. */
cvy_status cvy_backend_load(const char *name, const struct cvy_backend **out);

/* Waits until all that was enqueued is complete; nothing to do for a device without streams. [owner] */
cvy_status cvy_device_synchronize(struct cvy_device *device);

/* The backend's own kernels, or those of the one that it wraps; NULL-terminated. Local, any thread. */
const struct cvy_kernel_impl *const *cvy_backend_kernels(const struct cvy_backend *backend);

/* The implementation that this call gets on this device: the backend's, else the fallback. *is_fallback may be
   NULL. Never NULL for host-memory backends. */
const struct cvy_kernel_impl *cvy_kernel_select(const struct cvy_device *device, const struct cvy_call *call,
                                                bool *is_fallback);

#endif
