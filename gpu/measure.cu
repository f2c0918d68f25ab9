/* Measures the ceilings of a device (measure.h) with copies and with kernels that only read and
 * write memory, timed with events on one stream. */
#include "gpu/cuda/cuda.h"

#include "gpu/cuda/check.h"

extern "C" {
#include "base/memory/memory.h"
#include "gpu/measure.h"
}

enum {
    THREADS = 256,
    /* Thread blocks per multiprocessor; 8 thread blocks have 2048 threads, the maximum of a
     * multiprocessor. */
    BLOCKS_PER_MULTIPROCESSOR = 8,
    /* Number of 16-byte loads in flight per thread. */
    LOADS = 4
};

/* Value that a sum of loaded numbers is not expected to have. The comparison with this value keeps
 * the compiler from omitting the loads. */
#define UNLIKELY 0x9e3779b9U

__device__ static inline unsigned mixed(uint4 v)
{
    return v.x ^ v.y ^ v.z ^ v.w;
}

__global__ static void __launch_bounds__(THREADS)
    read_kernel(const uint4 *from, uint64_t count, uint64_t sweeps, unsigned *sink)
{
    const uint64_t stride = (uint64_t)gridDim.x * THREADS;
    unsigned sum = 0;

    for (uint64_t sweep = 0; sweep < sweeps; sweep++) {
        uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

        for (; i + (LOADS - 1) * stride < count; i += LOADS * stride) {
            uint4 value[LOADS];

            for (int k = 0; k < LOADS; k++) {
                value[k] = from[i + k * stride];
            }
            for (int k = 0; k < LOADS; k++) {
                sum += mixed(value[k]);
            }
        }
        for (; i < count; i += stride) {
            sum += mixed(from[i]);
        }
        sum += (unsigned)sweep;
    }
    if (sum == UNLIKELY) {
        *sink = sum;
    }
}

__global__ static void __launch_bounds__(THREADS)
    copy_kernel(const uint4 *from, uint4 *to, uint64_t count)
{
    const uint64_t stride = (uint64_t)gridDim.x * THREADS;

    for (uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x; i < count; i += stride) {
        to[i] = from[i];
    }
}

/* Returns a pseudo-random row for a number, by two rounds of multiplication and shift. The row is
 * the upper half of the product of these random bits and the number of rows, because a remainder
 * would take longer than the load. */
__device__ static inline uint32_t drawn_row(uint64_t number, uint32_t rows)
{
    uint32_t x = ((uint32_t)number ^ (uint32_t)(number >> 32)) * 0x9e3779b9U;

    x = (x ^ x >> 16) * 0x7feb352dU;
    x = (x ^ x >> 15) * 0x846ca68bU;
    return __umulhi(x ^ x >> 16, rows);
}

/* Loads random rows of `lanes` * 16 bytes. `lanes` neighbouring threads load a row together. */
__global__ static void __launch_bounds__(THREADS)
    rows_kernel(const uint4 *from, uint32_t rows, uint32_t lanes, uint64_t draws, unsigned *sink)
{
    const uint64_t first = ((uint64_t)blockIdx.x * THREADS + threadIdx.x) / lanes;
    const uint64_t stride = (uint64_t)gridDim.x * THREADS / lanes;
    const uint32_t lane = threadIdx.x % lanes;
    unsigned sum = 0;

    for (uint64_t i = first; i < draws; i += LOADS * stride) {
        uint4 value[LOADS];

        for (int k = 0; k < LOADS; k++) {
            value[k] = from[(uint64_t)drawn_row(i + k * stride, rows) * lanes + lane];
        }
        for (int k = 0; k < LOADS; k++) {
            sum += mixed(value[k]);
        }
    }
    if (sum == UNLIKELY) {
        *sink = sum;
    }
}

/* Adds to random rows of `lanes` * 2 numbers. `lanes` neighbouring threads add to a row
 * together. */
template <bool sectors>
__global__ static void __launch_bounds__(THREADS)
    reduce_kernel(double *to, uint32_t rows, uint32_t lanes, uint64_t draws)
{
    const uint64_t first = ((uint64_t)blockIdx.x * THREADS + threadIdx.x) / lanes;
    const uint64_t stride = (uint64_t)gridDim.x * THREADS / lanes;
    const uint32_t lane = threadIdx.x % lanes;
    const double one = 1;

    for (uint64_t i = first; i < draws; i += stride) {
        double *row = to + (uint64_t)drawn_row(i, rows) * lanes * 2;

        slc_reduce_add(row + (sectors ? lane : 2 * lane), one);
        slc_reduce_add(row + (sectors ? lanes + lane : 2 * lane + 1), one);
    }
}

