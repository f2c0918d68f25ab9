/* sluice generate: generates random tensors of any size in bounded memory. */
#include "convert/build/resume/build_folder.h"
#include "convert/generate/generate.h"
#include "convert/generate/paper_tensor.h"
#include "convert/number/number.h"
#include "tools/build/build_options.h"
#include "tools/forecast/forecast_ahead.h"
#include "tools/progress/cleanup.h"
#include "tools/progress/console.h"
#include "tools/progress/format.h"
#include "tools/progress/progress.h"
#include "tools/session/commands.h"

#include <stdio.h>
#include <string.h>

struct arguments {
    struct build_options build;
    struct option_dims dims;
    uint64_t nnz;
    const char *dist;
    const char *like;
    double scale;
    uint64_t rank;
    double noise;
    uint64_t seed;
    struct forecast_options forecast;
};

static const struct option options[] = {
    {"dims", OPTION_DIMS, offsetof(struct arguments, dims), .required = true, .instead = "like",
     .value = "AxBxC", .help = "mode sizes"},
    {"nnz", OPTION_U64, offsetof(struct arguments, nnz), .required = true, .instead = "like",
     .value = "N",
     .help = "number of nonzeros to generate, such as 5000 or 20M; with zipf, coordinates can "
             "repeat, and a store combines equal coordinates"},
    {"dist", OPTION_STRING, offsetof(struct arguments, dist), .instead = "like",
     .value = "NAME[:S]", .fallback = "uniform",
     .help = "distribution of the coordinates: uniform, zipf:S (exponent S, low indices are "
             "frequent), zipf-shuffled:S (frequent indices are scattered), best (a full box), "
             "best:K (best for a TTM in mode K), worst (no index of a mode occurs twice), "
             "dense-fibers:K (scattered full fibers of mode K), dense-slices:K (scattered full "
             "slices) or fibers:K:F (F fibers)"},
    {"like", OPTION_CHOICE, offsetof(struct arguments, like), .value = "TENSOR",
     .choices = slc_paper_tensor_names,
     .help = "generate a stand-in of a tensor that papers use, by order, mode sizes, nonzeros and "
             "skew, instead of --dims, --nnz and --dist"},
    {"scale", OPTION_DOUBLE, offsetof(struct arguments, scale), .value = "S", .fallback = "1",
     .help =
         "with --like: multiply the number of nonzeros by S, up to 1, and shrink the mode sizes "
         "so that the share of nonzero cells stays the same"},
    {"rank", OPTION_U64, offsetof(struct arguments, rank), .letter = 'r', .value = "R",
     .fallback = "0", .maximum = SLC_MAX_RANK,
     .help = "use the values of a planted model of rank R; 0 means random integers from 1 to 9"},
    {"noise", OPTION_DOUBLE, offsetof(struct arguments, noise), .value = "F", .fallback = "0",
     .help = "standard deviation of the noise added to the values, as a fraction of the root mean "
             "square of the model's values"},
    {"seed", OPTION_U64, offsetof(struct arguments, seed), .value = "N", .fallback = "0",
     .maximum = INT64_MAX, .help = "seed of the random tensor"},
    BUILD_OPTION_ROWS(arguments),
    FORECAST_OPTION_ROWS(arguments, forecast),
    {.name = NULL}};

/* What follows the name of a distribution, after a colon. */
enum argument { NOTHING, EXPONENT, MODE_OR_NOTHING, MODE, MODE_AND_FIBERS };

static const struct {
    const char *name;
    enum slc_distribution distribution;
    enum argument argument;
} distributions[] = {
    {"uniform", SLC_DIST_UNIFORM, NOTHING},
    {"zipf", SLC_DIST_ZIPF, EXPONENT},
    {"zipf-shuffled", SLC_DIST_ZIPF_SHUFFLED, EXPONENT},
    {"best", SLC_DIST_BEST, MODE_OR_NOTHING},
    {"worst", SLC_DIST_WORST, NOTHING},
    {"dense-fibers", SLC_DIST_DENSE_FIBERS, MODE},
    {"dense-slices", SLC_DIST_DENSE_SLICES, MODE},
    {"fibers", SLC_DIST_FIBERS, MODE_AND_FIBERS},
};

/* Parses a whole number from 1 to `most`, which ends at `end`. */
static bool parse_whole(const char *text, const char *end, double most, uint64_t *whole)
{
    double number = 0;

    if (slc_parse_f64(text, end, &number) != end || !(number >= 1) || number > most) {
        return false;
    }
    *whole = (uint64_t)number;
    return (double)*whole == number;
}

/* Parses the text after the colon; NULL: there is no colon. The generator checks that the tensor
 * has the mode and so many fibers. */
