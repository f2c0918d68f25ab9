/* Lays out list files from front to back, and again when the checksums are known. */
#include "convert/export/list_form.h"

#include "base/memory/bytes.h"
#include "base/memory/checked.h"
#include "convert/export/zip_form.h"
#include "storage/model/mat5.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

enum { NPY_BYTES = 128, MEMBERS_MAX = 5 };

/* A double represents all whole numbers up to this one. */
#define EXACT_MAX (UINT64_C(1) << 53)

static uint8_t *add_piece(struct slc_list_file *file)
{
    assert(file->piece_count < SLC_LIST_PIECES);
    file->pieces[file->piece_count].offset = file->bytes;
    file->pieces[file->piece_count].bytes = 0;
    return file->pieces[file->piece_count++].data;
}

/* Adds `bytes` bytes to the last piece and to the file. */
static void grow_file(struct slc_list_file *file, uint32_t bytes)
{
    file->pieces[file->piece_count - 1].bytes += bytes;
    file->bytes += bytes;
    assert(file->pieces[file->piece_count - 1].bytes <= SLC_LIST_PIECE_BYTES);
}

static uint8_t *end_of_piece(struct slc_list_file *file)
{
    return file->pieces[file->piece_count - 1].data + file->pieces[file->piece_count - 1].bytes;
}

/* Places lists first .. last at consecutive offsets. Returns their total size in bytes. */
static uint64_t place_lists(struct slc_list_file *file, unsigned first, unsigned last)
{
    const uint64_t before = file->bytes;

    for (unsigned i = first; i <= last; i++) {
        file->lists[i].offset = file->bytes;
        file->bytes += file->nnz * slc_list_kind_bytes(file->lists[i].kind);
    }
    return file->bytes - before;
}

/* Lays out a SPLATT file. Its header numbers, after the first three, are as wide as the indices. */
static void arrange_splatt(struct slc_list_file *file)
{
    const uint32_t width = slc_list_kind_bytes(file->lists[0].kind);
    uint8_t *at = add_piece(file);

    slc_store_u32(at, 0);
    slc_store_u64(at + 4, width);
    slc_store_u64(at + 12, slc_list_kind_bytes(file->lists[file->order].kind));
    at += 20;
    for (unsigned i = 0; i < file->order + 2; i++, at += width) {
        const uint64_t number = i == 0                 ? file->order
                                : i == file->order + 1 ? file->nnz
                                                       : file->dims[i - 1];

        if (width == 4) {
            slc_store_u32(at, (uint32_t)number);
        } else {
            slc_store_u64(at, number);
        }
    }
    grow_file(file, 20 + (file->order + 2) * width);
    (void)place_lists(file, 0, file->order);
}

/* Lays out a MATLAB file. Returns false if a variable would be too large. */
static bool arrange_matlab(struct slc_list_file *file)
{
    const struct slc_mat5_array subs = {
        .kind = SLC_MAT5_F64, .rows = file->nnz, .cols = file->order, .name = ""};
    const struct slc_mat5_array vals = {
        .kind = SLC_MAT5_F64, .rows = file->nnz, .cols = 1, .name = ""};
    const struct slc_mat5_array size = {
        .kind = SLC_MAT5_F64, .rows = 1, .cols = file->order, .name = ""};
    struct slc_mat5_array tensor = {.kind = SLC_MAT5_STRUCT,
                                    .rows = 1,
                                    .cols = 1,
                                    .name = "tensor",
                                    .fields = "subs vals size"};
    uint8_t *at = add_piece(file);

    if (!slc_add_u64(slc_mat5_bytes(&subs), slc_mat5_bytes(&vals), &tensor.part_bytes) ||
        !slc_add_u64(tensor.part_bytes, slc_mat5_bytes(&size), &tensor.part_bytes) ||
        slc_mat5_bytes(&tensor) > SLC_MAT5_VARIABLE_MAX) {
        return false;
    }
    slc_mat5_header(at);
    grow_file(file, SLC_MAT5_HEADER_BYTES);
    grow_file(file, slc_mat5_begin(&tensor, end_of_piece(file)));
    grow_file(file, slc_mat5_begin(&subs, end_of_piece(file)));
    (void)place_lists(file, 0, file->order - 1);
    grow_file(file, slc_mat5_begin(&vals, add_piece(file)));
    (void)place_lists(file, file->order, file->order);
    grow_file(file, slc_mat5_begin(&size, add_piece(file)));
    for (unsigned n = 0; n < file->order; n++) {
        slc_store_f64(end_of_piece(file), (double)file->dims[n]);
        grow_file(file, 8);
    }
    return true;
}

