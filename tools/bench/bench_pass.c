/* sluice bench pass: measures the cost of streaming in an MTTKRP. For each rank and mode, it
 * measures the wall time of five passes:
 *
 *   raw      plain direct reads of the file: the time of the drive alone
 *   read     the same reads, and a load of every cache line: the drive, if a program uses the data
 *   decode   decoding of every nonzero from memory: the decoder alone
 *   memory   the MTTKRP, with all blocks in memory
 *   drive    the same MTTKRP, with all blocks read from the drive
 *
 * The five passes alternate. With perfect overlap, drive would take max(raw, memory). over_bound is
 * drive / max(raw, memory). Loading the data may slow the drive, so over_read is
 * drive / max(read, memory). If the kernel is cheap, the slower of drive and decoder is the bound:
 * scan_share is max(raw, decode) / drive, and read_share is max(read, decode) / drive. */
#include "base/error/clock.h"
#include "engine/stream/mttkrp.h"
#include "tools/bench/bench.h"
#include "tools/bench/measure/factors.h"
#include "tools/bench/measure/raw_read.h"
#include "tools/bench/measure/resident.h"
#include "tools/bench/measure/run.h"
#include "tools/session/common_options.h"

#include <math.h>
#include <string.h>

struct arguments {
    struct option_counts ranks;
    uint64_t mode;
    uint64_t memory;
    uint64_t threads;
    const char *io;
    const char *precision;
    struct bench_options bench;
};

static const struct option options[] = {
    BENCH_OPTION_ROW_RANKS(
        arguments,
        ranks,
        "columns of the factors; several numbers are measured one after the other"),
    BENCH_OPTION_ROW_MODE(arguments, mode),
    OPTION_ROW_MEMORY(arguments, memory),
    OPTION_ROW_THREADS(arguments, threads),
    SESSION_OPTION_ROW_IO(arguments, io),
    SESSION_OPTION_ROW_PRECISION(arguments, precision),
    BENCH_OPTION_ROWS(arguments, "5"),
    {.name = NULL}};

static const struct bench_column columns[] = {{"rank", "rank", 0, 0},
                                              {"mode", "mode", 0, 0},
                                              {"raw_ms", "raw ms", 1, 1},
                                              {"read_ms", "read ms", 1, 1},
                                              {"decode_ms", "decode ms", 1, 1},
                                              {"memory_ms", "memory ms", 1, 1},
                                              {"median_ms", "drive ms", 1, 1},
                                              {"over_bound", "over bound", 1, 3},
                                              {"over_read", "over read", 1, 3},
                                              {"scan_share", "of scan", 1, 3},
                                              {"read_share", "of read", 1, 3},
                                              {"wait_share", "wait %", 100, 1},
                                              {NULL, NULL, 0, 0}};

static const struct bench_table tables[] = {{"rows", columns, false}, {NULL, NULL, false}};

enum part { PART_RAW, PART_READ, PART_DECODE, PART_MEMORY, PART_DRIVE };
enum { PARTS = 5 };
/* A stream that keeps every block in memory reads each block only once, so few slots suffice. */
enum { SLOTS_IN_MEMORY = 2 };

struct pass_bench {
    const struct arguments *args;
    struct slc_session memory; /* session whose stream keeps every block */
    struct slc_session drive;  /* session whose stream keeps no block */
    struct bench_raw *raw;
    struct bench_factors factors;
    struct bench_samples samples[PARTS];
    double wait_seconds; /* time without data in the passes from the drive, summed over workers */
};

/* Makes the plan request for an MTTKRP of `mode`, whose stream keeps every block in memory if
 * `cache`, otherwise no block. */
static enum slc_status plan_request(const struct pass_bench *bench,
                                    uint32_t rank,
                                    unsigned mode,
                                    bool cache,
                                    struct slc_plan_request *request,
                                    struct slc_error *err)
{
    const struct arguments *given = bench->args;

    *request = (struct slc_plan_request){
        .operation = SLC_OP_MTTKRP,
        .mode = mode,
        .rank = rank,
        .precision = strcmp(given->precision, "f32") == 0 ? SLC_F32 : SLC_F64,
        .threads = (unsigned)given->threads,
        .memory_bytes = given->memory,
        .cache = cache,
    };
    return slc_io_parse(given->io, &request->io)
               ? SLC_OK
               : slc_fail(err, SLC_ERR_USAGE, "--io %s: unknown I/O method", given->io);
}

