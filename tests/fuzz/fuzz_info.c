/* Whole stores with modified files and recomputed checksums: `sluice info` prints them as text and
 * as JSON, and if `sluice check` finds no fault, every tile decodes. */
#include "forged_image.h"
#include "fuzz_mutate.h"
#include "fuzz_store.h"

#include "base/hash.h"
#include "base/memory/bytes.h"
#include "storage/manifest/labels.h"
#include "storage/manifest/store.h"
#include "storage/verify/verify.h"
#include "tools/session/commands.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Sets where a sanitizer reports; NULL without one. */
void __sanitizer_set_report_fd(void *fd) __attribute__((weak));

enum { FILES_MAX = 4, TEXT_BYTES_MAX = 1024, PERMUTATION_BYTES = 72, CHANGE_BYTES = 4 };

/* The golden stores: block files, then permutations. */
static const char *const stores[][1 + FILES_MAX] = {
    {"tiny-packed.slc", "blco.blk"},
    {"tiny-lz4.slc", "blco.blk"},
    {"tiny-blco.slc", "blco.blk"},
    {"tiny-fibers.slc", "blco.blk", "fiber-1.blk", "fiber-2.blk"},
    {"tiny-sorted.slc", "blco.blk", "sorted-1.blk", "sorted-2.blk"},
    {"tiny-runs.slc", "blco.blk", "sorted-1.blk", "sorted-2.blk"},
    {"tiny-relabelled.slc", "blco.blk", "perm-1.bin", "perm-3.bin"}};

enum { STORES = sizeof stores / sizeof stores[0] };

struct forged_store {
    char text[TEXT_BYTES_MAX]; /* the manifest */
    size_t text_bytes;
    size_t count;
    struct {
        size_t hash_at; /* position of the file's hash in the manifest */
        struct forged_image image;
        uint8_t permutation[PERMUTATION_BYTES];
    } files[FILES_MAX];
};

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

static size_t load(const char *store, const char *name, void *data, size_t room)
{
    char path[1024];
    size_t bytes;
    FILE *in;

    (void)snprintf(path, sizeof path, "%s/%s/%s", SLC_GOLDEN, store, name);
    in = fopen(path, "rb");
    must(in != NULL);
    bytes = fread(data, 1, room, in);
    must(fclose(in) == 0 && bytes < room + 1);
    return bytes;
}

static bool is_blocks(const char *name)
{
    return strstr(name, ".blk") != NULL;
}

static uint64_t hash_of(const struct forged_store *store, size_t file, bool blocks)
{
    return blocks ? slc_load_u64(store->files[file].image.bytes + SLC_HEADER_HASH)
                  : slc_hash64(store->files[file].permutation, PERMUTATION_BYTES);
}

static void load_store(struct forged_store *store, const char *const *names)
{
    char hash[17];

    store->text_bytes = load(names[0], SLC_MANIFEST_NAME, store->text, sizeof store->text - 1);
    for (size_t f = 0; f < FILES_MAX && names[1 + f] != NULL; f++) {
        const bool blocks = is_blocks(names[1 + f]);
        char name[64];
        char *found;

        (void)snprintf(name, sizeof name, "%s/%s", names[0], names[1 + f]);
        if (blocks) {
            forged_image_load(&store->files[f].image, name);
        } else {
            must(load(names[0], names[1 + f], store->files[f].permutation, PERMUTATION_BYTES) ==
                 PERMUTATION_BYTES);
        }
        (void)snprintf(hash, sizeof hash, "%016" PRIx64, hash_of(store, f, blocks));
        found = strstr(store->text, hash);
        must(found != NULL);
        store->files[f].hash_at = (size_t)(found - store->text);
        store->count++;
    }
}

/* A change: u8 file (0 the manifest), u16 place, u8 byte. */
static void change(struct forged_store *store, const char *const *names, const uint8_t *data)
{
    const size_t file = data[0] % (1 + store->count);
    const size_t place = slc_load_u16(data + 1);

    if (file == 0) {
        store->text[place % store->text_bytes] = (char)data[3];
    } else if (is_blocks(names[file])) {
        forged_image_change(&store->files[file - 1].image, place, data[3]);
    } else {
        store->files[file - 1].permutation[place % PERMUTATION_BYTES] = data[3];
    }
}

static void put_hash(char *text, uint64_t hash)
{
    char digits[17];

    (void)snprintf(digits, sizeof digits, "%016" PRIx64, hash);
    memcpy(text, digits, 16);
}

