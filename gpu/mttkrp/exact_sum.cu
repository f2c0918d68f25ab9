/* Implements the steps before and after order-independent sums (exact_sum.h): bounds of columns,
 * and conversion of words to f64. These steps take little time, because each step reads a matrix at
 * most once per MTTKRP. */
#include "gpu/mttkrp/exact_sum.h"

enum {
    THREADS = 256,
    /* Maximum number of thread blocks, enough to fill any device; each thread block processes rows
     * at a stride. */
    MOST_BLOCKS = 2048,
    /* Limits for the exponent E of a bound 2^E. If E were less than -900, 2^(E - 93) would approach
     * the smallest normal number of f64. The sum of 2^31 finite addends is less than 2^1055. */
    LEAST_EXPONENT = -900,
    GREATEST_EXPONENT = 1055,
    HIGH_BITS = 62,
    LOW_BITS = 31
};

/* Returns the number of threads that share a row; neighbouring threads read neighbouring
 * columns. */
static uint32_t row_lanes(uint32_t cols)
{
    uint32_t lanes = 1;

    while (lanes < cols && lanes < SLC_WARP) {
        lanes *= 2;
    }
    return lanes;
}

static unsigned row_blocks(uint64_t rows, uint32_t lanes)
{
    const uint64_t blocks = rows / (THREADS / lanes) + 1;

    return blocks < MOST_BLOCKS ? (unsigned)blocks : (unsigned)MOST_BLOCKS;
}

__device__ static inline unsigned long long bits_of(double number)
{
    unsigned long long bits;

    memcpy(&bits, &number, sizeof bits);
    return bits;
}

/* Finds the largest magnitude of each column. Magnitudes are compared as integers: the bits of f64
 * numbers without their signs have the same order as the magnitudes, and NaN is greater than
 * infinity. */
template <typename T>
__global__ static void __launch_bounds__(THREADS) exact_largest(const T *data,
                                                                uint64_t rows,
                                                                uint32_t cols,
                                                                uint32_t pitch,
                                                                uint32_t lanes,
                                                                unsigned long long *largest)
{
    const uint32_t lane = threadIdx.x % lanes;
    const uint64_t first = ((uint64_t)blockIdx.x * THREADS + threadIdx.x) / lanes;
    const uint64_t step = (uint64_t)gridDim.x * (THREADS / lanes);

    for (uint32_t column = lane; column - lane < cols; column += lanes) {
        unsigned long long most = 0;

        for (uint64_t row = first; row < rows && column < cols; row += step) {
            const unsigned long long bits = bits_of(fabs((double)data[row * pitch + column]));

            most = bits > most ? bits : most;
        }
        for (uint32_t apart = lanes; apart < SLC_WARP; apart *= 2) {
            const unsigned long long other = __shfl_xor_sync(SLC_ALL_LANES, most, (int)apart);

            most = other > most ? other : most;
        }
        if (threadIdx.x % SLC_WARP < lanes && column < cols) {
            SLC_PLANT_OTHER(exact_plain_largest, atomicMax(largest + column, most),
                            largest[column] = most > largest[column] ? most : largest[column]);
        }
    }
}

__global__ static void __launch_bounds__(THREADS) exact_scale(const double *largest,
                                                              unsigned order,
                                                              unsigned mode,
                                                              uint32_t rank,
                                                              double magnitude,
                                                              double *scale)
{
    const uint32_t column = blockIdx.x * THREADS + threadIdx.x;

    if (column >= rank) {
        return;
    }
    /* Keep the product as mantissa and exponent, because the product may exceed the range of f64
     * even if no sum does. */
    int exponent = 0;
    double mantissa = frexp(magnitude, &exponent);

    for (unsigned m = 0; m < order; m++) {
        int more = 0, less = 0;

        if (m != mode) {
            mantissa = frexp(mantissa * frexp(largest[(size_t)m * rank + column], &more), &less);
            exponent += more + less;
        }
    }
    if (!(mantissa < 1)) { /* frexp returns non-finite values unchanged */
        scale[column] = NAN;
        return;
    }
    /* Use the exponent of the product plus one, because addends and their bound are rounded. */
    exponent = mantissa == 0 ? LEAST_EXPONENT : exponent + 1;
    exponent = exponent < LEAST_EXPONENT ? LEAST_EXPONENT : exponent;
    exponent = exponent > GREATEST_EXPONENT ? GREATEST_EXPONENT : exponent;
    scale[column] = ldexp(1.0, HIGH_BITS - exponent);
}

__global__ static void __launch_bounds__(THREADS)
    exact_add(unsigned long long *to, const unsigned long long *from, uint64_t words)
{
    for (uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x; i < words;
         i += (uint64_t)gridDim.x * THREADS) {
        to[i] += from[i];
    }
}

