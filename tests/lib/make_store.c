/* Draws random tensors and writes their stores. */
#include "make_store.h"

#include "faulty_files.h"

#include "base/random.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct nonzero {
    slc_u128 key;
    double value;
};

static int by_key(const void *a, const void *b)
{
    const struct nonzero *left = a;
    const struct nonzero *right = b;

    return left->key < right->key ? -1 : left->key > right->key;
}

/* Allocations of the harness bypass the fault points, which are for the code under test. */
static void *need(size_t count, size_t bytes)
{
    void *memory = calloc(count == 0 ? 1 : count, bytes);

    if (memory == NULL) {
        fprintf(stderr, "make_store: no memory for %zu x %zu bytes\n", count, bytes);
        abort();
    }
    return memory;
}

static double draw_value(enum slc_made_values values, uint64_t seed, uint64_t index)
{
    double value = slc_random_normal(seed, 100, index);

    switch (values) {
    case SLC_MADE_ONES:
        return 1.0;
    case SLC_MADE_COUNTS:
        return 1.0 + (double)slc_random_below(seed, 101, index, 9);
    case SLC_MADE_FLOATS:
        value = (double)(float)value;
        break;
    case SLC_MADE_FEW:
        return 0.25 + 0.5 * (double)slc_random_below(seed, 102, index, 7);
    case SLC_MADE_EVEN_FLOATS: /* two of the four bytes of a float vary */
        return 1.0 + 0x1p-23 * (double)slc_random_below(seed, 103, index, 1 << 16);
    case SLC_MADE_EVEN_DOUBLES: /* three of the eight bytes of a double vary */
        return 1.0 + 0x1p-36 * (double)slc_random_below(seed, 104, index, 1 << 24);
    case SLC_MADE_DOUBLES:
    case SLC_MADE_VALUES:
        break;
    }
    return value == 0 ? 1.0 : value;
}

void slc_made_tensor_create(struct slc_made_tensor *tensor,
                            unsigned order,
                            const uint64_t *dims,
                            uint64_t nnz,
                            enum slc_made_values values,
                            uint64_t seed)
{
    struct nonzero *drawn = need(nnz, sizeof *drawn);

    memset(tensor, 0, sizeof *tensor);
    tensor->order = order;
    memcpy(tensor->dims, dims, order * sizeof dims[0]);
    if (slc_key_layout_init(&tensor->keys, order, dims, NULL) != SLC_OK) {
        fprintf(stderr, "make_store: these lengths have no keys\n");
        abort();
    }
    tensor->content_keys = tensor->keys;
    for (uint64_t i = 0; i < nnz; i++) {
        uint64_t coords[SLC_MAX_ORDER];

        for (unsigned mode = 0; mode < order; mode++) {
            coords[mode] = slc_random_below(seed, mode, i, dims[mode]);
        }
        drawn[i].key = slc_key_encode(&tensor->keys, coords);
        drawn[i].value = draw_value(values, seed, i);
    }
    if (nnz > 0) {
        qsort(drawn, nnz, sizeof *drawn, by_key);
    }
    tensor->key_lo = need(nnz, sizeof *tensor->key_lo);
    tensor->key_hi = need(nnz, sizeof *tensor->key_hi);
    tensor->values = need(nnz, sizeof *tensor->values);
    for (uint64_t i = 0; i < nnz; i++) {
        if (i > 0 && drawn[i].key == drawn[i - 1].key) {
            continue;
        }
        tensor->key_lo[tensor->nnz] = (uint64_t)drawn[i].key;
        tensor->key_hi[tensor->nnz] = (uint64_t)(drawn[i].key >> 64);
        tensor->values[tensor->nnz++] = drawn[i].value;
    }
    free(drawn);
}

void slc_made_tensor_rekey(const struct slc_made_tensor *tensor,
                           struct slc_fiber_run run,
                           struct slc_made_tensor *other)
{
    struct nonzero *moved = need(tensor->nnz, sizeof *moved);

