/* Checks one block file: its header, index and every block. A team of threads reads and checks the
 * blocks. Each thread has one block and one decoder in memory; the number of threads is reduced to
 * fit the budget. */
#include "storage/verify/verify_internal.h"

#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "base/thread/team.h"
#include "storage/block/reader.h"
#include "storage/file/block_file.h"

#include <inttypes.h>

/* Scratch of one worker. */
struct worker {
    struct slc_buffer block;
    struct slc_decoder *decoder;   /* NULL if nothing is decoded */
    struct slc_value_stats values; /* values of the decoded tiles */
};

/* State of checking a block file. */
struct file_check {
    struct slc_verifier *verifier;
    const struct slc_reader *reader;
    struct slc_block_file file;
    struct worker *workers;
    unsigned worker_count;
};

/* For fiber-n, compares the number of fibers that end in the block with the index, and reports a
 * difference. */
static bool
check_fiber_count(struct file_check *check, const struct slc_block_view *view, uint64_t ended)
{
    struct slc_error fault = SLC_ERROR_INIT;

    if (slc_reader_info(view->reader)->layout != SLC_LAYOUT_FIBER ||
        ended == view->entry.partition) {
        return true;
    }
    slc_fail(&fault, SLC_ERR_DAMAGED,
             "%" PRIu64 " fibers end in the block, but %" PRIu32 " according to the index", ended,
             view->entry.partition);
    slc_error_locate_block(&fault, slc_reader_path(view->reader), view->block, view->entry.offset);
    slc_verify_report(check->verifier, &fault);
    return false;
}

/* Checks the tiles of a block whose checksum is correct. Returns the nonzeros of the block, or 0
 * after a fault. */
static uint64_t
check_tiles(struct file_check *check, const struct slc_block_view *view, struct worker *worker)
{
    uint64_t nnz = view->entry.nnz;
    uint64_t ended = 0;

    for (uint32_t tile = 0; tile < view->entry.tile_count; tile++) {
        struct slc_error fault = SLC_ERROR_INIT;
        enum slc_status status = slc_verify_tile_cut(view, tile, &fault);

        if (status == SLC_OK && worker->decoder != NULL) {
            uint64_t pieces = 0;

            status = slc_verify_tile(worker->decoder, view, tile, &pieces, &worker->values, &fault);
            ended += slc_verify_fibers_ended(view, tile, pieces);
        }
        if (status != SLC_OK) {
            slc_verify_report(check->verifier, &fault);
            nnz = 0;
        }
        if (slc_verify_ended(check->verifier)) {
            return 0;
        }
    }
    if (nnz > 0 && worker->decoder != NULL && !check_fiber_count(check, view, ended)) {
        return 0;
    }
    return nnz;
}

static void check_block(struct file_check *check, uint64_t block, struct worker *worker)
{
    struct slc_verifier *verifier = check->verifier;
    const char *path = slc_reader_path(check->reader);
    struct slc_error fault = SLC_ERROR_INIT;
    struct slc_block_entry entry;
    struct slc_block_view view;
    uint64_t nnz = 0;

    slc_reader_entry(check->reader, block, &entry);
    enum slc_status status = slc_block_file_read(&check->file, worker->block.data,
                                                 entry.padded_bytes, entry.offset, &fault);
    slc_error_locate_block(status == SLC_OK ? NULL : &fault, path, block, entry.offset);
    SLC_THEN(status,
             slc_block_open(check->reader, block, worker->block.data, false, &view, &fault));
    if (status != SLC_OK) {
        slc_verify_report(verifier, &fault);
    } else {
        nnz = check_tiles(check, &view, worker);
    }
    pthread_mutex_lock(&verifier->lock);
    verifier->report.blocks++;
    verifier->report.bytes += entry.padded_bytes;
    verifier->report.nnz += nnz;
    if (verifier->options->progress != NULL) {
        const uint64_t total =
            verifier->has_manifest ? slc_manifest_file_bytes(&verifier->manifest) : 0;

        /* The bytes checked include the manifest, but `total` does not. */
        verifier->options->progress(
            verifier->options->context, "check",
            total > 0 ? slc_min_u64(verifier->report.bytes, total) : verifier->report.bytes, total);
    }
    pthread_mutex_unlock(&verifier->lock);
}

