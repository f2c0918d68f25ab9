/* A piece of a table's text, and the rows that it is translated to: by csv_rows.h record by
 * record, by csv_batch.c many at a time. */
#ifndef SLC_CONVERT_CSV_PART_H
#define SLC_CONVERT_CSV_PART_H

#include "base/memory/bytes.h"
#include "base/memory/memory.h"
#include "convert/ingest/csv/csv_index.h"
#include "convert/ingest/csv/csv_names.h"
#include "convert/ingest/csv/csv_record.h"
#include "convert/ingest/csv/csv_spec.h"

enum {
    /* Rows, and strings that are not known, of a piece before it is settled in between. */
    SLC_CSV_ROWS_BYTES = 1 << 20,
    SLC_CSV_KEYS = 8192,
    /* Records that are translated together: what is noted of them, some 4 KiB a mode, stays in the
     * first cache while a column is. */
    SLC_CSV_BATCH = SLC_DICTIONARY_KEYS_MAX
};

/* What is the same for all pieces once the first line is read. */
struct slc_csv_table {
    const struct slc_csv_spec *spec;
    const char *name;                     /* for messages */
    struct slc_dictionary **dictionaries; /* NULL: strings stay keys, without numbers */
    slc_csv_index_fn *index;
    char delimiter;
    /* A row: the indices of the modes, then the value in 8 bytes. */
    size_t row_bytes;
    uint8_t widths[SLC_MAX_ORDER + 1];   /* 1, 4 or 8 bytes */
    uint32_t offsets[SLC_MAX_ORDER + 1]; /* from the row's beginning */
    int64_t floor[SLC_MAX_ORDER];        /* bins below have no index */
    unsigned columns;                    /* 0: not known yet */
    unsigned at[SLC_MAX_ORDER + 1]; /* columns of modes and value; UINT_MAX: rows are counted */
};

/*
 * Makes rows no longer than they have to be, by the spec and the strings that there can be, of
 * which each takes `memory_bytes` at least SLC_DICTIONARY_STRING_BYTES.
 */
void slc_csv_lay_out_rows(struct slc_csv_table *table, uint64_t memory_bytes);

/* slc_dictionary_look_up in a mode's dictionary; without dictionaries nothing is known. */
void slc_csv_look_up(const struct slc_csv_table *table,
                     unsigned m,
                     const char *text,
                     const struct slc_dictionary_key *keys,
                     unsigned count,
                     uint64_t *numbers);

/* Writes an index of `width` bytes. */
static inline void slc_csv_put(uint8_t *to, unsigned width, uint64_t index)
{
    if (width == 1) {
        *to = (uint8_t)index;
    } else if (width == 4) {
        slc_store_u32(to, (uint32_t)index);
    } else {
        slc_store_u64(to, index);
    }
}

/* A string that is not known yet. */
struct slc_csv_key {
    struct slc_dictionary_key key;
    uint32_t row, line, column;
    unsigned mode;
};

/* A piece of the text, which begins with a record, and what becomes of it. */
struct slc_csv_part {
    const struct slc_csv_table *table;
    struct slc_buffer memory; /* of what follows */
    char *text;               /* behind which SLC_CSV_SLACK bytes are there */
    size_t bytes, position;
    /* Room behind it, with slack as well, for strings in which quotes were doubled. */
    size_t spare_begin, spare_end, spare;
    bool last;                          /* nothing follows it */
    struct slc_csv_field *fields;       /* of a record that is translated by itself */
    uint32_t *starts;                   /* of fields of a batch */
    struct slc_dictionary_key *strings; /* of a batch, SLC_CSV_BATCH of each mode */
    struct slc_csv_key *keys;
    uint8_t *rows;
    uint64_t lines;        /* translated */
    uint32_t record_lines; /* of the record that was scanned last */
    /* Since it was settled last. */
    unsigned key_count;
    uint32_t row_count;
    uint64_t taken, skipped; /* records, and of them those that lack something */
    int64_t lowest[SLC_MAX_ORDER], highest[SLC_MAX_ORDER];
    struct slc_error fault; /* of the record at `position`, lines from 0 */
};

/* Bytes of a part, its text included where `text_bytes` is not 0. */
uint64_t slc_csv_part_bytes(size_t text_bytes);
/* Makes a part, its text to be set where `text_bytes` is 0. Owns: slc_csv_part_destroy. Errors:
 * SLC_ERR_MEMORY. */
enum slc_status slc_csv_part_create(const struct slc_csv_table *table,
                                    size_t text_bytes,
                                    struct slc_csv_part *part,
                                    struct slc_error *err) SLC_NODISCARD;
void slc_csv_part_destroy(struct slc_csv_part *part);

/* Makes room for more rows, when the settled ones are no longer needed. */
void slc_csv_part_clear(struct slc_csv_part *part);

/*
 * Regular records of a table (csv_index.h), many at a time and column by column: so a loop does
 * one thing, and what memory's latency costs is shared by neighbours. What comes of them is what
 * comes of them one by one (csv_rows.h).
 */

/*
 * Translates records of a part from its position on, at most `most` and SLC_CSV_BATCH, for which
 * there is room for rows and keys. False where the next record is to be translated by itself: it is
 * not regular, or something is wrong with it. Threads: any number, each with its part.
 */
bool slc_csv_take_batch(struct slc_csv_part *part, unsigned most);

#endif
