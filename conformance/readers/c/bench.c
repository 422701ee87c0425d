/* bench.c: how fast the C reader is. `bench FILE` prints one line of JSON, medians:

   load_ms    idx_read of the whole file, memory allocated and given back
   map_ms     idx_map and idx_free
   random_us  idx_item of one random item of the map into a buffer
*/
#define _POSIX_C_SOURCE 200809L

#include "idx.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 15, MAPS = 101, ACCESSES = 100000 };

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int ascending(const void *a, const void *b) {
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static double median(double *seconds, size_t count) {
    qsort(seconds, count, sizeof *seconds, ascending);
    return seconds[count / 2];
}

static void must(int status) {
    if (status == IDX_OK) return;
    fprintf(stderr, "error: %s\n", idx_message(status));
    exit(1);
}

static double random_access(const idx_array *array, unsigned char *item) {
    static volatile unsigned char seen; /* so that nothing is left out */
    uint64_t state = 88172645463325252u;
    double start = now();
    for (int i = 0; i < ACCESSES; i++) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        must(idx_item(array, (size_t)(state % array->items), item));
        seen = item[0];
    }
    (void)seen;
    return (now() - start) / ACCESSES;
}

int main(int argc, char **argv) {
    idx_array array;
    double loads[ROUNDS], maps[MAPS], accesses[ROUNDS];
    if (argc != 2) return fprintf(stderr, "usage: bench FILE\n"), 2;
    must(idx_read(argv[1], &array)); /* the first one warms the cache */
    idx_free(&array);
    for (int i = 0; i < ROUNDS; i++) {
        double start = now();
        must(idx_read(argv[1], &array));
        idx_free(&array);
        loads[i] = now() - start;
    }
    for (int i = 0; i < MAPS; i++) {
        double start = now();
        must(idx_map(argv[1], &array));
        idx_free(&array);
        maps[i] = now() - start;
    }
    must(idx_map(argv[1], &array));
    unsigned char *item = malloc(array.item_nbytes ? array.item_nbytes : 1);
    if (!item || !array.nbytes) return fprintf(stderr, "error: there are no items\n"), 1;
    random_access(&array, item);
    for (int i = 0; i < ROUNDS; i++) accesses[i] = random_access(&array, item);
    printf("{\"load_ms\": %.4f, \"map_ms\": %.4f, \"random_us\": %.4f}\n",
           1e3 * median(loads, ROUNDS), 1e3 * median(maps, MAPS), 1e6 * median(accesses, ROUNDS));
    free(item);
    idx_free(&array);
    return 0;
}
