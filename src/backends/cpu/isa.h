/* Instruction sets by name. */
#ifndef CVY_CPU_ISA_H
#define CVY_CPU_ISA_H

#include "base/text.h"

#include <stdbool.h>

/* "AVX2"; for one that is not known its number, "instruction set 0x3e7". `isa`: a dnnl_cpu_isa_t, of this or a newer
   oneDNN. */
void cpu_isa_print(int isa, struct cvy_text *out);

/* Does it multiply bfloat16 (AVX512-BF16, AMX)? */
bool cpu_isa_has_bf16(int isa);

#endif
