/* What the bytes of an image file say before any pixel is decoded: format, mode, orientation, animation, and whether
   the file ends too early. */
#ifndef CVY_DATA_FILE_FACTS_H
#define CVY_DATA_FILE_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cvy_file_facts {
    const char *format; /* "JPEG", "PNG", "WebP"; NULL: none of these */
    const char
        *converted;  /* how its pixels differ from RGB of 8 bits: "grey", "CMYK", …; NULL: they do not */
    int orientation; /* of EXIF, 1 to 8 */
    int64_t height, width; /* that the header says; 0: it does not */
    bool is_animated, is_truncated;
};

/* Never fails: what makes no sense is not said. */
void cvy_file_facts(const void *bytes, size_t n_bytes, struct cvy_file_facts *out);
/* Does the end of the file's name fit the format? */
bool cvy_suffix_fits(const char *path, const char *format);

#endif