static void check_range(void *context, uint64_t begin, uint64_t end, unsigned worker)
{
    struct file_check *check = context;

    for (uint64_t block = begin; block < end; block++) {
        if (!slc_verify_ended(check->verifier)) {
            check_block(check, block, &check->workers[worker]);
        }
    }
}

/* Chooses the number of workers: at most the requested number and the number of blocks, and within
 * the budget. Errors: SLC_ERR_BUDGET. */
static enum slc_status
choose_workers(struct file_check *check, unsigned *workers, struct slc_error *err)
{
    const struct slc_verifier *verifier = check->verifier;
    const struct slc_layout_info *info = slc_reader_info(check->reader);
    /* The index is already part of the resident memory. */
    uint64_t fixed =
        slc_div_up_u64(slc_memory_resident() + UNTOUCHED_BYTES, PROCESS_UNIT) * PROCESS_UNIT;
    uint64_t each = slc_buffer_footprint(info->max_block_bytes, SLC_PAGES_SMALL) +
                    (verifier->options->decode ? slc_decoder_memory_bytes(info, SLC_F64) : 0) +
                    sizeof(struct worker) + THREAD_BYTES;
    uint64_t requested = verifier->options->threads;

    if (verifier->memory_bytes < fixed || verifier->memory_bytes - fixed < each) {
        enum slc_status status =
            slc_fail_budget(err, verifier->memory_bytes, fixed + each, "checking this store");

        slc_error_locate_file(err, slc_reader_path(check->reader));
        return status;
    }
    requested = requested == 0 ? slc_team_default_workers() : requested;
    uint64_t fitting = (verifier->memory_bytes - fixed) / each;
    *workers = (unsigned)slc_min_u64(slc_min_u64(requested, fitting),
                                     slc_min_u64(info->block_count, SLC_MAX_THREADS));
    return SLC_OK;
}

static enum slc_status
create_workers(struct file_check *check, unsigned workers, struct slc_error *err)
{
    const struct slc_layout_info *info = slc_reader_info(check->reader);

    check->workers = slc_calloc(workers, sizeof check->workers[0]);
    SLC_TRY(slc_check_memory(check->workers != NULL, err, "for %u workers", workers));
    check->worker_count = workers;
    for (unsigned i = 0; i < workers; i++) {
        SLC_TRY(slc_buffer_create(&check->workers[i].block, info->max_block_bytes, SLC_PAGES_SMALL,
                                  err));
        if (check->verifier->options->decode) {
            SLC_TRY(slc_decoder_create(info, SLC_F64, &check->workers[i].decoder, err));
        }
    }
    return SLC_OK;
}

static void destroy_workers(struct file_check *check)
{
    for (unsigned i = 0; i < check->worker_count; i++) {
        slc_decoder_destroy(check->workers[i].decoder);
        slc_buffer_destroy(&check->workers[i].block);
    }
    slc_free(check->workers);
}

/* Compares the values of all blocks, which were decoded without a fault, with the statistics in the
 * manifest, and reports a difference. */
