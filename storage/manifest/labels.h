/*
 * The numbering of one relabelled mode: label[i] is the number that index i of the input has in the
 * store. On disk a file perm-K.bin per relabelled mode (docs/FORMAT.md, section "Permutations").
 *
 * Labels are below 2^31, so that the highest bit of each is free to mark what a walk along the
 * cycles of the permutation has seen: checking, inverting and applying need no memory of their own.
 */
#ifndef SLC_STORAGE_LABELS_H
#define SLC_STORAGE_LABELS_H

#include "base/error/error.h"
#include "base/memory/memory.h"
#include "storage/file/files.h"
#include "storage/manifest/store.h"

#include <stdbool.h>
#include <stdint.h>

/* Longest mode that can be relabelled. */
#define SLC_LABELS_MAX_LENGTH (UINT64_C(1) << 31)
/* The bit of a label that is free for marks. */
#define SLC_LABEL_MARK (UINT32_C(1) << 31)

struct slc_labels {
    uint64_t length;
    uint32_t *label; /* `length` of them, in `buffer` */
    struct slc_buffer buffer;
};

/* What slc_labels_create maps for a mode of this length; 0 for one that cannot be relabelled. */
uint64_t slc_labels_memory_bytes(uint64_t length);
/* Bytes of the file for a mode of this length. */
uint64_t slc_labels_file_bytes(uint64_t length);

/* Takes zeroed memory for 2 to SLC_LABELS_MAX_LENGTH labels. Owns: slc_labels_destroy, which takes
 * an all-zero struct. */
enum slc_status
slc_labels_create(struct slc_labels *labels, uint64_t length, struct slc_error *err) SLC_NODISCARD;
void slc_labels_destroy(struct slc_labels *labels);

/* label[label[i]] = i from now on: turns numbers of the input into those of the store, or back. */
void slc_labels_invert(struct slc_labels *labels);

/* Whether every number below the length occurs once. Leaves the labels as they were. */
bool slc_labels_sound(struct slc_labels *labels);

/*
 * Writes FOLDER/perm-K.bin for `mode` (0-based), atomically, and fills in what the manifest says of
 * it. Packs the labels where they lie: afterwards they are gone, whatever happens.
 */
enum slc_status slc_labels_write(struct slc_labels *labels,
                                 const struct slc_files *files,
                                 const char *folder,
                                 unsigned mode,
                                 struct slc_store_permutation *listed,
                                 struct slc_error *err) SLC_NODISCARD;

/*
 * Reads the listed file of a mode of this length into fresh labels, unpacking it in place.
 * Errors: SLC_ERR_DAMAGED, naming the file, where a byte differs from what was written or the
 * labels are no permutation; SLC_ERR_IO; SLC_ERR_MEMORY.
 */
enum slc_status slc_labels_read(const struct slc_files *files,
                                const char *folder,
                                const struct slc_store_permutation *listed,
                                uint64_t length,
                                struct slc_labels *labels,
                                struct slc_error *err) SLC_NODISCARD;

/* The same of one that the manifest of an open store lists, also where the store's folder has been
 * moved or removed meanwhile. */
enum slc_status slc_store_labels(const struct slc_store *store,
                                 const struct slc_store_permutation *listed,
                                 struct slc_labels *labels,
                                 struct slc_error *err) SLC_NODISCARD;

/*
 * Of the indices whose labels in the listed file are *low to *high, the first and the last, which
 * take their place: UINT64_MAX and 0 where there are none. In a bounded buffer, whatever the
 * length; so whether the labels are a permutation is not seen. Errors: as above.
 */
enum slc_status slc_labels_find(const struct slc_files *files,
                                const char *folder,
                                const struct slc_store_permutation *listed,
                                uint64_t length,
                                uint64_t *low,
                                uint64_t *high,
                                struct slc_error *err) SLC_NODISCARD;

#endif