/* Opens the two streams, the raw file and the factors for one rank and mode. */
static enum slc_status
open_parts(struct pass_bench *bench, uint32_t rank, unsigned mode, struct slc_error *err)
{
    const struct slc_plan *plan = &bench->drive.plan;
    struct slc_plan_request request, beside;
    enum slc_status status = plan_request(bench, rank, mode, false, &beside, err);

    request = beside;
    request.cache = true;
    request.slots = SLOTS_IN_MEMORY;
    bench->memory.layouts = slc_layouts_one(bench->memory.store.reader);
    bench->drive.layouts = slc_layouts_one(bench->drive.store.reader);
    SLC_TRY(status);
    SLC_TRY(bench_resident_plan(&bench->memory.layouts, &request, &beside, &bench->memory.plan,
                                &bench->drive.plan, err));
    SLC_TRY(bench_resident_load(&bench->memory, err));
    SLC_TRY(slc_session_start(&bench->drive, err));
    SLC_TRY(bench_raw_open(slc_reader_path(bench->drive.store.reader), plan->slot_bytes,
                           plan->slot_count, &bench->raw, err));
    return bench_factors_create(&bench->factors, &bench->drive.store.manifest, request.precision,
                                rank, plan->threads, err);
}

static void close_parts(struct pass_bench *bench)
{
    bench_factors_destroy(&bench->factors);
    bench_raw_close(bench->raw);
    bench->raw = NULL;
    slc_session_stop(&bench->memory);
    slc_session_stop(&bench->drive);
    memset(bench->samples, 0, sizeof bench->samples);
    bench->wait_seconds = 0;
}

static enum slc_status mttkrp_pass(const struct pass_bench *bench,
                                   struct slc_session *session,
                                   unsigned mode,
                                   struct slc_error *err)
{
    struct slc_matrix output;
    struct slc_mttkrp_job job =
        bench_factors_job(&bench->factors, &session->store.manifest, mode, &output);

    job.workers = session->plan.threads;
    job.conflict = session->plan.choices[mode].chosen;
    return slc_mttkrp_stream(session->stream, session->plan.mode_layout[mode], session->backend,
                             &job, NULL, NULL, NULL, err);
}

static enum slc_status
run_part(struct pass_bench *bench, enum part part, unsigned mode, struct slc_error *err)
{
    switch (part) {
    case PART_RAW:
        return bench_raw_sweep(bench->raw, false, err);
    case PART_READ:
        return bench_raw_sweep(bench->raw, true, err);
    case PART_DECODE:
        return bench_decode_pass(bench->memory.stream, err);
    case PART_MEMORY:
        return mttkrp_pass(bench, &bench->memory, mode, err);
    case PART_DRIVE:
        break;
    }
    return mttkrp_pass(bench, &bench->drive, mode, err);
}

/* Measures each of the five passes once. */
static enum slc_status
measure_round(struct pass_bench *bench, unsigned mode, bool counts, struct slc_error *err)
{
    for (unsigned part = 0; part < PARTS; part++) {
        struct slc_stream_stats before, after;

        slc_stream_stats(bench->drive.stream, &before);
        uint64_t start_ns = slc_clock_ns();
        SLC_TRY(run_part(bench, (enum part)part, mode, err));
        if (counts) {
            bench_samples_add(&bench->samples[part], slc_seconds_since(start_ns));
            slc_stream_stats(bench->drive.stream, &after);
            bench->wait_seconds += after.wait_seconds - before.wait_seconds;
        }
    }
    return SLC_OK;
}

