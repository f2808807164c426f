/* Any text as a graph: refused, or a sound graph that prints to a text which parses and prints the same. */
#include "graph/graph.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes) {
    struct cvy_text text = {0}, first = {0}, second = {0};
    struct cvy_graph *g = NULL, *again = NULL;
    cvy_text_append(&text, (const char *)bytes, n_bytes);
    if (text.status == CVY_OK && cvy_graph_parse(text.data, &g) == CVY_OK) {
        assert(cvy_graph_print(g, NULL, &first) == CVY_OK);
        assert(cvy_graph_parse(first.data, &again) == CVY_OK);
        assert(cvy_graph_print(again, NULL, &second) == CVY_OK);
        assert(strcmp(first.data, second.data) == 0);
    }
    cvy_graph_free(g);
    cvy_graph_free(again);
    cvy_text_free(&text);
    cvy_text_free(&first);
    cvy_text_free(&second);
    return 0;
}
