/* Calls one kernel of the objects with numbers and arrays from a file, and writes what it returns and its arrays.
 *
 * Input, in words of 8 bytes: number of the kernel, 1 if it is a primitive, number of arguments; of each argument the
 * number of words of an array, or -1 for a number, and these words.  Output: the status or the value of the primitive,
 * the first result, all arrays. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

extern void *const cardan_functions[];
typedef int32_t (*kernel)(int64_t *);
typedef int64_t (*primitive)(double *, double *, double *, double *);

static int64_t word(FILE *file) {
    int64_t found = 0;
    if (fread(&found, sizeof found, 1, file) != 1) exit(2);
    return found;
}

int main(int count, char **arguments) {
    if (count != 3) return 1;
    int64_t slots[256] = {0}, *arrays[32], sizes[32], *place = slots + 9, status;
    FILE *in = fopen(arguments[1], "rb"), *out = fopen(arguments[2], "wb");
    if (!in || !out) return 1;
    int64_t number = word(in), is_primitive = word(in), given = word(in), used = 0;
    for (int64_t k = 0; k < given; k++) {
        int64_t size = word(in);
        if (size < 0) {
            *place++ = word(in);
            continue;
        }
        arrays[used] = malloc(8 * (size + 1));
        for (int64_t i = 0; i < size; i++) arrays[used][i] = word(in);
        *place++ = 0, *place++ = 0, *place++ = size, *place++ = 8, *place++ = (int64_t)(intptr_t)arrays[used];
        *place++ = size, *place++ = 8;
        sizes[used++] = size;
    }
    if (is_primitive) {
        double *a[4]; /* a compiler may assume that the array of other pointers is not read as one of these */
        for (int k = 0; k < 4; k++) a[k] = (double *)arrays[k];
        status = ((primitive)cardan_functions[number])(a[0], a[1], a[2], a[3]);
    } else {
        status = ((kernel)cardan_functions[number])(slots);
    }
    fwrite(&status, 8, 1, out);
    fwrite(slots, 8, 1, out);
    for (int64_t k = 0; k < used; k++) fwrite(arrays[k], 8, sizes[k], out);
    return fclose(out);
}
