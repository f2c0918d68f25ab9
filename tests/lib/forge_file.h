/* A block file in memory that a test modifies and then seals with valid checksums, as a forger or a
 * faulty writer could. Checksums cannot detect the modification, so only structural checks can. */
#ifndef SLC_FORGE_FILE_H
#define SLC_FORGE_FILE_H

#include <stdint.h>

struct slc_forged {
    uint8_t *bytes;
    uint64_t size;
};

/* Loads a whole file; ends the program on failure. */
void slc_forged_load(struct slc_forged *forged, const char *path);
/* Replaces the file at `path` by the bytes. */
void slc_forged_save(const struct slc_forged *forged, const char *path);
/* Changes one byte, or the length, of the file at `path` in place. Much faster than saving it
 * again: file systems flush a file that is truncated to zero and rewritten. */
void slc_forged_poke(const char *path, uint64_t offset, uint8_t byte);
/* Like slc_forged_poke, but keeps the modification time, as within one tick of the clock. */
void slc_forged_poke_unseen(const char *path, uint64_t offset, uint8_t byte);
void slc_forged_resize(const char *path, uint64_t size);
void slc_forged_release(struct slc_forged *forged);

/* Offset of the index, and of its entry `block`, according to the header. */
uint64_t slc_forged_index(const struct slc_forged *forged);
uint64_t slc_forged_entry(const struct slc_forged *forged, uint64_t block);
/* Offset of the block, according to its index entry. */
uint64_t slc_forged_block(const struct slc_forged *forged, uint64_t block);

/* Updates all checksums: of each block in the index, of the index in the header and closing
 * page, and of those two. */
void slc_forged_seal(struct slc_forged *forged);
/* Updates only the checksums of the header and the closing page. */
void slc_forged_seal_frame(struct slc_forged *forged);

#endif
