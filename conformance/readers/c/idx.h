/* idx.h: read IDX files, the tensor format of MNIST. C11 and POSIX.

       idx_array images;
       int status = idx_read("train-images-idx3-ubyte", &images);
       if (status != IDX_OK) return fprintf(stderr, "%s\n", idx_message(status)), 1;
       const uint8_t *pixels = images.data;    // images.dims[0] x images.dims[1] x images.dims[2]
       idx_free(&images);
*/
#ifndef IDX_H
#define IDX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the functions return. */
enum {
    IDX_OK = 0,
    IDX_EOPEN = -1,      /* the file cannot be opened or read: errno says why */
    IDX_EHEADER = -2,    /* the file ends inside its header */
    IDX_EPREFIX = -3,    /* the first two bytes are not zero: it is no IDX file */
    IDX_ETYPE = -4,      /* the third byte is none of the six element types */
    IDX_EDIMENSION = -5, /* the dimensions multiply to more bytes than size_t holds */
    IDX_EDATA = -6,      /* the elements are fewer or more bytes than the header declares */
    IDX_EMEMORY = -7,    /* the memory does not suffice */
    IDX_EITEM = -8       /* there is no such item */
};

/* The element types, by the third byte of the header. */
enum {
    IDX_UINT8 = 0x08,
    IDX_INT8 = 0x09,
    IDX_INT16 = 0x0B,
    IDX_INT32 = 0x0C,
    IDX_FLOAT32 = 0x0D,
    IDX_FLOAT64 = 0x0E
};

typedef struct {
    int type;              /* IDX_UINT8 ... */
    int ndim;              /* the number of dimensions, 0 (a scalar) to 255 */
    uint32_t dims[255];    /* the dimensions, outermost first */
    size_t items;          /* entries along dimension 0; of a scalar 1 */
    size_t element_nbytes; /* bytes of one element */
    size_t item_nbytes;    /* bytes of one entry along dimension 0 */
    size_t nbytes;         /* bytes of all elements */
    const void *data;      /* all elements in C order: the last index varies fastest */
    bool as_in_file;       /* data have the most significant byte first (idx_map), or native order */
    void *memory;          /* what idx_free gives back */
    size_t map_nbytes;     /* 0 where it is no map */
} idx_array;

/* Read a whole file: data are in native byte order, aligned, and the caller's. */
int idx_read(const char *path, idx_array *array);

/* Map a file: nothing is read but its header; data lie in the map, as in the file. */
int idx_map(const char *path, idx_array *array);

/* Copy one entry along dimension 0 to out (item_nbytes), in native byte order. */
int idx_item(const idx_array *array, size_t index, void *out);

/* Give back the memory or the map. */
void idx_free(idx_array *array);

/* What a status means, in English. */
const char *idx_message(int status);

#endif
