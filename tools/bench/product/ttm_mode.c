/* Holds the blocks of the layout of a mode in memory and multiplies them by matrices. */
#include "tools/bench/product/ttm_mode.h"

#include "base/memory/memory.h"
#include "base/random.h"
#include "engine/product/ttm.h"
#include "tools/bench/measure/resident.h"
#include "tools/bench/measure/run.h"

#include <string.h>

enum slc_status ttm_mode_open(struct ttm_mode *mode,
                              const struct slc_store *store,
                              const struct ttm_mode_options *options,
                              struct slc_error *err)
{
    struct fiber_order_options wanted = {.mode = options->mode,
                                         .memory_bytes = options->memory_bytes,
                                         .threads = options->threads,
                                         .quiet = true};

    memset(mode, 0, sizeof *mode);
    mode->options = *options;
    SLC_TRY(bench_temp_folder(options->temp_dir, &mode->folder, err));
    char *path = slc_path_join(mode->folder, "ttm");
    SLC_TRY(slc_check_memory(path != NULL, err, "for a path"));
    wanted.output = path;
    enum slc_status status = fiber_order_open(&mode->order, store, &wanted, err);
    slc_free(path);
    return status;
}

void ttm_mode_close(struct ttm_mode *mode)
{
    ttm_mode_stop(mode);
    fiber_order_close(&mode->order);
    bench_temp_folder_remove(mode->folder);
    mode->folder = NULL;
}

static enum slc_status make_matrix(struct ttm_mode *mode, uint32_t cols, struct slc_error *err)
{
    const uint64_t rows = slc_reader_info(mode->order.reader)->dims[mode->options.mode];

    SLC_TRY(slc_matrix_create(&mode->matrix, mode->options.precision, rows, cols, err));
    for (uint64_t i = 0; i < rows; i++) {
        for (uint32_t r = 0; r < cols; r++) {
            slc_matrix_set(&mode->matrix, i, r, slc_random_f64(1, i, r));
        }
    }
    return SLC_OK;
}

/* Plans the products so that all blocks stay in memory. Fails if they exceed the budget. */
static enum slc_status make_plan(struct ttm_mode *mode, uint32_t cols, struct slc_error *err)
{
    const struct slc_layouts layouts = slc_layouts_one(mode->order.reader);
    const struct slc_plan_request request = {.operation = SLC_OP_TTM,
                                             .mode = mode->options.mode,
                                             .rank = cols,
                                             .precision = mode->options.precision,
                                             .threads = mode->options.threads,
                                             .schedule = SLC_SCHEDULE_FILE,
                                             .memory_bytes = mode->options.memory_bytes,
                                             .cache = true};

    return bench_resident_plan(&layouts, &request, NULL, &mode->plan, NULL, err);
}

enum slc_status ttm_mode_start(struct ttm_mode *mode, uint32_t cols, struct slc_error *err)
{
    const struct slc_layouts layouts = slc_layouts_one(mode->order.reader);
    const struct slc_layout_info *info = slc_reader_info(mode->order.reader);
    struct slc_ttm_division share;

    SLC_TRY(make_plan(mode, cols, err));
    slc_placement_enter(&mode->plan.placement);
    SLC_TRY(make_matrix(mode, cols, err));
    mode->job = (struct slc_ttm_job){.order = info->order,
                                     .mode = mode->options.mode,
                                     .fiber_tiles = info->keys.run.bits > 0 &&
                                                    info->keys.run.mode == mode->options.mode,
                                     .matrix = &mode->matrix};
    slc_ttm_divide(&mode->job, mode->options.threads, mode->options.threads,
                   mode->plan.output_bytes + mode->plan.budget_bytes - mode->plan.total_bytes,
                   &share);
    for (unsigned w = 0; w < mode->options.threads; w++) {
        SLC_TRY(slc_ttm_output_create(&mode->outputs[w], &mode->job, share.room, err));
    }
    SLC_TRY(slc_stream_open(slc_files_system(), &layouts, &mode->plan, &mode->stream, err));
    return bench_scan_pass(mode->stream, err);
}

void ttm_mode_stop(struct ttm_mode *mode)
{
    slc_stream_close(mode->stream);
    mode->stream = NULL;
    slc_matrix_destroy(&mode->matrix);
    memset(&mode->matrix, 0, sizeof mode->matrix);
    for (unsigned w = 0; w < mode->options.threads; w++) {
        slc_ttm_output_destroy(&mode->outputs[w]);
    }
    slc_placement_leave();
}

static enum slc_status
multiply_tile(void *context, unsigned worker, struct slc_tile_view *tile, struct slc_error *err)
{
    struct ttm_mode *mode = context;
    struct slc_ttm_output *output = &mode->outputs[worker];
    uint32_t nnz = 1;

    output->count = 0;
    while (nnz > 0) {
        if (!slc_ttm_has_capacity(output)) {
            mode->counts[worker] += output->count - 1;
            slc_ttm_keep_last(output);
        }
        SLC_TRY(slc_ttm_next(&mode->job, tile, output, &nnz, err));
    }
    mode->counts[worker] += output->count;
    return SLC_OK;
}

enum slc_status ttm_mode_run(struct ttm_mode *mode, enum slc_ttm_form form, struct slc_error *err)
{
    const struct slc_pass pass = {.tiles = {.consumer = {.tile = multiply_tile, .context = mode}}};

    mode->job.form = form;
    memset(mode->counts, 0, sizeof mode->counts);
    enum slc_status status = slc_stream_pass(mode->stream, &pass, err);
    mode->fibers = 0;
    for (unsigned w = 0; w < mode->options.threads; w++) {
        mode->fibers += mode->counts[w];
    }
    return status;
}
