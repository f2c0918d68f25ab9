/* sluice bench cpd: measures each phase of a CP-ALS iteration.
 *
 * The decomposition runs as in `sluice cpd`, but stops only after the given number of iterations.
 * After each iteration, the benchmark reads the clocks of the tile stream, which sum over threads,
 * and the clocks of the solver, which measure the calling thread. It splits the time since the
 * previous iteration into phases that add up to the time of the iteration:
 *
 *   read wait  threads without data              } three sums over threads,
 *   decode     checksums, unpacking              } each divided by the
 *   multiply   kernels, adding to the output     } number of threads
 *   uneven     rest of the wall time of passes: awaiting turns, starting threads, the end of a pass
 *   outputs    MTTKRP time outside passes: clearing outputs, adding up private copies
 *   update     dense algebra over the rows of a factor: Gram matrix, solving, norms, inner product
 *   fit        computation of the fit from R x R matrices
 *   other      the remaining time
 *
 * On a GPU, the clock of the device splits the time of MTTKRPs into three phases. With several
 * GPUs, each figure is the mean over the GPUs:
 *
 *   kernels       while at least one kernel computes
 *   block copies  while blocks are copied and no kernel computes
 *   idle          otherwise: reading, launching, waiting for other devices and the CPU
 *
 * An MTTKRP from replicas makes no pass, so all of its time counts as phase multiply. The replicas
 * are built between two iterations. The time to build them has a row of its own, without a share of
 * the iteration.
 *
 * The dense share is the share of the phases update and fit in the time of an iteration.
 * cpd_ceilings.h defines the ceilings. Phases that are pure loss, or very short, have no
 * ceiling. */
#include "tools/bench/bench.h"
#include "tools/bench/measure/run.h"
#include "tools/bench/roofline/cpd_ceilings.h"
#include "tools/session/session.h"

#include "engine/solve/cp.h"
#include "report/json_plan.h"

#include <math.h>
#include <stdio.h>

struct arguments {
    struct session_options session;
    struct option_counts threads;
    uint64_t rank;
    struct bench_options bench;
};

static const struct option options[] = {
    {"rank", OPTION_U64, offsetof(struct arguments, rank), .letter = 'r', .required = true,
     .value = "R", .minimum = 1, .maximum = SLC_MAX_RANK, .help = "number of components"},
    BENCH_OPTION_ROW_THREADS(arguments, threads),
    SESSION_OPTION_ROWS_BUT_THREADS(arguments),
    SESSION_OPTION_ROW_IO_LIMIT(arguments),
    SESSION_OPTION_ROW_COPIES(arguments),
    SESSION_OPTION_ROWS_DEVICE(arguments),
    SESSION_OPTION_ROWS_DEVICES(arguments),
    BENCH_OPTION_ROWS(arguments, "5"),
    {.name = NULL}};

static const struct bench_column run_columns[] = {
    {"threads", "threads", 0, 0},
    {"iteration_median_ms", "iteration ms", 1, 3},
    {"iterations_per_s", "iterations/s", 1, 3},
    {"over_first", "over first", 1, 2},
    {"dense_share", "dense %", 100, 1},
    {"read_bytes_per_iteration", "MiB read", 1.0 / 1048576, 1},
    {"copied_bytes_per_iteration", "MiB copied", 1.0 / 1048576, 1},
    {NULL, NULL, 0, 0}};

static const struct bench_column phase_columns[] = {
    {"threads", "threads", 0, 0}, {"phase", "phase", 0, 0},           {"median_ms", "ms", 1, 3},
    {"share", "%", 100, 1},       {"ceiling_ms", "ceiling ms", 1, 3}, {NULL, NULL, 0, 0}};

static const struct bench_table tables[] = {
    {"rows", phase_columns, false}, {"runs", run_columns, false}, {NULL, NULL, false}};

