/* Shared by the tests of MTTKRP: a random problem with the oracle's result, an output between rows
 * of canaries, and a pass as the engine makes it. */
#ifndef SLC_MTTKRP_FIXTURE_H
#define SLC_MTTKRP_FIXTURE_H

#include "cpu/cpu.h"
#include "fake_tiles.h"

#include <stdbool.h>

/* An output between rows of canaries. */
struct guarded {
    struct slc_matrix whole;
    struct slc_matrix output;
};

struct problem {
    struct fake_tensor tensor;
    unsigned mode;
    uint32_t rank;
    enum slc_value_type type;
    struct slc_matrix factors[SLC_MAX_ORDER];
    struct guarded out;
    bool backwards; /* run_pass processes partitions in descending order */
    double *want;
    double *magnitude;
};

void guarded_create(struct guarded *guarded,
                    enum slc_value_type type,
                    uint64_t rows,
                    uint32_t cols);
/* Whether the rows around the output are unchanged. */
bool canaries_live(const struct guarded *guarded);

/* Fiber runs for problem_create: mode and mean length; a mean of 0 means no runs. */
struct runs {
    unsigned mode;
    unsigned mean;
};

/* Random tensor and factors (small integers, or reals in [-1, 1)), and the oracle's result. */
void problem_create(struct problem *problem,
                    unsigned order,
                    const uint64_t *dims,
                    uint64_t nnz,
                    unsigned mode,
                    uint32_t rank,
                    enum slc_value_type type,
                    bool integers);
void problem_create_runs(struct problem *problem,
                         unsigned order,
                         const uint64_t *dims,
                         uint64_t nnz,
                         unsigned mode,
                         uint32_t rank,
                         enum slc_value_type type,
                         bool integers,
                         struct runs runs);
/* Sorts the problem's tensor by its mode with fake_tensor_partition. */
void problem_partition(struct problem *problem, uint64_t nnz);
void problem_destroy(struct problem *problem);
void problem_job(struct problem *problem, unsigned workers, struct slc_mttkrp_job *job);

/* Begins the job, processes all tiles in ascending order with job->workers threads (with COLUMNS
 * each tile by every worker, all tiles of a partition by one worker) and ends it.
 * problem->backwards determines the order of partitions. */
enum slc_status run_pass(struct slc_backend *backend,
                         struct problem *problem,
                         const struct slc_mttkrp_job *job,
                         struct slc_error *err) SLC_NODISCARD;

/* Processes the tiles [first, end), or the tiles of these partitions, of a job that has begun.
 * Errors: the first error of a tile; the job is then aborted. */
enum slc_status run_part(struct slc_backend *backend,
                         struct problem *problem,
                         const struct slc_mttkrp_job *job,
                         uint64_t first,
                         uint64_t end,
                         struct slc_error *err) SLC_NODISCARD;

/* Creates a backend and runs a pass while the k-th allocation fails; asserts that it fails with
 * SLC_ERR_MEMORY. Returns false if there are fewer allocations; the pass then succeeds. *backend is
 * NULL if it was not created; otherwise the caller destroys it. */
bool run_pass_without_memory(uint64_t k,
                             struct problem *problem,
                             const struct slc_mttkrp_job *job,
                             struct slc_backend **backend);

/* Compares with the oracle; `tolerance` 0 requires equality. Returns the number of wrong
 * elements. */
uint64_t count_wrong(const struct problem *problem, double tolerance);

#endif
