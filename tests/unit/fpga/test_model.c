/* The model of the FPGA designs: cycles against the counted ones, resources and curves against the
 * published ones. */
#include "fpga_fixture.h"
#include "slc_test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* nell-2 and vast-3d as CSF, [XPLAT] Table 4; vast-3d has one nonzero per fiber (section 5.4). */
static const struct slc_fpga_work nell2 = {
    .slices = 12092, .fibers = 337365, .nnz = 76879419, .matrix_rows = 28818};
static const struct slc_fpga_work vast = {
    .slices = 165427, .fibers = 26021945, .nnz = 26021945, .matrix_rows = 2};

static struct slc_fpga_parameters published(uint32_t cols)
{
    struct slc_fpga_parameters parameters = fpga_parameters(cols);

    parameters.memory_latency = SLC_FPGA_ARRIA10_MEMORY_LATENCY;
    return parameters;
}

/* Cycles within 5 % of the counted cycles, beats exactly, for many parameters. */
static void test_cycles(void)
{
    static const struct slc_fpga_parameters forms[] = {
        {16, 16, 32, 40, 3, 1}, {64, 64, 32, 40, 3, 1},   {32, 8, 32, 40, 3, 1},
        {32, 32, 32, 40, 3, 4}, {33, 11, 16, 25, 5, 7},   {8, 8, 32, 100, 3, 1},
        {5, 2, 4, 16, 3, 1},    {20, 6, 8, 16, 3, 1},     {8, 8, 8, 16, 2, 4},
        {24, 24, 8, 384, 8, 8}, {16, 16, 32, 40, 12, 12}, {128, 128, 128, 384, 3, 1},
    };
    const unsigned step = slc_test_quick() ? 5 : 1;

    for (unsigned i = 0; i < SLC_COUNT(forms); i += step) {
        for (unsigned shape = 0; shape < FPGA_SHAPES; shape++) {
            struct fpga_problem problem;

            fpga_create(&problem, shape, slc_test_seed() + i, 3000, 70, forms[i].cols, true);
            for (unsigned design = 0; design < SLC_FPGA_DESIGNS; design++) {
                const struct slc_fpga_estimate want =
                    slc_fpga_model_estimate(design, &forms[i], &problem.work);
                struct slc_matrix output;
                const struct slc_fpga_count got = fpga_run(&problem, design, &forms[i], &output);
                const double error = (double)want.cycles / (double)got.cycles - 1;

                CU_ASSERT_EQUAL(got.beats, want.beats);
                CU_ASSERT(fabs(error) < 0.05);
                if (!(fabs(error) < 0.05)) {
                    printf("# form %u, shape %u, design %u: %llu cycles, model %+.2f %%\n", i,
                           shape, design, (unsigned long long)got.cycles, 100 * error);
                }
                slc_matrix_destroy(&output);
            }
            fpga_destroy(&problem);
        }
    }
}

static double gflop_per_s(enum slc_fpga_design design,
                          const struct slc_fpga_parameters *parameters,
                          const struct slc_fpga_work *work)
{
    const struct slc_fpga_estimate estimate = slc_fpga_model_estimate(design, parameters, work);

    return 1e-9 * (double)estimate.flops / (double)estimate.cycles * slc_fpga_arria10.clock_hz;
}

/* Figures 6 and 7: performance doubles with the columns as long as a row fits one beat, then stays.
 * The knee is where the width of the beats puts it, so it moves with them. */
static void test_knee(void)
{
    static const enum slc_fpga_design designs[] = {SLC_FPGA_TTM, SLC_FPGA_MTTKRP};

    for (uint32_t beat_words = 16; beat_words <= 64; beat_words *= 2) {
        for (unsigned d = 0; d < 2; d++) {
            for (uint32_t cols = 1; cols <= 128; cols *= 2) {
                struct slc_fpga_parameters one = published(cols), two = published(2 * cols);
                double growth;

                one.beat_words = two.beat_words = beat_words;
                growth =
                    gflop_per_s(designs[d], &two, &nell2) / gflop_per_s(designs[d], &one, &nell2);
                CU_ASSERT(cols < beat_words ? growth > 1.98 && growth < 2.02
                                            : growth > 0.99 && growth < 1.15);
            }
        }
    }
}

