/* Runs a fuzz target without libFuzzer on every file of its corpus, then on N seeded mutations of
 * each (bytes changed, inserted, removed, truncated, spliced). Inputs once found by a fuzzer become
 * regression tests, and the plain build exercises the target, too. A target's own mutator makes
 * half of the mutations. SLC_TEST_FULL=1 tries a hundred times as many. */
#include "fuzz_mutate.h"

#include "base/random.h"

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INPUT_BYTES_MAX = 1 << 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
#pragma weak LLVMFuzzerCustomMutator

static uint64_t drawn;

static uint64_t draw(uint64_t bound)
{
    const char *seed = getenv("SLC_TEST_SEED");

    return slc_random_below(seed ? strtoull(seed, NULL, 0) : 1, 77, drawn++, bound);
}

static size_t load(const char *folder, const char *name, uint8_t *data)
{
    char path[4096];
    FILE *in;
    size_t bytes;

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    in = fopen(path, "rb");
    if (!in) {
        return SIZE_MAX;
    }
    bytes = fread(data, 1, INPUT_BYTES_MAX, in);
    (void)fclose(in);
    return bytes;
}

/* Changes `data` in one to four places; returns the new length. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t bytes, size_t room)
{
    for (uint64_t change = 1 + draw(4); change > 0; change--) {
        size_t at = (size_t)draw(bytes + 1);

        switch (draw(4)) {
        case 0:
            if (at < bytes) {
                data[at] ^= (uint8_t)(1U << draw(8));
            }
            break;
        case 1:
            if (at < bytes) {
                data[at] = (uint8_t)draw(256);
            }
            break;
        case 2:
            if (bytes < room) {
                memmove(data + at + 1, data + at, bytes - at);
                data[at] = (uint8_t)draw(256);
                bytes++;
            }
            break;
        default:
            if (at < bytes) {
                size_t gone = (size_t)draw(bytes - at) / 4 + 1;

                memmove(data + at, data + at + gone, bytes - at - gone);
                bytes -= gone;
            }
            break;
        }
    }
    return bytes;
}

static size_t mutate(uint8_t *data, size_t bytes)
{
    if (LLVMFuzzerCustomMutator != NULL && draw(2) == 0) {
        return LLVMFuzzerCustomMutator(data, bytes, INPUT_BYTES_MAX, (unsigned)draw(UINT32_MAX));
    }
    return LLVMFuzzerMutate(data, bytes, INPUT_BYTES_MAX);
}

int main(int argc, char **argv)
{
    static uint8_t original[INPUT_BYTES_MAX], data[INPUT_BYTES_MAX];
    const char *full = getenv("SLC_TEST_FULL");
    const unsigned long asked = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
    const unsigned long mutations = full && full[0] == '1' ? 100 * asked : asked;
    struct dirent **entries;
    int count = argc == 3 ? scandir(argv[1], &entries, NULL, alphasort) : -1;
    unsigned replayed = 0;

    if (count < 0) {
        (void)fprintf(stderr, "usage: %s CORPUS-FOLDER MUTATIONS\n", argv[0]);
        return 2;
    }
    printf("1..1\n");
    (void)LLVMFuzzerTestOneInput(original, 0);
    for (int i = 0; i < count; i++) {
        size_t bytes =
            entries[i]->d_name[0] == '.' ? SIZE_MAX : load(argv[1], entries[i]->d_name, original);

        if (bytes != SIZE_MAX) {
            (void)LLVMFuzzerTestOneInput(original, bytes);
            replayed++;
            for (unsigned long m = 0; m < mutations; m++) {
                memcpy(data, original, bytes);
                (void)LLVMFuzzerTestOneInput(data, mutate(data, bytes));
            }
        }
        free(entries[i]);
    }
    free(entries);
    /* A target stops the process on a fault: reaching this line means success. */
    printf("%sok 1 - fuzz: %u inputs of %s and %lu mutations of each\n", replayed ? "" : "not ",
           replayed, argv[1], mutations);
    return replayed == 0;
}
