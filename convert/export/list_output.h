/* A file of lists (list_form.h) while it is written: nonzeros in pieces, to any places. */
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

/* The parts of all lists that go to one place, encoded, each with room for `room` nonzeros. */
struct slc_list_part {
    uint8_t *bytes;
    uint32_t room;
    uint32_t count;
    uint32_t crcs[SLC_MAX_ORDER + 1];
};

/* Of the bytes of a part with so much room. */
static inline uint64_t slc_list_part_bytes(unsigned order, uint32_t room)
{
    return (order + UINT64_C(1)) * room * 8;
}

/*
 * Opens the file beside its place, once the form is known to hold the tensor. Owns:
 * slc_list_output_commit or slc_list_output_abandon, which takes an all-zero struct.
 */
enum slc_status slc_list_output_open(struct slc_list_output *output,
                                     const struct slc_files *files,
                                     const char *path,
                                     bool overwrite,
                                     enum slc_list_form form,
                                     const struct slc_manifest *manifest,
                                     struct slc_error *err) SLC_NODISCARD;

/* Adds `count` nonzeros to the part, as they were numbered in the input, from 0. */
void slc_list_part_add(const struct slc_list_file *file,
                       struct slc_list_part *part,
                       uint32_t count,
                       const uint64_t *const coords[],
                       const double *values);
/* The part is complete: its checksums, where they are wanted. */
void slc_list_part_sum(const struct slc_list_file *file, struct slc_list_part *part);

/* Adds the part's checksums to those of the parts before it. In the order of the lists. */
void slc_list_output_sum(struct slc_list_output *output, const struct slc_list_part *part);
/* Writes the part to where nonzero `first` belongs. Several threads at the same time. */
enum slc_status slc_list_output_write(struct slc_list_output *output,
                                      const struct slc_list_part *part,
                                      uint64_t first,
                                      struct slc_error *err) SLC_NODISCARD;

/* Writes what stands around the lists and puts the file in its place, or leaves nothing. */
enum slc_status slc_list_output_commit(struct slc_list_output *output,
                                       struct slc_error *err) SLC_NODISCARD;
void slc_list_output_abandon(struct slc_list_output *output);

#endif
