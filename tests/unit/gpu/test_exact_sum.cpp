/* Order-independent sums against sums in 128-bit integers, for any order of threads and any split
 * between devices; and values that are not finite. */
extern "C" {
#include "base/random.h"
#include "slc_test.h"
}
#include "gpu/mttkrp/exact_sum.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

static void must(cudaError_t error, const char *call)
{
    if (error != cudaSuccess) {
        fprintf(stderr, "%s: %s\n", call, cudaGetErrorName(error));
        exit(1);
    }
}
#define MUST(call) must(call, #call)

/* An array in device memory with a copy of the host's data. */
template <typename T> struct on_device {
    T *data;
    size_t count;
    cudaStream_t stream;

    on_device(cudaStream_t stream_, std::vector<T> host) : count(host.size()), stream(stream_)
    {
        void *memory;

        MUST(cudaMalloc(&memory, count * sizeof(T)));
        data = static_cast<T *>(memory);
        copy(data, host.data(), host.data(), cudaMemcpyHostToDevice);
    }
    std::vector<T> get(void) const
    {
        std::vector<T> host(count);

        copy(host.data(), data, host.data(), cudaMemcpyDeviceToHost);
        return host;
    }
    ~on_device()
    {
        MUST(cudaFree(data));
    }
    on_device(const on_device &) = delete;
    on_device &operator=(const on_device &) = delete;

  private:
    void copy(T *to, const T *from, T *host, cudaMemcpyKind kind) const
    {
        MUST(cudaHostRegister(host, count * sizeof(T), cudaHostRegisterDefault));
        MUST(cudaMemcpyAsync(to, from, count * sizeof(T), kind, stream));
        MUST(cudaStreamSynchronize(stream));
        MUST(cudaHostUnregister(host));
    }
};

/* An emulated device with a stream, for its lifetime. */
struct device {
    cudaStream_t stream;

    explicit device(unsigned seed)
    {
        const slc_emulation emulation = {1, (size_t)16 << 20, 100 << 10, 2, seed};

        slc_emulation_set(&emulation);
        MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    }
    ~device()
    {
        MUST(cudaStreamDestroy(stream));
        slc_emulation_reset();
    }
};

/* Element (0, r) += addends of column r; addends in rows of `rank`, one thread each. */
__global__ static void
add_all(const double *addends, uint64_t count, uint32_t rank, uint64_t rows, slc_exact_sum sum)
{
    const uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    const uint32_t column = (uint32_t)(i % rank);
    long long high, low;

    if (i >= count) {
        return;
    }
    if (slc_exact_split(addends[i], sum.scale[column], &high, &low)) {
        atomicAdd(sum.words + 2 * column, (unsigned long long)high);
        atomicAdd(sum.words + 2 * column + 1, (unsigned long long)low);
    } else {
        atomicAdd(sum.words + 2 * rows * rank + column, 1ULL);
    }
}

struct summed {
    std::vector<unsigned long long> words;
    std::vector<double> values;
};

/* Row 0 of the sum of addends in rows of `rank`, for a bound of magnitude * largest[r]; two other
 * rows stay 0. Every `parts`-th addend is another device's. */
static summed sum_up(const std::vector<double> &addends,
                     const std::vector<double> &largest,
                     double magnitude,
                     unsigned parts,
                     unsigned seed)
{
    const uint32_t rank = (uint32_t)largest.size(), pitch = rank + 3;
    const uint64_t rows = 3;
    device d(seed);
    /* Mode 1 of 2 is the output: its largest magnitudes are not read. */
    std::vector<double> both = largest;
    both.insert(both.end(), rank, NAN);
    on_device<double> bounds(d.stream, both), scale(d.stream, std::vector<double>(rank));
    on_device<double> output(d.stream, std::vector<double>(rows * pitch, -7));
    const uint64_t words = slc_exact_sum_words(rows, rank);
    on_device<unsigned long long> total(d.stream, std::vector<unsigned long long>(words, 99));
    on_device<unsigned long long> piece(d.stream, std::vector<unsigned long long>(words, 99));
    const slc_exact_sum sum = {total.data, scale.data}, other = {piece.data, scale.data};
    const slc_gpu_matrix out = {output.data + pitch, rows - 1, rank, pitch, 0};
    const slc_gpu_matrix first = {output.data, 1, rank, pitch, 0};

    MUST(slc_exact_sum_begin(&sum, rows, rank, bounds.data, 2, 1, magnitude, d.stream));
    for (unsigned p = 0; p < parts; p++) {
        std::vector<double> mine;

        for (size_t i = 0; i < addends.size(); i++) {
            mine.push_back(i / rank % parts == p ? addends[i] : 0);
        }
        on_device<double> from(d.stream, mine);
        MUST(slc_exact_sum_begin(&other, rows, rank, bounds.data, 2, 1, magnitude, d.stream));
        MUST(slc_launch(add_all, (unsigned)(mine.size() / 64 + 1), 64, 0, d.stream, from.data,
                        (uint64_t)mine.size(), rank, rows, other));
        MUST(slc_exact_sum_add(sum.words, other.words, words, d.stream));
        MUST(cudaStreamSynchronize(d.stream));
    }
    MUST(slc_exact_sum_finish(&sum, rows, 0, &first, d.stream));
    MUST(slc_exact_sum_finish(&sum, rows, 1, &out, d.stream));
    summed result = {total.get(), output.get()};
    for (uint64_t row = 0; row < rows; row++) {
        for (uint32_t c = 0; c < pitch; c++) {
            const double value = result.values[row * pitch + c];

            /* Padding is unchanged; rows without addends are 0 except in columns without a
             * value. */
            CU_ASSERT(c < rank ? row == 0 || value == 0 || std::isnan(value) : value == -7);
        }
    }
    result.values.resize(rank);
    return result;
}