extern "C" const char *slc_gpu_ceiling_name(enum slc_gpu_ceiling ceiling)
{
    static const char *const names[] = {"read", "copy",       "to-device",         "to-host",
                                        "rows", "reduce-f64", "reduce-f64-sectors"};

    return names[ceiling];
}

/* Resources of one measurement. */
struct measuring {
    const struct slc_gpu_measurement *of;
    unsigned blocks;
    void *device; /* working_bytes */
    unsigned *sink;
    struct slc_buffer host;
    bool registered;
    cudaStream_t stream;
    cudaEvent_t begin, end;
};

static bool on_host(enum slc_gpu_ceiling ceiling)
{
    return ceiling == SLC_GPU_CEILING_TO_DEVICE || ceiling == SLC_GPU_CEILING_TO_HOST;
}

static bool of_rows(enum slc_gpu_ceiling ceiling)
{
    return ceiling >= SLC_GPU_CEILING_ROWS;
}

static enum slc_status open_device(struct measuring *m, unsigned ordinal, struct slc_error *err)
{
    struct cudaDeviceProp properties;

    SLC_GPU_TRY(cudaSetDevice((int)ordinal), err);
    SLC_GPU_TRY(cudaGetDeviceProperties(&properties, (int)ordinal), err);
    m->blocks = (unsigned)properties.multiProcessorCount * BLOCKS_PER_MULTIPROCESSOR;
    SLC_GPU_TRY(cudaMalloc(&m->device, m->of->working_bytes), err);
    SLC_GPU_TRY(cudaMalloc(reinterpret_cast<void **>(&m->sink), sizeof *m->sink), err);
    SLC_GPU_TRY(cudaStreamCreateWithFlags(&m->stream, cudaStreamNonBlocking), err);
    SLC_GPU_TRY(cudaEventCreateWithFlags(&m->begin, cudaEventDefault), err);
    SLC_GPU_TRY(cudaEventCreateWithFlags(&m->end, cudaEventDefault), err);
    SLC_GPU_TRY(cudaMemsetAsync(m->device, 0, m->of->working_bytes, m->stream), err);
    if (on_host(m->of->ceiling)) {
        SLC_TRY(slc_buffer_create(&m->host, m->of->working_bytes, SLC_PAGES_MIXED, err));
        SLC_GPU_TRY(cudaHostRegister(m->host.data, m->of->working_bytes, cudaHostRegisterPortable),
                    err);
        m->registered = true;
    }
    return SLC_OK;
}

static void release_device(struct measuring *m)
{
    if (m->stream != NULL) {
        (void)cudaStreamSynchronize(m->stream);
        (void)cudaStreamDestroy(m->stream);
    }
    if (m->begin != NULL) {
        (void)cudaEventDestroy(m->begin);
    }
    if (m->end != NULL) {
        (void)cudaEventDestroy(m->end);
    }
    if (m->registered) {
        (void)cudaHostUnregister(m->host.data);
    }
    slc_buffer_destroy(&m->host);
    (void)cudaFree(m->sink);
    (void)cudaFree(m->device);
}

