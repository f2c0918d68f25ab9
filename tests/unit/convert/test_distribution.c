/* Best and worst cases, fibers and slices, and stand-ins of the papers' tensors: where the nonzeros
 * are. */
#include "base/random.h"
#include "convert/generate/full_box.h"
#include "convert/generate/generate.h"
#include "convert/generate/paper_tensor.h"
#include "convert/generate/random_tensor.h"
#include "slc_test.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static struct slc_generate_options base_options(const char *output)
{
    return (struct slc_generate_options){.output = output,
                                         .order = 3,
                                         .seed = slc_test_seed(),
                                         .codec = SLC_CODEC_PACKED,
                                         .memory_bytes = UINT64_C(8) << 30,
                                         .threads = 2,
                                         .overwrite = true};
}

/* One folder for the whole program: the harness creates a new one at every call. */
static const char *in_folder(const char *name)
{
    static const char *folder;
    static char path[700];

    if (folder == NULL) {
        folder = slc_test_folder();
    }
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

/* Rows that a TTM (mode from 1) or MTTKRPs (0) of a full box touch. */
static uint64_t box_rows(unsigned order, const uint64_t *sides, unsigned ttm_mode)
{
    uint64_t sum = 0, fibers = 1;
    unsigned n;

    for (n = 0; n < order; n++) {
        sum += sides[n];
        fibers *= n + 1 == ttm_mode ? 1 : sides[n];
    }
    return ttm_mode == 0 ? sum : sides[ttm_mode - 1] + fibers;
}

/* The minimal number of rows of all boxes within `dims` with at least `nnz` cells. */
static uint64_t fewest_rows(const uint64_t *dims, uint64_t nnz, unsigned ttm_mode)
{
    uint64_t fewest = UINT64_MAX;
    uint64_t sides[3];

    for (sides[0] = 1; sides[0] <= dims[0]; sides[0]++) {
        for (sides[1] = 1; sides[1] <= dims[1]; sides[1]++) {
            for (sides[2] = 1; sides[2] <= dims[2]; sides[2]++) {
                uint64_t rows = box_rows(3, sides, ttm_mode);

                if (sides[0] * sides[1] * sides[2] >= nnz && rows < fewest) {
                    fewest = rows;
                }
            }
        }
    }
    return fewest;
}

/* Compares the chosen box with every other box. */
static void test_boxes(void)
{
    uint64_t seed = slc_test_seed();
    uint64_t i;
    unsigned n;

    for (i = 0; i < 300; i++) {
        uint64_t dims[3], sides[3];
        uint64_t cells = 1, nnz;

        for (n = 0; n < 3; n++) {
            dims[n] = 1 + slc_random_below(seed, n, i, 14);
            cells *= dims[n];
        }
        nnz = 1 + slc_random_below(seed, 3, i, cells);
        for (n = 0; n <= 3; n++) {
            uint64_t fewest = fewest_rows(dims, nnz, n);

            slc_full_box_sides(3, dims, nnz, n, sides);
            CU_ASSERT(sides[0] * sides[1] * sides[2] >= nnz);
            CU_ASSERT(sides[0] <= dims[0] && sides[1] <= dims[1] && sides[2] <= dims[2]);
            /* The sides of a TTM's slice are rounded up separately. */
            CU_ASSERT(box_rows(3, sides, n) <= fewest + (n == 0 ? 0 : fewest / 4 + 1));
        }
    }
    {
        const uint64_t dims[2] = {UINT64_C(1) << 62, UINT64_C(1) << 62};
        uint64_t sides[2];

        slc_full_box_sides(2, dims, UINT64_C(1) << 62, 0, sides);
        CU_ASSERT(sides[0] == UINT64_C(1) << 31 && sides[1] == UINT64_C(1) << 31);
        slc_full_box_sides(1, dims, (UINT64_C(1) << 62) - 1, 1, sides);
        CU_ASSERT(sides[0] == (UINT64_C(1) << 62) - 1);
    }
}

enum { BOUND_NNZ = 3000, BOUND_LENGTH = 3500 };

/* Draws the BOUND_NNZ nonzeros of a best or worst case in one call. */
static void draw_bound(const struct slc_generate_options *options, uint64_t (*columns)[BOUND_NNZ])
{
    uint64_t *out[SLC_MAX_ORDER] = {columns[0], columns[1], columns[2]};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_random_tensor tensor;

    SLC_ASSERT_OK(slc_random_tensor_init(&tensor, options, 0, &err), &err);
    slc_random_tensor_coords(&tensor, 0, 1, BOUND_NNZ, out);
    slc_random_tensor_destroy(&tensor);
}

static struct slc_generate_options bound_options(enum slc_distribution distribution)
{
    struct slc_generate_options options = base_options(in_folder("bound.slc"));

    options.distribution = distribution;
    options.nnz = BOUND_NNZ;
    options.dims[0] = BOUND_LENGTH;
    options.dims[1] = BOUND_LENGTH;
    options.dims[2] = BOUND_LENGTH;
    return options;
}

/* No index occurs twice in any mode, for any seed, which determines all of them. */
static void test_worst(void)
{
    static uint64_t columns[3][BOUND_NNZ], others[3][BOUND_NNZ];
    struct slc_generate_options options = bound_options(SLC_DIST_WORST);
    struct slc_generate_report report;
    struct slc_error err = SLC_ERROR_INIT;
    uint64_t wrong = 0, same = 0, ascending = 0;
    unsigned n, i;

    draw_bound(&options, columns);
    options.seed++;
    draw_bound(&options, others);
    for (n = 0; n < 3; n++) {
        unsigned char seen[BOUND_LENGTH] = {0};

        for (i = 0; i < BOUND_NNZ; i++) {
            wrong += columns[n][i] >= BOUND_LENGTH || seen[columns[n][i]]++;
            same += columns[n][i] == others[n][i];
            ascending += i > 0 && columns[n][i] == columns[n][i - 1] + 1;
        }
    }
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT(same < 30 && ascending < 30);
    SLC_ASSERT_OK(slc_generate(&options, &report, &err), &err);
    CU_ASSERT_EQUAL(report.build.summary.nnz, BOUND_NNZ);
    CU_ASSERT_EQUAL(report.build.duplicates, 0);
    options.dims[1] = BOUND_NNZ - 1;
    SLC_ASSERT_FAILS(slc_generate(&options, &report, &err), SLC_ERR_USAGE, &err, "mode 2 of");
}

/* A full box with the fewest rows; a TTM's has long fibers in its mode. */
static void test_best(void)
{
    static uint64_t columns[3][BOUND_NNZ];
    /* 3000 nonzeros: they fit in 15 x 15 x 14 cells; for a TTM in 55 x 55 = 3025. */
    static const uint64_t longest[4][3] = {{15, 15, 15}, {55, 8, 7}, {8, 55, 7}, {8, 7, 55}};
    struct slc_generate_options options = bound_options(SLC_DIST_BEST);
    struct slc_generate_report report;
    struct slc_error err = SLC_ERROR_INIT;
    unsigned n, i;

    for (options.mode = 0; options.mode <= 3; options.mode++) {
        uint64_t most[3] = {0};
        uint64_t sides[3];
        uint64_t wrong = 0;

        slc_full_box_sides(3, options.dims, BOUND_NNZ, options.mode, sides);
        draw_bound(&options, columns);
        for (i = 0; i < BOUND_NNZ; i++) {
            /* The last mode varies fastest: every cell up to the last is used once. */
            wrong += (columns[0][i] * sides[1] + columns[1][i]) * sides[2] + columns[2][i] != i;
            for (n = 0; n < 3; n++) {
                most[n] = columns[n][i] > most[n] ? columns[n][i] : most[n];
            }
        }
        CU_ASSERT_EQUAL(wrong, 0);
        for (n = 0; n < 3; n++) {
            CU_ASSERT(most[n] < sides[n]);
            CU_ASSERT(sides[n] <= longest[options.mode][n]);
        }
        SLC_ASSERT_OK(slc_generate(&options, &report, &err), &err);
        CU_ASSERT_EQUAL(report.build.summary.nnz, BOUND_NNZ);
        CU_ASSERT_EQUAL(report.build.duplicates, 0);
    }
    SLC_ASSERT_FAILS(slc_generate(&options, &report, &err), SLC_ERR_USAGE, &err, "TTM in mode 4");
    options.mode = 0;
    options.dims[0] = options.dims[1] = options.dims[2] = 14;
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_generate(&options, &report, &err), SLC_ERR_USAGE, &err, "2744 cells");
    options.nnz = 0;
    slc_error_clear(&err);
    SLC_ASSERT_OK(slc_generate(&options, &report, &err), &err);
}

