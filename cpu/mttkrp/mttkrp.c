/* Implements an MTTKRP job on the CPU: the caller begins the job, passes it tiles, and ends it.
 *
 * Workers read chunks of decoded nonzeros from their tile and run the kernels for panels of columns
 * on each chunk (kernels.h). The strategy determines where the sums are added:
 *
 *   DIRECT           to the output
 *   COLUMNS          to the output; workers add different columns of the same tiles
 *   ROWS             to the output; tiles of different workers have no rows in common except split
 *                    rows (split_rows.c)
 *   PRIVATE          to a copy per worker; mttkrp_end adds up the copies (private.c)
 *   LOCKED, ORDERED  to tile-local sums, which are committed under locks or in tile order
 *                    (partial.c, commit.c)
 *
 * Cost per nonzero: about one load per 64 bytes of each of its factor rows. All scratch is
 * allocated in mttkrp_begin and kept for the next job. */
#include "cpu/mttkrp/mttkrp.h"
#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "base/thread/team.h"

#include <assert.h>
#include <string.h>

/* Minimum size of an output that all workers together zero faster than one worker. */
#define LARGE_BYTES (UINT64_C(4) << 20)

/* Number of nonzeros per chunk at R = 1. A nonzero then costs only a few loads, and small chunks
 * leave most of the L1 cache to the rows: 2.8 ns per nonzero, instead of 3.2 ns with SLC_CHUNK_NNZ
 * nonzeros per chunk (four modes, f64, AVX-512). */
enum { COLUMN_CHUNK_NNZ = 2 * SLC_GROUP_NNZ };

/* Unit in which columns are divided among workers: a cache line, at which rows and their panels
 * start. */
enum { COLUMN_UNIT_BYTES = 64 };

/* Offsets for tensors of order 1, which always use row 0, the row of ones. */
static const uint32_t zero_offsets[SLC_CHUNK_NNZ + 16];

static void zero_bytes(void *context, uint64_t begin, uint64_t end, unsigned worker)
{
    unsigned char *data = context;

    (void)worker;
    memset(data + begin, 0, end - begin);
}

/* Zeroes the sums, with all workers if the sums are large. */
static enum slc_status zero_sums(const struct slc_cpu_backend *cpu, struct slc_error *err)
{
    const bool wide = cpu->layout.wide_bytes > 0;
    const uint64_t bytes = cpu->job.output->rows * (wide ? cpu->sum_stride : cpu->stride);

    if (bytes < LARGE_BYTES || cpu->job.workers == 1) {
        if (bytes > 0) {
            memset(cpu->sums, 0, bytes);
        }
        return SLC_OK;
    }
    return slc_team_for(cpu->job.workers, bytes, LARGE_BYTES / 2, zero_bytes, cpu->sums, err);
}

/* Rows are prefetched if the factors together exceed half of the last-level cache. For smaller
 * factors, out-of-order execution hides the loads, and prefetching adds 5 to 30 % to the time (3 to
 * 5 ns per nonzero). For larger factors, prefetching saves 15 % (34 ns instead of 40 ns per nonzero
 * with 3 x 1 M rows, R = 16). */
static bool factors_exceed_cache(const struct slc_mttkrp_job *job)
{
    uint64_t bytes = 0;

    for (unsigned m = 0; m < job->order; m++) {
        if (m != job->mode &&
            !slc_add_u64(bytes, job->factors[m]->rows * slc_mttkrp_stride(job, job->output->type),
                         &bytes)) {
            return true;
        }
    }
    return bytes > slc_cpu_cache_bytes() / 2;
}

static void set_ones(struct slc_cpu_backend *cpu)
{
    memset(cpu->ones, 0, sizeof cpu->ones);
    for (uint32_t r = 0; r < cpu->job.rank; r++) {
        if (cpu->type == SLC_F32) {
            ((float *)(void *)cpu->ones)[r] = 1.0F;
        } else {
            ((double *)(void *)cpu->ones)[r] = 1.0;
        }
    }
}

static void reset_state(struct slc_cpu_backend *cpu)
{
    const uint64_t stripe_bytes =
        /* adding a stripe of this size to memory takes about 2 us, and other workers may wait */
        16384;

    memset(cpu->workers, 0, cpu->job.workers * sizeof cpu->workers[0]);
    cpu->lock_rows = slc_max_u64(stripe_bytes / cpu->stride, 1);
    cpu->order_rows = slc_max_u64(slc_div_up_u64(cpu->job.output->rows, SLC_ORDER_STRIPES), 1);
    (void)pthread_mutex_lock(&cpu->order_mutex);
    for (unsigned s = 0; s < SLC_ORDER_STRIPES; s++) {
        cpu->passed[s] = cpu->job.first_tile;
    }
    cpu->waiters = 0;
    cpu->aborted = false;
    (void)pthread_mutex_unlock(&cpu->order_mutex);
}

