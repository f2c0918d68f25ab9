/* Shared by the tests of interrupted builds: a build with commits, stopped at any point and
 * resumed. */
#ifndef SLC_RESUME_FIXTURE_H
#define SLC_RESUME_FIXTURE_H

#include "builder_fixture.h"

/* A build with commits. */
struct trial {
    struct input input;
    unsigned workers;
    unsigned assumed_base;
    uint64_t memory;
    uint32_t sample; /* number of sampled coordinates */
    enum slc_fibers fibers;
    enum slc_relabel relabel;
    uint64_t every;               /* pieces between commits */
    uint64_t hash, manifest_hash; /* hashes of the expected block file and manifest */
};

uint64_t pieces_of(const struct trial *trial);
/* The store, and a file in its unfinished folder. */
const char *output(void);
const char *left(const char *name);

/* Creates input with duplicates and zeros; it is skewed, so that buckets exceed the sort area. */
void create_trial(struct trial *trial, uint64_t count, enum shape shape);
/* Stores the expected result: that of an uninterrupted build without commits. */
void want(struct trial *trial);
struct slc_builder_options options_of(const struct trial *trial, const struct slc_files *files);

/* Builds with these options, resuming an earlier build, up to piece `stop`, where it ends as after
 * a fault that may be temporary. *begun: the first piece that it pushed. */
enum slc_status build_with(const struct trial *trial,
                           const struct slc_builder_options *options,
                           uint64_t stop,
                           uint64_t *begun,
                           struct slc_builder_report *report,
                           struct slc_error *err);
enum slc_status build_to(const struct trial *trial,
                         const struct slc_files *files,
                         uint64_t stop,
                         uint64_t *begun,
                         struct slc_error *err);
/* Checks that the store is the expected one and that there are no other files; removes it. */
void check_built(const struct trial *trial);
/* Resumes the build and completes it. */
void go_on(const struct trial *trial);

/* Flips a bit of byte `at` of a file or, if `cut`, truncates the file there. */
void alter(const char *path, uint64_t at, bool cut);

#endif
