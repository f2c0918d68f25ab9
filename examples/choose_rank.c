/* Factorizes a store twice with each of several ranks and prints the suggested rank.
 *
 *     cc choose_rank.c $(pkg-config --cflags --libs sluice) -o choose_rank
 *     ./choose_rank uber.slc uber.sweep 4 8 16 */
#include <sluice/experimental.h>

#include <stdio.h>
#include <stdlib.h>

static int fail(const struct sluice_error *err)
{
    char text[2048];

    sluice_error_format(err, text, sizeof text);
    fprintf(stderr, "choose_rank: %s\n", text);
    return EXIT_FAILURE;
}

static enum sluice_status print_sweep(const struct sluice_sweep *sweep, struct sluice_error *err)
{
    struct sluice_sweep_suggestion suggestion = {.struct_bytes = sizeof suggestion};

    for (uint32_t i = 0; i < sluice_sweep_rank_count(sweep); i++) {
        struct sluice_sweep_rank rank = {.struct_bytes = sizeof rank};
        const enum sluice_status status = sluice_sweep_get_rank(sweep, i, &rank, err);

        if (status != SLUICE_OK) {
            return status;
        }
        printf("rank %u: fit %.6f, core consistency %.1f %%, agreement %.3f\n", rank.rank,
               rank.best_fit, rank.consistency, rank.agreement);
    }
    if (sluice_sweep_suggest(sweep, &suggestion, err) != SLUICE_OK) {
        return SLUICE_ERR_USAGE;
    }
    printf("best run in %s: %s\n", suggestion.folder, suggestion.why);
    return SLUICE_OK;
}

int main(int argc, char **argv)
{
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_sweep_options options = {.struct_bytes = sizeof options};
    struct sluice_store *store = NULL;
    struct sluice_sweep *sweep = NULL;
    uint32_t ranks[16];
    int code = EXIT_SUCCESS;

    if (argc < 4 || argc > 3 + 16) {
        fprintf(stderr, "usage: choose_rank IN.slc FOLDER RANK..\n");
        return EXIT_FAILURE;
    }
    for (int i = 3; i < argc; i++) {
        ranks[i - 3] = (uint32_t)strtoul(argv[i], NULL, 10);
    }
    options.runs = 2;
    if (sluice_store_open(argv[1], &store, &err) != SLUICE_OK ||
        sluice_sweep_ranks(store, argv[2], (uint32_t)(argc - 3), ranks, &options, &sweep, &err) !=
            SLUICE_OK ||
        print_sweep(sweep, &err) != SLUICE_OK) {
        code = fail(&err);
    }
    sluice_sweep_destroy(sweep);
    sluice_store_close(store);
    return code;
}