/* Writes all files and recomputes the hashes, from the blocks to the manifest. */
static void write_store(struct forged_store *store, const char *const *names)
{
    static const char start[] = "{\"checksum\":\"xxh3-64:";
    char name[80];

    for (size_t f = 0; f < store->count; f++) {
        const bool blocks = is_blocks(names[1 + f]);

        (void)snprintf(name, sizeof name, "x.slc/%s", names[1 + f]);
        if (blocks) {
            forged_image_seal(&store->files[f].image);
            fuzz_write(fuzz_path(name), store->files[f].image.bytes,
                       forged_image_bytes(&store->files[f].image));
        } else {
            fuzz_write(fuzz_path(name), store->files[f].permutation, PERMUTATION_BYTES);
        }
        put_hash(store->text + store->files[f].hash_at, hash_of(store, f, blocks));
    }
    memset(store->text + sizeof start - 1, '0', 16);
    put_hash(store->text + sizeof start - 1, slc_hash64(store->text, store->text_bytes));
    fuzz_write(fuzz_path("x.slc/" SLC_MANIFEST_NAME), store->text, store->text_bytes);
}

static void remove_store(const struct forged_store *store, const char *const *names)
{
    char name[80];

    for (size_t f = 0; f < store->count; f++) {
        (void)snprintf(name, sizeof name, "x.slc/%s", names[1 + f]);
        (void)unlink(fuzz_path(name));
    }
    (void)unlink(fuzz_path("x.slc/" SLC_MANIFEST_NAME));
    (void)rmdir(fuzz_path("x.slc"));
}

/* The output of the command is discarded, but reports of a sanitizer are not. */
static void tell(const char *path)
{
    static char name[] = "info", json[] = "--json";
    static int reports = -1;
    char operand[128];
    const int out = dup(STDOUT_FILENO), err = dup(STDERR_FILENO),
              null = open("/dev/null", O_WRONLY);

    must(out >= 0 && err >= 0 && null >= 0);
    if (reports < 0) {
        reports = dup(STDERR_FILENO);
        if (__sanitizer_set_report_fd != NULL) {
            __sanitizer_set_report_fd((void *)(intptr_t)reports);
        }
    }
    (void)snprintf(operand, sizeof operand, "%s", path);
    must(dup2(null, STDOUT_FILENO) >= 0 && dup2(null, STDERR_FILENO) >= 0);
    (void)command_info.run(&command_info, 2, (char *[]){name, operand, NULL});
    (void)command_info.run(&command_info, 3, (char *[]){name, json, operand, NULL});
    (void)fflush(stdout);
    must(dup2(out, STDOUT_FILENO) >= 0 && dup2(err, STDERR_FILENO) >= 0);
    must(close(out) == 0 && close(err) == 0 && close(null) == 0);
}

/* Decodes every nonzero of every tile of a valid store. */
static void decode(const struct slc_store *store, const uint8_t *image)
{
    const struct slc_layout_info *info = slc_reader_info(store->reader);
    struct slc_decoder *decoder = NULL;
    uint64_t nnz = 0;

    must(slc_decoder_create(info, SLC_F64, &decoder, NULL) == SLC_OK);
    for (uint64_t b = 0; b < info->block_count; b++) {
        struct slc_block_view view;
        struct slc_block_entry entry;

        slc_reader_entry(store->reader, b, &entry);
        must(slc_block_open(store->reader, b, image + entry.offset, false, &view, NULL) == SLC_OK);
        for (uint32_t t = 0; t < view.entry.tile_count; t++) {
            struct slc_tile_view tile;
            struct slc_chunk_view chunk = {.nnz = 1};

            must(slc_tile_open(decoder, &view, t, &tile, NULL) == SLC_OK);
            for (; chunk.nnz > 0; nnz += chunk.nnz) {
                must(tile.next(&tile, SLC_GROUP_NNZ, &chunk, NULL) == SLC_OK);
            }
        }
    }
    must(nnz == store->manifest.nnz);
    slc_decoder_destroy(decoder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static struct forged_store originals[STORES];
    const struct slc_verify_options options = {.decode = true, .threads = 1};
    const char *const *names = stores[bytes > 0 ? data[0] % STORES : 0];
    struct slc_verify_report report;
    struct forged_store forged;
    struct slc_store store = {0};
    char path[128];

    for (size_t i = 0; i < STORES && originals[i].count == 0; i++) {
        load_store(&originals[i], stores[i]);
    }
    forged = originals[bytes > 0 ? data[0] % STORES : 0];
    for (size_t i = 1; i + CHANGE_BYTES <= bytes; i += CHANGE_BYTES) {
        change(&forged, names, data + i);
    }
    (void)snprintf(path, sizeof path, "%s", fuzz_path("x.slc"));
    must(mkdir(path, 0777) == 0);
    write_store(&forged, names);
    tell(path);
    if (slc_verify_store(path, &options, &report, NULL) == SLC_OK) {
        must(slc_store_open(NULL, path, &store, NULL) == SLC_OK);
        decode(&store, forged.files[0].image.bytes);
        slc_store_close(&store);
    }
    remove_store(&forged, names);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t room, unsigned seed)
{
    static const struct fuzz_changes form = {1, CHANGE_BYTES, 1};

    return fuzz_mutate_changes(data, bytes, room, seed, &form);
}
