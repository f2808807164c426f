/* --amp bf16 against PyTorch's torch.autocast on the CPU: tests/golden/models/NAME.amp, made by
   tools/make_golden_amp.py. Logits, the loss, and all gradients together within 1e-2; and nearer to PyTorch's than
   those are to float64's: that the same things are rounded, not only as much. */
#include "amp_net.h"

static struct variant variants[] = {
    {&LENET5, "reference", "cpu:0", 1}, {&LENET5, "reference", "cpu:0-1", 4},
    {&BLOCK, "reference", "cpu:0", 1},  {&BLOCK, "reference", "cpu:0-1", 2},
    {&LENET5, "cpu", "cpu:0", 1}, /* from here on: where the processor has bfloat16 */
    {&LENET5, "cpu", "cpu:0-1", 4},     {&BLOCK, "cpu", "cpu:0", 1},
    {&BLOCK, "cpu", "cpu:0-1", 2},
};
enum { N_REFERENCE = 4 };

int main(void) {
    const char *reason = cvy_backend_find("cpu")->amp_refusal(CVY_BF16);
    size_t n = reason ? N_REFERENCE : sizeof variants / sizeof *variants;
    if (reason)
        print_message("the reference alone: %s\n", reason);
    return run_variants("amp.golden", variants, n);
}
