/* --amp bf16 against PyTorch's torch.autocast on the CPU: tests/golden/models/NAME.amp, made by
   tools/make_golden_amp.py. Logits, the loss, and all gradients together within 1e-2; and nearer to PyTorch's than
   those are to float64's: that the same things are rounded, not only as much. */
#include "amp_net.h"

static struct variant variants[] = {
    {&LENET5, "reference", "cpu:0", 1},
    {&LENET5, "reference", "cpu:0-1", 4},
    {&BLOCK, "reference", "cpu:0", 1},
    {&BLOCK, "reference", "cpu:0-1", 2},
};

int main(void) { return run_variants("amp.golden", variants, sizeof variants / sizeof *variants); }
