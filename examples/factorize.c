/* Converts a text tensor, factorizes it, writes the factors, and prints the fit.
 *
 *     cc factorize.c $(pkg-config --cflags --libs sluice) -o factorize
 *     ./factorize uber.tns 16 factors */
#include <sluice/sluice.h>

#include <stdio.h>
#include <stdlib.h>

static int print_iteration(void *context, const struct sluice_iteration *iteration)
{
    (void)context;
    printf("iteration %u: fit %.6f\n", iteration->iteration, iteration->fit);
    return 0;
}

static int fail(const struct sluice_error *err)
{
    char text[2048];

    sluice_error_format(err, text, sizeof text);
    fprintf(stderr, "factorize: %s\n", text);
    return EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_convert_options convert = {.struct_bytes = sizeof convert};
    struct sluice_model_info info = {.struct_bytes = sizeof info};
    struct sluice_cpd_options options = {.struct_bytes = sizeof options};
    struct sluice_store *store = NULL;
    struct sluice_model *model = NULL;
    char path[4096];
    int code = EXIT_SUCCESS;

    if (argc != 4) {
        fprintf(stderr, "usage: factorize IN.tns RANK FOLDER\n");
        return EXIT_FAILURE;
    }
    snprintf(path, sizeof path, "%s.slc", argv[1]);
    convert.output.overwrite = 1;
    options.iteration = print_iteration;

    if (sluice_convert(argv[1], path, &convert, NULL, &err) != SLUICE_OK ||
        sluice_store_open(path, &store, &err) != SLUICE_OK ||
        sluice_cpd(store, (uint32_t)strtoul(argv[2], NULL, 10), &options, &model, &err) !=
            SLUICE_OK ||
        sluice_model_save(model, SLUICE_MODEL_NPY, argv[3], &err) != SLUICE_OK ||
        sluice_model_get_info(model, &info, &err) != SLUICE_OK) {
        code = fail(&err);
    } else {
        printf("fit %.6f after %u iterations\n", info.fit, info.iterations);
    }
    sluice_model_destroy(model);
    sluice_store_close(store);
    return code;
}
