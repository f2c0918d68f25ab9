/* The verifier: valid stores of any shape and codec pass; every flipped bit, other length, stray
 * file and forged claim is a finding with its place; failures of memory, budget and disk are
 * distinguished from findings. */
#include "faulty_files.h"
#include "forge_file.h"
#include "make_store.h"
#include "slc_test.h"

#include "base/error/fault.h"
#include "base/memory/bytes.h"
#include "base/random.h"
#include "storage/block/file_layout.h"
#include "storage/codec/block_layout.h"
#include "storage/verify/verify.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[256];
static char blocks[300];
static char manifest[300];

/* Findings reported to the callback. */
struct findings {
    uint64_t count;
    struct slc_error last;
};

static void note(void *context, const struct slc_error *fault)
{
    struct findings *findings = context;

    findings->count++;
    findings->last = *fault;
}

static void write_store(unsigned order,
                        const uint64_t *dims,
                        uint64_t nnz,
                        enum slc_made_values values,
                        enum slc_codec codec,
                        uint64_t block_bytes)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_made_tensor tensor;

    snprintf(folder, sizeof folder, "%s", slc_test_folder());
    snprintf(blocks, sizeof blocks, "%s/blco.blk", folder);
    snprintf(manifest, sizeof manifest, "%s/tensor.json", folder);
    slc_made_tensor_create(&tensor, order, dims, nnz, values, slc_test_seed());
    SLC_ASSERT_OK(slc_made_store_write(&tensor, NULL, folder, codec, block_bytes, &err), &err);
    slc_made_tensor_destroy(&tensor);
}

/* A store of one small tile. */
static void write_tiny(enum slc_codec codec)
{
    const uint64_t dims[3] = {5, 3, 40};

    write_store(3, dims, 60, SLC_MADE_DOUBLES, codec, 0);
}

/* A store of many tiles and blocks: the extent of mode 1 ends tiles early. */
static void write_large(enum slc_codec codec)
{
    const uint64_t dims[3] = {UINT64_C(1) << 37, 70, 1000};

    write_store(3, dims, 20000, SLC_MADE_COUNTS, codec, 8192);
}

static enum slc_status
verify(bool decode, unsigned threads, struct findings *findings, struct slc_verify_report *report)
{
    struct slc_verify_options options = {
        .decode = decode, .threads = threads, .found = note, .context = findings};
    struct slc_error err = SLC_ERROR_INIT;
    enum slc_status status;

    memset(findings, 0, sizeof *findings);
    slc_error_clear(&findings->last);
    status = slc_verify_store(folder, &options, report, &err);
    CU_ASSERT_EQUAL(status, err.status);
    CU_ASSERT_EQUAL(report->findings, findings->count);
    return status;
}

/* Whether the store has exactly the expected kind of fault: a finding with a file. */
static bool finds(bool decode, const char *part)
{
    struct findings findings;
    struct slc_verify_report report;
    enum slc_status status = verify(decode, 1, &findings, &report);
    bool found = status != SLC_OK && findings.count > 0 && findings.last.file[0] != '\0' &&
                 strstr(findings.last.message, part) != NULL;

    if (!found) {
        printf("# expected \"%s\", found %llu: %s\n", part, (unsigned long long)findings.count,
               findings.last.message);
    }
    return found;
}

static void expect_sound(uint64_t nnz)
{
    for (unsigned threads = 0; threads <= 3; threads++) {
        struct findings findings;
        struct slc_verify_report report;
        struct stat a;
        struct stat b;

        CU_ASSERT_EQUAL(verify(threads != 1, threads, &findings, &report), SLC_OK);
        if (findings.count != 0) {
            printf("# %s\n", findings.last.message);
        }
        CU_ASSERT_EQUAL(report.files, 2);
        CU_ASSERT(nnz == 0 ? report.blocks == 0 : report.blocks > 0);
        CU_ASSERT(report.nnz <= nnz && (report.nnz > 0) == (nnz > 0));
        CU_ASSERT(stat(blocks, &a) == 0 && stat(manifest, &b) == 0);
        CU_ASSERT_EQUAL(report.bytes, (uint64_t)(a.st_size + b.st_size));
    }
}

