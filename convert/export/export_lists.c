#include "convert/export/export.h"

#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "convert/export/input_numbers.h"
#include "convert/export/list_output.h"
#include "convert/export/row_order.h"
#include "convert/forecast/store_trial.h"
#include "storage/scan/tile_scan.h"

#include <pthread.h>
#include <string.h>

enum {
    CHUNK_NNZ = 256,
    SMALL_OBJECTS_BYTES = 512 << 10,
    /* Allowance for pages (program, libraries, stacks) that are first touched after planning. */
    UNTOUCHED_BYTES = 2 << 20
};

/* Costs per nonzero as multiples of the cost of decoding a nonzero. LISTS_OF_DECODE: encoding its
 * numbers in lists, with checksums. SORT_OF_DECODE: sorting it in row-major order, on one thread,
 * and writing the result. Measured on tensors with 0.3 to 2.6 M nonzeros. */
#define LISTS_OF_DECODE 4.0
#define SORT_OF_DECODE  20.0

/* The lists of the tile that a worker processes. */
struct part {
    struct slc_list_part list;
    uint64_t first; /* ordinal of the tile's first nonzero; known after the tile's turn */
    bool placed;    /* the tile's turn has come, and no fault occurred before */
};

struct lists {
    const struct slc_export_options *options;
    struct slc_store store;
    struct slc_input_numbers numbers;
    struct slc_list_output output;
    struct slc_buffer memory;
    struct part *parts; /* one per worker */
    unsigned workers;
    uint64_t done; /* nonzeros of all tiles whose turn has come */
    pthread_mutex_t mutex;
    struct slc_error fault; /* the first fault while writing */
};

static enum slc_status
decode_tile(void *context, unsigned worker, struct slc_tile_view *tile, struct slc_error *err)
{
    struct lists *lists = context;
    struct slc_list_part *part = &lists->parts[worker].list;
    uint64_t indices[SLC_MAX_ORDER][CHUNK_NNZ];
    const uint64_t *coords[SLC_MAX_ORDER];
    struct slc_chunk_view chunk = {.nnz = 1};

    part->count = 0;
    lists->parts[worker].placed = false;
    for (unsigned n = 0; n < SLC_MAX_ORDER; n++) {
        coords[n] = indices[n];
    }
    while (chunk.nnz > 0) {
        SLC_TRY(tile->next(tile, CHUNK_NNZ, &chunk, err));
        for (unsigned n = 0; n < tile->order; n++) {
            for (uint32_t i = 0; i < chunk.nnz; i++) {
                indices[n][i] =
                    slc_input_number(&lists->numbers, n, tile->corner[n] + chunk.offset[n][i]);
            }
        }
        slc_list_part_add(&lists->output.file, part, chunk.nnz, coords, chunk.values);
    }
    slc_list_part_sum(&lists->output.file, part);
    return SLC_OK;
}

static bool has_failed(struct lists *lists)
{
    pthread_mutex_lock(&lists->mutex);
    bool failed = lists->fault.status != SLC_OK;
    pthread_mutex_unlock(&lists->mutex);
    return failed;
}

static bool in_turn(void *context, unsigned worker)
{
    struct lists *lists = context;
    const struct slc_export_options *options = lists->options;
    struct part *part = &lists->parts[worker];

    if (has_failed(lists)) {
        return false;
    }
    part->first = lists->done;
    part->placed = true;
    lists->done += part->list.count;
    slc_list_output_sum(&lists->output, &part->list);
    if (options->progress != NULL) {
        options->progress(options->context, "export", lists->done, lists->store.manifest.nnz);
    }
    return true;
}

static void deliver_rows(void *context, unsigned worker)
{
    struct lists *lists = context;
    const struct part *part = &lists->parts[worker];
    struct slc_error fault = SLC_ERROR_INIT;

    if (part->placed &&
        slc_list_output_write(&lists->output, &part->list, part->first, &fault) != SLC_OK) {
        pthread_mutex_lock(&lists->mutex);
        if (lists->fault.status == SLC_OK) {
            lists->fault = fault;
        }
        pthread_mutex_unlock(&lists->mutex);
    }
}

static uint64_t worker_bytes(const struct slc_layout_info *info)
{
    return slc_list_part_bytes(info->order, SLC_TILE_NNZ);
}