static bool
parse_argument(enum argument argument, const char *text, struct slc_generate_options *out)
{
    const char *end = text != NULL ? text + strlen(text) : NULL;
    const char *colon = text != NULL && argument == MODE_AND_FIBERS ? strchr(text, ':') : end;
    uint64_t mode = 0;

    if (text == NULL) {
        return argument != MODE && argument != MODE_AND_FIBERS;
    }
    if (argument == NOTHING) {
        return false;
    }
    if (argument == EXPONENT) {
        return slc_parse_f64(text, end, &out->zipf_exponent) == end && out->zipf_exponent >= 0 &&
               out->zipf_exponent <= 100;
    }
    if (colon == NULL || !parse_whole(text, colon, SLC_MAX_ORDER, &mode)) {
        return false;
    }
    out->mode = (unsigned)mode;
    return argument != MODE_AND_FIBERS || parse_whole(colon + 1, end, 0x1p53, &out->fiber_count);
}

/* Parses a distribution: "zipf:1.2", "dense-fibers:2", "fibers:3:5000" .. */
static enum slc_status
parse_distribution(const char *text, struct slc_generate_options *out, struct slc_error *err)
{
    const char *colon = strchr(text, ':');
    size_t bytes = colon != NULL ? (size_t)(colon - text) : strlen(text);

    out->zipf_exponent = 1;
    for (size_t i = 0; i < sizeof distributions / sizeof distributions[0]; i++) {
        const char *name = distributions[i].name;

        if (strlen(name) == bytes && memcmp(text, name, bytes) == 0 &&
            parse_argument(distributions[i].argument, colon != NULL ? colon + 1 : NULL, out)) {
            out->distribution = distributions[i].distribution;
            return SLC_OK;
        }
    }
    return slc_fail(err, SLC_ERR_USAGE,
                    "--dist: '%s' is not one of uniform, zipf:S, zipf-shuffled:S with 0 <= S <= "
                    "100, best, worst, best:K, dense-fibers:K, dense-slices:K, fibers:K:F with a "
                    "mode K and a number of fibers F",
                    text);
}

/* Sets shape and distribution to those of the stand-in of --like. */
static enum slc_status
fill_like(const struct arguments *args, struct slc_generate_options *out, struct slc_error *err)
{
    if (!(args->scale > 0) || args->scale > 1) {
        return slc_fail(err, SLC_ERR_USAGE, "--scale %g: must be above 0 and at most 1",
                        args->scale);
    }
    slc_paper_tensor_options(slc_paper_tensor_find(args->like), args->scale, out);
    return SLC_OK;
}

static enum slc_status
fill_options(const struct arguments *args, struct slc_generate_options *out, struct slc_error *err)
{
    if (args->like == NULL && args->scale != 1) {
        return slc_fail(err, SLC_ERR_USAGE, "--scale needs --like");
    }
    SLC_TRY(build_codec(&args->build, &out->codec, err));
    out->order = args->dims.order;
    for (unsigned n = 0; n < args->dims.order; n++) {
        out->dims[n] = args->dims.length[n];
    }
    out->nnz = args->nnz;
    out->rank = (uint32_t)args->rank;
    out->noise = args->noise;
    out->seed = args->seed;
    out->relabel = build_relabel(&args->build);
    BUILD_SET(out, &args->build);
    SLC_TRY(build_fibers(&args->build, &out->fibers, &out->run, err));
    return args->like != NULL ? fill_like(args, out, err)
                              : parse_distribution(args->dist, out, err);
}

static void print_report(const struct arguments *args,
                         const struct slc_generate_options *options_used,
                         const struct slc_generate_report *report)
{
    struct format_text a;
    struct format_text b;

    printf("Generated %s\n", options_used->output);
    if (args->like != NULL) {
        printf("  %-12s %s (%s), scale %g\n", "stand-in of", args->like,
               slc_paper_tensor_find(args->like)->source, args->scale);
    }
    if (report->store) {
        build_report(&report->build, options_used->order, options_used->dims);
        printf("  %-12s %s merged\n", "duplicates", format_count(&a, report->build.duplicates));
    } else {
        printf("  %-12s %s rows, %s\n", "text", format_count(&a, report->entries),
               format_data(&b, (double)report->text_bytes));
    }
    build_report_memory(options_used->memory_bytes);
}

/* Minimum number of nonzeros for a forecast: a smaller tensor is generated faster than the forecast
 * is made. */
#define AHEAD_NNZ_MIN 100000
/* Time in seconds to start, to sync and to finish. */
#define ALWAYS_SECONDS 0.05

static void estimate_times(const struct slc_generate_forecast *found, struct forecast *forecast)
{
    const double writes = forecast->write_rate;

    forecast_add_phase(forecast, "begin and end");
    forecast_add_part(forecast, "syncing", ALWAYS_SECONDS);
    forecast_add_phase(forecast, found->store ? "collect" : "write");
    forecast_add_part(forecast, "drawing", found->draw_seconds + found->scatter_seconds);
    forecast_add_part(
        forecast, found->store ? "spilling" : "writing",
        slc_ratio((double)(found->store ? found->spill_bytes : found->output_bytes), writes));
    if (found->store) {
        forecast_add_phase(forecast, "write");
        forecast_add_part(forecast, "sorting", found->sort_seconds + found->encode_seconds);
        forecast_add_part(forecast, "writing", slc_ratio((double)found->output_bytes, writes));
    }
}