    *other = *tensor;
    if (slc_key_layout_init_run(&other->keys, tensor->order, tensor->dims, run, NULL) != SLC_OK) {
        fprintf(stderr, "make_store: there is no such run\n");
        abort();
    }
    for (uint64_t i = 0; i < tensor->nnz; i++) {
        uint64_t coords[SLC_MAX_ORDER];

        slc_key_decode(&tensor->keys, slc_key_join(tensor->key_lo[i], tensor->key_hi[i]), coords);
        moved[i] = (struct nonzero){slc_key_encode(&other->keys, coords), tensor->values[i]};
    }
    if (tensor->nnz > 0) {
        qsort(moved, tensor->nnz, sizeof *moved, by_key);
    }
    other->key_lo = need(tensor->nnz, sizeof *other->key_lo);
    other->key_hi = need(tensor->nnz, sizeof *other->key_hi);
    other->values = need(tensor->nnz, sizeof *other->values);
    for (uint64_t i = 0; i < tensor->nnz; i++) {
        other->key_lo[i] = (uint64_t)moved[i].key;
        other->key_hi[i] = (uint64_t)(moved[i].key >> 64);
        other->values[i] = moved[i].value;
    }
    free(moved);
}

void slc_made_tensor_destroy(struct slc_made_tensor *tensor)
{
    free(tensor->key_lo);
    free(tensor->key_hi);
    free(tensor->values);
    memset(tensor, 0, sizeof *tensor);
}

/* End of the tile that starts at nonzero `begin`, by count and extent. */
static uint64_t plain_tile_end(const struct slc_made_tensor *tensor, uint64_t begin)
{
    const uint64_t most = tensor->tile_nnz != 0 ? tensor->tile_nnz : SLC_TILE_NNZ;
    uint64_t min[SLC_MAX_ORDER];
    uint64_t max[SLC_MAX_ORDER];

    for (uint64_t i = begin; i < tensor->nnz; i++) {
        uint64_t coords[SLC_MAX_ORDER];

        if (i - begin == most) {
            return i;
        }
        slc_key_decode(&tensor->keys, (slc_u128)tensor->key_hi[i] << 64 | tensor->key_lo[i],
                       coords);
        for (unsigned mode = 0; mode < tensor->order; mode++) {
            if (i == begin || coords[mode] < min[mode]) {
                min[mode] = coords[mode];
            }
            if (i == begin || coords[mode] > max[mode]) {
                max[mode] = coords[mode];
            }
            if (max[mode] - min[mode] >= UINT32_MAX) {
                return i;
            }
        }
    }
    return tensor->nnz;
}

static bool same_fiber(const struct slc_made_tensor *tensor, uint64_t a, uint64_t b)
{
    return (slc_key_join(tensor->key_lo[a], tensor->key_hi[a]) >> tensor->keys.run.bits) ==
           (slc_key_join(tensor->key_lo[b], tensor->key_hi[b]) >> tensor->keys.run.bits);
}

uint64_t slc_made_tile_end(const struct slc_made_tensor *tensor, uint64_t begin)
{
    const uint64_t most = plain_tile_end(tensor, begin);
    uint64_t end = most;

    if (!tensor->whole_fibers || most == tensor->nnz) {
        return most;
    }
    while (end > begin && same_fiber(tensor, end - 1, most)) {
        end--;
    }
    return end > begin ? end : most;
}

enum slc_status slc_made_tiles_append(const struct slc_made_tensor *tensor,
                                      enum slc_codec codec,
                                      struct slc_writer *writer,
                                      struct slc_error *err)
{
    struct slc_encoder *encoder;
    enum slc_status status = slc_encoder_create(&tensor->keys, codec, &encoder, err);

    if (status != SLC_OK) {
        return status;
    }
    status = slc_encoder_sum_over(encoder, &tensor->content_keys, err);
    for (uint64_t begin = 0; begin < tensor->nnz && status == SLC_OK;) {
        uint64_t end = slc_made_tile_end(tensor, begin);
        struct slc_tile_source source = {
            .nnz = (uint32_t)(end - begin),
            .key_lo = tensor->key_lo + begin,
            .key_hi = tensor->keys.bits > 64 ? tensor->key_hi + begin : NULL,
            .values = tensor->values + begin,
        };
        struct slc_tile_blob blob;

        status = slc_tile_encode(encoder, &source, &blob, err);
        if (status == SLC_OK) {
            status = slc_writer_append(writer, &blob, err);
        }
        begin = end;
    }
    slc_encoder_destroy(encoder);
    return status;
}

