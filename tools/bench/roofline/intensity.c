/* Evaluates the tables of [XPLAT]. */
#include "tools/bench/roofline/intensity.h"

#include "base/memory/memory.h"
#include "tools/bench/measure/run.h"
#include "tools/bench/product/fiber_count.h"

#include <math.h>

enum { WORD_BYTES = 4 };

struct intensity intensity_count(
    bool mttkrp, bool fpga, unsigned order, double columns, double units, double fibers, double nnz)
{
    const double others = order - 2.0;
    struct intensity count = {
        .operations = 2 * columns * nnz, .loads = (columns + 2) * nnz, .stores = columns * units};

    if (mttkrp) {
        count.operations += (others + 1) * columns * fibers;
        count.loads += (1 + others * (columns + 1)) * fibers;
        count.loads += fpga ? units + 2 : 3 * units;
    } else {
        count.loads += fpga ? units + 1 : 2 * units;
    }
    return count;
}

double intensity_per_byte(const struct intensity *count)
{
    return count->operations / (WORD_BYTES * (count->loads + count->stores));
}

/* Number of column counts that are evaluated: one column (element-centric), and each rank. */
enum { COLUMNS_MAX = OPTION_COUNTS_MAX + 1 };

/* Least and most operations per byte of a unit of work, for each number of columns. */
struct range {
    double least[COLUMNS_MAX], most[COLUMNS_MAX];
};

/* What is known of a mode. */
struct mode_counts {
    uint64_t fibers, slices; /* nonempty fibers and slices of the mode */
    struct range ttm, mttkrp;
};

/* The numbers of columns of units of work: 1, then the ranks. */
struct columns {
    unsigned count;
    double number[COLUMNS_MAX];
};

/* Widens a range by a unit of work. */
static void add_unit(const struct columns *columns,
                     unsigned order,
                     bool mttkrp,
                     const struct fiber_slice *unit,
                     struct range *range)
{
    for (unsigned c = 0; c < columns->count; c++) {
        const struct intensity count = intensity_count(mttkrp, false, order, columns->number[c], 1,
                                                       (double)unit->fibers, (double)unit->nnz);

        range->least[c] = fmin(range->least[c], intensity_per_byte(&count));
        range->most[c] = fmax(range->most[c], intensity_per_byte(&count));
    }
}

static struct range empty_range(void)
{
    struct range range;

    for (unsigned c = 0; c < COLUMNS_MAX; c++) {
        range.least[c] = INFINITY;
        range.most[c] = 0;
    }
    return range;
}

/* Evaluates the units of TTM in mode `mode`, and of the MTTKRPs that have its fibers. */
static void evaluate(const struct fiber_count *count,
                     const struct columns *columns,
                     const struct slc_manifest *manifest,
                     unsigned mode,
                     struct mode_counts *modes)
{
    const struct fiber_slice shortest = {1, count->shortest}, longest = {1, count->longest};
    struct range *ttm = &modes[mode].ttm;

    modes[mode].fibers = count->fibers;
    *ttm = empty_range();
    add_unit(columns, manifest->order, false, &shortest, ttm);
    add_unit(columns, manifest->order, false, &longest, ttm);
    for (unsigned n = 0; n < manifest->order; n++) {
        if (count->slice[n] == NULL) {
            continue;
        }
        modes[n].slices = count->slices[n];
        modes[n].mttkrp = empty_range();
        for (uint64_t i = 0; i < manifest->dims[n]; i++) {
            if (count->slice[n][i].nnz > 0) {
                add_unit(columns, manifest->order, true, &count->slice[n][i], &modes[n].mttkrp);
            }
        }
    }
}

