/* A network in C, in parts: $N is the name of the model, $R its type of numbers. `c/header.py` fills them in. */
//// header
/* $TITLE
 *
 * constants: $CONSTANTS bytes; one $N_state: $STATE bytes; nothing is allocated
 * numbers: $NUMBERS
$LOSS *
 *     $N_state state;
 *     $N_reset(&state);               before the first frame of every sequence
 *     $N_step(&state, x, out);        x: $FRAME; out: $ANSWER
$MORE *
 * $MEANING
$NAMES * C99 or C++; an int must have 32 bits. Do not compile it with -ffast-math.
 */
#ifndef ECHOLEARN_$N_H
#define ECHOLEARN_$N_H

#include <math.h>

typedef char $N_needs_ints_of_32_bits[sizeof(int) == 4 ? 1 : -1];

enum { $N_inputs = $FEATURES, $N_outputs = $OUTPUTS, $N_units = $UNITS };

$CONSTANT_TEXT

typedef struct $N_state {
$FIELDS
} $N_state;

$FUNCTIONS
#endif
//// tanh float
/* tanh of x from -8 to 8 as a quotient of polynomials, at most 4e-7 from the truth: much faster than the library's */
static inline float $N_tanh(float x)
{
    const float u = x * x;
    float p, q;
    p = 0.9999993627977622f + u * (0.12913194318824717f + u * (2.938366860873609e-3f + u * 1.1305663617561342e-5f));
    q = 0.02376189032614955f + u * (2.3696583427620897e-4f + u * 2.4224627497386684e-7f);
    return x * p / (1.0f + u * (0.46246291006020995f + u * q));
}
//// tanh double
static inline double $N_tanh(double x)
{
    return tanh(x);
}
//// update
/* h += leak (f(z) - h); z is work space */
static inline void $N_update_$F(const $R *leak, $R *z, $R *h, int n)
{
    int i;
$PREPARATION    for (i = 0; i < n; i++) {
        const $R f = $E;
        h[i] += leak[i] * (f - h[i]);
    }
}
//// half
    for (i = 0; i < n; i++)
        z[i] *= ($R)0.5;
//// limits
    for (i = 0; i < n; i++)
        z[i] = z[i] > 8.0f ? 8.0f : z[i];
    for (i = 0; i < n; i++)
        z[i] = z[i] < -8.0f ? -8.0f : z[i];
//// copy
static inline void $N_copy(const $R *from, $R *to, int n)
{
    int i;
    for (i = 0; i < n; i++)
        to[i] = from[i];
}
//// products
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
//// past
    { /* the latest inputs, and what the units see of them: values and first differences, some steps ago */
        int i, d;
        for (i = $KEPT - 1; i >= $WIDTH; i--)
            s->past[i] = s->steps ? s->past[i - $WIDTH] : s->x1[i % $WIDTH];
        for (i = 0; i < $WIDTH; i++)
            s->past[i] = s->x1[i];
        for (d = 0; d < $COUNT; d++)
            for (i = 0; i < $WIDTH; i++) {
                const $R *now = s->past + $DELAYS[d] * $WIDTH + i;
                s->seen[2 * $WIDTH * d + i] = now[0];
                s->seen[2 * $WIDTH * d + $WIDTH + i] = now[0] - now[$WIDTH];
            }
    }
