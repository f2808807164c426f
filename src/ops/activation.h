/* Activations: y = f(x), element by element, and dx = f'(…) dy. The file of one gives its two formulas in doubles;
   everything else they share. */
#ifndef CVY_OPS_ACTIVATION_H
#define CVY_OPS_ACTIVATION_H

#include "ops/infer.h"

enum { CVY_ACTIVATION_CASES = 4 };
extern const struct cvy_case cvy_activation_cases[CVY_ACTIVATION_CASES];
extern const struct cvy_case cvy_activation_backward_cases[CVY_ACTIVATION_CASES];
extern const struct cvy_alias cvy_activation_in_place[1];

/* y = f(x) of all elements. */
void cvy_activation_map(const struct cvy_reference *call, double (*f)(double));
/* dx = slope(kept) dy, of all elements. */
void cvy_activation_scale(const struct cvy_reference *call, double (*slope)(double));

/* The operators NAME, by f(x), and NAME_backward, by slope(KEPT), where KEPT is what the gradient looks at: x, or y
   where that is enough, so that x need not be kept. `formula` and `slope_formula` are for the lists. */
#define CVY_ACTIVATION(NAME, KEPT, formula, slope_formula)                                                  \
    static void forward_reference(const struct cvy_reference *call) { cvy_activation_map(call, f); }        \
    static void backward_reference(const struct cvy_reference *call) { cvy_activation_scale(call, slope); } \
    static cvy_status grad(struct cvy_graph *g, const struct cvy_node *node, uint32_t want,                 \
                           const cvy_value *gout, cvy_value *gin) {                                         \
        const cvy_value x = node->in[0], y = node->out[0];                                                  \
        (void)want, (void)x, (void)y; /* one input: it is wanted */                                         \
        return cvy_graph_add_grad(g, node, #NAME "_backward", NULL, (cvy_value[]){gout[0], KEPT}, 2,        \
                                  &gin[0]);                                                                 \
    }                                                                                                       \
    const struct cvy_op cvy_op_##NAME = {                                                                   \
        .name = #NAME,                                                                                      \
        .help = formula,                                                                                    \
        .n_in = 1,                                                                                          \
        .n_in_min = 1,                                                                                      \
        .n_out = 1,                                                                                         \
        .in_names = (const char *const[]){"x"},                                                             \
        .out_names = (const char *const[]){"y"},                                                            \
        .flags = CVY_OP_FOLLOWS,                                                                            \
        .aliases = cvy_activation_in_place,                                                                 \
        .n_aliases = 1,                                                                                     \
        .narrow_in = 1u << 0,                                                                               \
        .infer = cvy_infer_unary,                                                                           \
        .grad = grad,                                                                                       \
        .reference = forward_reference,                                                                     \
        .cost = cvy_cost_elementwise,                                                                       \
        .cases = cvy_activation_cases,                                                                      \
        .n_cases = CVY_ACTIVATION_CASES,                                                                    \
    };                                                                                                      \
    const struct cvy_op cvy_op_##NAME##_backward = {                                                        \
        .name = #NAME "_backward",                                                                          \
        .help = slope_formula,                                                                              \
        .n_in = 2,                                                                                          \
        .n_in_min = 2,                                                                                      \
        .n_out = 1,                                                                                         \
        .in_names = (const char *const[]){"dy", #KEPT},                                                     \
        .out_names = (const char *const[]){"dx"},                                                           \
        .aliases = cvy_activation_in_place,                                                                 \
        .n_aliases = 1,                                                                                     \
        .narrow_in = 1u << 0 | 1u << 1,                                                                     \
        .infer = cvy_infer_binary,                                                                          \
        .reference = backward_reference,                                                                    \
        .cost = cvy_cost_elementwise,                                                                       \
        .cases = cvy_activation_backward_cases,                                                             \
        .n_cases = CVY_ACTIVATION_CASES,                                                                    \
    };

#endif
