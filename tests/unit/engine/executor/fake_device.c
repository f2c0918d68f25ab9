/* The operations of the fake device. */
#include "fake_impl.h"

#include "slc_test.h"

#include "base/hash.h"
#include "cpu/dense/dense.h"
#include "storage/block/reader.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct fake *fake_of(const struct slc_device *device)
{
    return (struct fake *)(uintptr_t)device;
}

enum slc_status
fake_call(struct fake *fake, bool needs_open, const char *name, struct slc_error *err)
{
    fake_require(fake, fake->open == needs_open, name);
    if (++fake->calls == fake->refuse_at) {
        fake->broken = fake->working;
        fake->lost = fake->lost || (fake->working && fake->keeps);
        return slc_fail(err, SLC_ERR_SYSTEM, "%s was refused", name);
    }
    return SLC_OK;
}

static uint64_t rounded(uint64_t bytes)
{
    return (bytes + SLC_DEVICE_ALIGN - 1) / SLC_DEVICE_ALIGN * SLC_DEVICE_ALIGN;
}

static void fake_info(const struct slc_device *device, struct slc_device_info *info)
{
    memset(info, 0, sizeof *info);
    snprintf(info->name, sizeof info->name, "a fake");
    info->total_bytes = fake_of(device)->options.memory_bytes * 2;
    info->free_bytes = fake_of(device)->options.memory_bytes;
}

static uint64_t fake_memory_bytes(const struct slc_device *device,
                                  const struct slc_device_problem *problem)
{
    const uint64_t tile = sizeof(struct slc_encoded_tile) + 40;
    uint64_t bytes = 0, longest = 0;

    (void)device;
    for (unsigned n = 0; n < problem->order; n++) {
        bytes += rounded(problem->dims[n] * problem->rank * 8);
        longest = problem->dims[n] > longest ? problem->dims[n] : longest;
    }
    return bytes + rounded(longest * problem->rank * 8) +
           problem->streams *
               (problem->slot_bytes + problem->expanded_bytes + problem->slot_tiles * tile) +
           problem->resident_bytes + problem->resident_tiles * tile;
}

static uint64_t fake_host_bytes(const struct slc_device *device,
                                const struct slc_device_problem *problem)
{
    (void)device;
    return problem->streams * UINT64_C(4096);
}

static enum slc_status fake_open(struct slc_device *device,
                                 const struct slc_device_problem *problem,
                                 struct slc_error *err)
{
    struct fake *fake = fake_of(device);
    enum slc_status status = fake_call(fake, false, "open", err);
    uint64_t rows = 0;

    if (status != SLC_OK) {
        return status;
    }
    fake_require(fake, problem->layouts != NULL, "open without layouts");
    fake_require(fake, fake_memory_bytes(device, problem) <= fake->options.memory_bytes,
                 "open for more than its memory");
    fake->problem = *problem;
    for (unsigned n = 0; n < problem->order; n++) {
        SLC_ASSERT_OK(slc_matrix_create(&fake->factors[n], problem->precision, problem->dims[n],
                                        problem->rank, err),
                      err);
        rows = problem->dims[n] > rows ? problem->dims[n] : rows;
    }
    SLC_ASSERT_OK(slc_matrix_create(&fake->output, SLC_F64, rows, problem->rank, err), err);
    memset(&fake->stats, 0, sizeof fake->stats);
    fake->open = true;
    fake->counts.opened++;
    return SLC_OK;
}

static void fake_close(struct slc_device *device)
{
    struct fake *fake = fake_of(device);

    fake_drain(fake);
    for (unsigned n = 0; n < SLC_MAX_ORDER; n++) {
        slc_matrix_destroy(&fake->factors[n]);
    }
    slc_matrix_destroy(&fake->output);
    for (uint32_t k = 0; k < fake->kept_count; k++) {
        free(fake->kept[k]->data);
        free(fake->kept[k]);
    }
    fake->kept_count = 0;
    fake->kept_bytes = 0;
    fake->kept_tiles = 0;
    fake->lost = false;
    fake->has_output = false;
    fake->counts.closed += fake->open;
    fake->open = false;
}

