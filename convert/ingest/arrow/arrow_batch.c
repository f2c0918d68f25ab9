#include "convert/ingest/arrow/arrow_batch.h"

#include "base/memory/memory.h"

#include <inttypes.h>
#include <string.h>

/* Limit of lengths and offsets, so that products with widths do not overflow. */
static const int64_t length_max = INT64_C(1) << 40;

static int64_t buffer_count(const struct slc_arrow_type *type)
{
    return type->kind == SLC_ARROW_STRING ? 3 : 2;
}

/* Checks the members of an array that all types have. `elements` is the number of elements that
 * must exist. */
static enum slc_status check_array(const struct ArrowArray *array,
                                   int64_t elements,
                                   const char *what,
                                   const char *name,
                                   struct slc_error *err)
{
    if (array == NULL) {
        return slc_fail(err, SLC_ERR_INPUT, "%s%s is missing", what, name);
    }
    if (array->length < 0 || array->length > length_max || array->offset < 0 ||
        array->offset > length_max || array->null_count < -1 || array->null_count > array->length) {
        return slc_fail(err, SLC_ERR_INPUT,
                        "%s%s has the length %" PRId64 ", the offset %" PRId64 " and %" PRId64
                        " nulls",
                        what, name, array->length, array->offset, array->null_count);
    }
    if (array->length < elements) {
        return slc_fail(err, SLC_ERR_INPUT,
                        "%s%s has %" PRId64 " elements, expected %" PRId64 " or more", what, name,
                        array->length, elements);
    }
    if (array->n_buffers < 0 || (array->n_buffers > 0 && array->buffers == NULL)) {
        return slc_fail(err, SLC_ERR_INPUT, "%s%s has no buffers", what, name);
    }
    return SLC_OK;
}

/* Sets *valid to the bitmap of an array; NULL if no element is null. */
static enum slc_status set_valid(const struct ArrowArray *array,
                                 const uint8_t **valid,
                                 const char *what,
                                 const char *name,
                                 struct slc_error *err)
{
    *valid = array->null_count != 0 && array->n_buffers > 0 ? array->buffers[0] : NULL;
    if (*valid == NULL && array->null_count > 0) {
        return slc_fail(err, SLC_ERR_INPUT, "%s%s has %" PRId64 " nulls, but no bitmap of them",
                        what, name, array->null_count);
    }
    return SLC_OK;
}

/* Sets the buffers of strings. The last offset is the size of their bytes. */
static enum slc_status set_strings(const struct ArrowArray *array,
                                   const struct slc_arrow_type *type,
                                   const char *what,
                                   const char *name,
                                   struct slc_arrow_vector *vector,
                                   struct slc_error *err)
{
    const int64_t at = array->offset + array->length;
    int64_t end = 0;
    int32_t end32 = 0;

    if (array->length == 0) {
        return SLC_OK;
    }
    if (type->width == 8) {
        memcpy(&end, vector->data + at * 8, sizeof end);
    } else {
        memcpy(&end32, vector->data + at * 4, sizeof end32);
        end = end32;
    }
    vector->heap = array->buffers[2];
    if (end < 0 || (end > 0 && vector->heap == NULL)) {
        return slc_fail(err, SLC_ERR_INPUT, "the strings of %s%s end at byte %" PRId64 "%s", what,
                        name, end, end > 0 ? ", but there are none" : "");
    }
    vector->heap_count = end;
    return SLC_OK;
}

/* Sets the buffers of an array of views. After the buffer of the views, the array has any number of
 * buffers with the bytes of the strings, and then one buffer with the sizes of these buffers. */
static enum slc_status set_views(const struct ArrowArray *array,
                                 const char *what,
                                 const char *name,
                                 struct slc_arrow_vector *vector,
                                 struct slc_error *err)
{
    vector->heap_count = array->n_buffers - 3;
    vector->heaps = array->buffers + 2;
    vector->heap_bytes = array->buffers[array->n_buffers - 1];
    if (vector->heap_count > 0 && vector->heap_bytes == NULL) {
        return slc_fail(err, SLC_ERR_INPUT, "%s%s lacks the sizes of its buffers", what, name);
    }
    return SLC_OK;
}