/* What test_units counts. */
struct units {
    unsigned count;              /* fibers or slices that have nonzeros */
    unsigned shortest, longest;  /* their least and most nonzeros */
    unsigned repeated, adjacent; /* equal coordinates; units next to the previous unit */
};

/* Counts the units of the drawn nonzeros, whose place is their index in the modes of the set
 * `placed`. Nonzeros of a unit must be consecutive. */
static struct units
count_units(const uint64_t *dims, uint32_t placed, uint64_t (*columns)[BOUND_NNZ])
{
    static unsigned char seen[BOUND_NNZ];
    struct units units = {.shortest = UINT_MAX};
    uint64_t places[BOUND_NNZ];
    unsigned length = 0, i, j, n;

    for (i = 0; i < BOUND_NNZ; i++) {
        uint64_t place = 0, cell = 0;

        for (n = 0; n < 3; n++) {
            CU_ASSERT_FATAL(columns[n][i] < dims[n]);
            if ((placed >> n & 1) != 0) {
                place = place * dims[n] + columns[n][i];
            } else {
                cell = cell * dims[n] + columns[n][i];
            }
        }
        if (i == 0 || place != places[units.count - 1]) {
            for (j = 0; j < units.count; j++) {
                units.repeated += places[j] == place;
            }
            units.adjacent += i > 0 && place == places[units.count - 1] + 1;
            units.shortest = i > 0 && length < units.shortest ? length : units.shortest;
            places[units.count++] = place;
            memset(seen, 0, sizeof seen);
            length = 0;
        }
        CU_ASSERT_FATAL(cell < sizeof seen);
        units.repeated += seen[cell]++;
        length++;
        units.longest = length > units.longest ? length : units.longest;
    }
    units.shortest = length < units.shortest ? length : units.shortest;
    return units;
}

