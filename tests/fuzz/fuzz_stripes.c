/* Arbitrary bytes as a list of stripes, unchanged and with a recomputed checksum. An accepted list
 * is written again with the same bytes, and its places are within its stripes. Opening the list
 * accesses only files whose names are derived from the list; these files do not exist. */
#include "fuzz_store.h"

#include "base/hash.h"
#include "base/memory/bytes.h"
#include "base/memory/memory.h"
#include "storage/file/block_file.h"
#include "storage/file/stripes.h"

#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096, SPARE_BYTES = 2 * PAGE };

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

/* Every offset of the file, with the bytes contiguous to it, has a place in one of its stripes. */
static void look_at_places(const struct slc_stripe_shape *shape)
{
    uint64_t sum = 0;

    for (unsigned k = 0; k < shape->count; k++) {
        sum += slc_stripe_bytes(shape, k);
    }
    must(sum == shape->file_bytes);
    for (uint64_t step = 0; step < 64; step++) {
        const uint64_t offset = shape->file_bytes / 64 * step;
        uint64_t at = 0, most;
        unsigned k = shape->count;

        most = slc_stripe_place(shape, offset, &k, &at);
        must(k < shape->count && most > 0 && at >= PAGE);
        must(at - PAGE < slc_stripe_bytes(shape, k));
    }
}

static void look(const uint8_t *data, uint64_t bytes)
{
    struct slc_stripe_list list = {.shape = {0}};
    struct slc_block_file file = SLC_BLOCK_FILE_INIT;
    struct slc_error err = SLC_ERROR_INIT;
    uint8_t *again = NULL, page[PAGE];
    uint64_t again_bytes = 0;
    enum slc_status status = slc_stripe_list_decode(data, bytes, &list, &err);

    must(status == err.status);
    if (status == SLC_OK) {
        must(slc_stripe_list_encode(&list, &again, &again_bytes, &err) == SLC_OK);
        /* A list of another minor version differs in bytes 10 and 11 and in the hash, and may have
         * more pages than needed. */
        must(again_bytes <= bytes && memcmp(again + 12 + 4, data + 12 + 4, PAGE - 8 - 16) == 0);
        slc_free(again);
        look_at_places(&list.shape);
        slc_stripe_header_encode(&list.shape, 0, page);
        must(slc_stripe_header_check(&list.shape, 0, page, &err) == SLC_OK);
        must(slc_stripe_header_check(&list.shape, 0, data, NULL) != SLC_OK);
    }
    slc_stripe_list_clear(&list);
    fuzz_write(fuzz_path("fuzz.blk"), data, bytes);
    slc_error_clear(&err);
    status = slc_block_file_open(NULL, fuzz_path("fuzz.blk"), "opening it", &file, &err);
    must(status == err.status);
    must(status != SLC_OK || file.shape.count == 0);
    slc_block_file_close(&file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    uint8_t *sealed;
    uint64_t length = bytes;

    look(data, bytes);
    /* Pads with zeros to whole pages and sets the length and checksum. */
    sealed = calloc(1, bytes + SPARE_BYTES);
    must(sealed != NULL);
    memcpy(sealed, data, bytes);
    length = (bytes + 8 + PAGE - 1) / PAGE * PAGE;
    slc_store_u32(sealed + 12, (uint32_t)length);
    slc_store_u64(sealed + length - 8, slc_hash64(sealed, length - 8));
    look(sealed, length);
    free(sealed);
    return 0;
}
