/*
 * Problems for tests of MTTKRP on the emulated device: encoded blocks, factors, what the oracle
 * makes of them, and runs in many ways.
 */
#ifndef SLC_MTTKRP_PROBLEM_H
#define SLC_MTTKRP_PROBLEM_H

#include "batch_fixture.h"
#include "gpu/mttkrp/mttkrp_plan.h"

struct mttkrp_problem {
    struct batch_fixture batch;
    unsigned mode;
    uint32_t rank;
    enum slc_value_type precision;
    std::vector<double> factor[SLC_MAX_ORDER]; /* rows of `rank`, each number exactly a float */
    std::vector<double> want, magnitude;       /* rows of `rank`, by the oracle */
};

/* How a problem is run. */
struct mttkrp_way {
    bool exact;
    uint32_t launch_tiles; /* of a launch; 0: all */
    bool backwards;        /* the last launch first */
    unsigned devices;      /* that share the tiles; sums are exact where there are two or more */
    unsigned streams;
    unsigned seed;
    bool expanded; /* what is under LZ4; else its room holds anything */
    struct slc_gpu_machine machine;
    struct slc_gpu_mttkrp_variant variant;
};

struct mttkrp_result {
    struct slc_gpu_mttkrp_plan plan;
    std::vector<double> values;            /* rows of the rank */
    std::vector<unsigned long long> words; /* exact sums of all devices */
    bool padding_lives;                    /* nothing was written beyond the rank */
    enum slc_gpu_fault_kind fault;
};

/* The usual way: ordinary sums, one launch, on a machine like the largest. */
struct mttkrp_way mttkrp_plain_way(void);

/* Draws factors (integers from -2 to 2, or in [-1, 1)) for encoded blocks; asks the oracle. */
void mttkrp_problem_make(struct mttkrp_problem *problem,
                         unsigned mode,
                         uint32_t rank,
                         enum slc_value_type precision,
                         bool integers);
/* After factors were changed. */
void mttkrp_problem_ask(struct mttkrp_problem *problem);

/* Sets the emulation up, uploads, computes, downloads, and gives everything back. */
struct mttkrp_result mttkrp_problem_run(struct mttkrp_problem *problem,
                                        const struct mttkrp_way *way);

/*
 * How many elements are not the oracle's, by more than `tolerance` of the sum of magnitudes; 0: by
 * any bit.
 */
uint64_t mttkrp_wrong(const struct mttkrp_problem *problem,
                      const struct mttkrp_result *result,
                      double tolerance);

#endif
