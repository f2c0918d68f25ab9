/* Resuming an interrupted block file: for any stop, and any truncation or change of its file and
 * journal, the finished file equals that of an uninterrupted build; faults of memory and disk on
 * the way lose nothing complete. */
#include "faulty_files.h"
#include "forge_file.h"
#include "make_sorted.h"
#include "slc_test.h"

#include "base/error/fault.h"
#include "base/hash.h"
#include "base/memory/bytes.h"
#include "base/random.h"
#include "storage/block/file_layout.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TAG = 4711 };

static char path[256];
static char journal[300];

/* A tensor in partitions, with the third row split, and its expected file. */
struct sample {
    struct slc_made_sorted sorted;
    struct slc_forged want;
    uint64_t count;
};

static void new_paths(void)
{
    snprintf(path, sizeof path, "%s/sorted.part", slc_test_folder());
    snprintf(journal, sizeof journal, "%s.journal", path);
}

static struct slc_writer_options options_of(const struct sample *sample,
                                            const struct slc_files *files)
{
    return (struct slc_writer_options){.files = files != NULL ? files : slc_quick_files(),
                                       .path = path,
                                       .layout = SLC_LAYOUT_SORTED,
                                       .layout_mode = sample->sorted.mode,
                                       .order = sample->sorted.tensor.order,
                                       .dims = sample->sorted.tensor.dims,
                                       .codec = SLC_CODEC_PACKED,
                                       .block_bytes = SLC_MIN_BLOCK_BYTES,
                                       .sync_bytes = UINT64_C(3) << 13};
}

/* Wide enough that partitions have several blocks; f64 values only in the second half. */
static void create_sample(struct sample *sample)
{
    const uint64_t dims[2] = {5, UINT64_C(1) << 38};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_writer_summary summary;
    struct slc_made_tensor tensor;

    new_paths();
    slc_made_tensor_create(&tensor, 2, dims, 1600, SLC_MADE_DOUBLES, 7);
    slc_made_sorted_create(&sample->sorted, &tensor, 0, 200);
    slc_made_tensor_destroy(&tensor);
    for (uint64_t i = 0; i < sample->sorted.tensor.nnz / 2; i++) {
        sample->sorted.tensor.values[i] = 1 + (double)(i % 5);
    }
    sample->count = sample->sorted.partition_count;
    CU_ASSERT_FATAL(sample->count >= 6);
    SLC_ASSERT_OK(slc_made_sorted_write(&sample->sorted, NULL, path, SLC_CODEC_PACKED,
                                        SLC_MIN_BLOCK_BYTES, &summary, &err),
                  &err);
    CU_ASSERT_FATAL(summary.block_count > sample->count);
    slc_forged_load(&sample->want, path);
    CU_ASSERT_EQUAL(unlink(path), 0);
}

static void destroy_sample(struct sample *sample)
{
    slc_forged_release(&sample->want);
    slc_made_sorted_destroy(&sample->sorted);
}

/* Builds `partitions` whole partitions and a part of one more, and stops. */
static void interrupt(const struct sample *sample, uint64_t partitions)
{
    const struct slc_writer_options options = options_of(sample, NULL);
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_writer *writer = NULL;
    struct slc_writer_kept kept;
    uint64_t most = partitions < sample->count ? partitions + 1 : partitions;

    SLC_ASSERT_OK(slc_writer_resume(&options, TAG, UINT64_MAX, &writer, &kept, &err), &err);
    CU_ASSERT_EQUAL(kept.partitions, 0);
    SLC_ASSERT_OK(
        slc_made_partitions_append(&sample->sorted, 0, most, SLC_CODEC_PACKED, writer, &err), &err);
    if (most == partitions) {
        SLC_ASSERT_OK(slc_writer_next_partition(writer, false, &err), &err);
    }
    SLC_ASSERT_OK(slc_writer_suspend(writer, &err), &err);
}

/* Whether the file equals that of an uninterrupted build, and the journal is removed. */
static bool is_finished(const struct sample *sample)
{
    struct slc_forged got;
    bool same;

    slc_forged_load(&got, path);
    same = got.size == sample->want.size && memcmp(got.bytes, sample->want.bytes, got.size) == 0;
    slc_forged_release(&got);
    return same && access(journal, F_OK) != 0;
}

