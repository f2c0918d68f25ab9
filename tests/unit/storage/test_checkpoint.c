/* Checkpoints: stored data is read back; every byte is covered by a checksum; whatever a crash, a
 * fault or a forger does to one generation, the other one is found, or none is accepted. */
#include "storage/checkpoint/checkpoint.h"

#include "base/error/fault.h"
#include "base/hash.h"
#include "base/memory/bytes.h"
#include "base/random.h"
#include "faulty_files.h"
#include "forge_file.h"
#include "slc_test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PAGE = 4096, BODY = 2 * PAGE, BUFFER = SLC_CHECKPOINT_BUFFER_BYTES };

/* Sections around the ends of pages and of the buffer, and an empty one. */
static const uint64_t lengths[] = {100, 0, PAGE, PAGE + 1, BUFFER - 1, BUFFER + 5};

static uint64_t reserve_bytes(void)
{
    return slc_checkpoint_file_bytes(lengths, SLC_COUNT(lengths));
}

/* Step between similar cases, where each takes several times as long. */
static uint64_t stride(uint64_t quick, uint64_t threads_only)
{
    return slc_test_threads_only() ? threads_only : slc_test_quick() ? quick : 1;
}

/* A new folder for each test. */
static const char *fresh_folder(const char *name)
{
    static char path[600];

    snprintf(path, sizeof path, "%.500s/%s", slc_test_folder(), name);
    return path;
}

static const char *generation_path(const char *folder, unsigned which)
{
    static char path[700];

    snprintf(path, sizeof path, "%.600s/checkpoint-%u.ckpt", folder, which + 1);
    return path;
}

/* Byte `i` of section `s` of generation `generation`. */
static uint8_t byte_of(uint64_t generation, unsigned s, uint64_t i)
{
    return (uint8_t)slc_mix64(generation * 1000 + s + i * 64);
}

/* Writes `count` sections, or all, in pieces of odd lengths. */
static enum slc_status write_sections(struct slc_checkpoint *checkpoint,
                                      uint64_t generation,
                                      unsigned count,
                                      struct slc_error *err)
{
    static uint8_t bytes[BUFFER + 5];

    slc_checkpoint_begin(checkpoint);
    for (unsigned s = 0; s < count; s++) {
        char name[16];

        snprintf(name, sizeof name, "part-%u", s + 1);
        for (uint64_t i = 0; i < lengths[s]; i++) {
            bytes[i] = byte_of(generation, s, i);
        }
        slc_checkpoint_section(checkpoint, name);
        for (uint64_t done = 0, more; done < lengths[s]; done += more) {
            more = 1 + slc_random_below(slc_test_seed(), s, done, 70000);
            more = more < lengths[s] - done ? more : lengths[s] - done;
            slc_checkpoint_put(checkpoint, bytes + done, more);
        }
    }
    slc_checkpoint_section(checkpoint, "numbers");
    slc_checkpoint_put_u64(checkpoint, generation);
    slc_checkpoint_put_f64(checkpoint, -0.5);
    return slc_checkpoint_commit(checkpoint, err);
}

/* The generation found has `count` of the sections, as they were written. */
static void expect_sections(struct slc_checkpoint_reader *reader, unsigned count)
{
    static uint8_t bytes[BUFFER + 5];
    const uint64_t generation = slc_checkpoint_reader_info(reader)->generation;
    struct slc_error err = SLC_ERROR_INIT;
    bool same = true;

    for (unsigned s = 0; s < count; s++) {
        char name[16];

        snprintf(name, sizeof name, "part-%u", s + 1);
        slc_checkpoint_seek(reader, name);
        slc_checkpoint_get(reader, bytes, lengths[s] / 3);
        slc_checkpoint_get(reader, bytes + lengths[s] / 3, lengths[s] - lengths[s] / 3);
        SLC_ASSERT_OK(slc_checkpoint_end(reader, &err), &err);
        for (uint64_t i = 0; i < lengths[s]; i++) {
            same = same && bytes[i] == byte_of(generation, s, i);
        }
    }
    CU_ASSERT_TRUE(same);
    slc_checkpoint_seek(reader, "numbers");
    CU_ASSERT_EQUAL(slc_checkpoint_get_u64(reader), generation);
    CU_ASSERT_EQUAL(slc_checkpoint_get_f64(reader), -0.5);
    SLC_ASSERT_OK(slc_checkpoint_end(reader, &err), &err);
}