/* The double nearest to a sum of multiples of 2^-80 below 2^40. */
__extension__ typedef __int128 wide;
static double rounded(wide sum)
{
    const bool negative = sum < 0;
    unsigned long long high, kept;
    int drop = 0;

    sum = negative ? -sum : sum;
    while ((sum >> drop) >> 53 != 0) {
        drop++;
    }
    kept = (unsigned long long)(sum >> drop);
    const wide rest = sum - ((wide)kept << drop);
    const wide half = drop == 0 ? 1 : (wide)1 << (drop - 1);
    high = kept + (rest > half || (rest == half && drop > 0 && kept % 2 == 1));
    return ldexp(negative ? -(double)high : (double)high, drop - 80);
}

/* Sums of addends of many sizes, of one sign and with cancellation. */
static void right(void)
{
    const uint32_t rank = 5;
    const std::vector<double> largest(rank, 0x1p-20);
    std::vector<double> addends;
    wide want[rank] = {};
    double bound = 0;

    for (unsigned i = 0; i < 300 * rank; i++) {
        /* The numbers are multiples of 2^-80 below 2^26 that have 30 significant bits. A double and
         * an integer of 128 bits represent them exactly. */
        const uint64_t drawn = slc_random_u64(slc_test_seed(), 0, i);
        const wide number = (wide)(drawn & 0x3fffffff) << ((drawn >> 40 & 31) + 44);
        const bool negative = i % rank < 3 && (drawn >> 50 & 1) != 0;

        addends.push_back((negative ? -1 : 1) * ldexp((double)number, -80));
        want[i % rank] += negative ? -number : number;
        bound += fabs(addends.back());
    }
    /* Column 1 cancels beyond the precision of f64. */
    for (unsigned r = 0; r < rank; r++) {
        const double last = r == 1 ? -rounded(want[r]) : 0;

        addends.push_back(last);
        want[r] += (wide)(last * 0x1p60) << 20;
        bound += fabs(last);
    }
    const summed once = sum_up(addends, largest, bound * 0x1p20, 1, 1);
    for (unsigned r = 0; r < rank; r++) {
        CU_ASSERT_EQUAL(once.values[r], rounded(want[r]));
    }
    for (unsigned seed = 2; seed < 5; seed++) {
        const summed again = sum_up(addends, largest, bound * 0x1p20, seed - 1, seed);

        CU_ASSERT(again.words == once.words);
        CU_ASSERT(memcmp(again.values.data(), once.values.data(), rank * sizeof(double)) == 0);
    }
}

/* Sums whose second word has bits that an f64 sum would lose. */
static void both_words(void)
{
    const std::vector<double> largest = {1, 1, 1, 1, 1, 1};
    const std::vector<double> addends = {
        1,        1,      -1,      3, 0x1p52,  0.5,     -1, 0x1p-80, 0x1p-80,
        -0x1p-40, 0x1p-1, 0x1p-54, 0, 0x1p-80, 0x1p-54, 0,  0,       0x1p-89,
    };
    const summed result = sum_up(addends, largest, 0x1p54, 1, 1);

    CU_ASSERT_EQUAL(result.values[0], 0);
    CU_ASSERT_EQUAL(result.values[1], 1);
    CU_ASSERT_EQUAL(result.values[2], -1); /* bits below 2^(56 - 93) are dropped */
    CU_ASSERT_EQUAL(result.values[3], 3);
    CU_ASSERT_EQUAL(result.values[4], 0x1p52); /* a tie is rounded to even */
    CU_ASSERT_EQUAL(result.values[5], 0.5);

    const summed finer = sum_up(addends, {1, 1, 1, 1, 0x1p60, 1}, 4, 1, 1);

    CU_ASSERT_EQUAL(finer.values[0], 0);
    CU_ASSERT_EQUAL(finer.values[1], 1);
    CU_ASSERT_EQUAL(finer.values[2], -(1 - 0x1p-53)); /* above the tie by 2^-80 */
    CU_ASSERT_EQUAL(finer.values[3], 3 - 0x1p-40);
    CU_ASSERT_EQUAL(finer.values[5], 0.5 + 0x1p-53); /* above the tie by 2^-89 */
}

