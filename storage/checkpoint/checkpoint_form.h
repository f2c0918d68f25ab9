/*
 * Where things stand in the file of a generation, and whether they may (docs/FORMAT.md, section
 * "Checkpoints"). Private to storage/checkpoint*.c.
 */
#ifndef SLC_STORAGE_CHECKPOINT_FORM_H
#define SLC_STORAGE_CHECKPOINT_FORM_H

#include "base/memory/limits.h"
#include "storage/checkpoint/checkpoint.h"

enum {
    SLC_CHECKPOINT_TABLE_OFFSET = SLC_PAGE_BYTES,
    SLC_CHECKPOINT_BODY_OFFSET = 2 * SLC_PAGE_BYTES /* of the first section */
};

/* A page each: `header` needs the table's page. */
void slc_checkpoint_table_encode(const struct slc_checkpoint_info *info, uint8_t *table);
void slc_checkpoint_header_encode(const struct slc_checkpoint_info *info,
                                  const uint8_t *table,
                                  uint8_t *header);

/*
 * The first page of a file: *empty where no generation has been completed in it. `available` of
 * the page's bytes could be read. Errors: SLC_ERR_FORMAT, SLC_ERR_UNSUPPORTED, SLC_ERR_DAMAGED,
 * each with the offset.
 */
enum slc_status slc_checkpoint_header_decode(const uint8_t *header,
                                             uint64_t available,
                                             const char *path,
                                             struct slc_checkpoint_info *info,
                                             bool *empty,
                                             struct slc_error *err) SLC_NODISCARD;
/* The table behind that header, of a file of `file_bytes` bytes. */
enum slc_status slc_checkpoint_table_decode(const uint8_t *header,
                                            const uint8_t *table,
                                            uint64_t file_bytes,
                                            const char *path,
                                            struct slc_checkpoint_info *info,
                                            struct slc_error *err) SLC_NODISCARD;

/* SLC_ERR_DAMAGED at `offset`, with what to do. */
enum slc_status
slc_checkpoint_damaged(struct slc_error *err, const char *path, uint64_t offset, const char *what);

#endif
