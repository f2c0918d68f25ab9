/*
 * What every command that streams a store has in common: its options, the open store, and what
 * engine/session/session.h makes of them.
 */
#ifndef SLC_TOOLS_SESSION_H
#define SLC_TOOLS_SESSION_H

#include "base/backend.h"
#include "base/error/error.h"
#include "engine/plan/plan.h"
#include "engine/session/session.h"
#include "engine/stream/stream.h"
#include "gpu/gpu.h"
#include "storage/manifest/store.h"
#include "tools/progress/format.h"
#include "tools/session/common_options.h"

#include <stdbool.h>
#include <stdint.h>

struct session_options {
    uint64_t memory;
    uint64_t threads;
    const char *io;
    const char *schedule;
    const char *precision;
    bool deterministic;
    bool no_cache;
    uint64_t io_limit;
    const char *pin;
    const char *copies;             /* NULL: never */
    const char *layouts;            /* NULL: blco alone */
    const char *passes;             /* NULL: plain */
    struct option_modes mode_order; /* empty: the plan's choice */
    /* Of the CPU: how many, one number; with --device gpu which, and there may be more of them. */
    struct option_counts devices;
    const char *split;  /* NULL: not given, or there is no such option */
    const char *device; /* NULL: the CPU */
    uint64_t device_memory;
    const char *device_name; /* NULL: a device of the machine */
    bool plan_only;          /* nothing will be computed; no option's own field */
    uint64_t streams;
    double holdout; /* of cpd: the part of the nonzeros that is held out; no option's own field */
};

extern const char *const session_io_choices[];
extern const char *const session_schedule_choices[];
extern const char *const session_precision_choices[];
extern const char *const session_copies_choices[];
extern const char *const session_pin_choices[];
extern const char *const session_layout_choices[];
extern const char *const session_passes_choices[];
extern const char *const session_device_choices[];

#define SESSION_OPTION_ROW_PIN(type, field)                                                        \
    OPTION_ROW("pin", OPTION_CHOICE, type, field, .value = "WHEN", .fallback = "auto",             \
               .choices = session_pin_choices,                                                     \
               .help = "bind each thread to a processor: auto (on several NUMA nodes, with a "     \
                       "thread for every core), never or always")

#define SESSION_OPTION_ROW_IO(type, field)                                                         \
    OPTION_ROW("io", OPTION_CHOICE, type, field, .value = "METHOD", .fallback = "auto",            \
               .choices = session_io_choices,                                                      \
               .help = "how blocks are read: auto, uring, pread or mmap")

#define SESSION_OPTION_ROW_SCHEDULE(type, field)                                                   \
    OPTION_ROW("schedule", OPTION_CHOICE, type, field, .value = "ORDER", .fallback = "auto",       \
               .choices = session_schedule_choices,                                                \
               .help = "order of blocks in a pass: auto, largest (first) or file")

#define SESSION_OPTION_ROW_PRECISION(type, field)                                                  \
    OPTION_ROW("precision", OPTION_CHOICE, type, field, .value = "TYPE", .fallback = "f64",        \
               .choices = session_precision_choices,                                               \
               .help = "type of factors: f64 or f32; sums are f64")

/* Rows of an option table for the field `session` of struct `type`. */
#define SESSION_OPTION_ROWS(type)                                                                  \
    OPTION_ROW_THREADS(type, session.threads), SESSION_OPTION_ROWS_BUT_THREADS(type)
#define SESSION_OPTION_ROWS_BUT_THREADS(type)                                                      \
    OPTION_ROW_MEMORY(type, session.memory), SESSION_OPTION_ROW_PIN(type, session.pin),            \
        SESSION_OPTION_ROW_IO(type, session.io),                                                   \
        SESSION_OPTION_ROW_SCHEDULE(type, session.schedule),                                       \
        SESSION_OPTION_ROW_PRECISION(type, session.precision),                                     \
        OPTION_ROW(                                                                                \
            "deterministic", OPTION_FLAG, type, session.deterministic,                             \
            .help = "the same bits for any number of threads, I/O method, block size and codec"),  \
        OPTION_ROW("no-cache", OPTION_FLAG, type, session.no_cache,                                \
                   .help =                                                                         \
                       "read every block in every pass, even where memory is left to keep some")

/* The row of commands that stream. */
#define SESSION_OPTION_ROW_IO_LIMIT(type)                                                          \
    OPTION_ROW("io-limit", OPTION_SIZE, type, session.io_limit, .value = "SIZE",                   \
               .help = "read no more than SIZE a second, as from a drive that is no faster")

/* The row of commands that may read sorted layouts. */
#define SESSION_OPTION_ROW_LAYOUTS(type)                                                           \
    OPTION_ROW("layouts", OPTION_CHOICE, type, session.layouts, .value = "WHICH",                  \
               .fallback = "auto", .choices = session_layout_choices,                              \
               .help = "where modes are read from: blco, sorted (each from the layout sorted by "  \
                       "it) or auto (sorted where that reads no more)")

