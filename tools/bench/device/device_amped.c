/* Measures AMPED's MTTKRP on several devices: divides the list, computes, and exchanges rows. */
#include "tools/bench/device/device.h"

#include "base/error/clock.h"
#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "base/thread/team.h"
#include "cpu/dense/dense.h"
#include "engine/executor/assign.h"
#include "engine/executor/gpu_group.h"
#include "tools/bench/measure/run.h"
#include "tools/bench/measure/timing.h"
#include "tools/bench/rivals/gpu/lists.h"

#include <math.h>
#include <string.h>

/* Largest number of partitions per device. In the paper, a partition has one row per device. Here
 * partitions of large modes have more rows, because the exchange copies each partition
 * separately. */
enum { PARTITIONS_EACH = 256 };

/* The part of the current mode that a device computes. */
struct share {
    struct slc_buffer coords, values, spans;
    uint64_t nnz, span_count;
    struct slc_gpu_lists *lists;
    struct slc_gpu_lists_run run;
    struct bench_samples busy;
    double *sums;           /* result of slc_update_sums: R x R, R and R numbers */
    enum slc_status status; /* status of the current phase */
    struct slc_error fault;
};

struct amped {
    const struct device_mttkrp *request;
    const struct slc_coo *list;
    const struct bench_factors *factors;
    struct slc_session session;
    unsigned count, kernel;
    struct slc_dense *dense;
    struct slc_solver solver; /* solver for the identity matrix, with which an update copies the
                                 output to the factor */
    struct slc_buffer sums;
    struct share share[SLC_DEVICE_NUMBERS_MAX];
    unsigned mode;
};

static struct slc_device *device_of(const struct amped *amped, unsigned d)
{
    return amped->session.set.devices[d];
}

/* ---- opening */

static unsigned find_kernel(void)
{
    unsigned k = 0;

    while (k < slc_gpu_lists_kernels() && strcmp(slc_gpu_lists_kernel(k), "amped") != 0) {
        k++;
    }
    return k;
}

static enum slc_status create_solver(struct amped *amped, struct slc_error *err)
{
    const uint64_t rank = amped->request->rank, sums = rank * rank + 2 * rank;

    SLC_TRY(slc_buffer_create(&amped->sums, amped->count * sums * sizeof(double), SLC_PAGES_SMALL,
                              err));
    SLC_TRY(slc_dense_create(1, amped->request->rank, 1, &amped->dense, err));
    SLC_TRY(slc_solver_create(&amped->solver, amped->request->rank, err));
    for (unsigned d = 0; d < amped->count; d++) {
        amped->share[d].sums = (double *)amped->sums.data + d * sums;
    }
    double *identity = amped->share[0].sums;
    double *ones = identity + rank * rank;
    for (uint64_t r = 0; r < rank; r++) {
        identity[r * rank + r] = 1;
        ones[r] = 1;
    }
    return slc_dense_factorize(amped->dense, identity, ones, ones, &amped->solver, err);
}

static enum slc_status open_devices(struct amped *amped, struct slc_error *err)
{
    const struct device_mttkrp *request = amped->request;
    struct session_options options = request->session;

    SLC_TRY(session_open(&amped->session, request->path, options.memory, err));
    /* Split "nnz" only needs layout `blco`, which every store has. No blocks are kept in memory. */
    options.split = "nnz";
    options.no_cache = true;
    options.devices = request->devices;
    SLC_TRY(session_plan(&amped->session, &options, SLC_OP_CPD, 0, request->rank, err));
    SLC_TRY(slc_session_start(&amped->session, err));
    return slc_gpu_group_load(amped->session.group, amped->factors->factors, err);
}

static void drop_shares(struct amped *amped)
{
    for (unsigned d = 0; d < amped->count; d++) {
        struct share *share = &amped->share[d];

        slc_gpu_lists_destroy(share->lists);
        share->lists = NULL;
        slc_buffer_destroy(&share->coords);
        slc_buffer_destroy(&share->values);
        slc_buffer_destroy(&share->spans);
        share->span_count = 0;
        share->busy.count = 0;
    }
}

/* ---- dividing */

/* The partitions of the rows of a mode, with the number of nonzeros and the owner of each
 * partition. */
