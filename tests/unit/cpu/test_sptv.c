/* SpTV in memory, and sums over fiber runs, against the oracle.
 *
 * Identities: fibers of at most SLC_SPTV_SHORT_NNZ nonzeros are summed in order, so they have the
 * oracle's bits; longer ones agree within rounding, and with small integers in all bits. Number of
 * threads, schedule, dropping unused indices and empty fibers change no bit; for sums over runs,
 * neither does the instruction set. */
#include "base/error/fault.h"
#include "base/random.h"
#include "cpu/cpu.h"
#include "cpu/fiber/fiber_dots.h"
#include "cpu/fiber/sptv.h"
#include "cpu/fiber/sptv_block.h"
#include "cpu/kernel/kernels.h"
#include "cpu/reference/reference.h"
#include "fake_tiles.h"
#include "naive_products.h"
#include "slc_test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const sets[] = {"portable", "avx2", "avx512", "neon"};

/* Fibers, a vector, and the oracle's sums. */
struct problem {
    struct slc_sptv_source source;
    uint64_t nnz;
    uint64_t *begin;
    uint32_t *index;
    double *values;
    double *vector;
    double *want, *magnitude;
};

/* Lengths of fibers: mean 0 makes most fibers empty. */
struct shape {
    uint64_t fibers, length;
    unsigned mean;
    uint64_t giants; /* number of fibers that are a thousand times longer */
    bool narrow;     /* values are exact in f32 */
    bool integers;
    bool sparse; /* one index in 16 occurs */
    bool full;   /* no fiber is empty */
    bool few;    /* the list for few nonzeros is expected if `full` is set */
};

static void *must(void *memory)
{
    if (memory == NULL) {
        abort();
    }
    return memory;
}

static double value_of(const struct shape *shape, uint64_t stream, uint64_t i)
{
    const double uniform = slc_random_f64(slc_test_seed(), stream, i);

    if (shape->integers) {
        return (double)((int)(uniform * 7.0) - 3);
    }
    return shape->narrow ? (double)(float)(2.0 * uniform - 1.0) : 2.0 * uniform - 1.0;
}

static uint64_t length_of(const struct shape *shape, uint64_t f)
{
    const uint64_t most = 2 * shape->mean + 1;
    const uint64_t length = slc_random_below(slc_test_seed(), 31, f, most);

    if (shape->full) {
        return 1 + length % (2 * shape->mean);
    }
    if (shape->mean == 0) {
        return slc_random_below(slc_test_seed(), 32, f, 10) == 0 ? 1 : 0;
    }
    return f % (shape->fibers / (shape->giants + 1) + 1) == 1 && shape->giants > 0 ? 1000 * length
                                                                                   : length;
}

/* The oracle's result over the nonzeros as a matrix of fibers and indices. */
static void ask_oracle(struct problem *problem, const struct shape *shape)
{
    const uint64_t nnz = problem->nnz;
    uint64_t *row = must(calloc(nnz + 1, sizeof *row));
    uint64_t *column = must(calloc(nnz + 1, sizeof *column));
    uint64_t *order = must(calloc(nnz + 1, sizeof *order));
    double *values = must(calloc(nnz + 1, sizeof *values));
    double *vector = must(calloc(shape->length, sizeof *vector));
    struct slc_coo_view view = {
        .order = 2, .nnz = nnz, .coords = {row, column}, .values = problem->values};

    for (uint64_t f = 0; f < shape->fibers; f++) {
        for (uint64_t i = problem->begin[f]; i < problem->begin[f + 1]; i++) {
            row[i] = f;
            column[i] = problem->index[i];
            order[i] = i;
            values[i] = fabs(problem->values[i]);
        }
    }
    for (uint64_t i = 0; i < shape->length; i++) {
        vector[i] = fabs(problem->vector[i]);
    }
    slc_reference_ttv(&view, 1, problem->vector, order, row, problem->want);
    view.values = values;
    slc_reference_ttv(&view, 1, vector, order, row, problem->magnitude);
    free(row);
    free(column);
    free(order);
    free(values);
    free(vector);
}

