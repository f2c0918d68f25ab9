/* The form of names-K.bin, docs/FORMAT.md, section "Names": what its writer and reader share. */
#ifndef SLC_STORAGE_NAMES_FORM_H
#define SLC_STORAGE_NAMES_FORM_H

#include "storage/manifest/names.h"

#include <stdint.h>

#define SLC_NAMES_MAGIC "\x89SLCNAM\n"

/*
 * A header; pieces; a table with an entry for each piece; a trailer. A piece is where each of its
 * names ends, and the names one behind the other.
 */
enum {
    SLC_NAMES_HEAD_MAGIC = 0,
    SLC_NAMES_HEAD_MODE = 8,   /* u32, 0-based */
    SLC_NAMES_HEAD_PIECE = 12, /* u32, SLC_NAMES_PIECE */
    SLC_NAMES_HEAD_BYTES = 64, /* zeros up to here */

    SLC_NAMES_ENTRY_OFFSET = 0, /* u64, of the piece in the file */
    SLC_NAMES_ENTRY_HASH = 8,   /* u64, of the piece */
    SLC_NAMES_ENTRY_BYTES = 16,

    SLC_NAMES_TAIL_COUNT = 0,    /* u64, names */
    SLC_NAMES_TAIL_TABLE = 8,    /* u64, offset of the table */
    SLC_NAMES_TAIL_LARGEST = 16, /* u64, bytes of the largest piece */
    SLC_NAMES_TAIL_BYTES = 64,   /* zeros up to here */

    /* Before each name's end, an u32 each. */
    SLC_NAMES_ENDS_BYTES = 4 * SLC_NAMES_PIECE,
    SLC_NAMES_PIECE_BYTES_MAX = SLC_NAMES_ENDS_BYTES + SLC_NAMES_PIECE * SLC_NAME_BYTES_MAX
};

/* The name of the file of a mode in its folder. */
void slc_names_file(unsigned mode, char file[64]);

/* The first SLC_NAMES_HEAD_BYTES bytes of that of a mode. */
void slc_names_encode_head(unsigned mode, uint8_t head[SLC_NAMES_HEAD_BYTES]);

#endif