struct division {
    uint64_t rows, rows_each, count;
    struct slc_buffer weights, owners;
};

static enum slc_status assign(struct amped *amped, struct division *division, struct slc_error *err)
{
    const uint32_t *coords = amped->list->coords.data;
    const unsigned order = amped->list->shape.order;
    uint64_t loads[SLC_DEVICE_NUMBERS_MAX];
    uint64_t *weights;

    division->rows = amped->list->shape.dims[amped->mode];
    division->rows_each =
        slc_max_u64(amped->count, slc_div_up_u64(division->rows, PARTITIONS_EACH * amped->count));
    division->count = slc_div_up_u64(division->rows, division->rows_each);
    SLC_TRY(slc_buffer_create(&division->weights, division->count * sizeof *weights,
                              SLC_PAGES_SMALL, err));
    SLC_TRY(slc_buffer_create(&division->owners, division->count * sizeof(uint32_t),
                              SLC_PAGES_SMALL, err));
    weights = division->weights.data;
    for (uint64_t i = 0; i < amped->list->shape.nnz; i++) {
        weights[coords[i * order + amped->mode] / division->rows_each]++;
    }
    SLC_TRY(slc_assign_largest_first(weights, division->count, amped->count, division->owners.data,
                                     loads, err));
    for (unsigned d = 0; d < amped->count; d++) {
        amped->share[d].nnz = loads[d];
    }
    return SLC_OK;
}

static enum slc_status create_share(const struct amped *amped,
                                    const struct division *division,
                                    struct share *share,
                                    struct slc_error *err)
{
    const size_t row_bytes = amped->list->shape.order * sizeof(uint32_t);

    SLC_TRY(slc_buffer_create(&share->coords, share->nnz * row_bytes, SLC_PAGES_HUGE, err));
    SLC_TRY(slc_buffer_create(&share->values, share->nnz * slc_value_bytes(amped->list->type),
                              SLC_PAGES_HUGE, err));
    return slc_buffer_create(&share->spans, division->count * sizeof(struct slc_row_span),
                             SLC_PAGES_SMALL, err);
}

/* Copies the nonzeros of each device to the share of the device, in the order of the list. */
static void divide_nonzeros(struct amped *amped, const struct division *division)
{
    const uint32_t *coords = amped->list->coords.data, *owners = division->owners.data;
    const unsigned order = amped->list->shape.order;
    const size_t value_bytes = slc_value_bytes(amped->list->type);
    uint64_t next[SLC_DEVICE_NUMBERS_MAX] = {0};

    for (uint64_t i = 0; i < amped->list->shape.nnz; i++) {
        const uint32_t owner = owners[coords[i * order + amped->mode] / division->rows_each];
        const struct share *share = &amped->share[owner];
        const uint64_t at = next[owner]++;

        memcpy((uint32_t *)share->coords.data + at * order, coords + i * order,
               order * sizeof *coords);
        memcpy((unsigned char *)share->values.data + at * value_bytes,
               (const unsigned char *)amped->list->values.data + i * value_bytes, value_bytes);
    }
}

/* Sets the spans of rows of each device. Adjacent partitions of a device form one span. */
static void divide_rows(struct amped *amped, const struct division *division)
{
    const uint32_t *owners = division->owners.data;

    for (uint64_t p = 0; p < division->count; p++) {
        struct share *share = &amped->share[owners[p]];
        struct slc_row_span *spans = share->spans.data;
        const uint64_t first = p * division->rows_each;
        const uint64_t end = slc_min_u64(first + division->rows_each, division->rows);

        if (share->span_count > 0 && spans[share->span_count - 1].end == first) {
            spans[share->span_count - 1].end = end;
        } else {
            spans[share->span_count++] = (struct slc_row_span){first, end};
        }
    }
}

static enum slc_status create_lists(struct amped *amped, struct slc_error *err)
{
    struct slc_gpu_lists_options options = amped->request->lists;

    options.partition_rows = amped->count;
    for (unsigned d = 0; d < amped->count; d++) {
        struct share *share = &amped->share[d];
        const struct slc_gpu_lists_source source = {share->nnz, share->coords.data,
                                                    amped->list->type, share->values.data};

        SLC_TRY(slc_gpu_lists_create(device_of(amped, d), &source, &options, &share->lists, err));
    }
    return SLC_OK;
}

