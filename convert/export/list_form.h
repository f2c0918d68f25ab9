/* Lays out files that hold a tensor as lists: one list of indices per mode and one list of values.
 * The forms (file formats) are SPLATT .bin, MATLAB .mat and NumPy .npz. They differ in the number
 * types of the lists and in the small pieces of the file around the lists. The file offsets of a
 * nonzero depend only on its ordinal. */
#ifndef SLC_CONVERT_LIST_FORM_H
#define SLC_CONVERT_LIST_FORM_H

#include "base/error/error.h"
#include "storage/manifest/store.h"

#include <stdint.h>

enum slc_list_form {
    SLC_LISTS_SPLATT_BIN,
    SLC_LISTS_MATLAB, /* a struct `tensor` with subs, vals and size, for sptensor() */
    SLC_LISTS_NPZ,    /* pydata/sparse: coords, data, shape, fill_value; in row-major order */
    SLC_LISTS_SCIPY   /* COO of scipy.sparse: row, col, data, shape, format */
};

enum slc_list_kind { SLC_LIST_U32, SLC_LIST_U64, SLC_LIST_F32, SLC_LIST_F64 };

struct slc_list {
    uint64_t offset; /* offset in the file */
    enum slc_list_kind kind;
    uint32_t crc; /* checksum of the whole list, set after the list is written */
};

enum { SLC_LIST_PIECES = 8, SLC_LIST_PIECE_BYTES = 1024 };

/* A whole file except for the contents of the lists. */
struct slc_list_file {
    enum slc_list_form form;
    unsigned order;
    const uint64_t *dims; /* borrowed */
    uint64_t nnz;
    unsigned index_base;
    bool checked;                             /* the form needs checksums of lists */
    struct slc_list lists[SLC_MAX_ORDER + 1]; /* one per mode, then the values */
    uint64_t bytes;                           /* size of the file */
    unsigned piece_count;                     /* number of pieces around the lists */
    struct {
        uint64_t offset;
        uint32_t bytes;
        uint8_t data[SLC_LIST_PIECE_BYTES];
    } pieces[SLC_LIST_PIECES];
};

static inline uint32_t slc_list_kind_bytes(enum slc_list_kind kind)
{
    return kind == SLC_LIST_U32 || kind == SLC_LIST_F32 ? 4 : 8;
}

/* Lays out the file for the tensor of a store. Errors: SLC_ERR_UNSUPPORTED if the form cannot hold
 * the tensor; the message names a form that can. */
enum slc_status slc_list_file_plan(struct slc_list_file *file,
                                   enum slc_list_form form,
                                   const struct slc_manifest *manifest,
                                   struct slc_error *err) SLC_NODISCARD;

/* Writes the pieces again, when the checksums of the lists are known. */
void slc_list_file_finish(struct slc_list_file *file);

#endif
