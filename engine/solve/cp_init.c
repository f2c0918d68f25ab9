/* Reads the starting factors of a run from a folder.
 *
 * The folder may have the model of an earlier state of the tensor, in which some modes had fewer
 * rows (a warm start). Rows correspond by index, because appending keeps indices. If the store of
 * the earlier run still exists and both stores name the indices of a mode, rows correspond by name,
 * even if the tensor was converted again. New rows are random numbers from the seed, with the root
 * mean square of the rows that the file has, so that no component begins with a wrong scale. */
#include "base/error/log.h"
#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "base/squares.h"
#include "engine/solve/cp_state.h"
#include "storage/manifest/name_index.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { PIECE_BYTES = 1 << 20 };

/* A factor that is being read. */
struct reading {
    struct cp_state *state;
    unsigned mode;
    struct slc_matrix *factor;
    struct slc_names *names;     /* names of the tensor's rows; NULL: rows correspond by index */
    struct slc_name_index index; /* index of these names */
    /* Per row of the factor, true if it was read; NULL if rows correspond by index, so that the
     * first rows are read. */
    bool *known;
    struct slc_squares *squares; /* sums of squares of the columns, over the rows read */
    uint64_t read;               /* number of rows read */
};

enum slc_status cp_init_find(struct cp_state *state, struct slc_error *err)
{
    const struct slc_cp_options *options = state->options;
    const struct slc_manifest *manifest = &state->store->manifest;
    struct slc_error fault = SLC_ERROR_INIT;

    memcpy(state->init.rows, state->dims, state->order * sizeof state->dims[0]);
    if (options->init_folder == NULL) {
        return SLC_OK;
    }
    struct slc_run_folder *run = slc_malloc(sizeof *run);
    SLC_TRY(slc_check_memory(run != NULL, err, "for the description of a run"));
    /* If the folder has no model, its factors need all rows. Faults are reported when they are
     * read. */
    if (slc_run_folder_read(slc_files_or_system(options->files), options->init_folder, run,
                            &fault) != SLC_OK ||
        !run->weighted || run->order != state->order) {
        slc_run_folder_close(run);
        slc_free(run);
        return SLC_OK;
    }
    enum slc_status status =
        run->rank == state->rank
            ? SLC_OK
            : slc_fail(err, SLC_ERR_INPUT,
                       "%s has a model of rank %" PRIu32 ", but this run has rank %" PRIu32,
                       options->init_folder, run->rank, state->rank);
    if (status == SLC_OK && run->recorded && run->record.content_sum != manifest->content_sum) {
        status = slc_run_names_open_unchanged(options->files, run, &state->init.names, err);
    }
    for (unsigned n = 0; n < state->order && status == SLC_OK; n++) {
        struct slc_names **names = &state->init.names.names[n];

        if (*names != NULL && slc_manifest_names(manifest, n) == NULL) {
            slc_names_close(*names);
            *names = NULL;
        }
        if (*names != NULL || run->dims[n] < state->dims[n]) {
            state->init.rows[n] = run->dims[n];
            state->init.differs = true;
        }
    }
    slc_run_folder_close(run);
    slc_free(run);
    return status;
}

/* Opens and indexes the names of the mode's rows, if they fit in the budget. */
static enum slc_status read_names(struct reading *reading, struct slc_error *err)
{
    const struct slc_store *store = reading->state->store;
    const struct slc_plan *plan = reading->state->plan;
    const uint64_t rows = reading->factor->rows;

    SLC_TRY(slc_names_open(store->files, store->path,
                           slc_manifest_names(&store->manifest, reading->mode), &reading->names,
                           err));
    const uint64_t count = slc_names_count(reading->names);
    const uint64_t bytes = slc_name_index_memory_bytes(count) + rows;
    if (bytes > plan->budget_bytes - slc_min_u64(plan->minimum_bytes, plan->budget_bytes)) {
        return slc_fail_budget(err, plan->budget_bytes, plan->minimum_bytes + bytes,
                               "matching the rows of mode %u by name", reading->mode + 1);
    }
    reading->known = slc_calloc(rows, sizeof *reading->known);
    SLC_TRY(slc_check_memory(reading->known != NULL, err,
                             "for the names of %" PRIu64 " rows of mode %u", rows,
                             reading->mode + 1));
    return slc_name_index_create(&reading->index, reading->names, count, err);
}

/* Sets *row to the row of the factor that corresponds to row `index` of the file, or to UINT64_MAX
 * if there is none. A row without a name corresponds by index to a row without a name. */
static enum slc_status
find_row(const struct reading *reading, uint64_t index, uint64_t *row, struct slc_error *err)
{
    const char *name = NULL;
    size_t bytes = 0;

    if (reading->names != NULL) {
        SLC_TRY(slc_names_get(reading->state->init.names.names[reading->mode], index, &name, &bytes,
                              err));
    }
    if (name != NULL) {
        SLC_TRY(slc_name_index_find(&reading->index, name, bytes, row, err));
    } else {
        const uint64_t named = reading->names != NULL ? slc_names_count(reading->names) : 0;

        *row = index >= named && index < reading->factor->rows ? index : UINT64_MAX;
    }
    /* The name occurs twice in the file; only its first row is used. */
    if (*row != UINT64_MAX && reading->known != NULL && reading->known[*row]) {
        *row = UINT64_MAX;
    }
    return SLC_OK;
}

