/* Shared by the tests of several devices: stores with all sorted layouts, and decompositions of
 * them on any number of devices. */
#ifndef SLC_TEST_CPU_GROUPS_FIXTURE_H
#define SLC_TEST_CPU_GROUPS_FIXTURE_H

#include "engine/solve/cp.h"
#include "make_sorted.h"

#include <stdbool.h>
#include <stdint.h>

enum { FIXTURE_DEVICES_MAX = 8 };

struct devices_store {
    char path[512];
    struct slc_made_tensor tensor;
};

/* A random tensor in blco and sorted by every mode, with partitions of about `target_nnz`
 * nonzeros. */
void devices_store_create(struct devices_store *made,
                          const char *name,
                          unsigned order,
                          const uint64_t *dims,
                          uint64_t nnz,
                          uint64_t target_nnz);
void devices_store_destroy(struct devices_store *made);

/* Requests a CP-ALS on `devices` devices with `threads` threads each; 0: no devices, sorted
 * layouts. */
struct slc_plan_request devices_request(uint32_t rank, unsigned devices, unsigned threads);

/* The state of a run except its solver. */
struct devices_run {
    struct slc_store store;
    struct slc_layouts layouts;
    struct slc_plan plan;
    struct slc_stream *stream;
    struct slc_backend *backends[FIXTURE_DEVICES_MAX];
};

enum slc_status devices_run_plan(struct devices_run *run,
                                 const char *path,
                                 const struct slc_plan_request *request,
                                 struct slc_error *err) SLC_NODISCARD;
void devices_run_start(struct devices_run *run);
void devices_run_close(struct devices_run *run);

/* Options for this many iterations, with the run's devices if its plan has any. */
struct slc_cp_options devices_options(const struct devices_run *run, unsigned iterations);

/* Makes a whole run. */
void devices_decompose(const char *path,
                       const struct slc_plan_request *request,
                       unsigned iterations,
                       struct slc_cp_result *result);

/* Whether factors and weights are bitwise equal. */
bool devices_same_bits(const struct slc_cp_result *a, const struct slc_cp_result *b);
/* Returns the largest ||A(n) - B(n)|| / ||A(n)|| of all modes. */
double devices_difference(const struct slc_cp_result *a, const struct slc_cp_result *b);

#endif
