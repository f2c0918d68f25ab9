/* sluice bench stream: measures the bandwidth of each cache and of memory. The accesses are
 * sequential reads, copies and triads (McCalpin's STREAM), and gathers of rows in random order, the
 * access pattern of an MTTKRP. The other benchmarks use these rates as ceilings. ceiling.h defines
 * the size of the working set of each level. */
#include "base/memory/limits.h"
#include "base/thread/team.h"
#include "base/topology/placement.h"
#include "tools/bench/bench.h"
#include "tools/bench/measure/run.h"
#include "tools/bench/roofline/ceiling.h"
#include "tools/session/common_options.h"
#include "tools/session/session.h"

#include <string.h>

struct arguments {
    uint64_t threads;
    uint64_t row_bytes;
    uint64_t memory_set;
    const char *isa;
    const char *pin;
    struct bench_options bench;
};

static const char *const isa_choices[] = {"all",    "best", "portable", "avx2",
                                          "avx512", "neon", NULL};

static const struct option options[] = {
    OPTION_ROW_THREADS(arguments, threads),
    SESSION_OPTION_ROW_PIN(arguments, pin),
    {"row-bytes", OPTION_U64, offsetof(struct arguments, row_bytes), .value = "N",
     .fallback = "128", .minimum = 64, .maximum = SLC_MAX_RANK * 8,
     .help =
         "bytes of a gathered row, a multiple of 64; a factor row of rank 16 in f64 has 128 bytes"},
    {"isa", OPTION_CHOICE, offsetof(struct arguments, isa), .value = "SET", .fallback = "all",
     .choices = isa_choices, .help = "instruction set: all, best, portable, avx2, avx512 or neon"},
    BENCH_OPTION_ROW_MEMORY_SET(arguments, memory_set),
    BENCH_OPTION_ROWS(arguments, "5"),
    {.name = NULL}};

static const struct bench_column columns[] = {{"level", "level", 0, 0},
                                              {"set_bytes", "KiB", 1.0 / 1024, 0},
                                              {"threads", "threads", 0, 0},
                                              {"instruction_set", "set", 0, 0},
                                              {"read_gb_per_s", "read GB/s", 1, 1},
                                              {"copy_gb_per_s", "copy GB/s", 1, 1},
                                              {"triad_gb_per_s", "triad GB/s", 1, 1},
                                              {"gather_gb_per_s", "gather GB/s", 1, 1},
                                              {NULL, NULL, 0, 0}};

static const struct bench_table tables[] = {{"rows", columns, false}, {NULL, NULL, false}};

/* Adds a row with the rates of read, copy, triad and gather on one working set. */
static enum slc_status measure_row(const struct arguments *args,
                                   unsigned level,
                                   unsigned threads,
                                   const struct bench_bandwidth_set *loops,
                                   json_t *rows,
                                   struct slc_error *err)
{
    static const char *const keys[BENCH_ACCESSES] = {"read_gb_per_s", "copy_gb_per_s",
                                                     "triad_gb_per_s", "gather_gb_per_s"};
    struct bench_traffic traffic = {.set_bytes =
                                        bench_level_bytes(level, threads, args->memory_set),
                                    .row_bytes = args->row_bytes,
                                    .threads = threads,
                                    .loops = loops};
    struct slc_placement placement;
    enum slc_pin pin = SLC_PIN_AUTO;
    enum slc_status status = SLC_OK;

    if (traffic.set_bytes == 0) {
        return SLC_OK;
    }
    /* This cannot fail, because --pin only accepts valid names. */
    (void)slc_pin_parse(args->pin, &pin);
    slc_placement_choose(&placement, pin, threads);
    slc_placement_enter(&placement);
    json_t *row = bench_add_row(rows);
    slc_json_set_text(row, "level", bench_level_name(level));
    slc_json_set_count(row, "set_bytes", traffic.set_bytes);
    slc_json_set_count(row, "threads", threads);
    slc_json_set_text(row, "instruction_set", loops->name);
    for (unsigned access = 0; access < BENCH_ACCESSES && status == SLC_OK; access++) {
        struct bench_rate rate = {0};

        traffic.access = (enum bench_access)access;
        status = bench_traffic_measure(&traffic, (unsigned)args->bench.warm_up,
                                       (unsigned)args->bench.repeats, &rate, err);
        bench_set_real(row, keys[access], rate.median * 1e-9);
    }
    slc_placement_leave();
    return status;
}

/* Lists the instruction sets that --isa names. */
static enum slc_status choose_sets(const char *isa,
                                   const struct bench_bandwidth_set **sets,
                                   unsigned *count,
                                   struct slc_error *err)
{
    const unsigned available = bench_bandwidth_sets(sets);

    *count = strcmp(isa, "all") == 0 ? available : 1;
    if (strcmp(isa, "all") == 0 || strcmp(isa, "best") == 0) {
        return SLC_OK;
    }
    if (bench_bandwidth_set(isa) != NULL) {
        sets[0] = bench_bandwidth_set(isa);
        return SLC_OK;
    }
    return slc_fail(
        err, SLC_ERR_USAGE,
        "--isa %s: this machine does not support this instruction set; its best one is %s", isa,
        sets[0]->name);
}

static enum slc_status
measure(void *state, const char *operand, json_t *record, struct slc_error *err)
{
    const struct arguments *args = state;
    const struct bench_bandwidth_set *sets[BENCH_BANDWIDTH_SETS];
    const unsigned all = args->threads > 0 ? (unsigned)args->threads : slc_team_default_workers();
    json_t *rows = json_array();
    unsigned set_count;

    (void)operand;
    slc_json_set(record, "rows", rows);
    SLC_TRY(choose_sets(args->isa, sets, &set_count, err));
    if (args->row_bytes % 64 != 0) {
        return slc_fail(err, SLC_ERR_USAGE, "--row-bytes %llu is not a multiple of 64",
                        (unsigned long long)args->row_bytes);
    }
    slc_json_set_count(record, "row_bytes", args->row_bytes);
    for (unsigned level = 1; level <= SLC_CACHE_LEVELS + 1; level++) {
        for (unsigned threads = 1; threads <= all; threads += threads == all ? 1 : all - 1) {
            for (unsigned s = 0; s < set_count; s++) {
                SLC_TRY(measure_row(args, level, threads, sets[s], rows, err));
            }
        }
    }
    return SLC_OK;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct arguments args = {.threads = 0};

    return bench_run(
        command, argc, argv,
        &(struct bench_steps){&args, &args.bench, &args, NULL, measure, tables, NULL, NULL});
}

const struct command bench_stream = {
    .name = "bench stream",
    .summary = "bandwidth of caches and memory: read, copy, triad, gather",
    .example = "sluice bench stream --threads 2",
    .operands = "",
    .operands_min = 0,
    .operands_max = 0,
    .options = options,
    .notes =
        "Each level and instruction set has a row for one thread and a row for all threads. The\n"
        "rates count bytes read and bytes written, but not the reads that writes cause.",
    .run = run,
};
