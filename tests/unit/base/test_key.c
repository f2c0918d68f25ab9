/* Keys: order, round trips, widths up to 128 bits, comparison without keys. */
#include "slc_test.h"

#include "base/key.h"
#include "base/random.h"

#include <string.h>

static slc_u128
naive_key(unsigned order, const unsigned *bits, struct slc_fiber_run run, const uint64_t *coords)
{
    slc_u128 key = 0;

    for (int level = 63; level >= 0; level--) {
        for (unsigned n = 0; n < order; n++) {
            if ((unsigned)level < bits[n] && (n != run.mode || (unsigned)level >= run.bits)) {
                key = key << 1 | ((coords[n] >> level) & 1U);
            }
        }
    }
    for (unsigned level = run.bits; level-- > 0;) {
        if (level < bits[run.mode]) {
            key = key << 1 | ((coords[run.mode] >> level) & 1U);
        }
    }
    return key;
}

static void documented_example(void)
{
    /* docs/FORMAT.md, section 3: dims 4 x 2 x 3 gives a1 c1 a0 b0 c0. */
    const uint64_t dims[3] = {4, 2, 3};
    const uint64_t coords[3] = {2, 1, 2};
    struct slc_key_layout layout;
    struct slc_error err = SLC_ERROR_INIT;

    SLC_ASSERT_OK(slc_key_layout_init(&layout, 3, dims, &err), &err);
    CU_ASSERT_EQUAL(layout.bits, 5);
    CU_ASSERT_EQUAL((uint64_t)slc_key_encode(&layout, coords), 0x1A); /* 1 1 0 1 0 */

    /* A run of two bits of mode 0 gives c1 b0 c0 a1 a0. */
    SLC_ASSERT_OK(slc_key_layout_init_run(&layout, 3, dims, (struct slc_fiber_run){0, 2}, &err),
                  &err);
    CU_ASSERT_EQUAL((uint64_t)slc_key_encode(&layout, coords), 0x1A); /* 1 1 0 1 0 */
    CU_ASSERT_EQUAL(layout.mask_lo[0], 0x3);
    CU_ASSERT_EQUAL(layout.mask_lo[1], 0x8);
    CU_ASSERT_EQUAL(layout.mask_lo[2], 0x14);
}

/* Nonzeros are grouped by fiber if no key of another fiber lies between the keys of one. */
static void whole_fibers(void)
{
    const uint64_t dims[4] = {5, 1, 9, 3};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_key_layout layout;

    for (unsigned bits = 0; bits <= 5; bits++) {
        SLC_ASSERT_OK(
            slc_key_layout_init_run(&layout, 4, dims, (struct slc_fiber_run){2, bits}, &err), &err);
        CU_ASSERT_FALSE(slc_key_layout_fibers(&layout, 0));
        CU_ASSERT(slc_key_layout_fibers(&layout, 1)); /* mode of size 1: nonzeros are fibers */
        CU_ASSERT_EQUAL(slc_key_layout_fibers(&layout, 2), bits >= 4);
        CU_ASSERT_FALSE(slc_key_layout_fibers(&layout, 3));
    }
    SLC_ASSERT_OK(slc_key_layout_init(&layout, 1, dims, &err), &err);
    CU_ASSERT(slc_key_layout_fibers(&layout, 0)); /* a vector is one fiber */
}

