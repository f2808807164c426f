/* What --amp bf16 computes on a pretend GPU against PyTorch's torch.autocast, as tests/amp_golden_test.c does for the
   reference backend. */
#include "amp_net.h"

static struct variant variants[] = {
    {&LENET5, "cuda", "cuda:0", 1},
    {&BLOCK, "cuda", "cuda:0", 1},
    {&BLOCK, "cuda", "cuda:0-1", 2},
};

int main(void) {
    const struct cvy_backend *backend;
    if (cvy_backend_load("cuda", &backend) == CVY_ERR_UNSUPPORTED) {
        print_message("skipped: %s\n", cvy_error());
        return 77;
    }
    return run_variants("cuda.amp_golden", variants, sizeof variants / sizeof *variants);
}
