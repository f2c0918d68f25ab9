/* Prints the top rows of the heaviest component of a run, with names if the store has them, and the
 * error of the model on other nonzeros.
 *
 *     cc explain.c $(pkg-config --cflags --libs sluice) -o explain
 *     ./explain flights-4d.r16 held-out.tns */
#include <sluice/experimental.h>
#include <sluice/sluice.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static int fail(const struct sluice_error *err)
{
    char text[2048];

    sluice_error_format(err, text, sizeof text);
    fprintf(stderr, "explain: %s\n", text);
    return EXIT_FAILURE;
}

static int print_row(void *context, const struct sluice_top_row *row)
{
    const uint32_t *component = (const uint32_t *)context;

    if (row->component != *component) {
        return 1;
    }
    printf("mode %u: %10.6f  %" PRIu64 "%s%s\n", row->mode + 1, row->value, row->index + 1,
           *row->name != '\0' ? "  " : "", row->name);
    return 0;
}

int main(int argc, char **argv)
{
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_predict_report report = {.struct_bytes = sizeof report};
    struct sluice_top_options top = {.struct_bytes = sizeof top};
    struct sluice_model *model = NULL;
    uint32_t heaviest = 0; /* cpd sorts components by descending weight */
    int code = EXIT_SUCCESS;

    if (argc != 3) {
        fprintf(stderr, "usage: explain RUN COORDS\n");
        return EXIT_FAILURE;
    }
    top.rows = 3;
    top.run.context = &heaviest;
    if (sluice_run_top(argv[1], &top, print_row, &err) != SLUICE_OK ||
        sluice_model_load(NULL, argv[1], &model, &err) != SLUICE_OK ||
        sluice_predict_text(model, argv[2], NULL, NULL, &report, &err) != SLUICE_OK) {
        code = fail(&err);
    } else {
        printf("%" PRIu64 " nonzeros: RMSE %.6g, MAE %.6g\n", report.rows, report.rmse, report.mae);
    }
    sluice_model_destroy(model);
    return code;
}
