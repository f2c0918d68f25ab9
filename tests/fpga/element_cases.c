/* Writes random cases for element.cpp: a tensor and its matrices in the memory of a processing
 * element, and the output of the C design (fpga/design).
 *
 * element_cases FOLDER DESIGN COLS LANES BEAT_WORDS MEMORY MULTIPLY ADD NNZ SEED COUNT writes the
 * cases and a list of them, FOLDER/cases: the DSPs of the design, then one line per case with its
 * file, the cycles of the model (fpga/model), and the cycles and beats of the C design. MEMORY,
 * MULTIPLY and ADD are latencies. Every fourth case has special values: subnormal numbers,
 * infinities, NaN. */
#include "base/random.h"
#include "fpga_fixture.h"
#include "slc_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MATRIX_ROWS = 61, STREAM = 100 /* of random numbers, which the fixture does not use */ };

/* A case, as element.cpp reads it; the words of the memory and of the output follow. Positions are
 * beats. `limit`: cycles after which the element does not end any more. */
struct header {
    uint32_t beat_words, memory_latency, limit;
    uint32_t slice_ptr, fiber_ptr, fiber_index, index, value, fiber_matrix, matrix, output;
    uint32_t slices, fibers, nonzeros, matrix_rows;
    uint32_t memory_words, output_words; /* the memory up to the output, the output */
};

/* The memory of an element: whole beats. */
struct memory {
    uint32_t beat_words, used, capacity; /* words */
    uint32_t *words;
};

/* Replaces one of 64 numbers by any bits, of which every second number is subnormal or has the
 * largest exponent. */
static void add_special(float *numbers, uint64_t count, uint64_t seed, uint64_t stream)
{
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t random = slc_random_u64(seed, stream, i);
        uint32_t bits = (uint32_t)(random >> 32);

        if (random % 64 == 0) {
            bits = random & 64 ? bits : random & 128 ? bits & 0x807fffff : bits | 0x7f800000;
            memcpy(&numbers[i], &bits, sizeof bits);
        }
    }
}

/* Appends an array of 32-bit words from a whole beat on; returns its first beat. */
static uint32_t append_words(struct memory *memory, const void *words, uint32_t count)
{
    const uint32_t first = memory->used / memory->beat_words;
    const uint32_t padded =
        (uint32_t)slc_div_up_u64(count, memory->beat_words) * memory->beat_words;

    while (memory->used + padded > memory->capacity) {
        memory->capacity = 2 * memory->capacity + padded;
        memory->words = realloc(memory->words, memory->capacity * sizeof *memory->words);
        CU_ASSERT_FATAL(memory->words != NULL);
    }
    memset(memory->words + memory->used, 0, padded * sizeof *memory->words);
    memcpy(memory->words + memory->used, words, count * sizeof *memory->words);
    memory->used += padded;
    return first;
}

static uint32_t append_matrix(struct memory *memory, const struct slc_matrix *matrix)
{
    const uint32_t first = memory->used / memory->beat_words;

    for (uint64_t r = 0; r < matrix->rows; r++) {
        append_words(memory, slc_matrix_row_f32(matrix, r), matrix->cols);
    }
    return first;
}

