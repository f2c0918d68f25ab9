/* Arbitrary bytes as the names of a mode, listed with their checksum and, if the input selects it,
 * with a valid header, trailer, table or hash of the piece, so that the code after them is reached:
 * either each name is at its index or the file is rejected, and a whole file is written again with
 * the same bytes. */
#include "fuzz_mutate.h"
#include "fuzz_store.h"

#include "base/hash.h"
#include "base/memory/bytes.h"
#include "storage/manifest/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The number of names, the mode, and the parts to make valid. */
enum { INPUT_COUNT = 0, INPUT_MODE = 2, INPUT_RIGHT = 3, INPUT_BYTES = 4 };
enum { RIGHT_HEAD = 1, RIGHT_TAIL = 2, RIGHT_TABLE = 4, RIGHT_HASH = 8, RIGHT_LARGEST = 16 };
enum {
    FILE_BYTES_MAX = 1 << 16,
    FILE_BYTES_MIN = SLC_NAMES_HEAD_BYTES + SLC_NAMES_ENTRY_BYTES + SLC_NAMES_TAIL_BYTES
};

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

/* Only for files with one piece, that is, up to 1024 names. */
static void make_right(uint8_t *file, const struct slc_store_names *listed, unsigned right)
{
    uint8_t *tail = file + listed->file_bytes - SLC_NAMES_TAIL_BYTES;
    uint8_t *entry = tail - SLC_NAMES_ENTRY_BYTES;
    const uint64_t table = (uint64_t)(entry - file);

    if ((right & RIGHT_HEAD) != 0) {
        slc_names_encode_head(listed->mode, file);
    }
    if ((right & RIGHT_TAIL) != 0) {
        memset(tail, 0, SLC_NAMES_TAIL_BYTES);
        slc_store_u64(tail + SLC_NAMES_TAIL_COUNT, listed->count);
        slc_store_u64(tail + SLC_NAMES_TAIL_TABLE, table);
    }
    if ((right & RIGHT_LARGEST) != 0) {
        slc_store_u64(tail + SLC_NAMES_TAIL_LARGEST, table - SLC_NAMES_HEAD_BYTES);
    }
    if ((right & RIGHT_TABLE) != 0) {
        slc_store_u64(entry + SLC_NAMES_ENTRY_OFFSET, SLC_NAMES_HEAD_BYTES);
    }
    if ((right & RIGHT_HASH) != 0) {
        slc_store_u64(entry + SLC_NAMES_ENTRY_HASH,
                      slc_hash64(file + SLC_NAMES_HEAD_BYTES, table - SLC_NAMES_HEAD_BYTES));
    }
}

/* Reads every name, from the last to the first, and writes them again. */
static void read_all(const struct slc_store_names *listed, bool whole)
{
    struct slc_names_writer *writer = NULL;
    struct slc_store_names again;
    struct slc_names *names;
    const char *name;
    size_t bytes;

    if (slc_names_open(slc_files_system(), fuzz_folder(), listed, &names, NULL) != SLC_OK) {
        must(!whole);
        return;
    }
    must(slc_names_count(names) == listed->count);
    for (uint64_t i = listed->count + 1; i-- > 0;) {
        if (slc_names_get(names, i, &name, &bytes, NULL) == SLC_OK) {
            must((name != NULL) == (i < listed->count));
            must(name == NULL || (bytes <= SLC_NAME_BYTES_MAX && name[bytes] == '\0'));
        } else {
            must(!whole);
        }
    }
    if (whole) {
        must(slc_names_writer_open(slc_files_system(), fuzz_folder(), listed->mode, &writer,
                                   NULL) == SLC_OK);
    }
    for (uint64_t i = 0; i < listed->count && writer != NULL; i++) {
        must(slc_names_get(names, i, &name, &bytes, NULL) == SLC_OK);
        must(slc_names_writer_add(writer, name, bytes, NULL) == SLC_OK);
    }
    if (writer != NULL) {
        must(slc_names_writer_finish(writer, &again, NULL) == SLC_OK);
        must(again.count == listed->count && again.file_bytes <= listed->file_bytes);
        (void)remove(fuzz_path(again.file));
    }
    slc_names_close(names);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct slc_store_names listed = {.file = "fuzz.bin"};
    static uint8_t file[FILE_BYTES_MAX];

    if (bytes < INPUT_BYTES || bytes - INPUT_BYTES > FILE_BYTES_MAX) {
        return 0;
    }
    listed.count = slc_load_u16(data + INPUT_COUNT);
    listed.mode = data[INPUT_MODE] % SLC_MAX_ORDER;
    memset(file, 0, sizeof file);
    memcpy(file, data + INPUT_BYTES, bytes - INPUT_BYTES);
    listed.file_bytes = bytes - INPUT_BYTES > FILE_BYTES_MIN ? bytes - INPUT_BYTES : FILE_BYTES_MIN;
    make_right(file, &listed, data[INPUT_RIGHT]);
    listed.hash = slc_hash64(file, listed.file_bytes);
    fuzz_write(fuzz_path(listed.file), file, listed.file_bytes);
    read_all(&listed, slc_names_verify(slc_files_system(), fuzz_folder(), &listed, NULL) == SLC_OK);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t room, unsigned seed)
{
    return fuzz_mutate_behind(data, bytes, room, seed, INPUT_BYTES);
}