/* Opens with quick files, reserves, and writes generations first .. last. */
static void write_generations(const char *folder, uint64_t first, uint64_t last, unsigned count)
{
    struct slc_checkpoint *checkpoint;
    struct slc_error err = SLC_ERROR_INIT;

    SLC_ASSERT_OK(slc_checkpoint_open(slc_quick_files(), folder, false, &checkpoint, &err), &err);
    SLC_ASSERT_OK(slc_checkpoint_reserve(checkpoint, reserve_bytes(), &err), &err);
    for (uint64_t g = first; g <= last; g++) {
        SLC_ASSERT_OK(write_sections(checkpoint, g, count, &err), &err);
    }
    slc_checkpoint_close(checkpoint);
}

/* The generation found after reopening, 0 for none; all of it is compared. */
static uint64_t found_generation(const char *folder, unsigned count)
{
    struct slc_checkpoint *checkpoint;
    struct slc_checkpoint_reader *reader;
    struct slc_error err = SLC_ERROR_INIT;
    uint64_t generation = 0;

    SLC_ASSERT_OK(slc_checkpoint_open(slc_quick_files(), folder, false, &checkpoint, &err), &err);
    reader = slc_checkpoint_found(checkpoint);
    if (reader != NULL) {
        generation = slc_checkpoint_reader_info(reader)->generation;
        expect_sections(reader, count);
    }
    slc_checkpoint_close(checkpoint);
    return generation;
}

static void round_trip(void)
{
    const char *folder = fresh_folder("round");
    const unsigned all = SLC_COUNT(lengths);
    struct slc_file_stat stat;

    CU_ASSERT_EQUAL(found_generation(folder, all), 0);
    CU_ASSERT_EQUAL(slc_quick_files()->stat_path(NULL, folder, &stat), -ENOENT);
    for (uint64_t g = 1; g <= 5; g++) {
        write_generations(folder, g, g, all);
        CU_ASSERT_EQUAL(found_generation(folder, all), g);
    }
    write_generations(folder, 6, 8, all);
    CU_ASSERT_EQUAL(found_generation(folder, all), 8);
    /* Write a shorter generation into a longer file. */
    write_generations(folder, 9, 9, 2);
    CU_ASSERT_EQUAL(found_generation(folder, 2), 9);
}

static void misread_sections(void)
{
    const char *folder = fresh_folder("misread");
    struct slc_checkpoint_reader *reader;
    struct slc_error err = SLC_ERROR_INIT;
    uint8_t bytes[PAGE];

    write_generations(folder, 1, 1, 1);
    SLC_ASSERT_OK(slc_checkpoint_reader_open(NULL, generation_path(folder, 0), &reader, &err),
                  &err);
    slc_checkpoint_seek(reader, "none");
    CU_ASSERT_EQUAL(slc_checkpoint_get_u64(reader), 0);
    SLC_ASSERT_FAILS(slc_checkpoint_end(reader, &err), SLC_ERR_FORMAT, &err, "no section 'none'");
    slc_checkpoint_seek(reader, "part-1");
    slc_checkpoint_get(reader, bytes, lengths[0] + 1);
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_checkpoint_end(reader, &err), SLC_ERR_FORMAT, &err, "too short");
    slc_checkpoint_seek(reader, "part-1");
    slc_checkpoint_get(reader, bytes, lengths[0] - 1);
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_checkpoint_end(reader, &err), SLC_ERR_FORMAT, &err, "too long");
    /* The generation is valid when it is opened, and damaged before it is read. */
    slc_forged_poke(generation_path(folder, 0), BODY, (uint8_t)~byte_of(1, 0, 0));
    slc_checkpoint_seek(reader, "part-1");
    slc_checkpoint_get(reader, bytes, lengths[0]);
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_checkpoint_end(reader, &err), SLC_ERR_DAMAGED, &err, "checksum");
    slc_checkpoint_reader_close(reader);
}

