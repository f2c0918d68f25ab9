/*
 * What the ways of contracting a store share (engine/product/contract.h): operands, memory and
 * tiles of a run. contract_sort.c pushes sums to a builder, contract_ordered.c writes them as they
 * come.
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

/* Per worker; written a few times a tile. */
struct slc_contract_worker {
    uint64_t zeros;
    double tile_sum; /* of the tile at hand */
};

struct slc_contract_run {
    const struct slc_contract_options *options;
    struct slc_contract_report *report;
    struct slc_store store;
    struct slc_reader *reader; /* of the layout that is read */
    const struct slc_layout_info *info;
    struct slc_contraction job;
    struct slc_matrix vectors[SLC_MAX_ORDER];
    struct slc_labels labels[SLC_MAX_ORDER]; /* by label, the index; of kept relabelled modes */
    /* The fibers that the result keeps together, where sums are sorted. */
    enum slc_fibers fibers;
    struct slc_fiber_run run;
    const struct slc_tile_products *products; /* NULL: workers multiply every tile by themselves */
    bool products_open;
    unsigned threads;        /* that multiply by themselves */
    unsigned workers;        /* that take tiles: more, where some wait for products */
    uint64_t products_bytes; /* of the host, for products with so many workers */
    uint64_t budget_bytes;
    uint64_t fixed_bytes;     /* what is there whatever the workers: the process, operands */
    uint64_t spare_bytes;     /* for reading, beyond the least: when run->workers is known */
    uint64_t least_ordered;   /* least budget for writing sums as they come; UINT64_MAX: never */
    struct slc_buffer memory; /* of all workers, slc_contract_tile_bytes each */
    struct slc_buffer sums;   /* f64 of every tile, where the result is a number */
    struct slc_contract_worker worker[SLC_MAX_THREADS];
    uint64_t tiles_done;
    struct slc_names_carry names; /* of what is left, where the options want them */
};

/* What the scan takes at least with run->workers, beside fixed_bytes. */
uint64_t slc_contract_scan_bytes(const struct slc_contract_run *run);

/* What a way of contracting takes in all with run->workers. */
typedef uint64_t slc_contract_needs_fn(const struct slc_contract_run *run, const void *context);

/*
 * Uses as many threads as are asked for and fit the budget, or the least that works: sets
 * run->threads, run->workers and run->products_bytes. *least is what that takes, *needs what is
 * used, which may be more than the budget. Errors: those of planning products.
 */
enum slc_status slc_contract_fit_threads(struct slc_contract_run *run,
                                         slc_contract_needs_fn *needs_of,
                                         const void *context,
                                         uint64_t *least,
                                         uint64_t *needs,
                                         struct slc_error *err) SLC_NODISCARD;

/* Sets run->spare_bytes: as much of `bytes` as reading by run->workers gets faster by. */
void slc_contract_spare(struct slc_contract_run *run, uint64_t bytes);

/* Takes all tiles through the steps, by the options' stream or a scan. Errors: theirs. */
enum slc_status slc_contract_scan(struct slc_contract_run *run,
                                  const struct slc_tile_steps *steps,
                                  struct slc_error *err) SLC_NODISCARD;

/* Reads vectors and labels, takes the workers' memory and opens products: when run->workers is
 * known. */
enum slc_status slc_contract_start(struct slc_contract_run *run,
                                   struct slc_error *err) SLC_NODISCARD;

/* Gives back what slc_contract_start took, also what it did not get to. */
void slc_contract_release(struct slc_contract_run *run);

/*
 * A budget that works has `least` bytes and what the process may have grown by when it is asked for
 * the next time.
 */
#define SLC_CONTRACT_MARGIN (UINT64_C(1) << 20)

/* SLC_ERR_BUDGET, naming `least`, or run->least_ordered where that is less. */
enum slc_status slc_contract_fail_budget(const struct slc_contract_run *run,
                                         uint64_t least,
                                         struct slc_error *err) SLC_NODISCARD;

/* A tile's sums to `sink`; tells progress. */
enum slc_status slc_contract_one(struct slc_contract_run *run,
                                 unsigned worker,
                                 struct slc_tile_view *tile,
                                 slc_contract_sink_fn *sink,
                                 void *context,
                                 struct slc_error *err) SLC_NODISCARD;

/* The store by a builder, which sorts sums. */
enum slc_status slc_contract_sorted(struct slc_contract_run *run,
                                    struct slc_error *err) SLC_NODISCARD;

/*
 * Whether the sums come in the order of a store as the options want it, so that none has to be
 * sorted; then *layout is that of its keys.
 */
bool slc_contract_keeps_order(const struct slc_contract_run *run, struct slc_key_layout *layout);

/*
 * Divides memory for writing sums as they come; not *fits where that is too little. Fills
 * run->least_ordered. Errors: those of slc_contract_fit_threads.
 */
enum slc_status slc_contract_fits_ordered(struct slc_contract_run *run,
                                          const struct slc_key_layout *layout,
                                          bool *fits,
                                          struct slc_error *err) SLC_NODISCARD;

/* The store from sums as they come; after slc_contract_fits_ordered. */
enum slc_status slc_contract_ordered(struct slc_contract_run *run,
                                     const struct slc_key_layout *layout,
                                     struct slc_error *err) SLC_NODISCARD;

#endif