static enum slc_status
fake_register(struct slc_device *device, void *memory, uint64_t bytes, struct slc_error *err)
{
    struct fake *fake = fake_of(device);
    enum slc_status status = fake_call(fake, true, "host_register", err);

    fake_require(fake, (uintptr_t)memory % 4096 == 0 && bytes > 0, "registering no pages");
    for (unsigned i = 0; i < REGIONS && status == SLC_OK; i++) {
        if (fake->region[i].memory == NULL) {
            fake->region[i].memory = memory;
            fake->region[i].bytes = bytes;
            fake->counts.registered++;
            break;
        }
    }
    return status;
}

static void fake_unregister(struct slc_device *device, void *memory)
{
    struct fake *fake = fake_of(device);

    fake_drain(fake);
    for (unsigned i = 0; i < REGIONS; i++) {
        if (fake->region[i].memory == memory) {
            fake->region[i].memory = NULL;
            fake->counts.registered--;
            return;
        }
    }
    fake_require(fake, false, "unregistering what is not registered");
}

static void copy_matrix(const struct slc_matrix *from, struct slc_matrix *to)
{
    for (uint64_t i = 0; i < to->rows; i++) {
        for (uint32_t r = 0; r < to->cols; r++) {
            slc_matrix_set(to, i, r, slc_matrix_get(from, i, r));
        }
    }
}

static enum slc_status fake_factor_write(struct slc_device *device,
                                         unsigned mode,
                                         const struct slc_matrix *from,
                                         struct slc_error *err)
{
    struct fake *fake = fake_of(device);
    const enum slc_status status = fake_call(fake, true, "factor_write", err);

    if (status == SLC_OK) {
        fake_require(fake, !fake->working, "writing a factor in a job");
        fake_require(
            fake, from->type == fake->factors[mode].type && from->rows == fake->problem.dims[mode],
            "a factor of another type or mode");
        copy_matrix(from, &fake->factors[mode]);
        fake->counts.factors_written++;
    }
    return status;
}

static enum slc_status fake_factor_read(struct slc_device *device,
                                        unsigned mode,
                                        struct slc_matrix *to,
                                        struct slc_error *err)
{
    struct fake *fake = fake_of(device);
    const enum slc_status status = fake_call(fake, true, "factor_read", err);

    if (status == SLC_OK) {
        fake_require(fake, !fake->working, "reading a factor in a job");
        copy_matrix(&fake->factors[mode], to);
        fake->counts.factors_read++;
        fake->stats.factor_bytes_to_host += to->rows * to->cols * slc_value_bytes(to->type);
    }
    return status;
}

static enum slc_status
fake_output_read(struct slc_device *device, struct slc_matrix *to, struct slc_error *err)
{
    struct fake *fake = fake_of(device);
    const enum slc_status status = fake_call(fake, true, "output_read", err);

    if (status == SLC_OK) {
        fake_require(fake, fake->has_output && to->rows == fake->output.rows,
                     "reading an output that is not there");
        copy_matrix(&fake->output, to);
        fake->counts.outputs_read++;
    }
    return status;
}

static enum slc_status
fake_begin(struct slc_device *device, const struct slc_device_job *job, struct slc_error *err)
{
    struct fake *fake = fake_of(device);
    const enum slc_status status = fake_call(fake, true, "mttkrp_begin", err);

    if (status == SLC_OK && fake->lost) {
        return slc_fail(err, SLC_ERR_USAGE, "blocks that were to stay are lost: open it again");
    }
    if (status == SLC_OK) {
        fake_require(fake, !fake->working, "a job in a job");
        fake->broken = false;
        fake->keeps = false;
        fake->has_output = false;
        fake_require(fake,
                     job->magnitude > 0.0 ||
                         slc_reader_info(fake->options.layouts->reader[job->layout])->nnz == 0,
                     "a job without a magnitude");
        fake->job = *job;
        fake->working = true;
        fake->counts.begun++;
        fake->found_damaged = NO_BLOCK;
        fake->nnz_done = 0;
        fake->squares = 0;
        fake->output.rows = fake->problem.dims[job->mode];
        memset(fake->output.buffer.data, 0, fake->output.buffer.bytes);
    }
    return status;
}