enum phase {
    PHASE_WAIT,
    PHASE_DECODE,
    PHASE_MULTIPLY,
    PHASE_UNEVEN,
    PHASE_OUTPUTS,
    PHASE_KERNELS,
    PHASE_COPIES,
    PHASE_IDLE,
    PHASE_UPDATE,
    PHASE_FIT,
    PHASE_OTHER,
    PHASES
};

static const char *const phase_names[PHASES] = {"read wait", "decode",  "multiply",     "uneven",
                                                "outputs",   "kernels", "block copies", "idle",
                                                "update",    "fit",     "other"};

/* Returns true if iterations have the phase: on a GPU if `device`, otherwise on the CPU. */
static bool has_phase(bool device, enum phase phase)
{
    return phase >= PHASE_UPDATE || device == (phase >= PHASE_KERNELS);
}

/* State of the decomposition's callback. */
struct cpd_bench {
    const struct arguments *args;
    struct slc_session session;
    struct slc_cp_result result;
    struct slc_stream_stats stats;  /* clocks at the end of the previous iteration */
    struct slc_cp_times times;      /* clocks of the solver at the same time */
    struct slc_device_stats device; /* clocks of the GPU at the same time */
    uint64_t bytes_copied;          /* bytes copied to the GPU in the measured iterations */
    json_t *phase_rows;
    uint64_t bytes_read;             /* bytes read in the measured iterations */
    bool from_copies;                /* true once MTTKRPs are computed from replicas */
    unsigned iterations_from_copies; /* number of measured iterations that used replicas */
    struct slc_error copies_fault;   /* why there are no replicas */
    struct bench_samples iteration;
    struct bench_samples phases[PHASES];
};

/* Splits `mttkrp` seconds, in which an iteration computed MTTKRPs from the tile stream, into
 * phases. */
static void split_streamed(const struct cpd_bench *bench,
                           const struct slc_stream_stats *stats,
                           double mttkrp,
                           double phases[PHASES])
{
    const double threads = bench->session.plan.threads;
    const double pass = stats->pass_seconds - bench->stats.pass_seconds;

    phases[PHASE_WAIT] = (stats->wait_seconds - bench->stats.wait_seconds) / threads;
    phases[PHASE_DECODE] = (stats->decode_seconds - bench->stats.decode_seconds) / threads;
    phases[PHASE_MULTIPLY] = (stats->compute_seconds - bench->stats.compute_seconds) / threads;
    phases[PHASE_UNEVEN] =
        pass - phases[PHASE_WAIT] - phases[PHASE_DECODE] - phases[PHASE_MULTIPLY];
    phases[PHASE_OUTPUTS] = mttkrp - pass;
}

/* Splits `mttkrp` seconds, in which an iteration computed MTTKRPs on a GPU, into phases. */
static void split_device(const struct cpd_bench *bench,
                         const struct slc_device_stats *stats,
                         double mttkrp,
                         double phases[PHASES])
{
    const double busy = stats->busy_seconds - bench->device.busy_seconds;

    phases[PHASE_KERNELS] = stats->compute_seconds - bench->device.compute_seconds;
    /* The difference of rounded times may be slightly below zero. */
    phases[PHASE_COPIES] = fmax(busy - phases[PHASE_KERNELS], 0);
    phases[PHASE_IDLE] = fmax(mttkrp - busy, 0);
}

/* Returns true if the iteration is measured. The iteration after an abandoned build of replicas is
 * not measured, because the clocks of the tile stream do not separate the build from the
 * iteration. */
static bool counts(const struct cpd_bench *bench, const struct slc_cp_iteration *iteration)
{
    return iteration->iteration > bench->args->bench.warm_up && iteration->copies_fault == NULL;
}

