/* sluice bench convert: measures each phase of a conversion. Two kinds of runs alternate. A scan
 * reads and parses the input without keeping anything (slc_convert_scan); its time is a lower bound
 * for a conversion. A conversion writes a store to a temporary folder. Then the last store is held
 * in memory, and the time of the conversion is also reported as a multiple of the time of an MTTKRP
 * of all modes, as in [Nguyen2022] section 6.5.
 *
 * The times of scan, convert and text are wall times. The other phases overlap, and their times are
 * summed over their threads, so that they do not add up to the time of the conversion; their MB/s
 * are per thread. The temporary folder is removed at the end. */
#include "tools/bench/bench.h"
#include "tools/bench/measure/run.h"
#include "tools/bench/mttkrp/mttkrp_group.h"
#include "tools/build/build_options.h"
#include "tools/progress/console.h"
#include "tools/session/common_options.h"

#include "base/error/clock.h"
#include "base/memory/memory.h"
#include "base/thread/team.h"
#include "convert/ingest/convert.h"
#include "cpu/cpu.h"

#include <stdio.h>
#include <string.h>

struct arguments {
    uint64_t rank;
    uint64_t memory;
    uint64_t threads;
    struct build_options build; /* this benchmark uses only codec, fibers and relabel */
    const char *temp_dir;
    struct bench_options bench;
};

static const struct option options[] = {
    {"rank", OPTION_U64, offsetof(struct arguments, rank), .letter = 'r', .value = "R",
     .fallback = "16", .minimum = 1, .maximum = SLC_MAX_RANK,
     .help = "columns of the factors of the MTTKRPs"},
    OPTION_ROW_MEMORY(arguments, memory),
    OPTION_ROW_THREADS(arguments, threads),
    BUILD_STORE_OPTION_ROWS(arguments),
    {"temp-dir", OPTION_STRING, offsetof(struct arguments, temp_dir), .value = "DIR",
     .help = "folder for the store, which is removed at the end; $TMPDIR or /tmp if not given"},
    BENCH_OPTION_ROWS(arguments, "3"),
    {.name = NULL}};

static const struct bench_column columns[] = {{"phase", "phase", 0, 0},
                                              {"median_ms", "ms", 1, 1},
                                              {"bytes", "bytes", 0, 0},
                                              {"mb_per_s", "MB/s", 1, 1},
                                              {NULL, NULL, 0, 0}};

static const struct bench_table tables[] = {{"rows", columns, false}, {NULL, NULL, false}};

/* Phases of the record. SCAN, WHOLE and TEXT have wall times; the other times are sums over
 * threads. */
enum phase { SCAN, WHOLE, TEXT, READ, PARSE, SCATTER, SPILL, SORT, ENCODE, WRITE, PHASES };
static const char *const phase_names[PHASES] = {"scan",    "convert", "text", "read",   "parse",
                                                "scatter", "spill",   "sort", "encode", "write"};

struct convert_bench {
    const struct arguments *args;
    char *folder; /* temporary folder, or NULL */
    char *store;  /* path of the store in `folder` */
    struct slc_convert_report report;
    struct bench_samples samples[PHASES];
    struct slc_session session;
    struct bench_mttkrp_cell (*cells)[SLC_MAX_ORDER];
};

static enum slc_status make_folder(struct convert_bench *bench, struct slc_error *err)
{
    SLC_TRY(bench_temp_folder(bench->args->temp_dir, &bench->folder, err));
    bench->store = slc_path_join(bench->folder, "x.slc");
    return slc_check_memory(bench->store != NULL, err, "for a path");
}

/* Scans and converts the input once. If `counts`, keeps the times as samples. */
static enum slc_status measure_round(struct convert_bench *bench,
                                     const struct slc_convert_options *convert,
                                     bool counts,
                                     struct slc_error *err)
{
    const struct slc_convert_report *report = &bench->report;
    uint64_t start_ns = slc_clock_ns();
    double seconds[PHASES];
    enum slc_status status = slc_convert_scan(convert, &bench->report, err);

