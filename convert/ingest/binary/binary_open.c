/* Opens a binary input as a row source: reads its header, copies input that is not seekable to a
 * temporary file, and checks lengths. */
#include "convert/ingest/binary/binary.h"
#include "convert/ingest/binary/npy_array.h"

#include <string.h>

/* State of slc_binary_open. */
struct opening {
    const struct slc_binary_request *request;
    struct slc_spool *spool; /* temporary file with parts of the input; NULL until it is needed */
    struct slc_binary binary;
};

static enum slc_status need_spool(struct opening *opening, struct slc_error *err)
{
    return opening->spool ? SLC_OK
                          : slc_spool_create(opening->request->spool, &opening->spool, err);
}

/* Decompresses a whole input and appends it to the spool. */
static enum slc_status
fill_spool(const struct opening *opening, struct slc_input *input, struct slc_error *err)
{
    const struct slc_binary_request *request = opening->request;
    size_t got = 1;

    while (got > 0) {
        SLC_TRY(slc_input_read(input, request->buffer, request->buffer_bytes, &got, err));
        if (got > 0) {
            SLC_TRY(slc_spool_append(opening->spool, request->buffer, got, err));
        }
    }
    return SLC_OK;
}

/* Makes a view of an input, in which all bytes can be read at any offset. If the input does not
 * allow this, its bytes are copied to the spool. */
static enum slc_status view_input(struct opening *opening,
                                  struct slc_input *input,
                                  struct slc_bytes_view *view,
                                  struct slc_error *err)
{
    struct slc_input_info info;

    slc_input_info(input, &info);
    *view = (struct slc_bytes_view){.files = slc_files_or_system(opening->request->spool->files),
                                    .name = info.name};
    if (info.seekable) {
        view->fd = slc_input_fd(input);
        view->bytes = info.stored_bytes;
        return SLC_OK;
    }
    SLC_TRY(need_spool(opening, err));
    view->fd = slc_spool_fd(opening->spool);
    view->begin = slc_spool_bytes(opening->spool);
    SLC_TRY(fill_spool(opening, input, err));
    view->bytes = slc_spool_bytes(opening->spool) - view->begin;
    return SLC_OK;
}

/* Opens a format whose header describes the whole tensor (SPLATT, GenTen, ALTO). */
static enum slc_status open_headed(struct opening *opening, struct slc_error *err)
{
    unsigned char head[SLC_INPUT_PEEK_BYTES];
    struct slc_bytes_view view;
    size_t head_bytes;
    const unsigned char *peeked = slc_input_peek(opening->request->input, &head_bytes);

    memcpy(head, peeked, head_bytes);
    /* Check the header first, so that a faulty header is reported before anything is copied. */
    SLC_TRY(slc_binary_header(head, head_bytes, NULL, &opening->binary, err));
    SLC_TRY(view_input(opening, opening->request->input, &view, err));
    return slc_binary_header(head, head_bytes, &view, &opening->binary, err);
}

static enum slc_status open_pair(struct opening *opening, struct slc_error *err)
{
    struct slc_bytes_view coords, values;

    if (!opening->request->values) {
        return slc_fail_field(err, SLC_ERR_INPUT, SLC_FIELD_VALUES_FILE,
                              "%s are coordinates: name the file of values, too",
                              slc_dialect_name(opening->request->dialect));
    }
    SLC_TRY(view_input(opening, opening->request->input, &coords, err));
    SLC_TRY(view_input(opening, opening->request->values, &values, err));
    return slc_npy_pair(&coords, &values, &opening->binary, err);
}

static enum slc_status open_dense(struct opening *opening, struct slc_error *err)
{
    struct slc_bytes_view elements;

    SLC_TRY(view_input(opening, opening->request->input, &elements, err));
    return slc_npy_dense(&elements, &opening->binary, err);
}

static enum slc_status open_npz(struct opening *opening, struct slc_error *err)
{
    struct slc_bytes_view file;

    SLC_TRY(view_input(opening, opening->request->input, &file, err));
    SLC_TRY(need_spool(opening, err));
    return slc_npz_read(&file, opening->spool, opening->request->buffer,
                        opening->request->buffer_bytes, &opening->binary, err);
}

static void fill_header(const struct slc_binary *binary, struct slc_text_header *header)
{
    /* Order 0 means that neither the header nor a nonzero determines the mode sizes. */
    bool nothing = binary->nnz == 0 && !binary->has_dims;

    *header = (struct slc_text_header){.dialect = binary->dialect,
                                       .order = nothing ? 0 : binary->order,
                                       .has_dims = binary->has_dims,
                                       .has_nnz = !binary->dense,
                                       .nnz = binary->nnz,
                                       .index_base = 0,
                                       .has_values = true};
    memcpy(header->dims, binary->dims, sizeof header->dims);
}

enum slc_status slc_binary_open(const struct slc_binary_request *request,
                                struct slc_text_header *header,
                                struct slc_row_source **source,
                                uint64_t *spooled_bytes,
                                struct slc_error *err)
{
    struct opening opening = {.request = request, .binary = {.dialect = request->dialect}};
    struct slc_input_info info, values = {.stored_bytes = 0};
    enum slc_status status;

    *source = NULL;
    *spooled_bytes = 0;
    slc_input_info(request->input, &info);
    if (request->values) {
        slc_input_info(request->values, &values);
    }
    if (request->dialect == SLC_DIALECT_NPY_DENSE ||
        (request->dialect == SLC_DIALECT_NPY && request->values == NULL)) {
        status =
            request->values == NULL
                ? open_dense(&opening, err)
                : slc_fail(err, SLC_ERR_INPUT,
                           "a second input, %s, is for .npy coordinates, not for a dense array",
                           values.name);
    } else if (request->dialect >= SLC_DIALECT_NPY) {
        status = open_pair(&opening, err);
    } else if (request->values) {
        status = slc_fail(
            err, SLC_ERR_INPUT,
            "a second input, %s, is for .npy coordinates only, but this is not a .npy file",
            values.name);
    } else if (request->dialect == SLC_DIALECT_NPZ) {
        status = open_npz(&opening, err);
    } else {
        status = open_headed(&opening, err);
    }
    if (status != SLC_OK) {
        slc_spool_destroy(opening.spool);
        return status;
    }
    opening.binary.keep_zeros = request->keep_zeros;
    *spooled_bytes = opening.spool ? slc_spool_bytes(opening.spool) : 0;
    fill_header(&opening.binary, header);
    return slc_binary_source_open(&opening.binary, opening.spool, info.name,
                                  info.stored_bytes + values.stored_bytes, header, source, err);
}
