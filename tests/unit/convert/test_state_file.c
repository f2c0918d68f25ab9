/* States of builds: stored values are read back, nothing more, and a modified file is rejected. */
#include "base/memory/memory.h"
#include "convert/build/resume/state_file.h"
#include "slc_test.h"

#include <stdio.h>
#include <string.h>

static const char name[] = "a.state";

static void put(struct slc_state *state)
{
    slc_state_put(state, 7);
    slc_state_put_bytes(state, "letters", 7);
    for (uint64_t i = 0; i < 1000; i++) {
        slc_state_put(state, i * i);
    }
}

static void test_fields(void)
{
    const struct slc_files *files = slc_files_system();
    const char *folder = slc_test_folder();
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_state state = {.bytes = NULL}, read = {.bytes = NULL};
    char letters[8] = "";
    bool sound = true;

    SLC_ASSERT_OK(slc_state_load(&read, files, folder, name, &sound, &err), &err);
    CU_ASSERT_FALSE(sound);
    put(&state);
    SLC_ASSERT_OK(slc_state_save(&state, files, folder, name, &err), &err);
    SLC_ASSERT_OK(slc_state_load(&read, files, folder, name, &sound, &err), &err);
    CU_ASSERT(sound);
    CU_ASSERT_EQUAL(slc_state_get(&read, 7), 7);
    slc_state_get_bytes(&read, letters, 7);
    CU_ASSERT_STRING_EQUAL(letters, "letters");
    for (uint64_t i = 0; i < 1000; i++) {
        CU_ASSERT_EQUAL(slc_state_get(&read, i * i), i * i);
    }
    CU_ASSERT_FALSE(read.bad);
    /* No value is left; a value above its limit is rejected. */
    CU_ASSERT_EQUAL(slc_state_get(&read, UINT64_MAX), 0);
    CU_ASSERT(read.bad);
    slc_state_destroy(&read);
    SLC_ASSERT_OK(slc_state_load(&read, files, folder, name, &sound, &err), &err);
    CU_ASSERT_EQUAL(slc_state_get(&read, 6), 0);
    CU_ASSERT(read.bad);
    slc_state_destroy(&read);
    SLC_ASSERT_OK(slc_state_remove(files, folder, name, &err), &err);
    SLC_ASSERT_OK(slc_state_remove(files, folder, name, &err), &err);
    state.bad = true;
    SLC_ASSERT_FAILS(slc_state_save(&state, files, folder, name, &err), SLC_ERR_MEMORY, &err,
                     "memory");
    slc_state_destroy(&state);
}

/* A file is rejected if any of its bits is flipped, and if it is cut to any smaller size. */
static void test_altered(void)
{
    const struct slc_files *files = slc_files_system();
    const char *folder = slc_test_folder();
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_state state = {.bytes = NULL};
    char *path = slc_path_join(folder, name);
    void *data = NULL;
    uint64_t bytes = 0;
    unsigned accepted = 0;

    slc_state_put(&state, 99);
    slc_state_put(&state, 100);
    SLC_ASSERT_OK(slc_state_save(&state, files, folder, name, &err), &err);
    slc_state_destroy(&state);
    SLC_ASSERT_OK(slc_file_load(files, path, 1000, &data, &bytes, &err), &err);
    for (uint64_t k = 0; k < 8 * bytes + bytes; k++) {
        const bool cut = k >= 8 * bytes;
        FILE *file = fopen(path, "wb");
        uint8_t *at = (uint8_t *)data + (cut ? 0 : k / 8);
        bool sound;

        CU_ASSERT_PTR_NOT_NULL_FATAL(file);
        *at ^= (uint8_t)(cut ? 0 : 1U << k % 8);
        (void)!fwrite(data, 1, cut ? k - 8 * bytes : bytes, file);
        CU_ASSERT_EQUAL(fclose(file), 0);
        *at ^= (uint8_t)(cut ? 0 : 1U << k % 8);
        SLC_ASSERT_OK(slc_state_load(&state, files, folder, name, &sound, &err), &err);
        accepted += sound;
        slc_state_destroy(&state);
    }
    CU_ASSERT_EQUAL(accepted, 0);
    slc_free(data);
    slc_free(path);
}

static const struct slc_test tests[] = {
    {"fields", test_fields},
    {"altered files", test_altered},
};

SLC_SUITE(state_file)
{
    return slc_test_main("state_file", tests, SLC_COUNT(tests), argc, argv);
}
