/* main.c: the C reader in the line protocol of the conformance corpus (../../README.md).

   It answers by idx_read; with --map by idx_map and idx_item. */
#define _POSIX_C_SOURCE 200809L

#include "idx.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_HEX_NBYTES = 4096 };

static const char *type_name(int type) {
    static const char *const names[] = {"uint8", "int8",    "",       "int16",
                                        "int32", "float32", "float64"};
    return names[type - IDX_UINT8];
}

static const char *class_name(int status) {
    static const char *const names[] = {"open",      "header", "prefix", "type",
                                        "dimension", "data",   "memory", "item"};
    return names[-status - 1];
}

/* Native elements to the most significant byte first: what the answers are written in. */
static void to_big_endian(unsigned char *data, size_t nbytes, size_t element_nbytes) {
    const uint16_t one = 1;
    unsigned char first;
    memcpy(&first, &one, 1);
    if (first == 0) return;
    for (size_t start = 0; start < nbytes; start += element_nbytes)
        for (size_t i = start, j = start + element_nbytes - 1; i < j; i++, j--) {
            unsigned char byte = data[i];
            data[i] = data[j];
            data[j] = byte;
        }
}

static uint32_t crc_32(const unsigned char *data, size_t nbytes) {
    uint32_t crc = 0xFFFFFFFF;
    for (size_t i = 0; i < nbytes; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320 : 0);
    }
    return ~crc;
}

/* All elements in native byte order, in memory of their own. */
static unsigned char *elements(const idx_array *array, bool mapped) {
    unsigned char *copy = malloc(array->nbytes ? array->nbytes : 1);
    if (!copy) abort();
    if (!mapped) {
        if (array->nbytes) memcpy(copy, array->data, array->nbytes);
        return copy;
    }
    for (size_t i = 0; array->nbytes && i < array->items; i++)
        if (idx_item(array, i, copy + i * array->item_nbytes) != IDX_OK) abort();
    if (idx_item(array, array->items, copy) != IDX_EITEM) abort();
    return copy;
}

static void answer(const char *path, bool mapped) {
    idx_array array;
    int status = mapped ? idx_map(path, &array) : idx_read(path, &array);
    if (status != IDX_OK) {
        printf("error %s\n", class_name(status));
        return;
    }
    unsigned char *data = elements(&array, mapped);
    to_big_endian(data, array.nbytes, array.element_nbytes);
    printf("ok %s %d", type_name(array.type), array.ndim);
    for (int i = 0; i < array.ndim; i++) printf(" %lu", (unsigned long)array.dims[i]);
    if (array.nbytes > MOST_HEX_NBYTES) {
        printf(" crc %zu %08lx", array.nbytes, (unsigned long)crc_32(data, array.nbytes));
    } else {
        printf(" hex ");
        for (size_t i = 0; i < array.nbytes; i++) printf("%02x", data[i]);
    }
    printf("\n");
    free(data);
    idx_free(&array);
}

int main(int argc, char **argv) {
    bool mapped = argc > 1 && strcmp(argv[1], "--map") == 0;
    char *line = NULL;
    size_t room = 0;
    ssize_t length;
    while ((length = getline(&line, &room, stdin)) > 0) {
        if (line[length - 1] == '\n') line[length - 1] = '\0';
        answer(line, mapped);
        fflush(stdout);
    }
    free(line);
    return 0;
}
