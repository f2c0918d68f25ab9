/* Exports text. Blocks are read in sequence and checked. The tiles of a block are decoded and
 * formatted in parallel, and their text is written in order. A worker whose text exceeds its buffer
 * waits for its turn and then writes while it formats, so memory is bounded. */
#include "convert/export/export.h"

#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "base/thread/team.h"
#include "base/thread/turns.h"
#include "convert/export/input_numbers.h"
#include "convert/export/text_output.h"
#include "convert/forecast/store_trial.h"
#include "convert/number/format.h"
#include "storage/file/block_file.h"
#include "storage/manifest/store.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    TEXT_BYTES_MIN = 64 << 10,
    TEXT_BYTES_MAX = 2 << 20,
    CHUNK_NNZ = 1024,
    SMALL_OBJECTS_BYTES = 256 << 10,
    /* Allowance for pages (program, libraries, stacks) that are first touched after planning. */
    UNTOUCHED_BYTES = 2 << 20
};

/* The smallest and the largest index that a worker wrote, per mode, counted from 0. */
struct index_range {
    uint64_t least[SLC_MAX_ORDER];
    uint64_t most[SLC_MAX_ORDER];
};

struct export
{
    const struct slc_export_options *options;
    const struct slc_files *files;
    struct slc_store store;
    struct slc_input_numbers numbers;
    struct slc_block_file file;
    struct slc_buffer block;
    unsigned workers;
    struct slc_decoder **decoders;
    struct slc_text_output text;
    struct slc_block_view view;
    struct slc_turns turns;
    struct slc_error *worker_errors;
    struct index_range *ranges; /* one per worker */
    uint64_t lines;
};

/* The text of a worker: its buffer, the position in it, and whether the worker's turn has come. */
struct stream {
    struct export *export;
    struct index_range *range;
    char *buffer;
    size_t used;
    uint64_t ticket;
    bool has_turn;
};

/* Writes the worker's buffer in its turn. Returns SLC_ERR_INTERRUPTED if another worker failed. */
static enum slc_status write_buffer(struct stream *stream, struct slc_error *err)
{
    struct export *export = stream->export;
    size_t bytes = stream->used;

    if (!stream->has_turn && !slc_turns_wait(&export->turns, stream->ticket)) {
        return SLC_ERR_INTERRUPTED;
    }
    stream->has_turn = true;
    stream->used = 0;
    return slc_text_output_write(&export->text, stream->buffer, bytes, err);
}

static char *format_row(char *out,
                        const struct export *export,
                        const struct slc_tile_view *tile,
                        const struct slc_chunk_view *chunk,
                        uint32_t i)
{
    const double *values = chunk->values;

    for (unsigned mode = 0; mode < tile->order; mode++) {
        const uint64_t index =
            slc_input_number(&export->numbers, mode, tile->corner[mode] + chunk->offset[mode][i]);

        out += slc_format_u64(out, index + export->options->index_base);
        *out++ = ' ';
    }
    out += slc_format_f64(out, values[i]);
    *out++ = '\n';
    return out;
}

/* Extends a range by the indices of a chunk. Cost: much less than that of formatting them. */
static void extend_range(const struct export *export,
                         struct index_range *range,
                         const struct slc_tile_view *tile,
                         const struct slc_chunk_view *chunk)
{
    for (unsigned mode = 0; mode < tile->order; mode++) {
        const uint32_t *offset = chunk->offset[mode];
        const uint64_t corner = tile->corner[mode];
        uint64_t least = range->least[mode], most = range->most[mode];
        uint32_t low = UINT32_MAX, high = 0;

        if (export->numbers.modes[mode].label != NULL) {
            for (uint32_t i = 0; i < chunk->nnz; i++) {
                const uint64_t index = slc_input_number(&export->numbers, mode, corner + offset[i]);

                least = slc_min_u64(least, index);
                most = slc_max_u64(most, index);
            }
        } else {
            for (uint32_t i = 0; i < chunk->nnz; i++) {
                low = offset[i] < low ? offset[i] : low;
                high = offset[i] > high ? offset[i] : high;
            }
            least = slc_min_u64(least, corner + low);
            most = slc_max_u64(most, corner + high);
        }
        range->least[mode] = least;
        range->most[mode] = most;
    }
}

