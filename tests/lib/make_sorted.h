/* Block files of layout sorted-n for tests, built from the tensors of make_store.h in the simplest
 * way, independently of convert/. */
#ifndef SLC_MAKE_SORTED_H
#define SLC_MAKE_SORTED_H

#include "make_store.h"

struct slc_made_sorted {
    /* The nonzeros in file order. */
    struct slc_made_tensor tensor;
    unsigned mode;
    uint64_t partition_count;
    uint64_t *begin; /* partition_count + 1: first nonzero of each partition */
    bool *continued;
};

/* Splits the tensor into partitions: as many whole rows of `mode` as have at most `target_nnz`
 * nonzeros together; a larger row is split alone, into as few pieces as possible, equal except the
 * last. Ends the program if memory runs out. */
void slc_made_sorted_create(struct slc_made_sorted *sorted,
                            const struct slc_made_tensor *tensor,
                            unsigned mode,
                            uint64_t target_nnz);
void slc_made_sorted_destroy(struct slc_made_sorted *sorted);

/* Appends partitions [from, to). */
enum slc_status slc_made_partitions_append(const struct slc_made_sorted *sorted,
                                           uint64_t from,
                                           uint64_t to,
                                           enum slc_codec codec,
                                           struct slc_writer *writer,
                                           struct slc_error *err);

/* Writes the block file `path` through `files` (NULL: slc_quick_files). */
enum slc_status slc_made_sorted_write(const struct slc_made_sorted *sorted,
                                      const struct slc_files *files,
                                      const char *path,
                                      enum slc_codec codec,
                                      uint64_t block_bytes,
                                      struct slc_writer_summary *summary,
                                      struct slc_error *err);

/* Adds the layout sorted-n of `mode` to the store of `tensor` in folder `path`. */
enum slc_status slc_made_store_add_sorted(const struct slc_made_tensor *tensor,
                                          const char *path,
                                          unsigned mode,
                                          uint64_t target_nnz,
                                          enum slc_codec codec,
                                          uint64_t block_bytes,
                                          struct slc_error *err);

#endif