/* Every byte of header, table and padding, and some bytes of the sections. */
static void altered_bytes(void)
{
    const char *folder = fresh_folder("altered");
    struct slc_checkpoint_reader *reader;
    struct slc_checkpoint *checkpoint;
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_forged file;

    write_generations(folder, 1, 1, 1);
    slc_forged_load(&file, generation_path(folder, 0));
    for (uint64_t i = 0; i < BODY + 2 * PAGE; i += stride(5, 97)) {
        enum slc_status status;

        slc_forged_poke(generation_path(folder, 0), i, (uint8_t)(file.bytes[i] ^ (1U << i % 8)));
        status = slc_checkpoint_reader_open(NULL, generation_path(folder, 0), &reader, NULL);
        slc_forged_poke(generation_path(folder, 0), i, file.bytes[i]);
        if (status != SLC_ERR_DAMAGED && status != SLC_ERR_FORMAT) {
            CU_FAIL("an altered byte went unnoticed");
            break;
        }
    }
    CU_ASSERT_EQUAL(found_generation(folder, 1), 1);
    /* Damage is rejected with its position, unless there is another generation, which is used. */
    slc_forged_poke(generation_path(folder, 0), BODY, (uint8_t)~file.bytes[BODY]);
    SLC_ASSERT_FAILS(slc_checkpoint_open(NULL, folder, false, &checkpoint, &err), SLC_ERR_DAMAGED,
                     &err, "restart the run");
    CU_ASSERT_EQUAL(err.offset, BODY);
    slc_forged_poke(generation_path(folder, 0), BODY, file.bytes[BODY]);
    write_generations(folder, 2, 2, 1);
    slc_forged_poke(generation_path(folder, 1), BODY, (uint8_t)~byte_of(2, 0, 0));
    slc_error_clear(&err);
    SLC_ASSERT_OK(slc_checkpoint_open(NULL, folder, false, &checkpoint, &err), &err);
    CU_ASSERT_EQUAL(slc_checkpoint_fault(checkpoint)->status, SLC_ERR_DAMAGED);
    CU_ASSERT_EQUAL(slc_checkpoint_reader_info(slc_checkpoint_found(checkpoint))->generation, 1);
    slc_checkpoint_close(checkpoint);
    CU_ASSERT_EQUAL(found_generation(folder, 1), 1);
    slc_forged_release(&file);
}

/* A changed field of a checkpoint whose checksums are recomputed. */
struct forgery {
    uint64_t offset; /* offset of the field, which has 8 bytes */
    uint64_t value;
    enum slc_status want;
};

static void seal(struct slc_forged *file)
{
    slc_store_u64(file->bytes + 40, slc_hash64(file->bytes + PAGE, PAGE));
    slc_store_u64(file->bytes + 504, slc_hash64(file->bytes, 504));
}

