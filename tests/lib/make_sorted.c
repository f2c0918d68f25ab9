/* Writes block files of layout sorted-n. */
#include "make_sorted.h"

#include "faulty_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A nonzero of the tensor: its row and its position in key order. */
struct placed {
    uint64_t row;
    uint64_t ordinal;
};

static int by_row(const void *a, const void *b)
{
    const struct placed *left = a;
    const struct placed *right = b;

    if (left->row != right->row) {
        return left->row < right->row ? -1 : 1;
    }
    return left->ordinal < right->ordinal ? -1 : left->ordinal > right->ordinal;
}

static int by_ordinal(const void *a, const void *b)
{
    const struct placed *left = a;
    const struct placed *right = b;

    return left->ordinal < right->ordinal ? -1 : left->ordinal > right->ordinal;
}

static void *need(size_t count, size_t bytes)
{
    void *memory = calloc(count == 0 ? 1 : count, bytes);

    if (memory == NULL) {
        fprintf(stderr, "make_sorted: no memory for %zu x %zu bytes\n", count, bytes);
        abort();
    }
    return memory;
}

/* Adds a partition of the nonzeros [begin, end), or several if they are one large row. */
static void add_partitions(struct slc_made_sorted *sorted,
                           struct placed *placed,
                           uint64_t begin,
                           uint64_t end,
                           uint64_t target_nnz)
{
    uint64_t pieces = (end - begin + target_nnz - 1) / target_nnz;
    uint64_t piece_nnz = (end - begin + pieces - 1) / pieces;

    for (uint64_t at = begin; at < end; at += piece_nnz) {
        sorted->begin[sorted->partition_count] = at;
        sorted->continued[sorted->partition_count++] = at > begin;
    }
    qsort(placed + begin, end - begin, sizeof placed[0], by_ordinal);
}

static void
cut(struct slc_made_sorted *sorted, struct placed *placed, uint64_t nnz, uint64_t target_nnz)
{
    uint64_t begin = 0;
    uint64_t row_end;

    for (uint64_t row = 0; row < nnz; row = row_end) {
        for (row_end = row; row_end < nnz && placed[row_end].row == placed[row].row; row_end++) {
        }
        if (row_end - begin > target_nnz && row > begin) {
            add_partitions(sorted, placed, begin, row, target_nnz);
            begin = row;
        }
        if (row_end - begin > target_nnz || row_end == nnz) {
            add_partitions(sorted, placed, begin, row_end, target_nnz);
            begin = row_end;
        }
    }
    sorted->begin[sorted->partition_count] = nnz;
}

void slc_made_sorted_create(struct slc_made_sorted *sorted,
                            const struct slc_made_tensor *tensor,
                            unsigned mode,
                            uint64_t target_nnz)
{
    uint64_t nnz = tensor->nnz;
    struct placed *placed = need(nnz, sizeof *placed);

    memset(sorted, 0, sizeof *sorted);
    sorted->mode = mode;
    sorted->tensor = *tensor;
    sorted->tensor.key_lo = need(nnz, sizeof(uint64_t));
    sorted->tensor.key_hi = need(nnz, sizeof(uint64_t));
    sorted->tensor.values = need(nnz, sizeof(double));
    sorted->begin = need(nnz + 1, sizeof(uint64_t));
    sorted->continued = need(nnz, sizeof(bool));
    for (uint64_t i = 0; i < nnz; i++) {
        uint64_t coords[SLC_MAX_ORDER];

        slc_key_decode(&tensor->keys, slc_key_join(tensor->key_lo[i], tensor->key_hi[i]), coords);
        placed[i] = (struct placed){coords[mode], i};
    }
    if (nnz > 0) {
        qsort(placed, nnz, sizeof *placed, by_row);
    }
    cut(sorted, placed, nnz, target_nnz);
    for (uint64_t i = 0; i < nnz; i++) {
        sorted->tensor.key_lo[i] = tensor->key_lo[placed[i].ordinal];
        sorted->tensor.key_hi[i] = tensor->key_hi[placed[i].ordinal];
        sorted->tensor.values[i] = tensor->values[placed[i].ordinal];
    }
    free(placed);
}