/* The rows of commands that may compute on a device with memory of its own. */
#define SESSION_OPTION_ROWS_DEVICE(type)                                                           \
    OPTION_ROW("device", OPTION_CHOICE, type, session.device, .value = "WHICH", .fallback = "cpu", \
               .choices = session_device_choices,                                                  \
               .help = "what computes: cpu, gpu, or auto (the GPU where there is one that can)"),  \
        OPTION_ROW("device-memory", OPTION_SIZE, type, session.device_memory, .value = "SIZE",     \
                   .help = "of the GPU's memory that may be used: 512MiB, 4G; nine tenths of "     \
                           "what is free if not given"),                                           \
        OPTION_ROW(                                                                                \
            "streams", OPTION_U64, type, session.streams, .value = "S", .fallback = "0",           \
            .maximum = SLC_DEVICE_STREAMS,                                                         \
            .help =                                                                                \
                "slots of the GPU that are copied to and computed at the same time; 0: chosen")

/* The row of commands that plan, for a device that need not be there. */
#define SESSION_OPTION_ROW_DEVICE_NAME(type)                                                       \
    OPTION_ROW("device-name", OPTION_CHOICE, type, session.device_name, .value = "CHIP",           \
               .choices = slc_gpu_chip_names,                                                      \
               .help =                                                                             \
                   "plan for a GPU that need not be here: a100, a100-80gb, h100, h200, b200 or "   \
                   "l40s, with nine tenths of its memory or --device-memory; an " SLC_DEVICE_CHIP  \
                   " if no GPU is here and --device-memory is given")

/* The row of commands that may compute on the CPU and one GPU together, but not on several. */
#define SESSION_OPTION_ROW_SHARE(type)                                                             \
    OPTION_ROW(                                                                                    \
        "split", OPTION_STRING, type, session.split, .value = "WHAT",                              \
        .help = "share the work between the CPU and the GPU: static=F (F from 0 to 1: the GPU's "  \
                "fraction of the nonzeros), adaptive or queue; the GPU does all if not given")

/* The rows of commands that may compute on several devices. */
#define SESSION_OPTION_ROWS_DEVICES(type)                                                          \
    OPTION_ROW("devices", OPTION_COUNTS, type, session.devices, .value = "D",                      \
               .maximum = SLC_MAX_DEVICES,                                                         \
               .help = "divide the work between D devices of the CPU, each with -t threads and a " \
                       "copy of the factors, 0: none; with --device gpu: between the GPUs with "   \
                       "these numbers, as 0,1,2 (one may be named several times)"),                \
        OPTION_ROW("split", OPTION_STRING, type, session.split, .value = "WHAT",                   \
                   .help = "what several devices divide: partitions (of sorted layouts, largest "  \
                           "first; if not given) or nnz (equal shares of blco); or how the CPU "   \
                           "and one GPU share the work: static=F (F from 0 to 1: the GPU's "       \
                           "fraction of the nonzeros), adaptive or queue")

/* The rows of commands that decompose. */
#define SESSION_OPTION_ROW_MODE_ORDER(type)                                                        \
    OPTION_ROW("mode-order", OPTION_MODES, type, session.mode_order, .value = "2,3,1",             \
               .help =                                                                             \
                   "order in which modes are updated; 1,2,.. if not given, or what reads less")

#define SESSION_OPTION_ROW_PASSES(type)                                                            \
    OPTION_ROW("passes", OPTION_CHOICE, type, session.passes, .value = "WHICH",                    \
               .fallback = "auto", .choices = session_passes_choices,                              \
               .help = "plain (one mode each), fused (two modes where rows close early) or auto "  \
                       "(fused where that reads less)")

#define SESSION_OPTION_ROW_COPIES(type)                                                            \
    OPTION_ROW("copies", OPTION_CHOICE, type, session.copies, .value = "WHEN", .fallback = "auto", \
               .choices = session_copies_choices,                                                  \
               .help = "hold a copy of the tensor per mode, sorted for it, where memory allows: "  \
                       "auto (after ten iterations), never or always (from the start)")

/* Opens the store `path`, whose index has to fit `memory_bytes`. Owns: session_close. */
enum slc_status session_open(struct slc_session *session,
                             const char *path,
                             uint64_t memory_bytes,
                             struct slc_error *err) SLC_NODISCARD;

/* The devices that the options ask for; `several`: work may be divided between more than one. */
enum slc_status session_device_wish(const struct session_options *options,
                                    bool several,
                                    struct slc_device_wish *wish,
                                    struct slc_error *err) SLC_NODISCARD;

/*
 * Opens the layouts that the options name and plans an operation. `mode` from 0 (MTTKRP only).
 * SLC_ERR_BUDGET names the smallest budget, and session->plan holds it.
 */
enum slc_status session_plan(struct slc_session *session,
                             const struct session_options *options,
                             enum slc_operation operation,
                             unsigned mode,
                             uint32_t rank,
                             struct slc_error *err) SLC_NODISCARD;

/* Plans what is asked for over the layouts that are open: `blco` unless a plan opened more. */
enum slc_status session_plan_request(struct slc_session *session,
                                     const struct slc_plan_request *request,
                                     struct slc_error *err) SLC_NODISCARD;

/* Closes whatever is open, the store, too; takes an all-zero session. */
void session_close(struct slc_session *session);

/* "blco", "fiber-2" */
const char *
session_layout_name(struct format_text *out, enum slc_layout_kind layout, unsigned mode);

/* Bytes of all block files and permutations of the store per nonzero. */
double session_bytes_per_nonzero(const struct slc_manifest *manifest);

#endif
