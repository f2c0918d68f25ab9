/* What the tests of manifests and stores share: a folder, and a manifest with all its members. */
#ifndef SLC_MANIFEST_FIXTURE_H
#define SLC_MANIFEST_FIXTURE_H

#include "storage/manifest/store.h"

/* Of the running test's store, and of the manifest in it. */
extern char store_folder[256];
extern char manifest_file[300];

/* Fills them in for a fresh, empty folder. */
void new_store_folder(void);

/* Two layouts, three modes up to the longest, texts that JSON has to escape. */
void sample(struct slc_manifest *manifest);

/* Asserts that every member is the same, numbers bit for bit. */
void check_same(const struct slc_manifest *a, const struct slc_manifest *b);

#endif
