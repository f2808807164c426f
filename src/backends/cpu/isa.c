/* The names of oneDNN's numbers. */
#include "backends/cpu/isa.h"

#include <oneapi/dnnl/dnnl.h>

static const struct {
    int isa;
    const char *name;
} names[] = {
    {dnnl_cpu_isa_sse41, "SSE4.1"},
    {dnnl_cpu_isa_avx, "AVX"},
    {dnnl_cpu_isa_avx2, "AVX2"},
    {dnnl_cpu_isa_avx2_vnni, "AVX2 with VNNI"},
    {dnnl_cpu_isa_avx512_mic, "AVX-512 of Xeon Phi"},
    {dnnl_cpu_isa_avx512_mic_4ops, "AVX-512 of Xeon Phi with 4FMAPS"},
    {dnnl_cpu_isa_avx512_core, "AVX-512"},
    {dnnl_cpu_isa_avx512_core_vnni, "AVX-512 with VNNI"},
    {dnnl_cpu_isa_avx512_core_bf16, "AVX-512 with bf16"},
    {dnnl_cpu_isa_avx512_core_amx, "AVX-512 with AMX"},
};

void cpu_isa_print(int isa, struct cvy_text *out) {
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (names[i].isa == isa) {
            cvy_text_printf(out, "%s", names[i].name);
            return;
        }
    }
    cvy_text_printf(out, "instruction set 0x%x", (unsigned)isa);
}

/* Each set's number holds the bits of those that it includes. */
bool cpu_isa_has_bf16(int isa) {
    const int bf16 = dnnl_cpu_isa_avx512_core_bf16;
    return isa != dnnl_cpu_isa_all && (isa & bf16) == bf16;
}
