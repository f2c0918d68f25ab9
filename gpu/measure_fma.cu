/* Measures the compute rate of a device. The maximum number of threads compute fused multiply-adds
 * in registers, in independent chains. */
#include "gpu/cuda/cuda.h"

#include "gpu/cuda/check.h"

extern "C" {
#include "gpu/measure.h"
}

enum {
    THREADS = 256,
    /* Thread blocks per multiprocessor; 8 thread blocks have 2048 threads, the maximum of a
     * multiprocessor. */
    BLOCKS_PER_MULTIPROCESSOR = 8,
    CHAINS = 8, /* chains per thread; a step depends on the previous step of its chain */
    STEPS = 16  /* steps of every chain between two checks of the loop counter */
};

__device__ static inline double fused(double a, double b, double c)
{
    return fma(a, b, c);
}

__device__ static inline float fused(float a, float b, float c)
{
    return fmaf(a, b, c);
}

/* Computes the chains. With a factor of 1/2 and an addend of 1 the numbers approach 2, so no number
 * overflows or becomes denormal. */
template <typename T>
__global__ static void __launch_bounds__(THREADS, BLOCKS_PER_MULTIPROCESSOR)
    fma_kernel(uint32_t turns, T factor, T addend, T *sink)
{
    T number[CHAINS];
    T sum = 0;

    for (int c = 0; c < CHAINS; c++) {
        number[c] = (T)(threadIdx.x + c);
    }
    SLC_ROLL
    for (uint32_t turn = 0; turn < turns; turn++) {
        SLC_UNROLL
        for (int step = 0; step < STEPS; step++) {
            SLC_UNROLL
            for (int c = 0; c < CHAINS; c++) {
                number[c] = fused(number[c], factor, addend);
            }
        }
    }
    for (int c = 0; c < CHAINS; c++) {
        sum += number[c];
    }
    if (sum < 0) { /* never true, but keeps the compiler from omitting the work */
        *sink = sum;
    }
}

/* Resources of one measurement. */
struct computing {
    unsigned blocks;
    uint32_t turns;
    void *sink;
    cudaStream_t stream;
    cudaEvent_t begin, end;
};

static enum slc_status
open_device(struct computing *computing, unsigned ordinal, uint64_t operations, slc_error *err)
{
    struct cudaDeviceProp properties;
    uint64_t per_turn;

    SLC_GPU_TRY(cudaSetDevice((int)ordinal), err);
    SLC_GPU_TRY(cudaGetDeviceProperties(&properties, (int)ordinal), err);
    computing->blocks = (unsigned)properties.multiProcessorCount * BLOCKS_PER_MULTIPROCESSOR;
    per_turn = (uint64_t)computing->blocks * THREADS * CHAINS * STEPS * 2;
    computing->turns = (uint32_t)((operations + per_turn - 1) / per_turn);
    SLC_GPU_TRY(cudaMalloc(&computing->sink, sizeof(double)), err);
    SLC_GPU_TRY(cudaStreamCreateWithFlags(&computing->stream, cudaStreamNonBlocking), err);
    SLC_GPU_TRY(cudaEventCreateWithFlags(&computing->begin, cudaEventDefault), err);
    SLC_GPU_TRY(cudaEventCreateWithFlags(&computing->end, cudaEventDefault), err);
    return SLC_OK;
}

static void close_device(struct computing *computing)
{
    if (computing->stream != NULL) {
        (void)cudaStreamSynchronize(computing->stream);
        (void)cudaStreamDestroy(computing->stream);
    }
    if (computing->begin != NULL) {
        (void)cudaEventDestroy(computing->begin);
    }
    if (computing->end != NULL) {
        (void)cudaEventDestroy(computing->end);
    }
    (void)cudaFree(computing->sink);
}

template <typename T> static cudaError_t enqueue(const struct computing *computing)
{
    return slc_launch(fma_kernel<T>, dim3(computing->blocks), dim3(THREADS), 0, computing->stream,
                      computing->turns, (T)0.5, (T)1, static_cast<T *>(computing->sink));
}

static enum slc_status run_once(const struct computing *computing,
                                enum slc_value_type type,
                                double *rate,
                                struct slc_error *err)
{
    const double operations = 2.0 * computing->turns * STEPS * CHAINS * THREADS * computing->blocks;
    float milliseconds = 0;

    SLC_GPU_TRY(cudaEventRecord(computing->begin, computing->stream), err);
    SLC_GPU_TRY(type == SLC_F32 ? enqueue<float>(computing) : enqueue<double>(computing), err);
    SLC_GPU_TRY(cudaEventRecord(computing->end, computing->stream), err);
    SLC_GPU_TRY(cudaEventSynchronize(computing->end), err);
    SLC_GPU_TRY(cudaEventElapsedTime(&milliseconds, computing->begin, computing->end), err);
    *rate = operations / ((double)milliseconds * 1e-3);
    return SLC_OK;
}

extern "C" const char *slc_gpu_peak_name(enum slc_value_type type)
{
    return type == SLC_F32 ? "fma-f32" : "fma-f64";
}

extern "C" enum slc_status slc_gpu_measure_peak(unsigned ordinal,
                                                const struct slc_gpu_peak *peak,
                                                double *per_second,
                                                struct slc_error *err)
{
    struct computing computing = {};
    double rate = 0, best = 0;
    enum slc_status status;

    if (peak->operations == 0 || peak->operations > SLC_GPU_PEAK_MOST || peak->repeats == 0) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "cannot measure a peak with %llu operations and %u repeats: operations "
                        "must be 1 to 1e15, and repeats at least 1",
                        (unsigned long long)peak->operations, peak->repeats);
    }
    status = open_device(&computing, ordinal, peak->operations, err);
    /* The first run warms up and does not count. */
    for (unsigned r = 0; r <= peak->repeats && status == SLC_OK; r++) {
        status = run_once(&computing, peak->type, &rate, err);
        best = r > 0 && rate > best ? rate : best;
    }
    if (status == SLC_OK) {
        *per_second = best;
    }
    close_device(&computing);
    return status;
}