static void sound_stores(void)
{
    const uint64_t ones[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    const uint64_t wide[2] = {UINT64_C(1) << 62, UINT64_C(1) << 62};
    const uint64_t dense[3] = {60, 60, 60};

    for (unsigned codec = SLC_CODEC_PACKED; codec <= SLC_CODEC_BLCO; codec++) {
        for (unsigned values = 0; values < SLC_MADE_VALUES; values++) {
            write_store(3, dense, 150000, (enum slc_made_values)values, (enum slc_codec)codec,
                        100000);
            expect_sound(150000);
        }
        write_store(16, ones, 1, SLC_MADE_DOUBLES, (enum slc_codec)codec, 0);
        expect_sound(1);
        write_store(16, ones, 0, SLC_MADE_DOUBLES, (enum slc_codec)codec, 0);
        expect_sound(0);
        write_store(2, wide, 300, SLC_MADE_DOUBLES, (enum slc_codec)codec, 0);
        expect_sound(300);
        write_large((enum slc_codec)codec);
        expect_sound(20000);
    }
}

/* Flips bit `bit` of the file, verifies, flips it back; returns true if it was found with its
 * place. */
static bool flip_is_found(const char *path, const struct slc_forged *bytes, uint64_t bit)
{
    struct findings findings;
    struct slc_verify_report report;
    uint8_t byte = bytes->bytes[bit / 8];

    slc_forged_poke(path, bit / 8, (uint8_t)(byte ^ 1U << bit % 8));
    verify(false, 1, &findings, &report);
    slc_forged_poke(path, bit / 8, byte);
    return findings.count == 1 && strcmp(findings.last.file, path) == 0;
}

/* Every bit with SLC_TEST_FULL; otherwise one seeded bit of every byte, or of every fourth byte for
 * the codecs after the first. */
static void flips_in_a_tiny_store(void)
{
    bool full = slc_test_full();
    const char *paths[] = {blocks, manifest};

    for (unsigned codec = SLC_CODEC_PACKED; codec <= SLC_CODEC_BLCO; codec++) {
        write_tiny((enum slc_codec)codec);
        for (unsigned i = 0; i < 2; i++) {
            struct slc_forged bytes;
            uint64_t missed = 0;

            slc_forged_load(&bytes, paths[i]);
            for (uint64_t at = 0; at < bytes.size; at += full || codec == 1 ? 1 : 4) {
                uint64_t first = slc_random_below(slc_test_seed(), codec, at, 8);

                for (uint64_t bit = 0; bit < (full ? 8 : 1); bit++) {
                    missed += !flip_is_found(paths[i], &bytes, at * 8 + (first + bit) % 8);
                }
            }
            CU_ASSERT_EQUAL(missed, 0);
            slc_forged_release(&bytes);
        }
    }
}

/* A flipped bit of a block is found, and the finding names the block. */
static void flips_in_a_larger_store(void)
{
    uint64_t flips = slc_test_full() ? 20000 : 700;

    for (unsigned codec = SLC_CODEC_PACKED; codec <= SLC_CODEC_BLCO; codec++) {
        struct slc_forged bytes;
        uint64_t missed = 0;
        uint64_t index;

        write_large((enum slc_codec)codec);
        slc_forged_load(&bytes, blocks);
        index = slc_forged_index(&bytes);
        for (uint64_t i = 0; i < flips; i++) {
            uint64_t at = slc_random_below(slc_test_seed(), 50 + codec, i, bytes.size);
            uint64_t bit = at * 8 + i % 8;
            struct findings findings;
            struct slc_verify_report report;

            slc_forged_poke(blocks, at, (uint8_t)(bytes.bytes[at] ^ 1U << bit % 8));
            verify(i % 64 == 0, 1 + (unsigned)(i % 2), &findings, &report);
            slc_forged_poke(blocks, at, bytes.bytes[at]);
            missed += findings.count != 1 || findings.last.offset == SLC_NOWHERE;
            if (at >= SLC_HEADER_BYTES && at < index) {
                uint64_t block = findings.last.block;

                missed += findings.last.status != SLC_ERR_DAMAGED || block == SLC_NOWHERE ||
                          slc_forged_block(&bytes, block) > at ||
                          (slc_forged_entry(&bytes, block + 1) <
                               index + slc_load_u64(bytes.bytes + SLC_HEADER_BLOCK_COUNT) *
                                           slc_index_entry_bytes(3) &&
                           slc_forged_block(&bytes, block + 1) <= at);
            }
        }
        CU_ASSERT_EQUAL(missed, 0);
        slc_forged_release(&bytes);
    }
}

static void other_lengths(void)
{
    struct findings findings;
    struct slc_verify_report report;
    struct slc_forged bytes;
    uint64_t missed = 0;

    write_large(SLC_CODEC_LZ4);
    slc_forged_load(&bytes, blocks);
    for (unsigned i = 0; i < 400; i++) {
        uint64_t size = slc_random_below(slc_test_seed(), 9, i, bytes.size + 10000);

        size = i % 4 == 0 ? size / SLC_PAGE_BYTES * SLC_PAGE_BYTES : size;
        if (size == bytes.size) {
            continue;
        }
        slc_forged_resize(blocks, size);
        missed += verify(false, 1, &findings, &report) == SLC_OK;
        slc_forged_save(&bytes, blocks);
    }
    CU_ASSERT_EQUAL(missed, 0);
    slc_forged_release(&bytes);
    slc_forged_load(&bytes, manifest);
    for (uint64_t size = 0; size < bytes.size + 20; size += size < bytes.size - 20 ? 37 : 1) {
        if (size != bytes.size) {
            slc_forged_resize(manifest, size);
            missed += verify(false, 1, &findings, &report) == SLC_OK;
            slc_forged_save(&bytes, manifest);
        }
    }
    CU_ASSERT_EQUAL(missed, 0);
    slc_forged_release(&bytes);
}

/* Updates the manifest to match a forged block file, so that only its contents are at fault. */
static void renew_manifest(const struct slc_forged *forged)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_manifest written;

    SLC_ASSERT_OK(slc_manifest_read(NULL, folder, &written, &err), &err);
    written.layouts[0].header_hash = slc_load_u64(forged->bytes + SLC_HEADER_HASH);
    written.sum_of_squares = slc_load_f64(forged->bytes + SLC_HEADER_SUM_OF_SQUARES);
    written.content_sum = slc_load_u64(forged->bytes + SLC_HEADER_CONTENT_SUM);
    written.value_type = (enum slc_value_type)forged->bytes[SLC_HEADER_VALUE_TYPE];
    SLC_ASSERT_OK(slc_manifest_write(slc_quick_files(), folder, &written, &err), &err);
}

