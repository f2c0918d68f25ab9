/* sluice bench io: measures how fast a store can be read without computing. For each I/O method, a
 * scan reads and verifies every block without decoding it. The record has the rate of the scan and
 * its processor time per gigabyte. The rate is compared with raw reads of the same file, which have
 * the same block size and number of reads in flight. Raw reads are measured with and without a load
 * of every cache line that they read.
 *
 * All methods and the raw reads alternate, so that a disturbance affects all of them. */
#include "base/error/clock.h"
#include "tools/bench/bench.h"
#include "tools/bench/measure/raw_read.h"
#include "tools/bench/measure/resident.h"
#include "tools/bench/measure/run.h"
#include "tools/session/common_options.h"
#include "tools/session/session.h"

#include <string.h>
#include <sys/resource.h>

struct arguments {
    uint64_t threads;
    uint64_t slots;
    const char *io;
    struct bench_options bench;
};

static const char *const io_choices[] = {"all", "uring", "pread", "mmap", NULL};

static const struct option options[] = {
    OPTION_ROW_THREADS(arguments, threads),
    {"io", OPTION_CHOICE, offsetof(struct arguments, io), .value = "METHOD", .fallback = "all",
     .choices = io_choices, .help = "I/O method: uring, pread, mmap, or all"},
    {"slots", OPTION_U64, offsetof(struct arguments, slots), .value = "N", .fallback = "0",
     .maximum = 256,
     .help = "maximum number of reads in flight; 0 means the number that a decomposition uses"},
    BENCH_OPTION_ROWS(arguments, "5"),
    {.name = NULL}};

static const struct bench_column columns[] = {{"method", "method", 0, 0},
                                              {"reads_in_flight", "in flight", 0, 0},
                                              {"block_bytes", "KiB each", 1.0 / 1024, 0},
                                              {"median_ms", "ms", 1, 1},
                                              {"gb_per_s", "GB/s", 1, 2},
                                              {"raw_share", "% of raw", 100, 1},
                                              {"read_share", "% of read", 100, 1},
                                              {"cpu_s_per_gb", "CPU s/GB", 1, 3},
                                              {"direct", "direct", 0, 0},
                                              {"note", "note", 0, 0},
                                              {NULL, NULL, 0, 0}};

static const struct bench_table tables[] = {{"rows", columns, false}, {NULL, NULL, false}};

/* A measured method of reading: an I/O method of the library, or raw reads (kind SLC_IO_AUTO). */
struct way {
    enum slc_io_kind kind;
    bool loads_lines; /* for raw reads: load every cache line */
    struct slc_session session;
    struct bench_samples samples;
    double cpu_seconds; /* sum over all samples */
};

enum { RAW_WAYS = 2, WAYS = RAW_WAYS + 3 };

struct io_bench {
    const struct arguments *args;
    struct bench_raw *raw;
    unsigned way_count;
    struct way ways[WAYS]; /* the first RAW_WAYS are raw reads */
};