/* Magnitudes at the limits of f64, and bounds of 0. */
static void extreme(void)
{
    const double huge = 0x1.fp1023, tiny = 0x1p-960;
    const std::vector<double> addends = {huge, tiny, 0, huge,  huge, 0x1p-1000, //
                                         0,    tiny, 0, -huge, huge, 0};
    const summed result = sum_up(addends, {huge, tiny, 0, huge, huge, 0x1p-1000}, 8, 2, 3);

    CU_ASSERT_EQUAL(result.values[0], huge);
    CU_ASSERT_EQUAL(result.values[1], 2 * tiny);
    CU_ASSERT_EQUAL(result.values[2], 0);
    CU_ASSERT_EQUAL(result.values[3], 0);
    CU_ASSERT_EQUAL(result.values[4], INFINITY);
    CU_ASSERT_EQUAL(result.values[5], 0); /* below the smallest representable sum */
}

/* Columns without a value are entirely NaN; other columns are not affected. */
static void not_finite(void)
{
    const std::vector<double> addends = {1, 1, 1, INFINITY, NAN, 64, 1};
    const summed result = sum_up(addends, {1, INFINITY, NAN, 1, 1, 1, 1}, 4, 1, 1);

    CU_ASSERT_EQUAL(result.values[0], 1);
    for (unsigned r = 1; r < 6; r++) {
        CU_ASSERT(std::isnan(result.values[r])); /* the last column exceeds its bound */
    }
    CU_ASSERT_EQUAL(result.values[6], 1);
    CU_ASSERT(std::isnan(sum_up({1}, {1}, INFINITY, 1, 1).values[0]));
    CU_ASSERT_EQUAL(slc_exact_sum_words(3, 4), 28);
    CU_ASSERT_EQUAL(slc_exact_sum_words(UINT64_MAX / 4, 4), UINT64_MAX);
}

template <typename T> static void check_largest(enum slc_value_type type, uint32_t rank)
{
    const uint64_t rows = 700 / rank + 2;
    const uint32_t pitch = rank + 1;
    std::vector<T> numbers(rows * pitch, (T)1e9);
    std::vector<double> want(rank, 0);
    device d(rank);

    for (uint64_t i = 0; i < rows; i++) {
        for (uint32_t c = 0; c < rank; c++) {
            numbers[i * pitch + c] = (T)(slc_random_f64(slc_test_seed(), i, c) - 0.5);
            want[c] = fmax(want[c], fabs((double)numbers[i * pitch + c]));
        }
    }
    if (rank > 2) {
        numbers[pitch] = (T)-INFINITY;
        numbers[0 + 2] = (T)NAN;
        numbers[pitch + 2] = (T)INFINITY;
    }
    on_device<T> data(d.stream, numbers);
    on_device<double> largest(d.stream, std::vector<double>(rank, 5));
    const slc_gpu_matrix matrix = {data.data, rows, rank, pitch, 0};

    MUST(slc_exact_sum_largest(&matrix, type, largest.data, d.stream));
    const std::vector<double> got = largest.get();
    for (uint32_t c = 0; c < rank; c++) {
        CU_ASSERT(rank > 2 && c == 2   ? std::isnan(got[c])
                  : rank > 2 && c == 0 ? got[c] == INFINITY
                                       : got[c] == want[c]);
    }
}

static void largest_magnitudes(void)
{
    for (uint32_t rank : {1U, 2U, 3U, 16U, 33U, 70U}) {
        check_largest<double>(SLC_F64, rank);
        check_largest<float>(SLC_F32, rank);
    }
}

SLC_SUITE(exact_sum)
{
    static const struct slc_test tests[] = {
        {"sums are rounded once, the same in any order on any number of devices", right},
        {"both words count", both_words},
        {"the ends of f64", extreme},
        {"what is not finite stays in its column", not_finite},
        {"largest magnitudes of columns", largest_magnitudes},
    };

    return slc_test_main("gpu exact sums", tests, SLC_COUNT(tests), argc, argv);
}