static void save_forged(struct slc_forged *forged)
{
    slc_forged_seal(forged);
    slc_forged_save(forged, blocks);
    renew_manifest(forged);
    slc_forged_release(forged);
}

/* Claims that only decoding can refute; the fast check passes them. */
static void forged_claims(void)
{
    const uint32_t entry_at = SLC_BLOCK_HEADER_BYTES;
    struct findings findings;
    struct slc_verify_report report;
    struct slc_forged forged;
    uint8_t *block;
    uint8_t *entry;
    uint64_t coordinate;

    for (unsigned codec = SLC_CODEC_PACKED; codec <= SLC_CODEC_BLCO; codec++) {
        /* The content sum is wrong in all places. */
        write_tiny((enum slc_codec)codec);
        slc_forged_load(&forged, blocks);
        block = forged.bytes + slc_forged_block(&forged, 0);
        entry = forged.bytes + slc_forged_entry(&forged, 0);
        slc_store_u64(block + entry_at + SLC_TILE_AT_CONTENT, 42);
        slc_store_u64(entry + SLC_INDEX_CONTENT_SUM, 42);
        slc_store_u64(forged.bytes + SLC_HEADER_CONTENT_SUM, 42);
        save_forged(&forged);
        CU_ASSERT_EQUAL(verify(false, 1, &findings, &report), SLC_OK);
        CU_ASSERT(finds(true, "content sum"));

        /* The sum of squares is wrong. */
        write_tiny((enum slc_codec)codec);
        slc_forged_load(&forged, blocks);
        block = forged.bytes + slc_forged_block(&forged, 0);
        entry = forged.bytes + slc_forged_entry(&forged, 0);
        slc_store_f64(block + entry_at + SLC_TILE_AT_SQUARES, 42);
        slc_store_f64(entry + SLC_INDEX_SUM_OF_SQUARES, 42);
        slc_store_f64(forged.bytes + SLC_HEADER_SUM_OF_SQUARES, 42);
        save_forged(&forged);
        CU_ASSERT_EQUAL(verify(false, 1, &findings, &report), SLC_OK);
        CU_ASSERT(finds(true, "sum of squares"));

        /* Values that need f64 are declared as f32. */
        write_tiny((enum slc_codec)codec);
        slc_forged_load(&forged, blocks);
        forged.bytes[SLC_HEADER_VALUE_TYPE] = SLC_F32;
        save_forged(&forged);
        CU_ASSERT_EQUAL(verify(false, 1, &findings, &report), SLC_OK);
        CU_ASSERT(finds(true, "f32"));

        /* The declared range of mode 3 is wider than that of its coordinates, which is 33 of 40. */
        {
            const uint64_t dims[3] = {5, 3, 64};

            write_store(3, dims, 20, SLC_MADE_ONES, (enum slc_codec)codec, 0);
        }
        slc_forged_load(&forged, blocks);
        block = forged.bytes + slc_forged_block(&forged, 0);
        entry = forged.bytes + slc_forged_entry(&forged, 0);
        coordinate = slc_load_u64(entry + SLC_INDEX_RANGES + 8 * 5);
        CU_ASSERT_FATAL(coordinate < 63);
        slc_store_u64(entry + SLC_INDEX_RANGES + 8 * 5, coordinate + 1);
        block += entry_at + SLC_TILE_AT_CORNER + 8 * 3 + 4 * 2;
        slc_store_u32(block, slc_load_u32(block) + 1);
        save_forged(&forged);
        CU_ASSERT_EQUAL(verify(false, 1, &findings, &report), SLC_OK);
        CU_ASSERT(finds(true, "in mode 3"));
    }
}