/* Returns (high + low / 2^31) / scale. Rounds once, to nearest, before the division by `scale`,
 * which is exact because `scale` is a power of two. */
__device__ static double value_of(unsigned long long high, unsigned long long low, double scale)
{
    const long long whole = (long long)high + ((long long)low >> LOW_BITS);
    const unsigned long long rest = low & ((1ULL << LOW_BITS) - 1);
    /* Append as many bits of `rest` to `whole` as fit. */
    const int spare_bits = __clzll((unsigned long long)(whole ^ (whole >> 63))) - 1;
    const int moved = spare_bits < LOW_BITS ? spare_bits : (int)LOW_BITS;
    unsigned long long number = (unsigned long long)whole << moved | rest >> (LOW_BITS - moved);

    /* Bits of `rest` that do not fit are omitted; the sum is then between `number` and number + 1.
     * This happens only if `number` has 62 bits or more. An f64 keeps 53 of these bits, so setting
     * the lowest bit has the same effect on rounding as the omitted bits. */
    if ((rest & ((1ULL << (LOW_BITS - moved)) - 1)) != 0) {
        number |= 1;
    }
    return (double)(long long)number * ldexp(1.0, -moved) * (1 / scale);
}

__global__ static void __launch_bounds__(THREADS) exact_finish(struct slc_exact_sum sum,
                                                               uint64_t rows,
                                                               uint64_t first,
                                                               struct slc_gpu_matrix output,
                                                               uint32_t lanes)
{
    const uint32_t rank = output.cols;
    const unsigned long long *refused = sum.words + 2 * rows * rank;
    double *data = static_cast<double *>(output.data);

    for (uint64_t row = ((uint64_t)blockIdx.x * THREADS + threadIdx.x) / lanes; row < output.rows;
         row += (uint64_t)gridDim.x * (THREADS / lanes)) {
        for (uint32_t column = threadIdx.x % lanes; column < rank; column += lanes) {
            const unsigned long long *words = sum.words + 2 * ((first + row) * rank + column);
            const double scale = sum.scale[column];

            const bool known = refused[column] == 0 && scale > 0; /* scale may be NaN */

            data[row * output.pitch + column] =
                known ? value_of(words[0], words[1], scale) : (double)NAN;
        }
    }
}

cudaError_t slc_exact_sum_largest(const struct slc_gpu_matrix *matrix,
                                  enum slc_value_type type,
                                  double *largest,
                                  cudaStream_t stream)
{
    const uint32_t lanes = row_lanes(matrix->cols);
    const dim3 grid(row_blocks(matrix->rows, lanes));
    unsigned long long *bits = reinterpret_cast<unsigned long long *>(largest);
    const cudaError_t error = cudaMemsetAsync(largest, 0, matrix->cols * sizeof *largest, stream);

    if (error != cudaSuccess) {
        return error;
    }
    if (type == SLC_F64) {
        return slc_launch(exact_largest<double>, grid, THREADS, 0, stream,
                          static_cast<const double *>(matrix->data), matrix->rows, matrix->cols,
                          matrix->pitch, lanes, bits);
    }
    return slc_launch(exact_largest<float>, grid, THREADS, 0, stream,
                      static_cast<const float *>(matrix->data), matrix->rows, matrix->cols,
                      matrix->pitch, lanes, bits);
}

cudaError_t slc_exact_sum_begin(const struct slc_exact_sum *sum,
                                uint64_t rows,
                                uint32_t rank,
                                const double *largest,
                                unsigned order,
                                unsigned mode,
                                double magnitude,
                                cudaStream_t stream)
{
    const uint64_t bytes = slc_exact_sum_words(rows, rank) * sizeof *sum->words;
    const cudaError_t error = cudaMemsetAsync(sum->words, 0, bytes, stream);

    return error != cudaSuccess
               ? error
               : slc_launch(exact_scale, (rank + THREADS - 1) / THREADS, THREADS, 0, stream,
                            largest, order, mode, rank, magnitude, sum->scale);
}

cudaError_t slc_exact_sum_add(unsigned long long *to,
                              const unsigned long long *from,
                              uint64_t words,
                              cudaStream_t stream)
{
    return slc_launch(exact_add, row_blocks(words, 1), THREADS, 0, stream, to, from, words);
}

cudaError_t slc_exact_sum_finish(const struct slc_exact_sum *sum,
                                 uint64_t rows,
                                 uint64_t first,
                                 const struct slc_gpu_matrix *output,
                                 cudaStream_t stream)
{
    const uint32_t lanes = row_lanes(output->cols);
    const dim3 grid(row_blocks(output->rows, lanes));

    return slc_launch(exact_finish, grid, THREADS, 0, stream, *sum, rows, first, *output, lanes);
}