static enum slc_status write_blocks(const struct slc_made_tensor *tensor,
                                    enum slc_layout_kind layout,
                                    unsigned mode,
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
        .layout = layout,
        .layout_mode = mode,
        .order = tensor->order,
        .dims = tensor->dims,
        .run = tensor->keys.run,
        .content_run = &tensor->content_keys.run,
        .codec = codec,
        .block_bytes = block_bytes,
    };
    struct slc_writer *writer;
    enum slc_status status = slc_writer_open(&options, &writer, err);

    if (status != SLC_OK) {
        return status;
    }
    status = slc_made_tiles_append(tensor, codec, writer, err);
    if (status != SLC_OK) {
        slc_writer_abandon(writer);
        return status;
    }
    return slc_writer_finish(writer, summary, err);
}

enum slc_status slc_made_blocks_write(const struct slc_made_tensor *tensor,
                                      const struct slc_files *files,
                                      const char *path,
                                      enum slc_codec codec,
                                      uint64_t block_bytes,
                                      struct slc_writer_summary *summary,
                                      struct slc_error *err)
{
    return write_blocks(tensor, SLC_LAYOUT_BLCO, 0, files, path, codec, block_bytes, summary, err);
}

enum slc_status slc_made_fibers_write(const struct slc_made_tensor *tensor,
                                      unsigned mode,
                                      const char *path,
                                      enum slc_codec codec,
                                      uint64_t block_bytes,
                                      struct slc_writer_summary *summary,
                                      struct slc_error *err)
{
    struct slc_made_tensor rekeyed;
    enum slc_status status;

    slc_made_tensor_rekey(
        tensor, (struct slc_fiber_run){mode, slc_bits_for_length(tensor->dims[mode])}, &rekeyed);
    rekeyed.whole_fibers = true;
    status = write_blocks(&rekeyed, SLC_LAYOUT_FIBER, mode, NULL, path, codec, block_bytes, summary,
                          err);
    slc_made_tensor_destroy(&rekeyed);
    return status;
}

void slc_made_manifest(const struct slc_made_tensor *tensor,
                       const struct slc_writer_summary *summary,
                       enum slc_codec codec,
                       struct slc_manifest *manifest)
{
    memset(manifest, 0, sizeof *manifest);
    manifest->order = tensor->order;
    memcpy(manifest->dims, tensor->dims, sizeof manifest->dims);
    manifest->nnz = summary->nnz;
    manifest->value_type = summary->value_type;
    manifest->sum_of_squares = summary->sum_of_squares;
    manifest->content_sum = summary->content_sum;
    manifest->layout_count = 1;
    manifest->layouts[0] = (struct slc_store_layout){
        .file = "blco.blk",
        .layout = SLC_LAYOUT_BLCO,
        .codec = codec,
        .file_bytes = summary->file_bytes,
        .block_count = summary->block_count,
        .index_bytes = summary->index_bytes,
        .header_hash = summary->header_hash,
    };
    manifest->origin = (struct slc_store_origin){
        .source = "made by a test",
        .dialect = "frostt",
        .index_base = 1,
        .entries_read = summary->nnz,
        .duplicate_policy = "sum",
        .writer = "make_store",
    };
}

enum slc_status slc_made_store_write(const struct slc_made_tensor *tensor,
                                     const struct slc_files *files,
                                     const char *path,
                                     enum slc_codec codec,
                                     uint64_t block_bytes,
                                     struct slc_error *err)
{
    const struct slc_files *table = files != NULL ? files : slc_quick_files();
    struct slc_writer_summary summary;
    struct slc_manifest manifest;
    char file[4096];
    enum slc_status status;
    int rc = table->make_folder(table->self, path);

    if (rc < 0 && rc != -EEXIST) {
        return slc_fail_errno(err, -rc, path, "creating the folder");
    }
    snprintf(file, sizeof file, "%s/blco.blk", path);
    status = slc_made_blocks_write(tensor, table, file, codec, block_bytes, &summary, err);
    if (status == SLC_OK) {
        slc_made_manifest(tensor, &summary, codec, &manifest);
        status = slc_manifest_write(table, path, &manifest, err);
    }
    return status;
}
