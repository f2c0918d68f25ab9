/* Describes a part of a product in its output, so that slc_join can check that parts belong
 * together. A record is text: lines NAME=VALUE. The parts of a product differ only in the lines
 * after "parts=": its number and its keys. A part that is a store keeps its record in the manifest;
 * the other parts keep it in a file. */
#ifndef SLC_ENGINE_PART_RECORD_H
#define SLC_ENGINE_PART_RECORD_H

#include "base/error/error.h"
#include "engine/stream/part.h"
#include "storage/file/files.h"
#include "storage/manifest/store.h"

#include <stdint.h>

/* Name of the file with the record of a part that is a folder with .npy files, and what the name of
 * a .npy file is followed by in the name of its record. */
#define SLC_PART_RECORD_NAME   "part.txt"
#define SLC_PART_RECORD_SUFFIX ".part.txt"

struct slc_part_record {
    char text[SLC_PART_RECORD_BYTES];
};

/* What determines the results of a product. */
struct slc_part_product {
    const char *operation; /* "ttv", "ttm" or "mttkrp" */
    const struct slc_store *store;
    const struct slc_reader *reader; /* of the layout that is read */
    uint32_t modes;                  /* bit n: mode n has a vector or matrix */
    uint64_t operands;               /* hash of the vectors or matrices */
    const char *options;             /* more lines, each with its newline */
};

/* Sets the record of a part. */
void slc_part_record_set(struct slc_part_record *record,
                         const struct slc_part_product *product,
                         const struct slc_part *part);

/* Returns the value of a line, which ends at its newline; NULL if there is no such line. */
const char *slc_part_record_find(const struct slc_part_record *record, const char *name);

/* Compares the lines up to "parts=". `path` and `other_path` name the parts in the message. Errors:
 * SLC_ERR_INPUT with the first line that differs. */
enum slc_status slc_part_record_match(const struct slc_part_record *record,
                                      const char *path,
                                      const struct slc_part_record *other,
                                      const char *other_path,
                                      struct slc_error *err) SLC_NODISCARD;

/* Sets the number of the part and the keys of its results. Errors: SLC_ERR_FORMAT if the lines are
 * missing or invalid. */
enum slc_status slc_part_record_range(const struct slc_part_record *record,
                                      const char *path,
                                      struct slc_part *part,
                                      struct slc_error *err) SLC_NODISCARD;

/* Writes the record to PATH SUFFIX. Errors: those of slc_file_replace. */
enum slc_status slc_part_record_write(const struct slc_part_record *record,
                                      const struct slc_files *files,
                                      const char *path,
                                      const char *suffix,
                                      struct slc_error *err) SLC_NODISCARD;

/* Reads the record of the part at `path`: a store, a folder with .npy files, or a .npy file.
 * Errors: SLC_ERR_FORMAT if there is no record; those of reading. */
enum slc_status slc_part_record_read(struct slc_part_record *record,
                                     const struct slc_files *files,
                                     const char *path,
                                     struct slc_error *err) SLC_NODISCARD;

#endif