/* A tensor whose tiles end earlier than the format requires. */
static void short_tiles(void)
{
    const uint64_t dims[2] = {100, 100};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_made_tensor tensor;
    struct slc_writer_summary summary;
    struct slc_manifest written;
    struct slc_encoder *encoder;
    struct slc_writer *writer;
    struct slc_tile_blob blob;

    write_tiny(SLC_CODEC_PACKED);
    CU_ASSERT_EQUAL(unlink(blocks), 0);
    slc_made_tensor_create(&tensor, 2, dims, 1000, SLC_MADE_ONES, 3);
    SLC_ASSERT_OK(slc_encoder_create(&tensor.keys, SLC_CODEC_PACKED, &encoder, &err), &err);
    SLC_ASSERT_OK(slc_writer_open(&(struct slc_writer_options){.files = slc_quick_files(),
                                                               .path = blocks,
                                                               .layout = SLC_LAYOUT_BLCO,
                                                               .order = 2,
                                                               .dims = dims,
                                                               .codec = SLC_CODEC_PACKED},
                                  &writer, &err),
                  &err);
    for (uint64_t begin = 0; begin < tensor.nnz; begin += 500) {
        uint64_t nnz = tensor.nnz - begin < 500 ? tensor.nnz - begin : 500;
        struct slc_tile_source source = {(uint32_t)nnz, tensor.key_lo + begin, NULL,
                                         tensor.values + begin, 0};

        SLC_ASSERT_OK(slc_tile_encode(encoder, &source, &blob, &err), &err);
        SLC_ASSERT_OK(slc_writer_append(writer, &blob, &err), &err);
    }
    SLC_ASSERT_OK(slc_writer_finish(writer, &summary, &err), &err);
    slc_made_manifest(&tensor, &summary, SLC_CODEC_PACKED, &written);
    SLC_ASSERT_OK(slc_manifest_write(slc_quick_files(), folder, &written, &err), &err);
    CU_ASSERT(finds(false, "would fit"));
    slc_encoder_destroy(encoder);
    slc_made_tensor_destroy(&tensor);
}

static void stray_names(void)
{
    struct slc_forged byte = {(uint8_t[]){'x'}, 1};
    char path[320];

    write_tiny(SLC_CODEC_PACKED);
    snprintf(path, sizeof path, "%s/old.blk", folder);
    slc_forged_save(&byte, path);
    CU_ASSERT(finds(false, "does not list this file"));
    CU_ASSERT_EQUAL(unlink(path), 0);
    expect_sound(60);
    snprintf(path, sizeof path, "%s/labels", folder);
    CU_ASSERT_EQUAL(mkdir(path, 0700), 0);
    CU_ASSERT(finds(true, "does not list this folder"));
    CU_ASSERT_EQUAL(rmdir(path), 0);
    CU_ASSERT_EQUAL(unlink(blocks), 0);
    CU_ASSERT(finds(true, "opening"));
    CU_ASSERT_EQUAL(unlink(manifest), 0);
    CU_ASSERT(finds(true, "not finished"));
    snprintf(folder, sizeof folder, "/nonexistent.slc");
    CU_ASSERT(finds(true, "opening"));
}