static void forged_fields(void)
{
    static const struct forgery forgeries[] = {
        {0, 0x1234, SLC_ERR_FORMAT},
        {8, UINT64_C(2) | UINT64_C(4096) << 32, SLC_ERR_UNSUPPORTED},
        {8, UINT64_C(1) | UINT64_C(4095) << 32, SLC_ERR_FORMAT},
        {16, 0, SLC_ERR_FORMAT},
        {16, UINT64_MAX, SLC_ERR_FORMAT},
        {24, 65, SLC_ERR_FORMAT},
        {24, UINT64_MAX, SLC_ERR_FORMAT},
        {24, 1, SLC_ERR_FORMAT},
        {24, 3, SLC_ERR_FORMAT},
        {32, 0, SLC_ERR_FORMAT},
        {32, UINT64_MAX, SLC_ERR_DAMAGED},
        {32, BODY + PAGE, SLC_ERR_FORMAT},
        {48, 1, SLC_ERR_FORMAT},
        {496, 1, SLC_ERR_FORMAT},
        {512, 1, SLC_ERR_DAMAGED},
        {PAGE, 0, SLC_ERR_FORMAT},
        {PAGE, UINT64_C(0x4141), SLC_ERR_FORMAT},
        {PAGE + 16, 0, SLC_ERR_FORMAT},
        {PAGE + 16, UINT64_MAX, SLC_ERR_FORMAT},
        {PAGE + 24, UINT64_MAX, SLC_ERR_FORMAT},
        {PAGE + 24, UINT64_C(1) << 60, SLC_ERR_FORMAT},
        {PAGE + 24, 3 * PAGE, SLC_ERR_FORMAT},
        {PAGE + 24, 101, SLC_OK},
        {PAGE + 32, 0, SLC_ERR_DAMAGED},
        {PAGE + 56, BODY, SLC_ERR_FORMAT},
        {PAGE + 80, 1, SLC_ERR_FORMAT},
    };
    const char *folder = fresh_folder("forged");
    const char *path;
    struct slc_forged file;

    /* If the checkpoint created the folder, there would be one more section. */
    CU_ASSERT_EQUAL_FATAL(mkdir(folder, 0777), 0);
    write_generations(folder, 1, 1, 1);
    path = generation_path(folder, 0);
    slc_forged_load(&file, path);
    for (size_t f = 0; f < SLC_COUNT(forgeries); f++) {
        const uint64_t before = slc_load_u64(file.bytes + forgeries[f].offset);
        struct slc_checkpoint_reader *reader = NULL;
        enum slc_status status;

        slc_store_u64(file.bytes + forgeries[f].offset, forgeries[f].value);
        seal(&file);
        slc_forged_save(&file, path);
        status = slc_checkpoint_reader_open(NULL, path, &reader, NULL);
        CU_ASSERT_EQUAL(status, forgeries[f].want);
        if (status != forgeries[f].want) {
            printf("# forgery %zu: %s\n", f, slc_status_name(status));
        }
        slc_checkpoint_reader_close(reader);
        slc_store_u64(file.bytes + forgeries[f].offset, before);
    }
    /* Two sections with the same name. */
    memcpy(file.bytes + PAGE + 40, file.bytes + PAGE, 16);
    seal(&file);
    slc_forged_save(&file, path);
    CU_ASSERT_EQUAL(
        slc_checkpoint_reader_open(NULL, path, &(struct slc_checkpoint_reader *){NULL}, NULL),
        SLC_ERR_FORMAT);
    slc_forged_release(&file);
}

/* A forged section is a hole in the file, far too large to read. */
static void hole(void)
{
    const uint64_t more = UINT64_C(1) << 40;
    const char *folder = fresh_folder("hole");
    const char *path;
    struct slc_checkpoint_reader *reader = NULL;
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_forged file;

    /* If the checkpoint created the folder, there would be one more section. */
    CU_ASSERT_EQUAL_FATAL(mkdir(folder, 0777), 0);
    write_generations(folder, 1, 1, 1);
    path = generation_path(folder, 0);
    slc_forged_load(&file, path);
    slc_store_u64(file.bytes + 32, slc_load_u64(file.bytes + 32) + more);
    slc_store_u64(file.bytes + PAGE + 64, slc_load_u64(file.bytes + PAGE + 64) + more);
    seal(&file);
    slc_forged_save(&file, path);
    slc_forged_resize(path, slc_load_u64(file.bytes + 32));
    SLC_ASSERT_FAILS(slc_checkpoint_reader_open(NULL, path, &reader, &err), SLC_ERR_DAMAGED, &err,
                     "hole");
    slc_forged_release(&file);
}

/* Files of every length between nothing and all. */
static void cut_files(void)
{
    const char *folder = fresh_folder("cut");
    struct slc_forged file;

    write_generations(folder, 1, 1, 1);
    slc_forged_load(&file, generation_path(folder, 0));
    for (uint64_t size = BODY + PAGE + 1, step; size > 0;) {
        struct slc_checkpoint_reader *reader = NULL;
        enum slc_status status;

        /* Try every length below 10, because the magic number has 8 bytes. */
        step = size > 10 ? stride(5, 197) : 1;
        size -= step < size ? step : size;
        slc_forged_resize(generation_path(folder, 0), size);
        status = slc_checkpoint_reader_open(NULL, generation_path(folder, 0), &reader, NULL);
        if (size == 0 ? status != SLC_OK || reader != NULL
                      : status != (size < 8 ? SLC_ERR_FORMAT : SLC_ERR_DAMAGED)) {
            CU_FAIL("a cut file was not refused");
            break;
        }
    }
    slc_forged_release(&file);
}