/* Section 5.3: the matrix of nell-2 fits on chip up to 16 columns, and is always faster there. */
static void test_on_chip(void)
{
    for (uint32_t cols = 1; cols <= 64; cols *= 2) {
        const struct slc_fpga_parameters parameters = published(cols);
        const struct slc_fpga_resources resources = slc_fpga_model_resources(
            SLC_FPGA_TTM_ON_CHIP, &parameters, &slc_fpga_arria10, nell2.matrix_rows);
        const char *missing = slc_fpga_model_missing(&resources, &slc_fpga_arria10);

        CU_ASSERT((missing == NULL) == (cols <= 16));
        CU_ASSERT(missing == NULL || strcmp(missing, "RAM blocks") == 0);
        CU_ASSERT(gflop_per_s(SLC_FPGA_TTM_ON_CHIP, &parameters, &nell2) >
                  gflop_per_s(SLC_FPGA_TTM, &parameters, &nell2));
    }
}

/* Section 5.3, 16 columns: DSPs 16, 16, 32; RAM blocks 527, 1549, 590. The first number of RAM
 * blocks sets the shell of the model; the others are predictions, to 5 %. */
static void test_resources(void)
{
    static const struct {
        enum slc_fpga_design design;
        uint64_t dsps, ram_blocks;
        double error;
    } paper[] = {{SLC_FPGA_TTM, 16, 527, 0.0},
                 {SLC_FPGA_TTM_ON_CHIP, 16, 1549, 0.05},
                 {SLC_FPGA_MTTKRP, 32, 590, 0.05}};
    const struct slc_fpga_parameters parameters = published(16);
    struct slc_fpga_device small = slc_fpga_arria10;

    for (unsigned i = 0; i < SLC_COUNT(paper); i++) {
        const struct slc_fpga_resources got = slc_fpga_model_resources(
            paper[i].design, &parameters, &slc_fpga_arria10, nell2.matrix_rows);

        CU_ASSERT_EQUAL(got.dsps, paper[i].dsps);
        CU_ASSERT(fabs((double)got.ram_blocks / (double)paper[i].ram_blocks - 1) <= paper[i].error);
        small.dsps = (uint32_t)got.dsps;
        CU_ASSERT_PTR_NULL(slc_fpga_model_missing(&got, &small));
        small.dsps--;
        CU_ASSERT_STRING_EQUAL(slc_fpga_model_missing(&got, &small), "DSPs");
    }
}

/* With fewer lanes a design needs fewer DSPs. A slow adder costs nothing if a row needs as many
 * cycles as an addition. */
static void test_unroll(void)
{
    struct slc_fpga_parameters parameters = published(64);
    uint64_t cycles[2];

    for (parameters.lanes = 64; parameters.lanes >= 8; parameters.lanes /= 2) {
        for (unsigned slow = 0; slow < 2; slow++) {
            parameters.add_latency = slow ? 8 : 1;
            cycles[slow] = slc_fpga_model_estimate(SLC_FPGA_TTM, &parameters, &nell2).cycles;
        }
        if (parameters.lanes == 8) {
            CU_ASSERT_EQUAL(cycles[1], cycles[0] + 7);
            CU_ASSERT_EQUAL(
                slc_fpga_model_resources(SLC_FPGA_TTM, &parameters, &slc_fpga_arria10, 0).dsps, 8);
        } else {
            CU_ASSERT(cycles[1] > cycles[0] + cycles[0] / 2);
        }
    }
}

/* One nonzero per fiber: stores share the port, so vast-3d is slower than nell-2 (Figure 6). */
static void test_short_fibers(void)
{
    const struct slc_fpga_parameters parameters = published(32);
    const struct slc_fpga_estimate estimate =
        slc_fpga_model_estimate(SLC_FPGA_TTM, &parameters, &vast);

    CU_ASSERT_EQUAL(estimate.limit, SLC_FPGA_LIMIT_PORT);
    CU_ASSERT_EQUAL(estimate.beats,
                    2 * vast.nnz + 2 * ((vast.nnz + 31) / 32) + (vast.nnz + 32) / 32);
    CU_ASSERT(gflop_per_s(SLC_FPGA_TTM, &parameters, &vast) <
              0.6 * gflop_per_s(SLC_FPGA_TTM, &parameters, &nell2));
}

SLC_SUITE(model)
{
    static const struct slc_test tests[] = {
        {"cycles within 5 % of the designs", test_cycles},
        {"knee where a row fills a beat", test_knee},
        {"matrix on chip: fit and speed", test_on_chip},
        {"resources of the paper", test_resources},
        {"unroll factor and slow adders", test_unroll},
        {"short fibers", test_short_fibers},
    };

    return slc_test_main("fpga: model", tests, SLC_COUNT(tests), argc, argv);
}
