#include "convert/export/list_output.h"

#include "base/memory/bytes.h"
#include "storage/manifest/path_guard.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <zlib.h>

static enum slc_status
check_free(const struct slc_files *files, const char *path, bool overwrite, struct slc_error *err)
{
    struct slc_file_stat stat;
    const int rc = files->stat_path(files->self, path, &stat);
    enum slc_status status = SLC_OK;

    if (rc < 0 && rc != -ENOENT) {
        return slc_fail_errno(err, -rc, path, "looking for an existing output");
    }
    if (rc >= 0 && (!overwrite || stat.kind != 'f')) {
        status = slc_fail_field(
            err, SLC_ERR_IO, stat.kind == 'f' ? SLC_FIELD_OVERWRITE : SLC_FIELD_NONE,
            stat.kind == 'f'
                ? "the output exists: remove it, or replace it"
                : "not a regular file: this form is written at many offsets, so name a file");
        slc_error_locate_file(err, path);
    }
    return status;
}

enum slc_status slc_list_output_open(struct slc_list_output *output,
                                     const struct slc_files *files,
                                     const char *path,
                                     bool overwrite,
                                     enum slc_list_form form,
                                     const struct slc_manifest *manifest,
                                     struct slc_error *err)
{
    uint64_t offset;
    enum slc_status status = slc_list_file_plan(&output->file, form, manifest, err);

    SLC_THEN(status, check_free(files, path, overwrite, err));
    SLC_THEN(status, slc_check_parent_outside_stores(files, path, err));
    if (status == SLC_OK) {
        status = slc_output_open(&output->output, files, path, err);
        output->open = status == SLC_OK;
    }
    return status == SLC_OK ? slc_output_skip(&output->output, output->file.bytes, &offset, err)
                            : status;
}

static uint8_t *list_of(const struct slc_list_part *part, unsigned list)
{
    return part->bytes + (size_t)list * part->capacity * 8;
}

static void write_index(enum slc_list_kind kind, uint8_t *at, uint64_t index)
{
    switch (kind) {
    case SLC_LIST_U32:
        slc_store_u32(at, (uint32_t)index);
        break;
    case SLC_LIST_U64:
        slc_store_u64(at, index);
        break;
    case SLC_LIST_F32:
        slc_store_f32(at, (float)index);
        break;
    case SLC_LIST_F64:
        slc_store_f64(at, (double)index);
        break;
    }
}

void slc_list_part_add(const struct slc_list_file *file,
                       struct slc_list_part *part,
                       uint32_t count,
                       const uint64_t *const coords[],
                       const double *values)
{
    const enum slc_list_kind kind = file->lists[file->order].kind;
    uint32_t width = slc_list_kind_bytes(kind);
    uint8_t *at = list_of(part, file->order) + (size_t)part->count * width;

    assert(count <= part->capacity - part->count);
    for (uint32_t i = 0; i < count; i++, at += width) {
        if (kind == SLC_LIST_F32) {
            slc_store_f32(at, (float)values[i]);
        } else {
            slc_store_f64(at, values[i]);
        }
    }
    for (unsigned n = 0; n < file->order; n++) {
        width = slc_list_kind_bytes(file->lists[n].kind);
        at = list_of(part, n) + (size_t)part->count * width;
        for (uint32_t i = 0; i < count; i++, at += width) {
            write_index(file->lists[n].kind, at, coords[n][i] + file->index_base);
        }
    }
    part->count += count;
}

void slc_list_part_sum(const struct slc_list_file *file, struct slc_list_part *part)
{
    for (unsigned i = 0; i <= file->order && file->checked; i++) {
        part->crcs[i] = (uint32_t)crc32(0, list_of(part, i),
                                        part->count * slc_list_kind_bytes(file->lists[i].kind));
    }
}

void slc_list_output_sum(struct slc_list_output *output, const struct slc_list_part *part)
{
    struct slc_list_file *file = &output->file;

    for (unsigned i = 0; i <= file->order && file->checked; i++) {
        struct slc_list *list = &file->lists[i];

        list->crc = (uint32_t)crc32_combine(list->crc, part->crcs[i],
                                            (z_off_t)part->count * slc_list_kind_bytes(list->kind));
    }
}

enum slc_status slc_list_output_write(struct slc_list_output *output,
                                      const struct slc_list_part *part,
                                      uint64_t first,
                                      struct slc_error *err)
{
    const struct slc_list_file *file = &output->file;

    for (unsigned i = 0; i <= file->order; i++) {
        const uint64_t width = slc_list_kind_bytes(file->lists[i].kind);

        SLC_TRY(slc_output_fill(&output->output, file->lists[i].offset + first * width,
                                list_of(part, i), part->count * width, err));
    }
    return SLC_OK;
}

enum slc_status slc_list_output_commit(struct slc_list_output *output, struct slc_error *err)
{
    struct slc_list_file *file = &output->file;

    slc_list_file_finish(file);
    for (unsigned i = 0; i < file->piece_count; i++) {
        SLC_TRY(slc_output_fill(&output->output, file->pieces[i].offset, file->pieces[i].data,
                                file->pieces[i].bytes, err));
    }
    output->open = false;
    return slc_output_commit(&output->output, err);
}

void slc_list_output_abandon(struct slc_list_output *output)
{
    if (output->open) {
        slc_output_abandon(&output->output);
    }
    output->open = false;
}