static enum slc_status divide(struct amped *amped, struct slc_error *err)
{
    struct division division = {.weights = SLC_BUFFER_INIT, .owners = SLC_BUFFER_INIT};
    enum slc_status status = assign(amped, &division, err);

    for (unsigned d = 0; d < amped->count && status == SLC_OK; d++) {
        status = create_share(amped, &division, &amped->share[d], err);
    }
    if (status == SLC_OK) {
        divide_nonzeros(amped, &division);
        divide_rows(amped, &division);
        status = create_lists(amped, err);
    }
    slc_buffer_destroy(&division.weights);
    slc_buffer_destroy(&division.owners);
    return status;
}

/* ---- computing */

static void compute_device(void *context, unsigned d, unsigned count)
{
    struct amped *amped = context;
    struct share *share = &amped->share[d];

    (void)count;
    share->status =
        slc_gpu_lists_mttkrp(share->lists, amped->kernel, amped->mode, &share->run, &share->fault);
}

/* Copies the output rows that a device has computed to the factor of the mode on this device. */
static void keep_output(void *context, unsigned d, unsigned count)
{
    struct amped *amped = context;
    struct share *share = &amped->share[d];
    const uint64_t rank = amped->request->rank;
    const struct slc_update_sums sums = {share->sums, share->sums + rank * rank,
                                         share->sums + rank * rank + rank};
    struct slc_device *device = device_of(amped, d);

    (void)count;
    share->status =
        device->ops->algebra.update(device, amped->mode, &amped->solver, &sums, &share->fault);
}

/* Runs the function `phase` with one thread per device. Returns the first error. */
static enum slc_status run_phase(struct amped *amped, slc_team_fn *phase, struct slc_error *err)
{
    for (unsigned d = 0; d < amped->count; d++) {
        slc_error_clear(&amped->share[d].fault);
    }
    enum slc_status status = slc_team_run(amped->count, phase, amped, err);
    for (unsigned d = 0; d < amped->count && status == SLC_OK; d++) {
        status = amped->share[d].status;
        if (status != SLC_OK && err != NULL) {
            *err = amped->share[d].fault;
        }
    }
    return status;
}

/* Measures the devices one after the other. */
static enum slc_status
measure_each(struct amped *amped, bool counts, double *longest, struct slc_error *err)
{
    *longest = 0;
    for (unsigned d = 0; d < amped->count; d++) {
        struct share *share = &amped->share[d];

        SLC_TRY(slc_gpu_lists_mttkrp(share->lists, amped->kernel, amped->mode, &share->run, err));
        *longest = fmax(*longest, share->run.seconds);
        if (counts) {
            bench_samples_add(&share->busy, share->run.seconds);
        }
    }
    return SLC_OK;
}

static enum slc_status exchange(struct amped *amped, double *seconds, struct slc_error *err)
{
    const uint64_t start_ns = slc_clock_ns();
    struct slc_gpu_group_ring ring = {
        .count = amped->count,
        .mode = amped->mode,
        .row_bytes = slc_matrix_row_bytes(&amped->factors->factors[amped->mode])};

    for (unsigned d = 0; d < amped->count; d++) {
        ring.device[d] = device_of(amped, d);
        ring.rows[d] =
            (struct slc_device_rows){amped->share[d].spans.data, amped->share[d].span_count};
    }
    enum slc_status status = slc_gpu_group_exchange(&ring, err);
    *seconds = slc_seconds_since(start_ns);
    return status;
}

/* Measures all devices at the same time, and the exchange over the ring. */
static enum slc_status
measure_together(struct amped *amped, double *whole, double *exchanged, struct slc_error *err)
{
    const uint64_t start_ns = slc_clock_ns();

    SLC_TRY(run_phase(amped, compute_device, err));
    *whole = slc_seconds_since(start_ns);
    SLC_TRY(run_phase(amped, keep_output, err));
    SLC_TRY(exchange(amped, exchanged, err));
    *whole += *exchanged;
    return SLC_OK;
}