static void create(struct problem *problem, const struct shape *shape)
{
    const uint64_t used = shape->sparse ? shape->length / 16 + 1 : shape->length;

    problem->begin = must(calloc(shape->fibers + 1, sizeof(uint64_t)));
    for (uint64_t f = 0; f < shape->fibers; f++) {
        problem->begin[f + 1] = problem->begin[f] + length_of(shape, f);
    }
    problem->nnz = problem->begin[shape->fibers];
    problem->index = must(calloc(problem->nnz + 1, sizeof(uint32_t)));
    problem->values = must(calloc(problem->nnz + 1, sizeof(double)));
    problem->vector = must(calloc(shape->length, sizeof(double)));
    problem->want = must(calloc(shape->fibers + 1, sizeof(double)));
    problem->magnitude = must(calloc(shape->fibers + 1, sizeof(double)));
    for (uint64_t i = 0; i < problem->nnz; i++) {
        const uint64_t index = slc_random_below(slc_test_seed(), 33, i, used);

        problem->index[i] = (uint32_t)(shape->sparse ? index * 16 % shape->length : index);
        problem->values[i] = value_of(shape, 34, i);
    }
    for (uint64_t i = 0; i < shape->length; i++) {
        problem->vector[i] = value_of(shape, 35, i);
    }
    ask_oracle(problem, shape);
    problem->source = (struct slc_sptv_source){shape->length, shape->fibers, problem->begin,
                                               problem->index, problem->values};
}

static void destroy(struct problem *problem)
{
    free(problem->begin);
    free(problem->index);
    free(problem->values);
    free(problem->vector);
    free(problem->want);
    free(problem->magnitude);
}

static uint64_t count_wrong(const struct problem *problem, bool integers, const double *sums)
{
    uint64_t wrong = 0;

    for (uint64_t f = 0; f < problem->source.fibers; f++) {
        const bool exact =
            integers || problem->begin[f + 1] - problem->begin[f] <= SLC_SPTV_SHORT_NNZ;
        const double limit = exact ? 0 : 0x1p-46 * problem->magnitude[f];

        wrong += !(fabs(sums[f] - problem->want[f]) <= limit);
    }
    return wrong;
}

static bool is_few(const struct slc_sptv *sptv)
{
    return sptv->few.memory.data != NULL;
}

/* All ways to compute one problem. */
static void check_shape(const struct shape *shape)
{
    const uint64_t bytes = shape->fibers * sizeof(double);
    double *first = must(calloc(shape->fibers + 1, sizeof *first));
    double *sums = must(calloc(shape->fibers + 1, sizeof *sums));
    struct problem problem;
    bool is_first = true;

    create(&problem, shape);
    for (unsigned way = 0; way < 6; way++) {
        const struct slc_sptv_options options = {(way & 1) != 0 ? SLC_SPTV_UNUSED_DROP
                                                                : SLC_SPTV_UNUSED_KEEP,
                                                 (way & 2) != 0 ? SLC_SPTV_FILE : SLC_SPTV_LARGEST};
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_sptv sptv;

        SLC_ASSERT_OK(slc_sptv_create(&sptv, &problem.source, &options, &err), &err);
        CU_ASSERT_EQUAL(sptv.nnz, problem.nnz);
        CU_ASSERT_EQUAL(sptv.shortened, (way & 1) != 0);
        CU_ASSERT(!shape->full || is_few(&sptv) == (shape->few && (way & 1) == 0));
        CU_ASSERT(is_few(&sptv) || sptv.steps * SLC_SPTV_LANES >= problem.nnz);
        CU_ASSERT(is_few(&sptv) || !shape->narrow || sptv.value_type == SLC_F32);
        CU_ASSERT(slc_sptv_moved_bytes(&sptv) >= 6 * problem.nnz);
        for (unsigned workers = 1; workers <= 5; workers += 2) {
            memset(sums, 0xff, bytes);
            bool is_finite = false;

            SLC_ASSERT_OK(slc_sptv_multiply(&sptv, problem.vector, sums, workers, &is_finite, &err),
                          &err);
            CU_ASSERT(is_finite);
            if (is_first) {
                memcpy(first, sums, bytes);
                CU_ASSERT_EQUAL(count_wrong(&problem, shape->integers, sums), 0);
                is_first = false;
            }
            CU_ASSERT_EQUAL(memcmp(first, sums, bytes), 0);
        }
        slc_sptv_destroy(&sptv);
    }
    destroy(&problem);
    free(first);
    free(sums);
}

