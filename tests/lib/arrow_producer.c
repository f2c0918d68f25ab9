#include "arrow_producer.h"

#include <stdlib.h>
#include <string.h>

const void *slc_copy_buffer(struct slc_producer *p, const void *data, size_t bytes)
{
    void *to = malloc(bytes > 0 ? bytes : 1);

    memcpy(to, data, bytes);
    p->memory[p->pieces++] = to;
    return to;
}

static void release_schema(struct ArrowSchema *schema)
{
    ((struct slc_producer *)schema->private_data)->schemas++;
    schema->release = NULL;
}

static void release_array(struct ArrowArray *array)
{
    ((struct slc_producer *)array->private_data)->batches++;
    array->release = NULL;
}

static void release_stream(struct ArrowArrayStream *stream)
{
    ((struct slc_producer *)stream->private_data)->streams++;
    stream->release = NULL;
}

static int get_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out)
{
    const struct slc_producer *p = stream->private_data;

    *out = p->schema;
    return p->schema_code;
}

static int get_next(struct ArrowArrayStream *stream, struct ArrowArray *out)
{
    struct slc_producer *p = stream->private_data;

    p->asked++;
    if (p->code == 0 && p->sent < p->repeats) {
        *out = p->batch;
        p->sent++;
    } else {
        out->release = NULL;
    }
    return p->code;
}

static const char *get_last_error(struct ArrowArrayStream *stream)
{
    (void)stream;
    return "the disk has gone";
}

void slc_produce(struct slc_producer *p, const char *format, int64_t rows)
{
    *p = (struct slc_producer){.stream = {get_schema, get_next, get_last_error, release_stream, p},
                               .repeats = 1};
    p->column_schema = (struct ArrowSchema){.format = format, .name = "c", .private_data = p};
    p->columns_schema[0] = &p->column_schema;
    p->schema = (struct ArrowSchema){.format = "+s",
                                     .n_children = 1,
                                     .children = p->columns_schema,
                                     .release = release_schema,
                                     .private_data = p};
    p->column = (struct ArrowArray){.length = rows, .n_buffers = 2, .buffers = p->column_buffers};
    p->columns[0] = &p->column;
    p->batch = (struct ArrowArray){.length = rows,
                                   .n_buffers = 1,
                                   .n_children = 1,
                                   .buffers = p->batch_buffers,
                                   .children = p->columns,
                                   .release = release_array,
                                   .private_data = p};
}

void slc_free_buffers(struct slc_producer *p)
{
    for (unsigned i = 0; i < p->pieces; i++) {
        free(p->memory[i]);
    }
    p->pieces = 0;
}
