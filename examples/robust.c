/* Decomposes the stored cells of a store robustly: a cell with residual e weighs
 * 1 / (1 + (e / scale)^2) (Cauchy's loss), so that gross errors hardly affect the model.
 *
 *     cc robust.c $(pkg-config --cflags --libs sluice) -lm -o robust
 *     ./robust ratings.slc 4 0.5 robust.model */
#include <sluice/row_solver.h>
#include <sluice/sluice.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static double scale;

static double residual(const struct sluice_row *row, const double *product, double value)
{
    for (uint32_t r = 0; r < row->rank; r++) {
        value -= product[r] * row->x[r];
    }
    return value;
}

static uint64_t sums_of(void *context, uint32_t rank)
{
    (void)context;
    return 2 * (uint64_t)rank;
}

/* Adds the gradient, and a bound of the curvature in each column. */
static void add(void *context,
                uint32_t worker,
                const struct sluice_row *row,
                const struct sluice_row_piece *piece,
                double *sums)
{
    (void)context;
    (void)worker;
    for (uint32_t i = 0; i < piece->nnz; i++) {
        const double *product = piece->products + (size_t)i * piece->pitch;
        const double error = residual(row, product, piece->values[i]);
        const double weight = 1.0 / (1.0 + error * error / (scale * scale));
        double size = 0.0;

        for (uint32_t r = 0; r < row->rank; r++) {
            size += fabs(product[r]);
        }
        for (uint32_t r = 0; r < row->rank; r++) {
            sums[r] += weight * error * product[r];
            sums[row->rank + r] += weight * fabs(product[r]) * size;
        }
    }
}

/* Moves each column to the minimum of a parabola above the loss. */
static int step(void *context, uint32_t worker, struct sluice_row *row, const double *sums)
{
    const double ridge = 1e-3;

    (void)context;
    (void)worker;
    for (uint32_t r = 0; r < row->rank; r++) {
        row->x[r] += (sums[r] - ridge * row->x[r]) / (sums[row->rank + r] + ridge);
    }
    return row->traversals < 20;
}

int main(int argc, char **argv)
{
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_row_solver solver = {
        .struct_bytes = sizeof solver, .name = "cauchy", .sums = sums_of, .add = add, .step = step};
    struct sluice_cpd_options options = {
        .struct_bytes = sizeof options, .iterations = 100, .row_solver = &solver};
    struct sluice_store *store = NULL;
    struct sluice_model *model = NULL;
    int code = EXIT_SUCCESS;

    if (argc != 5) {
        fprintf(stderr, "usage: robust IN.slc RANK SCALE OUT\n");
        return EXIT_FAILURE;
    }
    scale = strtod(argv[3], NULL);
    if (sluice_store_open(argv[1], &store, &err) != SLUICE_OK ||
        sluice_cpd(store, (uint32_t)strtoul(argv[2], NULL, 10), &options, &model, &err) !=
            SLUICE_OK ||
        sluice_model_save(model, SLUICE_MODEL_NPY, argv[4], &err) != SLUICE_OK) {
        char text[2048];

        sluice_error_format(&err, text, sizeof text);
        fprintf(stderr, "robust: %s\n", text);
        code = EXIT_FAILURE;
    }
    sluice_model_destroy(model);
    sluice_store_close(store);
    return code;
}
