/* Makes random tensors in the order of compressed fibers. */
#include "fpga_fixture.h"

#include "base/random.h"
#include "slc_test.h"

#include <stdlib.h>
#include <string.h>

static const unsigned longest[FPGA_SHAPES] = {600, 1, 500};

/* Number of nonzeros of a fiber, or of fibers of a slice. */
static uint32_t draw_length(enum fpga_shape shape, uint64_t seed, uint64_t stream, uint64_t i)
{
    const uint64_t kind = slc_random_below(seed, stream, i, 8);
    const uint32_t most = longest[shape];

    if (shape != FPGA_MIXED) {
        return (most + 1) / 2 + (uint32_t)slc_random_below(seed, stream + 1, i, (most + 1) / 2);
    }
    if (kind < 5) {
        return (uint32_t)(kind / 2); /* 0, 0, 1, 1, 2 */
    }
    return (uint32_t)slc_random_below(seed, stream + 1, i, kind == 7 ? most : 20);
}

static float random_number(uint64_t seed, uint64_t stream, uint64_t i, bool integer)
{
    return integer ? (float)slc_random_below(seed, stream, i, 9) - 4.0F
                   : (float)slc_random_normal(seed, stream, i);
}

static void make_matrix(struct slc_matrix *matrix,
                        uint64_t seed,
                        uint64_t stream,
                        uint32_t rows,
                        uint32_t cols,
                        bool integers)
{
    struct slc_error err = SLC_ERROR_INIT;

    SLC_ASSERT_OK(slc_matrix_create(matrix, SLC_F32, rows, cols, &err), &err);
    for (uint64_t i = 0; i < (uint64_t)rows * cols; i++) {
        slc_matrix_set(matrix, i / cols, (uint32_t)(i % cols),
                       random_number(seed, stream, i, integers));
    }
}

/* Divides the fibers into slices. */
static void make_slices(struct fpga_problem *problem, enum fpga_shape shape, uint64_t seed)
{
    const uint32_t fibers = problem->tensor.fibers;
    uint32_t slices = 0;

    problem->slice_ptr = calloc(4 * (size_t)fibers + 64, sizeof *problem->slice_ptr);
    problem->slice = calloc(fibers + 1, sizeof *problem->slice);
    for (uint32_t f = 0; f < fibers; slices++) {
        uint32_t wanted = draw_length(shape == FPGA_LONG ? FPGA_MIXED : shape, seed, 20, slices);

        problem->slice_ptr[slices] = f;
        problem->work.empty_slices += wanted == 0;
        for (; wanted > 0 && f < fibers; wanted--) {
            problem->slice[f++] = slices;
        }
    }
    problem->slice_ptr[slices] = fibers;
    problem->tensor.slices = slices;
}

void fpga_create(struct fpga_problem *problem,
                 enum fpga_shape shape,
                 uint64_t seed,
                 uint32_t nnz,
                 uint32_t rows,
                 uint32_t cols,
                 bool integers)
{
    uint32_t fibers = 0, made = 0;

    memset(problem, 0, sizeof *problem);
    problem->fiber_ptr = calloc(4 * (size_t)nnz + 64, sizeof *problem->fiber_ptr);
    for (; made < nnz; fibers++) {
        uint32_t length = draw_length(shape, seed, 1, fibers);

        length = length < nnz - made ? length : nnz - made;
        problem->work.empty_fibers += length == 0;
        made += length;
        problem->fiber_ptr[fibers + 1] = made;
    }
    problem->index = calloc((size_t)nnz + 1, sizeof *problem->index);
    problem->value = calloc((size_t)nnz + 1, sizeof *problem->value);
    problem->fiber_index = calloc((size_t)fibers + 1, sizeof *problem->fiber_index);
    for (uint32_t i = 0; i < nnz; i++) {
        problem->index[i] = (uint32_t)slc_random_below(seed, 3, i, rows);
        problem->value[i] = random_number(seed, 4, i, integers);
    }
    for (uint32_t f = 0; f < fibers; f++) {
        problem->fiber_index[f] = (uint32_t)slc_random_below(seed, 5, f, rows);
    }
    problem->tensor.fibers = fibers;
    problem->tensor.nnz = nnz;
    make_slices(problem, shape, seed);
    make_matrix(&problem->matrix, seed, 6, rows, cols, integers);
    make_matrix(&problem->fiber_matrix, seed, 7, rows, cols, integers);
    problem->tensor.slice_ptr = problem->slice_ptr;
    problem->tensor.fiber_ptr = problem->fiber_ptr;
    problem->tensor.fiber_index = problem->fiber_index;
    problem->tensor.index = problem->index;
    problem->tensor.value = problem->value;
    problem->work.slices = problem->tensor.slices;
    problem->work.fibers = fibers;
    problem->work.nnz = nnz;
    problem->work.matrix_rows = rows;
}

void fpga_destroy(struct fpga_problem *problem)
{
    free(problem->slice_ptr);
    free(problem->fiber_ptr);
    free(problem->fiber_index);
    free(problem->index);
    free(problem->value);
    free(problem->slice);
    slc_matrix_destroy(&problem->matrix);
    slc_matrix_destroy(&problem->fiber_matrix);
}

struct slc_fpga_count fpga_run(const struct fpga_problem *problem,
                               enum slc_fpga_design design,
                               const struct slc_fpga_parameters *parameters,
                               struct slc_matrix *output)
{
    const bool two_stages = design == SLC_FPGA_MTTKRP;
    struct slc_fpga_count count = {0, 0};
    struct slc_error err = SLC_ERROR_INIT;

    SLC_ASSERT_OK(slc_matrix_create(output, SLC_F32,
                                    two_stages ? problem->tensor.slices : problem->tensor.fibers,
                                    parameters->cols, &err),
                  &err);
    SLC_ASSERT_OK(slc_fpga_run(design, parameters, &problem->tensor, &problem->matrix,
                               two_stages ? &problem->fiber_matrix : NULL, output, &count, &err),
                  &err);
    return count;
}

struct slc_fpga_parameters fpga_parameters(uint32_t cols)
{
    return (struct slc_fpga_parameters){.cols = cols,
                                        .lanes = cols,
                                        .beat_words = SLC_FPGA_ARRIA10_BEAT_WORDS,
                                        .memory_latency = 40,
                                        .multiply_latency = SLC_FPGA_ARRIA10_MULTIPLY_LATENCY,
                                        .add_latency = SLC_FPGA_ARRIA10_ADD_LATENCY};
}