/* Splits the time of the iteration that has just ended into phases. */
static void record_iteration(void *context, const struct slc_cp_iteration *iteration)
{
    struct cpd_bench *bench = context;
    const struct slc_cp_times *now = &bench->result.times;
    const double mttkrp = now->mttkrp - bench->times.mttkrp;
    struct slc_stream_stats stats;
    struct slc_device_stats device = {0};
    double phases[PHASES] = {0};

    slc_stream_stats(bench->session.stream, &stats);
    if (bench->session.gpu != NULL) {
        cpd_device_stats(&bench->session, &device);
    }
    bench->from_copies = bench->from_copies || iteration->first_of_copies;
    if (iteration->copies_fault != NULL) {
        bench->copies_fault = *iteration->copies_fault;
    }
    if (bench->session.gpu != NULL) {
        split_device(bench, &device, mttkrp, phases);
    } else if (bench->from_copies) {
        phases[PHASE_MULTIPLY] = mttkrp;
    } else {
        split_streamed(bench, &stats, mttkrp, phases);
    }
    phases[PHASE_UPDATE] = now->solve - bench->times.solve;
    phases[PHASE_FIT] = now->fit - bench->times.fit;
    phases[PHASE_OTHER] = iteration->seconds - mttkrp - phases[PHASE_UPDATE] - phases[PHASE_FIT];
    if (counts(bench, iteration)) {
        bench_samples_add(&bench->iteration, iteration->seconds);
        for (unsigned p = 0; p < PHASES; p++) {
            bench_samples_add(&bench->phases[p], phases[p]);
        }
        bench->bytes_read += iteration->bytes_read;
        bench->bytes_copied += device.block_bytes - bench->device.block_bytes;
        bench->iterations_from_copies += bench->from_copies;
    }
    bench->stats = stats;
    bench->device = device;
    bench->times = *now;
}

static double sum_of(const struct bench_samples *samples)
{
    double sum = 0;

    for (unsigned i = 0; i < samples->count; i++) {
        sum += samples->seconds[i];
    }
    return sum;
}

/* Returns the ceiling of a phase in seconds, NAN if the phase has no ceiling. */
static double ceiling_of(const struct bench_cpd_ceilings *ceilings, enum phase phase)
{
    switch (phase) {
    case PHASE_WAIT:
        return ceilings->read;
    case PHASE_DECODE:
        return ceilings->decode;
    case PHASE_MULTIPLY:
    case PHASE_KERNELS:
        return ceilings->multiply;
    case PHASE_UPDATE:
        return ceilings->update;
    default:
        return NAN;
    }
}

/* Records the time to build the replicas and the number of MTTKRPs computed from them. */
static void record_copies(const struct cpd_bench *bench,
                          const struct bench_cpd_ceilings *ceilings,
                          json_t *record)
{
    const unsigned order = bench->session.store.manifest.order;

    if (bench->from_copies) {
        const double seconds = bench->result.times.copies;
        const struct bench_times times = {
            .samples = 1, .min = seconds, .median = seconds, .max = seconds};
        json_t *row = json_object();

        (void)json_array_append_new(bench->phase_rows, row);
        slc_json_set_text(row, "phase", "copies");
        bench_times_to_json(row, &times);
        slc_json_set(row, "share", json_null());
        bench_set_real(row, "ceiling_ms", ceilings->pass * 1e3);
    }
    if (bench->copies_fault.status != SLC_OK) {
        slc_json_set_text(record, "copies_fault", bench->copies_fault.message);
    }
    slc_json_set_count(record, "copies_bytes",
                       bench->from_copies ? bench->session.plan.copies_bytes : 0);
    slc_json_set_count(record, "mttkrps", (uint64_t)bench->iteration.count * order);
    slc_json_set_count(record, "mttkrps_from_copies",
                       (uint64_t)bench->iterations_from_copies * order);
}

/* Records the phases of the run with one number of threads. Returns the dense share. */
static double record_phases(struct cpd_bench *bench, const struct bench_cpd_ceilings *ceilings)
{
    const bool device = bench->session.gpu != NULL;
    const double total = sum_of(&bench->iteration);
    double dense = 0;

    for (unsigned p = 0; p < PHASES; p++) {
        const struct bench_times times = bench_samples_summary(&bench->phases[p]);
        const double share = sum_of(&bench->phases[p]) / total;

        if (!has_phase(device, (enum phase)p)) {
            continue;
        }
        json_t *row = json_object();
        dense += p == PHASE_UPDATE || p == PHASE_FIT ? share : 0;
        (void)json_array_append_new(bench->phase_rows, row);
        if (bench->args->threads.count > 1) {
            slc_json_set_count(row, "threads", bench->session.plan.threads);
        }
        slc_json_set_text(row, "phase", phase_names[p]);
        bench_times_to_json(row, &times);
        bench_set_real(row, "share", share);
        bench_set_real(row, "ceiling_ms", ceiling_of(ceilings, (enum phase)p) * 1e3);
    }
    return dense;
}