static enum slc_status
format_tile(struct stream *stream, struct slc_tile_view *tile, struct slc_error *err)
{
    struct export *export = stream->export;
    size_t limit = export->text.buffer_bytes - SLC_FORMAT_ROW_BYTES;
    enum slc_status status;

    for (;;) {
        struct slc_chunk_view chunk;

        status = tile->next(tile, CHUNK_NNZ, &chunk, err);
        if (status != SLC_OK || chunk.nnz == 0) {
            return status;
        }
        if (!export->options->header) {
            extend_range(export, stream->range, tile, &chunk);
        }
        for (uint32_t i = 0; i < chunk.nnz; i++) {
            char *row = stream->buffer + stream->used;

            stream->used += (size_t)(format_row(row, export, tile, &chunk, i) - row);
            if (stream->used > limit) {
                status = write_buffer(stream, err);
                SLC_TRY(status);
            }
        }
    }
}

static void export_worker(void *context, unsigned worker, unsigned workers)
{
    struct export *export = context;
    struct slc_error *err = &export->worker_errors[worker];
    struct stream stream = {.export = export,
                            .range = &export->ranges[worker],
                            .buffer = slc_text_output_buffer(&export->text, worker)};

    (void)workers;
    while (slc_turns_take_ticket(&export->turns, &stream.ticket) &&
           stream.ticket < export->view.entry.tile_count) {
        struct slc_tile_view tile;
        enum slc_status status = slc_stop_check(export->options->stop, err);

        SLC_THEN(status, slc_tile_open(export->decoders[worker], &export->view,
                                       (uint32_t)stream.ticket, &tile, err));

        stream.used = 0;
        stream.has_turn = false;
        SLC_THEN(status, format_tile(&stream, &tile, err));
        SLC_THEN(status, write_buffer(&stream, err));
        if (status != SLC_OK) {
            if (status != SLC_ERR_INTERRUPTED) {
                err->status = status;
            }
            slc_turns_stop(&export->turns);
            return;
        }
        slc_turns_done(&export->turns);
    }
}

static enum slc_status export_block(struct export *export, uint64_t block, struct slc_error *err)
{
    struct slc_block_entry entry;

    slc_reader_entry(export->store.reader, block, &entry);
    SLC_TRY(slc_block_file_read(&export->file, export->block.data, entry.padded_bytes, entry.offset,
                                err));
    /* Drop this block from the page cache, because it will not be read again, and fetch the next
     * block while this block is formatted. */
    slc_block_file_advise(&export->file, entry.offset, entry.padded_bytes, POSIX_FADV_DONTNEED);
    slc_block_file_advise(&export->file, entry.offset + entry.padded_bytes, entry.padded_bytes,
                          POSIX_FADV_WILLNEED);
    SLC_TRY(
        slc_block_open(export->store.reader, block, export->block.data, false, &export->view, err));
    SLC_TRY(slc_turns_init(&export->turns, err));
    for (unsigned i = 0; i < export->workers; i++) {
        slc_error_clear(&export->worker_errors[i]);
    }
    enum slc_status status = slc_team_run(export->workers, export_worker, export, err);
    for (unsigned i = 0; i < export->workers && status == SLC_OK; i++) {
        status = export->worker_errors[i].status;
        if (status != SLC_OK && err != NULL) {
            *err = export->worker_errors[i];
        }
    }
    slc_turns_destroy(&export->turns);
    export->lines += entry.nnz;
    if (export->options->progress != NULL) {
        export->options->progress(export->options->context, "export", export->lines,
                                  export->store.manifest.nnz);
    }
    return status;
}

