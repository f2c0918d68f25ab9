/* Sums a tensor over one mode: multiplies it by a vector of ones.
 *
 *     cc sum_mode.c $(pkg-config --cflags --libs sluice) -o sum_mode
 *     ./sum_mode uber.slc 2 uber-without-hours.slc */
#include <sluice/sluice.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static int fail(const struct sluice_error *err)
{
    char text[2048];

    sluice_error_format(err, text, sizeof text);
    fprintf(stderr, "sum_mode: %s\n", text);
    return EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_store_info info = {.struct_bytes = sizeof info};
    struct sluice_ttv_report report = {.struct_bytes = sizeof report};
    const double *vectors[SLUICE_MAX_ORDER] = {NULL};
    struct sluice_store *store = NULL;
    double *ones = NULL;
    unsigned long mode;
    int code = EXIT_SUCCESS;

    if (argc != 4 || (mode = strtoul(argv[2], NULL, 10)) < 1) {
        fprintf(stderr, "usage: sum_mode IN.slc MODE OUT.slc\n");
        return EXIT_FAILURE;
    }
    if (sluice_store_open(argv[1], &store, &err) != SLUICE_OK ||
        sluice_store_get_info(store, &info, &err) != SLUICE_OK) {
        code = fail(&err);
    } else if (mode > info.order || info.order < 2) {
        fprintf(stderr, "sum_mode: cannot sum a tensor of %" PRIu32 " modes over mode %lu\n",
                info.order, mode);
        code = EXIT_FAILURE;
    } else if ((ones = (double *)malloc(info.dims[mode - 1] * sizeof *ones)) == NULL) {
        fprintf(stderr, "sum_mode: no memory for %" PRIu64 " numbers\n", info.dims[mode - 1]);
        code = EXIT_FAILURE;
    } else {
        for (uint64_t i = 0; i < info.dims[mode - 1]; i++) {
            ones[i] = 1;
        }
        vectors[mode - 1] = ones;
        if (sluice_ttv(store, vectors, argv[3], NULL, &report, &err) != SLUICE_OK) {
            code = fail(&err);
        } else {
            printf("%" PRIu64 " sums of %" PRIu64 " nonzeros\n", report.nnz, info.nnz);
        }
    }
    free(ones);
    sluice_store_close(store);
    return code;
}
