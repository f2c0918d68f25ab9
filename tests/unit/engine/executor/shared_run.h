/* MTTKRPs shared by the CPU and a fake device, with integer factors and values, so that sums are
 * exact in any order. */
#ifndef SLC_TEST_SHARED_RUN_H
#define SLC_TEST_SHARED_RUN_H

#include "device_run.h"

enum { SHARED_RANK = 3, SHARED_DRAWS = 40000, SHARED_LATE_US = 200, SHARED_WISHES = 5 };

/* Splits with the fractions 0, 0.3 and 1, an adaptive split, and a queue. */
extern const struct slc_hybrid_wish shared_wishes[SHARED_WISHES];

/* A tensor, its store, integer factors and the oracle's sums. */
struct shared_problem {
    struct fixture_tensor tensor;
    char path[512];
    struct slc_matrix factors[SLC_MAX_ORDER];
    double *want[SLC_MAX_ORDER];
};

/* Creates the problem unless it exists. shared_problem_free accepts a zero-initialized problem. */
void shared_problem(struct shared_problem *problem,
                    const char *name,
                    uint64_t draws,
                    uint32_t block);
void shared_problem_free(struct shared_problem *problem);

struct slc_plan_request shared_request(enum slc_io_kind io,
                                       unsigned threads,
                                       bool cache,
                                       const struct slc_hybrid_wish *wish);
/* device_run_limits for the device alone, so that all blocks may be resident. */
void shared_limits(const struct shared_problem *problem,
                   const struct slc_plan_request *request,
                   uint64_t *least,
                   uint64_t *all);

/* A device and a backend that share the work, and their common state. */
struct shared_run {
    struct device_run run;
    struct slc_backend *backend;
    struct slc_hybrid hybrid[SLC_MAX_ORDER];
    const struct shared_problem *problem;
};

enum slc_status shared_open(struct shared_run *shared,
                            const struct shared_problem *problem,
                            const struct slc_files *files,
                            const struct slc_plan_request *request,
                            uint64_t device_bytes,
                            unsigned late_us,
                            struct slc_error *err);
void shared_close(struct shared_run *shared);

enum slc_status shared_compute(struct shared_run *shared,
                               unsigned mode,
                               const volatile int *stop,
                               void (*progress)(void *, uint64_t, uint64_t, uint64_t),
                               void *context,
                               struct slc_error *err);
/* Runs an MTTKRP that must succeed and equal the oracle's. */
void shared_check(struct shared_run *shared, unsigned mode);

#endif
