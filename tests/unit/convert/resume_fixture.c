/* Interrupts a build, resumes it and compares the store. */
#include "resume_fixture.h"

#include "convert/build/build_memory.h"
#include "convert/build/resume/build_folder.h"
#include "convert/publish/build_complete.h"
#include "faulty_files.h"
#include "slc_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { CUT = 3000 };

uint64_t pieces_of(const struct trial *trial)
{
    return (trial->input.count + CUT - 1) / CUT;
}

const char *output(void)
{
    return store_in_folder("r.slc");
}

const char *left(const char *name)
{
    return path_in(path_in(test_folder(), "r.slc.part"), name);
}

static enum slc_status push(const struct input *input,
                            struct slc_builder *builder,
                            unsigned worker,
                            uint64_t piece,
                            struct slc_error *err)
{
    uint64_t begin = piece * CUT;
    uint64_t rest = input->count - begin;
    struct slc_entries entries = {.order = input->order,
                                  .count = rest < CUT ? (uint32_t)rest : CUT,
                                  .values = input->values + begin,
                                  .sequence = piece};

    for (unsigned m = 0; m < input->order; m++) {
        entries.coords[m] = input->coords[m] + begin;
    }
    return slc_builder_push(builder, worker, &entries, err);
}

static enum slc_status commit(struct slc_builder *builder, uint64_t pieces, struct slc_error *err)
{
    struct slc_state note = {.bytes = NULL};
    enum slc_status status;

    slc_state_put(&note, pieces);
    status = slc_builder_commit(builder, &note, err);
    slc_state_destroy(&note);
    return status;
}

static enum slc_status
sample(const struct trial *trial, struct slc_builder *builder, struct slc_error *err)
{
    const struct input *input = &trial->input;
    struct slc_entries entries = {.order = input->order, .count = trial->sample};
    uint64_t *columns = malloc(trial->sample * (size_t)input->order * sizeof *columns);
    enum slc_status status;

    for (unsigned m = 0; m < input->order; m++) {
        uint64_t *column = columns + (size_t)m * trial->sample;

        for (uint32_t i = 0; i < trial->sample; i++) {
            column[i] = input->coords[m][i * input->count / trial->sample];
        }
        entries.coords[m] = column;
    }
    status = slc_builder_sample(builder, &entries, trial->sample, input->count, err);
    free(columns);
    return status;
}

struct slc_builder_options options_of(const struct trial *trial, const struct slc_files *files)
{
    struct slc_builder_options options = {.files = files != NULL ? files : slc_quick_files(),
                                          .output = output(),
                                          .codec = SLC_CODEC_PACKED,
                                          .fibers = trial->fibers,
                                          .relabel = trial->relabel,
                                          .block_bytes = 64 << 10,
                                          .memory_bytes = trial->memory,
                                          .workers = trial->workers,
                                          .assumed_base = trial->assumed_base,
                                          .resumable = true,
                                          .identity = {11, 22},
                                          .commit_seconds = 1e-9};

    if (options.memory_bytes == 0) {
        options.memory_bytes = slc_builder_memory_min(&options, trial->input.order);
    }
    return options;
}

enum slc_status build_with(const struct trial *trial,
                           const struct slc_builder_options *options,
                           uint64_t stop,
                           uint64_t *begun,
                           struct slc_builder_report *report,
                           struct slc_error *err)
{
    struct slc_store_origin origin = {.source = "test", .dialect = "tns", .writer = "test"};
    const struct input *input = &trial->input;
    struct slc_builder *builder = NULL;
    struct slc_complete_left complete;
    struct slc_state *note;
    uint64_t piece = 0;
    bool found = false;
    enum slc_status status = slc_complete_find(options, &complete, &found, err);