/* Records what the GPUs did; on the CPU, records null. */
static void record_device(const struct cpd_bench *bench, json_t *run)
{
    const struct slc_plan *plan = &bench->session.plan;

    slc_json_set(run, "device", slc_json_device_plan(plan, bench->session.store.manifest.order));
    slc_json_set(run, "device_work", slc_json_device_stats(plan, &bench->result.gpu));
    slc_json_set(run, "devices", slc_json_devices_stats(plan, bench->result.devices));
    if (bench->session.gpu != NULL) {
        bench_set_real(run, "copied_bytes_per_iteration",
                       (double)bench->bytes_copied / bench->iteration.count);
    }
}

static enum slc_status record_run(struct cpd_bench *bench, json_t *run, struct slc_error *err)
{
    const struct slc_manifest *manifest = &bench->session.store.manifest;
    const struct bench_times iteration = bench_samples_summary(&bench->iteration);
    const double count = bench->iteration.count;
    double rows = 0, dense;
    /* ceilings for the mean passes and read bytes of a measured iteration */
    struct bench_cpd_ceilings ceilings = {0};

    SLC_TRY(bench_cpd_ceilings_measure(
        &bench->session, (count - bench->iterations_from_copies) / count * manifest->order,
        (double)bench->bytes_read / count, &ceilings, err));
    for (unsigned n = 0; n < manifest->order; n++) {
        rows += (double)manifest->dims[n];
    }
    dense = record_phases(bench, &ceilings);
    record_copies(bench, &ceilings, run);
    slc_json_set_count(run, "rank", bench->args->rank);
    slc_json_set_count(run, "threads", bench->session.plan.threads);
    bench_set_real(run, "iteration_median_ms", iteration.median * 1e3);
    bench_set_real(run, "iteration_min_ms", iteration.min * 1e3);
    bench_set_real(run, "iteration_max_ms", iteration.max * 1e3);
    bench_set_real(run, "iterations_per_s", 1 / iteration.median);
    bench_set_real(run, "dense_share", dense);
    bench_set_real(run, "nnz_per_row", (double)manifest->nnz / rows);
    bench_set_real(run, "read_bytes_per_iteration",
                   (double)bench->bytes_read / bench->iteration.count);
    record_device(bench, run);
    return SLC_OK;
}

/* Runs one decomposition. The caller must call close_all after each run, also after an error. */
static enum slc_status decompose(struct cpd_bench *bench,
                                 const struct session_options *wanted,
                                 json_t *run,
                                 struct slc_error *err)
{
    const struct arguments *args = bench->args;
    struct slc_session *session = &bench->session;
    struct slc_cp_options cp = {.rank = (uint32_t)args->rank,
                                .iterations = (unsigned)(args->bench.warm_up + args->bench.repeats),
                                .deterministic = args->session.deterministic,
                                .iteration = record_iteration,
                                .context = bench};

    SLC_TRY(session_plan(session, wanted, SLC_OP_CPD, 0, (uint32_t)args->rank, err));
    SLC_TRY(slc_session_start(session, err));
    cp.parts = session->parts;
    SLC_TRY(slc_cp_run(&session->store, session->stream, session->backend, &session->plan, &cp,
                       &bench->result, err));
    return record_run(bench, run, err);
}

static void close_all(void *state)
{
    struct cpd_bench *bench = state;

    slc_cp_result_destroy(&bench->result);
    session_close(&bench->session);
}

