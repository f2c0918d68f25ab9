/* Prepares the multiplication of a contraction: opens the stream, finds the used indices of short
 * vectors, loads the vectors and the index maps of relabelled modes, and opens the device. */
#include "engine/product/contract_internal.h"

/* Loads the vectors of further results. `source` is the source of the first vector. */
static enum slc_status
load_more(struct slc_contract_run *run, struct slc_operand_source source, struct slc_error *err)
{
    for (unsigned r = 0; r < run->options->more_count; r++) {
        struct slc_operand *operand = &run->more[r];

        *operand = (struct slc_operand){.mode = run->operands[0].mode,
                                        .length = run->operands[0].length,
                                        .used = run->operands[0].used};
        source.path = run->options->more[r].path;
        source.values = run->options->more[r].values;
        source.hash = source.hash != NULL ? &run->hashes[r + 1] : NULL;
        SLC_TRY(slc_operand_load(operand, &source, err));
        run->job.more_vector[r] = operand->vector.buffer.data;
    }
    return SLC_OK;
}

/* Copies the vectors of all results to the columns of one matrix, for a device. */
static enum slc_status join_columns(struct slc_contract_run *run, struct slc_error *err)
{
    const uint64_t rows = slc_contract_vector_rows(run);
    const unsigned results = run->job.results;

    SLC_TRY(slc_matrix_create(&run->columns, SLC_F64, rows, results, err));
    for (uint64_t i = 0; i < rows; i++) {
        double *row = slc_matrix_row_f64(&run->columns, i);

        row[0] = run->job.vector[0][i];
        for (unsigned r = 1; r < results; r++) {
            row[r] = run->job.more_vector[r - 1][i];
        }
    }
    return SLC_OK;
}

/* Loads the vectors, and the maps from store to input of kept modes that are relabelled. */
static enum slc_status load_operands(struct slc_contract_run *run, struct slc_error *err)
{
    enum slc_status status = SLC_OK;

    for (unsigned k = 0; k < run->job.kept_count && status == SLC_OK; k++) {
        const unsigned mode = run->job.kept_mode[k];
        const struct slc_store_permutation *listed =
            slc_manifest_permutation(&run->store.manifest, mode);

        if (listed != NULL) {
            status = slc_store_labels(&run->store, listed, &run->labels[mode], err);
        }
        if (listed != NULL && status == SLC_OK) {
            slc_labels_invert(&run->labels[mode]);
            run->job.index[mode] = run->labels[mode].label;
        }
    }
    for (unsigned k = 0; k < run->job.vector_count && status == SLC_OK; k++) {
        const struct slc_store_permutation *listed =
            slc_manifest_permutation(&run->store.manifest, run->job.vector_mode[k]);
        struct slc_labels *labels = &run->labels[run->job.vector_mode[k]];
        const struct slc_operand_source source = {.files = run->store.files,
                                                  .path = run->options->vectors[k].path,
                                                  .values = run->options->vectors[k].values,
                                                  .labels = listed != NULL ? labels : NULL,
                                                  .hash = run->job.part != NULL ? &run->hashes[0]
                                                                                : NULL};

        if (listed != NULL) {
            status = slc_store_labels(&run->store, listed, labels, err);
        }
        SLC_THEN(status, slc_operand_load(&run->operands[k], &source, err));
        SLC_THEN(status, load_more(run, source, err));
        slc_labels_destroy(labels);
        run->job.vector[k] = run->operands[k].vector.buffer.data;
        run->job.used[k] = slc_operand_is_short(&run->operands[k]) ? &run->operands[k].used : NULL;
    }
    return status;
}

/* If a device multiplies tiles, opens it and passes the vectors to it. */
static enum slc_status open_products(struct slc_contract_run *run, struct slc_error *err)
{
    const struct slc_matrix *matrices[SLC_MAX_ORDER] = {NULL};
    struct slc_used used[SLC_MAX_ORDER] = {{.end = 0}};
    enum slc_status status = SLC_OK;

    if (run->products == NULL) {
        return SLC_OK;
    }
    for (unsigned k = 0; k < run->job.vector_count; k++) {
        matrices[run->job.vector_mode[k]] = &run->operands[k].vector;
        used[run->job.vector_mode[k]] = run->operands[k].used;
    }
    if (run->job.results > 1) {
        SLC_TRY(join_columns(run, err));
        matrices[run->job.vector_mode[0]] = &run->columns;
    }
    status = run->products->open(run->products->self, matrices, used, err);
    run->products_open = status == SLC_OK;
    return status;
}

static enum slc_status
mark_tile(void *context, unsigned worker, struct slc_tile_view *tile, struct slc_error *err)
{
    struct slc_contract_run *run = context;

    slc_contract_count_tile(run, worker);
    return slc_operands_mark(run->operands, run->job.vector_count, tile, err);
}

/* Finds the used indices of all short vectors in one pass over the tiles. */
static enum slc_status find_used(struct slc_contract_run *run, struct slc_error *err)
{
    enum slc_status status = SLC_OK;

    for (unsigned k = 0; k < run->job.vector_count && status == SLC_OK; k++) {
        if (slc_operand_is_short(&run->operands[k])) {
            status = slc_operand_allocate_used(&run->operands[k], err);
        }
    }
    SLC_THEN(status, slc_contract_scan(
                         run, &(struct slc_tile_steps){.context = run, .decode = mark_tile}, err));
    for (unsigned k = 0; k < run->job.vector_count && status == SLC_OK; k++) {
        if (slc_operand_is_short(&run->operands[k])) {
            slc_used_count(&run->operands[k].used);
            run->report->used[k].held = run->operands[k].used.count;
        }
    }
    return status;
}

enum slc_status
slc_contract_start(struct slc_contract_run *run, bool in_order, struct slc_error *err)
{
    struct slc_tile_stream *stream = run->options->stream;
    const bool shortens = slc_contract_has_short(run);
    enum slc_status status = SLC_OK;

    run->tiles = slc_contract_tiles(run) * (shortens ? 2 : 1);
    if (stream != NULL) {
        status = slc_tile_stream_open(
            stream, run->reader, run->workers,
            slc_tile_stream_memory_bytes(stream, run->reader, run->workers, true) +
                run->spare_bytes,
            in_order, err);
    }
    if (shortens) {
        SLC_THEN(status, find_used(run, err));
    }
    SLC_THEN(status, load_operands(run, err));
    SLC_THEN(status,
             slc_buffer_create(&run->memory, run->workers * slc_contract_tile_bytes(&run->job),
                               SLC_PAGES_SMALL, err));
    SLC_TRY(status);
    return open_products(run, err);
}

void slc_contract_release(struct slc_contract_run *run)
{
    if (run->products_open) {
        run->products->close(run->products->self);
        run->products_open = false;
    }
    if (run->options->stream != NULL) {
        slc_tile_stream_close(run->options->stream);
    }
    for (unsigned n = 0; n < SLC_MAX_ORDER; n++) {
        slc_operand_destroy(&run->operands[n]);
        slc_labels_destroy(&run->labels[n]);
    }
    for (unsigned r = 0; r < run->options->more_count; r++) {
        slc_operand_destroy(&run->more[r]);
    }
    slc_matrix_destroy(&run->columns);
    slc_buffer_destroy(&run->memory);
    slc_buffer_destroy(&run->sums);
}