/* Generation 3 is written over generation 1 and interrupted after any of its pages, in this order,
 * the reverse one, or with the header first: then generation 2 is found, and 3 once it is
 * complete. */
static void torn_writes(void)
{
    const char *folder = fresh_folder("torn");
    const unsigned count = 4;
    struct slc_forged before, after, mixed;
    uint64_t pages;

    write_generations(folder, 1, 2, count);
    slc_forged_load(&before, generation_path(folder, 0));
    write_generations(folder, 3, 3, count);
    slc_forged_load(&after, generation_path(folder, 0));
    slc_forged_load(&mixed, generation_path(folder, 0));
    CU_ASSERT_EQUAL_FATAL(before.size, after.size);
    /* Zeros follow the last section in both generations, so their pages are equal. */
    pages = slc_load_u64(after.bytes + 32) / PAGE;
    for (unsigned way = 0; way < 3; way++) {
        for (uint64_t arrived = 0; arrived <= pages;
             arrived += arrived + stride(2, 5) > pages ? 1 : stride(2, 5)) {
            for (uint64_t p = 0; p < pages; p++) {
                const bool is_new = way == 0   ? p < arrived
                                    : way == 1 ? p >= pages - arrived
                                               : p == 0 || p + 1 >= pages - arrived;

                memcpy(mixed.bytes + p * PAGE, (is_new ? after : before).bytes + p * PAGE, PAGE);
            }
            slc_forged_save(&mixed, generation_path(folder, 0));
            CU_ASSERT_EQUAL(found_generation(folder, count),
                            memcmp(mixed.bytes, after.bytes, after.size) == 0 ? 3 : 2);
        }
    }
    /* The header is cleared, and nothing is written yet. */
    memset(mixed.bytes, 0, PAGE);
    slc_forged_save(&mixed, generation_path(folder, 0));
    CU_ASSERT_EQUAL(found_generation(folder, count), 2);
    slc_forged_release(&before);
    slc_forged_release(&after);
    slc_forged_release(&mixed);
}

/* Opens, reads, reserves, writes two generations. *reported: the last generation reported as
 * written. */
static enum slc_status
whole_use(const struct slc_files *files, const char *folder, uint64_t *reported)
{
    struct slc_checkpoint *checkpoint = NULL;
    struct slc_checkpoint_reader *reader;
    enum slc_status status = slc_checkpoint_open(files, folder, false, &checkpoint, NULL);

    if (status != SLC_OK) {
        return status;
    }
    reader = slc_checkpoint_found(checkpoint);
    if (reader != NULL) {
        slc_checkpoint_seek(reader, "numbers");
        (void)slc_checkpoint_get_u64(reader);
        (void)slc_checkpoint_get_f64(reader);
        status = slc_checkpoint_end(reader, NULL);
    }
    if (status == SLC_OK) {
        status = slc_checkpoint_reserve(checkpoint, reserve_bytes(), NULL);
    }
    for (uint64_t g = *reported + 1, last = g + 1; g <= last && status == SLC_OK; g++) {
        status = write_sections(checkpoint, g, 2, NULL);
        *reported = status == SLC_OK ? g : *reported;
    }
    slc_checkpoint_close(checkpoint);
    return status;
}

