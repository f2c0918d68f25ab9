/* Converts a CSV or TSV table to a store and prints the title and first names of each mode.
 *
 *     cc read_table.c $(pkg-config --cflags --libs sluice) -o read_table
 *     ./read_table trips.csv "hour(pickup_time),origin,destination" trips.slc */
#include <sluice/sluice.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { NAMES = 5 };

static int fail(const struct sluice_error *err)
{
    char text[2048];

    sluice_error_format(err, text, sizeof text);
    fprintf(stderr, "read_table: %s\n", text);
    return EXIT_FAILURE;
}

/* Prints a line such as "origin (120): Berlin, Paris, ..". */
static enum sluice_status
print_mode(struct sluice_store *store, uint32_t mode, struct sluice_error *err)
{
    const uint64_t named = sluice_store_name_count(store, mode);
    const char *name = NULL;

    printf("%s (%" PRIu64 ")", sluice_store_title(store, mode), named);
    for (uint64_t i = 0; i < named && i < NAMES; i++) {
        const enum sluice_status status = sluice_store_get_name(store, mode, i, &name, err);

        if (status != SLUICE_OK) {
            return status;
        }
        printf("%s%s", i == 0 ? ": " : ", ", name);
    }
    printf("%s\n", named > NAMES ? ", .." : "");
    return SLUICE_OK;
}

int main(int argc, char **argv)
{
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_store_info info = {.struct_bytes = sizeof info};
    struct sluice_convert_options options = {.struct_bytes = sizeof options};
    struct sluice_store *store = NULL;
    enum sluice_status status;

    if (argc != 4) {
        fprintf(stderr, "usage: read_table IN.csv COLUMNS OUT.slc\n");
        return EXIT_FAILURE;
    }
    options.table.columns = argv[2];
    status = sluice_convert(argv[1], argv[3], &options, NULL, &err);
    if (status == SLUICE_OK) {
        status = sluice_store_open(argv[3], &store, &err);
    }
    if (status == SLUICE_OK) {
        status = sluice_store_get_info(store, &info, &err);
    }
    for (uint32_t n = 0; status == SLUICE_OK && n < info.order; n++) {
        status = print_mode(store, n, &err);
    }
    sluice_store_close(store);
    return status == SLUICE_OK ? EXIT_SUCCESS : fail(&err);
}
