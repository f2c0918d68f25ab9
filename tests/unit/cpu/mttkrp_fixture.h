/*
 * What the tests of MTTKRP share: a random problem with the oracle's answer, an output between rows
 * of canaries, and a pass as the engine makes it.
 */
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
    bool backwards; /* run_pass takes partitions in descending order */
    double *want;
    double *magnitude;
};

void guarded_create(struct guarded *guarded,
                    enum slc_value_type type,
                    uint64_t rows,
                    uint32_t cols);
/* Whether the rows around the output are as they were made. */
bool canaries_live(const struct guarded *guarded);

/* Runs of fibers for problem_create: mode and mean length. A mean of 0: none. */
struct runs {
    unsigned mode;
    unsigned mean;
};

/* Random tensor and factors (small integers, or reals in [-1, 1)), and what the oracle makes of
 * them. */
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
/* Sorts the problem's tensor by its mode: fake_tensor_partition. */
void problem_partition(struct problem *problem, uint64_t nnz);
void problem_destroy(struct problem *problem);
void problem_job(struct problem *problem, unsigned workers, struct slc_mttkrp_job *job);

/*
 * Begin, all tiles in ascending order by job->workers threads, under COLUMNS by each of them, of
 * partitions all by one, end. Partitions in the order that problem->backwards says.
 */
enum slc_status run_pass(struct slc_backend *backend,
                         struct problem *problem,
                         const struct slc_mttkrp_job *job,
                         struct slc_error *err) SLC_NODISCARD;

/*
 * The tiles [first, end) alone, or of partitions those of these, of a job that has been begun.
 * Errors: the first that a tile gives; the job is then aborted.
 */
enum slc_status run_part(struct slc_backend *backend,
                         struct problem *problem,
                         const struct slc_mttkrp_job *job,
                         uint64_t first,
                         uint64_t end,
                         struct slc_error *err) SLC_NODISCARD;

/*
 * Creates a backend and runs a pass while the k-th allocation fails; asserts that it does so with
 * SLC_ERR_MEMORY. False where there are fewer allocations: then all goes well. *backend is NULL
 * where it was not created, and else the caller's to destroy.
 */
bool run_pass_without_memory(uint64_t k,
                             struct problem *problem,
                             const struct slc_mttkrp_job *job,
                             struct slc_backend **backend);

/* Compares with the oracle; `tolerance` 0 asks for equality. Returns the number of bad elements. */
uint64_t count_wrong(const struct problem *problem, double tolerance);

#endif
