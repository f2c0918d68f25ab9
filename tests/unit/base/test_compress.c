/* Moves that gather the bits of a mask, compared with a loop over its bits. */
#include "base/compress.h"
#include "base/key.h"
#include "base/random.h"
#include "slc_test.h"

static uint64_t draw(uint64_t *index)
{
    return slc_random_u64(slc_test_seed(), 1, (*index)++);
}

static void check_mask(uint64_t mask, uint64_t *index)
{
    struct slc_compress compress;

    slc_compress_init(&compress, mask);
    CU_ASSERT_EQUAL(compress.mask, mask);
    CU_ASSERT_EQUAL(compress.bits, (unsigned)__builtin_popcountll(mask));
    CU_ASSERT(compress.steps <= SLC_COMPRESS_STEPS);
    /* The last step is never empty. */
    CU_ASSERT(compress.steps == 0 || compress.move[compress.steps - 1] != 0);
    for (unsigned i = 0; i < 20; i++) {
        const uint64_t word = i == 0 ? UINT64_MAX : draw(index);

        CU_ASSERT_EQUAL(slc_compress_apply(&compress, word), slc_bits_gather(word, mask));
    }
}

static void test_random_masks(void)
{
    uint64_t index = 0;

    for (unsigned i = 0; i < 2000; i++) {
        const uint64_t some = draw(&index), others = draw(&index), more = draw(&index);

        check_mask(some, &index);
        check_mask(some & others & more, &index);
        check_mask(some | others | more, &index);
        check_mask(some << i % 64, &index);
        check_mask(some >> i % 64, &index);
    }
}

static void test_ends(void)
{
    uint64_t index = 0;

    check_mask(0, &index);
    for (unsigned bit = 0; bit < 64; bit++) {
        check_mask(UINT64_C(1) << bit, &index);
        check_mask(UINT64_MAX << bit, &index);
        check_mask(UINT64_MAX >> bit, &index);
        check_mask(~(UINT64_C(1) << bit), &index);
        check_mask(UINT64_C(1) << bit | 1, &index);
    }
}

/* Half a word needs one step less, and contiguous low bits none. */
static void test_steps(void)
{
    struct slc_compress compress;

    slc_compress_init(&compress, UINT64_C(1) << 63);
    CU_ASSERT_EQUAL(compress.steps, 6);
    slc_compress_init(&compress, UINT64_C(1) << 31);
    CU_ASSERT_EQUAL(compress.steps, 5);
    slc_compress_init(&compress, 0xaaaaaaaa);
    CU_ASSERT_EQUAL(compress.steps, 5);
    slc_compress_init(&compress, 0xffff);
    CU_ASSERT_EQUAL(compress.steps, 0);
}

static const struct slc_test tests[] = {
    {"random masks gather as the loop over bits does", test_random_masks},
    {"single bits, runs of bits and no bits", test_ends},
    {"no step more than is needed", test_steps},
};

SLC_SUITE(compress)
{
    return slc_test_main("compress", tests, SLC_COUNT(tests), argc, argv);
}