/* Writes the header of a .npy file, format 1.0. */
static void write_npy_header(uint8_t *bytes, const char *type, const char *shape)
{
    char text[NPY_BYTES];
    const int length = snprintf(
        text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", type, shape);

    assert(length > 0 && length < NPY_BYTES - 11);
    memcpy(bytes, "\x93NUMPY\x01\x00", 8);
    slc_store_u16(bytes + 8, NPY_BYTES - 10);
    memset(bytes + 10, ' ', NPY_BYTES - 11);
    memcpy(bytes + 10, text, (size_t)length);
    bytes[NPY_BYTES - 1] = '\n';
}

/* The members of an archive while it is laid out. */
struct archive {
    struct slc_list_file *file;
    struct slc_zip_member members[MEMBERS_MAX];
    unsigned count;
};

/* Adds a member that holds lists first .. last or, if first > last, `bytes` bytes of data. */
static void add_member(struct archive *archive,
                       const char *name,
                       const char *type,
                       const char *shape,
                       unsigned first,
                       unsigned last,
                       const void *content,
                       uint32_t bytes)
{
    struct slc_list_file *file = archive->file;
    struct slc_zip_member *member = &archive->members[archive->count++];
    uint8_t *at = add_piece(file);
    uint64_t length = NPY_BYTES + bytes;
    uint8_t local[SLC_ZIP_LOCAL_MAX];

    for (unsigned i = first; i <= last; i++) {
        length += file->nnz * slc_list_kind_bytes(file->lists[i].kind);
    }
    *member = (struct slc_zip_member){.name = name, .offset = file->bytes, .bytes = length};
    uint32_t before = slc_zip_local(member, local);
    write_npy_header(at + before, type, shape);
    if (bytes > 0) {
        memcpy(at + before + NPY_BYTES, content, bytes);
    }
    member->crc = (uint32_t)crc32(0, at + before, NPY_BYTES + bytes);
    grow_file(file, before + NPY_BYTES + bytes);
    (void)place_lists(file, first, last);
    for (unsigned i = first; i <= last; i++) {
        const uint64_t list = file->nnz * slc_list_kind_bytes(file->lists[i].kind);

        member->crc = (uint32_t)crc32_combine(member->crc, file->lists[i].crc, (z_off_t)list);
    }
    (void)slc_zip_local(member, at);
}

static const char *type_of(const struct slc_list_file *file, unsigned list)
{
    static const char *const types[] = {"<i4", "<i8", "<f4", "<f8"};

    return types[file->lists[list].kind];
}

static void arrange_archive(struct slc_list_file *file)
{
    struct archive archive = {.file = file};
    const unsigned none_first = 1, none_last = 0, n = file->order;
    uint8_t dims[SLC_MAX_ORDER * 8];
    const uint8_t zero[8] = {0};
    char lists[64], one[32], order[16];

    for (unsigned i = 0; i < n; i++) {
        slc_store_u64(dims + (size_t)8 * i, file->dims[i]);
    }
    (void)snprintf(one, sizeof one, "(%" PRIu64 ",)", file->nnz);
    (void)snprintf(order, sizeof order, "(%u,)", n);
    (void)snprintf(lists, sizeof lists, "(%u, %" PRIu64 ")", n, file->nnz);
    if (file->form == SLC_LISTS_SCIPY) {
        add_member(&archive, "row.npy", type_of(file, 0), one, 0, 0, NULL, 0);
        add_member(&archive, "col.npy", type_of(file, 1), one, 1, 1, NULL, 0);
        add_member(&archive, "format.npy", "|S3", "()", none_first, none_last, "coo", 3);
    } else {
        add_member(&archive, "coords.npy", type_of(file, 0), lists, 0, n - 1, NULL, 0);
        add_member(&archive, "fill_value.npy", type_of(file, n), "()", none_first, none_last, zero,
                   slc_list_kind_bytes(file->lists[n].kind));
        /* Newer versions of pydata/sparse identify the format by this string; older versions ignore
         * it. */
        add_member(&archive, "format.npy", "<U3", "()", none_first, none_last,
                   "c\0\0\0o\0\0\0o\0\0", 12);
    }
    add_member(&archive, "shape.npy", "<i8", order, none_first, none_last, dims, 8 * n);
    add_member(&archive, "data.npy", type_of(file, n), one, n, n, NULL, 0);
    uint8_t *at = add_piece(file);
    grow_file(file, slc_zip_directory(archive.members, archive.count, file->bytes, at));
}

static bool arrange_pieces(struct slc_list_file *file)
{
    file->bytes = 0;
    file->piece_count = 0;
    if (file->form == SLC_LISTS_MATLAB) {
        return arrange_matlab(file);
    }
    if (file->form == SLC_LISTS_SPLATT_BIN) {
        arrange_splatt(file);
    } else {
        arrange_archive(file);
    }
    return true;
}

static enum slc_status fail_form(struct slc_error *err, const char *why)
{
    return slc_fail(err, SLC_ERR_UNSUPPORTED, "%s: write another form, such as .tns or .bin", why);
}

enum slc_status slc_list_file_plan(struct slc_list_file *file,
                                   enum slc_list_form form,
                                   const struct slc_manifest *manifest,
                                   struct slc_error *err)
{
    const uint32_t short_max = form == SLC_LISTS_SCIPY ? INT32_MAX : UINT32_MAX;
    bool wide = form == SLC_LISTS_NPZ;
    uint64_t bytes;

    memset(file, 0, sizeof *file);
    file->form = form;
    file->order = manifest->order;
    file->dims = manifest->dims;
    file->nnz = manifest->nnz;
    file->index_base = form == SLC_LISTS_MATLAB ? 1 : 0;
    file->checked = form == SLC_LISTS_NPZ || form == SLC_LISTS_SCIPY;
    if (form == SLC_LISTS_SCIPY && manifest->order != 2) {
        return slc_fail_field(err, SLC_ERR_UNSUPPORTED, SLC_FIELD_FORM,
                              "scipy.sparse supports only matrices, and this tensor has %u modes: "
                              "choose the form npz, for pydata/sparse",
                              manifest->order);
    }
    if (!slc_mul_u64(manifest->nnz, 8 * (SLC_MAX_ORDER + 1), &bytes) || bytes > INT64_MAX / 2) {
        return fail_form(err, "the tensor is larger than any file");
    }
    for (unsigned n = 0; n < manifest->order; n++) {
        wide = wide || manifest->dims[n] > short_max;
        if (form == SLC_LISTS_MATLAB && manifest->dims[n] > EXACT_MAX) {
            return fail_form(
                err, "a mode has more indices than the 2^53 that a MATLAB number can represent");
        }
    }
    wide = wide || (form == SLC_LISTS_SPLATT_BIN && manifest->nnz > UINT32_MAX);
    for (unsigned n = 0; n < manifest->order; n++) {
        file->lists[n].kind = form == SLC_LISTS_MATLAB ? SLC_LIST_F64
                              : wide                   ? SLC_LIST_U64
                                                       : SLC_LIST_U32;
    }
    file->lists[manifest->order].kind =
        manifest->value_type == SLC_F32 && form != SLC_LISTS_MATLAB ? SLC_LIST_F32 : SLC_LIST_F64;
    return arrange_pieces(file)
               ? SLC_OK
               : fail_form(
                     err, "the tensor exceeds the 2 GiB of a variable in a .mat file of version 5");
}

void slc_list_file_finish(struct slc_list_file *file)
{
    const bool fits = arrange_pieces(file);

    assert(fits);
    (void)fits;
}
