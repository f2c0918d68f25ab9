/*
 * A binary input becomes a source of rows: its header is read, what cannot be read anywhere is put
 * into a temporary file, and lengths are compared.
 */
#include "convert/binary.h"

#include <string.h>

/* Decompresses all of the input into the spool. */
static enum slc_status
fill_spool(const struct slc_binary_request *request, struct slc_spool *spool, struct slc_error *err)
{
    enum slc_status status = SLC_OK;
    size_t got = 1;

    while (status == SLC_OK && got > 0) {
        status = slc_input_read(request->input, request->room, request->room_bytes, &got, err);
        if (status == SLC_OK && got > 0) {
            status = slc_spool_append(spool, request->room, got, err);
        }
    }
    return status;
}

/* All bytes of the input where they can be read anywhere: in *spool, if they are not already. */
static enum slc_status view_input(const struct slc_binary_request *request,
                                  struct slc_spool **spool,
                                  struct slc_bytes_view *view,
                                  struct slc_error *err)
{
    struct slc_input_info info;
    enum slc_status status;

    slc_input_info(request->input, &info);
    *view = (struct slc_bytes_view){.files = slc_files_or_system(request->spool->files),
                                    .name = info.name};
    if (info.seekable) {
        view->fd = slc_input_fd(request->input);
        view->bytes = info.stored_bytes;
        return SLC_OK;
    }
    status = slc_spool_create(request->spool, spool, err);
    if (status == SLC_OK) {
        status = fill_spool(request, *spool, err);
    }
    if (status == SLC_OK) {
        view->fd = slc_spool_fd(*spool);
        view->bytes = slc_spool_bytes(*spool);
    }
    return status;
}

static void fill_header(const struct slc_binary *binary, struct slc_text_header *header)
{
    *header = (struct slc_text_header){.dialect = binary->dialect,
                                       .order = binary->order,
                                       .has_dims = binary->has_dims,
                                       .has_nnz = true,
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
    struct slc_binary binary = {.dialect = request->dialect};
    struct slc_spool *spool = NULL;
    struct slc_bytes_view view;
    struct slc_input_info info;
    size_t head_bytes;
    /* Nobody else looks at the head from here on, but reading moves it. */
    const unsigned char *peeked = slc_input_peek(request->input, &head_bytes);
    unsigned char head[SLC_INPUT_PEEK_BYTES];
    enum slc_status status;

    *source = NULL;
    *spooled_bytes = 0;
    memcpy(head, peeked, head_bytes);
    slc_input_info(request->input, &info);
    /* What is wrong with the header is told before anything is copied. */
    status = slc_binary_header(head, head_bytes, NULL, &binary, err);
    if (status == SLC_OK) {
        status = view_input(request, &spool, &view, err);
    }
    if (status == SLC_OK) {
        status = slc_binary_header(head, head_bytes, &view, &binary, err);
    }
    if (status != SLC_OK) {
        slc_spool_destroy(spool);
        return status;
    }
    *spooled_bytes = spool ? slc_spool_bytes(spool) : 0;
    fill_header(&binary, header);
    return slc_binary_source_open(&binary, spool, info.name, info.stored_bytes, header, source,
                                  err);
}