    seconds[SCAN] = slc_seconds_since(start_ns);
    if (status == SLC_OK) {
        start_ns = slc_clock_ns();
        status = slc_convert(convert, &bench->report, err);
    }
    if (status != SLC_OK || !counts) {
        return status;
    }
    seconds[WHOLE] = slc_seconds_since(start_ns);
    seconds[TEXT] = report->text_seconds;
    seconds[READ] = report->read_seconds;
    seconds[PARSE] = report->parse_seconds;
    seconds[SCATTER] = report->scatter_seconds;
    seconds[SPILL] = report->build.spill_seconds;
    seconds[SORT] = report->build.sort_seconds;
    seconds[ENCODE] = report->build.encode_seconds;
    seconds[WRITE] = report->build.write_seconds;
    for (unsigned p = 0; p < PHASES; p++) {
        bench_samples_add(&bench->samples[p], seconds[p]);
    }
    return SLC_OK;
}

static enum slc_status
convert_rounds(struct convert_bench *bench, const char *input, struct slc_error *err)
{
    const struct arguments *args = bench->args;
    struct slc_convert_options convert = {
        .input = input,
        .output = bench->store,
        .index_base = -1,
        .memory_bytes = args->memory,
        .threads = args->threads > 0 ? (unsigned)args->threads : slc_team_default_workers(),
        .overwrite = true,
        .relabel = build_relabel(&args->build),
    };

    SLC_TRY(build_fibers(&args->build, &convert.fibers, &convert.run, err));
    if (!slc_codec_parse(args->build.codec, &convert.codec)) {
        return slc_fail(err, SLC_ERR_USAGE, "--codec %s is not supported by this library",
                        args->build.codec);
    }
    for (uint64_t i = 0; i < args->bench.warm_up + args->bench.repeats; i++) {
        SLC_TRY(measure_round(bench, &convert, i >= args->bench.warm_up, err));
    }
    return SLC_OK;
}

static double median_of(const struct convert_bench *bench, enum phase phase)
{
    return bench_samples_summary(&bench->samples[phase]).median;
}

/* Returns the number of bytes that a phase processes, 0 for a phase without such a number. */
static uint64_t phase_bytes(const struct slc_convert_report *report, enum phase phase)
{
    switch (phase) {
    case SCAN:
    case WHOLE:
    case TEXT:
    case PARSE:
        return report->text_bytes;
    case READ:
        return report->input_bytes;
    case SPILL:
        return report->build.spill_bytes;
    case WRITE:
        return report->build.summary.file_bytes;
    default:
        return 0;
    }
}

static void record_phases(const struct convert_bench *bench, json_t *record)
{
    json_t *rows = json_array();

    slc_json_set(record, "rows", rows);
    for (unsigned p = 0; p < PHASES; p++) {
        const struct bench_times times = bench_samples_summary(&bench->samples[p]);
        const uint64_t bytes = phase_bytes(&bench->report, (enum phase)p);
        json_t *row = json_object();

        (void)json_array_append_new(rows, row);
        slc_json_set_text(row, "phase", phase_names[p]);
        bench_times_to_json(row, &times);
        if (bytes > 0) {
            slc_json_set_count(row, "bytes", bytes);
            bench_set_real(row, "mb_per_s", (double)bytes / times.median * 1e-6);
        }
    }
    bench_set_real(record, "over_scan", median_of(bench, WHOLE) / median_of(bench, SCAN));
    slc_json_set_count(record, "parsers", bench->report.workers);
    slc_json_set_count(record, "budget_bytes", bench->args->memory);
    slc_json_set_count(record, "peak_memory_bytes", slc_memory_peak());
}

/* Measures an MTTKRP of every mode with the store in memory, and records the time of the conversion
 * as a multiple of the sum of these times. */
