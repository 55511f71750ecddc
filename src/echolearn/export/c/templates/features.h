/* The features of speech in C, in parts: $N is the name of the model. `c/speech.py` fills them in. */
//// header
/* $TITLE
 *
 * $RECIPE
 * constants: $CONSTANTS bytes; one $N_features: $STATE bytes; nothing is allocated
 *
 *     $N_features f;
 *     float x[$N_features_columns];
 *     $N_features_reset(&f);                    before the first sample of every recording
 *     if ($N_features_add(&f, sample, x))       one 16-bit sample at $RATE Hz; 1: x is the next row of features
 *     while ($N_features_end(&f, x))            after the last sample: x is one of the last rows
 *
$USE * C99 or C++; an int must have 32 bits.
 */
#ifndef ECHOLEARN_$N_FEATURES_H
#define ECHOLEARN_$N_FEATURES_H

#include <math.h>

enum { $N_features_columns = $COLUMNS * $CONTEXT, $N_features_rate = $RATE, $N_features_passes = $PASSES };

$CONSTANT_TEXT

typedef struct $N_features {
$FIELDS
} $N_features;

static inline void $N_features_reset($N_features *f)
{
    int i;
$MOMENTS    for (i = 0; i < $WINDOW; i++)
        f->window[i] = 0;
    f->samples = 0;
    f->now = 0;
    f->last = -1;
    f->measuring = $N_features_passes > 1;
}

/* the Fourier transform of $HALF complex numbers, in place */
static inline void $N_features_transform(float *re, float *im)
{
    int i, j = 0, k, half;
    for (i = 1; i < $HALF; i++) { /* places with their bits in reverse order */
        int bit = $HALF / 2;
        for (; j & bit; bit /= 2)
            j ^= bit;
        j |= bit;
        if (i < j) {
            const float r = re[i], m = im[i];
            re[i] = re[j];
            im[i] = im[j];
            re[j] = r;
            im[j] = m;
        }
    }
    for (half = 1; half < $HALF; half *= 2) {
        const int step = $HALF / half; /* in 1 / (2 $HALF) of a turn */
        for (i = 0; i < $HALF; i += 2 * half)
            for (k = 0; k < half; k++) {
                const float c = $N_features_cosine[k * step], s = $N_features_sine[k * step];
                const int a = i + k, b = a + half;
                const float r = re[b] * c + im[b] * s, m = im[b] * c - re[b] * s;
                re[b] = re[a] - r;
                im[b] = im[a] - m;
                re[a] += r;
                im[a] += m;
            }
    }
}

/* the power spectrum of the 2 $HALF real numbers re[0], im[0], re[1], im[1], ..., its first $HALF bins, into power */
static inline void $N_features_spectrum(float *re, float *im, float *power)
{
    int k;
    $N_features_transform(re, im);
    for (k = 0; k <= $HALF / 2; k++) { /* bins k and $HALF - k come from the same two numbers */
        const int j = k == 0 ? 0 : $HALF - k;
        const float er = 0.5f * (re[k] + re[j]), ei = 0.5f * (im[k] - im[j]);
        const float or_ = 0.5f * (im[k] + im[j]), oi = -0.5f * (re[k] - re[j]);
        const float c = $N_features_cosine[k], s = $N_features_sine[k];
        const float tr = c * or_ + s * oi, ti = c * oi - s * or_;
        const float r = er + tr, m = ei + ti, r2 = er - tr, m2 = ei - ti;
        power[k] = r * r + m * m;
        if (k != 0)
            power[j] = r2 * r2 + m2 * m2;
    }
}