    if (status == SLC_OK && found) {
        *begun = pieces_of(trial);
        status = slc_complete_left_finish(&complete, err);
        *report = complete.report;
        report->completed = true;
        return status;
    }
    if (status == SLC_OK) {
        status = slc_builder_create(options, input->order, &builder, err);
    }
    if (status != SLC_OK) {
        return status;
    }
    note = slc_builder_resumed(builder);
    if (note != NULL) {
        piece = slc_state_get(note, pieces_of(trial));
        CU_ASSERT_FALSE(note->bad);
    } else if (trial->sample > 0) {
        status = sample(trial, builder, err);
    }
    *begun = piece;
    while (status == SLC_OK && piece < pieces_of(trial) && piece < stop) {
        status = push(input, builder, (unsigned)(piece % options->workers), piece, err);
        piece++;
        if (status == SLC_OK && trial->every > 0 &&
            (piece % trial->every == 0 || piece == pieces_of(trial))) {
            status = commit(builder, piece, err);
        }
    }
    if (status == SLC_OK && piece == stop) {
        status = SLC_ERR_IO;
    }
    if (status != SLC_OK) {
        slc_builder_end(builder, status);
        return status;
    }
    return slc_builder_finish(builder, input->base, input->dims, &origin, report, err);
}

enum slc_status build_to(const struct trial *trial,
                         const struct slc_files *files,
                         uint64_t stop,
                         uint64_t *begun,
                         struct slc_error *err)
{
    struct slc_builder_options options = options_of(trial, files);
    struct slc_builder_report report;

    return build_with(trial, &options, stop, begun, &report, err);
}

void check_built(const struct trial *trial)
{
    CU_ASSERT_EQUAL(hash_of(path_in(output(), "blco.blk")), trial->hash);
    CU_ASSERT_EQUAL(hash_of(path_in(output(), "tensor.json")), trial->manifest_hash);
    CU_ASSERT_FALSE(exists(left("")));
    CU_ASSERT_FALSE(exists(path_in(output(), SLC_SPILL_NAME)));
    CU_ASSERT_FALSE(exists(path_in(output(), SLC_PUSHED_STATE_NAME)));
    CU_ASSERT_FALSE(exists(path_in(output(), SLC_SORTED_STATE_NAME)));
    CU_ASSERT_FALSE(exists(path_in(output(), SLC_COMPLETE_STATE_NAME)));
    remove_store(output());
}

void go_on(const struct trial *trial)
{
    struct slc_error err = SLC_ERROR_INIT;
    uint64_t begun;

    SLC_ASSERT_OK(build_to(trial, NULL, UINT64_MAX, &begun, &err), &err);
    check_built(trial);
}

void want(struct trial *trial)
{
    struct slc_builder_options options = options_of(trial, NULL);
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_builder_report report;
    uint64_t every = trial->every, begun;

    trial->every = 0;
    options.resumable = false;
    SLC_ASSERT_OK(build_with(trial, &options, UINT64_MAX, &begun, &report, &err), &err);
    trial->every = every;
    trial->hash = hash_of(path_in(output(), "blco.blk"));
    trial->manifest_hash = hash_of(path_in(output(), "tensor.json"));
    remove_store(output());
}

void create_trial(struct trial *trial, uint64_t count, enum shape shape)
{
    static const uint64_t dims[] = {700, 60, 4000};

    *trial = (struct trial){.workers = 2, .assumed_base = 1, .every = 7};
    input_create(&trial->input, 3, dims, count, 1, shape, 5);
    for (uint64_t i = 0; i < count; i += 37) {
        trial->input.values[i] = 0;
    }
}

void alter(const char *path, uint64_t at, bool cut)
{
    FILE *file = fopen(path, "r+b");
    int byte;

    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    if (cut) {
        CU_ASSERT_EQUAL(ftruncate(fileno(file), (off_t)at), 0);
    } else {
        CU_ASSERT_EQUAL(fseek(file, (long)at, SEEK_SET), 0);
        byte = fgetc(file);
        CU_ASSERT_EQUAL(fseek(file, (long)at, SEEK_SET), 0);
        CU_ASSERT_NOT_EQUAL(fputc(byte ^ 4, file), EOF);
    }
    CU_ASSERT_EQUAL(fclose(file), 0);
}