/* Reads the rows of the file in pieces, and stores each row in its place. */
static enum slc_status
read_rows(struct reading *reading, struct slc_npy_rows *file, double *piece, struct slc_error *err)
{
    const uint32_t rank = reading->state->rank;
    const uint64_t total = reading->state->init.rows[reading->mode];
    const uint64_t most = PIECE_BYTES / (rank * sizeof *piece);

    for (uint64_t first = 0, count; first < total; first += count) {
        count = total - first < most ? total - first : most;
        SLC_TRY(slc_npy_rows_read(file, first, count, piece, err));
        for (uint64_t i = 0; i < count; i++) {
            uint64_t row;

            SLC_TRY(find_row(reading, first + i, &row, err));
            for (uint32_t r = 0; row != UINT64_MAX && r < rank; r++) {
                const double value = piece[i * rank + r];

                slc_matrix_set(reading->factor, row, r, value);
                slc_squares_add(&reading->squares[r], value);
            }
            if (row != UINT64_MAX && reading->known != NULL) {
                reading->known[row] = true;
            }
            reading->read += row != UINT64_MAX;
        }
    }
    return SLC_OK;
}

/* Scales the random numbers of the new rows. Uniform numbers from 0 to 1 have a mean square of
 * 1/3. */
static void scale_new_rows(struct reading *reading, double *scales)
{
    const uint32_t rank = reading->state->rank;

    for (uint32_t r = 0; r < rank; r++) {
        const struct slc_squares *sum = &reading->squares[r];
        const double read = (double)reading->read, rms = slc_squares_root(sum, read);
        const double square =
            rms > 0.0 ? slc_squares_total(sum) / read : 1.0 / (double)reading->factor->rows;

        scales[r] = isnormal(square) ? sqrt(3.0 * square) : sqrt(3.0) * rms;
    }
    for (uint64_t row = reading->known != NULL ? 0 : reading->read; row < reading->factor->rows;
         row++) {
        if (reading->known == NULL || !reading->known[row]) {
            slc_dense_scale_rows(reading->factor, row, row + 1, scales);
        }
    }
}

static enum slc_status fill_factor(struct reading *reading, const char *path, struct slc_error *err)
{
    struct cp_state *state = reading->state;
    const unsigned mode = reading->mode;
    struct slc_npy_rows *file = NULL;
    double *piece = slc_malloc(PIECE_BYTES);

    reading->squares = slc_calloc(state->rank, sizeof *reading->squares);
    enum slc_status status = slc_check_memory(piece != NULL && reading->squares != NULL, err,
                                              "for reading the factor of mode %u", mode + 1);
    SLC_THEN(status, slc_npy_rows_open(state->options->files, path, state->init.rows[mode],
                                       state->rank, &file, err));
    SLC_THEN(status, slc_matrix_create(reading->factor, state->plan->request.precision,
                                       state->dims[mode], state->rank, err));
    SLC_THEN(status, slc_dense_fill_uniform(state->dense, reading->factor, state->options->seed,
                                            mode, err));
    if (state->init.names.names[mode] != NULL) {
        SLC_THEN(status, read_names(reading, err));
    }
    SLC_THEN(status, read_rows(reading, file, piece, err));
    if (status == SLC_OK) {
        scale_new_rows(reading, piece);
    }
    slc_npy_rows_close(file);
    slc_free(piece);
    slc_name_index_destroy(&reading->index);
    slc_free(reading->known);
    slc_free(reading->squares);
    return status;
}

/* Reads the factor of a mode, and logs which of its rows are new. */
static enum slc_status read_grown(struct cp_state *state, unsigned mode, struct slc_error *err)
{
    struct reading reading = {
        .state = state, .mode = mode, .factor = &state->result->factors[mode]};
    char *path = slc_run_folder_factor(state->options->init_folder, mode);
    enum slc_status status = slc_check_memory(path != NULL, err, "for the path of a model's file");

    SLC_THEN(status, fill_factor(&reading, path, err));
    const uint64_t fresh = state->dims[mode] - reading.read;
    slc_free(path);
    if (status == SLC_OK && (reading.names != NULL || fresh > 0)) {
        slc_log(SLC_LOG_NOTE,
                "mode %u has %" PRIu64 " new row%s (random start); %" PRIu64
                " rows start from %s, by %s",
                mode + 1, fresh, fresh == 1 ? "" : "s", reading.read, state->options->init_folder,
                reading.names != NULL ? "name" : "index");
    }
    slc_names_close(reading.names);
    return status;
}

static enum slc_status read_factors(struct cp_state *state, struct slc_error *err)
{
    uint32_t rank = state->rank;
    enum slc_status status = SLC_OK;

    if (!state->init.differs) {
        return slc_model_read(state->options->files, state->options->init_folder,
                              state->plan->request.precision, state->order, state->dims,
                              SLC_MAX_ORDER, &rank, state->result->factors, err);
    }
    for (unsigned n = 0; n < state->order && status == SLC_OK; n++) {
        status = read_grown(state, n, err);
    }
    return status;
}

enum slc_status cp_init_read(struct cp_state *state, struct slc_error *err)
{
    const struct slc_cp_options *options = state->options;
    double *lambda = state->result->lambda;
    bool found = false;
    enum slc_status status = read_factors(state, err);

    if (status != SLC_OK || (options->iterations > 0 && state->nonzeros == NULL)) {
        return status;
    }
    /* Without iterations the starting factors are the result, so the result needs their weights,
     * too. Methods that update rows from their nonzeros start from the model, including weights. */
    status = slc_model_read_lambda(options->files, options->init_folder, state->rank, lambda,
                                   &found, err);
    if (status != SLC_OK || !found) {
        return status;
    }
    return slc_dense_scale(state->dense, &state->result->factors[0], lambda, err);
}