//// summary
/* add the newest states to the statistics of the series so far, and set the outputs for these */
static inline void $N_summarize($N_state *s)
{
    const int fresh = s->steps <= $WASHOUT;
    const double count = fresh ? 1 : s->steps + 1 - $WASHOUT;
    double y[$OUTPUTS], row[5 + $LIMITS];
    int i, j, k;
    for (j = 0; j < $OUTPUTS; j++)
        y[j] = $INTERCEPT[j];
    for (i = 0; i < $UNITS; i++) {
        const $R h = s->h1[i];
        const double now = (double)h;
        double variance;
        s->total[i] = (fresh ? 0 : s->total[i]) + now;
        s->squares[i] = (fresh ? 0 : s->squares[i]) + now * now;
        s->high[i] = fresh || h > s->high[i] ? h : s->high[i];
        s->low[i] = fresh || h < s->low[i] ? h : s->low[i];
        row[0] = s->total[i] / count;
        variance = s->squares[i] / count - row[0] * row[0];
        row[1] = variance > 0 ? $ROOT(variance) : 0;
        row[2] = (double)s->high[i];
        row[3] = (double)s->low[i];
        row[4] = now;
        for (k = 0; k < $LIMITS; k++) {
            const $R share = (h - $THRESHOLDS[k * $UNITS + i]) * $SLOPE + ($R)0.5;
            $R *above = s->above + k * $UNITS + i;
            *above = (fresh ? 0 : *above) + (share < 0 ? 0 : share > 1 ? 1 : share);
            row[5 + k] = (double)*above / count;
        }
        for (k = 0; k < 5 + $LIMITS; k++)
            for (j = 0; j < $OUTPUTS; j++)
                y[j] += row[k] * (double)$WEIGHTS[((long)k * $UNITS + i) * $OUTPUTS + j];
    }
    for (j = 0; j < $OUTPUTS; j++)
        s->y[j] = ($R)y[j];
    s->steps += s->steps < 2147483647;
}
//// recurrent products
/* z += W_rec h; units come in groups of four, of which group g has the columns start[g] to start[g + 1] of four weights
   each; w[4 p + k] is that of unit 4 g + k from unit from[4 p + k] (0 where it has fewer than its neighbours) */
static inline void $N_add_recurrent(const $S *start, const $I *from, const $R *w, const $R *h, $R *z, int groups)
{
    int g, p;
    for (g = 0; g < groups; g++, z += 4) {
        const int end = (int)start[g + 1];
        $R z0 = z[0], z1 = z[1], z2 = z[2], z3 = z[3];
        for (p = (int)start[g]; p < end; p++, w += 4, from += 4) {
            z0 += w[0] * h[from[0]];
            z1 += w[1] * h[from[1]];
            z2 += w[2] * h[from[2]];
            z3 += w[3] * h[from[3]];
        }
        z[0] = z0;
        z[1] = z1;
        z[2] = z2;
        z[3] = z3;
    }
}
//// whole products
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
//// whole recurrent products
/* z += W_rec h; units come in groups of four, of which group g has the columns start[g] to start[g + 1] of four weights
   each; scales[4 g + k] w[4 p + k] is that of unit 4 g + k from unit from[4 p + k] (0 where it has fewer) */
static inline void $N_add_recurrent(const $S *start, const $I *from, const $Q *w, const float *scales, const short *q,
                                    float scale, float *z, int groups)
{
    int g, p;
    for (g = 0; g < groups; g++, z += 4, scales += 4) {
        const int end = (int)start[g + 1];
        $A sum0 = 0, sum1 = 0, sum2 = 0, sum3 = 0;
        for (p = (int)start[g]; p < end; p++, w += 4, from += 4) {
            sum0 += ($A)w[0] * q[from[0]];
            sum1 += ($A)w[1] * q[from[1]];
            sum2 += ($A)w[2] * q[from[2]];
            sum3 += ($A)w[3] * q[from[3]];
        }
        z[0] += (float)sum0 * (scale * scales[0]);
        z[1] += (float)sum1 * (scale * scales[1]);
        z[2] += (float)sum2 * (scale * scales[2]);
        z[3] += (float)sum3 * (scale * scales[3]);
    }
}
//// deep parts
/* z = x / rms(x); four sums at once, because a processor adds the next number before the last is done */
static inline void $N_normalize(const $R *x, $R *z, int n)
{
    $R sum[4] = {0, 0, 0, 0}, factor;
    int i;
    for (i = 0; i + 4 <= n; i += 4) {
        sum[0] += x[i] * x[i];
        sum[1] += x[i + 1] * x[i + 1];
        sum[2] += x[i + 2] * x[i + 2];
        sum[3] += x[i + 3] * x[i + 3];
    }
    for (; i < n; i++)
        sum[0] += x[i] * x[i];
    factor = 1 / $ROOT(((sum[0] + sum[1]) + (sum[2] + sum[3])) / ($R)n + ($R)$EPSILON);
    for (i = 0; i < n; i++)
        z[i] = x[i] * factor;
}

