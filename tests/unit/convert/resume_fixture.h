/* Tests of builds that are interrupted share this: a build of which commits are made, up to where
 * it is stopped, and from there on. */
#ifndef SLC_RESUME_FIXTURE_H
#define SLC_RESUME_FIXTURE_H

#include "builder_fixture.h"

/* A build of which commits are made. */
struct trial {
    struct input input;
    unsigned workers;
    unsigned assumed_base;
    uint64_t memory;
    uint32_t sample; /* coordinates */
    enum slc_fibers fibers;
    enum slc_relabel relabel;
    uint64_t every;               /* pieces between commits */
    uint64_t hash, manifest_hash; /* of the store that is wanted */
};

uint64_t pieces_of(const struct trial *trial);
/* The store, and a file of its unfinished folder. */
const char *output(void);
const char *left(const char *name);

/* With duplicates and zeros in all of it; skewed, so that buckets do not fit an area. */
void create_trial(struct trial *trial, uint64_t count, enum shape shape);
/* The store that an uninterrupted build without commits makes. */
void want(struct trial *trial);
struct slc_builder_options options_of(const struct trial *trial, const struct slc_files *files);

/*
 * Builds with these options, from where an earlier build was, up to piece `stop`, where it ends as
 * after a fault that may not come again. *begun: the first piece that it pushed.
 */
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
/* The store is the one that is wanted, and nothing else is there; removes it. */
void check_built(const struct trial *trial);
/* Builds what is left to be built. */
void go_on(const struct trial *trial);

/* Flips a bit of a file, or cuts it there. */
void alter(const char *path, uint64_t at, bool cut);

#endif
