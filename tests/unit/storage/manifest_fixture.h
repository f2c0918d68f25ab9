/* Shared by the tests of manifests and stores: a folder, and a manifest with all its members. */
#ifndef SLC_MANIFEST_FIXTURE_H
#define SLC_MANIFEST_FIXTURE_H

#include "storage/manifest/store.h"

/* Paths of the running test's store and of its manifest. */
extern char store_folder[256];
extern char manifest_file[300];

/* Makes a new, empty folder, and sets the two paths. */
void new_store_folder(void);

/* Fills in two layouts, three modes up to the largest, and texts that JSON must escape. */
void sample(struct slc_manifest *manifest);

/* Asserts that every member is equal, numbers bit for bit. */
void check_same(const struct slc_manifest *a, const struct slc_manifest *b);

#endif