/* out = relu(h + b) */
static inline void $N_rectify(const $R *h, const $R *b, $R *out, int n)
{
    int i;
    for (i = 0; i < n; i++) {
        const $R sum = h[i] + b[i];
        out[i] = sum < 0 ? 0 : sum;
    }
}
//// deep layer
/* layer k: its states turn in pairs (i, $PAIRS + i) and decay, and their rectified image is added to s->x */
static inline void $N_layer($N_state *s, int k)
{
    const $R *re = $re + k * $PAIRS, *im = $im + k * $PAIRS, *gain = $gain + k * $PAIRS;
    $R *h = s->h + k * $UNITS, *g = h + $PAIRS;
    int i;
    $N_normalize(s->x, s->z, $UNITS);
    for (i = 0; i < $UNITS; i++)
        s->u[i] = 0;
$DRIVE    for (i = 0; i < $PAIRS; i++) {
        const $R first = h[i];
        h[i] = re[i] * first - im[i] * g[i] + gain[i] * s->u[i];
        g[i] = im[i] * first + re[i] * g[i] + gain[i] * s->u[$PAIRS + i];
    }
    $N_rectify(h, $b + k * $UNITS, s->z, $UNITS);
    for (i = 0; i < $UNITS; i++)
        s->x[i] += $b_out[k * $UNITS + i];
$ADD}
//// deep step
    int k, layer;
    for (k = 0; k < $STACKS; k++) {
        $N_copy($b_0 + k * $UNITS, s->x, $UNITS);
$FIRST        for (layer = 0; layer < $LAYERS; layer++)
            $N_layer(s, k * $LAYERS + layer);
        $N_normalize(s->x, s->z, $UNITS);
        $N_rectify(s->z, $c + k * $UNITS, s->f + k * $UNITS, $UNITS);
    }
    $N_copy($INTERCEPT, s->y, $OUTPUTS);
$READOUT
//// exp float
/* exp of x from -87 to 0, at most 3e-7 of itself from the truth: x = n log 2 + r, and 2^n is made of its bits */
static inline float $N_exp(float x)
{
    union { float number; unsigned int bits; } n, power;
    float r;
    n.number = x * 1.44269504f + 12582912.0f; /* rounded to a whole number, in its last bits */
    power.bits = (n.bits << 23) + 0x3f800000u;
    r = n.number - 12582912.0f;
    r = (x - r * 0.693359375f) + r * 2.12194440e-4f;
    return power.number
        * (1 + r * (1 + r * (0.5f + r * (0.166666657f + r * (0.0416657962f + r * (0.00833345f + r * 0.00139f))))));
}
//// exp double
static inline double $N_exp(double x)
{
    return exp(x);
}
//// softmax
/* probabilities of logits; four sums at once, because a processor adds the next number before the last is done */
static inline void $N_softmax($R *y, int n)
{
    $R top = y[0], sum[4] = {0, 0, 0, 0}, total;
    int i;
    for (i = 1; i < n; i++)
        top = y[i] > top ? y[i] : top;
    for (i = 0; i < n; i++) {
        const $R below = y[i] - top;
        y[i] = below < -87 ? -87 : below;
    }
    for (i = 0; i < n; i++)
        y[i] = $N_exp(y[i]);
    for (i = 0; i + 4 <= n; i += 4) {
        sum[0] += y[i];
        sum[1] += y[i + 1];
        sum[2] += y[i + 2];
        sum[3] += y[i + 3];
    }
    for (; i < n; i++)
        sum[0] += y[i];
    total = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    for (i = 0; i < n; i++)
        y[i] /= total;
}
//// nearest
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
