/* Arbitrary bytes as a manifest: unchanged, and with a recomputed checksum so that the parser is
 * reached. */
#include "fuzz_store.h"

#include "base/hash.h"
#include "storage/manifest/store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char start[] = "{\"checksum\":\"xxh3-64:";

static void read_it(const void *text, size_t bytes)
{
    struct slc_manifest manifest;

    fuzz_write(fuzz_path("tensor.json"), text, bytes);
    (void)!slc_manifest_read(NULL, fuzz_folder(), &manifest, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    const size_t head = sizeof start - 1 + 16;
    char *text = malloc(head + bytes + 1);
    char digits[17];

    if (!text) {
        return 0;
    }
    read_it(data, bytes);
    memcpy(text, start, sizeof start - 1);
    memset(text + sizeof start - 1, '0', 16);
    if (bytes > 0) {
        memcpy(text + head, data, bytes);
    }
    (void)snprintf(digits, sizeof digits, "%016" PRIx64, slc_hash64(text, head + bytes));
    memcpy(text + sizeof start - 1, digits, 16);
    read_it(text, head + bytes);
    free(text);
    return 0;
}