/* The k-th file operation, or allocation, fails: the last reported generation is still found. */
static void faults(void)
{
    struct slc_faulty faulty;
    uint64_t reported;

    slc_faulty_init(&faulty);
    for (unsigned kind = 0; kind < 3; kind++) {
        const char *folder = fresh_folder(kind == 0 ? "io" : kind == 1 ? "space" : "memory");

        write_generations(folder, 1, 2, 2);
        reported = 2;
        for (uint64_t k = 1;; k += stride(1, 3)) {
            uint64_t found;
            enum slc_status status;
            bool fired;

            slc_fault_arm(SLC_FAULT_ALLOCATION, kind == 2 ? k : 0);
            slc_faulty_fail(&faulty, SLC_FAULTY_ANY, kind == 2 ? 0 : k, kind == 0 ? EIO : ENOSPC);
            status = whole_use(&faulty.table, folder, &reported);
            fired =
                kind == 2 ? slc_fault_seen(SLC_FAULT_ALLOCATION) >= k : slc_faulty_fired(&faulty);
            slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
            CU_ASSERT_EQUAL(slc_faulty_open_count(&faulty), 0);
            found = found_generation(folder, 2);
            CU_ASSERT_TRUE(found == reported || (status != SLC_OK && found == reported + 1));
            reported = found;
            if (!fired) {
                CU_ASSERT_EQUAL(status, SLC_OK);
                break;
            }
        }
    }
}

/* After a failed sync neither that file nor the other one is written again. */
static void failed_sync(void)
{
    const char *folder = fresh_folder("sync");
    struct slc_checkpoint *checkpoint;
    struct slc_faulty faulty;
    struct slc_file_stat stat;
    struct slc_error err = SLC_ERROR_INIT;
    uint64_t writes;

    slc_faulty_init(&faulty);
    write_generations(folder, 1, 2, 2);
    SLC_ASSERT_OK(slc_checkpoint_open(&faulty.table, folder, false, &checkpoint, &err), &err);
    SLC_ASSERT_OK(slc_checkpoint_reserve(checkpoint, reserve_bytes(), &err), &err);
    slc_faulty_fail(&faulty, SLC_FAULTY_SYNC, 1, EIO);
    SLC_ASSERT_FAILS(write_sections(checkpoint, 3, 2, &err), SLC_ERR_IO, &err, "syncing");
    CU_ASSERT_EQUAL(slc_quick_files()->stat_path(NULL, generation_path(folder, 0), &stat), -ENOENT);
    writes = slc_faulty_seen(&faulty, SLC_FAULTY_WRITE);
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(write_sections(checkpoint, 3, 2, &err), SLC_ERR_IO, &err, "syncing");
    CU_ASSERT_EQUAL(slc_faulty_seen(&faulty, SLC_FAULTY_WRITE), writes);
    slc_checkpoint_close(checkpoint);
    CU_ASSERT_EQUAL(found_generation(folder, 2), 2);
}

/* A full disk is detected at once, and leaves no files; without support for reserving, zeros are
 * written. */
static void reserving(void)
{
    const char *folder = fresh_folder("reserve");
    struct slc_checkpoint *checkpoint;
    struct slc_faulty faulty;
    struct slc_file_stat stat;
    struct slc_error err = SLC_ERROR_INIT;

    slc_faulty_init(&faulty);
    SLC_ASSERT_OK(slc_checkpoint_open(&faulty.table, folder, false, &checkpoint, &err), &err);
    slc_faulty_limit_room(&faulty, reserve_bytes() - 1);
    SLC_ASSERT_FAILS(slc_checkpoint_reserve(checkpoint, reserve_bytes(), &err), SLC_ERR_NOSPACE,
                     &err, "choose another checkpoint folder");
    slc_checkpoint_close(checkpoint);
    CU_ASSERT_EQUAL(slc_quick_files()->stat_path(NULL, folder, &stat), -ENOENT);

    slc_error_clear(&err);
    SLC_ASSERT_OK(slc_checkpoint_open(&faulty.table, folder, false, &checkpoint, &err), &err);
    slc_faulty_fail_from(&faulty, SLC_FAULTY_RESERVE, 1, EOPNOTSUPP);
    SLC_ASSERT_OK(slc_checkpoint_reserve(checkpoint, reserve_bytes(), &err), &err);
    for (unsigned k = 0; k < 2; k++) {
        CU_ASSERT_EQUAL(slc_quick_files()->stat_path(NULL, generation_path(folder, k), &stat), 0);
        CU_ASSERT_EQUAL(stat.bytes, reserve_bytes());
    }
    SLC_ASSERT_OK(write_sections(checkpoint, 1, 2, &err), &err);
    slc_checkpoint_close(checkpoint);
    CU_ASSERT_EQUAL(found_generation(folder, 2), 1);
    CU_ASSERT_EQUAL(slc_checkpoint_file_bytes(&(uint64_t){UINT64_MAX - 5}, 1), UINT64_MAX);
}

