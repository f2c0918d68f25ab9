/* State and functions that the files of the contraction of a store (engine/product/contract.h)
 * share: operands, memory and tiles. contract_sort.c passes sums to a builder; contract_ordered.c
 * writes sums without sorting, and contract_part.c restricts the result to a part. */
#ifndef SLC_ENGINE_CONTRACT_INTERNAL_H
#define SLC_ENGINE_CONTRACT_INTERNAL_H

#include "base/hash.h"
#include "base/memory/memory.h"
#include "convert/reshape/names_carry.h"
#include "engine/product/contract.h"
#include "engine/product/contract_tile.h"
#include "engine/product/operand.h"
#include "engine/product/part_record.h"
#include "storage/manifest/labels.h"
#include "storage/manifest/store.h"

#include <stdint.h>

/* State of one worker, updated a few times per tile. */
struct slc_contract_worker {
    double tile_sum; /* sum of the current tile */
};

struct slc_contract_run {
    const struct slc_contract_options *options;
    struct slc_contract_report *report;
    struct slc_store store;
    struct slc_reader *reader; /* reader of the layout that is read */
    const struct slc_layout_info *info;
    struct slc_contraction job;
    struct slc_part part;                       /* all zero unless the options choose a part */
    struct slc_operand operands[SLC_MAX_ORDER]; /* vector_count vectors */
    struct slc_operand more[SLC_CONTRACT_RESULTS_MAX - 1]; /* vectors of further results */
    struct slc_matrix columns; /* the vectors of all results for a device, if there are several */
    /* per result, with a part: hash of its vectors */
    struct slc_hash_stream hashes[SLC_CONTRACT_RESULTS_MAX];
    uint64_t zeros[SLC_CONTRACT_RESULTS_MAX]; /* per result, updated by all workers */
    struct slc_labels labels[SLC_MAX_ORDER];  /* label -> index, for kept relabelled modes */
    /* States which fibers the order of the result's nonzeros keeps together, if sums are sorted. */
    enum slc_fibers fibers;
    struct slc_fiber_run run;
    const struct slc_tile_products *products; /* NULL: workers multiply every tile */
    bool products_open;
    unsigned threads;        /* workers that multiply tiles on the CPU at the same time */
    unsigned workers;        /* all workers; more than `threads` if some wait for the device */
    uint64_t products_bytes; /* host memory of the device's lanes with `workers` workers */
    uint64_t budget_bytes;
    uint64_t fixed_bytes; /* bytes independent of the workers: process, operands */
    /* bytes that the stream may use beyond its minimum; set after `workers` */
    uint64_t spare_bytes;
    /* Smallest sufficient budget for writing without sorting; UINT64_MAX if that is impossible. */
    uint64_t least_ordered;
    struct slc_buffer memory; /* memory of all workers, slc_contract_tile_bytes each */
    struct slc_buffer sums;   /* one f64 per tile, if the result is a number */
    struct slc_contract_worker worker[SLC_MAX_THREADS];
    uint64_t tiles_done, tiles;   /* tiles of all passes */
    struct slc_names_carry names; /* names of the kept modes, if the options request them */
};

/* Returns true if a vector is short (operand.h). */
static inline bool slc_contract_has_short(const struct slc_contract_run *run)
{
    bool any = false;

    for (unsigned k = 0; k < run->job.vector_count; k++) {
        any |= slc_operand_is_short(&run->operands[k]);
    }
    return any;
}

/* Returns the number of elements of the first vector in memory. */
static inline uint64_t slc_contract_vector_rows(const struct slc_contract_run *run)
{
    return slc_used_elements(&run->operands[0].used, run->operands[0].length);
}

/* Counts a tile of a pass. Worker 0 reports progress. */
void slc_contract_count_tile(struct slc_contract_run *run, unsigned worker);
/* Returns the number of tiles that the scan delivers. */
static inline uint64_t slc_contract_tiles(const struct slc_contract_run *run)
{
    return run->job.part != NULL ? run->part.tile_count : run->info->tile_count;
}

/* Computes the part that the options choose, if any, and restricts the stream to its blocks. Needs:
 * the layout is chosen. Errors: those of slc_part_open; SLC_ERR_USAGE if the result is a number;
 * SLC_ERR_UNSUPPORTED with a device. slc_contract_close_part releases the part. */
enum slc_status slc_contract_open_part(struct slc_contract_run *run,
                                       struct slc_error *err) SLC_NODISCARD;
void slc_contract_close_part(struct slc_contract_run *run);

