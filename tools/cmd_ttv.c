/* sluice ttv: a tensor times vectors, in one mode or more, becomes a store or a number. */
#include "build_options.h"
#include "commands.h"
#include "console.h"
#include "convert/contract.h"
#include "convert/format.h"
#include "cpu/fiber_dots.h"
#include "format.h"
#include "progress.h"

#include <stdio.h>

struct arguments {
    struct build_options build;
    struct option_modes modes;
    struct option_strings vectors;
    bool sort;
};

static const struct option options[] = {
    {.name = "mode",
     .required = true,
     .kind = OPTION_MORE_MODES,
     .value = "K",
     .help = "mode to multiply, counted from 1; may be given for several modes",
     .offset = offsetof(struct arguments, modes)},
    {.name = "vector",
     .required = true,
     .kind = OPTION_MORE_STRINGS,
     .value = "V.npy",
     .help = "vector of the mode, one number per index; the first one is for the first mode, ..",
     .offset = offsetof(struct arguments, vectors)},
    {.name = "sort",
     .kind = OPTION_FLAG,
     .help = "sort the sums even where they come in the order of the result",
     .offset = offsetof(struct arguments, sort)},
    BUILD_OPTION_ROWS(arguments),
    {.name = NULL}};

static enum slc_status fill_options(const struct arguments *args,
                                    const struct operands *operands,
                                    struct slc_contract_options *out,
                                    struct slc_error *err)
{
    if (args->modes.count != args->vectors.count) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "the number of modes is %u, that of vectors %u: each mode needs one",
                        args->modes.count, args->vectors.count);
    }
    if (!slc_codec_parse(args->build.codec, &out->codec)) {
        return slc_fail(err, SLC_ERR_USAGE, "--codec %s is not known to this library",
                        args->build.codec);
    }
    out->store = operands->text[0];
    out->output = operands->count > 1 ? operands->text[1] : NULL;
    out->vector_count = args->modes.count;
    for (unsigned k = 0; k < args->modes.count; k++) {
        out->vectors[k].mode = args->modes.mode[k];
        out->vectors[k].path = args->vectors.text[k];
    }
    out->dots = slc_fiber_dots;
    out->sort = args->sort;
    out->relabel = build_relabel(&args->build);
    out->block_bytes = args->build.block_bytes;
    out->memory_bytes = args->build.memory;
    out->temp_folder = args->build.temp_dir;
    out->max_temp = args->build.max_temp;
    out->threads = build_threads(&args->build);
    out->overwrite = args->build.force;
    out->progress = progress_phase;
    return build_fibers(&args->build, &out->fibers, &out->run, err);
}

static void print_store_report(const struct slc_contract_options *used,
                               const struct slc_contract_report *report)
{
    struct format_text a;
    struct format_text b;
    char dims[FORMAT_DIMS_BYTES];

    printf("Wrote %s\n", used->output);
    printf("  %-12s %s\n", "dims", format_dims(dims, report->order, report->dims));
    printf("  %-12s %s partial sums and %s sums dropped\n", "zeros",
           format_count(&a, report->zero_sums), format_count(&b, report->build.explicit_zeros));
    printf("  %-12s %s\n", "order", report->ordered ? "sums written as they came" : "sums sorted");
    build_report(&report->build, report->order, report->dims);
    build_report_memory(used->memory_bytes);
}

static int run(const struct command *command, int argc, char **argv)
{
    struct arguments args = {.modes = {0}};
    struct slc_contract_options contract = {.files = NULL};
    struct slc_contract_report report = {.order = 0};
    struct slc_error err = SLC_ERROR_INIT;
    struct operands operands;
    int code;

    if (!command_begin(command, argc, argv, &args, &operands, &code)) {
        return code;
    }
    if (fill_options(&args, &operands, &contract, &err) != SLC_OK ||
        build_start(&args.build, contract.output != NULL ? contract.output : "-", &err) != SLC_OK ||
        slc_contract(&contract, &report, &err) != SLC_OK) {
        return console_error(&err);
    }
    console_settle();
    if (contract.output == NULL) {
        char number[32];

        number[slc_format_f64(number, report.scalar)] = '\0';
        printf("%s\n", number);
    } else if (!args.build.quiet) {
        print_store_report(&contract, &report);
    }
    return 0;
}

const struct command command_ttv = {
    .name = "ttv",
    .summary = "multiply a store with vectors (tensor times vector)",
    .example = "sluice ttv flights-4d.slc --mode 3 --vector v.npy flights-3d.slc",
    .operands = "X.slc [OUT.slc]",
    .operands_min = 1,
    .operands_max = 2,
    .options = options,
    .notes = "OUT.slc has the modes that no vector is given for. With a vector for every mode the "
             "result is\n"
             "a number, which goes to standard output, and there is no OUT.slc. Sums that are zero "
             "are not\n"
             "stored.",
    .run = run,
};
