/* Listens to speech, 16-bit samples at 16 kHz, and prints the most probable class of every frame of 10 ms.
 *
 *     echolearn export recogniser.safetensors --out esn.h
 *     gcc -O3 listen.c -lm -o listen && ./listen speech.wav
 *     arecord -q -f S16_LE -r 16000 -c 1 -t raw | ./listen -
 *
 * A recogniser that was trained with --normalise running or corpus answers while sound comes in, 62.5 ms after the
 * middle of a frame. One that normalises by the whole utterance reads a recording twice, so it needs a file.
 */
#include <stdio.h>
#include <string.h>
#include "esn.h"
#include "esn_features.h"

static esn_features features;
static esn_state state;

/* moves to the samples of a WAV file and returns how many bytes they take, or says what is wrong with it */
static long find_samples(FILE *file)
{
    unsigned char head[16];
    long size;
    int known = 0;
    if (fread(head, 1, 12, file) != 12 || memcmp(head, "RIFF", 4) != 0 || memcmp(head + 8, "WAVE", 4) != 0)
        return fprintf(stderr, "this is not a WAV file\n"), -1;
    while (fread(head, 1, 8, file) == 8) {
        size = (long)head[4] | (long)head[5] << 8 | (long)head[6] << 16 | (long)(head[7] & 127) << 24;
        if (memcmp(head, "data", 4) == 0)
            return known ? size : (fprintf(stderr, "expected one channel of 16-bit samples at 16000 Hz\n"), -1);
        if (memcmp(head, "fmt ", 4) == 0 && size >= 16 && fread(head, 1, 16, file) == 16) {
            known = head[0] == 1 && head[2] == 1 && head[4] + 256 * head[5] == esn_features_rate && head[6] == 0
                && head[14] == 16;
            size -= 16;
        }
        if (fseek(file, size + size % 2, SEEK_CUR) != 0)
            break;
    }
    return fprintf(stderr, "this WAV file has no samples\n"), -1;
}

static void answer(const float *x, int frame)
{
    static float out[esn_outputs];
    int i, best = 0;
    esn_step(&state, x, out);
    for (i = 1; i < esn_outputs; i++)
        best = out[i] > out[best] ? i : best;
    printf("%.2f %s %.4f\n", frame / 100.0, esn_classes[best], (double)out[best]);
}

int main(int arguments, char **words)
{
    const int live = arguments == 2 && strcmp(words[1], "-") == 0;
    FILE *file = live ? stdin : arguments == 2 ? fopen(words[1], "rb") : NULL;
    float x[esn_features_columns];
    int pass, frame = 0;
    if (file == NULL || (live && esn_features_passes > 1)) {
        fprintf(stderr, "expected a WAV file%s\n", esn_features_passes > 1 ? "" : ", or - for samples from standard input");
        return 2;
    }
    esn_features_reset(&features);
    esn_reset(&state);
    for (pass = 1; pass <= esn_features_passes; pass++) {
        const int last = pass == esn_features_passes;
        long bytes = live ? 0 : (rewind(file), find_samples(file));
        unsigned char two[2];
        if (bytes < 0)
            return 1;
        for (; (live || bytes >= 2) && fread(two, 1, 2, file) == 2; bytes -= live ? 0 : 2) {
            const int sample = two[0] | two[1] << 8;
            if (esn_features_add(&features, (short)(sample < 32768 ? sample : sample - 65536), x) && last)
                answer(x, frame++);
        }
        while (esn_features_end(&features, x))
            if (last)
                answer(x, frame++);
        if (!last)
            esn_features_measured(&features);
    }
    return 0;
}