/* Checks that a block matches its index entry and is in registered memory. */
static void check_block(struct fake *fake,
                        const struct slc_encoded_block *block,
                        const struct slc_block_entry *entry)
{
    uint64_t nnz = 0;
    bool known = false;

    for (uint32_t t = 0; t < block->tile_count; t++) {
        nnz += block->tiles[t].nnz;
        fake_require(fake, block->tiles[t].ordinal == entry->first_tile + t,
                     "tiles of another block");
    }
    for (unsigned i = 0; i < REGIONS; i++) {
        const char *memory = fake->region[i].memory;

        known =
            known || (memory != NULL && (const char *)block->data >= memory &&
                      (const char *)block->data + block->bytes <= memory + fake->region[i].bytes);
    }
    fake_require(fake, known, "a block outside registered memory");
    fake_require(fake, fake->working, "a block outside a job");
    fake_require(fake, block->offset == entry->offset && nnz == entry->nnz && block->nnz == nnz,
                 "a block that is not described as it is");
    fake_require(fake,
                 block->bytes <= fake->problem.slot_bytes &&
                     block->expanded_bytes <= fake->problem.expanded_bytes &&
                     block->tile_count <= fake->problem.slot_tiles,
                 "a block that is larger than the slots");
}

static enum slc_status fake_block(struct slc_device *device,
                                  const struct slc_encoded_block *block,
                                  uint32_t *keep,
                                  uint64_t *ticket,
                                  struct slc_error *err)
{
    struct fake *fake = fake_of(device);
    const enum slc_status status = fake_call(fake, true, "block", err);
    const uint64_t needs = rounded(block->bytes) + rounded(block->expanded_bytes);
    struct slc_block_entry entry;
    struct work *work;

    if (status != SLC_OK) {
        return status;
    }
    slc_reader_entry(fake->options.layouts->reader[fake->job.layout], block->block, &entry);
    check_block(fake, block, &entry);
    work = fake_take(sizeof *work);
    work->padded_bytes = entry.padded_bytes;
    work->host = block->data;
    work->hash = slc_hash64(block->data, block->bytes);
    work->block = block->block;
    work->bytes = block->bytes;
    work->nnz = block->nnz;
    work->ticket = ++fake->asked;
    if (keep != NULL) {
        *keep = SLC_NOT_RESIDENT;
        if (fake->kept_bytes + needs <= fake->problem.resident_bytes &&
            fake->kept_tiles + block->tile_count <= fake->problem.resident_tiles) {
            work->stays = true;
            fake->keeps = true;
            fake->kept_tiles += block->tile_count;
            *keep = fake->kept_count;
            fake->kept[fake->kept_count++] = work;
            fake->kept_bytes += needs;
        }
    }
    *ticket = work->ticket;
    fake->counts.copied[block->block]++;
    fake->stats.blocks++;
    fake->stats.block_bytes += block->bytes;
    if (fake->problem.adds_host) {
        /* Count a wait: a thread that shares the work should compute instead of waiting. */
        fake->counts.waits += fake_queued(fake) >= fake->problem.streams;
    }
    fake_enqueue(fake, work, fake->problem.streams);
    return SLC_OK;
}

static enum slc_status
fake_resident(struct slc_device *device, uint32_t keep, struct slc_error *err)
{
    struct fake *fake = fake_of(device);
    const enum slc_status status = fake_call(fake, true, "resident", err);

    if (status == SLC_OK) {
        fake_require(fake, fake->working, "a block that stays outside a job");
        fake_require(fake, keep < fake->kept_count, "a block that is not there");
        fake->counts.resident[fake->kept[keep]->block]++;
        fake->stats.blocks++;
        fake->stats.resident_bytes += fake->kept[keep]->bytes;
        fake_enqueue(fake, fake->kept[keep], UINT32_MAX);
    }
    return status;
}

