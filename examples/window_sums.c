/* Sums a tensor over windows of a mode, such as the weeks of a mode of days: multiplies it by one
 * vector per window, of ones inside and zeros outside of the window. Prints the largest sum of each
 * window and the fiber that has it.
 *
 *     cc window_sums.c $(pkg-config --cflags --libs sluice) -o window_sums
 *     ./window_sums flights.slc 1 7 */
#include <sluice/sluice.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* An operator, its description, and memory for a vector and a product. */
struct windows {
    struct sluice_ttv_operator *ttv;
    struct sluice_ttv_operator_info info;
    uint64_t *indices; /* index of each fiber in one mode */
    double *vector, *sums;
};

static int fail(const struct sluice_error *err)
{
    char text[2048];

    sluice_error_format(err, text, sizeof text);
    fprintf(stderr, "window_sums: %s\n", text);
    return EXIT_FAILURE;
}

/* Reads the tensor. The store can be closed afterwards. */
static enum sluice_status
read_tensor(const char *path, uint32_t mode, struct windows *windows, struct sluice_error *err)
{
    struct sluice_store *store = NULL;
    enum sluice_status status = sluice_store_open(path, &store, err);

    if (status == SLUICE_OK) {
        status = sluice_ttv_create(store, mode, NULL, &windows->ttv, err);
    }
    if (status == SLUICE_OK) {
        status = sluice_ttv_get_info(windows->ttv, &windows->info, err);
    }
    sluice_store_close(store);
    return status;
}

/* Prints the largest sum of the window of indices first .. end - 1. */
static enum sluice_status
print_window(struct windows *windows, uint64_t first, uint64_t end, struct sluice_error *err)
{
    const struct sluice_ttv_operator_info *info = &windows->info;
    enum sluice_status status;
    uint64_t largest = 0;

    for (uint64_t i = 0; i < info->dims[info->mode]; i++) {
        windows->vector[i] = i >= first && i < end ? 1 : 0;
    }
    status = sluice_ttv_multiply(windows->ttv, windows->vector, info->dims[info->mode],
                                 windows->sums, info->fibers, err);
    for (uint64_t f = 1; status == SLUICE_OK && f < info->fibers; f++) {
        largest = windows->sums[f] > windows->sums[largest] ? f : largest;
    }
    if (status == SLUICE_OK) {
        printf("%" PRIu64 " to %" PRIu64 ": %g at", first + 1, end, windows->sums[largest]);
    }
    for (uint32_t n = 0; status == SLUICE_OK && n < info->order; n++) {
        if (n != info->mode) {
            status = sluice_ttv_get_indices(windows->ttv, n, windows->indices, info->fibers, err);
            printf(" %" PRIu64, windows->indices[largest] + 1);
        }
    }
    printf("\n");
    return status;
}

int main(int argc, char **argv)
{
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct windows windows = {.ttv = NULL};
    unsigned long mode, width;
    int code = EXIT_SUCCESS;

    if (argc != 4 || (mode = strtoul(argv[2], NULL, 10)) < 1 ||
        (width = strtoul(argv[3], NULL, 10)) < 1) {
        fprintf(stderr, "usage: window_sums IN.slc MODE WIDTH\n");
        return EXIT_FAILURE;
    }
    windows.info.struct_bytes = sizeof windows.info;
    if (read_tensor(argv[1], (uint32_t)(mode - 1), &windows, &err) != SLUICE_OK) {
        return fail(&err);
    }
    const uint64_t length = windows.info.dims[windows.info.mode];
    windows.vector = (double *)calloc(length, sizeof *windows.vector);
    windows.sums = (double *)calloc(windows.info.fibers + 1, sizeof *windows.sums);
    windows.indices = (uint64_t *)calloc(windows.info.fibers + 1, sizeof *windows.indices);
    if (windows.vector == NULL || windows.sums == NULL || windows.indices == NULL) {
        fprintf(stderr, "window_sums: no memory for %" PRIu64 " sums\n", windows.info.fibers);
        code = EXIT_FAILURE;
    }
    for (uint64_t first = 0; code == EXIT_SUCCESS && windows.info.fibers > 0 && first < length;
         first += width) {
        const uint64_t end = first + width < length ? first + width : length;

        if (print_window(&windows, first, end, &err) != SLUICE_OK) {
            code = fail(&err);
        }
    }
    free(windows.vector);
    free(windows.sums);
    free(windows.indices);
    sluice_ttv_destroy(windows.ttv);
    return code;
}
