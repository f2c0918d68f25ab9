/* Random tensors match their options, for any threads, memory and output. */
#include "base/hash.h"
#include "base/random.h"
#include "convert/export/export.h"
#include "convert/generate/feistel.h"
#include "convert/generate/generate.h"
#include "convert/generate/random_tensor.h"
#include "convert/generate/zipf.h"
#include "slc_test.h"
#include "storage/manifest/store.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One folder for the whole program: the harness creates a new one at every call. */
static const char *test_folder(void)
{
    static const char *folder;

    if (folder == NULL) {
        folder = slc_test_folder();
    }
    return folder;
}

static const char *in_folder(const char *name)
{
    static char paths[4][700];
    static unsigned next;
    char *path = paths[next++ % 4];

    snprintf(path, sizeof paths[0], "%s/%s", test_folder(), name);
    return path;
}

static void test_permutations(void)
{
    static const uint64_t lengths[] = {1, 2, 3, 5, 16, 17, 1000, 1024, 1025, 100000};
    uint64_t seed = slc_test_seed();
    size_t n;
    uint64_t i;

    for (n = 0; n < SLC_COUNT(lengths); n++) {
        struct slc_feistel permutation;
        unsigned char *seen = calloc(lengths[n], 1);
        uint64_t wrong = 0, fixed = 0;

        slc_feistel_init(&permutation, lengths[n], seed, n);
        for (i = 0; i < lengths[n]; i++) {
            slc_u128 to = slc_feistel_apply(&permutation, i);

            wrong += to >= lengths[n] || seen[(uint64_t)to]++;
            fixed += to == i;
        }
        CU_ASSERT_EQUAL(wrong, 0);
        CU_ASSERT(lengths[n] < 100 || fixed < 20);
        free(seen);
    }
    {
        struct slc_feistel whole;
        slc_u128 a, b;

        slc_feistel_init(&whole, 0, seed, 0); /* 2^128 */
        a = slc_feistel_apply(&whole, 0);
        b = slc_feistel_apply(&whole, ~(slc_u128)0);
        CU_ASSERT(a != b);
        CU_ASSERT(a >> 64 != 0);
    }
}

/* Observed frequencies against 1 / (i + 1)^s, by chi-square over ten ids. */
static void test_zipf(void)
{
    static const double exponents[] = {0, 0.5, 1, 1.0000001, 1.5, 3};
    uint64_t seed = slc_test_seed();
    enum { DRAWS = 200000, LENGTH = 10 };
    size_t e;
    unsigned i;

    for (e = 0; e < SLC_COUNT(exponents); e++) {
        struct slc_zipf zipf;
        double counts[LENGTH] = {0};
        double total = 0, chi = 0;
        uint64_t j, wrong = 0;

        slc_zipf_init(&zipf, LENGTH, exponents[e]);
        for (j = 0; j < DRAWS; j++) {
            uint64_t id = slc_zipf_draw(&zipf, seed, 256, 16, j);

            wrong += id >= LENGTH;
            counts[id < LENGTH ? id : 0]++;
        }
        CU_ASSERT_EQUAL(wrong, 0);
        for (i = 0; i < LENGTH; i++) {
            total += pow(i + 1, -exponents[e]);
        }
        for (i = 0; i < LENGTH; i++) {
            double want = DRAWS * pow(i + 1, -exponents[e]) / total;

            chi += (counts[i] - want) * (counts[i] - want) / want;
        }
        CU_ASSERT(chi < 40); /* with 9 degrees of freedom, chi exceeds 40 once in 130,000 times */
    }
    {
        static const uint64_t lengths[] = {1, 2, UINT64_C(1) << 40, UINT64_C(1) << 62};
        size_t n;

        for (n = 0; n < SLC_COUNT(lengths); n++) {
            struct slc_zipf zipf;
            uint64_t j, wrong = 0;

            slc_zipf_init(&zipf, lengths[n], n % 2 == 0 ? 1.1 : 0.3);
            for (j = 0; j < 10000; j++) {
                wrong += slc_zipf_draw(&zipf, seed, 256, 16, j) >= lengths[n];
            }
            CU_ASSERT_EQUAL(wrong, 0);
        }
    }
}

static struct slc_generate_options base_options(const char *output)
{
    return (struct slc_generate_options){.output = output,
                                         .order = 3,
                                         .dims = {300, 20, 4000},
                                         .nnz = 50000,
                                         .zipf_exponent = 1.1,
                                         .seed = slc_test_seed(),
                                         .codec = SLC_CODEC_PACKED,
                                         .memory_bytes = UINT64_C(8) << 30,
                                         .threads = 2,
                                         .overwrite = true};
}

