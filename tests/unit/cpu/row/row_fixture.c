#include "row_fixture.h"

#include "base/random.h"
#include "cpu/kernel/instruction_set.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void with_every_set(void (*run)(void))
{
    static const char *const sets[] = {"portable", "avx2", "avx512", "neon"};

    for (size_t s = 0; s < SLC_COUNT(sets); s++) {
        if (slc_cpu_force_instruction_set(sets[s])) {
            run();
        }
    }
    (void)slc_cpu_force_instruction_set(NULL);
}

double *row_numbers(uint64_t count)
{
    const uint64_t bytes = (count * sizeof(double) + 127) / 64 * 64;
    double *numbers = aligned_alloc(64, bytes);

    if (numbers == NULL) {
        abort();
    }
    memset(numbers, 0, bytes);
    return numbers;
}

static double value_of(enum row_kind kind, double model, double random)
{
    switch (kind) {
    case ROW_COUNTS:
        return floor(20.0 * model * random);
    case ROW_BITS:
        return random < 1.0 / (1.0 + exp(-3.0 * model)) ? 1.0 : 0.0;
    case ROW_POSITIVE:
        return model * (0.2 + 2.0 * random) + 0.01;
    default:
        return model + 0.2 * (random - 0.5);
    }
}

struct row_problem row_problem(enum row_kind kind, uint32_t rank, uint32_t nnz)
{
    const bool positive = kind == ROW_COUNTS || kind == ROW_POSITIVE;
    const uint64_t seed = slc_test_seed();
    struct row_problem problem = {.rank = rank, .width = slc_row_width(rank), .nnz = nnz};

    problem.values = row_numbers(nnz);
    problem.products = row_numbers((uint64_t)nnz * problem.width);
    problem.totals = row_numbers(rank);
    for (uint32_t i = 0; i < nnz; i++) {
        double *product = problem.products + (uint64_t)i * problem.width;
        double model = 0.0;

        for (uint32_t r = 0; r < rank; r++) {
            const double random = slc_random_f64(seed, rank, (uint64_t)i * rank + r);

            product[r] = positive ? random * random + 1e-3 : 2.0 * random - 1.0;
            model += product[r] * slc_random_f64(seed, 3, r);
            problem.totals[r] += product[r];
        }
        problem.values[i] = value_of(kind, model, slc_random_f64(seed, 5, i));
    }
    for (uint32_t r = 0; r < rank; r++) {
        problem.totals[r] += 0.5; /* contribution of the other cells of the row */
    }
    return problem;
}

void row_problem_free(struct row_problem *problem)
{
    free(problem->values);
    free(problem->products);
    free(problem->totals);
}

struct slc_row_solver *row_solver(const struct slc_row_options *options, uint32_t rank)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_row_solver *solver = NULL;

    SLC_ASSERT_OK(slc_row_solver_create(options, rank, 2, &solver, &err), &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(solver);
    return solver;
}

static struct slc_row_piece
piece_at(const struct row_problem *problem, uint32_t most, uint32_t first)
{
    return (struct slc_row_piece){
        .nnz = problem->nnz - first < most ? problem->nnz - first : most,
        .pitch = problem->width,
        .values = problem->values + first,
        .products = problem->products + (uint64_t)first * problem->width,
    };
}

static double
measure(struct slc_row_solver *solver, const struct row_problem *problem, struct slc_row *row)
{
    const uint32_t most = slc_row_piece_nnz(problem->rank);
    double measures[SLC_ROW_MEASURES] = {0};

    for (uint32_t i = 0; i < problem->nnz; i += most) {
        const struct slc_row_piece piece = piece_at(problem, most, i);

        solver->measure(solver->context, 1, row, &piece, measures);
    }
    solver->measure(solver->context, 1, row, NULL, measures);
    return measures[0];
}

double measure_row(struct slc_row_solver *solver, const struct row_problem *problem, double *x)
{
    struct slc_row row = {.nnz = problem->nnz, .x = x};

    return measure(solver, problem, &row);
}

/* Computes the sums of a traversal: the sums of the pieces, each from 0. */
static void traverse(struct slc_row_solver *solver,
                     const struct row_problem *problem,
                     uint32_t most,
                     const struct slc_row *row,
                     double *sums,
                     double *part)
{
    const uint64_t count = solver->sums(solver->context, problem->rank);

    memset(sums, 0, count * sizeof *sums);
    for (uint32_t i = 0; i < problem->nnz; i += most) {
        const struct slc_row_piece piece = piece_at(problem, most, i);

        memset(part, 0, count * sizeof *part);
        solver->add(solver->context, 1, row, &piece, part);
        for (uint64_t k = 0; k < count; k++) {
            sums[k] += part[k];
        }
    }
}

uint32_t solve_row(struct slc_row_solver *solver,
                   const struct row_problem *problem,
                   const struct row_way *way,
                   double *x,
                   double *objectives)
{
    const uint32_t largest = slc_row_piece_nnz(problem->rank);
    const uint32_t most = way->piece == 0 ? largest : way->piece;
    const struct slc_row_mode mode = {.order = 3,
                                      .mode = 1,
                                      .workers = 2,
                                      .iteration = way->iteration == 0 ? 2 : way->iteration,
                                      .rank = problem->rank,
                                      .rows = 2,
                                      .weights = way->weights,
                                      .totals = problem->totals};
    double *sums = row_numbers(solver->sums(solver->context, problem->rank));
    double *part = row_numbers(solver->sums(solver->context, problem->rank));
    double *memory = row_numbers(solver->memory(solver->context, problem->rank));
    struct slc_row row = {
        .index = 1, .nnz = problem->nnz, .streamed = way->streamed, .x = x, .memory = memory};
    struct slc_error err = SLC_ERROR_INIT;
    enum slc_row_next next = SLC_ROW_AGAIN;

    SLC_ASSERT_OK(solver->begin(solver->context, &mode, &err), &err);
    if (solver->start != NULL) {
        solver->start(solver->context, 1, &row);
    }
    if (solver->whole != NULL && problem->nnz > 0 && problem->nnz <= most) {
        const struct slc_row_piece piece = piece_at(problem, most, 0);

        solver->whole(solver->context, 1, &row, &piece);
        next = SLC_ROW_DONE;
    }
    while (next == SLC_ROW_AGAIN) {
        if (objectives != NULL) {
            objectives[row.traversals] = measure(solver, problem, &row);
        }
        traverse(solver, problem, most, &row, sums, part);
        row.traversals++;
        next = solver->step(solver->context, 1, &row, sums);
    }
    if (objectives != NULL) {
        objectives[row.traversals] = measure(solver, problem, &row);
    }
    free(sums);
    free(part);
    free(memory);
    return row.traversals;
}
