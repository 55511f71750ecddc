/* Reads frames of numbers from standard input, one frame per line, and prints the most probable class of each.
 *
 *     echolearn export model.safetensors --out esn.h
 *     gcc -O3 classify.c -lm -o classify && ./classify < frames.txt
 *
 * Numbers are separated by blanks or tabs. A line with anything else, or with another number of columns than the model
 * takes, ends the program with a message and status 1.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "esn.h"

int main(void)
{
    static esn_state state;
    static char line[32 * esn_inputs + 64];
    float x[esn_inputs], out[esn_outputs], value;
    long number;
    int i, best;
    char *at, *end;
    esn_reset(&state);
    for (number = 1; fgets(line, (int)sizeof line, stdin); number++) {
        for (i = 0, at = line; value = strtof(at, &end), end != at; i++, at = end)
            if (i < esn_inputs)
                x[i] = value;
        at += strspn(at, " \t\r\n");
        if (*at != '\0') {
            fprintf(stderr, "line %ld: '%c' is not part of a number; expected numbers with blanks between, no commas.\n",
                    number, *at);
            return 1;
        }
        if (i == 0)
            continue; /* an empty line */
        if (i != esn_inputs || (!strchr(line, '\n') && !feof(stdin))) {
            fprintf(stderr, "line %ld has %d numbers%s; expected %d, the inputs of the model.\n", number, i,
                    strchr(line, '\n') || feof(stdin) ? "" : " or more", (int)esn_inputs);
            return 1;
        }
        esn_step(&state, x, out);
        for (best = 0, i = 1; i < esn_outputs; i++)
            best = out[i] > out[best] ? i : best;
        printf("%s %.4f\n", esn_classes[best], (double)out[best]);
    }
    return 0;
}