/* Sets origin->part to the record of the part of a result, if there is one. Needs: the vectors were
 * loaded. */
void slc_contract_record_part(const struct slc_contract_run *run,
                              unsigned result,
                              struct slc_store_origin *origin);

/* Returns the fewest bytes with which run->workers workers can scan the store, without
 * fixed_bytes. */
uint64_t slc_contract_scan_bytes(const struct slc_contract_run *run);

/* Returns the total bytes that a contraction with run->workers workers needs. */
typedef uint64_t slc_contract_needs_fn(const struct slc_contract_run *run, const void *context);

/* Chooses as many of the requested threads as fit in the budget, at least one. Sets run->threads,
 * run->workers and run->products_bytes, *least to the smallest sufficient budget, and *needs to the
 * bytes for the chosen threads, which may exceed the budget. Errors: those of planning the
 * device. */
enum slc_status slc_contract_fit_threads(struct slc_contract_run *run,
                                         slc_contract_needs_fn *needs_of,
                                         const void *context,
                                         uint64_t *least,
                                         uint64_t *needs,
                                         struct slc_error *err) SLC_NODISCARD;

/* Sets run->spare_bytes to the additional bytes that make reading for run->workers workers faster,
 * at most `bytes`. */
void slc_contract_set_spare(struct slc_contract_run *run, uint64_t bytes);

/* Calls `steps` for every tile. The options' stream or, if it is NULL, a scan of the file reads the
 * tiles. Errors: those of the stream or scan, and of the steps. */
enum slc_status slc_contract_scan(struct slc_contract_run *run,
                                  const struct slc_tile_steps *steps,
                                  struct slc_error *err) SLC_NODISCARD;

/* Opens the stream, finds the used indices of short vectors, reads vectors and labels, allocates
 * the workers' memory and opens the device. `in_order` states whether the steps of
 * slc_contract_scan have turns. Needs: run->workers is set. */
enum slc_status slc_contract_start(struct slc_contract_run *run,
                                   bool in_order,
                                   struct slc_error *err) SLC_NODISCARD;

/* Releases everything that slc_contract_start created, even after it failed. */
void slc_contract_release(struct slc_contract_run *run);

/* Return the path of a result, and its report. */
static inline const char *slc_contract_output(const struct slc_contract_run *run, unsigned result)
{
    return result == 0 ? run->options->output : run->options->more[result - 1].output;
}
static inline struct slc_builder_report *
slc_contract_build_report(const struct slc_contract_run *run, unsigned result)
{
    return result == 0 ? &run->report->build : &run->options->more[result - 1].build;
}

/* Margin that is added to the reported smallest budget, because the process may need more memory in
 * the next run. */
#define SLC_CONTRACT_MARGIN (UINT64_C(1) << 20)

/* Returns SLC_ERR_BUDGET. The message states the smaller of `least` and run->least_ordered, plus
 * the margin. */
enum slc_status slc_contract_fail_budget(const struct slc_contract_run *run,
                                         uint64_t least,
                                         struct slc_error *err) SLC_NODISCARD;

/* Contracts one tile, passes its sums to `sink`, and reports progress. */
enum slc_status slc_contract_one(struct slc_contract_run *run,
                                 unsigned worker,
                                 struct slc_tile_view *tile,
                                 slc_contract_sink_fn *sink,
                                 void *context,
                                 struct slc_error *err) SLC_NODISCARD;

/* Creates the result with a builder, which sorts the sums. */
enum slc_status slc_contract_sorted(struct slc_contract_run *run,
                                    struct slc_error *err) SLC_NODISCARD;

/* Returns true if the sums arrive in the order of the result, so that they need not be sorted. Sets
 * *layout to the key layout of the result. */
bool slc_contract_keeps_order(const struct slc_contract_run *run, struct slc_key_layout *layout);

/* Plans the memory for writing without sorting. Sets *fits to false if the budget is too small, and
 * sets run->least_ordered. Errors: those of slc_contract_fit_threads. */
enum slc_status slc_contract_fits_ordered(struct slc_contract_run *run,
                                          const struct slc_key_layout *layout,
                                          bool *fits,
                                          struct slc_error *err) SLC_NODISCARD;

/* Creates the result without sorting. Needs: slc_contract_fits_ordered set *fits to true. */
enum slc_status slc_contract_ordered(struct slc_contract_run *run,
                                     const struct slc_key_layout *layout,
                                     struct slc_error *err) SLC_NODISCARD;

#endif