/* A damaged manifest does not hide the state of the blocks; all findings are counted. */
static void several_findings(void)
{
    struct findings findings;
    struct slc_verify_report report;
    struct slc_verify_options options = {.decode = true, .threads = 2, .max_findings = 2};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_forged bytes;

    write_large(SLC_CODEC_PACKED);
    slc_forged_load(&bytes, blocks);
    for (uint64_t block = 1; block <= 4; block++) {
        slc_forged_poke(blocks, slc_forged_block(&bytes, block) + 300, 0xa5);
        slc_forged_poke(blocks, slc_forged_block(&bytes, block) + 301, 0x5a);
    }
    CU_ASSERT_EQUAL(verify(true, 1, &findings, &report), SLC_ERR_DAMAGED);
    CU_ASSERT_EQUAL(findings.count, 4);
    /* The error record has the first finding. */
    CU_ASSERT_EQUAL(slc_verify_store(folder, &options, &report, &err), SLC_ERR_DAMAGED);
    CU_ASSERT_EQUAL(report.findings, 2);
    CU_ASSERT(err.block >= 1 && err.block <= 2);
    slc_forged_poke(manifest, 100, '!');
    CU_ASSERT_EQUAL(verify(true, 2, &findings, &report), SLC_ERR_DAMAGED);
    CU_ASSERT_EQUAL(findings.count, 5);
    CU_ASSERT_EQUAL(report.blocks, slc_load_u64(bytes.bytes + SLC_HEADER_BLOCK_COUNT));
    slc_forged_release(&bytes);
}

/* The error of a too small budget names a sufficient one, to the MiB. */
static void budget(void)
{
    struct slc_verify_options options = {.decode = true, .threads = 8, .memory_bytes = 1};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_verify_report report;
    unsigned long long least = 0;

    write_large(SLC_CODEC_PACKED);
    SLC_ASSERT_FAILS(slc_verify_store(folder, &options, &report, &err), SLC_ERR_BUDGET, &err,
                     "or more");
    CU_ASSERT_EQUAL(report.findings, 0);
    CU_ASSERT_EQUAL(sscanf(err.message, "checking this store needs %llu MiB of memory", &least), 1);
    slc_error_clear(&err);
    options.memory_bytes = (least - 1) << 20;
    CU_ASSERT_EQUAL(slc_verify_store(folder, &options, &report, &err), SLC_ERR_BUDGET);
    slc_error_clear(&err);
    options.memory_bytes = least << 20;
    SLC_ASSERT_OK(slc_verify_store(folder, &options, &report, &err), &err);
}

static void faults(void)
{
    struct slc_faulty faulty;
    struct slc_verify_options options = {.files = &faulty.table, .decode = true, .threads = 1};
    struct slc_verify_report report;

    write_tiny(SLC_CODEC_PACKED);
    slc_faulty_init(&faulty);
    for (uint64_t k = 1;; k++) {
        struct slc_error err = SLC_ERROR_INIT;
        enum slc_status status;

        slc_faulty_fail(&faulty, SLC_FAULTY_ANY, k, EIO);
        status = slc_verify_store(folder, &options, &report, &err);
        CU_ASSERT_EQUAL(slc_faulty_open_count(&faulty), 0);
        CU_ASSERT((status == SLC_OK) == (report.findings == 0));
        CU_ASSERT(status == SLC_OK || status == SLC_ERR_IO);
        if (!slc_faulty_fired(&faulty)) {
            SLC_ASSERT_OK(status, &err);
            CU_ASSERT(k > 10);
            break;
        }
    }
    slc_faulty_fail(&faulty, SLC_FAULTY_ANY, 0, 0);
    for (uint64_t k = 1;; k++) {
        struct slc_error err = SLC_ERROR_INIT;
        enum slc_status status;

        slc_fault_arm(SLC_FAULT_ALLOCATION, k);
        status = slc_verify_store(folder, &options, &report, &err);
        CU_ASSERT_EQUAL(slc_faulty_open_count(&faulty), 0);
        if (slc_fault_seen(SLC_FAULT_ALLOCATION) < k) {
            SLC_ASSERT_OK(status, &err);
            CU_ASSERT(k > 5);
            break;
        }
        CU_ASSERT_EQUAL(status, SLC_ERR_MEMORY);
        CU_ASSERT_EQUAL(report.findings, 0);
    }
    slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
}

static const struct slc_test tests[] = {
    {"sound stores of every codec pass", sound_stores},
    {"every flipped bit of a tiny store is found", flips_in_a_tiny_store},
    {"flipped bits of a larger store are found and placed", flips_in_a_larger_store},
    {"every other length is found", other_lengths},
    {"forged claims are refuted by decoding", forged_claims},
    {"tiles that end early are found", short_tiles},
    {"stray and missing files are found", stray_names},
    {"several findings, a damaged manifest among them", several_findings},
    {"a budget too small names one that is enough", budget},
    {"every failing operation and allocation", faults},
};

SLC_SUITE(verify)
{
    return slc_test_main("verify", tests, SLC_COUNT(tests), argc, argv);
}