/* Adds a row. `rank` 0: element-centric. `range`: NULL for table 3. */
static void add_row(const struct roofline_job *job,
                    const struct mode_counts *modes,
                    unsigned mode,
                    bool mttkrp,
                    unsigned column,
                    uint64_t rank,
                    const struct range *range,
                    json_t *rows)
{
    const struct slc_manifest *manifest = &job->session->store.manifest;
    const unsigned fiber_mode = mttkrp ? fiber_count_mode(manifest->order, mode) : mode;
    const double columns = rank == 0 ? 1 : (double)rank;
    const double fibers = (double)modes[fiber_mode].fibers;
    const double units = mttkrp ? (double)modes[mode].slices : fibers;
    const struct intensity total = intensity_count(mttkrp, range == NULL, manifest->order, columns,
                                                   units, fibers, (double)manifest->nnz);
    const struct intensity least =
        intensity_count(mttkrp, range == NULL, manifest->order, 1, 1, 1, 1);
    json_t *row = bench_add_row(rows);

    slc_json_set_text(row, "tensor", job->tensor);
    slc_json_set_text(row, "operation", mttkrp ? "mttkrp" : "ttm");
    slc_json_set_text(row, "form",
                      range == NULL ? "fpga"
                      : rank == 0   ? "element-centric"
                      : mttkrp      ? "row-centric"
                                    : "fiber-centric");
    if (rank > 0) {
        slc_json_set_count(row, "rank", rank);
    }
    slc_json_set_count(row, "mode", mode + 1);
    slc_json_set_count(row, "fiber_mode", fiber_mode + 1);
    if (mttkrp) {
        slc_json_set_count(row, "slices", modes[mode].slices);
    }
    slc_json_set_count(row, "fibers", modes[fiber_mode].fibers);
    bench_set_real(row, "operations", total.operations);
    bench_set_real(row, "loads", total.loads);
    bench_set_real(row, "stores", total.stores);
    bench_set_real(row, "flop_per_byte", intensity_per_byte(&total));
    if (range != NULL) {
        bench_set_real(row, "least_flop_per_byte", range->least[column]);
        bench_set_real(row, "most_flop_per_byte", range->most[column]);
    }
    bench_set_real(row, "ai_min", intensity_per_byte(&least));
    /* The limit for many nonzeros: per nonzero and C columns, 2 C operations and C + 2 loads. */
    bench_set_real(row, "ai_max", rank == 0 ? 1.0 / 6 : 0.5);
}

/* Counts and evaluates the fibers of every mode. */
static enum slc_status count_modes(const struct roofline_job *job,
                                   const struct columns *columns,
                                   struct mode_counts *modes,
                                   struct slc_error *err)
{
    const struct slc_store *store = &job->session->store;
    enum slc_status status = SLC_OK;

    for (unsigned n = 0; n < store->manifest.order && status == SLC_OK; n++) {
        const struct fiber_order_options options = {
            .mode = n, .memory_bytes = job->memory_bytes, .threads = job->threads, .quiet = true};
        struct fiber_count count;

        status = fiber_count_scan(store, &options, job->temp_dir, store->manifest.order >= 3,
                                  &count, err);
        if (status == SLC_OK) {
            evaluate(&count, columns, &store->manifest, n, modes);
        }
        slc_buffer_destroy(&count.memory);
    }
    return status;
}

enum slc_status intensity_add_rows(const struct roofline_job *job,
                                   const struct option_counts *ranks,
                                   json_t *rows,
                                   struct slc_error *err)
{
    const struct slc_manifest *manifest = &job->session->store.manifest;
    const unsigned operations = manifest->order >= 3 ? 2 : 1;
    struct columns columns = {.count = ranks->count + 1, .number = {1}};

    if (manifest->nnz == 0) {
        return SLC_OK;
    }
    struct mode_counts *modes = slc_calloc(SLC_MAX_ORDER, sizeof *modes);
    SLC_TRY(slc_check_memory(modes != NULL, err, "for the modes"));
    for (unsigned r = 0; r < ranks->count; r++) {
        columns.number[r + 1] = (double)ranks->number[r];
    }
    enum slc_status status = count_modes(job, &columns, modes, err);
    for (unsigned k = 0; k < operations * manifest->order && status == SLC_OK; k++) {
        const bool mttkrp = k >= manifest->order;
        const unsigned n = mttkrp ? k - manifest->order : k;
        const struct range *range = mttkrp ? &modes[n].mttkrp : &modes[n].ttm;

        add_row(job, modes, n, mttkrp, 0, 0, range, rows);
        for (unsigned r = 0; r < ranks->count; r++) {
            add_row(job, modes, n, mttkrp, r + 1, ranks->number[r], range, rows);
            add_row(job, modes, n, mttkrp, r + 1, ranks->number[r], NULL, rows);
        }
    }
    slc_free(modes);
    return status;
}