static void test_against_oracle(void)
{
    static const struct shape shapes[] = {
        {1, 1, 0, 0, true, true, false, false, false},
        {1, 100000, 500, 0, false, false, false, false, false},
        {7, 40, 3, 0, false, false, false, false, false},
        {8, 40, 3, 0, true, false, true, false, false},
        {30000, 300, 2, 0, true, true, false, false, false},
        {30000, 70000, 2, 3, false, false, true, false, false},
        {100000, 500, 0, 0, false, false, false, false, false},
        {3000, 65536, 40, 5, true, false, false, false, false},
        {3000, 65537, 40, 5, false, true, false, false, false},
        {200000, 1000, 1, 0, false, false, true, false, false},
        {50, 2000, 700, 0, true, false, false, false, false},
    };

    for (size_t i = 0; i < SLC_COUNT(shapes); i++) {
        check_shape(&shapes[i]);
    }
}

/* A list of few nonzeros has the bits of lanes, including +0 for -0; long fibers, empty ones and
 * more nonzeros use lanes. */
static void test_few(void)
{
    static const struct shape shapes[] = {
        {.fibers = 1, .length = 3, .mean = 1, .full = true, .few = true},
        {.fibers = 6, .length = 4, .mean = 1, .integers = true, .full = true, .few = true},
        {.fibers = 16, .length = 90000, .mean = 2, .sparse = true, .full = true, .few = true},
        {.fibers = 128, .length = 7, .mean = 1, .integers = true, .full = true, .few = true},
        {.fibers = 4, .length = 30, .mean = 32, .narrow = true, .full = true, .few = true},
        {.fibers = 257, .length = 5, .mean = 1, .full = true},
        {.fibers = 12, .length = 500, .mean = 100, .full = true},
        {.fibers = 10, .length = 5, .mean = 0, .integers = true},
    };

    for (size_t i = 0; i < SLC_COUNT(shapes); i++) {
        check_shape(&shapes[i]);
    }
}

static void test_nothing(void)
{
    const uint64_t begin[] = {0};
    const struct slc_sptv_source source = {.length = 5, .begin = begin};
    const struct slc_sptv_options options = {SLC_SPTV_UNUSED_AUTO, SLC_SPTV_LARGEST};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_sptv sptv;
    double vector[5] = {0};
    bool is_finite;

    SLC_ASSERT_OK(slc_sptv_create(&sptv, &source, &options, &err), &err);
    SLC_ASSERT_OK(slc_sptv_multiply(&sptv, vector, vector, 2, &is_finite, &err), &err);
    CU_ASSERT_EQUAL(sptv.block_count, 0);
    slc_sptv_destroy(&sptv);
    slc_sptv_destroy(&sptv);
}

/* Infinite numbers, NaN and sums beyond f64 are reported, by lists and by lanes. */
static void test_not_finite(void)
{
    static const uint64_t begin[] = {0, 1, 3, 6};
    static const uint32_t index[] = {0, 1, 2, 0, 1, 2};
    static const double values[] = {1, 1, 1, 2, 2, 2};
    static const double vectors[][3] = {{1, INFINITY, 1}, {NAN, 0, 0}, {1e308, 1e308, 1e308}};
    const struct slc_sptv_source source = {3, 3, begin, index, values};

    for (enum slc_sptv_unused unused = SLC_SPTV_UNUSED_AUTO; unused <= SLC_SPTV_UNUSED_DROP;
         unused++) {
        const struct slc_sptv_options options = {unused, SLC_SPTV_AUTO};
        const double ones[3] = {1, 1, 1};
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_sptv sptv;
        double sums[3];
        bool is_finite;

        SLC_ASSERT_OK(slc_sptv_create(&sptv, &source, &options, &err), &err);
        for (size_t v = 0; v < SLC_COUNT(vectors); v++) {
            SLC_ASSERT_OK(slc_sptv_multiply(&sptv, vectors[v], sums, 1, &is_finite, &err), &err);
            CU_ASSERT_FALSE(is_finite);
        }
        SLC_ASSERT_OK(slc_sptv_multiply(&sptv, ones, sums, 1, &is_finite, &err), &err);
        CU_ASSERT(is_finite && sums[2] == 6);
        slc_sptv_destroy(&sptv);
    }
}