/* The tensor to generate, and how much is measured for the forecast. */
struct job {
    const struct slc_generate_options *generate;
    bool no_probe, brief;
};

static enum slc_status
forecast_generate(const void *context, struct forecast *forecast, struct slc_error *err)
{
    const struct job *job = context;
    const struct slc_generate_options *generate = job->generate;
    const bool to_file = strcmp(generate->output, "-") != 0;
    struct slc_generate_forecast found;

    SLC_TRY(slc_generate_forecast(generate, &found, err));
    if (found.store) {
        SLC_TRY(
            slc_build_folder_check(slc_files_system(), generate->output, generate->overwrite, err));
    }
    *forecast = (struct forecast){
        .command = "generate",
        .brief = job->brief,
        .budget_bytes = generate->memory_bytes,
        .memory_bytes = found.fixed_bytes + found.text_memory_bytes +
                        (found.push_bytes > found.sort_bytes ? found.push_bytes : found.sort_bytes),
        .output = to_file ? generate->output : NULL,
        .temp_folder = generate->temp_folder,
        .free_bytes = UINT64_MAX,
        .final_bytes = found.output_bytes,
        .temp_bytes = found.spill_bytes,
        .read_bytes = found.spill_bytes,
        .written_bytes = found.output_bytes + found.spill_bytes,
        .passes = "one over the output"};
    forecast_add_buffer(forecast, "drawing", found.fixed_bytes, "process, columns of nonzeros");
    forecast_add_buffer(forecast, "text", found.text_memory_bytes, "a buffer per thread");
    forecast_add_buffer(forecast, "collecting", found.push_bytes, "buckets and their contents");
    forecast_add_buffer(forecast, "sorting", found.sort_bytes,
                        "instead of these: buckets, sort areas, encoders and writer");
    if (!job->no_probe) {
        forecast_try_drives(forecast, NULL);
        estimate_times(&found, forecast);
    }
    return SLC_OK;
}

static enum slc_status dry_run(const struct arguments *args,
                               const struct slc_generate_options *generate,
                               struct slc_error *err)
{
    const struct job job = {.generate = generate, .no_probe = args->forecast.no_probe};
    struct forecast forecast;

    SLC_TRY(forecast_generate(&job, &forecast, err));
    return forecast_dry_run(&forecast, args->forecast.json, err, "Would generate %s\n",
                            generate->output);
}

static int run(const struct command *command, int argc, char **argv)
{
    struct arguments args = {.dist = NULL};
    struct slc_generate_options generate = {.files = NULL};
    struct slc_generate_report report = {.entries = 0};
    const struct job job = {.generate = &generate, .brief = true};
    struct forecast_ahead ahead = {.known = false};
    struct slc_error err = SLC_ERROR_INIT;
    struct operands operands;
    int code;

    if (!command_begin(command, argc, argv, &args, &operands, &code)) {
        return code;
    }
    generate.output = operands.text[0];
    if (build_start(&args.build, args.forecast.dry_run ? "-" : generate.output, &err) != SLC_OK ||
        fill_options(&args, &generate, &err) != SLC_OK) {
        return console_error(&err);
    }
    if (args.forecast.dry_run) {
        return dry_run(&args, &generate, &err) == SLC_OK ? 0 : console_error(&err);
    }
    if (generate.nnz >= AHEAD_NNZ_MIN) {
        forecast_ahead(&ahead, args.build.quiet, NULL, forecast_generate, &job);
    }
    if (slc_generate(&generate, &report, &err) != SLC_OK) {
        return console_error(&err);
    }
    console_clear_live();
    /* If the tensor is written to standard output, no report is printed. */
    bool to_stdout = strcmp(generate.output, "-") == 0;
    if (!args.build.quiet && !to_stdout) {
        print_report(&args, &generate, &report);
    }
    console_note_lost(false, report.dims_lost, generate.order, generate.dims, "");
    forecast_compare(&ahead, args.build.quiet || to_stdout, to_stdout ? NULL : generate.output);
    return 0;
}

const struct command command_generate = {
    .name = "generate",
    .summary = "generate a random tensor of any size, as a store or .tns text",
    .example = "sluice generate big.slc --dims 100000x50000x2000 --nnz 20000000 --dist zipf:1.1",
    .operands = "OUT",
    .operands_min = 1,
    .operands_max = 1,
    .options = options,
    .notes = "OUT is a store if its name ends in .slc, standard output if it is -, and .tns text "
             "otherwise.\nWith uniform, best and worst, coordinates are distinct, so the tensor "
             "has exactly N nonzeros.",
    .run = run,
};