/* Fibers and slices have distinct, scattered places, and equal numbers of nonzeros. */
static void test_units(void)
{
    static uint64_t columns[3][BOUND_NNZ];
    static const struct {
        enum slc_distribution distribution;
        unsigned mode;
        uint64_t dims[3];
        uint32_t placed;
        unsigned count, shortest, longest;
    } cases[] = {{SLC_DIST_DENSE_FIBERS, 1, {50, 90, 80}, 6, 60, 50, 50},
                 {SLC_DIST_DENSE_FIBERS, 2, {50, 70, 80}, 5, 43, 69, 70},
                 {SLC_DIST_DENSE_FIBERS, 3, {50, 70, 2999}, 3, 2, 1500, 1500},
                 {SLC_DIST_DENSE_SLICES, 1, {90, 10, 20}, 1, 15, 200, 200},
                 {SLC_DIST_DENSE_SLICES, 2, {13, 90, 20}, 2, 12, 250, 250},
                 {SLC_DIST_DENSE_SLICES, 3, {13, 25, 90}, 4, 10, 300, 300},
                 {SLC_DIST_FIBERS, 2, {50, 70, 80}, 5, 700, 4, 5},
                 {SLC_DIST_FIBERS, 3, {50, 70, 80}, 3, 3000, 1, 1}};
    size_t i;

    for (i = 0; i < SLC_COUNT(cases); i++) {
        struct slc_generate_options options = bound_options(cases[i].distribution);
        struct slc_generate_report report;
        struct slc_error err = SLC_ERROR_INIT;
        struct units units;

        options.mode = cases[i].mode;
        options.fiber_count = cases[i].count;
        memcpy(options.dims, cases[i].dims, sizeof cases[i].dims);
        draw_bound(&options, columns);
        units = count_units(options.dims, cases[i].placed, columns);
        CU_ASSERT_EQUAL(units.count, cases[i].count);
        CU_ASSERT_EQUAL(units.shortest, cases[i].shortest);
        CU_ASSERT_EQUAL(units.longest, cases[i].longest);
        CU_ASSERT_EQUAL(units.repeated, 0);
        CU_ASSERT(units.adjacent <= 2 + units.count / 20);
        SLC_ASSERT_OK(slc_generate(&options, &report, &err), &err);
        CU_ASSERT_EQUAL(report.build.summary.nnz, BOUND_NNZ);
        CU_ASSERT_EQUAL(report.build.duplicates, 0);
        options.mode = 4;
        SLC_ASSERT_FAILS(slc_generate(&options, &report, &err), SLC_ERR_USAGE, &err, "in mode 4");
        options.mode = 0;
        slc_error_clear(&err);
        SLC_ASSERT_FAILS(slc_generate(&options, &report, &err), SLC_ERR_USAGE, &err, "in mode 0");
    }
}

