#include "engine/product/operand.h"

#include "base/memory/checked.h"
#include "storage/model/npy.h"

#include <math.h>

enum {
    CHUNK_NNZ = 1024, /* nonzeros that are decoded at a time */
    /* Elements that are read from a file at a time. */
    PIECE = 32768,
    /* Fewest indices of a vector that is shortened: with fewer, the vector fits in a cache, and
     * the pass that finds the used indices costs more than it saves. */
    SHORT_LENGTH = 1 << 17,
    /* A vector is shortened if its range has at least this number of indices per nonzero. Then the
     * first pass reads fewer bytes than a quarter of the vector's file. */
    SHORT_INDICES_PER_NONZERO = 4
};

void slc_operand_init(struct slc_operand *operand, const struct slc_reader *reader, unsigned mode)
{
    const struct slc_layout_info *info = slc_reader_info(reader);

    *operand = (struct slc_operand){.mode = mode, .length = info->dims[mode]};
    if (info->nnz == 0) {
        return;
    }
    operand->first = UINT64_MAX;
    for (uint64_t b = 0; b < info->block_count; b++) {
        struct slc_block_entry entry;

        slc_reader_entry(reader, b, &entry);
        operand->first = slc_min_u64(operand->first, entry.min[mode]);
        operand->last = slc_max_u64(operand->last, entry.max[mode]);
    }
    if (operand->length >= SHORT_LENGTH &&
        info->nnz <= operand->length / SHORT_INDICES_PER_NONZERO) {
        operand->used =
            (struct slc_used){.first = operand->first,
                              .end = operand->last + 1,
                              .count = slc_min_u64(info->nnz, operand->last - operand->first + 1)};
    }
}

static uint64_t map_bytes(const struct slc_operand *operand)
{
    return slc_used_words(&operand->used) * sizeof(struct slc_used_word);
}

uint64_t slc_operand_bytes(const struct slc_operand *operand)
{
    const uint64_t elements = slc_used_elements(&operand->used, operand->length);
    uint64_t bytes = slc_matrix_footprint(SLC_F64, elements, 1);

    if (slc_operand_is_short(operand) &&
        !slc_add_u64(bytes, slc_buffer_footprint(map_bytes(operand), SLC_PAGES_MIXED), &bytes)) {
        return UINT64_MAX;
    }
    return bytes;
}

enum slc_status slc_operand_allocate_used(struct slc_operand *operand, struct slc_error *err)
{
    SLC_TRY(slc_buffer_create(&operand->words, map_bytes(operand), SLC_PAGES_MIXED, err));
    operand->used.words = operand->words.data;
    return SLC_OK;
}

static void mark_chunk(const struct slc_operand *operand,
                       const struct slc_tile_view *tile,
                       const struct slc_chunk_view *chunk)
{
    const uint32_t *offset = chunk->offset[operand->mode];

    for (uint32_t i = 0; i < chunk->nnz; i++) {
        slc_used_mark(&operand->used, tile->corner[operand->mode] + offset[i]);
    }
}

enum slc_status slc_operands_mark(const struct slc_operand *operands,
                                  unsigned count,
                                  struct slc_tile_view *tile,
                                  struct slc_error *err)
{
    struct slc_chunk_view chunk = {.nnz = 1};

    while (chunk.nnz > 0) {
        SLC_TRY(tile->next(tile, CHUNK_NNZ, &chunk, err));
        for (unsigned k = 0; k < count; k++) {
            if (slc_operand_is_short(&operands[k])) {
                mark_chunk(&operands[k], tile, &chunk);
            }
        }
    }
    return SLC_OK;
}

/* Stores the elements with input indices first .. first + count - 1 in the order of the store, and
 * adds them to the hash. Errors: SLC_ERR_INPUT for a number that is not finite. */
static enum slc_status store_elements(struct slc_operand *operand,
                                      const struct slc_operand_source *source,
                                      uint64_t first,
                                      uint64_t count,
                                      const double *from,
                                      struct slc_error *err)
{
    const struct slc_labels *labels = source->labels;
    double *vector = operand->vector.buffer.data;

    if (source->hash != NULL) {
        slc_hash_stream_add(source->hash, from, count * sizeof *from);
    }
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t index = labels != NULL ? labels->label[first + i] : first + i;

        if (!isfinite(from[i])) {
            return slc_matrix_refuse(&operand->vector, first + i, 0, from[i], err);
        }
        if (!slc_operand_is_short(operand)) {
            vector[index] = from[i];
        } else if (slc_used_has(&operand->used, index)) {
            vector[slc_used_position(&operand->used, index)] = from[i];
        }
    }
    return SLC_OK;
}

static enum slc_status read_file(struct slc_operand *operand,
                                 const struct slc_operand_source *source,
                                 struct slc_error *err)
{
    double *piece = slc_malloc(PIECE * sizeof *piece);
    struct slc_npy_rows *rows = NULL;
    enum slc_status status = slc_check_memory(piece != NULL, err, "to read a vector");

    SLC_THEN(status,
             slc_npy_rows_open(source->files, source->path, operand->length, 1, &rows, err));
    SLC_THEN(status, slc_matrix_create(&operand->vector, SLC_F64,
                                       slc_used_elements(&operand->used, operand->length), 1, err));
    for (uint64_t first = 0; first < operand->length && status == SLC_OK; first += PIECE) {
        const uint64_t count = slc_min_u64(PIECE, operand->length - first);

        status = slc_npy_rows_read(rows, first, count, piece, err);
        SLC_THEN(status, store_elements(operand, source, first, count, piece, err));
    }
    slc_npy_rows_close(rows);
    slc_free(piece);
    return status;
}

enum slc_status slc_operand_load(struct slc_operand *operand,
                                 const struct slc_operand_source *source,
                                 struct slc_error *err)
{
    if (source->path != NULL) {
        return read_file(operand, source, err);
    }
    SLC_TRY(slc_matrix_create(&operand->vector, SLC_F64,
                              slc_used_elements(&operand->used, operand->length), 1, err));
    return store_elements(operand, source, 0, operand->length, source->values, err);
}

void slc_operand_destroy(struct slc_operand *operand)
{
    slc_matrix_destroy(&operand->vector);
    slc_buffer_destroy(&operand->words);
    *operand = (struct slc_operand){.mode = 0};
}
