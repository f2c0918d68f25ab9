/* The parts of a ZIP archive, byte by byte: members and offsets below 4 GiB use the plain fields,
 * larger ones ZIP64 fields, each only where necessary. Python's zipfile reads whole archives in
 * tests/oracle. */
#include "convert/export/zip_form.h"

#include "base/memory/bytes.h"
#include "slc_test.h"

#include <string.h>

#define LARGE UINT64_C(0x123456789A)

enum { NAME = 8 };

static struct slc_zip_member member(uint64_t offset, uint64_t bytes)
{
    return (struct slc_zip_member){
        .name = "data.npy", .offset = offset, .bytes = bytes, .crc = 0xCAFEBABE};
}

static void local(void)
{
    static const uint64_t sizes[] = {0, 5, 0xFFFFFFFE, 0xFFFFFFFF, LARGE};
    uint8_t bytes[SLC_ZIP_LOCAL_MAX];

    for (size_t i = 0; i < SLC_COUNT(sizes); i++) {
        const struct slc_zip_member whole = member(LARGE, sizes[i]);
        const uint32_t count = slc_zip_local(&whole, bytes);
        const bool large = sizes[i] >= 0xFFFFFFFF;

        CU_ASSERT_EQUAL(count, 30U + NAME + (large ? 20U : 0U));
        CU_ASSERT_EQUAL(memcmp(bytes, "PK\3\4", 4), 0);
        CU_ASSERT_EQUAL(slc_load_u16(bytes + 4), large ? 45 : 20);
        CU_ASSERT_EQUAL(slc_load_u16(bytes + 8), 0); /* stored */
        CU_ASSERT_EQUAL(slc_load_u32(bytes + 14), 0xCAFEBABE);
        CU_ASSERT_EQUAL(slc_load_u32(bytes + 18), large ? 0xFFFFFFFF : (uint32_t)sizes[i]);
        CU_ASSERT_EQUAL(slc_load_u32(bytes + 22), large ? 0xFFFFFFFF : (uint32_t)sizes[i]);
        CU_ASSERT_EQUAL(slc_load_u16(bytes + 26), NAME);
        CU_ASSERT_EQUAL(slc_load_u16(bytes + 28), large ? 20 : 0);
        CU_ASSERT_EQUAL(memcmp(bytes + 30, "data.npy", NAME), 0);
        if (large) {
            CU_ASSERT_EQUAL(slc_load_u16(bytes + 38), 1);
            CU_ASSERT_EQUAL(slc_load_u16(bytes + 40), 16);
            CU_ASSERT_EQUAL(slc_load_u64(bytes + 42), sizes[i]);
            CU_ASSERT_EQUAL(slc_load_u64(bytes + 50), sizes[i]);
        }
    }
}

/* Checks the relevant fields of a directory entry; returns the next one. */
static const uint8_t *check_entry(const uint8_t *at, uint64_t offset, uint64_t size)
{
    const uint8_t *extra = at + 46 + NAME + 4;
    uint16_t want = 0;

    CU_ASSERT_EQUAL(memcmp(at, "PK\1\2", 4), 0);
    CU_ASSERT_EQUAL(slc_load_u32(at + 16), 0xCAFEBABE);
    CU_ASSERT_EQUAL(slc_load_u16(at + 28), NAME);
    CU_ASSERT_EQUAL(memcmp(at + 46, "data.npy", NAME), 0);
    CU_ASSERT_EQUAL(slc_load_u32(at + 24), size < 0xFFFFFFFF ? (uint32_t)size : 0xFFFFFFFF);
    if (size >= 0xFFFFFFFF) {
        CU_ASSERT_EQUAL(slc_load_u64(extra), size);
        CU_ASSERT_EQUAL(slc_load_u64(extra + 8), size);
        want = 16;
    }
    CU_ASSERT_EQUAL(slc_load_u32(at + 42), offset < 0xFFFFFFFF ? (uint32_t)offset : 0xFFFFFFFF);
    if (offset >= 0xFFFFFFFF) {
        CU_ASSERT_EQUAL(slc_load_u64(extra + want), offset);
        want = (uint16_t)(want + 8);
    }
    if (want > 0) {
        CU_ASSERT_EQUAL(slc_load_u16(extra - 4), 1);
        CU_ASSERT_EQUAL(slc_load_u16(extra - 2), want);
    }
    CU_ASSERT_EQUAL(slc_load_u16(at + 30), want > 0 ? want + 4 : 0);
    return at + 46 + NAME + (want > 0 ? want + 4 : 0);
}

static void directory(void)
{
    static const uint64_t places[] = {7, 0xFFFFFFFE, 0xFFFFFFFF, LARGE};
    const struct slc_zip_member members[] = {member(0, 5), member(35, LARGE), member(LARGE, 9),
                                             member(LARGE + 1, LARGE)};
    uint8_t bytes[4 * SLC_ZIP_ENTRY_MAX + SLC_ZIP_END_MAX];

    for (size_t i = 0; i < SLC_COUNT(places); i++) {
        const uint32_t count = slc_zip_directory(members, 4, places[i], bytes);
        const bool large = places[i] >= 0xFFFFFFFF;
        const uint8_t *at = bytes;
        uint32_t entries;

        for (size_t m = 0; m < SLC_COUNT(members); m++) {
            at = check_entry(at, members[m].offset, members[m].bytes);
        }
        entries = (uint32_t)(at - bytes);
        if (large) {
            CU_ASSERT_EQUAL(memcmp(at, "PK\6\6", 4), 0);
            CU_ASSERT_EQUAL(slc_load_u64(at + 4), 44);
            CU_ASSERT_EQUAL(slc_load_u64(at + 24), 4);
            CU_ASSERT_EQUAL(slc_load_u64(at + 32), 4);
            CU_ASSERT_EQUAL(slc_load_u64(at + 40), entries);
            CU_ASSERT_EQUAL(slc_load_u64(at + 48), places[i]);
            CU_ASSERT_EQUAL(memcmp(at + 56, "PK\6\7", 4), 0);
            CU_ASSERT_EQUAL(slc_load_u64(at + 64), places[i] + entries);
            CU_ASSERT_EQUAL(slc_load_u32(at + 72), 1);
            at += 76;
        }
        CU_ASSERT_EQUAL(memcmp(at, "PK\5\6", 4), 0);
        CU_ASSERT_EQUAL(slc_load_u16(at + 8), 4);
        CU_ASSERT_EQUAL(slc_load_u16(at + 10), 4);
        CU_ASSERT_EQUAL(slc_load_u32(at + 12), entries);
        CU_ASSERT_EQUAL(slc_load_u32(at + 16), large ? 0xFFFFFFFF : (uint32_t)places[i]);
        CU_ASSERT_EQUAL(slc_load_u16(at + 20), 0);
        CU_ASSERT_EQUAL(at + 22 - bytes, count);
    }
}

SLC_SUITE(zip_form)
{
    static const struct slc_test tests[] = {{"before a member", local},
                                            {"behind all members", directory}};

    return slc_test_main("zip_form", tests, SLC_COUNT(tests), argc, argv);
}
