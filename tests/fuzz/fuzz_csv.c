/* Arbitrary bytes as a CSV. The first byte selects the delimiter, the number of columns and the
 * first split of the text; the records must be the same for the whole text, and when they are
 * indexed many at a time. Every field is also parsed as a time, whose names must be in bounds, and
 * the whole text as items of --columns. */
#include "convert/ingest/csv/csv_index.h"
#include "convert/ingest/csv/csv_record.h"
#include "convert/ingest/csv/csv_spec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void require(bool condition, const char *what)
{
    if (!condition) {
        fprintf(stderr, "fuzz_csv: %s\n", what);
        abort();
    }
}

static void try_time(const struct slc_csv_field *field)
{
    struct slc_time time;

    if (!slc_time_parse(field->text, field->bytes, &time)) {
        return;
    }
    require(time.second >= 0 && time.second < 86400, "a second beyond its day");
    for (enum slc_time_unit unit = SLC_TIME_MINUTE; unit <= SLC_TIME_DATEMINUTE; unit++) {
        const int64_t bin = slc_time_bin(unit, &time);
        char name[SLC_TIME_NAME_BYTES];

        require(slc_time_cycle(unit) == 0 || (bin >= 0 && bin < (int64_t)slc_time_cycle(unit)),
                "a part of a time beyond its cycle");
        require(slc_time_name(unit, bin, name) == strlen(name), "a name that is cut");
    }
}

static void try_records(const char *text, size_t bytes, size_t cut, char delimiter)
{
    static struct slc_csv_field fields[SLC_CSV_COLUMNS_MAX], again[SLC_CSV_COLUMNS_MAX];
    size_t at = 0;

    while (at < bytes) {
        const size_t begin = at;
        size_t early = at;
        unsigned count, early_count;
        uint32_t lines, early_lines;
        const enum slc_csv_scan scan =
            slc_csv_scan(text, bytes, true, delimiter, &at, fields, &count, &lines);

        require(scan != SLC_CSV_PARTIAL, "a whole text that is no whole record");
        if (begin < cut) {
            const enum slc_csv_scan part = slc_csv_scan(text, cut, false, delimiter, &early, again,
                                                        &early_count, &early_lines);

            require(part == SLC_CSV_PARTIAL || (part == scan && early_count == count),
                    "a record that depends on what is behind it");
            require(part != SLC_CSV_PARTIAL ||
                        slc_csv_cut(text + begin, cut - begin, delimiter) == 0,
                    "a cut within a record");
            require(part != SLC_CSV_RECORD || (early == at && early_lines == lines),
                    "a record that ends elsewhere");
        }
        if (scan != SLC_CSV_RECORD) {
            return;
        }
        require(at > begin && count > 0, "a record of nothing");
        for (unsigned i = 0; i < count; i++) {
            require(fields[i].text >= text + begin && fields[i].text + fields[i].bytes <= text + at,
                    "a field beyond its record");
            try_time(&fields[i]);
        }
    }
}

/* Every instruction set must find the same regular records. */
static void try_index(const char *text, size_t bytes, unsigned columns, char delimiter)
{
    static const char *const sets[] = {"plain", "avx2", "avx512"};
    static struct slc_csv_field fields[SLC_CSV_COLUMNS_MAX];
    static uint32_t starts[SLC_CSV_STARTS];
    unsigned found = 0;

    for (size_t s = 0; s < sizeof sets / sizeof sets[0]; s++) {
        slc_csv_index_fn *index = slc_csv_index_by(sets[s]);
        unsigned count, again;
        size_t at = 0;
        uint32_t lines;
        unsigned marks;

        if (index == NULL) {
            continue;
        }
        again = index(text, 0, bytes, delimiter, columns, 100, starts, &marks);
        require(s == 0 || again == found, "regular records that depend on the instruction set");
        found = again;
        for (unsigned r = 0; r < found; r++) {
            require(slc_csv_scan(text, bytes, true, delimiter, &at, fields, &count, &lines) ==
                            SLC_CSV_RECORD &&
                        count == columns && at == starts[(r + 1) * columns] &&
                        (columns > 1 || fields[0].bytes > 0 || text[starts[r]] == '"'),
                    "a record that is not regular");
            require((marks & SLC_CSV_LINES) != 0 || lines == 1, "line ends not seen");
            for (unsigned f = 0; f < columns; f++) {
                const char *begin = text + starts[r * columns + f];

                require(fields[f].text == begin + (*begin == '"'), "a field that begins elsewhere");
                require((marks & SLC_CSV_QUOTED) != 0 || *begin != '"', "quotes not seen");
                require((marks & SLC_CSV_DOUBLED) != 0 || !fields[f].doubled,
                        "doubled quotes not seen");
            }
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct slc_csv_spec spec = {.order = 0};
    char columns[512];
    char *text;

    if (bytes < 1 || bytes > 4096) {
        return 0;
    }
    text = malloc(bytes + SLC_CSV_SLACK);
    require(text != NULL, "no memory");
    memcpy(text, data + 1, bytes - 1);
    memset(text + bytes - 1, data[0] & 32 ? '"' : '\n', SLC_CSV_SLACK + 1);
    try_index(text, bytes - 1, 1 + (data[0] >> 6), data[0] & 16 ? '\t' : ',');
    try_records(text, bytes - 1, (bytes - 1) * (data[0] & 15) / 16, data[0] & 16 ? '\t' : ',');
    (void)snprintf(columns, sizeof columns, "%.*s", (int)(bytes - 1), text);
    if (slc_csv_spec_parse(columns, &spec, NULL) == SLC_OK) {
        require(spec.order > 0 && spec.order <= SLC_MAX_ORDER, "a number of items");
        for (unsigned i = 0; i < spec.order; i++) {
            require(spec.items[i].column[0] != '\0', "an item without a name");
        }
    }
    free(text);
    return 0;
}
