/*
 * Makes a store of a table, CSV or TSV, and tells what its modes are called and their first names.
 *
 *     cc read_table.c $(pkg-config --cflags --libs sluice) -o read_table
 *     ./read_table trips.csv "hour(pickup_time),origin,destination" trips.slc
 */
#include <sluice/sluice.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { NAMES = 5 };

static int fail(const struct slc_error *err)
{
    char text[2048];

    sluice_error_format(err, text, sizeof text);
    fprintf(stderr, "read_table: %s\n", text);
    return EXIT_FAILURE;
}

/* "origin (120): Berlin, Paris, .." */
static enum slc_status tell_mode(struct sluice_store *store, uint32_t mode, struct slc_error *err)
{
    const uint64_t named = sluice_store_names(store, mode);
    const char *name = NULL;

    printf("%s (%" PRIu64 ")", sluice_store_title(store, mode), named);
    for (uint64_t i = 0; i < named && i < NAMES; i++) {
        const enum slc_status status = sluice_store_name(store, mode, i, &name, err);

        if (status != SLC_OK) {
            return status;
        }
        printf("%s%s", i == 0 ? ": " : ", ", name);
    }
    printf("%s\n", named > NAMES ? ", .." : "");
    return SLC_OK;
}

int main(int argc, char **argv)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct sluice_store_info info = {.struct_bytes = sizeof info};
    struct sluice_convert_options options;
    struct sluice_store *store = NULL;
    enum slc_status status;

    if (argc != 4) {
        fprintf(stderr, "usage: read_table IN.csv COLUMNS OUT.slc\n");
        return EXIT_FAILURE;
    }
    sluice_convert_options_init(&options, sizeof options);
    options.columns = argv[2];
    status = sluice_convert(argv[1], argv[3], &options, NULL, &err);
    if (status == SLC_OK) {
        status = sluice_store_open(argv[3], &store, &err);
    }
    if (status == SLC_OK) {
        status = sluice_store_info(store, &info, &err);
    }
    for (uint32_t n = 0; status == SLC_OK && n < info.order; n++) {
        status = tell_mode(store, n, &err);
    }
    sluice_store_close(store);
    return status == SLC_OK ? EXIT_SUCCESS : fail(&err);
}
