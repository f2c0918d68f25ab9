/* Problems for tests of MTTKRP on the emulated device: encoded blocks, factors, the oracle's
 * result, and many ways to run them. */
#ifndef SLC_MTTKRP_PROBLEM_H
#define SLC_MTTKRP_PROBLEM_H

#include "batch_fixture.h"
#include "gpu/mttkrp/mttkrp_plan.h"

struct mttkrp_problem {
    struct batch_fixture batch;
    unsigned mode;
    uint32_t rank;
    enum slc_value_type precision; /* type of the factors; a test may change it at any time */
    bool integers = false;
    std::vector<double> factor[SLC_MAX_ORDER]; /* rows of `rank` numbers, each exactly a float */
    /* Rows of `rank`, by the oracle. The magnitudes are computed when they are first needed. */
    std::vector<double> want, magnitude;
};

/* Options of a run. */
struct mttkrp_way {
    bool exact;
    uint32_t launch_tiles; /* tiles per launch; 0: all */
    bool backwards;        /* launches in reverse order */
    unsigned devices;      /* number of devices that share the tiles; sums are exact for two or
                            * more */
    unsigned streams;
    unsigned seed;
    bool natural;      /* the columns of the output are not reordered */
    bool expand_there; /* the device, not the host, expands LZ4 sections; they may be invalid */
    bool transcoded;   /* tiles are transcoded first */
    struct slc_gpu_machine machine;
};

struct mttkrp_result {
    struct slc_gpu_mttkrp_plan plan;
    std::vector<double> values;            /* rows of `rank` numbers */
    std::vector<unsigned long long> words; /* exact sums of all devices */
    bool padding_lives;                    /* the padding of rows is unchanged */
    enum slc_gpu_fault_kind fault;
};

/* Returns the default: ordinary sums, one launch, on the largest machine. */
struct mttkrp_way mttkrp_plain_way(void);

/* Draws factors (integers from -2 to 2, or in [-1, 1)) for encoded blocks, and computes the
 * oracle's result. Numbers of an earlier call stay, because they would be drawn again. */
void mttkrp_problem_make(struct mttkrp_problem *problem,
                         unsigned mode,
                         uint32_t rank,
                         enum slc_value_type precision,
                         bool integers);
/* Sets the emulation up, uploads, computes, downloads, and releases everything. */
struct mttkrp_result mttkrp_problem_run(struct mttkrp_problem *problem,
                                        const struct mttkrp_way *way);

/* Number of elements that differ from the oracle's by more than `tolerance` times the sum of
 * magnitudes; 0: by any bit. */
uint64_t
mttkrp_wrong(struct mttkrp_problem *problem, const struct mttkrp_result *result, double tolerance);

#endif
