/* Writes a file of lists (list_form.h). Parts of the lists can be written in any order. */
#ifndef SLC_CONVERT_LIST_OUTPUT_H
#define SLC_CONVERT_LIST_OUTPUT_H

#include "base/error/error.h"
#include "convert/export/list_form.h"
#include "storage/file/output.h"

#include <stdbool.h>
#include <stdint.h>

struct slc_list_output {
    struct slc_list_file file;
    struct slc_output output;
    bool open;
};

/* A part: consecutive nonzeros, encoded for all lists, with space for `capacity` nonzeros. */
struct slc_list_part {
    uint8_t *bytes;
    uint32_t capacity;
    uint32_t count;
    uint32_t crcs[SLC_MAX_ORDER + 1];
};

/* Returns the bytes of a part with this capacity. */
static inline uint64_t slc_list_part_bytes(unsigned order, uint32_t capacity)
{
    return (order + UINT64_C(1)) * capacity * 8;
}

/* Opens a temporary file next to `path`. Errors: SLC_ERR_UNSUPPORTED if the form cannot hold the
 * tensor; errors of file operations. Ownership: release with slc_list_output_commit or
 * slc_list_output_abandon, which accepts an all-zero struct. */
enum slc_status slc_list_output_open(struct slc_list_output *output,
                                     const struct slc_files *files,
                                     const char *path,
                                     bool overwrite,
                                     enum slc_list_form form,
                                     const struct slc_manifest *manifest,
                                     struct slc_error *err) SLC_NODISCARD;

/* Adds `count` nonzeros to the part. `coords`: indices of the input, starting at 0. */
void slc_list_part_add(const struct slc_list_file *file,
                       struct slc_list_part *part,
                       uint32_t count,
                       const uint64_t *const coords[],
                       const double *values);
/* Completes a part: computes its checksums if the form needs them. */
void slc_list_part_sum(const struct slc_list_file *file, struct slc_list_part *part);

/* Adds the checksums of the part to those of all earlier parts. Parts must be in file order. */
void slc_list_output_sum(struct slc_list_output *output, const struct slc_list_part *part);
/* Writes the part to all lists. `first`: ordinal of its first nonzero. Threads: any. */
enum slc_status slc_list_output_write(struct slc_list_output *output,
                                      const struct slc_list_part *part,
                                      uint64_t first,
                                      struct slc_error *err) SLC_NODISCARD;

/* Writes the pieces around the lists and renames the file to the output path; after an error,
 * nothing remains. */
enum slc_status slc_list_output_commit(struct slc_list_output *output,
                                       struct slc_error *err) SLC_NODISCARD;
void slc_list_output_abandon(struct slc_list_output *output);

#endif