/* Numbers of fibers that are impossible. */
static void test_fiber_counts(void)
{
    struct slc_generate_options options = bound_options(SLC_DIST_FIBERS);
    struct slc_generate_report report;
    struct slc_error err = SLC_ERROR_INIT;

    options.mode = 3;
    options.dims[0] = 4;
    options.dims[1] = 5;
    options.dims[2] = 1000;
    options.fiber_count = 2;
    SLC_ASSERT_FAILS(slc_generate(&options, &report, &err), SLC_ERR_USAGE, &err,
                     "form 3 to 20 nonempty fibers");
    options.fiber_count = 21;
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_generate(&options, &report, &err), SLC_ERR_USAGE, &err, "21 fibers");
    options.dims[0] = options.dims[1] = UINT64_C(1) << 40; /* at most one fiber per nonzero */
    options.fiber_count = BOUND_NNZ + 1;
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_generate(&options, &report, &err), SLC_ERR_USAGE, &err, "to 3000 ");
    options.fiber_count = BOUND_NNZ;
    slc_error_clear(&err);
    SLC_ASSERT_OK(slc_generate(&options, &report, &err), &err);
    CU_ASSERT_EQUAL(report.build.summary.nnz, BOUND_NNZ);
    /* More than 2^128 places: the indices of a place are drawn independently. */
    options.order = 4;
    options.dims[0] = options.dims[1] = options.dims[3] = UINT64_C(1) << 62;
    options.output = in_folder("places.tns");
    options.fiber_count = 7;
    SLC_ASSERT_OK(slc_generate(&options, &report, &err), &err);
    options.nnz = 0;
    options.fiber_count = 0;
    SLC_ASSERT_OK(slc_generate(&options, &report, &err), &err);
}

/* The stand-ins of the papers' tensors: the numbers of the tables, at every scale. */
static void test_paper_tensors(void)
{
    static const double scales[] = {1, 0.5, 0.01, 1e-5};
    struct slc_error err = SLC_ERROR_INIT;
    size_t i, k;
    unsigned n;

    for (i = 0; i < SLC_PAPER_TENSORS; i++) {
        const struct slc_paper_tensor *tensor = &slc_paper_tensors[i];

        CU_ASSERT_STRING_EQUAL(slc_paper_tensor_names[i], tensor->name);
        CU_ASSERT_PTR_EQUAL(slc_paper_tensor_find(tensor->name), tensor);
        CU_ASSERT(i == 0 || strcmp(slc_paper_tensor_names[i - 1], tensor->name) < 0);
        for (k = 0; k < SLC_COUNT(scales); k++) {
            struct slc_generate_options options = base_options("-");
            struct slc_random_tensor drawn;
            double cells = 1, wanted = scales[k];
            bool kept = true;

            slc_paper_tensor_options(tensor, scales[k], &options);
            CU_ASSERT_EQUAL(options.order, tensor->order);
            CU_ASSERT_EQUAL(options.nnz, (uint64_t)llround((double)tensor->nnz * scales[k]));
            for (n = 0; n < tensor->order; n++) {
                cells *= (double)options.dims[n];
                wanted *= (double)tensor->dims[n];
                kept = kept && options.dims[n] == tensor->dims[n];
                CU_ASSERT(options.dims[n] >= 1 && options.dims[n] <= tensor->dims[n]);
                CU_ASSERT(options.dims[n] >= 16 || options.dims[n] == tensor->dims[n]);
            }
            CU_ASSERT_EQUAL(kept, scales[k] == 1);
            /* The same share of nonzero cells, unless many modes have their least size. */
            CU_ASSERT(cells > 0.9 * wanted && (cells < 1.1 * wanted || scales[k] < 0.01));
            if (scales[k] == 1 && tensor->fibers > 0) {
                CU_ASSERT_EQUAL(options.fiber_count, tensor->fibers);
            }
            SLC_ASSERT_OK(slc_random_tensor_init(&drawn, &options, 0, &err), &err);
            slc_random_tensor_destroy(&drawn);
        }
    }
}

/* At least 95 % of the coordinates of a stand-in are distinct (paper_tensor.h), up to the scatter
 * of small samples. */
static void test_stand_ins(void)
{
    size_t i;

    for (i = 0; i < SLC_PAPER_TENSORS; i++) {
        const struct slc_paper_tensor *tensor = &slc_paper_tensors[i];
        struct slc_generate_options options = base_options(in_folder("like.slc"));
        struct slc_generate_report report;
        struct slc_error err = SLC_ERROR_INIT;

        slc_paper_tensor_options(tensor, 20000.0 / (double)tensor->nnz, &options);
        SLC_ASSERT_OK(slc_generate(&options, &report, &err), &err);
        CU_ASSERT((double)report.build.duplicates < 0.06 * (double)options.nnz);
        CU_ASSERT(tensor->fibers == 0 || report.build.duplicates == 0);
    }
}

static const struct slc_test tests[] = {
    {"boxes touch the fewest rows", test_boxes},
    {"worst case: no row twice", test_worst},
    {"best case: the fewest rows", test_best},
    {"fibers and slices", test_units},
    {"numbers of fibers", test_fiber_counts},
    {"tensors of the papers", test_paper_tensors},
    {"distinct nonzeros of stand-ins", test_stand_ins},
};

SLC_SUITE(distribution)
{
    return slc_test_main("distribution", tests, SLC_COUNT(tests), argc, argv);
}
