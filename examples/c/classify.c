/* Reads frames of numbers from standard input and prints the most probable class of each.
 *
 *     echolearn export model.safetensors --out esn.h
 *     gcc -O3 classify.c -lm -o classify && ./classify < frames.txt
 */
#include <stdio.h>
#include "esn.h"

int main(void)
{
    static esn_state state;
    float x[esn_inputs], out[esn_outputs];
    int i = 0, best;
    esn_reset(&state);
    while (scanf("%f", &x[i]) == 1) {
        if (++i < esn_inputs)
            continue;
        esn_step(&state, x, out);
        for (best = 0, i = 1; i < esn_outputs; i++)
            best = out[i] > out[best] ? i : best;
        printf("%s %.4f\n", esn_classes[best], (double)out[best]);
        i = 0;
    }
    return 0;
}