/* If there was only one run, copies its figures to the top level of the record. */
static void finish_runs(json_t *record, const json_t *runs)
{
    const double first =
        json_number_value(json_object_get(json_array_get(runs, 0), "iteration_median_ms"));
    size_t i;
    json_t *run;

    json_array_foreach(runs, i, run)
    {
        bench_set_real(run, "over_first",
                       first / json_number_value(json_object_get(run, "iteration_median_ms")));
    }
    if (json_array_size(runs) == 1) {
        (void)json_object_update_missing(record, json_array_get(runs, 0));
    }
}

static enum slc_status measure(void *state, const char *path, json_t *record, struct slc_error *err)
{
    struct cpd_bench *bench = state;
    const struct arguments *args = bench->args;
    struct session_options wanted = args->session;
    json_t *runs = json_array(), *rows = json_array();

    slc_json_set(record, "rows", rows);
    slc_json_set(record, "runs", runs);
    for (unsigned t = 0; t < args->threads.count; t++) {
        json_t *run = json_object();

        (void)json_array_append_new(runs, run);
        close_all(bench);
        *bench = (struct cpd_bench){.args = args, .phase_rows = rows};
        wanted.threads = args->threads.number[t];
        SLC_TRY(session_open(&bench->session, path, args->session.memory, err));
        if (t == 0) {
            bench_set_tensor(record, &bench->session.store);
        }
        SLC_TRY(decompose(bench, &wanted, run, err));
    }
    finish_runs(record, runs);
    return SLC_OK;
}

static void print_copies(const json_t *run)
{
    printf("  %" JSON_INTEGER_FORMAT " threads: %" JSON_INTEGER_FORMAT " of %" JSON_INTEGER_FORMAT
           " MTTKRPs from replicas\n",
           json_integer_value(json_object_get(run, "threads")),
           json_integer_value(json_object_get(run, "mttkrps_from_copies")),
           json_integer_value(json_object_get(run, "mttkrps")));
    if (json_object_get(run, "copies_fault") != NULL) {
        printf("  no replicas: %s\n", json_string_value(json_object_get(run, "copies_fault")));
    }
}

static void print_more(const json_t *record)
{
    const json_t *runs = json_object_get(record, "runs");
    const json_t *first = json_array_get(runs, 0);
    size_t i;
    const json_t *run;

    printf("\n  %.1f nonzeros per row\n", json_number_value(json_object_get(first, "nnz_per_row")));
    json_array_foreach(runs, i, run)
    {
        if (json_is_null(json_object_get(run, "device"))) {
            print_copies(run);
        }
    }
}

static int run(const struct command *command, int argc, char **argv)
{
    struct arguments args = {.rank = 0};
    struct cpd_bench bench = {.args = &args, .session = {.stream = NULL}};

    return bench_run(command, argc, argv,
                     &(struct bench_steps){&args, &args.bench, &bench, NULL, measure, tables,
                                           print_more, close_all});
}

const struct command bench_cpd = {
    .name = "bench cpd",
    .summary = "time of each phase of a CP-ALS iteration",
    .example = "sluice bench cpd flights-4d.slc --rank 16",
    .operands = "X.slc",
    .operands_min = 1,
    .operands_max = 1,
    .options = options,
    .notes =
        "--repeat is the number of measured iterations, --warm-up the number of iterations before\n"
        "them; the first one fills the cache. Column dense % is the share of update and fit.\n"
        "Replicas are built before an iteration, outside its time. Ceilings of the phases:\n"
        "  read wait      plain reads of the bytes that an iteration reads\n"
        "  decode         the passes of an iteration, if they only decode\n"
        "  copies         for building the replicas: one pass that only decodes\n"
        "  multiply       a gather of as many bytes as GENTEN's model counts\n"
        "  update         a copy of all outputs to the factors\n"
        "  kernels        on a GPU: the bytes counted by bench device, at the rate of random rows\n"
        "On a GPU, the time of MTTKRPs is split into kernels, block copies while no kernel runs,\n"
        "and idle time.",
    .run = run,
};