/* Enqueues one run of the measurement, and sets *moved to the bytes that the run moves. */
static cudaError_t enqueue(const struct measuring *m, uint64_t *moved)
{
    const struct slc_gpu_measurement *of = m->of;
    const uint64_t bytes = of->working_bytes;
    const uint64_t sweeps = (of->moved_bytes + bytes - 1) / bytes;
    const uint32_t lanes = of->row_bytes / 16;
    const uint32_t rows = of_rows(of->ceiling) ? (uint32_t)(bytes / of->row_bytes) : 0;
    /* Number of random rows that all threads together access in one round. `draws` is a multiple of
     * this number, so that every thread does the same number of loads. */
    const uint64_t round = of_rows(of->ceiling) ? (uint64_t)m->blocks * THREADS / lanes * LOADS : 1;
    const uint64_t draws =
        of_rows(of->ceiling) ? (of->moved_bytes / of->row_bytes + round - 1) / round * round : 0;
    const dim3 grid(m->blocks), block(THREADS);
    uint4 *data = static_cast<uint4 *>(m->device);
    cudaError_t error = cudaSuccess;

    *moved = of_rows(of->ceiling) ? draws * of->row_bytes : sweeps * bytes;
    switch (of->ceiling) {
    case SLC_GPU_CEILING_READ:
        return slc_launch(read_kernel, grid, block, 0, m->stream, data, bytes / 16, sweeps,
                          m->sink);
    case SLC_GPU_CEILING_COPY:
        for (uint64_t s = 0; s < sweeps && error == cudaSuccess; s++) {
            error = slc_launch(copy_kernel, grid, block, 0, m->stream, data, data + bytes / 32,
                               bytes / 32);
        }
        return error;
    case SLC_GPU_CEILING_TO_DEVICE:
        for (uint64_t s = 0; s < sweeps && error == cudaSuccess; s++) {
            error =
                cudaMemcpyAsync(m->device, m->host.data, bytes, cudaMemcpyHostToDevice, m->stream);
        }
        return error;
    case SLC_GPU_CEILING_TO_HOST:
        for (uint64_t s = 0; s < sweeps && error == cudaSuccess; s++) {
            error =
                cudaMemcpyAsync(m->host.data, m->device, bytes, cudaMemcpyDeviceToHost, m->stream);
        }
        return error;
    case SLC_GPU_CEILING_ROWS:
        return slc_launch(rows_kernel, grid, block, 0, m->stream, data, rows, lanes, draws,
                          m->sink);
    case SLC_GPU_CEILING_REDUCE_F64:
        return slc_launch(reduce_kernel<false>, grid, block, 0, m->stream,
                          static_cast<double *>(m->device), rows, lanes, draws);
    case SLC_GPU_CEILING_REDUCE_F64_SECTORS:
        break;
    }
    return slc_launch(reduce_kernel<true>, grid, block, 0, m->stream,
                      static_cast<double *>(m->device), rows, lanes, draws);
}

static enum slc_status run_once(const struct measuring *m, double *rate, struct slc_error *err)
{
    uint64_t moved = 0;
    float milliseconds = 0;

    SLC_GPU_TRY(cudaEventRecord(m->begin, m->stream), err);
    SLC_GPU_TRY(enqueue(m, &moved), err);
    SLC_GPU_TRY(cudaEventRecord(m->end, m->stream), err);
    SLC_GPU_TRY(cudaEventSynchronize(m->end), err);
    SLC_GPU_TRY(cudaEventElapsedTime(&milliseconds, m->begin, m->end), err);
    *rate = (double)moved / ((double)milliseconds * 1e-3);
    return SLC_OK;
}

/* Sorts a few numbers by insertion and returns their median. */
static double median(double *numbers, unsigned count)
{
    for (unsigned i = 1; i < count; i++) {
        const double number = numbers[i];
        unsigned at = i;

        for (; at > 0 && numbers[at - 1] > number; at--) {
            numbers[at] = numbers[at - 1];
        }
        numbers[at] = number;
    }
    return numbers[count / 2];
}

static enum slc_status check_measurement(const struct slc_gpu_measurement *of,
                                         struct slc_error *err)
{
    const bool rows = of_rows(of->ceiling);

    if (of->working_bytes == 0 || of->working_bytes % 4096 != 0 || of->moved_bytes == 0 ||
        of->repeats == 0 ||
        (rows &&
         (of->row_bytes < 16 || of->row_bytes > 512 || (of->row_bytes & (of->row_bytes - 1)) != 0 ||
          of->working_bytes / of->row_bytes > UINT32_MAX))) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "cannot measure a working set of %llu bytes with %llu bytes moved, %u "
                        "repeats and rows of %u bytes: sizes must be multiples of 4096, repeats at "
                        "least 1, and rows 16, 32, .. or 512 bytes",
                        (unsigned long long)of->working_bytes, (unsigned long long)of->moved_bytes,
                        of->repeats, of->row_bytes);
    }
    return SLC_OK;
}

extern "C" enum slc_status slc_gpu_measure(unsigned ordinal,
                                           const struct slc_gpu_measurement *measurement,
                                           double *bytes_per_second,
                                           struct slc_error *err)
{
    struct measuring m = {};
    double *rates = NULL;
    enum slc_status status;

    SLC_TRY(check_measurement(measurement, err));
    m.of = measurement;
    rates = static_cast<double *>(slc_calloc(measurement->repeats, sizeof *rates));
    if (rates == NULL) {
        return slc_fail(err, SLC_ERR_MEMORY, "no memory for %u numbers", measurement->repeats);
    }
    status = open_device(&m, ordinal, err);
    if (status == SLC_OK) {
        status = run_once(&m, &rates[0], err); /* the first run warms up and does not count */
    }
    for (unsigned r = 0; r < measurement->repeats && status == SLC_OK; r++) {
        status = run_once(&m, &rates[r], err);
    }
    if (status == SLC_OK) {
        *bytes_per_second = median(rates, measurement->repeats);
    }
    release_device(&m);
    slc_free(rates);
    return status;
}