static void write_case(const char *path,
                       const struct fpga_problem *problem,
                       const struct slc_matrix *output,
                       const struct slc_fpga_parameters *parameters,
                       uint64_t cycles)
{
    const struct slc_fpga_tensor *tensor = &problem->tensor;
    struct memory memory = {.beat_words = parameters->beat_words};
    struct header head = {.beat_words = parameters->beat_words,
                          .memory_latency = parameters->memory_latency,
                          .limit = (uint32_t)(20 * cycles + 10000),
                          .slices = tensor->slices,
                          .fibers = tensor->fibers,
                          .nonzeros = tensor->nnz,
                          .matrix_rows = (uint32_t)problem->matrix.rows};
    FILE *file = fopen(path, "wb");

    head.slice_ptr = append_words(&memory, tensor->slice_ptr, tensor->slices + 1);
    head.fiber_ptr = append_words(&memory, tensor->fiber_ptr, tensor->fibers + 1);
    head.fiber_index = append_words(&memory, tensor->fiber_index, tensor->fibers);
    head.index = append_words(&memory, tensor->index, tensor->nnz);
    head.value = append_words(&memory, tensor->value, tensor->nnz);
    head.matrix = append_matrix(&memory, &problem->matrix);
    head.fiber_matrix = append_matrix(&memory, &problem->fiber_matrix);
    head.memory_words = memory.used;
    head.output = append_matrix(&memory, output);
    head.output_words = memory.used - head.memory_words;
    CU_ASSERT_FATAL(file != NULL && fwrite(&head, sizeof head, 1, file) == 1);
    CU_ASSERT_FATAL(fwrite(memory.words, sizeof *memory.words, memory.used, file) == memory.used);
    CU_ASSERT_FATAL(fclose(file) == 0);
    free(memory.words);
}

/* Makes and writes one case, and appends its line to the list. */
static void make_case(FILE *list,
                      const char *folder,
                      enum slc_fpga_design design,
                      const struct slc_fpga_parameters *parameters,
                      uint32_t nnz,
                      uint64_t seed)
{
    struct fpga_problem problem;
    struct slc_matrix output;
    char path[4096];

    fpga_create(&problem, (enum fpga_shape)(seed % FPGA_SHAPES), seed, nnz, MATRIX_ROWS,
                parameters->cols, false);
    if (seed % 4 == 0) {
        add_special(problem.value, nnz, seed, STREAM);
        for (uint32_t r = 0; r < MATRIX_ROWS; r++) {
            add_special(slc_matrix_row_f32(&problem.matrix, r), parameters->cols, seed,
                        STREAM + 1 + 2 * r);
            add_special(slc_matrix_row_f32(&problem.fiber_matrix, r), parameters->cols, seed,
                        STREAM + 2 + 2 * r);
        }
    }
    const struct slc_fpga_count count = fpga_run(&problem, design, parameters, &output);

    (void)snprintf(path, sizeof path, "%s/case-%llu", folder, (unsigned long long)seed);
    write_case(path, &problem, &output, parameters, count.cycles);
    (void)fprintf(
        list, "%s %llu %llu %llu\n", path,
        (unsigned long long)slc_fpga_model_estimate(design, parameters, &problem.work).cycles,
        (unsigned long long)count.cycles, (unsigned long long)count.beats);
    slc_matrix_destroy(&output);
    fpga_destroy(&problem);
}

static char **arguments; /* of the program */

static void make_cases(void)
{
    uint32_t numbers[12];

    for (int i = 2; i < 12; i++) {
        numbers[i] = (uint32_t)strtoul(arguments[i], NULL, 10);
    }
    const enum slc_fpga_design design = (enum slc_fpga_design)numbers[2];
    const struct slc_fpga_parameters parameters = {.cols = numbers[3],
                                                   .lanes = numbers[4],
                                                   .beat_words = numbers[5],
                                                   .memory_latency = numbers[6],
                                                   .multiply_latency = numbers[7],
                                                   .add_latency = numbers[8]};
    const struct slc_fpga_resources resources =
        slc_fpga_model_resources(design, &parameters, &slc_fpga_arria10, MATRIX_ROWS);
    char path[4096];

    (void)snprintf(path, sizeof path, "%s/cases", arguments[1]);
    FILE *list = fopen(path, "w");
    CU_ASSERT_FATAL(list != NULL);
    (void)fprintf(list, "%llu\n", (unsigned long long)resources.dsps);
    for (uint32_t i = 0; i < numbers[11]; i++) {
        make_case(list, arguments[1], design, &parameters, numbers[9], numbers[10] + i);
    }
    CU_ASSERT_FATAL(fclose(list) == 0);
}

int main(int argc, char **argv)
{
    static const struct slc_test tests[] = {{"cases", make_cases}};

    if (argc != 12) {
        return 99;
    }
    arguments = argv;
    return slc_test_main("fpga: cases", tests, SLC_COUNT(tests), 1, argv);
}
