/* PyTorch's .pth before 1.6: known by the number that its first pickle holds, and refused with the way out. */
#include "graph/weights_file.h"

#include <string.h>

static const unsigned char magic[] = {0x80, 2,    0x8a, 10,   0x6c, 0xfc, 0x9c,
                                      0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19};

static bool is_it(const unsigned char *bytes, size_t n_bytes) {
    return n_bytes >= sizeof magic && memcmp(bytes, magic, sizeof magic) == 0;
}

static cvy_status open_it(const void *bytes, size_t n_bytes, const char *path, void **out) {
    (void)bytes;
    (void)n_bytes;
    (void)out;
    return CVY_FAIL(
        CVY_ERR_DATA,
        "%s: is in the format of PyTorch before 1.6, which is not read; convert it with: python3 -c "
        "\"import torch; torch.save(torch.load('IN.pth', map_location='cpu'), 'OUT.pth')\"",
        path);
}

const struct cvy_weights_format cvy_weights_format_pth_old = {
    .name = "pth_old", .is_it = is_it, .open = open_it};
