/* Converts a tensor and exports it in the format given by the ending of the output, such as .npz
 * for NumPy. Ctrl-C stops it promptly and leaves no incomplete output.
 *
 *     cc publish.c $(pkg-config --cflags --libs sluice) -o publish
 *     ./publish uber.tns.gz uber.slc uber.npz */
#include <sluice/sluice.h>

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static sluice_atomic_int stop;

static void on_signal(int number)
{
    (void)number;
    stop = 1;
}

static int print_progress(void *context, const struct sluice_progress *progress)
{
    (void)context;
    if (progress->total > 0) {
        fprintf(stderr, "\r%-8s %3.0f %%", progress->phase,
                100.0 * (double)progress->done / (double)progress->total);
    }
    return 0;
}

static int fail(const struct sluice_error *err)
{
    char text[2048];

    sluice_error_format(err, text, sizeof text);
    fprintf(stderr, "\npublish: %s\n", text);
    return err->status == SLUICE_ERR_INTERRUPTED ? 130 : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_convert_options convert = {.struct_bytes = sizeof convert};
    struct sluice_export_options export_options = {.struct_bytes = sizeof export_options};
    uint64_t nonzeros = 0;

    if (argc != 4) {
        fprintf(stderr, "usage: publish IN STORE.slc OUT\n");
        return EXIT_FAILURE;
    }
    signal(SIGINT, on_signal);
    convert.run.stop = &stop;
    convert.run.progress = print_progress;
    export_options.run.stop = &stop;
    export_options.run.progress = print_progress;
    if (sluice_convert(argv[1], argv[2], &convert, NULL, &err) != SLUICE_OK ||
        sluice_export(argv[2], argv[3], &export_options, &nonzeros, &err) != SLUICE_OK) {
        return fail(&err);
    }
    printf("%" PRIu64 " nonzeros in %s\n", nonzeros, argv[3]);
    return EXIT_SUCCESS;
}
