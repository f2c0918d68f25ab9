/* Arbitrary bytes as the permutation of a mode, listed with their checksum: an accepted file is a
 * permutation, and writing it again yields the same bytes. */
#include "fuzz_mutate.h"
#include "fuzz_store.h"

#include "base/hash.h"
#include "storage/manifest/labels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The first byte is the mode size, the second the mode; the file is padded with zeros. */
enum { HEAD_BYTES = 2, LENGTH_MAX = 2 + 255 };

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

/* Checks every index in both directions, and that writing yields the same bytes. */
static void
check(struct slc_labels *labels, const struct slc_store_permutation *listed, const uint8_t *file)
{
    uint32_t before[LENGTH_MAX];
    struct slc_store_permutation again;
    FILE *in;
    uint8_t bytes[8 * LENGTH_MAX];

    memcpy(before, labels->label, labels->length * sizeof before[0]);
    slc_labels_invert(labels);
    for (uint64_t i = 0; i < labels->length; i++) {
        must(labels->label[before[i]] == i);
    }
    slc_labels_invert(labels);
    must(memcmp(before, labels->label, labels->length * sizeof before[0]) == 0);
    must(slc_labels_write(labels, slc_files_system(), fuzz_folder(), listed->mode, &again, NULL) ==
         SLC_OK);
    must(again.hash == listed->hash && again.file_bytes == listed->file_bytes);
    in = fopen(fuzz_path(again.file), "rb");
    must(in != NULL && fread(bytes, 1, sizeof bytes, in) == again.file_bytes);
    must(fclose(in) == 0 && memcmp(bytes, file, again.file_bytes) == 0);
    (void)remove(fuzz_path(again.file));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct slc_store_permutation listed = {.file = "fuzz.bin"};
    struct slc_labels labels = {0};
    uint8_t file[8 * LENGTH_MAX] = {0};
    uint64_t length;

    if (bytes < HEAD_BYTES) {
        return 0;
    }
    length = 2U + data[0];
    listed.mode = data[1] % SLC_MAX_ORDER;
    listed.file_bytes = slc_labels_file_bytes(length);
    memcpy(file, data + HEAD_BYTES,
           bytes - HEAD_BYTES < listed.file_bytes ? bytes - HEAD_BYTES : listed.file_bytes);
    listed.hash = slc_hash64(file, listed.file_bytes);
    fuzz_write(fuzz_path(listed.file), file, listed.file_bytes);
    if (slc_labels_read(slc_files_system(), fuzz_folder(), &listed, length, &labels, NULL) ==
        SLC_OK) {
        check(&labels, &listed, file);
    }
    slc_labels_destroy(&labels);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t room, unsigned seed)
{
    return fuzz_mutate_behind(data, bytes, room, seed, HEAD_BYTES);
}
