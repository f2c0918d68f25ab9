#include "engine/product/part_record.h"

#include "base/memory/memory.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Names of the lines that join reads or explains. */
#define PARTS_LINE "parts"

static void append_text(struct slc_part_record *record, const char *format, ...)
{
    const size_t used = strlen(record->text);
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(record->text + used, sizeof record->text - used, format, arguments);
    va_end(arguments);
}

static void append_key(struct slc_part_record *record, slc_u128 key)
{
    append_text(record, "%016" PRIx64 "%016" PRIx64, (uint64_t)(key >> 64), (uint64_t)key);
}

void slc_part_record_set(struct slc_part_record *record,
                         const struct slc_part_product *product,
                         const struct slc_part *part)
{
    const char *comma = "";

    record->text[0] = '\0';
    append_text(record, "operation=%s\ntensor=%016" PRIx64 "\nlayout=%016" PRIx64 "\nmodes=",
                product->operation, product->store->manifest.content_sum,
                slc_reader_info(product->reader)->header_hash);
    for (unsigned n = 0; n < SLC_MAX_ORDER; n++) {
        if ((product->modes >> n & 1) != 0) {
            append_text(record, "%s%u", comma, n + 1);
            comma = ",";
        }
    }
    append_text(record, "\noperands=%016" PRIx64 "\n%s" PARTS_LINE "=%u\npart=%u\n",
                product->operands, product->options, part->choice.count, part->choice.number + 1);
    if (!part->empty) {
        append_text(record, "first=");
        append_key(record, part->first);
        append_text(record, "\nlast=");
        append_key(record, part->last);
        append_text(record, "\n");
    }
}

const char *slc_part_record_find(const struct slc_part_record *record, const char *name)
{
    const size_t length = strlen(name);

    for (const char *line = record->text; line[0] != '\0';) {
        const char *end = strchr(line, '\n');

        if (strncmp(line, name, length) == 0 && line[length] == '=') {
            return line + length + 1;
        }
        line = end != NULL ? end + 1 : line + strlen(line);
    }
    return NULL;
}

/* What the values of a line are, for messages. */
static const struct {
    const char *name, *meaning;
} meanings[] = {
    {"operation", "products"},
    {"tensor", "products of tensors with the checksum"},
    {"layout", "products over layouts with the checksum"},
    {"modes", "products in the modes"},
    {"operands", "products with vectors or matrices with the checksum"},
    {PARTS_LINE, "divisions, whose number of parts is"},
};

static const char *meaning_of(const char *line, int length)
{
    for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++) {
        if (strlen(meanings[i].name) == (size_t)length &&
            strncmp(line, meanings[i].name, (size_t)length) == 0) {
            return meanings[i].meaning;
        }
    }
    return NULL;
}

enum slc_status slc_part_record_match(const struct slc_part_record *record,
                                      const char *path,
                                      const struct slc_part_record *other,
                                      const char *other_path,
                                      struct slc_error *err)
{
    const char *line = record->text, *against = other->text;
    bool last = false;

    while (!last && line[0] != '\0') {
        const int length = (int)strcspn(line, "\n"), wanted = (int)strcspn(against, "\n");
        const int name = (int)strcspn(line, "="), wanted_name = (int)strcspn(against, "=");

        if (length != wanted || strncmp(line, against, (size_t)length) != 0) {
            const char *meaning = meaning_of(line, name);
            char option[64];

            (void)snprintf(option, sizeof option, "products with the %.*s", name, line);
            return slc_fail_file(err, SLC_ERR_INPUT, path,
                                 "this part and %s belong to different %s %.*s and %.*s: join the "
                                 "parts of one product",
                                 other_path, meaning != NULL ? meaning : option, length - name - 1,
                                 line + name + 1, wanted - wanted_name - 1,
                                 against + wanted_name + 1);
        }
        last = strncmp(line, PARTS_LINE "=", sizeof PARTS_LINE) == 0;
        line += length + (line[length] == '\n');
        against += wanted + (against[wanted] == '\n');
    }
    return SLC_OK;
}

/* Parses 32 hexadecimal digits and a newline. */
static bool parse_key(const char *text, slc_u128 *key)
{
    uint64_t high, low;
    int used = 0;

    if (text == NULL || strspn(text, "0123456789abcdef") != 32 ||
        sscanf(text, "%16" SCNx64 "%16" SCNx64 "%n", &high, &low, &used) != 2 ||
        text[used] != '\n') {
        return false;
    }
    *key = slc_key_join(low, high);
    return true;
}