void slc_mttkrp_set_job(struct slc_cpu_backend *cpu, const struct slc_mttkrp_job *job)
{
    struct slc_conflict_choice choice;

    cpu->job = *job;
    cpu->type = job->output->type;
    cpu->stride = slc_mttkrp_stride(job, cpu->type);
    cpu->sum_stride = slc_mttkrp_sum_stride(job, cpu->type);
    slc_mttkrp_choose(job, cpu->type, job->output->rows, &choice);
    cpu->conflict = choice.chosen;
    cpu->kernels = slc_kernels();
    cpu->prefetch = factors_exceed_cache(job);
}

enum slc_status
slc_mttkrp_reserve(struct slc_cpu_backend *cpu, uint64_t bytes, struct slc_error *err)
{
    if (bytes <= cpu->scratch.bytes) {
        return SLC_OK;
    }
    slc_buffer_destroy(&cpu->scratch);
    return slc_buffer_create(&cpu->scratch, bytes, slc_mttkrp_pages(bytes), err);
}

enum slc_status slc_mttkrp_begin(struct slc_backend *backend,
                                 const struct slc_mttkrp_job *job,
                                 struct slc_error *err)
{
    struct slc_cpu_backend *cpu = (struct slc_cpu_backend *)(void *)backend;
    enum slc_status status = slc_mttkrp_check_job(job, err);

    cpu->running = false;
    SLC_TRY(status);
    if (job->conflict == SLC_CONFLICT_REPLICA) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "the strategy \"owned\" computes from replicas and accepts no tiles");
    }
    slc_mttkrp_set_job(cpu, job);
    slc_mttkrp_layout_init(&cpu->layout, job, cpu->type, cpu->conflict, job->output->rows);
    SLC_TRY(slc_mttkrp_reserve(cpu, slc_mttkrp_total_bytes(&cpu->layout, job), err));
    cpu->sums = cpu->layout.wide_bytes > 0 ? cpu->scratch.data : job->output->buffer.data;
    if (job->order == 1) {
        set_ones(cpu);
    }
    reset_state(cpu);
    if (cpu->conflict == SLC_CONFLICT_ROWS) {
        slc_split_rows_begin(cpu);
    }
    slc_trial_start(&cpu->trial, job, job->output->rows * cpu->sum_stride);
    status = zero_sums(cpu, err);
    cpu->running = status == SLC_OK;
    return status;
}

void slc_mttkrp_span_init(const struct slc_cpu_backend *cpu,
                          const struct slc_tile_view *tile,
                          unsigned char *output,
                          struct slc_mttkrp_span *span)
{
    unsigned count = 0;

    memset(span, 0, sizeof *span);
    for (unsigned m = 0; m < cpu->job.order; m++) {
        if (m != cpu->job.mode) {
            const unsigned char *rows = cpu->job.factors[m]->buffer.data;
            span->factor[count++] = rows + tile->corner[m] * cpu->stride;
        }
    }
    if (count == 0) {
        span->factor[0] = cpu->ones;
        span->offset[0] = zero_offsets;
        count = 1;
    }
    span->factor_count = count;
    span->prefetch = cpu->prefetch;
    span->stride = cpu->stride;
    span->row_bytes = cpu->stride;
    span->output = output;
}

/* Restricts a span of whole rows to `columns`. */
static void span_narrow(const struct slc_cpu_backend *cpu,
                        struct slc_columns columns,
                        struct slc_mttkrp_span *span)
{
    for (unsigned m = 0; m < span->factor_count; m++) {
        span->factor[m] += columns.begin;
    }
    span->output = slc_columns_of(cpu, columns, span->output);
    span->row_bytes = columns.bytes;
}

void slc_mttkrp_accumulate_as(const struct slc_cpu_backend *cpu, const struct slc_mttkrp_span *span)
{
    slc_panels_add(cpu->kernels, cpu->type, span);
}

void slc_mttkrp_accumulate(const struct slc_cpu_backend *cpu, struct slc_mttkrp_span *span)
{
    uint32_t changes = 1;

    for (uint32_t i = 1; i < span->nnz; i++) {
        changes += span->rows[i] != span->rows[i - 1];
    }
    /* Merging short runs costs more time by mispredicted branches than it saves by fewer loads and
     * stores: with runs of two, 5.4 ns instead of 3.0 ns per nonzero were measured (N = 4, R = 16,
     * AVX-512). */
    span->merge_runs = changes <= span->nnz / 8;
    slc_mttkrp_accumulate_as(cpu, span);
}