static enum slc_status fake_flush(struct slc_device *device, struct slc_error *err)
{
    fake_of(device)->counts.flushes++;
    fake_require(fake_of(device), fake_of(device)->working, "a flush outside a job");
    return fake_call(fake_of(device), true, "flush", err);
}

static enum slc_status fake_copied(
    struct slc_device *device, uint64_t ticket, bool wait, bool *done, struct slc_error *err)
{
    struct fake *fake = fake_of(device);
    const enum slc_status status = fake_call(fake, true, "copied", err);

    if (status == SLC_OK) {
        fake_require(fake, ticket > 0 && ticket <= fake->asked, "a copy that nobody asked for");
        pthread_mutex_lock(&fake->mutex);
        while (wait && fake->done < ticket) {
            pthread_cond_wait(&fake->changed, &fake->mutex);
        }
        *done = fake->done >= ticket;
        pthread_mutex_unlock(&fake->mutex);
    }
    return status;
}

static enum slc_status fake_poll(struct slc_device *device,
                                 const struct slc_encoded_block *next,
                                 struct slc_device_progress *progress,
                                 struct slc_error *err)
{
    struct fake *fake = fake_of(device);
    const enum slc_status status = fake_call(fake, true, "poll", err);

    (void)next;
    if (status == SLC_OK) {
        fake_require(fake, fake->working, "a look at no job");
        pthread_mutex_lock(&fake->mutex);
        progress->nnz = fake->nnz_done;
        progress->busy = fake->queued > 0;
        progress->fits = false; /* the fake device collects no batches */
        progress->free_slots =
            fake->queued < fake->problem.streams ? fake->problem.streams - fake->queued : 0;
        pthread_mutex_unlock(&fake->mutex);
    }
    return status;
}

static enum slc_status
fake_add_host(struct slc_device *device, const struct slc_matrix *from, struct slc_error *err)
{
    struct fake *fake = fake_of(device);
    const enum slc_status status = fake_call(fake, true, "output_add_host", err);

    if (status == SLC_OK) {
        fake_require(fake, fake->problem.adds_host && !fake->working,
                     "sums of the host that are not expected");
        fake_require(fake, from->rows == fake->output.rows, "sums of another mode");
        for (uint64_t i = 0; i < from->rows; i++) {
            for (uint32_t r = 0; r < from->cols; r++) {
                slc_matrix_row_f64(&fake->output, i)[r] += slc_matrix_get(from, i, r);
            }
        }
        usleep(fake->options.add_us);
        fake->counts.outputs_added++;
    }
    return status;
}

static enum slc_status fake_end(struct slc_device *device, struct slc_error *err)
{
    struct fake *fake = fake_of(device);
    enum slc_status status = fake_call(fake, true, "mttkrp_end", err);

    fake_require(fake, fake->working, "the end of no job");
    fake_drain(fake);
    fake->working = false;
    fake->counts.ended++;
    fake->stats.launches++;
    fake->stats.squares = fake->squares;
    if (status == SLC_OK && fake->found_damaged != NO_BLOCK) {
        status = slc_fail(err, SLC_ERR_DAMAGED, "its bytes contradict themselves");
        slc_error_locate_block(err, NULL, (uint64_t)fake->found_damaged, 4096);
        fake->lost = fake->lost || fake->kept_count > 0;
    } else if (status == SLC_OK && fake->broken) {
        status = slc_fail(err, SLC_ERR_SYSTEM, "an earlier call of the job failed");
    }
    fake->has_output = status == SLC_OK;
    return status;
}

struct slc_dense *fake_dense(const struct fake *fake)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_dense *dense = NULL;

    SLC_ASSERT_OK(slc_dense_create(1, fake->problem.rank, fake->output.rows, &dense, &err), &err);
    return dense;
}

static enum slc_status fake_update(struct slc_device *device,
                                   unsigned mode,
                                   const struct slc_solver *solver,
                                   const struct slc_update_sums *sums,
                                   struct slc_error *err)
{
    struct fake *fake = fake_of(device);
    enum slc_status status = fake_call(fake, true, "update", err);
    struct slc_matrix output = {0};
    struct slc_dense *dense;