/* Blocks in order, all ordered by size, or only those above twice the mean. */
static void test_schedule(void)
{
    enum { FIBERS = 100000, GIANT = 50000, GIANT_NNZ = 60000 };
    uint64_t *begin = must(calloc(FIBERS + 1, sizeof *begin));
    uint32_t *index = must(calloc(FIBERS + GIANT_NNZ, sizeof *index));
    double *values = must(calloc(FIBERS + GIANT_NNZ, sizeof *values));
    const struct slc_sptv_source source = {1, FIBERS, begin, index, values};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_sptv sptv;

    for (uint64_t f = 0; f < FIBERS; f++) {
        begin[f + 1] = begin[f] + (f == GIANT ? GIANT_NNZ : 1);
    }
    for (enum slc_sptv_schedule schedule = 0; schedule <= SLC_SPTV_FILE; schedule++) {
        const struct slc_sptv_options options = {SLC_SPTV_UNUSED_KEEP, schedule};
        uint64_t out_of_order = 0;

        SLC_ASSERT_OK(slc_sptv_create(&sptv, &source, &options, &err), &err);
        for (uint64_t b = 1; b < sptv.block_count; b++) {
            out_of_order += sptv.schedule[b] < sptv.schedule[b - 1];
        }
        CU_ASSERT(sptv.block_count > 10);
        CU_ASSERT_EQUAL(sptv.schedule[0] == 0, schedule == SLC_SPTV_FILE);
        CU_ASSERT(schedule != SLC_SPTV_FILE || out_of_order == 0);
        CU_ASSERT(schedule != SLC_SPTV_AUTO || out_of_order == 1);
        slc_sptv_destroy(&sptv);
    }
    free(begin);
    free(index);
    free(values);
}

/* A vector that fits in the cache is unchanged; a much larger, mostly unused one is compressed. */
static void test_choice(void)
{
    const struct shape near = {1000, 5000, 3, 0, false, false, true, false, false};
    const struct slc_sptv_options options = {SLC_SPTV_UNUSED_AUTO, SLC_SPTV_LARGEST};
    struct slc_error err = SLC_ERROR_INIT;
    struct problem problem;
    struct slc_sptv sptv;

    create(&problem, &near);
    SLC_ASSERT_OK(slc_sptv_create(&sptv, &problem.source, &options, &err), &err);
    CU_ASSERT_FALSE(sptv.shortened);
    slc_sptv_destroy(&sptv);
    problem.source.length = slc_cpu_cache_bytes();
    SLC_ASSERT_OK(slc_sptv_create(&sptv, &problem.source, &options, &err), &err);
    CU_ASSERT(sptv.shortened && sptv.used <= 5000 / 16 + 1 && sptv.index_bytes == 2);
    slc_sptv_destroy(&sptv);
    problem.source.length = (UINT64_C(1) << 31) + 1;
    SLC_ASSERT_FAILS(slc_sptv_create(&sptv, &problem.source, &options, &err), SLC_ERR_UNSUPPORTED,
                     &err, "a vector of 2147483649 numbers");
    destroy(&problem);
}

static void fail_memory(const struct shape *shape, enum slc_sptv_unused unused)
{
    const struct slc_sptv_options options = {unused, SLC_SPTV_LARGEST};
    struct problem problem;

    create(&problem, shape);
    for (uint64_t k = 1;; k++) {
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_sptv sptv;
        enum slc_status status;
        bool over;

        slc_fault_arm(SLC_FAULT_ALLOCATION, k);
        status = slc_sptv_create(&sptv, &problem.source, &options, &err);
        over = slc_fault_seen(SLC_FAULT_ALLOCATION) < k;
        slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
        if (over) {
            SLC_ASSERT_OK(status, &err);
            slc_sptv_destroy(&sptv);
            break;
        }
        CU_ASSERT_EQUAL(status, SLC_ERR_MEMORY);
        CU_ASSERT_EQUAL(sptv.index.bytes + sptv.place.bytes + sptv.few.memory.bytes, 0);
    }
    destroy(&problem);
}

