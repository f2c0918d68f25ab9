/* With `deterministic` a decomposition has the same bits for any threads, I/O method, codec, block
 * size and budget, in f64 and f32; without it the results agree within rounding. */
#include "cp_fixture.h"
#include "slc_test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { RANK = 5, ITERATIONS = 3, TILE_NNZ = 10000 };

/* A tensor of five tiles, not full because full ones are slow to make: each has a fifth of the
 * rows of mode 0. */
static void make_tensor(struct fixture_tensor *tensor)
{
    static const uint64_t dims[4] = {1000, 40, 3, 70};

    fixture_random(tensor, 4, dims, 45000, slc_test_seed());
    for (unsigned t = 0; t < 3; t++) {
        tensor->tile_nnz[t] = TILE_NNZ;
    }
}

static void
decompose(const char *path, const struct slc_plan_request *request, struct slc_cp_result *result)
{
    struct slc_cp_options options = fixture_options(RANK, ITERATIONS);
    struct fixture_run run;
    struct slc_error err = SLC_ERROR_INIT;

    options.seed = 5;
    options.deterministic = request->deterministic;
    memset(result, 0, sizeof *result);
    SLC_ASSERT_OK(fixture_open(&run, path, request, &err), &err);
    SLC_ASSERT_OK(
        slc_cp_run(&run.store, run.stream, run.backend, &run.plan, &options, result, &err), &err);
    fixture_close(&run);
}

static bool same_bits(const struct slc_cp_result *a, const struct slc_cp_result *b)
{
    bool same = memcmp(a->lambda, b->lambda, RANK * sizeof(double)) == 0 && a->fit == b->fit;

    for (unsigned n = 0; n < a->order; n++) {
        const struct slc_matrix *factor = &a->factors[n];

        same = same && memcmp(factor->buffer.data, b->factors[n].buffer.data,
                              factor->rows * factor->pitch * slc_value_bytes(factor->type)) == 0;
    }
    return same;
}

static bool io_works(const char *path, enum slc_io_kind kind)
{
    struct slc_plan_request request = fixture_request(RANK);
    struct fixture_run run;
    bool works;

    request.io = kind;
    works = fixture_open(&run, path, &request, NULL) == SLC_OK;
    fixture_close(&run);
    return works;
}

static void compare_all(enum slc_value_type precision)
{
    static const enum slc_codec codecs[] = {SLC_CODEC_PACKED, SLC_CODEC_LZ4, SLC_CODEC_BLCO};
    static const enum slc_io_kind kinds[] = {SLC_IO_PREAD, SLC_IO_MMAP, SLC_IO_URING};
    /* Block sizes for one tile, and for about two tiles. */
    static const uint64_t block_bytes[] = {4096, UINT64_C(256) << 10};
    struct fixture_tensor tensor;
    struct slc_cp_result first = {0};

    make_tensor(&tensor);
    for (size_t s = 0; s < SLC_COUNT(codecs) * SLC_COUNT(block_bytes); s++) {
        char path[512], name[32];

        snprintf(name, sizeof name, "repeat%zu", s);
        fixture_store(&tensor, slc_test_folder(), name, codecs[s / 2], block_bytes[s % 2], path);
        for (size_t v = 0; v < SLC_COUNT(kinds) * 3; v++) {
            struct slc_plan_request request = fixture_request(RANK);
            struct slc_cp_result result;

            /* A third of the variants of each store: every method with every number of threads over
             * all stores. Under ThreadSanitizer one variant of each store: each method and each
             * number of threads. */
            if (slc_test_threads_only() ? (v + 4 * s) % 9 != 0
                                        : slc_test_quick() && (v + s) % 3 != 0) {
                continue;
            }
            request.deterministic = true;
            request.precision = precision;
            request.threads = 1 + (unsigned)(v % 3);
            request.io = kinds[v / 3];
            request.cache = (v + s) % 2 == 0;
            request.slots = v % 2 == 0 ? 2 : 0;
            if (!io_works(path, request.io)) {
                continue;
            }
            decompose(path, &request, &result);
            if (first.lambda == NULL) {
                first = result;
                continue;
            }
            CU_ASSERT_TRUE(same_bits(&first, &result));
            slc_cp_result_destroy(&result);
        }
    }
    slc_cp_result_destroy(&first);
    fixture_destroy(&tensor);
}

static void double_precision_repeats(void)
{
    compare_all(SLC_F64);
}

static void single_precision_repeats(void)
{
    compare_all(SLC_F32);
}

static void otherwise_to_rounding(void)
{
    struct fixture_tensor tensor;
    struct slc_plan_request request = fixture_request(RANK);
    struct slc_cp_result first, result;
    char path[512];

    make_tensor(&tensor);
    fixture_store(&tensor, slc_test_folder(), "rounding", SLC_CODEC_PACKED, 4096, path);
    decompose(path, &request, &first);
    for (unsigned threads = 1; threads <= 4; threads++) {
        request.threads = threads;
        request.schedule = threads % 2 == 0 ? SLC_SCHEDULE_LARGEST : SLC_SCHEDULE_FILE;
        decompose(path, &request, &result);
        CU_ASSERT_TRUE(fabs(first.fit - result.fit) <= 1e-12);
        for (unsigned r = 0; r < RANK; r++) {
            CU_ASSERT_TRUE(fabs(first.lambda[r] - result.lambda[r]) <= 1e-9 * first.lambda[r]);
        }
        slc_cp_result_destroy(&result);
    }
    slc_cp_result_destroy(&first);
    fixture_destroy(&tensor);
}

SLC_SUITE(cp_repeat)
{
    static const struct slc_test tests[] = {
        {"the same bits in f64", double_precision_repeats},
        {"the same bits in f32", single_precision_repeats},
        {"the same to rounding without", otherwise_to_rounding},
    };

    return slc_test_main("engine: cp_repeat", tests, SLC_COUNT(tests), argc, argv);
}
