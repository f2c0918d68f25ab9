/* Arbitrary bytes as a generation of a checkpoint: unchanged, and with recomputed checksums for all
 * parts inside the file, so that the code after the checksum tests is reached.
 *
 * Input: for each page of the file, the number of bytes before its zero padding (u16), and these
 * bytes. */
#include "fuzz_mutate.h"
#include "fuzz_store.h"

#include "base/hash.h"
#include "base/memory/bytes.h"
#include "engine/solve/cp_checkpoint.h"
#include "storage/checkpoint/checkpoint.h"

#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096, ENTRY = 40, FILE_BYTES_MAX = 64 * PAGE };

static void seal(uint8_t *data, size_t bytes)
{
    if (bytes < 2 * PAGE) {
        return;
    }
    for (size_t s = 0; s < SLC_CHECKPOINT_SECTIONS; s++) {
        uint8_t *entry = data + PAGE + s * ENTRY;
        const uint64_t offset = slc_load_u64(entry + 16), length = slc_load_u64(entry + 24);

        if (offset >= PAGE && offset <= bytes && length > 0 && length <= bytes - offset) {
            const uint64_t padded = (length + PAGE - 1) / PAGE * PAGE;

            if (padded <= bytes - offset) {
                slc_store_u64(entry + 32, slc_hash64(data + offset, padded));
            }
        }
    }
    slc_store_u64(data + 40, slc_hash64(data + PAGE, PAGE));
    slc_store_u64(data + 504, slc_hash64(data, 504));
}

/* Reads everything that a program reads of a checkpoint before it knows the tensor. */
static void look(void)
{
    static char identity[SLC_CP_IDENTITY_BYTES];
    struct slc_checkpoint_reader *reader = NULL;
    struct slc_checkpoint *checkpoint = NULL;
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_cp_saved saved;
    uint8_t bytes[100];

    if (slc_checkpoint_reader_open(NULL, fuzz_path("checkpoint-1.ckpt"), &reader, &err) == SLC_OK &&
        reader != NULL) {
        const struct slc_checkpoint_info *info = slc_checkpoint_reader_info(reader);

        for (unsigned s = 0; s < info->section_count; s++) {
            slc_checkpoint_seek(reader, info->sections[s].name);
            for (uint64_t got = 0; got < info->sections[s].bytes; got += sizeof bytes) {
                slc_checkpoint_get(reader, bytes, sizeof bytes);
            }
            slc_error_clear(&err);
            if (slc_checkpoint_end(reader, &err) == SLC_OK && info->sections[s].bytes % 100 != 0) {
                abort();
            }
        }
        slc_error_clear(&err);
        if (slc_cp_saved_read(reader, identity, &saved, &err) == SLC_OK &&
            (saved.order == 0 || saved.order > SLC_MAX_ORDER || saved.place >= saved.order ||
             saved.mode_order[saved.place] >= saved.order)) {
            abort();
        }
    }
    slc_checkpoint_reader_close(reader);
    if (slc_checkpoint_open(NULL, fuzz_folder(), false, &checkpoint, &err) == SLC_OK) {
        slc_checkpoint_close(checkpoint);
    }
}

/* Returns the size of the file in bytes. */
static size_t expand(uint8_t *file, const uint8_t *data, size_t bytes)
{
    size_t size = 0;

    while (bytes >= 2 && size < FILE_BYTES_MAX) {
        size_t used = slc_load_u16(data) % (PAGE + 1);

        data += 2;
        bytes -= 2;
        used = used < bytes ? used : bytes;
        memcpy(file + size, data, used);
        memset(file + size + used, 0, PAGE - used);
        data += used;
        bytes -= used;
        size += PAGE;
    }
    /* A remaining byte truncates the last page. */
    return size > 0 && bytes > 0 ? size - PAGE + data[0] : size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static uint8_t file[FILE_BYTES_MAX];
    const size_t size = expand(file, data, bytes);

    fuzz_write(fuzz_path("checkpoint-1.ckpt"), file, size);
    look();
    seal(file, size);
    fuzz_write(fuzz_path("checkpoint-1.ckpt"), file, size);
    look();
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t room, unsigned seed)
{
    return fuzz_mutate_pieces(data, bytes, room, seed, PAGE);
}