static void test_failing_memory(void)
{
    const struct shape many = {3000, 5000, 3, 2, false, false, true, false, false};
    const struct shape few = {.fibers = 20, .length = 30, .mean = 2, .full = true};

    fail_memory(&many, SLC_SPTV_UNUSED_DROP);
    fail_memory(&few, SLC_SPTV_UNUSED_AUTO);
}

/* Sums over the runs of a tile's chunks, added by fiber. */
static void check_dots(unsigned mean, bool integers)
{
    static const uint64_t dims[] = {40, 3000, 7};
    struct fake_tensor tensor;
    struct slc_coo_view view;
    uint64_t order[5000], fiber[5000];
    double vector[3000], want[5000], first[5000];
    bool is_first = true;

    fake_tensor_random(&tensor, 3, dims, 5000, integers, 9);
    tensor.tile_nnz = 1500;
    tensor.chunk_nnz = 1024;
    fake_tensor_runs(&tensor, 1, mean, 5);
    fake_tensor_view(&tensor, &view);
    for (uint64_t i = 0; i < dims[1]; i++) {
        vector[i] = floor(10 * slc_random_f64(slc_test_seed(), 36, i)) - 5;
        vector[i] += integers ? 0 : 0.1;
    }
    (void)slc_reference_fibers(&view, 1, order, fiber);
    for (size_t s = 0; s < SLC_COUNT(sets); s++) {
        double sums[SLC_CHUNK_NNZ], total = 0, all[5000];
        uint64_t runs = 0;
        struct fake_tile tile;

        if (!slc_cpu_force_instruction_set(sets[s])) {
            continue;
        }
        fake_tile_create(&tile, &tensor, SLC_F64);
        for (uint64_t t = 0; t < fake_tensor_tiles(&tensor); t++) {
            struct slc_fiber_view fibers = {.nnz = 1};
            struct slc_error err = SLC_ERROR_INIT;

            fake_tile_open(&tile, t);
            while (fibers.nnz > 0) {
                SLC_ASSERT_OK(tile.view.next_fibers(&tile.view, SLC_CHUNK_NNZ, &fibers, &err),
                              &err);
                slc_fiber_dots(&fibers, vector + tile.view.corner[1], sums);
                for (uint32_t r = 0; fibers.nnz > 0 && r < fibers.runs; r++) {
                    total += sums[r];
                    all[runs++] = sums[r];
                }
            }
        }
        fake_tile_destroy(&tile);
        if (is_first) {
            double expected = 0;

            slc_reference_ttv(&view, 1, vector, order, fiber, want);
            for (uint64_t f = 0; f <= fiber[4999]; f++) {
                expected += want[f];
            }
            CU_ASSERT(fabs(total - expected) <= (integers ? 0 : 1e-9));
            memcpy(first, all, runs * sizeof *all);
        }
        CU_ASSERT_EQUAL(memcmp(first, all, runs * sizeof *all), 0);
        is_first = false;
    }
    CU_ASSERT(slc_cpu_force_instruction_set(NULL));
    fake_tensor_free(&tensor);
}

static void test_dots(void)
{
    check_dots(2, true);
    check_dots(2, false);
    check_dots(60, false);
    check_dots(1, true);
}

static const struct slc_test tests[] = {
    {"fibers in memory against the oracle", test_against_oracle},
    {"few nonzeros", test_few},
    {"no fibers", test_nothing},
    {"sums that are not finite", test_not_finite},
    {"the order of blocks", test_schedule},
    {"when the vector is shortened", test_choice},
    {"failing memory", test_failing_memory},
    {"sums over runs against the oracle", test_dots},
};

SLC_SUITE(sptv)
{
    return slc_test_main("sptv", tests, SLC_COUNT(tests), argc, argv);
}