static enum slc_status
record_mttkrp(struct convert_bench *bench, json_t *record, struct slc_error *err)
{
    const struct arguments *args = bench->args;
    struct bench_mttkrp_group group = {
        .rank = (uint32_t)args->rank,
        .threads = args->threads > 0 ? (unsigned)args->threads : slc_team_default_workers(),
        .precision = SLC_F64,
        .memory_bytes = args->memory,
        .warm_up = (unsigned)args->bench.warm_up,
        .repeats = (unsigned)args->bench.repeats,
        .variant_count = 1,
        .variants = {{.instruction_set = slc_cpu_instruction_set(), .conflict = SLC_CONFLICT_AUTO}},
    };
    double all_modes = 0;
    enum slc_status status = session_open(&bench->session, bench->store, args->memory, err);

    if (status == SLC_OK) {
        bench_set_tensor(record, &bench->session.store);
        group.mode_end = bench->session.store.manifest.order;
        bench->cells = slc_calloc(1, sizeof *bench->cells);
        status = bench->cells != NULL
                     ? bench_mttkrp_measure(&bench->session, &group, bench->cells, err)
                     : slc_fail(err, SLC_ERR_MEMORY, "no memory for samples");
    }
    if (status == SLC_ERR_BUDGET) {
        /* The store may not fit in the memory that sufficed to convert it. Then the record has no
         * MTTKRPs. */
        console_note("no MTTKRPs: %s", err->message);
        slc_error_clear(err);
        return SLC_OK;
    }
    SLC_TRY(status);
    for (unsigned n = 0; n < group.mode_end; n++) {
        all_modes += bench_samples_summary(&bench->cells[0][n].samples).median;
    }
    bench_set_real(record, "all_modes_ms", all_modes * 1e3);
    bench_set_real(record, "all_modes_iterations", median_of(bench, WHOLE) / all_modes);
    return SLC_OK;
}

static enum slc_status
measure(void *state, const char *input, json_t *record, struct slc_error *err)
{
    struct convert_bench *bench = state;

    if (strcmp(input, "-") == 0) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "bench convert reads its input several times, which standard input does "
                        "not allow: name a file");
    }
    SLC_TRY(make_folder(bench, err));
    SLC_TRY(convert_rounds(bench, input, err));
    record_phases(bench, record);
    return record_mttkrp(bench, record, err);
}

static double real_of(const json_t *record, const char *name)
{
    return json_number_value(json_object_get(record, name));
}

static void print_more(const json_t *record)
{
    printf("\n  convert / scan %.2f\n", real_of(record, "over_scan"));
    if (json_object_get(record, "all_modes_ms") != NULL) {
        printf("  %.1f MTTKRPs of all modes (%.3f ms each)\n",
               real_of(record, "all_modes_iterations"), real_of(record, "all_modes_ms"));
    }
    printf("  peak memory of the conversion: %.1f MiB, budget %.1f MiB\n",
           real_of(record, "peak_memory_bytes") / 0x1p20, real_of(record, "budget_bytes") / 0x1p20);
}

static void close_all(void *state)
{
    struct convert_bench *bench = state;

    session_close(&bench->session);
    slc_free(bench->cells);
    bench_temp_folder_remove(bench->folder);
    slc_free(bench->store);
}

static int run(const struct command *command, int argc, char **argv)
{
    struct arguments args = {.rank = 0};
    struct convert_bench bench = {.args = &args, .session = {.stream = NULL}};

    return bench_run(command, argc, argv,
                     &(struct bench_steps){&args, &args.bench, &bench, NULL, measure, tables,
                                           print_more, close_all});
}

const struct command bench_convert = {
    .name = "bench convert",
    .summary = "time of each phase of a conversion, compared with only reading and parsing",
    .example = "sluice bench convert flights-4d.tns --memory 1GiB",
    .operands = "IN",
    .operands_min = 1,
    .operands_max = 1,
    .options = options,
    .notes =
        "The times of scan, convert and text (until all text is parsed) are wall times. The other\n"
        "phases overlap, and their times are summed over their threads. sluice generate makes an\n"
        "input of any size.",
    .run = run,
};