/* After the exchange, compares the factor on every device with `wanted`, then restores it. */
static enum slc_status compare_factors(struct amped *amped,
                                       const struct slc_matrix *wanted,
                                       double *differs,
                                       struct slc_error *err)
{
    struct slc_matrix got = amped->factors->output;

    *differs = 0;
    got.rows = wanted->rows;
    for (unsigned d = 0; d < amped->count; d++) {
        struct slc_device *device = device_of(amped, d);

        SLC_TRY(device->ops->memory.factor_read(device, amped->mode, &got, err));
        *differs = fmax(*differs, device_mttkrp_difference(wanted, &got));
        SLC_TRY(device->ops->memory.factor_write(device, amped->mode,
                                                 &amped->factors->factors[amped->mode], err));
    }
    return SLC_OK;
}

/* ---- rows */

static void set_devices(const struct amped *amped, double divide_seconds, json_t *row)
{
    json_t *each = json_array();
    double build = divide_seconds;

    slc_json_set(row, "device_ms", each);
    for (unsigned d = 0; d < amped->count; d++) {
        const struct share *share = &amped->share[d];

        (void)json_array_append_new(each,
                                    json_real(bench_samples_summary(&share->busy).median * 1e3));
        build += share->run.form_seconds;
    }
    device_mttkrp_set_form(row, "amped", amped->mode, build, &amped->share[0].run);
}

/* Measures a mode and sets the figures of its row. */
static enum slc_status measure_mode(struct amped *amped,
                                    unsigned mode,
                                    const struct slc_matrix *wanted,
                                    json_t *row,
                                    struct slc_error *err)
{
    const struct device_mttkrp *request = amped->request;
    struct bench_samples longest = {.count = 0}, whole = {.count = 0}, ring = {.count = 0};
    const uint64_t start_ns = slc_clock_ns();
    double divide_seconds, differs = 0;

    amped->mode = mode;
    enum slc_status status = divide(amped, err);
    divide_seconds = slc_seconds_since(start_ns);
    for (unsigned i = 0; i < request->warm_up + request->repeats && status == SLC_OK; i++) {
        const bool counts = i >= request->warm_up;
        double most, all = 0, exchanged = 0;

        status = measure_each(amped, counts, &most, err);
        SLC_THEN(status, measure_together(amped, &all, &exchanged, err));
        if (counts) {
            bench_samples_add(&longest, most);
            bench_samples_add(&whole, all);
            bench_samples_add(&ring, exchanged);
        }
    }
    SLC_THEN(status, compare_factors(amped, wanted, &differs, err));
    if (status == SLC_OK) {
        device_mttkrp_set_times(row, amped->list->shape.nnz, &longest, &whole);
        bench_set_real(row, "exchange_ms", bench_samples_summary(&ring).median * 1e3);
        bench_set_real(row, "differs", differs);
        set_devices(amped, divide_seconds, row);
    }
    drop_shares(amped);
    return status;
}

enum slc_status device_amped_measure(const struct device_mttkrp *request,
                                     const struct slc_manifest *manifest,
                                     const struct slc_coo *list,
                                     const struct bench_factors *factors,
                                     const struct slc_matrix *wanted,
                                     json_t *rows,
                                     struct slc_error *err)
{
    struct amped amped = {.request = request,
                          .list = list,
                          .factors = factors,
                          .count = request->devices.count,
                          .kernel = find_kernel()};
    enum slc_status opened = open_devices(&amped, err), status = SLC_OK;

    if (opened == SLC_OK) {
        opened = create_solver(&amped, err);
    }
    for (unsigned n = request->mode > 0 ? request->mode - 1 : 0;
         n < manifest->order && status == SLC_OK; n++) {
        json_t *row = device_mttkrp_add_row(request, manifest, n, "amped", rows);

        slc_json_set_count(row, "devices", amped.count);
        status = device_mttkrp_note_refusal(
            row, opened == SLC_OK ? measure_mode(&amped, n, &wanted[n], row, err) : opened, err);
        if (request->mode != 0 || opened != SLC_OK) {
            break;
        }
    }
    slc_solver_destroy(&amped.solver);
    slc_dense_destroy(amped.dense);
    slc_buffer_destroy(&amped.sums);
    session_close(&amped.session);
    return status;
}