/* Chooses the largest number of workers that fits in memory. */
static enum slc_status divide_memory(struct lists *lists, struct slc_error *err)
{
    const struct slc_layout_info *info = slc_reader_info(lists->store.reader);
    const uint64_t budget = lists->options->memory_bytes;
    const uint64_t fixed = SMALL_OBJECTS_BYTES + UNTOUCHED_BYTES + SLC_OUTPUT_BUFFER_BYTES +
                           slc_memory_resident() + slc_input_numbers_bytes(&lists->store.manifest);
    uint64_t need;

    do {
        need = fixed + slc_tile_scan_memory_bytes(info, lists->workers) +
               slc_buffer_footprint(lists->workers * worker_bytes(info), SLC_PAGES_SMALL);
    } while (budget != 0 && need > budget && lists->workers > 1 && lists->workers-- > 0);
    return budget != 0 && need > budget
               ? slc_fail_budget(err, budget, need + (UINT64_C(1) << 20), "exporting this store")
               : SLC_OK;
}

static enum slc_status allocate_memory(struct lists *lists, struct slc_error *err)
{
    const uint64_t bytes = worker_bytes(slc_reader_info(lists->store.reader));

    SLC_TRY(divide_memory(lists, err));
    SLC_TRY(slc_buffer_create(&lists->memory, lists->workers * bytes, SLC_PAGES_SMALL, err));
    lists->parts = slc_calloc(lists->workers, sizeof *lists->parts);
    SLC_TRY(slc_check_memory(lists->parts != NULL, err, "for %u workers", lists->workers));
    for (unsigned w = 0; w < lists->workers; w++) {
        lists->parts[w].list = (struct slc_list_part){
            .bytes = (uint8_t *)lists->memory.data + w * bytes, .capacity = SLC_TILE_NNZ};
    }
    return SLC_OK;
}

/* Writes the nonzeros in the order of the store's layout. */
static enum slc_status write_lists(struct lists *lists, struct slc_error *err)
{
    const struct slc_tile_steps steps = {
        .context = lists, .decode = decode_tile, .in_turn = in_turn, .deliver = deliver_rows};
    struct slc_tile_scan_options scan = {.files = lists->store.files,
                                         .reader = lists->store.reader,
                                         .workers = 1,
                                         .last_row = UINT64_MAX,
                                         .stop = lists->options->stop};
    enum slc_status status = allocate_memory(lists, err);

    if (status == SLC_OK) {
        scan.workers = lists->workers;
        status = slc_tile_scan(&scan, &steps, err);
    }
    if (status == SLC_OK && lists->fault.status != SLC_OK) {
        status = lists->fault.status;
        if (err != NULL) {
            *err = lists->fault;
        }
    }
    return status;
}

static struct slc_row_order_options row_order_options(struct lists *lists)
{
    const struct slc_export_options *options = lists->options;

    return (struct slc_row_order_options){.store = &lists->store,
                                          .numbers = &lists->numbers,
                                          .output = &lists->output,
                                          .memory_bytes = options->memory_bytes,
                                          .workers = lists->workers,
                                          .stop = options->stop,
                                          .progress = options->progress,
                                          .context = options->context};
}

static enum slc_status write_file(struct lists *lists, struct slc_error *err)
{
    const struct slc_row_order_options order = row_order_options(lists);

    SLC_TRY(slc_input_numbers_read(&lists->store, &lists->numbers, err));
    SLC_TRY(lists->output.file.form == SLC_LISTS_NPZ ? slc_row_order_write(&order, err)
                                                     : write_lists(lists, err));
    return slc_list_output_commit(&lists->output, err);
}

enum slc_status slc_export_lists(const struct slc_export_options *options,
                                 enum slc_list_form form,
                                 uint64_t *nnz,
                                 struct slc_error *err)
{
    const struct slc_files *files = slc_files_or_system(options->files);
    const uint64_t budget = options->memory_bytes == 0 ? UINT64_MAX : options->memory_bytes;
    struct lists *lists = slc_calloc(1, sizeof *lists);

