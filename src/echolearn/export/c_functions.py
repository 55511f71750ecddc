"""The functions that a header in C consists of, as templates: $N is the name of the model, $R its type of numbers."""

from __future__ import annotations

TANH = {
    "float": """\
/* tanh as a quotient of polynomials, at most 4e-7 from the truth: much faster than the library's */
static inline float $N_tanh(float x)
{
    float u, p, q;
    x = x > 8.0f ? 8.0f : x;
    x = x < -8.0f ? -8.0f : x;
    u = x * x;
    p = 0.9999993627977622f + u * (0.12913194318824717f + u * (2.938366860873609e-3f + u * 1.1305663617561342e-5f));
    q = 0.02376189032614955f + u * (2.3696583427620897e-4f + u * 2.4224627497386684e-7f);
    return x * p / (1.0f + u * (0.46246291006020995f + u * q));
}
""",
    "double": """\
static inline double $N_tanh(double x)
{
    return tanh(x);
}
""",
}

ACTIVATIONS = {
    "tanh": "$N_tanh(z[i])",
    "sigmoid": "($R)0.5 + ($R)0.5 * $N_tanh(($R)0.5 * z[i])",
    "relu": "z[i] < 0 ? 0 : z[i]",
    "identity": "z[i]",
}

# One function for every activation that the layers have.
UPDATE = """\
/* h += leak (f(z) - h) */
static inline void $N_update_$F(const $R *leak, const $R *z, $R *h, int n)
{
    int i;
    for (i = 0; i < n; i++) {
        const $R f = $E;
        h[i] += leak[i] * (f - h[i]);
    }
}
"""

COPY = """\
static inline void $N_copy(const $R *from, $R *to, int n)
{
    int i;
    for (i = 0; i < n; i++)
        to[i] = from[i];
}
"""

PRODUCTS = """\
/* out[j] += the sum over i of x[i] a[i][j] */
static inline void $N_add_product(const $R *a, const $R *x, $R *out, int rows, int columns)
{
    int i, j;
    for (i = 0; i + 4 <= rows; i += 4) { /* four rows at once: out is read and written a fourth as often */
        const $R *r0 = a + (long)i * columns, *r1 = r0 + columns, *r2 = r1 + columns, *r3 = r2 + columns;
        const $R x0 = x[i], x1 = x[i + 1], x2 = x[i + 2], x3 = x[i + 3];
        for (j = 0; j < columns; j++)
            out[j] += (x0 * r0[j] + x1 * r1[j]) + (x2 * r2[j] + x3 * r3[j]);
    }
    for (; i < rows; i++) {
        const $R *row = a + (long)i * columns;
        const $R now = x[i];
        for (j = 0; j < columns; j++)
            out[j] += now * row[j];
    }
}

/* z += W_rec h; row i has the weights w[p] from the units from[p], p from start[i] on */
static inline void $N_add_recurrent(const $S *start, const $I *from, const $R *w, const $R *h, $R *z, int n)
{
    int i, p;
    for (i = 0; i < n; i++) {
        const int end = (int)start[i + 1];
        $R sum = 0;
        for (p = (int)start[i]; p < end; p++)
            sum += w[p] * h[from[p]];
        z[i] += sum;
    }
}
"""

WHOLE_PRODUCTS = """\
/* q = x in 16 bits, the largest number of x as 32767; what is returned times q is x */
static inline float $N_round(const float *x, short *q, int n)
{
    float top = 0.0f, factor;
    int i;
    for (i = 0; i < n; i++) {
        const float size = x[i] < 0.0f ? -x[i] : x[i];
        top = size > top ? size : top;
    }
    factor = top > 0.0f ? 32767.0f / top : 0.0f;
    for (i = 0; i < n; i++) {
        const float t = x[i] * factor + (x[i] < 0.0f ? -0.5f : 0.5f);
        q[i] = (short)(t >= 32767.0f ? 32767.0f : t <= -32767.0f ? -32767.0f : t == t ? t : 0.0f);
    }
    return top / 32767.0f;
}

/* out[i] += scale scales[i] times the sum over j of a[i][j] q[j] */
static inline void $N_add_product(const $Q *a, const float *scales, const short *q, float scale, float *out,
                                  int rows, int columns)
{
    int i, j;
    for (i = 0; i < rows; i++) {
        const $Q *row = a + (long)i * columns;
        $A sum = 0;
        for (j = 0; j < columns; j++)
            sum += ($A)row[j] * q[j];
        out[i] += (float)sum * (scale * scales[i]);
    }
}

/* z += W_rec h; row i has the weights scales[i] w[p] from the units from[p], p from start[i] on */
static inline void $N_add_recurrent(const $S *start, const $I *from, const $Q *w, const float *scales, const short *q,
                                    float scale, float *z, int n)
{
    int i, p;
    for (i = 0; i < n; i++) {
        const int end = (int)start[i + 1];
        $A sum = 0;
        for (p = (int)start[i]; p < end; p++)
            sum += ($A)w[p] * q[from[p]];
        z[i] += (float)sum * (scale * scales[i]);
    }
}
"""

SOFTMAX = """\
static inline void $N_softmax($R *y, int n)
{
    $R top = y[0], sum = 0;
    int i;
    for (i = 1; i < n; i++)
        top = y[i] > top ? y[i] : top;
    for (i = 0; i < n; i++) {
        y[i] = $X(y[i] - top);
        sum += y[i];
    }
    for (i = 0; i < n; i++)
        y[i] /= sum;
}
"""

NEAREST = """\
/* the distribution that is nearest to y: all numbers are lowered by one amount and cut off at 0 */
static inline void $N_nearest($R *y, int n)
{
    $R top = y[0], sum = 0, amount;
    int i, kept, count = n;
    for (i = 1; i < n; i++)
        top = y[i] > top ? y[i] : top;
    for (i = 0; i < n; i++) {
        y[i] -= top;
        sum += y[i];
    }
    for (;;) {
        amount = (sum - 1) / ($R)count;
        kept = 0;
        sum = 0;
        for (i = 0; i < n; i++)
            if (y[i] > amount) {
                sum += y[i];
                kept++;
            }
        if (kept == count || kept == 0)
            break;
        count = kept;
    }
    sum = 0;
    for (i = 0; i < n; i++) {
        y[i] = y[i] > amount ? y[i] - amount : 0;
        sum += y[i];
    }
    for (i = 0; i < n; i++)
        y[i] /= sum;
}
"""

HEADER = """\
/* $TITLE
 *
 * constants: $CONSTANTS bytes; one $N_state: $STATE bytes; nothing is allocated
 * numbers: $NUMBERS
$LOSS *
 *     $N_state state;
 *     $N_reset(&state);               before the first frame of every sequence
 *     $N_step(&state, x, out);        x: $FEATURES numbers; out: $OUTPUTS $OUTPUT
$MORE *
 * $MEANING
 * C99 or C++; an int must have 32 bits or more. Do not compile it with -ffast-math.
 */
#ifndef ECHOLEARN_$N_H
#define ECHOLEARN_$N_H

#include <math.h>

typedef char $N_needs_ints_of_32_bits[sizeof(int) >= 4 ? 1 : -1];

enum { $N_inputs = $FEATURES, $N_outputs = $OUTPUTS, $N_units = $UNITS };

$CONSTANT_TEXT

typedef struct $N_state {
$FIELDS
} $N_state;

$FUNCTIONS
#endif
"""
