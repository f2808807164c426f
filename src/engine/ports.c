/* ports: the inputs and outputs of a graph that carry a meaning, since host and devices exchange them by name. A
   plan refuses a graph where one of them has another form, or an input that nothing would ever fill. */
#include "engine/plan.h"

#include <string.h>

struct port {
    const char *name;
    bool is_input;
    cvy_dtype dtype;
    const char
        *shape; /* a digit: that size; N: the batch; *: anything from here; any other letter: any size */
};

static const struct port ports[] = {
    {"images", true, CVY_F32, "NCHW"}, {"labels", true, CVY_I64, "N"},  {"divisor", true, CVY_F32, "1"},
    {"rng", true, CVY_I64, "3"},       {"losses", false, CVY_F32, "N"}, {"ranks", false, CVY_I32, "N"},
    {"logits", false, CVY_F32, "N*"},  {"hits", false, CVY_F32, "2"},
};

static const struct port *find_port(const char *name, bool is_input) {
    for (size_t i = 0; i < sizeof ports / sizeof *ports; i++) {
        if (ports[i].is_input == is_input && strcmp(ports[i].name, name) == 0)
            return &ports[i];
    }
    return NULL;
}

static bool has_shape(const struct cvy_shape *shape, const char *pattern, int64_t batch) {
    int n = (int)strlen(pattern);
    if (pattern[n - 1] == '*' ? shape->n < n - 1 : shape->n != n)
        return false;
    for (int i = 0; i < n && pattern[i] != '*'; i++) {
        bool is_size = pattern[i] >= '0' && pattern[i] <= '9';
        if ((is_size && shape->dim[i] != pattern[i] - '0') || (pattern[i] == 'N' && shape->dim[i] != batch))
            return false;
    }
    return true;
}

static cvy_status check_port(const struct cvy_graph *g, const struct port *port, cvy_value v) {
    const struct cvy_desc *desc = &cvy_graph_value(g, v)->desc;
    if (desc->dtype == port->dtype && has_shape(&desc->shape, port->shape, g->batch))
        return CVY_OK;
    struct cvy_text text = {0};
    cvy_desc_print(&text, desc);
    cvy_status status = CVY_FAIL(
        CVY_ERR_USAGE, "%s \"%s\" is %s for a batch of %lld, it must be %s of shape %s; see convoy.h",
        port->is_input ? "input" : "output", port->name, text.data ? text.data : "?", (long long)g->batch,
        cvy_dtype_name(port->dtype), port->shape);
    cvy_text_free(&text);
    return status;
}

cvy_status cvy_ports_check(const struct cvy_graph *g) {
    for (size_t v = 0; v < g->values.n; v++) {
        const struct cvy_value_info *info = &g->values.data[v];
        if (info->kind != CVY_VALUE_INPUT)
            continue;
        const struct port *port = find_port(info->name, true);
        if (!port)
            return CVY_FAIL(CVY_ERR_USAGE,
                            "nothing fills the input \"%s\": a batch brings \"images\" and labels only",
                            info->name);
        CVY_TRY(check_port(g, port, (cvy_value)v));
    }
    for (size_t i = 0; i < g->outputs.n; i++) {
        const struct port *port = find_port(g->outputs.data[i].name, false);
        if (port) /* "loss" is for autodiff to judge; other names mean nothing here */
            CVY_TRY(check_port(g, port, g->outputs.data[i].value));
    }
    return CVY_OK;
}