enum slc_status slc_mttkrp_add_tile(const struct slc_cpu_backend *cpu,
                                    struct slc_tile_view *tile,
                                    unsigned char *output,
                                    struct slc_columns columns,
                                    struct slc_error *err)
{
    const uint32_t most = cpu->job.output->cols == 1 ? COLUMN_CHUNK_NNZ : SLC_CHUNK_NNZ;
    struct slc_mttkrp_span span;
    struct slc_chunk_view chunk;

    /* A tensor of order 1 has no other mode that runs could share. */
    if (tile->next_fibers != NULL && cpu->job.order > 1) {
        SLC_TRY(slc_mttkrp_add_fibers(cpu, tile, output, columns, err));
    }
    slc_mttkrp_span_init(cpu, tile, output, &span);
    span_narrow(cpu, columns, &span);
    for (;;) {
        const enum slc_status status = tile->next(tile, most, &chunk, err);
        unsigned factor = 0;

        if (status != SLC_OK || chunk.nnz == 0) {
            return status;
        }
        assert(chunk.nnz <= most);
        for (unsigned m = 0; m < cpu->job.order; m++) {
            if (m != cpu->job.mode) {
                span.offset[factor++] = chunk.offset[m];
            }
        }
        span.nnz = chunk.nnz;
        span.rows = chunk.offset[cpu->job.mode];
        span.values = chunk.values;
        slc_mttkrp_accumulate(cpu, &span);
    }
}

struct slc_columns slc_worker_columns(const struct slc_cpu_backend *cpu, unsigned worker)
{
    const uint64_t lines = slc_div_up_u64(cpu->stride, COLUMN_UNIT_BYTES);
    const uint64_t begin = lines * worker / cpu->job.workers * COLUMN_UNIT_BYTES;
    const uint64_t end = lines * (worker + 1) / cpu->job.workers * COLUMN_UNIT_BYTES;

    return (struct slc_columns){begin, slc_min_u64(end, cpu->stride) - begin};
}

/* Adds a tile to the output, but only in the columns that belong to the worker. A worker without
 * columns does not decode the tile. */
static enum slc_status add_columns(struct slc_cpu_backend *cpu,
                                   unsigned worker,
                                   struct slc_tile_view *tile,
                                   struct slc_error *err)
{
    const struct slc_columns columns = slc_worker_columns(cpu, worker);

    return columns.bytes == 0
               ? SLC_OK
               : slc_mttkrp_add_tile(cpu, tile,
                                     cpu->sums + tile->corner[cpu->job.mode] * cpu->sum_stride,
                                     columns, err);
}

/* Adds a tile to the output with the strategy `conflict`. */
static enum slc_status add_tile_as(struct slc_cpu_backend *cpu,
                                   enum slc_conflict conflict,
                                   unsigned worker,
                                   struct slc_tile_view *tile,
                                   struct slc_error *err)
{
    const uint64_t corner_at = tile->corner[cpu->job.mode] * cpu->sum_stride;
    unsigned char *output;

    switch (conflict) {
    case SLC_CONFLICT_PRIVATE:
        output = slc_private_sums(cpu, worker, tile) + corner_at;
        break;
    case SLC_CONFLICT_ROWS:
        output = slc_split_rows_sums(cpu, tile);
        break;
    case SLC_CONFLICT_LOCKED:
    case SLC_CONFLICT_ORDERED:
        return slc_mttkrp_partial_tile(cpu, worker, tile, err);
    case SLC_CONFLICT_COLUMNS:
        return add_columns(cpu, worker, tile, err);
    case SLC_CONFLICT_AUTO:
    case SLC_CONFLICT_DIRECT:
    default:
        output = cpu->sums + corner_at;
        break;
    }
    return slc_mttkrp_add_tile(cpu, tile, output, slc_all_columns(cpu), err);
}

/* Adds a tile to the output with the trial's strategy, and the time of the tile to the trial. */
static enum slc_status add_trial_tile(struct slc_cpu_backend *cpu,
                                      unsigned worker,
                                      struct slc_tile_view *tile,
                                      struct slc_error *err)
{
    const uint64_t copied_before = cpu->workers[worker].copied_bytes;
    struct slc_trial_turn *turn;
    const enum slc_conflict conflict = slc_trial_next_strategy(&cpu->trial, &turn);

    if (turn == NULL) {
        return add_tile_as(cpu, conflict, worker, tile, err);
    }
    if (conflict == SLC_CONFLICT_PRIVATE) {
        /* initialize the rows before the time is measured */
        (void)slc_private_sums(cpu, worker, tile);
    }
    uint64_t start_ns = cpu->trial.clock_ns();
    SLC_TRY(add_tile_as(cpu, conflict, worker, tile, err));
    slc_trial_add_tile(&cpu->trial, turn, tile->nnz, cpu->trial.clock_ns() - start_ns,
                       cpu->workers[worker].copied_bytes - copied_before);
    return SLC_OK;
}

