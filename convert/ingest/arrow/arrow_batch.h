/* Checks the arrays of a batch and gives access to their elements. */
#ifndef SLC_CONVERT_ARROW_BATCH_H
#define SLC_CONVERT_ARROW_BATCH_H

#include "convert/ingest/arrow/arrow_type.h"

/* A used column of the schema. */
struct slc_arrow_column {
    const char *name;
    int64_t child;               /* number in the schema, from 0 */
    bool coded;                  /* true if the column has a dictionary */
    struct slc_arrow_type type;  /* type of the values (in the dictionary, if any) */
    struct slc_arrow_type codes; /* type of the indices into the dictionary */
    struct slc_arrow_zone *zone; /* NULL if the type has no zone */
};

/* An array of elements that was checked. Element i is at position offset + i of the buffers. */
struct slc_arrow_vector {
    const uint8_t *valid; /* bitmap of the elements that are not null; NULL if none is null */
    const uint8_t *data;  /* elements, offsets or views */
    const char *heap;     /* strings with offsets: the bytes of all strings */
    /* strings as views: buffers of long strings and their sizes */
    const void *const *heaps;
    const int64_t *heap_bytes;
    int64_t heap_count;
    int64_t offset, length;
};

/* A batch of rows, with vectors for the used columns. `refs` counts its users. */
struct slc_arrow_batch {
    struct ArrowArray array;
    const uint8_t *valid; /* bitmap of the rows that are not null; NULL if none is null */
    int64_t rows;
    unsigned refs;
    struct slc_arrow_vector *vectors; /* one per used column */
    struct slc_arrow_vector *dictionaries;
};

/* Checks an array from a producer and makes a batch of it. `children` is the number of columns of
 * the schema. Ownership: `array` is moved, also after an error; release the batch with
 * slc_arrow_batch_destroy. Errors: SLC_ERR_INPUT for lengths, offsets, buffers or children that
 * contradict the schema; SLC_ERR_MEMORY. Cost: independent of the number of rows. */
enum slc_status slc_arrow_batch_create(struct ArrowArray *array,
                                       const struct slc_arrow_column *columns,
                                       unsigned count,
                                       int64_t children,
                                       struct slc_arrow_batch **batch,
                                       struct slc_error *err) SLC_NODISCARD;
void slc_arrow_batch_destroy(struct slc_arrow_batch *batch);

static inline bool slc_arrow_bit(const uint8_t *bits, int64_t at)
{
    return (bits[at >> 3] >> (at & 7) & 1) != 0;
}

static inline bool slc_arrow_is_null(const struct slc_arrow_vector *vector, int64_t element)
{
    return vector->valid != NULL && !slc_arrow_bit(vector->valid, vector->offset + element);
}

#endif