static void add_row(const struct pass_bench *bench, uint32_t rank, unsigned mode, json_t *rows)
{
    const struct slc_plan *plan = &bench->drive.plan;
    struct bench_times times[PARTS];
    double seconds[PARTS];
    json_t *row = json_object();

    for (unsigned part = 0; part < PARTS; part++) {
        times[part] = bench_samples_summary(&bench->samples[part]);
        seconds[part] = times[part].median;
    }
    const double raw = seconds[PART_RAW], read = seconds[PART_READ], drive = seconds[PART_DRIVE];
    const double decode = seconds[PART_DECODE], memory = seconds[PART_MEMORY];

    (void)json_array_append_new(rows, row);
    slc_json_set_count(row, "rank", rank);
    slc_json_set_count(row, "mode", mode + 1);
    slc_json_set_count(row, "threads", plan->threads);
    slc_json_set_count(row, "read_bytes", plan->iteration_read_bytes);
    bench_set_real(row, "raw_ms", raw * 1e3);
    bench_set_real(row, "read_ms", read * 1e3);
    bench_set_real(row, "decode_ms", decode * 1e3);
    bench_set_real(row, "memory_ms", memory * 1e3);
    bench_times_to_json(row, &times[PART_DRIVE]);
    bench_set_real(row, "over_bound", drive / fmax(raw, memory));
    bench_set_real(row, "over_read", drive / fmax(read, memory));
    bench_set_real(row, "scan_share", fmax(raw, decode) / drive);
    bench_set_real(row, "read_share", fmax(read, decode) / drive);
    bench_set_real(row, "wait_share",
                   bench->wait_seconds / (drive * times[PART_DRIVE].samples * plan->threads));
}

/* Measures one rank and mode, and adds a row. */
static enum slc_status measure_row(
    struct pass_bench *bench, uint32_t rank, unsigned mode, json_t *rows, struct slc_error *err)
{
    const unsigned warm_up = (unsigned)bench->args->bench.warm_up;
    const unsigned repeats = (unsigned)bench->args->bench.repeats;
    enum slc_status status = open_parts(bench, rank, mode, err);

    for (unsigned i = 0; i < warm_up + repeats && status == SLC_OK; i++) {
        status = measure_round(bench, mode, i >= warm_up, err);
    }
    if (status == SLC_OK) {
        add_row(bench, rank, mode, rows);
    }
    close_parts(bench);
    return status;
}

static enum slc_status measure(void *state, const char *path, json_t *record, struct slc_error *err)
{
    struct pass_bench *bench = state;
    const struct arguments *args = bench->args;
    const struct slc_manifest *manifest = &bench->drive.store.manifest;
    json_t *rows = json_array();

    slc_json_set(record, "rows", rows);
    SLC_TRY(bench_open_store(&bench->drive, path, args->memory, args->mode, err));
    SLC_TRY(session_open(&bench->memory, path, args->memory, err));
    bench_set_tensor(record, &bench->drive.store);
    for (unsigned r = 0; r < args->ranks.count; r++) {
        for (unsigned n = 0; n < manifest->order; n++) {
            if (args->mode == 0 || args->mode == n + 1) {
                SLC_TRY(measure_row(bench, (uint32_t)args->ranks.number[r], n, rows, err));
            }
        }
    }
    return SLC_OK;
}

static void close_stores(void *state)
{
    struct pass_bench *bench = state;

    session_close(&bench->memory);
    session_close(&bench->drive);
}

static int run(const struct command *command, int argc, char **argv)
{
    struct arguments args = {.mode = 0};
    struct pass_bench bench = {
        .args = &args, .memory = {.stream = NULL}, .drive = {.stream = NULL}};

    return bench_run(command, argc, argv,
                     &(struct bench_steps){&args, &args.bench, &bench, NULL, measure, tables, NULL,
                                           close_stores});
}

const struct command bench_pass = {
    .name = "bench pass",
    .summary = "an MTTKRP from the drive, compared with the drive, the decoder and memory alone",
    .example = "sluice bench pass flights-4d.slc --rank 1,16",
    .operands = "X.slc",
    .operands_min = 1,
    .operands_max = 1,
    .options = options,
    .notes = "  raw         plain reads of the drive\n"
             "  read        raw, with a load from every cache line\n"
             "  decode      decoding from memory\n"
             "  memory      the MTTKRP from memory\n"
             "  drive       the MTTKRP from the drive\n"
             "  over bound  drive / max(raw, memory)\n"
             "  over read   drive / max(read, memory)\n"
             "  of scan     max(raw, decode) / drive\n"
             "  of read     max(read, decode) / drive\n"
             "  wait        share of the threads' time spent waiting for data in the MTTKRP from "
             "the drive",
    .run = run,
};