static uint64_t hash_of(const char *path)
{
    void *data = NULL;
    uint64_t bytes = 0;
    uint64_t hash;

    SLC_ASSERT_OK(slc_file_load(slc_files_system(), path, UINT64_C(1) << 32, &data, &bytes, NULL),
                  NULL);
    hash = slc_hash64(data, bytes);
    slc_free(data);
    return hash;
}

static void test_threads_do_not_matter(void)
{
    unsigned distribution, rank, threads;

    for (distribution = SLC_DIST_UNIFORM; distribution <= SLC_DIST_FIBERS; distribution++) {
        for (rank = 0; rank < (distribution > SLC_DIST_WORST ? 1 : 4); rank += 3) {
            uint64_t text = 0, store = 0;

            for (threads = 1; threads <= 3; threads += slc_test_quick() ? 2 : 1) {
                struct slc_generate_options options = base_options(in_folder("x.tns"));
                struct slc_generate_report report;
                struct slc_error err = SLC_ERROR_INIT;
                char block_path[720];

                options.distribution = (enum slc_distribution)distribution;
                if (distribution == SLC_DIST_WORST) {
                    options.dims[0] = options.dims[1] = options.dims[2] = options.nnz;
                }
                options.mode = distribution > SLC_DIST_WORST ? 3 : 0;
                options.fiber_count = 900;
                options.rank = rank;
                options.noise = 0.1;
                options.threads = threads;
                SLC_ASSERT_OK(slc_generate(&options, &report, &err), &err);
                CU_ASSERT_EQUAL(report.entries, options.nnz);
                text = threads == 1 ? hash_of(options.output) : text;
                CU_ASSERT_EQUAL(hash_of(options.output), text);
                options.output = in_folder("x.slc");
                SLC_ASSERT_OK(slc_generate(&options, &report, &err), &err);
                snprintf(block_path, sizeof block_path, "%s/blco.blk", options.output);
                store = threads == 1 ? hash_of(block_path) : store;
                CU_ASSERT_EQUAL(hash_of(block_path), store);
                CU_ASSERT_EQUAL(report.build.summary.nnz + report.build.duplicates, options.nnz);
                CU_ASSERT_EQUAL(report.build.duplicates > 0,
                                distribution == SLC_DIST_ZIPF ||
                                    distribution == SLC_DIST_ZIPF_SHUFFLED);
                SLC_ASSERT_OK(slc_folder_remove(slc_files_system(), options.output, &err), &err);
            }
        }
    }
}

/* A completely filled tensor: every cell once, and values follow the model's formula. */
static void test_values_follow_the_model(void)
{
    struct slc_generate_options options = base_options(in_folder("full.tns"));
    struct slc_generate_report report;
    struct slc_error err = SLC_ERROR_INIT;
    unsigned char seen[6 * 7 * 8] = {0};
    uint64_t wrong = 0, rows = 0;
    unsigned a, b, c;
    double value;
    FILE *file;

    options.dims[0] = 6;
    options.dims[1] = 7;
    options.dims[2] = 8;
    options.nnz = sizeof seen;
    options.rank = 4;
    SLC_ASSERT_OK(slc_generate(&options, &report, &err), &err);
    file = fopen(options.output, "r");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    while (fscanf(file, "%u %u %u %lf", &a, &b, &c, &value) == 4) {
        double want = 0;
        unsigned r;

        for (r = 0; r < 4; r++) {
            want += slc_random_f64(options.seed, 0, (a - 1) * UINT64_C(4) + r) *
                    slc_random_f64(options.seed, 1, (b - 1) * UINT64_C(4) + r) *
                    slc_random_f64(options.seed, 2, (c - 1) * UINT64_C(4) + r);
        }
        wrong += want != value || seen[((a - 1) * 7 + b - 1) * 8 + c - 1]++;
        rows++;
    }
    fclose(file);
    CU_ASSERT_EQUAL(rows, sizeof seen);
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT(!report.dims_lost);
    options.nnz++;
    SLC_ASSERT_FAILS(slc_generate(&options, &report, &err), SLC_ERR_USAGE, &err, "336");
}