/* the energy and the cepstra of the window */
static inline void $N_features_cepstra_of($N_features *f, float *cepstra)
{
    float mean = 0.0f, energy = 0.0f, before, power[$HALF], bands[$BANDS];
    int i, k, place = f->samples % $WINDOW; /* where the oldest sample is */
    for (i = 0; i < $WINDOW; i++)
        mean += (float)f->window[i];
    mean /= $WINDOW.0f;
    before = (float)f->window[place] - mean;
    for (i = 0; i < $HALF; i++)
        f->re[i] = f->im[i] = 0.0f;
    for (i = 0; i < $WINDOW; i++) {
        const float x = (float)f->window[place] - mean;
        const float weighted = (x - $EMPHASIS * before) * $N_features_window[i];
        energy += x * x;
        before = x;
        place = place + 1 < $WINDOW ? place + 1 : 0;
        if (i % 2)
            f->im[i / 2] = weighted;
        else
            f->re[i / 2] = weighted;
    }
    $N_features_spectrum(f->re, f->im, power);
    for (k = 0; k < $BANDS; k++) {
        const int from = (int)$N_features_start[k], count = (int)$N_features_start[k + 1] - from;
        float sum = 0.0f;
        for (i = 0; i < count; i++)
            sum += $N_features_mel[from + i] * power[(int)$N_features_first[k] + i];
        bands[k] = logf(sum > 1.1920929e-7f ? sum : 1.1920929e-7f);
    }
    cepstra[0] = energy > 1.0f ? logf(energy) : 0.0f;
    for (k = 1; k < $CEPSTRA; k++) {
        float sum = 0.0f;
        for (i = 0; i < $BANDS; i++)
            sum += $N_features_cepstra[(k - 1) * $BANDS + i] * bands[i];
        cepstra[k] = sum;
    }
}

/* the frame that stands for frame t: the first and the last are repeated beyond the ends */
static inline int $N_features_inside(const $N_features *f, int t)
{
    t = t < 0 ? 0 : t;
    return f->last >= 0 && t > f->last ? f->last : t;
}

/* out = the slopes at frame t of the $KEPT frames around it */
static inline void $N_features_slopes(const $N_features *f, const float *frames, int t, float *out)
{
    int c, k;
    for (c = 0; c < $CEPSTRA; c++) {
        float sum = 0.0f;
        for (k = 1; k <= $SPREAD; k++) {
            const int after = $N_features_inside(f, t + k) % $KEPT, ago = $N_features_inside(f, t - k) % $KEPT;
            sum += (float)k * (frames[after * $CEPSTRA + c] - frames[ago * $CEPSTRA + c]);
        }
        out[c] = sum / $NORM;
    }
}

static inline void $N_features_normalise($N_features *f, float *row)
{
    int c;
$SCALING}

/* frame f->now is in its place, or is beyond the end: 1 if x is the next row */
static inline int $N_features_advance($N_features *f, float *x)
{
    const int n = f->now++, slope = n - $SPREAD, whole = n - $AHEAD, ready = whole - $SIDE;
    int c, k;
    if (slope >= 0 && $N_features_inside(f, slope) == slope)
        $N_features_slopes(f, f->cepstra, slope, f->slopes + slope % $KEPT * $CEPSTRA);
    if (whole >= 0 && $N_features_inside(f, whole) == whole) {
        float *row = f->rows + whole % $CONTEXT * $COLUMNS;
        for (c = 0; c < $CEPSTRA; c++) {
            row[c] = f->cepstra[whole % $KEPT * $CEPSTRA + c];
            row[$CEPSTRA + c] = f->slopes[whole % $KEPT * $CEPSTRA + c];
        }
        $N_features_slopes(f, f->slopes, whole, row + 2 * $CEPSTRA);
        $N_features_normalise(f, row);
    }
    if (ready < 0)
        return 0;
    for (k = 0; k < $CONTEXT; k++) {
        const float *row = f->rows + $N_features_inside(f, ready - $SIDE + k) % $CONTEXT * $COLUMNS;
        for (c = 0; c < $COLUMNS; c++)
            x[k * $COLUMNS + c] = row[c];
    }
    return 1;
}

