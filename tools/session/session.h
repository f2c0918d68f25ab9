/* Common parts of the commands that stream a store: options, the open store, and its session
 * (engine/session/session.h). */
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
    bool encoded; /* resident blocks of GPUs are not transcoded */
    uint64_t io_limit;
    const char *pin;
    const char *copies;             /* when replicas are made; NULL: never */
    const char *layouts;            /* layouts to read; NULL: only blco; build: as auto */
    const char *passes;             /* kind of passes; NULL: plain */
    struct option_modes mode_order; /* empty: the plan chooses the order */
    /* With the CPU: one value, which is the number of devices. With --device gpu: the number of
     * each GPU to use, such as 0 and 2. */
    struct option_counts devices;
    const char *split;  /* --split; NULL: not given, or the command has no such option */
    const char *device; /* --device; NULL: the CPU */
    uint64_t device_memory;
    const char *device_name; /* chip to plan for; NULL: a device of this machine */
    bool plan_only;          /* true: the command only plans; no option sets this member directly */
    uint64_t streams;
    /* held-out fraction of the nonzeros, for cpd; no option sets this member directly */
    double holdout;
    const struct slc_cp_options *solver; /* for cpd: options of the solver; otherwise NULL */
    /* for cpd: true if the CPU solves the rows (struct slc_plan_request) */
    bool host_rows;
    uint64_t beside_bytes;
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
               .help = "bind each thread to a processor: auto (only with several NUMA nodes and "  \
                       "one thread per core), never or always")

#define SESSION_OPTION_ROW_IO(type, field)                                                         \
    OPTION_ROW("io", OPTION_CHOICE, type, field, .value = "METHOD", .fallback = "auto",            \
               .choices = session_io_choices,                                                      \
               .help = "how blocks are read: auto, uring, pread or mmap")

#define SESSION_OPTION_ROW_SCHEDULE(type, field)                                                   \
    OPTION_ROW("schedule", OPTION_CHOICE, type, field, .value = "ORDER", .fallback = "auto",       \
               .choices = session_schedule_choices,                                                \
               .help = "order of the blocks in a pass: auto, largest (largest first) or file")

#define SESSION_OPTION_ROW_PRECISION(type, field)                                                  \
    OPTION_ROW("precision", OPTION_CHOICE, type, field, .value = "TYPE", .fallback = "f64",        \
               .choices = session_precision_choices,                                               \
               .help = "type of the factors: f64 or f32; sums are f64")

/* Option rows of all streaming commands, for the field `session` of struct `type`. */
#define SESSION_OPTION_ROWS(type)                                                                  \
    OPTION_ROW_THREADS(type, session.threads), SESSION_OPTION_ROWS_BUT_THREADS(type)
#define SESSION_OPTION_ROWS_BUT_THREADS(type)                                                      \
    OPTION_ROW_MEMORY(type, session.memory), SESSION_OPTION_ROW_PIN(type, session.pin),            \
        SESSION_OPTION_ROW_IO(type, session.io),                                                   \
        SESSION_OPTION_ROW_SCHEDULE(type, session.schedule),                                       \
        SESSION_OPTION_ROW_PRECISION(type, session.precision),                                     \
        OPTION_ROW("deterministic", OPTION_FLAG, type, session.deterministic,                      \
                   .help = "make results bit-identical for any number of threads, I/O method, "    \
                           "block size and codec"),                                                \
        OPTION_ROW(                                                                                \
            "no-cache", OPTION_FLAG, type, session.no_cache,                                       \
            .help =                                                                                \
                "read every block in every pass, even if the budget could hold some blocks in "    \
                "memory")

/* Option row for commands that stream a store. */
#define SESSION_OPTION_ROW_IO_LIMIT(type)                                                          \
    OPTION_ROW("io-limit", OPTION_SIZE, type, session.io_limit, .value = "SIZE",                   \
               .help = "limit reads to SIZE bytes per second, to simulate a slower drive")

/* Option row for commands that can read sorted layouts. */
#define SESSION_OPTION_ROW_LAYOUTS(type)                                                           \
    OPTION_ROW("layouts", OPTION_CHOICE, type, session.layouts, .value = "WHICH",                  \
               .fallback = "auto", .choices = session_layout_choices,                              \
               .help = "layouts to read: blco, sorted (each mode from its sorted layout) or auto " \
                       "(blco if that reads fewer bytes, otherwise sorted)")

/* Option rows for commands that can compute on a device with its own memory. */
#define SESSION_OPTION_ROWS_DEVICE(type)                                                           \
    OPTION_ROW("device", OPTION_CHOICE, type, session.device, .value = "WHICH", .fallback = "cpu", \
               .choices = session_device_choices,                                                  \
               .help = "where to compute: cpu, gpu or auto (the GPU if a usable GPU exists)"),     \
        OPTION_ROW(                                                                                \
            "device-memory", OPTION_SIZE, type, session.device_memory, .value = "SIZE",            \
            .help = "GPU memory budget, such as 512MiB or 4G; the default is nine tenths of the "  \
                    "free GPU memory"),                                                            \
        OPTION_ROW("streams", OPTION_U64, type, session.streams, .value = "S", .fallback = "0",    \
                   .maximum = SLC_DEVICE_STREAMS,                                                  \
                   .help = "number of GPU slots: blocks are copied into some slots "               \
                           "while the GPU computes from others; 0 means that the number "          \
                           "is chosen automatically")