/* Chooses the number of workers, and divides the rest of the budget among the text buffers. */
static enum slc_status
divide_memory(struct export *export, size_t *text_bytes, struct slc_error *err)
{
    const struct slc_layout_info *info = slc_reader_info(export->store.reader);
    uint64_t budget = export->options->memory_bytes;
    uint64_t each = slc_decoder_memory_bytes(info, SLC_F64);
    uint64_t fixed = SMALL_OBJECTS_BYTES + UNTOUCHED_BYTES + slc_memory_resident() +
                     slc_buffer_footprint(info->max_block_bytes, SLC_PAGES_SMALL) +
                     slc_input_numbers_bytes(&export->store.manifest);
    uint64_t least = fixed + each + TEXT_BYTES_MIN;

    if (budget == 0) {
        *text_bytes = TEXT_BYTES_MAX;
        return SLC_OK;
    }
    if (budget < least) {
        return slc_fail_budget(err, budget, least + (UINT64_C(1) << 20), "exporting this store");
    }
    while (export->workers > 1 && fixed + export->workers * (each + TEXT_BYTES_MIN) > budget) {
        export->workers--;
    }
    uint64_t share = (budget - fixed) / export->workers - each;
    *text_bytes = (size_t)slc_min_u64(share & ~(uint64_t)(SLC_PAGE_BYTES - 1), TEXT_BYTES_MAX);
    return SLC_OK;
}

enum slc_status slc_export_forecast(const struct slc_export_options *options,
                                    double seconds,
                                    struct slc_export_forecast *forecast,
                                    struct slc_error *err)
{
    struct export export = {.options = options,
                            .files = slc_files_or_system(options->files),
                            .workers = options->threads};
    const uint64_t budget = options->memory_bytes == 0 ? UINT64_MAX : options->memory_bytes;
    struct slc_store_trial trial = {.nnz = 0};
    size_t text_bytes = 0;

    SLC_TRY(slc_store_open_within(export.files, options->store, budget, &export.store, err));
    enum slc_status status = divide_memory(&export, &text_bytes, err);
    if (status == SLC_OK && seconds > 0) {
        status = slc_store_trial(export.store.reader, seconds, NULL, &trial, err);
    }
    if (status == SLC_OK) {
        const struct slc_layout_info *info = slc_reader_info(export.store.reader);
        const double nnz = (double)info->nnz;

        *forecast = (struct slc_export_forecast){
            .fixed_bytes = slc_memory_resident() +
                           slc_buffer_footprint(info->max_block_bytes, SLC_PAGES_SMALL) +
                           slc_input_numbers_bytes(&export.store.manifest),
            .workers = export.workers,
            .scans = 1,
            .read_bytes = info->file_bytes,
            .nnz = info->nnz,
            .output_bytes = nnz * trial.row_bytes,
            .decode_seconds = nnz * trial.decode_seconds / export.workers,
            .format_seconds = nnz * trial.format_seconds / export.workers};
        forecast->memory_bytes =
            forecast->fixed_bytes +
            export.workers *
                (slc_decoder_memory_bytes(info, SLC_F64) +
                 (trial.nnz > 0
                      ? slc_min_u64(text_bytes, (uint64_t)(SLC_TILE_NNZ * trial.row_bytes))
                      : text_bytes));
    }
    slc_store_close(&export.store);
    return status;
}

static enum slc_status open_export(struct export *export, struct slc_error *err)
{
    const struct slc_export_options *options = export->options;
    size_t text_bytes = 0;
    const uint64_t budget = options->memory_bytes == 0 ? UINT64_MAX : options->memory_bytes;

    SLC_TRY(slc_store_open_within(export->files, options->store, budget, &export->store, err));
    const struct slc_layout_info *info = slc_reader_info(export->store.reader);
    SLC_TRY(divide_memory(export, &text_bytes, err));
    SLC_TRY(slc_input_numbers_read(&export->store, &export->numbers, err));
    export->decoders = slc_calloc(export->workers, sizeof *export->decoders);
    export->worker_errors = slc_calloc(export->workers, sizeof *export->worker_errors);
    export->ranges = slc_calloc(export->workers, sizeof *export->ranges);
    SLC_TRY(slc_check_memory(export->decoders != NULL && export->worker_errors != NULL &&
                                 export->ranges != NULL,
                             err, "for %u decoders", export->workers));
    for (unsigned i = 0; i < export->workers; i++) {
        memset(export->ranges[i].least, 0xff, sizeof export->ranges[i].least);
        SLC_TRY(slc_decoder_create(info, SLC_F64, &export->decoders[i], err));
    }
    SLC_TRY(slc_buffer_create(&export->block, info->max_block_bytes, SLC_PAGES_SMALL, err));
    SLC_TRY(slc_block_file_open(export->store.files, slc_reader_path(export->store.reader),
                                "opening the block file", &export->file, err));
    return slc_text_output_open(&export->text, export->files, options->output, options->overwrite,
                                export->workers, text_bytes, err);
}