/* takes a sample; 1: x is the next row of features */
static inline int $N_features_add($N_features *f, short sample, float *x)
{
    f->window[f->samples % $WINDOW] = sample;
    f->samples = f->samples + 1 < 4 * $WINDOW * $SHIFT ? f->samples + 1 : 2 * $WINDOW * $SHIFT;
    if (f->samples < $WINDOW || (f->samples - $WINDOW) % $SHIFT)
        return 0;
    if (f->now >= 4 * $KEPT * $CONTEXT) /* only places in the rings matter, and no number may overflow */
        f->now -= 2 * $KEPT * $CONTEXT;
    $N_features_cepstra_of(f, f->cepstra + f->now % $KEPT * $CEPSTRA);
    return $N_features_advance(f, x);
}

/* after the last sample, until it returns 0: x is the next row of features */
static inline int $N_features_end($N_features *f, float *x)
{
    if (f->last < 0)
        f->last = f->now - 1;
    while (f->now <= f->last + $AHEAD + $SIDE)
        if ($N_features_advance(f, x))
            return 1;
    return 0;
}

$MEASURED#endif
//// two passes
 * Features are normalised by mean and deviation of the whole recording, so it must be passed twice:
 *
 *     after $N_features_reset, the first pass; then
 *     $N_features_measured(&f);                 and the second pass; rows of the first mean nothing
 *
//// measured 1
/* for recipes that need two passes; this one does not */
static inline void $N_features_measured($N_features *f)
{
    (void)f;
}

//// measured 2
/* ends the first pass: mean and deviation are known now */
static inline void $N_features_measured($N_features *f)
{
    int c;
    for (c = 0; c < $COLUMNS; c++) {
        const double mean = f->seen > 0.0 ? f->mean[c] / f->seen : 0.0;
        const double square = f->seen > 0.0 ? f->square[c] / f->seen : 0.0;
        f->mean[c] = mean;
        f->square[c] = square;
    }
    f->samples = 0;
    f->now = 0;
    f->last = -1;
    f->measuring = 0;
}

//// scaling none
    (void)f;
    (void)row;
    (void)c;
//// scaling corpus
    (void)f;
    for (c = 0; c < $COLUMNS; c++) {
        const double deviation = $N_features_deviation[c];
        row[c] = deviation >= $STILL ? (float)(((double)row[c] - $N_features_mean[c]) / deviation) : 0.0f;
    }
//// scaling running
    f->seen = f->seen + 1.0 < $LONGEST ? f->seen + 1.0 : $LONGEST;
    for (c = 0; c < $COLUMNS; c++) {
        const double x = (double)row[c];
        f->mean[c] += (x - f->mean[c]) / f->seen;
        f->square[c] += (x * x - f->square[c]) / f->seen;
    }
    for (c = 0; c < $COLUMNS; c++) {
        const double variance = f->square[c] - f->mean[c] * f->mean[c];
        const double deviation = variance > 0.0 ? sqrt(variance) : 0.0;
        row[c] = deviation >= $STILL ? (float)(((double)row[c] - f->mean[c]) / deviation) : 0.0f;
    }
//// scaling utterance
    if (f->measuring) {
        f->seen += 1.0;
        for (c = 0; c < $COLUMNS; c++) {
            f->mean[c] += (double)row[c];
            f->square[c] += (double)row[c] * (double)row[c];
        }
        return;
    }
    for (c = 0; c < $COLUMNS; c++) {
        const double variance = f->square[c] - f->mean[c] * f->mean[c];
        const double deviation = variance > 0.0 ? sqrt(variance) : 0.0;
        row[c] = deviation >= $STILL ? (float)(((double)row[c] - f->mean[c]) / deviation) : 0.0f;
    }
//// moments none
//// moments corpus
//// moments running
    for (i = 0; i < $COLUMNS; i++) {
        const double mean = $N_features_mean[i], deviation = $N_features_deviation[i];
        f->mean[i] = mean;
        f->square[i] = deviation * deviation + mean * mean;
    }
    f->seen = $PRIOR;
//// moments utterance
    for (i = 0; i < $COLUMNS; i++) {
        f->mean[i] = 0.0;
        f->square[i] = 0.0;
    }
    f->seen = 0.0;