/* Factor tables change only the speed. */
static void test_tables_do_not_matter(void)
{
    struct slc_generate_options options = base_options("-");
    struct slc_random_tensor with, without;
    uint64_t columns[3][500];
    uint64_t *out[SLC_MAX_ORDER] = {columns[0], columns[1], columns[2]};
    const uint64_t *in[SLC_MAX_ORDER] = {columns[0], columns[1], columns[2]};
    double a[500], b[500];
    double squares = 0, noise = 0;
    unsigned i;

    options.rank = 5;
    options.noise = 0.5;
    SLC_ASSERT_OK(slc_random_tensor_init(&with, &options, UINT64_MAX, NULL), NULL);
    SLC_ASSERT_OK(slc_random_tensor_init(&without, &options, 0, NULL), NULL);
    CU_ASSERT(slc_random_tensor_memory_bytes(&with) > 0);
    CU_ASSERT_EQUAL(slc_random_tensor_memory_bytes(&without), 0);
    slc_random_tensor_coords(&with, 0, 3, 500, out);
    slc_random_tensor_values(&with, in, 500, a);
    slc_random_tensor_values(&without, in, 500, b);
    CU_ASSERT_EQUAL(memcmp(a, b, sizeof a), 0);
    without.noise_scale = 0;
    slc_random_tensor_values(&without, in, 500, b);
    for (i = 0; i < 500; i++) {
        squares += b[i] * b[i];
        noise += (a[i] - b[i]) * (a[i] - b[i]);
    }
    CU_ASSERT(sqrt(noise / squares) > 0.35 && sqrt(noise / squares) < 0.65);
    slc_random_tensor_destroy(&with);
    slc_random_tensor_destroy(&without);
}

/* The error names the smallest sufficient budget, which works for any number of threads by using
 * fewer. */
static void check_least_budget(struct slc_generate_options *options)
{
    static const char words[] = " needs ";
    struct slc_generate_report report;
    struct slc_error err = SLC_ERROR_INIT;
    const char *number;

    options->threads = 64;
    options->memory_bytes = 1 << 20;
    SLC_ASSERT_FAILS(slc_generate(options, &report, &err), SLC_ERR_BUDGET, &err, words);
    number = strstr(err.message, words);
    CU_ASSERT_PTR_NOT_NULL_FATAL(number);
    /* Allow 4 MiB more, because the process may have grown since it was measured. */
    options->memory_bytes = (strtoull(number + strlen(words), NULL, 10) + 4) << 20;
    slc_error_clear(&err);
    SLC_ASSERT_OK(slc_generate(options, &report, &err), &err);
    options->threads = 2;
}

static void test_extremes(void)
{
    struct slc_generate_options options = base_options(in_folder("wide.tns"));
    struct slc_generate_report report;
    struct slc_error err = SLC_ERROR_INIT;
    unsigned m;

    options.nnz = 1000;
    options.order = 16;
    for (m = 0; m < 16; m++) {
        options.dims[m] = UINT64_C(1) << 62;
    }
    SLC_ASSERT_OK(slc_generate(&options, &report, &err), &err);
    CU_ASSERT(report.dims_lost);
    for (m = 0; m < 16; m++) {
        options.dims[m] = UINT64_C(1) << 8; /* the tensor has exactly 2^128 cells */
    }
    SLC_ASSERT_OK(slc_generate(&options, &report, &err), &err);
    options.output = in_folder("wide.slc");
    SLC_ASSERT_OK(slc_generate(&options, &report, &err), &err);
    CU_ASSERT_EQUAL(report.build.summary.nnz, 1000);
    options.nnz = 0;
    SLC_ASSERT_OK(slc_generate(&options, &report, &err), &err);
    options.output = in_folder("wide.tns");
    SLC_ASSERT_OK(slc_generate(&options, &report, &err), &err);
    CU_ASSERT_EQUAL(report.text_bytes, 0);
    check_least_budget(&options);
    options.output = in_folder("wide.slc");
    check_least_budget(&options);
    options.output = in_folder("wide.tns");
    options.memory_bytes = 0;
    options.zipf_exponent = -1;
    options.distribution = SLC_DIST_ZIPF;
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_generate(&options, &report, &err), SLC_ERR_USAGE, &err, "exponent");
    options.zipf_exponent = 1;
    options.dims[3] = 0;
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_generate(&options, &report, &err), SLC_ERR_USAGE, &err, "mode 4");
}

static const struct slc_test tests[] = {
    {"permutations are permutations", test_permutations},
    {"Zipf frequencies", test_zipf},
    {"threads do not matter", test_threads_do_not_matter},
    {"values follow the model", test_values_follow_the_model},
    {"tables do not matter", test_tables_do_not_matter},
    {"extremes and refusals", test_extremes},
};

SLC_SUITE(generate)
{
    return slc_test_main("generate", tests, SLC_COUNT(tests), argc, argv);
}