/* Checks an array of a type and sets its vector. */
static enum slc_status set_vector(const struct ArrowArray *array,
                                  int64_t elements,
                                  const struct slc_arrow_type *type,
                                  const char *what,
                                  const char *name,
                                  struct slc_arrow_vector *vector,
                                  struct slc_error *err)
{
    SLC_TRY(check_array(array, elements, what, name, err));
    const bool views = type->kind == SLC_ARROW_VIEW;
    const int64_t expected = buffer_count(type) + (views ? 1 : 0);
    *vector = (struct slc_arrow_vector){.offset = array->offset, .length = array->length};
    if (type->kind == SLC_ARROW_NULL) {
        return SLC_OK; /* the buffers do not matter: some producers have one for the bitmap */
    }
    if (views ? array->n_buffers < expected : array->n_buffers != expected) {
        return slc_fail(err, SLC_ERR_INPUT, "%s%s has %" PRId64 " buffers, expected %" PRId64, what,
                        name, array->n_buffers, expected);
    }
    SLC_TRY(set_valid(array, &vector->valid, what, name, err));
    vector->data = array->buffers[1];
    if (vector->data == NULL && array->length > 0) {
        return slc_fail(err, SLC_ERR_INPUT, "%s%s has no buffer of elements", what, name);
    }
    return type->kind == SLC_ARROW_STRING ? set_strings(array, type, what, name, vector, err)
           : views                        ? set_views(array, what, name, vector, err)
                                          : SLC_OK;
}

static enum slc_status set_column(struct slc_arrow_batch *batch,
                                  const struct slc_arrow_column *column,
                                  unsigned c,
                                  struct slc_error *err)
{
    const struct ArrowArray *child = batch->array.children[column->child];

    SLC_TRY(set_vector(child, batch->array.offset + batch->rows,
                       column->coded ? &column->codes : &column->type, "column ", column->name,
                       &batch->vectors[c], err));
    if (column->coded) {
        SLC_TRY(set_vector(child->dictionary, 0, &column->type, "the dictionary of column ",
                           column->name, &batch->dictionaries[c], err));
    }
    /* The offset of the batch applies to its columns, too. */
    batch->vectors[c].offset += batch->array.offset;
    return SLC_OK;
}

enum slc_status slc_arrow_batch_create(struct ArrowArray *array,
                                       const struct slc_arrow_column *columns,
                                       unsigned count,
                                       int64_t children,
                                       struct slc_arrow_batch **batch,
                                       struct slc_error *err)
{
    struct slc_arrow_batch *made =
        slc_calloc(1, sizeof *made + 2 * (size_t)count * sizeof *made->vectors);
    enum slc_status status = slc_check_memory(made != NULL, err, "for a batch of rows");

    *batch = made;
    if (status != SLC_OK) {
        array->release(array);
        return status;
    }
    made->array = *array;
    array->release = NULL;
    made->refs = 1;
    made->vectors = (struct slc_arrow_vector *)(made + 1);
    made->dictionaries = made->vectors + count;
    SLC_TRY(check_array(&made->array, 0, "the batch", "", err));
    SLC_TRY(set_valid(&made->array, &made->valid, "the batch", "", err));
    made->rows = made->array.length;
    if (made->array.n_children != children || (children > 0 && made->array.children == NULL)) {
        return slc_fail(err, SLC_ERR_INPUT, "the batch has %" PRId64 " columns, expected %" PRId64,
                        made->array.n_children, children);
    }
    for (unsigned c = 0; c < count; c++) {
        SLC_TRY(set_column(made, &columns[c], c, err));
    }
    return SLC_OK;
}

void slc_arrow_batch_destroy(struct slc_arrow_batch *batch)
{
    if (batch != NULL && batch->array.release != NULL) {
        batch->array.release(&batch->array);
    }
    slc_free(batch);
}