    if (lists == NULL || pthread_mutex_init(&lists->mutex, NULL) != 0) {
        slc_free(lists);
        return slc_fail(err, SLC_ERR_MEMORY, "no memory for exporting %s", options->store);
    }
    lists->options = options;
    lists->workers = options->threads;
    enum slc_status status =
        slc_store_open_within(files, options->store, budget, &lists->store, err);
    SLC_THEN(status, slc_list_output_open(&lists->output, files, options->output,
                                          options->overwrite, form, &lists->store.manifest, err));
    SLC_THEN(status, write_file(lists, err));
    if (status == SLC_OK) {
        *nnz = lists->store.manifest.nnz;
    }
    slc_list_output_abandon(&lists->output);
    slc_input_numbers_destroy(&lists->numbers);
    slc_buffer_destroy(&lists->memory);
    slc_store_close(&lists->store);
    (void)pthread_mutex_destroy(&lists->mutex);
    slc_free(lists->parts);
    slc_free(lists);
    return status;
}

/* Returns the bytes that a worker's lists fill. They have space for eight bytes per number. */
static uint64_t filled_bytes(const struct slc_list_file *file)
{
    uint64_t bytes = 0;

    for (unsigned i = 0; i <= file->order; i++) {
        bytes += slc_list_kind_bytes(file->lists[i].kind);
    }
    return bytes * slc_min_u64(file->nnz, SLC_TILE_NNZ);
}

/* Estimates the memory and the number of scans. */
static enum slc_status estimate_memory(struct lists *lists,
                                       const struct slc_list_file *file,
                                       struct slc_export_forecast *forecast,
                                       struct slc_error *err)
{
    const struct slc_layout_info *info = slc_reader_info(lists->store.reader);
    const struct slc_row_order_options order = row_order_options(lists);
    enum slc_status status;

    forecast->fixed_bytes = slc_memory_resident() +
                            slc_input_numbers_bytes(&lists->store.manifest) +
                            SLC_OUTPUT_BUFFER_BYTES;
    forecast->scans = 1;
    if (file->form == SLC_LISTS_NPZ) {
        status = slc_row_order_forecast(&order, &forecast->memory_bytes, &forecast->scans, err);
    } else {
        status = divide_memory(lists, err);
        forecast->memory_bytes =
            slc_tile_scan_memory_bytes(info, lists->workers) + lists->workers * filled_bytes(file);
    }
    forecast->memory_bytes += forecast->fixed_bytes;
    return status;
}

static enum slc_status forecast_lists(struct lists *lists,
                                      enum slc_list_form form,
                                      double seconds,
                                      struct slc_export_forecast *forecast,
                                      struct slc_error *err)
{
    struct slc_store_trial trial = {.nnz = 0};
    struct slc_list_file file;
    enum slc_status status = slc_list_file_plan(&file, form, &lists->store.manifest, err);

    SLC_THEN(status, estimate_memory(lists, &file, forecast, err));
    if (status == SLC_OK && seconds > 0) {
        status = slc_store_trial(lists->store.reader, seconds, NULL, &trial, err);
    }
    if (status == SLC_OK) {
        const double nnz = (double)lists->store.manifest.nnz;

        forecast->workers = lists->workers;
        forecast->in_parts = form == SLC_LISTS_NPZ;
        forecast->nnz = lists->store.manifest.nnz;
        forecast->read_bytes = forecast->scans * slc_reader_info(lists->store.reader)->file_bytes;
        forecast->output_bytes = (double)file.bytes;
        forecast->decode_seconds =
            nnz * trial.decode_seconds * (double)forecast->scans / lists->workers;
        forecast->format_seconds =
            nnz * trial.decode_seconds *
            (form == SLC_LISTS_NPZ ? SORT_OF_DECODE : LISTS_OF_DECODE / lists->workers);
    }
    return status;
}

enum slc_status slc_export_lists_forecast(const struct slc_export_options *options,
                                          enum slc_list_form form,
                                          double seconds,
                                          struct slc_export_forecast *forecast,
                                          struct slc_error *err)
{
    struct lists lists = {.options = options, .workers = options->threads};
    const uint64_t budget = options->memory_bytes == 0 ? UINT64_MAX : options->memory_bytes;
    enum slc_status status = slc_store_open_within(slc_files_or_system(options->files),
                                                   options->store, budget, &lists.store, err);

    *forecast = (struct slc_export_forecast){.nnz = 0};
    if (status == SLC_OK) {
        status = forecast_lists(&lists, form, seconds, forecast, err);
        slc_store_close(&lists.store);
    }
    return status;
}