/* Resumes and finishes. After an error the build is suspended or abandoned. */
static enum slc_status go_on(const struct sample *sample,
                             const struct slc_files *files,
                             bool suspend,
                             uint64_t *kept_partitions,
                             struct slc_error *err)
{
    const struct slc_writer_options options = options_of(sample, files);
    struct slc_writer *writer = NULL;
    struct slc_writer_summary summary;
    struct slc_writer_kept kept = {.partitions = 0};
    enum slc_status status = slc_writer_resume(&options, TAG, UINT64_MAX, &writer, &kept, err);

    *kept_partitions = kept.partitions;
    if (status != SLC_OK) {
        return status;
    }
    CU_ASSERT_EQUAL(kept.nnz, sample->sorted.begin[kept.partitions]);
    CU_ASSERT(kept.file_bytes >= SLC_PAGE_BYTES * (1 + kept.blocks));
    status = slc_made_partitions_append(&sample->sorted, kept.partitions, sample->count,
                                        SLC_CODEC_PACKED, writer, err);
    if (status == SLC_OK) {
        return slc_writer_finish(writer, &summary, err);
    }
    if (suspend) {
        enum slc_status ignored = slc_writer_suspend(writer, NULL);

        (void)ignored;
    } else {
        slc_writer_abandon(writer);
    }
    return status;
}

/* Resumes after `what`; returns true if at most `most` partitions were kept and the result is
 * right. */
static bool
recovers(const struct sample *sample, uint64_t least, uint64_t most, const char *what, uint64_t at)
{
    struct slc_error err = SLC_ERROR_INIT;
    uint64_t kept = 0;
    bool good;

    good = go_on(sample, NULL, false, &kept, &err) == SLC_OK && kept >= least && kept <= most &&
           is_finished(sample);
    if (!good) {
        printf("# %s at %llu: %llu partitions kept (%s)\n", what, (unsigned long long)at,
               (unsigned long long)kept, err.message);
    }
    CU_ASSERT_EQUAL(unlink(path), 0);
    return good;
}

static void every_partition(void)
{
    struct sample sample;

    create_sample(&sample);
    for (uint64_t p = 0; p <= sample.count; p++) {
        interrupt(&sample, p);
        CU_ASSERT(recovers(&sample, p, p, "stopped", p));
    }
    /* There is nothing to resume. */
    CU_ASSERT(recovers(&sample, 0, 0, "nothing", 0));
    destroy_sample(&sample);
}

/* A build is interrupted after every partition, and resumed. */
static void many_stops(void)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct sample sample;

    create_sample(&sample);
    for (uint64_t p = 0; p < sample.count; p++) {
        const struct slc_writer_options options = options_of(&sample, NULL);
        struct slc_writer *writer = NULL;
        struct slc_writer_kept kept;

        SLC_ASSERT_OK(slc_writer_resume(&options, TAG, UINT64_MAX, &writer, &kept, &err), &err);
        CU_ASSERT_EQUAL(kept.partitions, p);
        SLC_ASSERT_OK(
            slc_made_partitions_append(&sample.sorted, p, p + 1, SLC_CODEC_PACKED, writer, &err),
            &err);
        SLC_ASSERT_OK(slc_writer_next_partition(writer, false, &err), &err);
        SLC_ASSERT_OK(slc_writer_suspend(writer, &err), &err);
    }
    CU_ASSERT(recovers(&sample, sample.count, sample.count, "many stops", 0));
    destroy_sample(&sample);
}

/* A file finished except for the removal of its journal; fewer partitions are requested. */
static void finished_and_fewer(void)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_writer *writer = NULL;
    struct slc_writer_kept kept;
    struct slc_forged left;
    struct sample sample;
    struct slc_writer_options options;

    create_sample(&sample);
    interrupt(&sample, sample.count);
    slc_forged_load(&left, journal);
    CU_ASSERT(recovers(&sample, sample.count, sample.count, "all but finished", 0));
    slc_forged_save(&left, journal);
    slc_forged_save(&sample.want, path);
    CU_ASSERT(recovers(&sample, sample.count, sample.count, "finished", 0));
    slc_forged_save(&left, journal);
    slc_forged_save(&sample.want, path);
    slc_forged_release(&left);
    options = options_of(&sample, NULL);
    SLC_ASSERT_OK(slc_writer_resume(&options, TAG, 2, &writer, &kept, &err), &err);
    CU_ASSERT_EQUAL(kept.partitions, 2);
    SLC_ASSERT_OK(slc_writer_suspend(writer, &err), &err);
    CU_ASSERT(recovers(&sample, 2, 2, "two partitions", 0));
    destroy_sample(&sample);
}

