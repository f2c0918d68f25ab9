/* Finds the top rows of the selected components, one mode after the other. */
#include "report/factors/top.h"

#include "base/memory/checked.h"

#include <inttypes.h>

/* Memory for small objects and for pages of libraries that are not resident yet. */
enum { UNTOUCHED_BYTES = 4 << 20 };

static enum slc_status
choose_components(const struct slc_top_options *options, struct slc_top *top, struct slc_error *err)
{
    const bool all = options->component_count == 0;

    if (options->component_count > SLC_MAX_RANK) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "%" PRIu32 " components are selected, but the limit is %d",
                        options->component_count, SLC_MAX_RANK);
    }
    top->component_count = all ? top->run.rank : options->component_count;
    for (uint32_t i = 0; i < top->component_count; i++) {
        top->components[i] = all ? i : options->components[i];
        if (top->components[i] >= top->run.rank) {
            return slc_fail(err, SLC_ERR_USAGE,
                            "component %" PRIu64
                            " does not exist: the model has components 1 to %" PRIu32,
                            top->components[i] + UINT64_C(1), top->run.rank);
        }
    }
    if (all && options->by_weight) {
        slc_run_folder_by_weight(&top->run, top->components);
    }
    return SLC_OK;
}

static enum slc_status
choose_modes(const struct slc_top_options *options, struct slc_top *top, struct slc_error *err)
{
    const bool all = options->mode_count == 0;

    if (options->mode_count > SLC_MAX_ORDER) {
        return slc_fail(err, SLC_ERR_USAGE, "%u modes are selected, but the limit is %d",
                        options->mode_count, SLC_MAX_ORDER);
    }
    top->mode_count = all ? top->run.order : options->mode_count;
    for (unsigned i = 0; i < top->mode_count; i++) {
        top->modes[i] = all ? i : options->modes[i];
        if (top->modes[i] >= top->run.order) {
            return slc_fail(err, SLC_ERR_USAGE,
                            "mode %" PRIu64 " does not exist: the model has modes 1 to %u",
                            top->modes[i] + UINT64_C(1), top->run.order);
        }
    }
    return SLC_OK;
}

static enum slc_status
choose(const struct slc_top_options *options, struct slc_top *top, struct slc_error *err)
{
    if (options->rows < 1 || options->rows > SLC_TOP_ROWS_MAX) {
        return slc_fail(err, SLC_ERR_USAGE, "%" PRIu64 " rows per mode: the number must be 1 to %d",
                        options->rows, SLC_TOP_ROWS_MAX);
    }
    SLC_TRY(choose_components(options, top, err));
    return choose_modes(options, top, err);
}

/* Allocates memory for all top rows within the budget. */
static enum slc_status
allocate_memory(const struct slc_top_options *options, struct slc_top *top, struct slc_error *err)
{
    uint64_t rows = 0;
    uint64_t at = 0;

    for (unsigned i = 0; i < top->mode_count; i++) {
        top->counts[i] = slc_min_u64(options->rows, top->run.dims[top->modes[i]]);
        rows += top->counts[i] * top->component_count;
    }
    /* The byte count of `rows` does not overflow, because there are at most 16 modes, 4096
     * components and a million rows per component and mode. */
    uint64_t need = slc_memory_resident() + UNTOUCHED_BYTES + slc_run_names_bytes(&top->names) +
                    slc_factor_rows_memory_bytes(top->run.rank) +
                    slc_buffer_footprint(rows * sizeof *top->found[0], SLC_PAGES_SMALL);
    if (need > options->memory_bytes) {
        return slc_fail_budget(err, options->memory_bytes, need,
                               "finding %" PRIu64 " rows of %" PRIu32 " components in %u modes",
                               options->rows, top->component_count, top->mode_count);
    }
    SLC_TRY(slc_buffer_create(&top->memory, rows * sizeof *top->found[0], SLC_PAGES_SMALL, err));
    for (unsigned i = 0; i < top->mode_count; i++) {
        top->found[i] = (struct slc_top_row *)top->memory.data + at;
        at += top->counts[i] * top->component_count;
    }
    return SLC_OK;
}

static enum slc_status find_mode(const struct slc_top_options *options,
                                 struct slc_top *top,
                                 unsigned i,
                                 struct slc_error *err)
{
    const unsigned mode = top->modes[i];
    struct slc_top_rows_query query = {.factor.files = top->run.files,
                                       .factor.length = top->run.dims[mode],
                                       .factor.rank = top->run.rank,
                                       .columns = top->components,
                                       .column_count = top->component_count,
                                       .rows = options->rows,
                                       .by_signed = options->by_signed};

    if (options->folder == NULL) {
        query.factor.matrix = options->model->factors[mode];
        return slc_top_rows_find(&query, top->found[i], err);
    }
    char *path = slc_run_folder_factor(options->folder, mode);
    query.factor.path = path;
    enum slc_status status =
        path == NULL ? slc_fail(err, SLC_ERR_MEMORY, "no memory for the path of a factor")
                     : slc_top_rows_find(&query, top->found[i], err);
    slc_free(path);
    return status;
}

/* Reads shape and weights from the folder or the model in memory. */
static enum slc_status
read_run(const struct slc_top_options *options, struct slc_top *top, struct slc_error *err)
{
    if (options->folder != NULL) {
        return slc_run_folder_read(options->files, options->folder, &top->run, err);
    }
    slc_run_folder_of_model(options->model, &top->run);
    return SLC_OK;
}

static enum slc_status
find(const struct slc_top_options *options, struct slc_top *top, struct slc_error *err)
{
    enum slc_status status = read_run(options, top, err);

    SLC_THEN(status, choose(options, top, err));
    SLC_THEN(status,
             slc_run_names_open(options->files, &top->run, options->store, &top->names, err));
    SLC_THEN(status, allocate_memory(options, top, err));
    for (unsigned i = 0; i < top->mode_count && status == SLC_OK; i++) {
        status = find_mode(options, top, i, err);
    }
    return status;
}

enum slc_status
slc_top_find(const struct slc_top_options *options, struct slc_top **ret_top, struct slc_error *err)
{
    struct slc_top *top = slc_calloc(1, sizeof *top);

    SLC_TRY(slc_check_memory(top != NULL, err, "for the top rows of a run"));
    enum slc_status status = find(options, top, err);
    if (status != SLC_OK) {
        slc_top_destroy(top);
        return status;
    }
    *ret_top = top;
    return SLC_OK;
}

void slc_top_destroy(struct slc_top *top)
{
    if (top != NULL) {
        slc_run_names_close(&top->names);
        slc_run_folder_close(&top->run);
        slc_buffer_destroy(&top->memory);
        slc_free(top);
    }
}

const struct slc_top_row *slc_top_component_rows(const struct slc_top *top, uint32_t c, unsigned m)
{
    return top->found[m] + c * top->counts[m];
}
