/* Predicts the cost of each strategy from the shape of a job.
 *
 * All strategies decode nonzeros and multiply their factor rows. They differ in the cost of sums:
 *
 *   private   every piece of a worker's copy that its tiles reach is zeroed and added up once
 *   locked    a tile's window of rows is zeroed and committed; or, if the tile has too few nonzeros
 *             for a window, the tile is sorted and its rows are committed
 *   columns   every worker decodes all nonzeros, and computes only its own columns
 *
 * The number of rows that a tile spans is estimated from the order of keys (base/key.h). A tile is
 * one of nnz / SLC_TILE_NNZ equal parts of this order, so the highest bits of the keys are constant
 * within a tile. Each of these bits that belongs to a mode halves the number of rows of that
 * mode. */
#include "base/key.h"
#include "base/memory/checked.h"
#include "cpu/mttkrp/mttkrp.h"

#include <math.h>
#include <string.h>

/* Constants in ns, measured with 2 and 4 workers, R = 16 and 32, f64, on nine tensors. Private
 * copies cost 0.15 ns per byte if they stay in the last-level cache, otherwise 0.27 to 0.38 ns. */
#define COPY_NS_PER_BYTE   0.35 /* zeroing, adding up, sometimes mapping pages */
#define WINDOW_NS_PER_BYTE 0.2
#define SORT_NS_PER_NNZ    6.0 /* staging, sorting and gathering */
/* Time to decode and multiply a nonzero whose rows are in a cache. */
#define TILE_NS_PER_NNZ 1.5
#define ROW_NS_PER_BYTE 0.01
/* Bytes of a cache line of sums, the unit in which columns are divided among workers. */
#define LINE_BYTES 64.0

/* Largest predicted cost of a trial, as a fraction of the time of the pass. The predictions
 * identify the faster strategy if keys are distributed like random keys, but not always: in a
 * tensor of words and their neighbours with a mode of size 4.8 M, sorted tiles took 16 ns per
 * nonzero although 32 ns were predicted, and copies took 12 to 18 ns although 9 ns were predicted.
 * Therefore every affordable trial is run, not only trials of strategies with similar
 * predictions. */
#define TRIAL_COST_MAX 0.05
/* A trial uses at most 1 / TRIAL_PART of the tiles, so that the other tiles benefit from the
 * trial. */
enum { TRIAL_PART = 4 };
/* If the cost of sums is less than this fraction of the other work, no trial is made. */
#define NEGLIGIBLE 0.05

/* The numbers of a job on which its costs depend. */
struct shape {
    double nnz, rows, row_bytes, workers;
    double tiles, tile_nnz, tile_rows;
};

/* Returns the estimated number of output rows that a tile spans. */
static double tile_rows(const struct slc_mttkrp_job *job, uint64_t output_rows, double tiles)
{
    const unsigned top = tiles > 1.0 ? (unsigned)ceil(log2(tiles)) : 0;
    uint64_t dims[SLC_MAX_ORDER];
    struct slc_key_layout layout;
    unsigned halved = 0;

    for (unsigned m = 0; m < job->order; m++) {
        dims[m] = m == job->mode ? output_rows : job->factors[m]->rows;
    }
    if (slc_key_layout_init(&layout, job->order, dims, NULL) != SLC_OK || top > layout.bits) {
        return (double)output_rows;
    }
    for (unsigned bit = layout.bits - top; bit < layout.bits; bit++) {
        const uint64_t mask =
            bit < 64 ? layout.mask_lo[job->mode] >> bit : layout.mask_hi[job->mode] >> (bit - 64);

        halved += (unsigned)(mask & 1U);
    }
    return fmax(1.0, ldexp((double)output_rows, -(int)halved));
}

static struct shape
shape_of(const struct slc_mttkrp_job *job, enum slc_value_type type, uint64_t output_rows)
{
    struct shape shape = {.nnz = (double)slc_max_u64(job->nnz, 1),
                          .rows = (double)output_rows,
                          .row_bytes = (double)slc_mttkrp_sum_stride(job, type),
                          .workers = (double)slc_max_u64(job->workers, 1)};

    shape.tiles = fmax(1.0, shape.nnz / SLC_TILE_NNZ);
    shape.tile_nnz = fmin(shape.nnz, SLC_TILE_NNZ);
    shape.tile_rows = tile_rows(job, output_rows, shape.tiles);
    return shape;
}

static double base_ns(const struct slc_mttkrp_job *job, const struct shape *shape)
{
    return TILE_NS_PER_NNZ + ROW_NS_PER_BYTE * job->order * shape->row_bytes;
}

/* Returns how many bytes of `copies` private copies receive sums if each worker processes `tiles`
 * tiles. */
static double copied_bytes(const struct shape *shape, double copies, double tiles)
{
    return copies * fmin(shape->rows, tiles * shape->tile_rows) * shape->row_bytes;
}