void slc_made_sorted_destroy(struct slc_made_sorted *sorted)
{
    slc_made_tensor_destroy(&sorted->tensor);
    free(sorted->begin);
    free(sorted->continued);
    memset(sorted, 0, sizeof *sorted);
}

enum slc_status slc_made_partitions_append(const struct slc_made_sorted *sorted,
                                           uint64_t from,
                                           uint64_t to,
                                           enum slc_codec codec,
                                           struct slc_writer *writer,
                                           struct slc_error *err)
{
    enum slc_status status = SLC_OK;

    for (uint64_t p = from; p < to && status == SLC_OK; p++) {
        struct slc_made_tensor piece = sorted->tensor;

        piece.nnz = sorted->begin[p + 1] - sorted->begin[p];
        piece.key_lo += sorted->begin[p];
        piece.key_hi += sorted->begin[p];
        piece.values += sorted->begin[p];
        status = slc_writer_next_partition(writer, sorted->continued[p], err);
        if (status == SLC_OK) {
            status = slc_made_tiles_append(&piece, codec, writer, err);
        }
    }
    return status;
}

enum slc_status slc_made_sorted_write(const struct slc_made_sorted *sorted,
                                      const struct slc_files *files,
                                      const char *path,
                                      enum slc_codec codec,
                                      uint64_t block_bytes,
                                      struct slc_writer_summary *summary,
                                      struct slc_error *err)
{
    struct slc_writer_options options = {
        .files = files != NULL ? files : slc_quick_files(),
        .path = path,
        .layout = SLC_LAYOUT_SORTED,
        .layout_mode = sorted->mode,
        .order = sorted->tensor.order,
        .dims = sorted->tensor.dims,
        .run = sorted->tensor.keys.run,
        .content_run = &sorted->tensor.content_keys.run,
        .codec = codec,
        .block_bytes = block_bytes,
    };
    struct slc_writer *writer;
    enum slc_status status = slc_writer_open(&options, &writer, err);

    if (status != SLC_OK) {
        return status;
    }
    status = slc_made_partitions_append(sorted, 0, sorted->partition_count, codec, writer, err);
    if (status != SLC_OK) {
        slc_writer_abandon(writer);
        return status;
    }
    return slc_writer_finish(writer, summary, err);
}

enum slc_status slc_made_store_add_sorted(const struct slc_made_tensor *tensor,
                                          const char *path,
                                          unsigned mode,
                                          uint64_t target_nnz,
                                          enum slc_codec codec,
                                          uint64_t block_bytes,
                                          struct slc_error *err)
{
    const struct slc_files *files = slc_quick_files();
    struct slc_writer_summary summary;
    struct slc_made_sorted sorted;
    struct slc_manifest manifest;
    struct slc_store_layout *layout;
    char file[4096];
    enum slc_status status = slc_manifest_read(files, path, &manifest, err);

    if (status != SLC_OK) {
        return status;
    }
    layout = &manifest.layouts[manifest.layout_count++];
    *layout =
        (struct slc_store_layout){.layout = SLC_LAYOUT_SORTED, .layout_mode = mode, .codec = codec};
    snprintf(layout->file, sizeof layout->file, "sorted-%u.blk", mode + 1);
    snprintf(file, sizeof file, "%s/%s", path, layout->file);
    slc_made_sorted_create(&sorted, tensor, mode, target_nnz);
    status = slc_made_sorted_write(&sorted, files, file, codec, block_bytes, &summary, err);
    slc_made_sorted_destroy(&sorted);
    if (status == SLC_OK) {
        layout->file_bytes = summary.file_bytes;
        layout->block_count = summary.block_count;
        layout->index_bytes = summary.index_bytes;
        layout->header_hash = summary.header_hash;
        status = slc_manifest_write(files, path, &manifest, err);
    }
    return status;
}
