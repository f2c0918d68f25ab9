/*
 * Converts a tensor and writes it in the form that the name of the output means, .npz for NumPy
 * say. Ctrl-C ends it soon: what is there afterwards is whole.
 *
 *     cc publish.c $(pkg-config --cflags --libs sluice) -o publish
 *     ./publish uber.tns.gz uber.slc uber.npz
 */
#include <sluice/sluice.h>

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static volatile int stop;

static void on_signal(int number)
{
    (void)number;
    stop = 1;
}

static void tell(void *context, const char *phase, uint64_t done, uint64_t total)
{
    (void)context;
    if (total > 0) {
        fprintf(stderr, "\r%-8s %3.0f %%", phase, 100.0 * (double)done / (double)total);
    }
}

static int fail(const struct slc_error *err)
{
    char text[2048];

    sluice_error_format(err, text, sizeof text);
    fprintf(stderr, "\npublish: %s\n", text);
    return err->status == SLC_ERR_INTERRUPTED ? 130 : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct sluice_convert_options convert;
    struct sluice_export_options export_options;
    uint64_t nonzeros = 0;

    if (argc != 4) {
        fprintf(stderr, "usage: publish IN STORE.slc OUT\n");
        return EXIT_FAILURE;
    }
    signal(SIGINT, on_signal);
    sluice_convert_options_init(&convert, sizeof convert);
    convert.stop = &stop;
    convert.progress = tell;
    sluice_export_options_init(&export_options, sizeof export_options);
    export_options.stop = &stop;
    export_options.progress = tell;
    if (sluice_convert(argv[1], argv[2], &convert, NULL, &err) != SLC_OK ||
        sluice_export(argv[2], argv[3], &export_options, &nonzeros, &err) != SLC_OK) {
        return fail(&err);
    }
    printf("%" PRIu64 " nonzeros in %s\n", nonzeros, argv[3]);
    return EXIT_SUCCESS;
}