/* Option row for commands that plan, possibly for a device that is not in this machine. */
#define SESSION_OPTION_ROW_DEVICE_NAME(type)                                                       \
    OPTION_ROW("device-name", OPTION_CHOICE, type, session.device_name, .value = "CHIP",           \
               .choices = slc_gpu_chip_names,                                                      \
               .help =                                                                             \
                   "plan for a GPU that is not in this machine: a100, a100-80gb, h100, h200, "     \
                   "b200 or l40s, whose budget is --device-memory or nine tenths of its memory; "  \
                   "without this option, if no GPU is usable here and --device-memory is given, "  \
                   "the plan is for an " SLC_DEVICE_CHIP)

/* Option row for commands that can compute on the CPU and one GPU, but not on several GPUs. */
#define SESSION_OPTION_ROW_SHARE(type)                                                             \
    OPTION_ROW(                                                                                    \
        "split", OPTION_STRING, type, session.split, .value = "WHAT",                              \
        .help = "share the work between CPU and GPU: static=F (F from 0 to 1: the GPU's fraction " \
                "of the nonzeros), adaptive or queue; if not given, the GPU computes everything")

/* Option rows for commands that can compute on several devices. */
#define SESSION_OPTION_ROWS_DEVICES(type)                                                          \
    OPTION_ROW("devices", OPTION_COUNTS, type, session.devices, .value = "D",                      \
               .maximum = SLC_MAX_DEVICES, .count_max = SLC_DEVICE_NUMBERS_MAX,                    \
               .help = "divide the work between D CPU devices (groups of threads), each with "     \
                       "--threads threads and a copy of the factors (0 means no CPU devices), "    \
                       "or with --device gpu between GPUs, whose numbers D lists, "                \
                       "such as 0,1,2; a number may be repeated"),                                 \
        OPTION_ROW("split", OPTION_STRING, type, session.split, .value = "WHAT",                   \
                   .help = "what several devices divide: partitions (the default, of "             \
                           "sorted layouts, largest first) or nnz (consecutive blocks "            \
                           "of blco); or how the CPU and one GPU share the work: "                 \
                           "static=F (F from 0 to 1: the GPU's fraction of the "                   \
                           "nonzeros), adaptive or queue")

/* Option rows for commands that decompose. */
#define SESSION_OPTION_ROW_MODE_ORDER(type)                                                        \
    OPTION_ROW("mode-order", OPTION_MODES, type, session.mode_order, .value = "2,3,1",             \
               .help =                                                                             \
                   "order in which modes are updated; the default is 1,2,.., or an order that "    \
                   "reads fewer bytes")

#define SESSION_OPTION_ROW_PASSES(type)                                                            \
    OPTION_ROW("passes", OPTION_CHOICE, type, session.passes, .value = "WHICH",                    \
               .fallback = "auto", .choices = session_passes_choices,                              \
               .help = "passes: plain (one mode per pass), fused (two modes per pass if rows "     \
                       "complete early) or auto (fused if that reads fewer bytes)")

#define SESSION_OPTION_ROW_COPIES(type)                                                            \
    OPTION_ROW("copies", OPTION_CHOICE, type, session.copies, .value = "WHEN", .fallback = "auto", \
               .choices = session_copies_choices,                                                  \
               .help = "use replicas, a sorted copy of the tensor per mode, if "                   \
                       "memory allows: auto (after ten iterations, if more than "                  \
                       "twenty are allowed), never or always (from the start)")

/* Opens the store `path`, whose index must fit into `memory_bytes`. The caller must call
 * session_close. */
enum slc_status session_open(struct slc_session *session,
                             const char *path,
                             uint64_t memory_bytes,
                             struct slc_error *err) SLC_NODISCARD;

/* Sets *wish to the devices that the options request. `several`: the command can divide work
 * between several devices. */
enum slc_status session_device_wish(const struct session_options *options,
                                    bool several,
                                    struct slc_device_wish *wish,
                                    struct slc_error *err) SLC_NODISCARD;

/* Opens the layouts that the options name and plans an operation. `mode` starts at 0 and is used
 * only for an MTTKRP. SLC_ERR_BUDGET states the smallest sufficient budget, and session->plan also
 * contains this budget. */
enum slc_status session_plan(struct slc_session *session,
                             const struct session_options *options,
                             enum slc_operation operation,
                             unsigned mode,
                             uint32_t rank,
                             struct slc_error *err) SLC_NODISCARD;

/* Makes the requested plan over the open layouts: only `blco`, unless an earlier plan opened other
 * layouts. */
enum slc_status session_plan_request(struct slc_session *session,
                                     const struct slc_plan_request *request,
                                     struct slc_error *err) SLC_NODISCARD;

/* Closes everything that is open, including the store. Accepts a zeroed session. */
void session_close(struct slc_session *session);

/* Formats the name of a layout, such as "blco" or "fiber-2". */
const char *
session_layout_name(struct format_text *out, enum slc_layout_kind layout, unsigned mode);

/* Returns the size in bytes of all block files and permutations of the store, per nonzero. */
double session_bytes_per_nonzero(const struct slc_manifest *manifest);

#endif
