/* Sums of squares: the bits of ordinary sums, and the right size for tiny and huge numbers. */
#include "base/random.h"
#include "base/squares.h"
#include "slc_test.h"

enum { COUNT = 1000 };

static double root(const double *numbers, double scale, double count)
{
    struct slc_squares first = {0}, second = {0};

    for (unsigned i = 0; i < COUNT; i++) {
        slc_squares_add(i % 2 == 0 ? &first : &second, numbers[i] * scale);
    }
    slc_squares_add_sum(&first, &second);
    return slc_squares_root(&first, count);
}

/* A scale by a power of two scales the root exactly, also if squares overflow or underflow. */
static void any_size(void)
{
    static const double scales[] = {0x1p-900, 0x1p-532, 0x1p-515, 0x1p-510,
                                    0x1p480,  0x1p500,  0x1p900};
    double numbers[COUNT], squares[2] = {0.0, 0.0};

    for (unsigned i = 0; i < COUNT; i++) {
        numbers[i] = slc_random_f64(slc_test_seed(), 0, i) - 0.5;
        squares[i % 2] += numbers[i] * numbers[i];
    }
    const double rms = sqrt((squares[0] + squares[1]) / COUNT);
    CU_ASSERT_EQUAL(root(numbers, 1.0, COUNT), rms);
    CU_ASSERT_EQUAL(root(numbers, 1.0, 1.0), sqrt(squares[0] + squares[1]));
    for (size_t k = 0; k < SLC_COUNT(scales); k++) {
        CU_ASSERT_DOUBLE_EQUAL(root(numbers, scales[k], COUNT) / scales[k], rms, 1e-15);
    }
    /* The smallest numbers have few digits. */
    CU_ASSERT_DOUBLE_EQUAL(root(numbers, 0x1p-1050, COUNT) / 0x1p-1050, rms, 1e-6);
}

static double root_of_two(double a, double b)
{
    struct slc_squares sum = {0};

    slc_squares_add(&sum, a);
    slc_squares_add(&sum, b);
    return slc_squares_root(&sum, 1.0);
}

static void mixed_sizes(void)
{
    CU_ASSERT_EQUAL(root_of_two(3.0, 1e-300), 3.0);
    CU_ASSERT_EQUAL(root_of_two(3e300, 4.0), 3e300);
    CU_ASSERT_EQUAL(root_of_two(3 * 0x1p-512, 4 * 0x1p-512), 5 * 0x1p-512);
    CU_ASSERT_EQUAL(root_of_two(3 * 0x1p479, 4 * 0x1p479), 5 * 0x1p479);
    CU_ASSERT_EQUAL(root_of_two(3 * 0x1p-514, 4 * 0x1p-514), 5 * 0x1p-514);
    CU_ASSERT_EQUAL(root_of_two(3e-300, 4e300), 4e300);
    CU_ASSERT_EQUAL(root_of_two(0.0, 0.0), 0.0);
    CU_ASSERT(isinf(root_of_two(INFINITY, 1.0)));
    CU_ASSERT(isnan(root_of_two(NAN, 1e-300)) && isnan(root_of_two(NAN, 1e300)));
    struct slc_squares held = {.middle = 2.0};
    slc_squares_add(&held, 0x1p490);
    CU_ASSERT_EQUAL(slc_squares_total(&held), 0x1p980);
}

static const struct slc_test tests[] = {
    {"numbers of any size", any_size},
    {"numbers of mixed sizes", mixed_sizes},
};

SLC_SUITE(squares)
{
    return slc_test_main("base squares", tests, SLC_COUNT(tests), argc, argv);
}
