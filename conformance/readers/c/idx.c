/* idx.c: read IDX files. The header is not believed: sizes are multiplied with care, and compared
   with the length of the file before anything is allocated. */
#define _POSIX_C_SOURCE 200809L
#define _FILE_OFFSET_BITS 64 /* files beyond 2 GB where long has 32 bits */

#include "idx.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEADER_NBYTES (4 + 4 * 255)
#define BLOCK_NBYTES ((size_t)1 << 18) /* byte order is turned while a block is in the cache */

static uint32_t load_32(const unsigned char *at) {
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* Turn elements that have the most significant byte first into native ones; out may be data. */
static void to_native(void *out, const void *data, size_t nbytes, size_t element_nbytes) {
    const unsigned char *from = data;
    unsigned char *to = out;
    switch (element_nbytes) {
    case 2:
        for (size_t i = 0; i < nbytes; i += 2) {
            uint16_t value = (uint16_t)(from[i] << 8 | from[i + 1]);
            memcpy(to + i, &value, 2);
        }
        break;
    case 4:
        for (size_t i = 0; i < nbytes; i += 4) {
            uint32_t value = load_32(from + i);
            memcpy(to + i, &value, 4);
        }
        break;
    case 8:
        for (size_t i = 0; i < nbytes; i += 8) {
            uint64_t value = (uint64_t)load_32(from + i) << 32 | load_32(from + i + 4);
            memcpy(to + i, &value, 8);
        }
        break;
    default:
        if (out != data && nbytes) memcpy(out, data, nbytes);
    }
}

static size_t element_nbytes(int type) {
    switch (type) {
    case IDX_UINT8:
    case IDX_INT8: return 1;
    case IDX_INT16: return 2;
    case IDX_INT32:
    case IDX_FLOAT32: return 4;
    case IDX_FLOAT64: return 8;
    default: return 0;
    }
}

/* Multiply, unless the product is beyond size_t. */
static bool multiply(size_t *product, size_t factor) {
    if (factor && *product > SIZE_MAX / factor) return false;
    *product *= factor;
    return true;
}

/* The sizes that follow from type and dimensions. */
static int measure(idx_array *array) {
    bool empty = false;
    for (int i = 0; i < array->ndim; i++) empty = empty || array->dims[i] == 0;
    array->items = array->ndim ? array->dims[0] : 1;
    array->nbytes = array->item_nbytes = 0;
    if (empty) return IDX_OK; /* 0 times anything is 0, however large the rest */
    size_t nbytes = array->element_nbytes;
    for (int i = 0; i < array->ndim; i++)
        if (!multiply(&nbytes, array->dims[i])) return IDX_EDIMENSION;
    array->nbytes = nbytes;
    array->item_nbytes = nbytes / array->items;
    return IDX_OK;
}

/* Read until `nbytes` are there or the file ends; the number of bytes read, or -1. */
static ssize_t read_up_to(int fd, void *out, size_t nbytes, off_t offset) {
    size_t done = 0;
    while (done < nbytes) {
        size_t want = nbytes - done < (size_t)1 << 30 ? nbytes - done : (size_t)1 << 30;
        ssize_t got = pread(fd, (char *)out + done, want, offset + (off_t)done);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return -1;
        if (got == 0) break;
        done += (size_t)got;
    }
    return (ssize_t)done;
}

/* Judge the header, and the length of the file against it. */
static int parse(int fd, idx_array *array, off_t *data_offset, off_t *file_nbytes) {
    unsigned char header[HEADER_NBYTES];
    struct stat status;
    if (fstat(fd, &status) != 0) return IDX_EOPEN;
    if (!S_ISREG(status.st_mode)) {
        errno = S_ISDIR(status.st_mode) ? EISDIR : EINVAL;
        return IDX_EOPEN;
    }
    ssize_t there = read_up_to(fd, header, sizeof header, 0);
    if (there < 0) return IDX_EOPEN;
    if (there < 4) return IDX_EHEADER;
    if (header[0] || header[1]) return IDX_EPREFIX;
    array->type = header[2];
    array->element_nbytes = element_nbytes(header[2]);
    if (!array->element_nbytes) return IDX_ETYPE;
    array->ndim = header[3];
    if (there < 4 + 4 * array->ndim) return IDX_EHEADER;
    for (int i = 0; i < array->ndim; i++) array->dims[i] = load_32(header + 4 + 4 * i);
    int result = measure(array);
    if (result != IDX_OK) return result;
    *data_offset = 4 + 4 * array->ndim;
    *file_nbytes = status.st_size;
    return (uintmax_t)(status.st_size - *data_offset) == array->nbytes ? IDX_OK : IDX_EDATA;
}

static int read_elements(int fd, idx_array *array, off_t offset) {
    unsigned char *memory = malloc(array->nbytes ? array->nbytes : 1);
    if (!memory) return IDX_EMEMORY;
    array->memory = memory;
    array->data = memory;
    size_t step = array->element_nbytes == 1 ? array->nbytes : BLOCK_NBYTES;
    for (size_t done = 0; done < array->nbytes; done += step) {
        if (step > array->nbytes - done) step = array->nbytes - done;
        ssize_t got = read_up_to(fd, memory + done, step, offset + (off_t)done);
        if (got < 0) return IDX_EOPEN;
        if ((size_t)got < step) return IDX_EDATA; /* somebody shortened it meanwhile */
        to_native(memory + done, memory + done, step, array->element_nbytes);
    }
    return IDX_OK;
}

static int map_elements(int fd, idx_array *array, off_t offset, off_t file_nbytes) {
    if ((uintmax_t)file_nbytes > SIZE_MAX) return IDX_EMEMORY;
    void *map = mmap(NULL, (size_t)file_nbytes, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map == MAP_FAILED) return IDX_EMEMORY;
    array->memory = map;
    array->map_nbytes = (size_t)file_nbytes;
    array->data = (const unsigned char *)map + offset;
    array->as_in_file = true;
    return IDX_OK;
}

static int load(const char *path, idx_array *array, bool mapped) {
    memset(array, 0, sizeof *array);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return IDX_EOPEN;
    off_t offset = 0, file_nbytes = 0;
    int result = parse(fd, array, &offset, &file_nbytes);
    if (result == IDX_OK)
        result = mapped ? map_elements(fd, array, offset, file_nbytes)
                        : read_elements(fd, array, offset);
    int reason = errno;
    close(fd);
    if (result != IDX_OK) idx_free(array);
    errno = reason;
    return result;
}

int idx_read(const char *path, idx_array *array) { return load(path, array, false); }

int idx_map(const char *path, idx_array *array) { return load(path, array, true); }

int idx_item(const idx_array *array, size_t index, void *out) {
    if (index >= array->items) return IDX_EITEM;
    const unsigned char *item = (const unsigned char *)array->data + index * array->item_nbytes;
    to_native(out, item, array->item_nbytes, array->as_in_file ? array->element_nbytes : 1);
    return IDX_OK;
}

void idx_free(idx_array *array) {
    if (array->map_nbytes)
        munmap(array->memory, array->map_nbytes);
    else
        free(array->memory);
    array->memory = NULL;
    array->data = NULL;
    array->map_nbytes = 0;
}

const char *idx_message(int status) {
    switch (status) {
    case IDX_OK: return "fine";
    case IDX_EOPEN: return "the file cannot be opened or read";
    case IDX_EHEADER: return "the file ends inside its header";
    case IDX_EPREFIX: return "the first two bytes are not zero: it is no IDX file";
    case IDX_ETYPE: return "the third byte is none of the six element types of IDX";
    case IDX_EDIMENSION: return "the dimensions multiply to more than this machine can address";
    case IDX_EDATA: return "the elements are fewer or more bytes than the header declares";
    case IDX_EMEMORY: return "the memory does not suffice";
    case IDX_EITEM: return "there is no such item";
    default: return "an unknown status";
    }
}