static void check_values(struct file_check *check)
{
    struct slc_verifier *verifier = check->verifier;
    const struct slc_value_stats *listed = &verifier->manifest.values;
    struct slc_value_stats found = {.distinct = 0};
    struct slc_error fault = SLC_ERROR_INIT;

    for (unsigned i = 0; i < check->worker_count; i++) {
        slc_value_stats_merge(&found, &check->workers[i].values);
    }
    if (listed->distinct == 0 || slc_value_stats_same(&found, listed)) {
        return;
    }
    slc_fail(&fault, SLC_ERR_DAMAGED,
             "the values are from %.17g to %.17g, with %" PRIu64
             " zeros; the statistics in the store's manifest differ: from %.17g to %.17g, with "
             "%" PRIu64 " zeros",
             found.low, found.high, found.zeros, listed->low, listed->high, listed->zeros);
    slc_error_locate_file(&fault, slc_reader_path(check->reader));
    slc_verify_report(verifier, &fault);
}

/* Checks all blocks of an open file. Reports faults of blocks and returns other errors. */
static enum slc_status
check_blocks(struct slc_verifier *verifier, const struct slc_reader *reader, struct slc_error *err)
{
    struct file_check check = {.verifier = verifier, .reader = reader};
    uint64_t blocks = slc_reader_info(reader)->block_count;
    const uint64_t findings = verifier->report.findings;
    unsigned workers = 0;

    if (blocks == 0) {
        return SLC_OK;
    }
    SLC_TRY(choose_workers(&check, &workers, err));
    SLC_TRY(slc_block_file_open(verifier->files, slc_reader_path(reader), "opening the block file",
                                &check.file, err));
    enum slc_status status = create_workers(&check, workers, err);
    SLC_THEN(status, slc_team_for(workers, blocks, 1, check_range, &check, err));
    if (status == SLC_OK && verifier->options->decode && !slc_verify_ended(verifier) &&
        verifier->report.findings == findings) {
        check_values(&check);
    }
    destroy_workers(&check);
    slc_block_file_close(&check.file);
    return status;
}

/* Compares an open file with its manifest entry and with the other layouts. */
static enum slc_status check_listed(struct slc_verifier *verifier,
                                    const struct slc_store_layout *layout,
                                    const struct slc_reader *reader,
                                    struct slc_error *err)
{
    enum slc_status status = slc_manifest_check_layout(&verifier->manifest, layout, reader, err);

    if (status == SLC_OK && verifier->has_keys) {
        status = slc_store_check_keys(&verifier->keys, reader, err);
    }
    if (!verifier->has_keys) {
        verifier->keys = slc_reader_info(reader)->content_keys;
        verifier->has_keys = true;
    }
    return status;
}

void slc_verify_file(struct slc_verifier *verifier,
                     const char *name,
                     const struct slc_store_layout *layout)
{
    struct slc_error fault = SLC_ERROR_INIT;
    char *path = slc_path_join(verifier->path, name);
    struct slc_reader *reader = NULL;

    verifier->step++;
    if (path == NULL) {
        slc_fail(&fault, SLC_ERR_MEMORY, "no memory for a path");
        slc_verify_report(verifier, &fault);
        return;
    }
    enum slc_status status =
        layout != NULL
            ? slc_store_open_listed(verifier->files, path, verifier->memory_bytes, &reader, &fault)
            : slc_reader_open_within(verifier->files, path, verifier->memory_bytes, &reader,
                                     &fault);
    if (status == SLC_OK) {
        const struct slc_layout_info *info = slc_reader_info(reader);
        struct slc_error mismatch = SLC_ERROR_INIT;
        uint64_t in_blocks = 0;

        if (layout != NULL && check_listed(verifier, layout, reader, &mismatch) != SLC_OK) {
            slc_verify_report(verifier, &mismatch);
        }
        for (uint64_t block = 0; block < info->block_count; block++) {
            struct slc_block_entry entry;

            slc_reader_entry(reader, block, &entry);
            in_blocks += entry.padded_bytes;
        }
        verifier->report.bytes += info->file_bytes - in_blocks;
        status = check_blocks(verifier, reader, &fault);
    }
    if (status != SLC_OK) {
        slc_verify_report(verifier, &fault);
    }
    verifier->report.files++;
    verifier->report.layouts++;
    slc_reader_close(reader);
    slc_free(path);
}