/* Returns the cost per nonzero of strategy private, in which worker 0 adds directly to the
 * output. */
static double private_ns(const struct shape *shape)
{
    return COPY_NS_PER_BYTE *
           copied_bytes(shape, shape->workers - 1, shape->tiles / shape->workers) / shape->nnz;
}

static double locked_ns(const struct shape *shape)
{
    const double rows = shape->tile_rows;

    if (slc_mttkrp_dense((uint64_t)rows, (uint64_t)shape->tile_nnz,
                         (uint64_t)(SLC_WINDOW_BYTES / shape->row_bytes))) {
        return WINDOW_NS_PER_BYTE * rows * shape->row_bytes / shape->tile_nnz;
    }
    /* If tile_nnz nonzeros are distributed over `rows` rows at random, the expected number of
     * nonempty rows is rows * -expm1(-tile_nnz / rows). */
    return SORT_NS_PER_NNZ + WINDOW_NS_PER_BYTE * shape->row_bytes *
                                 (rows * -expm1(-shape->tile_nnz / rows)) / shape->tile_nnz;
}

/* Returns the cost per nonzero of strategy columns, in which each worker computes whole cache
 * lines. */
static double columns_ns(const struct slc_mttkrp_job *job, const struct shape *shape)
{
    const double lines = ceil(shape->row_bytes / LINE_BYTES);
    const double share_bytes = ceil(lines / shape->workers) * LINE_BYTES;

    return shape->workers * (TILE_NS_PER_NNZ + ROW_NS_PER_BYTE * job->order * share_bytes);
}

/* Returns the cost of a trial as a fraction of the time of the pass. Half of a trial's tiles use
 * the slower strategy, and copies may be created only for the trial. */
static double trial_cost(const struct slc_conflict_cost costs[SLC_CONFLICT_CANDIDATES],
                         const struct shape *shape)
{
    const double tiles = SLC_TRIAL_TILES_PER_WORKER / 2.0;
    const double slower = costs[1].predicted_ns / costs[0].predicted_ns - 1.0;
    const double copies = copied_bytes(shape, shape->workers, tiles);
    const double cost = tiles * shape->workers / shape->tiles * slower;

    return costs[0].conflict == SLC_CONFLICT_PRIVATE
               ? cost
               : cost + COPY_NS_PER_BYTE * copies / (shape->nnz * costs[0].predicted_ns);
}

/* Returns true if a trial may be worthwhile; costs[0] has the lower predicted cost. */
static bool is_trial_worthwhile(const struct slc_conflict_cost costs[SLC_CONFLICT_CANDIDATES],
                                double base,
                                const struct shape *shape)
{
    const double tiles = SLC_TRIAL_TILES_PER_WORKER * shape->workers;

    return costs[1].predicted_ns >= (1.0 + NEGLIGIBLE) * base &&
           shape->tiles >= TRIAL_PART * tiles && trial_cost(costs, shape) <= TRIAL_COST_MAX;
}

void slc_mttkrp_choose(const struct slc_mttkrp_job *job,
                       enum slc_value_type type,
                       uint64_t output_rows,
                       struct slc_conflict_choice *choice)
{
    struct slc_conflict_cost *costs = choice->costs;

    memset(choice, 0, sizeof *choice);
    if (job->conflict == SLC_CONFLICT_ROWS ||
        (job->conflict == SLC_CONFLICT_AUTO && job->partitions > 0)) {
        choice->chosen = SLC_CONFLICT_ROWS;
        return;
    }
    if (job->deterministic || job->conflict != SLC_CONFLICT_AUTO) {
        choice->chosen = job->deterministic ? SLC_CONFLICT_ORDERED : job->conflict;
        return;
    }
    struct shape shape = shape_of(job, type, output_rows);
    double base = base_ns(job, &shape);
    if (job->workers <= 1) {
        /* Compared with tile-local sums, the strategy direct was never slower, and up to 1.6 times
         * as fast. */
        choice->chosen = SLC_CONFLICT_DIRECT;
        choice->cost_count = 1;
        costs[0] = (struct slc_conflict_cost){SLC_CONFLICT_DIRECT, base, 0.0};
        return;
    }
    double copies = base + private_ns(&shape);
    double locked = base + locked_ns(&shape);
    choice->cost_count = SLC_CONFLICT_CANDIDATES;
    costs[copies > locked] = (struct slc_conflict_cost){SLC_CONFLICT_PRIVATE, copies, 0.0};
    costs[copies <= locked] = (struct slc_conflict_cost){SLC_CONFLICT_LOCKED, locked, 0.0};
    choice->chosen = costs[0].conflict;
    double columns = columns_ns(job, &shape);
    if (columns < locked) {
        choice->spare = (struct slc_conflict_cost){SLC_CONFLICT_COLUMNS, columns, 0.0};
    }
    if (is_trial_worthwhile(costs, base, &shape)) {
        choice->rival = costs[1].conflict;
    }
}
