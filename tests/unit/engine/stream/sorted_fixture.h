/* Shared by the tests of sorted layouts: stores that have some, the variants of streams, and runs
 * over the layouts of a plan. */
#ifndef SLC_TEST_SORTED_FIXTURE_H
#define SLC_TEST_SORTED_FIXTURE_H

#include "cp_fixture.h"
#include "make_sorted.h"

#include <stdbool.h>

enum { RANK = 9, VARIANTS = 60 };

/* A store with blco.blk and sorted layouts, its nonzeros for the oracle, and factors. */
struct sorted_store {
    char path[512];
    struct slc_made_tensor tensor;
    uint64_t *coords[SLC_MAX_ORDER];
    struct slc_coo_view view;
    struct slc_matrix factors[SLC_MAX_ORDER];
    const struct slc_matrix *views[SLC_MAX_ORDER];
};

/* Sorted by the modes of the set `modes`, in partitions of `target_nnz`; blocks of 4096 bytes
 * have a tile. */
void make_sorted_store(struct sorted_store *made,
                       const char *name,
                       unsigned order,
                       const uint64_t *dims,
                       uint64_t nnz,
                       uint32_t modes,
                       uint64_t target_nnz,
                       uint64_t block_bytes);
void destroy_sorted_store(struct sorted_store *made);

/* An open store, a plan for the requested layouts, a stream and a device. */
struct sorted_run {
    struct slc_store store;
    struct slc_layouts layouts;
    struct slc_plan plan;
    struct slc_stream *stream;
    struct slc_backend *backend;
};

enum slc_status plan_run(struct sorted_run *run,
                         const char *path,
                         const struct slc_plan_request *request,
                         struct slc_error *err);
/* Through `files`; NULL: the system's. Returns false if io_uring is unavailable. */
bool start_run(struct sorted_run *run, const struct slc_files *files);
void close_run(struct sorted_run *run);

/* Stream options of an MTTKRP, by number below VARIANTS: every kind, schedule and number of
 * threads, few slots and many, with and without cached blocks. */
struct slc_plan_request variant_request(unsigned variant, unsigned mode);

/* Caches every second block of one layout, so that a pass finds some in memory and reads others. */
void keep_some(struct sorted_run *run, unsigned layout);

#endif