static void close_export(struct export *export)
{
    slc_text_output_abandon(&export->text);
    for (unsigned i = 0; i < export->workers && export->decoders != NULL; i++) {
        slc_decoder_destroy(export->decoders[i]);
    }
    slc_block_file_close(&export->file);
    slc_input_numbers_destroy(&export->numbers);
    slc_buffer_destroy(&export->block);
    slc_free(export->decoders);
    slc_free(export->worker_errors);
    slc_free(export->ranges);
    slc_store_close(&export->store);
}

/* Writes the header, if one is requested. */
static enum slc_status write_header(struct export *export, struct slc_error *err)
{
    const struct slc_manifest *manifest = &export->store.manifest;
    char dims[SLC_MAX_ORDER * 21 + 1], text[sizeof dims + 96];
    size_t used = 0;
    int bytes;

    if (!export->options->header) {
        return SLC_OK;
    }
    for (unsigned mode = 0; mode < manifest->order; mode++) {
        dims[used++] = ' ';
        used += slc_format_u64(dims + used, manifest->dims[mode]);
    }
    dims[used] = '\0';
    bytes =
        export->options->index_base == 1
            ? snprintf(text, sizeof text, "# extended FROSTT format\n%u %" PRIu64 "\n%s\n",
                       manifest->order, manifest->nnz, dims + 1)
            : snprintf(text, sizeof text, "sptensor indices-start-at-zero\n%u\n%s\n%" PRIu64 "\n",
                       manifest->order, dims + 1, manifest->nnz);
    return slc_text_output_write(&export->text, text, (size_t)bytes, err);
}

/* Fills in the report. It states which properties a reader cannot find in the text. */
static void fill_report(const struct export *export, struct slc_export_report *report)
{
    const struct slc_manifest *manifest = &export->store.manifest;
    const bool header = export->options->header;
    const unsigned workers = export->lines > 0 ? export->workers : 0; /* else there are no ranges */
    bool zero = false;

    *report = (struct slc_export_report){.nnz = export->lines, .order = manifest->order};
    for (unsigned mode = 0; mode < manifest->order; mode++) {
        uint64_t rows = 0;

        for (unsigned i = 0; i < workers; i++) {
            zero = zero || export->ranges[i].least[mode] == 0;
            rows = slc_max_u64(rows, export->ranges[i].most[mode] + 1);
        }
        report->dims[mode] = manifest->dims[mode];
        report->dims_lost |= !header && rows < manifest->dims[mode];
    }
    report->base_lost = !header && export->options->index_base == 0 && !zero && export->lines > 0;
}

enum slc_status slc_export_tns(const struct slc_export_options *options,
                               struct slc_export_report *report,
                               struct slc_error *err)
{
    struct export export = {.options = options,
                            .files = slc_files_or_system(options->files),
                            .text = {.fd = -1},
                            .workers = options->threads};
    enum slc_status status = SLC_OK;
    uint64_t block;

    if (options->index_base > 1 || options->threads == 0 || options->threads > SLC_MAX_THREADS) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "index base %u with %u threads: the index base must be 0 or 1, and there "
                        "must be 1 to %d threads",
                        options->index_base, options->threads, SLC_MAX_THREADS);
    }
    status = open_export(&export, err);
    SLC_THEN(status, write_header(&export, err));
    for (block = 0; status == SLC_OK && block < slc_reader_info(export.store.reader)->block_count;
         block++) {
        status = export_block(&export, block, err);
    }
    SLC_THEN(status, slc_text_output_finish(&export.text, err));
    if (status == SLC_OK) {
        fill_report(&export, report);
    }
    close_export(&export);
    return status;
}
