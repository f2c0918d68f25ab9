/* Permutation of one relabelled mode: label[i] is the index in the store of index i of the input.
 * A store has a file perm-K.bin for each relabelled mode (docs/FORMAT.md, section "Permutations").
 * Labels are below 2^31, so the highest bit of each label is free to mark the labels that a walk
 * along the cycles of the permutation has visited. Checking, inverting and applying a permutation
 * therefore need no additional memory. */
#ifndef SLC_STORAGE_LABELS_H
#define SLC_STORAGE_LABELS_H

#include "base/error/error.h"
#include "base/memory/memory.h"
#include "storage/file/files.h"
#include "storage/manifest/store.h"

#include <stdbool.h>
#include <stdint.h>

/* Largest size of a mode that can be relabelled. */
#define SLC_LABELS_MAX_LENGTH (UINT64_C(1) << 31)
/* The bit of a label that is set once the label has been visited. */
#define SLC_LABEL_MARK (UINT32_C(1) << 31)

struct slc_labels {
    uint64_t length;
    uint32_t *label; /* `length` labels, in `buffer` */
    struct slc_buffer buffer;
};

/* Returns the bytes that slc_labels_create maps; 0 if a mode of this size cannot be relabelled. */
uint64_t slc_labels_memory_bytes(uint64_t length);
/* Sets `file` to the usual file name of a mode's permutation. */
void slc_labels_file(unsigned mode, char file[SLC_STORE_FILE_BYTES]);
/* Returns the size of the permutation file of a mode with `length` indices. */
uint64_t slc_labels_file_bytes(uint64_t length);

/* Allocates zeroed memory for 2 to SLC_LABELS_MAX_LENGTH labels. Ownership: release with
 * slc_labels_destroy, which accepts an all-zero struct. */
enum slc_status
slc_labels_create(struct slc_labels *labels, uint64_t length, struct slc_error *err) SLC_NODISCARD;
void slc_labels_destroy(struct slc_labels *labels);

/* Inverts the permutation in place: label[i] becomes the input index of store index i. */
void slc_labels_invert(struct slc_labels *labels);

/* True if every number below `length` occurs exactly once. Leaves the labels unchanged. */
bool slc_labels_sound(struct slc_labels *labels);

/* Writes FOLDER/perm-K.bin for `mode` (0-based) atomically, and fills in its manifest entry. Packs
 * the labels in place, so they are lost even after an error. */
enum slc_status slc_labels_write(struct slc_labels *labels,
                                 const struct slc_files *files,
                                 const char *folder,
                                 unsigned mode,
                                 struct slc_store_permutation *listed,
                                 struct slc_error *err) SLC_NODISCARD;

/* Reads the permutation file `listed` of a mode with `length` indices into newly allocated labels.
 * Errors: SLC_ERR_DAMAGED, with the file, if the checksum is wrong or the labels are not a
 * permutation; SLC_ERR_IO; SLC_ERR_MEMORY. */
enum slc_status slc_labels_read(const struct slc_files *files,
                                const char *folder,
                                const struct slc_store_permutation *listed,
                                uint64_t length,
                                struct slc_labels *labels,
                                struct slc_error *err) SLC_NODISCARD;

/* Like slc_labels_read, but for a permutation of an open store: works even if the store's folder
 * has been moved or removed since the store was opened. */
enum slc_status slc_store_labels(const struct slc_store *store,
                                 const struct slc_store_permutation *listed,
                                 struct slc_labels *labels,
                                 struct slc_error *err) SLC_NODISCARD;

/* Finds the indices with labels in *low .. *high in the listed file, and replaces *low and *high
 * with the first and last such index, or with UINT64_MAX and 0 if there are none. Needs only a
 * bounded buffer, so it does not check that the labels are a permutation. Errors: those of
 * slc_labels_read. */
enum slc_status slc_labels_find(const struct slc_files *files,
                                const char *folder,
                                const struct slc_store_permutation *listed,
                                uint64_t length,
                                uint64_t *low,
                                uint64_t *high,
                                struct slc_error *err) SLC_NODISCARD;

#endif
