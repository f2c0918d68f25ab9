/*
 * Shared by the variants of contracting a store (engine/product/contract.h): operands, memory and
 * tiles of a run. contract_sort.c pushes sums to a builder, contract_ordered.c writes them without
 * sorting.
 */
#ifndef SLC_ENGINE_CONTRACT_INTERNAL_H
#define SLC_ENGINE_CONTRACT_INTERNAL_H

#include "base/matrix.h"
#include "base/memory/memory.h"
#include "convert/reshape/names_carry.h"
#include "engine/product/contract.h"
#include "engine/product/contract_tile.h"
#include "storage/manifest/labels.h"
#include "storage/manifest/store.h"

#include <stdint.h>

/* State of one worker; written a few times per tile. */
struct slc_contract_worker {
    uint64_t zeros;
    double tile_sum; /* sum of the current tile */
};

struct slc_contract_run {
    const struct slc_contract_options *options;
    struct slc_contract_report *report;
    struct slc_store store;
    struct slc_reader *reader; /* reader of the layout */
    const struct slc_layout_info *info;
    struct slc_contraction job;
    struct slc_matrix vectors[SLC_MAX_ORDER];
    struct slc_labels labels[SLC_MAX_ORDER]; /* index of each label, for kept relabelled modes */
    /* The fibers that the result keeps together, if sums are sorted. */
    enum slc_fibers fibers;
    struct slc_fiber_run run;
    const struct slc_tile_products *products; /* NULL: workers multiply every tile */
    bool products_open;
    unsigned threads;        /* workers that multiply tiles on the CPU at the same time */
    unsigned workers;        /* all workers; more than `threads` if some wait for products */
    uint64_t products_bytes; /* host memory of products with `workers` workers */
    uint64_t budget_bytes;
    uint64_t fixed_bytes; /* bytes independent of the workers: process, operands */
    uint64_t spare_bytes; /* bytes for reading beyond the minimum; set after `workers` */
    /* Smallest budget for writing without sorting; UINT64_MAX: impossible. */
    uint64_t least_ordered;
    struct slc_buffer memory; /* memory of all workers, slc_contract_tile_bytes each */
    struct slc_buffer sums;   /* one f64 per tile, if the result is a number */
    struct slc_contract_worker worker[SLC_MAX_THREADS];
    uint64_t tiles_done;
    struct slc_names_carry names; /* names of the kept modes, if the options request them */
};

/* Returns the minimum bytes of the scan with run->workers, without fixed_bytes. */
uint64_t slc_contract_scan_bytes(const struct slc_contract_run *run);

/* Returns the total bytes of a variant with run->workers. */
typedef uint64_t slc_contract_needs_fn(const struct slc_contract_run *run, const void *context);

/*
 * Uses as many of the requested threads as fit the budget, at least one: sets run->threads,
 * run->workers and run->products_bytes. Sets *least to the smallest sufficient budget and *needs to
 * the bytes used, which may exceed the budget. Errors: those of planning products.
 */
enum slc_status slc_contract_fit_threads(struct slc_contract_run *run,
                                         slc_contract_needs_fn *needs_of,
                                         const void *context,
                                         uint64_t *least,
                                         uint64_t *needs,
                                         struct slc_error *err) SLC_NODISCARD;

/* Sets run->spare_bytes: the part of `bytes` that makes reading with run->workers faster. */
void slc_contract_set_spare(struct slc_contract_run *run, uint64_t bytes);

/*
 * Passes all tiles through the steps, from the options' stream or by a scan. Errors: those of the
 * stream or scan and of the steps.
 */
enum slc_status slc_contract_scan(struct slc_contract_run *run,
                                  const struct slc_tile_steps *steps,
                                  struct slc_error *err) SLC_NODISCARD;

/*
 * Reads vectors and labels, allocates the workers' memory and opens products. Needs run->workers.
 */
enum slc_status slc_contract_start(struct slc_contract_run *run,
                                   struct slc_error *err) SLC_NODISCARD;

/* Releases everything that slc_contract_start created, even after it failed. */
void slc_contract_release(struct slc_contract_run *run);

/*
 * Added to the smallest budget that is reported, because the process may need more memory in the
 * next run.
 */
#define SLC_CONTRACT_MARGIN (UINT64_C(1) << 20)

/* Fails with SLC_ERR_BUDGET, naming the smaller of `least` and run->least_ordered. */
enum slc_status slc_contract_fail_budget(const struct slc_contract_run *run,
                                         uint64_t least,
                                         struct slc_error *err) SLC_NODISCARD;

/* Passes the sums of a tile to `sink`; reports progress. */
enum slc_status slc_contract_one(struct slc_contract_run *run,
                                 unsigned worker,
                                 struct slc_tile_view *tile,
                                 slc_contract_sink_fn *sink,
                                 void *context,
                                 struct slc_error *err) SLC_NODISCARD;

/* Creates the store with a builder, which sorts the sums. */
enum slc_status slc_contract_sorted(struct slc_contract_run *run,
                                    struct slc_error *err) SLC_NODISCARD;

/* True if the sums arrive in the order of a store with these options, so that they need not be
 * sorted; sets *layout to the key layout of that store. */
bool slc_contract_keeps_order(const struct slc_contract_run *run, struct slc_key_layout *layout);

/* Divides memory for writing without sorting; sets *fits to false if memory is too small. Sets
 * run->least_ordered. Errors: those of slc_contract_fit_threads. */
enum slc_status slc_contract_fits_ordered(struct slc_contract_run *run,
                                          const struct slc_key_layout *layout,
                                          bool *fits,
                                          struct slc_error *err) SLC_NODISCARD;

/* Creates the store without sorting; call slc_contract_fits_ordered first. */
enum slc_status slc_contract_ordered(struct slc_contract_run *run,
                                     const struct slc_key_layout *layout,
                                     struct slc_error *err) SLC_NODISCARD;

#endif
