/* The files in a zip archive whose bytes are stored, not compressed: what PyTorch writes. Trusts nothing; everything
   is Local. */
#ifndef CVY_GRAPH_ZIP_H
#define CVY_GRAPH_ZIP_H

#include "base/status.h"

#include <stdint.h>

struct cvy_zip_entry {
    const char *name; /* n_name bytes in the archive, without a NUL */
    size_t n_name;
    const unsigned char *bytes;
    uint64_t n_bytes;
    uint16_t method; /* 0: stored */
    uint64_t place;  /* of its local header */
};

struct cvy_zip {
    struct cvy_zip_entry *entries; /* in the order of the directory */
    size_t n;
};

/* Reads the directory (zip64 too) of an archive in memory and checks the files' sums. CVY_ERR_DATA without the
   archive's name. The archive outlives *out, which cvy_zip_close releases, also after a failure. */
cvy_status cvy_zip_open(const unsigned char *bytes, size_t n_bytes, struct cvy_zip *out);
void cvy_zip_close(struct cvy_zip *zip);

#endif