static void random_shapes(void)
{
    uint64_t seed = slc_test_seed();
    unsigned tried = 0;

    for (uint64_t shape = 0; tried < 400; shape++) {
        unsigned order = 1 + (unsigned)slc_random_below(seed, 1, shape, SLC_MAX_ORDER);
        uint64_t dims[SLC_MAX_ORDER], a[SLC_MAX_ORDER], b[SLC_MAX_ORDER], back[SLC_MAX_ORDER];
        struct slc_fiber_run run = {
            (unsigned)slc_random_below(seed, 3, shape, order),
            shape % 2 == 0 ? 0 : (unsigned)slc_random_below(seed, 4, shape, 63)};
        struct slc_key_layout layout;
        slc_u128 key_a, key_b;

        for (unsigned n = 0; n < order; n++) {
            unsigned bits = (unsigned)slc_random_below(seed, 2 + n, shape, 40);
            dims[n] = 1 + (slc_random_u64(seed, 20 + n, shape) >> (63 - bits));
        }
        if (slc_key_layout_init_run(&layout, order, dims, run, NULL) != SLC_OK) {
            continue;
        }
        tried++;
        for (unsigned n = 0; n < order; n++) {
            a[n] = slc_random_below(seed, 40 + n, shape, dims[n]);
            b[n] = shape % 3 == 0 ? a[n] : slc_random_below(seed, 60 + n, shape, dims[n]);
        }
        b[0] = slc_random_below(seed, 80, shape, dims[0]);
        key_a = slc_key_encode(&layout, a);
        key_b = slc_key_encode(&layout, b);
        CU_ASSERT_TRUE(key_a == naive_key(order, layout.mode_bits, run, a));
        slc_key_decode(&layout, key_a, back);
        CU_ASSERT_EQUAL(memcmp(a, back, order * sizeof a[0]), 0);
        CU_ASSERT_EQUAL(slc_coords_compare(order, run, a, b), (key_a > key_b) - (key_a < key_b));
        CU_ASSERT_EQUAL(slc_coords_compare(order, run, a, a), 0);
    }
}

static void limits(void)
{
    uint64_t dims[17];
    struct slc_key_layout layout;
    struct slc_error err = SLC_ERROR_INIT;

    for (unsigned n = 0; n < 17; n++) {
        dims[n] = 256;
    }
    SLC_ASSERT_OK(slc_key_layout_init(&layout, 16, dims, &err), &err);
    CU_ASSERT_EQUAL(layout.bits, 128);
    SLC_ASSERT_FAILS(
        slc_key_layout_init_run(&layout, 16, dims, (struct slc_fiber_run){16, 1}, &err),
        SLC_ERR_USAGE, &err, "mode 17");
    slc_error_clear(&err);
    /* A run is limited to the bits of its mode; a run of no bits is plain order. */
    SLC_ASSERT_OK(slc_key_layout_init_run(&layout, 16, dims, (struct slc_fiber_run){5, 24}, &err),
                  &err);
    CU_ASSERT_TRUE(layout.run.mode == 5 && layout.run.bits == 8);
    dims[5] = 1;
    SLC_ASSERT_OK(slc_key_layout_init_run(&layout, 16, dims, (struct slc_fiber_run){5, 24}, &err),
                  &err);
    CU_ASSERT_TRUE(layout.run.mode == 0 && layout.run.bits == 0);
    dims[5] = 256;
    SLC_ASSERT_OK(slc_key_layout_init(&layout, 16, dims, &err), &err);
    dims[3] = 257;
    SLC_ASSERT_FAILS(slc_key_layout_init(&layout, 16, dims, &err), SLC_ERR_UNSUPPORTED, &err,
                     "129 bits");
    CU_ASSERT_EQUAL(layout.bits, 128);
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_key_layout_init(&layout, 17, dims, &err), SLC_ERR_USAGE, &err, "17");
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_key_layout_init(&layout, 0, dims, &err), SLC_ERR_USAGE, &err, "not 0");
    slc_error_clear(&err);
    dims[1] = 0;
    SLC_ASSERT_FAILS(slc_key_layout_init(&layout, 2, dims, &err), SLC_ERR_USAGE, &err, "mode 2");
    slc_error_clear(&err);
    dims[1] = (UINT64_C(1) << 62) + 1;
    SLC_ASSERT_FAILS(slc_key_layout_init(&layout, 2, dims, &err), SLC_ERR_USAGE, &err, "2^62");
    slc_error_clear(&err);
    dims[0] = dims[1] = 1;
    SLC_ASSERT_OK(slc_key_layout_init(&layout, 2, dims, &err), &err);
    CU_ASSERT_EQUAL(layout.bits, 0);
}

static const struct slc_test tests[] = {
    {"the documented example", documented_example},
    {"whole fibers are contiguous", whole_fibers},
    {"random shapes: naive key, round trip, comparison", random_shapes},
    {"limits of order, length and bits", limits},
};

SLC_SUITE(key)
{
    return slc_test_main("key", tests, SLC_COUNT(tests), argc, argv);
}
