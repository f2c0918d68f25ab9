/* Factorizes a store, and writes the factors, the record of the run, and a report.
 *
 *     cc tell_run.c $(pkg-config --cflags --libs sluice) -o tell_run
 *     ./tell_run uber.slc 16 uber.r16 report.html */
#include <sluice/sluice.h>

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_report_options page = {.struct_bytes = sizeof page};
    struct sluice_model_info info = {.struct_bytes = sizeof info};
    struct sluice_store *store = NULL;
    struct sluice_model *model = NULL;
    int code = EXIT_SUCCESS;

    if (argc != 5) {
        fprintf(stderr, "usage: tell_run IN.slc RANK FOLDER PAGE.html\n");
        return EXIT_FAILURE;
    }
    page.rows = 5;
    page.overwrite = 1;
    if (sluice_store_open(argv[1], &store, &err) != SLUICE_OK ||
        sluice_cpd(store, (uint32_t)strtoul(argv[2], NULL, 10), NULL, &model, &err) != SLUICE_OK ||
        sluice_model_save(model, SLUICE_MODEL_NPY, argv[3], &err) != SLUICE_OK ||
        sluice_model_get_info(model, &info, &err) != SLUICE_OK ||
        sluice_run_report(argv[3], argv[4], &page, &err) != SLUICE_OK) {
        char text[2048];

        sluice_error_format(&err, text, sizeof text);
        fprintf(stderr, "tell_run: %s\n", text);
        code = EXIT_FAILURE;
    } else {
        printf("fit %.6f, report in %s\n", info.fit, argv[4]);
    }
    sluice_model_destroy(model);
    sluice_store_close(store);
    return code;
}