    if (status != SLC_OK) {
        return status;
    }
    fake_require(fake, fake->has_output && mode == fake->job.mode, "an update from another job");
    dense = fake_dense(fake);
    SLC_ASSERT_OK(slc_matrix_create(&output, fake->factors[mode].type, fake->output.rows,
                                    fake->problem.rank, err),
                  err);
    copy_matrix(&fake->output, &output);
    status = slc_dense_update(dense, solver, &output, &fake->factors[mode], sums, err);
    slc_matrix_destroy(&output);
    slc_dense_destroy(dense);
    return status;
}

static enum slc_status
fake_gram(struct slc_device *device, unsigned mode, double *gram, struct slc_error *err)
{
    struct fake *fake = fake_of(device);
    enum slc_status status = fake_call(fake, true, "gram", err);
    struct slc_dense *dense = fake_dense(fake);

    if (status == SLC_OK) {
        fake_require(fake, !fake->working, "gram in a job");
        status = slc_dense_gram(dense, &fake->factors[mode], gram, err);
    }
    slc_dense_destroy(dense);
    return status;
}

static enum slc_status
fake_scale(struct slc_device *device, unsigned mode, const double *scale, struct slc_error *err)
{
    struct fake *fake = fake_of(device);
    const enum slc_status status = fake_call(fake, true, "scale", err);

    if (status == SLC_OK) {
        fake_require(fake, !fake->working, "scale in a job");
        slc_dense_scale_rows(&fake->factors[mode], 0, fake->factors[mode].rows, scale);
    }
    return status;
}

static void fake_stats(const struct slc_device *device, struct slc_device_stats *stats)
{
    *stats = fake_of(device)->stats;
}

static void fake_destroy(struct slc_device *device)
{
    struct fake *fake = fake_of(device);

    if (device == NULL) {
        return;
    }
    fake_close(device);
    pthread_mutex_lock(&fake->mutex);
    fake->leave = true;
    pthread_cond_broadcast(&fake->changed);
    pthread_mutex_unlock(&fake->mutex);
    pthread_join(fake->thread, NULL);
    pthread_cond_destroy(&fake->changed);
    pthread_mutex_destroy(&fake->mutex);
    free(fake);
}

struct slc_device *fake_create(const struct fake_options *options)
{
    static const struct slc_device_ops ops = {
        "fake",
        fake_info,
        {fake_memory_bytes, fake_host_bytes, fake_open, fake_close, fake_register, fake_unregister,
         fake_factor_write, fake_factor_read, fake_output_read},
        {fake_begin, fake_block, fake_resident, fake_flush, fake_copied, fake_poll, fake_end,
         fake_add_host},
        {fake_update, fake_gram, fake_scale, fake_factor_copy, fake_output_add, fake_output_rows,
         fake_update_units},
        {NULL, NULL, NULL, NULL, NULL},
        fake_stats,
        fake_destroy};
    struct fake *fake = fake_take(sizeof *fake);

    fake->device.ops = &ops;
    fake->options = *options;
    fake->damaged = NO_BLOCK;
    fake->found_damaged = NO_BLOCK;
    fake->end = &fake->first;
    pthread_mutex_init(&fake->mutex, NULL);
    pthread_cond_init(&fake->changed, NULL);
    if (pthread_create(&fake->thread, NULL, fake_run, fake) != 0) {
        printf("Bail out! no thread for a device\n");
        exit(1);
    }
    return &fake->device;
}

void fake_delay_add(struct slc_device *device, unsigned add_us)
{
    fake_of(device)->options.add_us = add_us;
}

const struct fake_counts *fake_counts(const struct slc_device *device)
{
    return &fake_of(device)->counts;
}

uint64_t fake_refuse(struct slc_device *device, uint64_t k)
{
    struct fake *fake = fake_of(device);
    const uint64_t calls = fake->calls;

    fake->calls = 0;
    fake->refuse_at = k;
    return calls;
}

void fake_damage(struct slc_device *device, uint64_t block)
{
    fake_of(device)->damaged = (int64_t)block;
}
