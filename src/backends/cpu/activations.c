/* Activations and their gradients, but for relu. */
#include "backends/cpu/eltwise.h"

#define FORWARD(name)                                                                    \
    CPU_INLINE void name##_vector(cpu_v16 *y, const cpu_v16 *x, const cpu_v16 *unused) { \
        (void)unused;                                                                    \
        *y = *x;                                                                         \
        name##_of(y);                                                                    \
    }
#define BACKWARD(name)                                                                            \
    CPU_INLINE void name##_backward_vector(cpu_v16 *dx, const cpu_v16 *dy, const cpu_v16 *kept) { \
        cpu_v16 slope = *kept;                                                                    \
        name##_slope(&slope);                                                                     \
        *dx = *dy * slope;                                                                        \
    }
/* v becomes `formula` of each lane's x. */
#define BY_LANE(function, formula)         \
    CPU_INLINE void function(cpu_v16 *v) { \
        float a[CPU_LANES];                \
        memcpy(a, v, sizeof a);            \
        CPU_EACH_LANE(l) {                 \
            const float x = a[l];          \
            a[l] = formula;                \
        }                                  \
        memcpy(v, a, sizeof a);            \
    }

/* ---- in pieces ----------------------------------------------------------------------------------- */

BY_LANE(relu6_of, (x <= 0 ? 0 : x >= 6 ? 6 : x))
BY_LANE(relu6_slope, (float)((x > 0) & (x < 6)))
BY_LANE(hardsigmoid_of, (x <= -3 ? 0 : x >= 3 ? 1 : x * (1.f / 6) + 0.5f))
BY_LANE(hardsigmoid_slope, (((x > 0) & (x < 1)) ? 1.f / 6 : 0))
BY_LANE(hardswish_of, (x <= -3 ? 0 : x >= 3 ? x : x * (x * (1.f / 6) + 0.5f)))
BY_LANE(hardswish_slope, (x <= -3 ? 0 : x >= 3 ? 1 : x * (1.f / 3) + 0.5f))

/* ---- smooth -------------------------------------------------------------------------------------- */

BY_LANE(negate_magnitude, (x > 0 ? -x : x)) /* -|x|; NaN stays */

/* low where x < 0, else high; NaN takes high */
CPU_INLINE void by_sign(cpu_v16 *to, const cpu_v16 *x, const cpu_v16 *low, const cpu_v16 *high) {
    float a[CPU_LANES], b[CPU_LANES], c[CPU_LANES];
    memcpy(a, x, sizeof a);
    memcpy(b, low, sizeof b);
    memcpy(c, high, sizeof c);
    CPU_EACH_LANE(l) c[l] = a[l] < 0 ? b[l] : c[l];
    memcpy(to, c, sizeof c);
}

/* By e = exp(-|x|), which does not overflow: e / (1 + e) below 0, else 1 / (1 + e). */
CPU_INLINE void sigmoid_of(cpu_v16 *v) {
    cpu_v16 e = *v;
    negate_magnitude(&e);
    cpu_exp(&e);
    cpu_v16 high = 1 / (1 + e), low = e * high;
    by_sign(v, v, &low, &high);
}

CPU_INLINE void sigmoid_slope(cpu_v16 *y) { *y = *y * (1 - *y); }

CPU_INLINE void silu_of(cpu_v16 *v) {
    cpu_v16 s = *v;
    sigmoid_of(&s);
    *v *= s;
}

CPU_INLINE void silu_slope(cpu_v16 *v) {
    cpu_v16 s = *v;
    sigmoid_of(&s);
    *v = s + *v * s * (1 - s);
}

/* The normal distribution's P(x), and exp(-x^2 / 2). With t = 1 / (1 + 0.3 |x|), P(-|x|) exp(x^2 / 2) is t times a
   polynomial of t: fitted for the least relative error, 1.1e-7, up to |x| = 13, where P(-|x|) is no float any more.
   So small values keep their digits; P(|x|) is the rest to 1. */
CPU_INLINE void normal(const cpu_v16 *x, cpu_v16 *p, cpu_v16 *bell) {
    const float c[] = {0.0361950307f, -0.159378986f, 0.210119467f, -0.0571682768f,
                       0.130416898f,  0.099347f,     0.120845549f, 0.119623262f};
    cpu_v16 below = *x, t, sum = (cpu_v16){0} + c[0];
    negate_magnitude(&below);
    t = 1 / (1 - 0.3f * below);
    for (size_t k = 1; k < sizeof c / sizeof *c; k++)
        sum = sum * t + c[k];
    *bell = -0.5f * *x * *x;
    cpu_exp(bell);
    cpu_v16 low = t * sum * *bell, high = 1 - low;
    by_sign(p, x, &low, &high);
}

CPU_INLINE void gelu_of(cpu_v16 *v) {
    cpu_v16 p, bell;
    normal(v, &p, &bell);
    *v *= p;
}

CPU_INLINE void gelu_slope(cpu_v16 *v) {
    cpu_v16 p, bell;
    normal(v, &p, &bell);
    *v = p + *v * bell * 0.39894228f; /* 1 / sqrt(2 pi) */
}

#define ACTIVATION_KERNELS(name, choose) \
    FORWARD(name)                        \
    BACKWARD(name)                       \
    CPU_ELTWISE_KERNEL(name, choose)     \
    CPU_ELTWISE_KERNEL(name##_backward, cpu_eltwise_choose)
ACTIVATION_KERNELS(relu6, cpu_eltwise_choose)
ACTIVATION_KERNELS(sigmoid, cpu_eltwise_choose_unpadded)
ACTIVATION_KERNELS(hardsigmoid, cpu_eltwise_choose_unpadded)
ACTIVATION_KERNELS(hardswish, cpu_eltwise_choose)
ACTIVATION_KERNELS(silu, cpu_eltwise_choose)
ACTIVATION_KERNELS(gelu, cpu_eltwise_choose)