/* Returns the user and system time of all threads in seconds. */
static double cpu_seconds(void)
{
    struct rusage usage = {0};

    (void)getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

/* Opens the store for one method. If the system does not support the method, adds a row with a
 * note. */
static enum slc_status open_way(struct io_bench *bench,
                                const char *path,
                                enum slc_io_kind kind,
                                json_t *rows,
                                struct slc_error *err)
{
    const struct arguments *args = bench->args;
    struct way *way = &bench->ways[bench->way_count];
    struct slc_error refused = SLC_ERROR_INIT;

    *way = (struct way){.kind = kind, .session = {.stream = NULL}};
    bench->way_count++;
    enum slc_status status = session_open(&way->session, path, UINT64_MAX, err);
    SLC_THEN(status, bench_scan_start(&way->session, kind, (unsigned)args->threads,
                                      (unsigned)args->slots, &refused));
    if (status == SLC_ERR_UNSUPPORTED) {
        json_t *row = json_object();

        (void)json_array_append_new(rows, row);
        slc_json_set_text(row, "method", slc_io_name(kind));
        slc_json_set_text(row, "note", refused.message);
        session_close(&way->session);
        bench->way_count--;
        return SLC_OK;
    }
    if (status != SLC_OK && err->status == SLC_OK) {
        *err = refused;
    }
    return status;
}

/* Opens the store for every method of --io, and opens the file for raw reads, with the block size
 * and number of reads in flight of the first method. */
static enum slc_status
open_all(struct io_bench *bench, const char *path, json_t *rows, struct slc_error *err)
{
    bench->ways[0] = (struct way){.kind = SLC_IO_AUTO, .session = {.stream = NULL}};
    bench->ways[1] =
        (struct way){.kind = SLC_IO_AUTO, .loads_lines = true, .session = {.stream = NULL}};
    bench->way_count = RAW_WAYS;
    for (enum slc_io_kind kind = SLC_IO_URING; kind <= SLC_IO_MMAP; kind++) {
        if (strcmp(bench->args->io, "all") == 0 ||
            strcmp(bench->args->io, slc_io_name(kind)) == 0) {
            SLC_TRY(open_way(bench, path, kind, rows, err));
        }
    }
    if (bench->way_count == RAW_WAYS) {
        return slc_fail(err, SLC_ERR_UNSUPPORTED, "--io %s is not supported on this system",
                        bench->args->io);
    }
    const struct slc_plan *plan = &bench->ways[RAW_WAYS].session.plan;
    return bench_raw_open(slc_reader_path(bench->ways[RAW_WAYS].session.store.reader),
                          plan->slot_bytes, plan->slot_count, &bench->raw, err);
}

/* Reads the file once with one method. If `counts`, keeps the time as a sample. */
static enum slc_status
measure_once(struct io_bench *bench, struct way *way, bool counts, struct slc_error *err)
{
    const double cpu_before = cpu_seconds();
    const uint64_t start_ns = slc_clock_ns();

    SLC_TRY(way->kind == SLC_IO_AUTO ? bench_raw_sweep(bench->raw, way->loads_lines, err)
                                     : bench_scan_pass(way->session.stream, err));
    if (counts) {
        bench_samples_add(&way->samples, slc_seconds_since(start_ns));
        way->cpu_seconds += cpu_seconds() - cpu_before;
    }
    return SLC_OK;
}

static void add_row(const struct io_bench *bench, const struct way *way, json_t *rows)
{
    const struct bench_times times = bench_samples_summary(&way->samples);
    const struct bench_times raw = bench_samples_summary(&bench->ways[0].samples);
    const struct bench_times read = bench_samples_summary(&bench->ways[1].samples);
    const double file_bytes = (double)bench_raw_file_bytes(bench->raw);
    const struct slc_plan *plan = &bench->ways[RAW_WAYS].session.plan;
    const char *raw_name = way->loads_lines ? "read" : "raw";
    double bytes = file_bytes;
    bool direct = bench_raw_direct(bench->raw);
    json_t *row = bench_add_row(rows);

    slc_json_set_text(row, "method", way->kind == SLC_IO_AUTO ? raw_name : slc_io_name(way->kind));
    if (way->kind != SLC_IO_AUTO) {
        struct slc_stream_stats stats;

        slc_stream_stats(way->session.stream, &stats);
        plan = &way->session.plan;
        bytes = (double)plan->iteration_bytes;
        direct = stats.direct;
        slc_json_set_text(row, "note", stats.note);
    }
    slc_json_set_count(row, "reads_in_flight", plan->slot_count);
    slc_json_set_count(row, "block_bytes", plan->slot_bytes);
    bench_times_to_json(row, &times);
    bench_set_real(row, "gb_per_s", bytes / times.median * 1e-9);
    bench_set_real(row, "raw_share", bytes / file_bytes * raw.median / times.median);
    bench_set_real(row, "read_share", bytes / file_bytes * read.median / times.median);
    bench_set_real(row, "cpu_s_per_gb", way->cpu_seconds / times.samples / bytes * 1e9);
    slc_json_set(row, "direct", json_boolean(direct));
}

static enum slc_status measure(void *state, const char *path, json_t *record, struct slc_error *err)
{
    struct io_bench *bench = state;
    const unsigned warm_up = (unsigned)bench->args->bench.warm_up;
    const unsigned repeats = (unsigned)bench->args->bench.repeats;
    json_t *rows = json_array();

    slc_json_set(record, "rows", rows);
    SLC_TRY(open_all(bench, path, rows, err));
    bench_set_tensor(record, &bench->ways[RAW_WAYS].session.store);
    for (unsigned i = 0; i < warm_up + repeats; i++) {
        for (unsigned w = 0; w < bench->way_count; w++) {
            SLC_TRY(measure_once(bench, &bench->ways[w], i >= warm_up, err));
        }
    }
    for (unsigned w = 0; w < bench->way_count; w++) {
        add_row(bench, &bench->ways[w], rows);
    }
    return SLC_OK;
}

static void close_all(void *state)
{
    struct io_bench *bench = state;

    bench_raw_close(bench->raw);
    for (unsigned w = 0; w < bench->way_count; w++) {
        session_close(&bench->ways[w].session);
    }
}

static int run(const struct command *command, int argc, char **argv)
{
    struct arguments args = {.threads = 0};
    struct io_bench bench = {.args = &args};

    return bench_run(
        command, argc, argv,
        &(struct bench_steps){&args, &args.bench, &bench, NULL, measure, tables, NULL, close_all});
}

const struct command bench_io = {
    .name = "bench io",
    .summary = "scan rate of a store per I/O method, compared with raw reads of the same file",
    .example = "sluice bench io flights-4d.slc",
    .operands = "X.slc",
    .operands_min = 1,
    .operands_max = 1,
    .options = options,
    .notes =
        "A scan reads every block and verifies its checksum, but decodes nothing. Raw reads "
        "bypass\n"
        "the page cache and have the same size and number of reads in flight. read is raw, but\n"
        "also loads every cache line of the data.",
    .run = run,
};