/* A build with other options or another tag keeps nothing. */
static void other_builds(void)
{
    for (unsigned i = 0; i < 5; i++) {
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_writer *writer = NULL;
        struct slc_writer_kept kept;
        struct sample sample;
        struct slc_writer_options options;
        uint64_t dims[2];

        create_sample(&sample);
        interrupt(&sample, 4);
        options = options_of(&sample, NULL);
        memcpy(dims, sample.sorted.tensor.dims, sizeof dims);
        options.dims = dims;
        dims[0] += i == 0;
        options.codec = i == 1 ? SLC_CODEC_LZ4 : options.codec;
        options.block_bytes += i == 2 ? 4096 : 0;
        options.run.bits = i == 3 ? 2 : 0;
        SLC_ASSERT_OK(slc_writer_resume(&options, TAG + (i == 4), UINT64_MAX, &writer, &kept, &err),
                      &err);
        CU_ASSERT_EQUAL(kept.partitions, 0);
        slc_writer_abandon(writer);
        CU_ASSERT(access(path, F_OK) != 0 && access(journal, F_OK) != 0);
        destroy_sample(&sample);
    }
}

/* The journal truncated anywhere, or any of its bytes changed; the same for the file. */
static void altered(void)
{
    uint64_t seed = slc_test_seed();
    struct sample sample;
    const char *const names[2] = {path, journal};
    struct slc_forged left[2];
    uint64_t bad = 0;

    create_sample(&sample);
    interrupt(&sample, 5);
    for (unsigned i = 0; i < 2; i++) {
        slc_forged_load(&left[i], names[i]);
    }
    for (uint64_t round = 0; round < (slc_test_quick() ? 100 : 400); round++) {
        unsigned which = (unsigned)(round / 2 % 2);
        uint64_t at = slc_random_below(seed, 1, round, left[which].size);

        for (unsigned i = 0; i < 2; i++) {
            slc_forged_save(&left[i], names[i]);
        }
        if (round % 2 == 0) {
            slc_forged_resize(names[which], at);
        } else {
            slc_forged_poke(names[which], at,
                            left[which].bytes[at] ^ (uint8_t)(1U << round / 4 % 8));
        }
        bad += !recovers(&sample, 0, 5, names[which], at);
    }
    CU_ASSERT_EQUAL(bad, 0);
    /* The header page of the file may have any contents. */
    for (unsigned i = 0; i < 2; i++) {
        slc_forged_save(&left[i], names[i]);
    }
    slc_forged_poke(path, 100, 1);
    CU_ASSERT(recovers(&sample, 5, 5, "header", 100));
    /* The file or the journal is missing. */
    for (unsigned i = 0; i < 2; i++) {
        slc_forged_save(&left[i], names[i]);
        CU_ASSERT(recovers(&sample, 0, 0, "the other one missing", i));
    }
    for (unsigned i = 0; i < 2; i++) {
        slc_forged_release(&left[i]);
    }
    destroy_sample(&sample);
}

/* Forges the first record of a journal: `value` at `at` of its index entry, with valid hashes. */
static void claim(struct slc_forged *left, size_t at, uint64_t value)
{
    enum { HEAD = 64, ENTRY = 40 };
    const size_t record = ENTRY + slc_index_entry_bytes(2) + 8;
    uint64_t hash = slc_load_u64(left->bytes + HEAD - 8);

    slc_store_u64(left->bytes + HEAD + ENTRY + at, value);
    for (size_t from = HEAD; from + record <= left->size; from += record) {
        slc_store_u64(left->bytes + from, hash);
        hash = slc_hash64(left->bytes + from, record - 8);
        slc_store_u64(left->bytes + from + record - 8, hash);
    }
    slc_forged_save(left, journal);
}

/* A journal with valid hashes whose first block has more nonzeros than its tiles can have, or
 * none. */
static void impossible_blocks(void)
{
    const uint64_t claims[][2] = {{SLC_INDEX_NNZ, 0},
                                  {SLC_INDEX_NNZ, UINT64_MAX},
                                  {SLC_INDEX_NNZ, UINT64_C(1) << 40},
                                  {SLC_INDEX_TILE_COUNT, (uint64_t)SLC_CODEC_PACKED << 32}};
    struct sample sample;

    create_sample(&sample);
    for (size_t i = 0; i < SLC_COUNT(claims); i++) {
        struct slc_forged left;

        interrupt(&sample, 5);
        slc_forged_load(&left, journal);
        claim(&left, (size_t)claims[i][0], claims[i][1]);
        slc_forged_release(&left);
        CU_ASSERT(recovers(&sample, 0, 0, "an impossible block", i));
    }
    destroy_sample(&sample);
}