enum slc_status slc_part_record_range(const struct slc_part_record *record,
                                      const char *path,
                                      struct slc_part *part,
                                      struct slc_error *err)
{
    const char *parts = slc_part_record_find(record, PARTS_LINE);
    const char *number = slc_part_record_find(record, "part");
    const char *first = slc_part_record_find(record, "first");
    const char *last = slc_part_record_find(record, "last");

    memset(part, 0, sizeof *part);
    part->choice.count = parts != NULL ? (unsigned)strtoul(parts, NULL, 10) : 0;
    part->choice.number = number != NULL ? (unsigned)strtoul(number, NULL, 10) - 1 : 0;
    part->empty = first == NULL && last == NULL;
    if (part->choice.number >= part->choice.count || part->choice.count > SLC_PARTS_MAX ||
        (!part->empty && (!parse_key(first, &part->first) || !parse_key(last, &part->last)))) {
        return slc_fail_file(err, SLC_ERR_FORMAT, path, "the record of the part is invalid");
    }
    return SLC_OK;
}

static char *record_path(const char *path, const char *suffix)
{
    const size_t bytes = strlen(path) + strlen(suffix) + 1;
    char *joined = slc_calloc(bytes, 1);

    if (joined != NULL) {
        (void)snprintf(joined, bytes, "%s%s", path, suffix);
    }
    return joined;
}

enum slc_status slc_part_record_write(const struct slc_part_record *record,
                                      const struct slc_files *files,
                                      const char *path,
                                      const char *suffix,
                                      struct slc_error *err)
{
    char *file = record_path(path, suffix);

    SLC_TRY(slc_check_memory(file != NULL, err, "for a path"));
    const enum slc_status status =
        slc_file_replace(slc_files_or_system(files), file, record->text, strlen(record->text), err);
    slc_free(file);
    return status;
}

/* Reads the record from the manifest of a store. */
static enum slc_status read_manifest(struct slc_part_record *record,
                                     const struct slc_files *files,
                                     const char *path,
                                     struct slc_error *err)
{
    struct slc_manifest *manifest = slc_calloc(1, sizeof *manifest);

    SLC_TRY(slc_check_memory(manifest != NULL, err, "for a manifest"));
    enum slc_status status = slc_manifest_read(files, path, manifest, err);
    if (status == SLC_OK && manifest->origin.part[0] == '\0') {
        status = slc_fail_file(err, SLC_ERR_FORMAT, path,
                               "this store is not a part of a product, so it cannot be joined");
    } else if (status == SLC_OK && manifest->origin.appended_count > 0) {
        status = slc_fail_file(err, SLC_ERR_FORMAT, path,
                               "nonzeros were appended to this part: compute the part again");
    }
    if (status == SLC_OK) {
        memcpy(record->text, manifest->origin.part, sizeof record->text);
    }
    slc_free(manifest);
    return status;
}

enum slc_status slc_part_record_read(struct slc_part_record *record,
                                     const struct slc_files *files,
                                     const char *path,
                                     struct slc_error *err)
{
    const struct slc_files *known = slc_files_or_system(files);
    const char *const suffixes[] = {"/" SLC_MANIFEST_NAME, "/" SLC_PART_RECORD_NAME,
                                    SLC_PART_RECORD_SUFFIX};
    struct slc_file_stat stat;
    enum slc_status status = SLC_OK;
    uint64_t bytes = 0;
    void *data = NULL;

    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        char *file = record_path(path, suffixes[i]);

        SLC_TRY(slc_check_memory(file != NULL, err, "for a path"));
        const bool found = known->stat_path(known->self, file, &stat) == 0;
        if (found && i == 0) {
            status = read_manifest(record, known, path, err);
        } else if (found) {
            status = slc_file_load(known, file, sizeof record->text - 1, &data, &bytes, err);
        }
        slc_free(file);
        if (data != NULL && status == SLC_OK) {
            memcpy(record->text, data, bytes + 1);
        }
        slc_free(data);
        if (found) {
            return status;
        }
    }
    return slc_fail_file(err, SLC_ERR_FORMAT, path,
                         "there is no part of a product here: neither a store nor the record of a "
                         "part");
}