enum slc_status slc_mttkrp_check_reach(const struct slc_mttkrp_job *job,
                                       const struct slc_tile_view *tile,
                                       struct slc_error *err)
{
    for (unsigned m = 0; m < job->order; m++) {
        const struct slc_matrix *matrix = m == job->mode ? job->output : job->factors[m];

        if (tile->corner[m] >= matrix->rows ||
            tile->extent[m] > matrix->rows - 1 - tile->corner[m]) {
            return slc_fail(err, SLC_ERR_USAGE,
                            "tile %llu has indices from %llu to %llu in mode %u, but the matrix of "
                            "this mode has %llu rows",
                            (unsigned long long)tile->ordinal, (unsigned long long)tile->corner[m],
                            (unsigned long long)tile->corner[m] + tile->extent[m], m + 1,
                            (unsigned long long)matrix->rows);
        }
    }
    return SLC_OK;
}

static enum slc_status check_tile(const struct slc_cpu_backend *cpu,
                                  unsigned worker,
                                  const struct slc_tile_view *tile,
                                  struct slc_error *err)
{
    if (!cpu->running || worker >= cpu->job.workers || tile->order != cpu->job.order ||
        tile->value_type != cpu->type) {
        return slc_fail(
            err, SLC_ERR_USAGE,
            "tile %llu (order %u, worker %u) does not belong to the MTTKRP that was begun",
            (unsigned long long)tile->ordinal, tile->order, worker);
    }
    if (cpu->conflict == SLC_CONFLICT_ROWS &&
        (tile->partition >= cpu->job.partitions ||
         (tile->continued && tile->extent[cpu->job.mode] != 0))) {
        return slc_fail(err, SLC_ERR_USAGE, "tile %llu belongs to partition %llu of %llu%s",
                        (unsigned long long)tile->ordinal, (unsigned long long)tile->partition,
                        (unsigned long long)cpu->job.partitions,
                        tile->continued ? " and continues more than one row" : "");
    }
    if (tile->nnz > SLC_TILE_NNZ || tile->nnz > cpu->job.nnz) {
        return slc_fail(
            err, SLC_ERR_USAGE, "tile %llu has %u nonzeros, but the tensor has only %llu",
            (unsigned long long)tile->ordinal, tile->nnz, (unsigned long long)cpu->job.nnz);
    }
    return slc_mttkrp_check_reach(&cpu->job, tile, err);
}

enum slc_status slc_mttkrp_tile(struct slc_backend *backend,
                                unsigned worker,
                                struct slc_tile_view *tile,
                                struct slc_error *err)
{
    struct slc_cpu_backend *cpu = (struct slc_cpu_backend *)(void *)backend;

    SLC_TRY(check_tile(cpu, worker, tile, err));
    return cpu->trial.on ? add_trial_tile(cpu, worker, tile, err)
                         : add_tile_as(cpu, cpu->conflict, worker, tile, err);
}

void slc_mttkrp_rows(struct slc_backend *backend, uint64_t begin, uint64_t end)
{
    const struct slc_cpu_backend *cpu = (struct slc_cpu_backend *)(void *)backend;

    assert(cpu->running && cpu->conflict == SLC_CONFLICT_ROWS && end <= cpu->job.output->rows);
    /* f64 sums are in the output itself and need no rounding. */
    if (cpu->layout.wide_bytes > 0) {
        slc_private_round(cpu, begin, end);
    }
}

void slc_mttkrp_abort(struct slc_backend *backend)
{
    struct slc_cpu_backend *cpu = (struct slc_cpu_backend *)(void *)backend;

    (void)pthread_mutex_lock(&cpu->order_mutex);
    cpu->aborted = true;
    (void)pthread_cond_broadcast(&cpu->order_changed);
    (void)pthread_mutex_unlock(&cpu->order_mutex);
}

enum slc_status slc_mttkrp_end(struct slc_backend *backend, struct slc_error *err)
{
    struct slc_cpu_backend *cpu = (struct slc_cpu_backend *)(void *)backend;

    if (!cpu->running) {
        return slc_fail(err, SLC_ERR_USAGE, "mttkrp_end was called, but no MTTKRP was begun");
    }
    cpu->running = false;
    if (cpu->aborted) {
        return slc_fail(err, SLC_ERR_INTERRUPTED, "the MTTKRP was stopped before its end");
    }
    if (cpu->conflict == SLC_CONFLICT_ROWS) {
        slc_split_rows_finish(cpu);
    }
    if (cpu->conflict == SLC_CONFLICT_PRIVATE || cpu->trial.on || cpu->layout.wide_bytes > 0) {
        SLC_TRY(slc_private_finish(cpu, err));
    }
    if (cpu->trial.on) {
        slc_trial_end(&cpu->trial);
    }
    return SLC_OK;
}
