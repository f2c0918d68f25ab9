/* Producer of an Arrow stream for tests. Buffers have exactly the bytes that a type needs, so that
 * a sanitizer finds reads beyond them. */
#ifndef SLC_ARROW_PRODUCER_H
#define SLC_ARROW_PRODUCER_H

#include "sluice/arrow.h"

#include <stddef.h>

/* A stream of equal batches with a column c, which a test may alter before it is read. */
struct slc_producer {
    struct ArrowArrayStream stream;
    struct ArrowSchema schema, column_schema, values_schema;
    struct ArrowSchema *columns_schema[1];
    struct ArrowArray batch, column, values;
    struct ArrowArray *columns[1];
    const void *batch_buffers[1], *column_buffers[6], *values_buffers[6];
    void *memory[12];
    unsigned pieces;
    int schema_code, code;         /* results of get_schema and get_next */
    int repeats;                   /* number of batches of the stream; initially 1 */
    int asked, sent;               /* numbers of calls of get_next, and of batches */
    int schemas, batches, streams; /* how often schemas, batches and the stream were released */
};

/* Makes a stream of one batch of `rows` rows whose column has this format and no nulls. */
void slc_produce(struct slc_producer *producer, const char *format, int64_t rows);
/* Returns a copy of a buffer. Ownership: release all copies with slc_free_buffers. */
const void *slc_copy_buffer(struct slc_producer *producer, const void *data, size_t bytes);
void slc_free_buffers(struct slc_producer *producer);

#define PRODUCE(p, format, ...)                                                                    \
    do {                                                                                           \
        slc_produce(p, format, (int64_t)(sizeof(__VA_ARGS__) / sizeof((__VA_ARGS__)[0])));         \
        (p)->column_buffers[1] = slc_copy_buffer(p, __VA_ARGS__, sizeof(__VA_ARGS__));             \
    } while (0)

#endif