/* Every failing operation is reported, nothing leaks, and complete blocks are kept for the next
 * run. */
static void disk_faults(void)
{
    static const struct {
        enum slc_faulty_kind kind;
        int error;
        enum slc_status want;
    } cases[] = {
        {SLC_FAULTY_OPEN, EACCES, SLC_ERR_IO},       {SLC_FAULTY_STAT, EIO, SLC_ERR_IO},
        {SLC_FAULTY_READ, EIO, SLC_ERR_IO},          {SLC_FAULTY_TRUNCATE, EIO, SLC_ERR_IO},
        {SLC_FAULTY_WRITE, ENOSPC, SLC_ERR_NOSPACE}, {SLC_FAULTY_SYNC, EIO, SLC_ERR_IO},
        {SLC_FAULTY_CLOSE, EIO, SLC_ERR_IO},         {SLC_FAULTY_UNLINK, EIO, SLC_ERR_IO},
    };
    struct sample sample;
    struct slc_faulty faulty;

    create_sample(&sample);
    slc_faulty_init(&faulty);
    for (size_t i = 0; i < SLC_COUNT(cases); i++) {
        bool fired = true;

        for (uint64_t k = 1; fired; k++) {
            struct slc_error err = SLC_ERROR_INIT;
            uint64_t kept;
            enum slc_status status;

            interrupt(&sample, 4);
            slc_faulty_fail(&faulty, cases[i].kind, k, cases[i].error);
            status = go_on(&sample, &faulty.table, true, &kept, &err);
            fired = slc_faulty_fired(&faulty);
            CU_ASSERT_EQUAL(slc_faulty_open_count(&faulty), 0);
            if (status == SLC_OK) {
                CU_ASSERT(is_finished(&sample));
            } else {
                CU_ASSERT(fired && status == cases[i].want && err.system_errno == cases[i].error);
                /* A build that fails while it finishes removes its file. */
                CU_ASSERT(
                    recovers(&sample, access(path, F_OK) == 0 ? 4 : 0, sample.count, "fault", k));
                continue;
            }
            CU_ASSERT_EQUAL(unlink(path), 0);
        }
    }
    destroy_sample(&sample);
}

/* File and journal are synced occasionally, not after every partition. */
static void syncs(void)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct sample sample;
    struct slc_faulty faulty;
    uint64_t kept;

    create_sample(&sample);
    slc_faulty_init(&faulty);
    SLC_ASSERT_OK(go_on(&sample, &faulty.table, false, &kept, &err), &err);
    /* Two syncs at the end, and two each time that blocks are committed. */
    CU_ASSERT(slc_faulty_seen(&faulty, SLC_FAULTY_SYNC) >= 4);
    CU_ASSERT(slc_faulty_seen(&faulty, SLC_FAULTY_SYNC) < 2 * sample.count);
    destroy_sample(&sample);
}

static void memory_faults(void)
{
    struct sample sample;
    bool fired = true;

    create_sample(&sample);
    for (uint64_t k = 1; fired; k++) {
        struct slc_error err = SLC_ERROR_INIT;
        uint64_t kept;
        enum slc_status status;

        interrupt(&sample, 4);
        slc_fault_arm(SLC_FAULT_ALLOCATION, k);
        status = go_on(&sample, NULL, true, &kept, &err);
        fired = slc_fault_seen(SLC_FAULT_ALLOCATION) >= k;
        slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
        CU_ASSERT_EQUAL(status, fired ? SLC_ERR_MEMORY : SLC_OK);
        if (status == SLC_OK) {
            CU_ASSERT(is_finished(&sample));
            CU_ASSERT_EQUAL(unlink(path), 0);
        } else {
            CU_ASSERT(
                recovers(&sample, access(path, F_OK) == 0 ? 4 : 0, sample.count, "memory", k));
        }
    }
    destroy_sample(&sample);
}

static const struct slc_test tests[] = {
    {"stopped after every partition", every_partition},
    {"stopped again and again", many_stops},
    {"nearly finished, and fewer partitions requested", finished_and_fewer},
    {"another build begins anew", other_builds},
    {"file and journal cut and altered", altered},
    {"blocks of impossible numbers", impossible_blocks},
    {"every failing file operation", disk_faults},
    {"syncs", syncs},
    {"every failing allocation", memory_faults},
};

SLC_SUITE(resume)
{
    return slc_test_main("resume", tests, SLC_COUNT(tests), argc, argv);
}
