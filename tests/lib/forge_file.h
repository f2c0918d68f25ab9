/*
 * A block file in memory that a test alters and then seals again with right checksums: what a
 * forger, or a faulty writer, could put on a disk. Whatever a checksum would catch is thereby out
 * of the way, and only structural checks are left to find the fault.
 */
#ifndef SLC_FORGE_FILE_H
#define SLC_FORGE_FILE_H

#include <stdint.h>

struct slc_forged {
    uint8_t *bytes;
    uint64_t size;
};

/* Loads a file whole; ends the program when that fails. */
void slc_forged_load(struct slc_forged *forged, const char *path);
/* Replaces the file at `path` by the bytes. */
void slc_forged_save(const struct slc_forged *forged, const char *path);
/*
 * Changes one byte, or the length, of the file at `path` in place. Much faster than saving it
 * again: file systems flush a file that is cut to nothing and rewritten.
 */
void slc_forged_poke(const char *path, uint64_t offset, uint8_t byte);
/* The same, and its time of change is what it was, as within one tick of the clock. */
void slc_forged_poke_unseen(const char *path, uint64_t offset, uint8_t byte);
void slc_forged_resize(const char *path, uint64_t size);
void slc_forged_release(struct slc_forged *forged);

/* Where the index and entry `block` of it begin, as the header says. */
uint64_t slc_forged_index(const struct slc_forged *forged);
uint64_t slc_forged_entry(const struct slc_forged *forged, uint64_t block);
/* Where the block begins, as its entry says. */
uint64_t slc_forged_block(const struct slc_forged *forged, uint64_t block);

/* Hashes every block into the index, the index into header and closing page, and those two. */
void slc_forged_seal(struct slc_forged *forged);
/* Seals header and closing page only, as they stand. */
void slc_forged_seal_frame(struct slc_forged *forged);

#endif
