/* Chunks planted in the leftovers of an interrupted build, with valid hashes and cyclic links: they
 * are rejected instead of followed forever. */
#include "base/memory/bytes.h"
#include "builder_fixture.h"
#include "convert/build/resume/build_folder.h"
#include "convert/build/resume/state_file.h"
#include "convert/build/spill/chunk.h"
#include "convert/publish/build_complete.h"
#include "faulty_files.h"
#include "slc_test.h"

#include <stdio.h>
#include <stdlib.h>

/* Bytes of a chunk before its runs, and the offset of its length. */
enum { CHUNK_HEAD = 72, CHUNK_LENGTH = 20, CHUNKS_ROOM = 4 << 20 };

static const char *output(void)
{
    return store_in_folder("links.slc");
}

/* A builder of the whole input with one commit, or a builder that resumes after it. */
static enum slc_status
build(const struct input *input, unsigned assumed_base, bool stop, struct slc_error *err)
{
    const struct slc_builder_options options = {.files = slc_quick_files(),
                                                .output = output(),
                                                .codec = SLC_CODEC_PACKED,
                                                .memory_bytes = 30 << 20,
                                                .workers = 1,
                                                .assumed_base = assumed_base,
                                                .resumable = true,
                                                .identity = {11, 22},
                                                .commit_seconds = 1e-9};
    struct slc_store_origin origin = {.source = "test", .dialect = "tns", .writer = "test"};
    struct slc_entries entries = {
        .order = input->order, .count = (uint32_t)input->count / 2, .values = input->values};
    struct slc_state note = {.bytes = NULL};
    struct slc_builder_report report;
    struct slc_builder *builder = NULL;
    enum slc_status status = slc_builder_create(&options, input->order, &builder, err);

    for (unsigned half = 0; half < 2 && status == SLC_OK && stop; half++) {
        for (unsigned m = 0; m < input->order; m++) {
            entries.coords[m] = input->coords[m] + half * entries.count;
        }
        entries.values = input->values + half * entries.count;
        entries.sequence = half;
        status = slc_builder_push(builder, 0, &entries, err);
    }
    if (status == SLC_OK && stop) {
        status = slc_builder_commit(builder, &note, err);
    }
    if (status != SLC_OK || stop) {
        slc_builder_end(builder, status == SLC_OK ? SLC_ERR_IO : status);
        return status;
    }
    CU_ASSERT_PTR_NOT_NULL(slc_builder_resumed(builder));
    return slc_builder_finish(builder, input->base, input->dims, &origin, &report, err);
}

/* Makes every chunk of the file its own predecessor; returns the number of chunks. */
static unsigned link_in_circles(const char *path)
{
    uint8_t *data = calloc(1, CHUNKS_ROOM);
    FILE *file = fopen(path, "r+b");
    unsigned chunks = 0;
    size_t have, at = 0;

    CU_ASSERT_FATAL(data != NULL && file != NULL);
    have = fread(data, 1, CHUNKS_ROOM, file);
    while (at + CHUNK_HEAD < have) {
        const uint32_t bytes = slc_load_u32(data + at + CHUNK_LENGTH);
        struct slc_chunk chunk;

        if (bytes > have - at || slc_chunk_open(&chunk, data + at, bytes, NULL) != SLC_OK) {
            break;
        }
        slc_chunk_seal(data + at, (struct slc_chunk_link){0, (uint32_t)at, bytes});
        at += bytes;
        chunks++;
    }
    rewind(file);
    CU_ASSERT_EQUAL(fwrite(data, 1, have, file), have);
    CU_ASSERT_EQUAL(fclose(file), 0);
    free(data);
    return chunks;
}

static void circles(void)
{
    static const uint64_t dims[] = {700, 60, 4000};
    struct input input;

    input_create(&input, 3, dims, 20000, 1, SKEWED, 5);
    /* If the base differs from the assumed one, fibers are counted again, over all chunks. */
    for (unsigned assumed_base = 0; assumed_base < 2; assumed_base++) {
        struct slc_error err = SLC_ERROR_INIT;
        const char *part = path_in(test_folder(), "links.slc.part");

        SLC_ASSERT_OK(build(&input, assumed_base, true, &err), &err);
        CU_ASSERT(link_in_circles(path_in(part, SLC_SPILL_NAME)) > 0);
        SLC_ASSERT_FAILS(build(&input, assumed_base, false, &err), SLC_ERR_DAMAGED, &err,
                         "recorded");
        CU_ASSERT_FALSE(exists(part));
    }
    input_destroy(&input);
}

static const struct slc_test tests[] = {{"chunks in circles", circles}};

SLC_SUITE(builder_links)
{
    return slc_test_main("builder_links", tests, SLC_COUNT(tests), argc, argv);
}
