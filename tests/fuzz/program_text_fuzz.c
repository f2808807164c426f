/* Any text as a program: refused, or one that prints to a text which parses and prints the same. */
#include "rt/program.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes) {
    const struct cvy_backend *backend = cvy_backend_find("reference");
    struct cvy_device device = {.backend = backend, .name = "reference:0"};
    struct cvy_text text = {0}, first = {0}, second = {0};
    struct cvy_program *p = NULL, *again = NULL;
    cvy_text_append(&text, (const char *)bytes, n_bytes);
    if (text.status == CVY_OK && cvy_program_parse(text.data, &device, &p) == CVY_OK) {
        assert(cvy_program_print(p, backend, &first) == CVY_OK);
        assert(cvy_program_parse(first.data, &device, &again) == CVY_OK);
        assert(cvy_program_print(again, backend, &second) == CVY_OK);
        assert(strcmp(first.data, second.data) == 0);
    }
    cvy_program_free(p);
    cvy_program_free(again);
    cvy_text_free(&text);
    cvy_text_free(&first);
    cvy_text_free(&second);
    return 0;
}