static void one_process_at_a_time(void)
{
    const char *folder = fresh_folder("lock");
    struct slc_checkpoint *first, *second;
    struct slc_error err = SLC_ERROR_INIT;

    SLC_ASSERT_OK(slc_checkpoint_open(NULL, folder, false, &first, &err), &err);
    SLC_ASSERT_FAILS(slc_checkpoint_open(NULL, folder, false, &second, &err), SLC_ERR_IO, &err,
                     "another sluice");
    slc_checkpoint_close(first);
}

static void beginning_anew(void)
{
    const char *folder = fresh_folder("anew");
    struct slc_checkpoint *checkpoint;
    struct slc_file_stat stat;
    struct slc_error err = SLC_ERROR_INIT;

    write_generations(folder, 1, 3, 1);
    SLC_ASSERT_OK(slc_checkpoint_open(slc_quick_files(), folder, true, &checkpoint, &err), &err);
    CU_ASSERT_PTR_NULL(slc_checkpoint_found(checkpoint));
    SLC_ASSERT_OK(slc_checkpoint_reserve(checkpoint, reserve_bytes(), &err), &err);
    SLC_ASSERT_OK(write_sections(checkpoint, 1, 1, &err), &err);
    SLC_ASSERT_OK(slc_checkpoint_remove(checkpoint, &err), &err);
    slc_checkpoint_close(checkpoint);
    for (unsigned k = 0; k < 2; k++) {
        CU_ASSERT_EQUAL(slc_quick_files()->stat_path(NULL, generation_path(folder, k), &stat),
                        -ENOENT);
    }
}

/* Removes one file or both, and with both the folder; then the next generation exists again. */
static void removed_by_others(void)
{
    const struct slc_files *files = slc_quick_files();

    for (unsigned which = 1; which <= 4; which++) {
        const char *folder = fresh_folder("removed");
        struct slc_checkpoint *checkpoint;
        struct slc_error err = SLC_ERROR_INIT;

        SLC_ASSERT_OK(slc_checkpoint_open(files, folder, true, &checkpoint, &err), &err);
        SLC_ASSERT_OK(slc_checkpoint_reserve(checkpoint, reserve_bytes(), &err), &err);
        SLC_ASSERT_OK(write_sections(checkpoint, 1, 1, &err), &err);
        for (unsigned k = 0; k < 2; k++) {
            if (which == 4 || (which >> k & 1U) != 0) {
                CU_ASSERT_EQUAL(files->unlink(NULL, generation_path(folder, k)), 0);
            }
        }
        CU_ASSERT_EQUAL(which == 4 ? files->remove_folder(NULL, folder) : 0, 0);
        SLC_ASSERT_OK(write_sections(checkpoint, 2, 1, &err), &err);
        SLC_ASSERT_OK(write_sections(checkpoint, 3, 1, &err), &err);
        slc_checkpoint_close(checkpoint);
        CU_ASSERT_EQUAL(found_generation(folder, 1), 3);
    }
}

SLC_SUITE(checkpoint)
{
    static const struct slc_test tests[] = {
        {"stored data is read back", round_trip},
        {"sections are read as they are", misread_sections},
        {"every altered byte is noticed", altered_bytes},
        {"forged fields are refused", forged_fields},
        {"cut files are refused", cut_files},
        {"a hole is not read through", hole},
        {"a torn generation leaves the other", torn_writes},
        {"any fault leaves the last generation", faults},
        {"a failed sync is not tried again", failed_sync},
        {"space is reserved or refused", reserving},
        {"one process at a time", one_process_at_a_time},
        {"beginning anew and removing", beginning_anew},
        {"others remove it meanwhile", removed_by_others},
    };

    return slc_test_main("storage: checkpoint", tests, SLC_COUNT(tests), argc, argv);
}
